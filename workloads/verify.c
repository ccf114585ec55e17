// SPDX-License-Identifier: GPL-2.0-only
/* Checking a mounted file system against the acks; see verify.h. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../replay/util.h"
#include "verify.h"

enum { BUF_BLOCKS = 256 };

struct check {
	struct verify	*v;
	void		(*lost)(const struct verify_loss *l, void *arg);
	void		*arg;
	uint64_t	losses;
};

void verify_init(struct verify *v, const struct model *m)
{
	v->m = m;
	v->last_ack = xcalloc(m->p.writers, sizeof(*v->last_ack));
	v->acked = xcalloc(m->nr_blocks, sizeof(*v->acked));
	v->min_blocks = xcalloc((size_t)m->p.writers * m->p.files,
				sizeof(*v->min_blocks));
	v->buf = xcalloc(BUF_BLOCKS, DATA_BLOCK);
	for (uint32_t w = 0; w < m->p.writers; w++)
		v->last_ack[w] = -1;
	for (uint32_t b = 0; b < m->nr_blocks; b++)
		v->acked[b] = -1;
}

void verify_free(struct verify *v)
{
	free(v->last_ack);
	free(v->acked);
	free(v->min_blocks);
	free(v->buf);
	memset(v, 0, sizeof(*v));
}

void verify_ack(struct verify *v, uint32_t writer, uint32_t op)
{
	const struct model_op *o = model_op(v->m, writer, op);
	uint32_t *min = &v->min_blocks[writer * v->m->p.files + o->file];

	v->last_ack[writer] = op;
	for (uint32_t i = 0; i < o->nr_blocks; i++)
		v->acked[model_block_index(v->m, writer, o->file,
					   o->block + i)] = op;
	if (*min < o->block + o->nr_blocks)
		*min = o->block + o->nr_blocks;
}

/* The operation that may be half done, or NULL if the writer is done. */
static const struct model_op *in_flight(const struct verify *v,
					uint32_t writer)
{
	int64_t n = v->last_ack[writer] + 1;

	return n < v->m->p.ops ? model_op(v->m, writer, n) : NULL;
}

static void report(struct check *c, enum loss_kind kind, uint32_t writer,
		   uint32_t file, uint32_t block, int64_t op, int64_t got)
{
	struct verify_loss l = { kind, writer, file, block, op, got };

	c->losses++;
	c->lost(&l, c->arg);
}

static void check_block(struct check *c, uint32_t writer, uint32_t file,
			uint32_t block, const uint8_t *data)
{
	const struct verify *v = c->v;
	const struct model *m = v->m;
	int64_t acked = v->acked[model_block_index(m, writer, file, block)];
	int64_t next = v->last_ack[writer] + 1, oldest = INT64_MAX;
	const struct model_op *o = in_flight(v, writer);
	bool may_be_next = o && o->file == file && block >= o->block &&
			   block - o->block < o->nr_blocks;
	int good = 0, zero = 0, stale = 0;
	bool mixed = false;

	for (uint32_t s = 0; s < SECTORS_PER_BLOCK; s++) {
		struct tag_id id;

		switch (tag_read(m, data + s * TAG_SECTOR, &id)) {
		case TAG_ZERO:
			if (acked < 0)
				good++;
			else
				zero++;
			continue;
		case TAG_FOREIGN:
			goto foreign;
		case TAG_OURS:
			break;
		}
		if (id.writer != writer || id.file != file ||
		    id.block != block || id.sector != s)
			goto foreign;
		if (id.op == acked || (may_be_next && id.op == next)) {
			good++;
			continue;
		}
		if (id.op > acked)
			goto foreign;
		if (stale++ && id.op != oldest)
			mixed = true;
		if (id.op < oldest)
			oldest = id.op;
	}
	if (good == SECTORS_PER_BLOCK)
		return;
	if (stale == 0)
		oldest = -1;
	if (zero == SECTORS_PER_BLOCK)
		report(c, LOSS_ZERO, writer, file, block, acked, -1);
	else if (stale == SECTORS_PER_BLOCK && !mixed)
		report(c, LOSS_STALE, writer, file, block, acked, oldest);
	else
		report(c, LOSS_TORN, writer, file, block, acked, oldest);
	return;
foreign:
	report(c, LOSS_FOREIGN, writer, file, block, acked, -1);
}

static void missing_blocks(struct check *c, uint32_t writer, uint32_t file,
			   uint32_t from, uint32_t to)
{
	for (uint32_t b = from; b < to; b++)
		report(c, LOSS_MISSING, writer, file, b,
		       c->v->acked[model_block_index(c->v->m, writer, file,
						     b)], -1);
}

static void check_file(struct check *c, int dirfd, uint32_t writer,
		       uint32_t file)
{
	struct verify *v = c->v;
	const struct model_op *o = in_flight(v, writer);
	uint32_t min = v->min_blocks[writer * v->m->p.files + file];
	uint32_t max = min, blocks;
	CLEANUP_CLOSE int fd = -1;
	struct stat st;
	char name[16];

	if (o && o->file == file && o->block + o->nr_blocks > max)
		max = o->block + o->nr_blocks;
	snprintf(name, sizeof(name), "f%u", file);
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		missing_blocks(c, writer, file, 0, min);
		return;
	}
	/*
	 * Sizes are whole blocks, between the acked one and the next one. A file
	 * that no operation has begun to write is not there at all.
	 */
	if (!max || st.st_size % DATA_BLOCK ||
	    st.st_size > (off_t)max * DATA_BLOCK)
		report(c, LOSS_FOREIGN, writer, file,
		       st.st_size / DATA_BLOCK, -1, -1);
	blocks = st.st_size / DATA_BLOCK < max ? st.st_size / DATA_BLOCK : max;
	for (uint32_t b = 0; b < blocks; b += BUF_BLOCKS) {
		uint32_t n = blocks - b < BUF_BLOCKS ? blocks - b : BUF_BLOCKS;
		ssize_t got = pread(fd, v->buf, n * DATA_BLOCK,
				    (uint64_t)b * DATA_BLOCK);
		uint32_t have = got < 0 ? 0 : got / DATA_BLOCK;

		for (uint32_t i = 0; i < have; i++)
			check_block(c, writer, file, b + i,
				    v->buf + i * DATA_BLOCK);
		missing_blocks(c, writer, file, b + have, b + n);
	}
	if (blocks < min)
		missing_blocks(c, writer, file, blocks, min);
}

static bool is_file_name(const struct model *m, const char *name)
{
	char again[16];
	uint64_t file;

	if (name[0] != 'f' || parse_u64(name + 1, 0, m->p.files - 1, &file))
		return false;
	/* file 0 has one name: f00 is another */
	snprintf(again, sizeof(again), "f%u", (uint32_t)file);
	return !strcmp(name, again);
}

/* A name that no writer makes; check_file() knows those not made yet */
static void check_names(struct check *c, int dirfd, uint32_t writer)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		cleanup_close(&fd);
		return;		/* its files are missing, then */
	}
	while ((d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (!is_file_name(c->v->m, d->d_name))
			report(c, LOSS_FOREIGN, writer, UINT32_MAX, 0, -1, -1);
	}
	closedir(dir);
}

uint64_t verify_tree(struct verify *v, const char *root,
		     void (*lost)(const struct verify_loss *l, void *arg),
		     void *arg)
{
	struct check c = { .v = v, .lost = lost, .arg = arg };

	for (uint32_t w = 0; w < v->m->p.writers; w++) {
		CLEANUP_FREE char *path = xasprintf("%s/w%u", root, w);
		CLEANUP_CLOSE int dirfd = -1;

		dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (uint32_t f = 0; f < v->m->p.files; f++) {
			if (dirfd >= 0)
				check_file(&c, dirfd, w, f);
			else
				missing_blocks(&c, w, f, 0,
					       v->min_blocks[w * v->m->p.files
							     + f]);
		}
		if (dirfd >= 0)
			check_names(&c, dirfd, w);
	}
	return c.losses;
}
