// SPDX-License-Identifier: GPL-2.0-only
/* Synthetic logs for the unit tests; see mklog.h. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../replay/le.h"
#include "../../replay/util.h"
#include "mklog.h"

static char scratch_dir[256];

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_scratch(void)
{
	remove_tree(scratch_dir);
}

const char *scratch(void)
{
	const char *tmp = getenv("TMPDIR");

	if (*scratch_dir)
		return scratch_dir;
	snprintf(scratch_dir, sizeof(scratch_dir), "%s/ackproof.XXXXXX",
		 tmp ? tmp : "/tmp");
	if (!mkdtemp(scratch_dir))
		die(EXIT_CANNOT, "%s: cannot create: %m", scratch_dir);
	atexit(remove_scratch);
	return scratch_dir;
}

static void *append(struct mklog *l, const void *data, size_t len)
{
	void *p;

	if (l->max - l->len < len) {
		l->max = 2 * (l->max + len);
		l->buf = xrealloc(l->buf, l->max, 1);
	}
	p = l->buf + l->len;
	if (data)
		memcpy(p, data, len);
	else
		memset(p, 0, len);
	l->len += len;
	return p;
}

void mklog_init(struct mklog *l, const struct model *m, uint32_t sectorsize)
{
	struct lw_disk_super *super;

	memset(l, 0, sizeof(*l));
	l->m = m;
	l->sectorsize = sectorsize;
	l->path = xasprintf("%s/log", scratch());
	super = append(l, NULL, sectorsize);
	super->magic = put_le64(LW_MAGIC);
	super->version = put_le64(LW_VERSION);
	super->sectorsize = put_le32(sectorsize);
}

void mklog_free(struct mklog *l)
{
	free(l->buf);
	free(l->path);
	memset(l, 0, sizeof(*l));
}

uint64_t mklog_header(struct mklog *l, uint64_t sector, uint64_t nr_sectors,
		      uint64_t flags, uint64_t data_len)
{
	struct lw_disk_entry *e = append(l, NULL, l->sectorsize);

	e->sector = put_le64(sector);
	e->nr_sectors = put_le64(nr_sectors);
	e->flags = put_le64(flags);
	e->data_len = put_le64(data_len);
	((struct lw_disk_super *)l->buf)->nr_entries = put_le64(l->nr + 1);
	return l->nr++;
}

void mklog_raw(struct mklog *l, const void *data, size_t len)
{
	append(l, data, len);
}

void mklog_count(struct mklog *l, uint64_t nr)
{
	((struct lw_disk_super *)l->buf)->nr_entries = put_le64(nr);
}

uint64_t mklog_write(struct mklog *l, uint64_t flags, uint64_t off,
		     const void *data, size_t len)
{
	uint64_t nr = mklog_header(l, off / l->sectorsize,
				   len / l->sectorsize, flags, 0);

	append(l, data, len);
	return nr;
}

uint64_t mklog_discard(struct mklog *l, uint64_t off, uint64_t len)
{
	return mklog_header(l, off / l->sectorsize, len / l->sectorsize,
			    LW_DISCARD, 0);
}

uint64_t mklog_flush(struct mklog *l)
{
	return mklog_header(l, 0, 0, LW_FLUSH, 0);
}

uint64_t mklog_text(struct mklog *l, const void *text, size_t len)
{
	uint64_t nr = mklog_header(l, 0, 0, LW_MARK, len);

	memcpy(l->buf + l->len - l->sectorsize + sizeof(struct lw_disk_entry),
	       text, len);
	return nr;
}

uint64_t mklog_mark(struct mklog *l, enum mark_kind kind, uint32_t writer,
		    uint32_t op)
{
	struct mark mark = { kind, writer, op };
	char text[MARK_TEXT_MAX];

	mark_format(l->m, &mark, text);
	return mklog_text(l, text, strlen(text));
}

uint64_t mklog_part(struct mklog *l, uint64_t off, uint32_t writer,
		    uint32_t op, uint32_t file, uint32_t block,
		    uint32_t first, uint32_t n)
{
	struct tag tags[SECTORS_PER_BLOCK];

	tag_block(l->m, writer, op, file, block, tags);
	return mklog_write(l, 0, off + first * TAG_SECTOR, tags + first,
			   n * TAG_SECTOR);
}

uint64_t mklog_block(struct mklog *l, uint64_t off, uint32_t writer,
		     uint32_t op, uint32_t file, uint32_t block)
{
	return mklog_part(l, off, writer, op, file, block, 0,
			  SECTORS_PER_BLOCK);
}

static void save_capture(const struct model_params *p)
{
	CLEANUP_FREE char *path = xasprintf("%s/capture.json", scratch());
	FILE *f = fopen(path, "w");

	if (!f)
		die(EXIT_CANNOT, "%s: cannot create: %m", path);
	fprintf(f, "{\"format\": 1, \"state\": \"complete\", \"data_size\": 1048576, \"mount_options\": \"\",\n"
		"\"workload\": {\"mode\": \"%s\", \"sync\": \"%s\", \"seed\": %llu, \"writers\": %u, \"fsyncs\": %u, \"files\": %u, \"blocks\": %u}}\n",
		model_mode_name(p->mode), p->datasync ? "fdatasync" : "fsync",
		(unsigned long long)p->seed, p->writers, p->ops, p->files,
		p->blocks);
	if (fclose(f))
		die(EXIT_CANNOT, "%s: cannot write: %m", path);
}

void mklog_save(struct mklog *l)
{
	CLEANUP_CLOSE int fd = -1;

	fd = open(l->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || pwrite_all(fd, l->buf, l->len, 0))
		die(EXIT_CANNOT, "%s: cannot write: %m", l->path);
	if (l->m)
		save_capture(&l->m->p);
}
