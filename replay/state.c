// SPDX-License-Identifier: GPL-2.0-only
/* Building states; see state.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"
#include "util.h"

/* Zeros are written only to regions that something was written to before. */
#define REGION	(64ULL << 10)

__attribute__((format(printf, 3, 4)))
static int fail(struct state *s, int ret, const char *fmt, ...)
{
	int n = snprintf(s->error, sizeof(s->error), "%s: ", s->path);
	va_list ap;

	if (n < 0 || (size_t)n >= sizeof(s->error))
		n = 0;
	va_start(ap, fmt);
	vsnprintf(s->error + n, sizeof(s->error) - n, fmt, ap);
	va_end(ap);
	return ret;
}

int state_open(struct state *s, struct lw_log *log, const char *path)
{
	struct stat st;
	off_t size;

	memset(s, 0, sizeof(*s));
	s->log = log;
	s->path = xstrdup(path);
	s->fd = open(path, O_RDWR | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return fail(s, -errno, "cannot open for writing: %m");
	size = lseek(s->fd, 0, SEEK_END);
	if (size < 0)
		return fail(s, -errno, "cannot tell its size: %m");
	s->size = size;
	s->is_block = S_ISBLK(st.st_mode);
	s->touched = xcalloc(size / REGION + 1, 1);
	lw_rewind(log);
	return 0;
}

void state_close(struct state *s)
{
	cleanup_close(&s->fd);
	free(s->path);
	free(s->touched);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

static int write_zeros(struct state *s, uint64_t off, uint64_t len)
{
	static const char zeros[1 << 16];

	while (len) {
		size_t n = len < sizeof(zeros) ? len : sizeof(zeros);
		int ret = pwrite_all(s->fd, zeros, n, off);

		if (ret)
			return ret;
		off += n;
		len -= n;
	}
	return 0;
}

/*
 * What a discard leaves is undefined; zeros make it the same everywhere. Both
 * calls below promise zeros, unlike a discard of the target.
 */
static int zero_part(struct state *s, uint64_t off, uint64_t len)
{
	uint64_t range[2] = { off, len };

	if (s->is_block) {
		if (!ioctl(s->fd, BLKZEROOUT, range))
			return 0;
	} else if (!fallocate(s->fd, FALLOC_FL_PUNCH_HOLE |
			      FALLOC_FL_KEEP_SIZE, off, len)) {
		return 0;
	}
	return write_zeros(s, off, len);
}

/* mkfs discards the whole device, and all of that reads as zeros already. */
static int zero_range(struct state *s, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;
	int ret = 0;

	while (off < end && !ret) {
		uint64_t next = (off / REGION + 1) * REGION;

		if (next > end)
			next = end;
		if (s->touched[off / REGION])
			ret = zero_part(s, off, next - off);
		off = next;
	}
	return ret;
}

static int write_data(struct state *s, const void *data, uint64_t off,
		      uint64_t len)
{
	memset(s->touched + off / REGION, 1,
	       (off + len - 1) / REGION - off / REGION + 1);
	return pwrite_all(s->fd, data, len, off);
}

static int apply(struct state *s, const struct lw_entry *e)
{
	int ret;

	if (!e->len)
		return 0;
	if (e->off > s->size || e->len > s->size - e->off)
		return fail(s, -EINVAL,
			    "%s: entry %llu at byte %llu writes bytes %llu to %llu, expected within the target's %llu",
			    s->log->path, (unsigned long long)e->nr,
			    (unsigned long long)e->header_off,
			    (unsigned long long)e->off,
			    (unsigned long long)(e->off + e->len),
			    (unsigned long long)s->size);
	if (e->flags & LW_DISCARD)
		ret = zero_range(s, e->off, e->len);
	else
		ret = write_data(s, e->data, e->off, e->len);
	if (ret) {
		errno = -ret;
		return fail(s, ret,
			    "cannot write entry %llu, %llu bytes at %llu: %m",
			    (unsigned long long)e->nr,
			    (unsigned long long)e->len,
			    (unsigned long long)e->off);
	}
	return 0;
}

int state_advance(struct state *s, uint64_t point,
		  void (*seen)(const struct lw_entry *e, void *arg), void *arg)
{
	struct lw_log *log = s->log;
	struct lw_entry e;
	int ret;

	if (s->fault)
		return s->fault;	/* its message still stands */
	if (point >= log->nr_entries)
		return fail(s, -EINVAL,
			    "%s: no entry %llu, the log has %llu",
			    log->path, (unsigned long long)point,
			    (unsigned long long)log->nr_entries);
	if (point + 1 < log->next)
		return fail(s, -EINVAL,
			    "already past entry %llu", (unsigned long long)point);
	while (log->next <= point) {
		ret = lw_next(log, &e);
		if (ret < 0)
			return s->fault = fail(s, ret, "%s", log->error);
		if (seen)
			seen(&e, arg);
		s->fault = apply(s, &e);
		if (s->fault)
			return s->fault;
	}
	if (fdatasync(s->fd))
		return s->fault = fail(s, -errno, "cannot sync: %m");
	return 0;
}
