// SPDX-License-Identifier: GPL-2.0-only
/* Operations, tags and marks of a run; see model.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../replay/le.h"
#include "../replay/util.h"
#include "model.h"

#define TAG_MAGIC	0x666f6f72706b6361ULL	/* "ackproof" */

_Static_assert(sizeof(struct tag) == TAG_SECTOR, "a tag fills its sector");

/* A number that follows from the seed and three coordinates. */
static uint64_t draw(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	__le64 key[4] = {
		put_le64(seed), put_le64(a), put_le64(b), put_le64(c)
	};

	return XXH3_64bits(key, sizeof(key));
}

static const char *const mode_names[] = {
	[MODE_OVERWRITE] = "overwrite",
	[MODE_APPEND]	 = "append",
	[MODE_MIXED]	 = "mixed",
};

const char *model_mode_name(enum model_mode mode)
{
	return mode_names[mode];
}

int model_mode_parse(const char *s, enum model_mode *mode)
{
	for (size_t i = 0; i < ARRAY_SIZE(mode_names); i++) {
		if (!strcmp(s, mode_names[i])) {
			*mode = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int check_range(const char *what, uint32_t v, uint32_t max,
		       char *error, size_t size)
{
	if (v >= 1 && v <= max)
		return 0;
	snprintf(error, size, "%s: %u, expected 1 to %u", what, v, max);
	return -EINVAL;
}

/* The operations of one writer; @size[] ends as its files' sizes in blocks. */
static void plan_writer(const struct model_params *p, uint32_t writer,
			struct model_op *op, uint32_t *size)
{
	for (uint32_t n = 0; n < p->ops; n++) {
		uint32_t file = n % p->files;
		bool append = p->mode == MODE_APPEND;

		if (!append && n < p->files) {		/* a file's first */
			op[n] = (struct model_op){ n, 0, p->blocks };
			size[n] = p->blocks;
			continue;
		}
		if (p->mode == MODE_MIXED)
			append = draw(p->seed, writer, n, 1) & 1;
		if (!append)
			file = draw(p->seed, writer, n, 2) % p->files;
		op[n].file = file;
		op[n].nr_blocks = 1;
		if (append)
			op[n].block = size[file]++;
		else
			op[n].block = draw(p->seed, writer, n, 3) % size[file];
	}
}

int model_init(struct model *m, const struct model_params *p,
	       char *error, size_t size)
{
	uint64_t shape, base = 0;

	memset(m, 0, sizeof(*m));
	if (check_range("writers", p->writers, MAX_WRITERS, error, size) ||
	    check_range("fsyncs", p->ops, MAX_OPS, error, size) ||
	    check_range("files", p->files, MAX_FILES, error, size) ||
	    check_range("blocks", p->blocks, MAX_BLOCKS, error, size))
		return -EINVAL;
	if (p->mode != MODE_APPEND && p->ops < p->files) {
		snprintf(error, size,
			 "fsyncs: %u, expected at least one for each of %u files",
			 p->ops, p->files);
		return -EINVAL;
	}
	m->p = *p;
	shape = draw(p->writers, p->ops, p->files, p->blocks);
	m->run = draw(p->seed, shape, p->mode, p->datasync);
	m->op = xcalloc((size_t)p->writers * p->ops, sizeof(*m->op));
	m->file_blocks = xcalloc((size_t)p->writers * p->files,
				 sizeof(*m->file_blocks));
	m->file_base = xcalloc((size_t)p->writers * p->files,
			       sizeof(*m->file_base));
	for (uint32_t w = 0; w < p->writers; w++)
		plan_writer(p, w, m->op + (size_t)w * p->ops,
			    m->file_blocks + (size_t)w * p->files);
	for (uint32_t i = 0; i < p->writers * p->files; i++) {
		m->file_base[i] = base;
		base += m->file_blocks[i];
		if (base > UINT32_MAX) {
			snprintf(error, size, "more than 2^32 blocks in all");
			model_free(m);
			return -EINVAL;
		}
	}
	m->nr_blocks = base;
	return 0;
}

void model_free(struct model *m)
{
	free(m->op);
	free(m->file_blocks);
	free(m->file_base);
	memset(m, 0, sizeof(*m));
}

static uint64_t tag_checksum(const struct tag *t)
{
	uint64_t seed = XXH3_64bits(t, offsetof(struct tag, checksum));

	return XXH3_64bits_withSeed(t->fill, sizeof(t->fill), seed);
}

void tag_block(const struct model *m, uint32_t writer, uint32_t op,
	       uint32_t file, uint32_t block, void *buf)
{
	struct tag *t = buf;

	for (uint32_t s = 0; s < SECTORS_PER_BLOCK; s++, t++) {
		uint64_t fill = draw(m->run, writer, op,
				     (uint64_t)block << 32 | s);

		t->magic = put_le64(TAG_MAGIC);
		t->run = put_le64(m->run);
		t->op = put_le64(op);
		t->writer = put_le32(writer);
		t->file = put_le32(file);
		t->block = put_le32(block);
		t->sector = put_le32(s);
		for (size_t i = 0; i < ARRAY_SIZE(t->fill); i++)
			t->fill[i] = put_le64(fill + i);
		t->checksum = put_le64(tag_checksum(t));
	}
}

enum tag_kind tag_read(const struct model *m, const void *buf,
		       struct tag_id *id)
{
	static const uint8_t zero[TAG_SECTOR];
	const struct tag *t = buf;

	if (get_le64(t->magic) != TAG_MAGIC)
		return memcmp(t, zero, TAG_SECTOR) ? TAG_FOREIGN : TAG_ZERO;
	if (get_le64(t->run) != m->run || get_le64(t->op) >= m->p.ops)
		return TAG_FOREIGN;
	id->writer = get_le32(t->writer);
	id->file = get_le32(t->file);
	id->block = get_le32(t->block);
	id->sector = get_le32(t->sector);
	id->op = get_le64(t->op);
	if (id->writer >= m->p.writers || id->file >= m->p.files ||
	    id->block >= model_file_blocks(m, id->writer, id->file) ||
	    id->sector >= SECTORS_PER_BLOCK ||
	    get_le64(t->checksum) != tag_checksum(t))
		return TAG_FOREIGN;
	return TAG_OURS;
}

void mark_format(const struct model *m, const struct mark *mark,
		 char text[MARK_TEXT_MAX])
{
	unsigned long long run = m->run;

	switch (mark->kind) {
	case MARK_BEGIN:
		snprintf(text, MARK_TEXT_MAX, "begin:%016llx", run);
		break;
	case MARK_ACK:
		snprintf(text, MARK_TEXT_MAX, "ack:%016llx:%u:%u", run,
			 mark->writer, mark->op);
		break;
	case MARK_END:
		snprintf(text, MARK_TEXT_MAX, "end:%016llx", run);
		break;
	case MARK_OTHER:
		text[0] = '\0';
		break;
	}
}

void mark_parse(const struct model *m, const void *text, uint32_t len,
		struct mark *mark)
{
	char buf[MARK_TEXT_MAX], again[MARK_TEXT_MAX];
	unsigned long long run;

	mark->kind = MARK_OTHER;
	if (len >= sizeof(buf))
		return;
	memcpy(buf, text, len);
	buf[len] = '\0';
	if (sscanf(buf, "ack:%16llx:%u:%u", &run, &mark->writer,
		   &mark->op) == 3)
		mark->kind = MARK_ACK;
	else if (sscanf(buf, "begin:%16llx", &run) == 1)
		mark->kind = MARK_BEGIN;
	else if (sscanf(buf, "end:%16llx", &run) == 1)
		mark->kind = MARK_END;
	else
		return;
	/* What we would write is the only spelling that counts */
	mark_format(m, mark, again);
	if (run != m->run || strlen(again) != len || memcmp(buf, again, len) ||
	    (mark->kind == MARK_ACK && (mark->writer >= m->p.writers ||
					mark->op >= m->p.ops)))
		mark->kind = MARK_OTHER;
}
