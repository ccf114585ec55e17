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
#include <sys/sysmacros.h>
#include <unistd.h>

#include "state.h"
#include "util.h"

/* Zeros are written only to regions that something was written to before. */
#define REGION	(64ULL << 10)

#define LL(x)	((unsigned long long)(x))

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

int state_open(struct state *s, struct lw_log *log, struct lw_index *index,
	       const char *path)
{
	struct stat st;
	off_t size;

	memset(s, 0, sizeof(*s));
	s->log = log;
	s->index = index;
	s->path = xstrdup(path);
	s->until = UINT64_MAX;
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

void state_stands(struct state *s, uint64_t done)
{
	memset(s->touched, 1, s->size / REGION + 1);
	s->done = done;
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
 * calls below promise zeros, unlike a discard of the target. They cost more than
 * to write what is short.
 */
static int zero_part(struct state *s, uint64_t off, uint64_t len)
{
	uint64_t range[2] = { off, len };

	s->zeroed += len;
	if (len < REGION)
		return write_zeros(s, off, len);
	if (s->is_block) {
		if (!ioctl(s->fd, BLKZEROOUT, range))
			return 0;
	} else if (!fallocate(s->fd, FALLOC_FL_PUNCH_HOLE |
			      FALLOC_FL_KEEP_SIZE, off, len)) {
		return 0;
	}
	return write_zeros(s, off, len);
}

/*
 * mkfs discards the whole device, and all of that reads as zeros already: go by
 * runs of regions that were touched.
 */
static int zero_range(struct state *s, uint64_t off, uint64_t len)
{
	const uint64_t end = off + len;

	while (off < end) {
		const bool touched = s->touched[off / REGION];
		uint64_t stop = off;
		int ret;

		while (stop < end && s->touched[stop / REGION] == touched)
			stop = (stop / REGION + 1) * REGION;
		if (stop > end)
			stop = end;
		if (touched) {
			uint64_t first = (off + REGION - 1) / REGION;

			ret = zero_part(s, off, stop - off);
			if (ret)
				return ret;
			if (first < stop / REGION)
				memset(s->touched + first, 0,
				       stop / REGION - first);
		}
		off = stop;
	}
	return 0;
}

static int write_data(struct state *s, const void *data, uint64_t off,
		      uint64_t len)
{
	memset(s->touched + off / REGION, 1,
	       (off + len - 1) / REGION - off / REGION + 1);
	s->written += len;
	return pwrite_all(s->fd, data, len, off);
}

/*
 * Bytes [@off, @off + @len) of the device become those of @e, which covers
 * them, or zeros if @e is NULL or a discard.
 */
static int put(struct state *s, const struct lw_entry *e, uint64_t off,
	       uint64_t len)
{
	uint64_t end = off + len < s->until ? off + len : s->until;
	int ret;

	if (off < s->from)
		off = s->from;
	if (off >= end)
		return 0;
	if (end > s->size)
		return fail(s, -EINVAL,
			    "%s: entry %llu at byte %llu writes bytes %llu to %llu, expected within the target's %llu",
			    s->log->path, LL(e ? e->nr : 0),
			    LL(e ? e->header_off : 0), LL(off), LL(end),
			    LL(s->size));
	if (e && !(e->flags & LW_DISCARD))
		ret = write_data(s, e->data + (off - e->off), off, end - off);
	else
		ret = zero_range(s, off, end - off);
	if (ret) {
		errno = -ret;
		return fail(s, ret,
			    "cannot write %llu bytes at %llu, of entry %llu: %m",
			    LL(end - off), LL(off), LL(e ? e->nr : 0));
	}
	return 0;
}

static int digest_fault(struct state *s, int ret)
{
	return ret ? fail(s, ret, "%s", s->index->error) : 0;
}

static int forwards(struct state *s, uint64_t done, state_seen *seen,
		    void *arg)
{
	struct lw_log *log = s->log;
	struct lw_entry e;
	int ret;

	while (s->done < done) {
		/* the way back and the digest look at other entries */
		if (log->next != s->done)
			lw_seek(log, s->done,
				s->index->entry[s->done].header_off);
		ret = lw_next(log, &e);
		if (ret < 0)
			return fail(s, ret, "%s", log->error);
		if (!ret)
			return fail(s, -EINVAL,
				    "%s: no entry %llu, the log has %llu",
				    log->path, LL(done - 1),
				    LL(log->nr_entries));
		if (seen)
			seen(&e, arg);
		if (e.len && !(s->no_discard && e.flags & LW_DISCARD)) {
			ret = put(s, &e, e.off, e.len);
			if (ret)
				return ret;
		}
		if (s->with_digest && e.len) {
			ret = digest_add(&s->digest, s->index, log, s->done,
					 s->from, s->until);
			if (ret)
				return digest_fault(s, ret);
		}
		s->done++;
	}
	return 0;
}

static int restore(struct state *s, const struct lw_undo *u)
{
	struct lw_entry e;
	int ret;

	if (u->prev == LW_NONE)
		return put(s, NULL, u->off, u->len);
	ret = lw_index_read(s->index, s->log, u->prev, &e);
	if (ret < 0)
		return fail(s, ret, "%s", s->index->error);
	return put(s, &e, u->off, u->len);
}

/*
 * Of the entries that are taken back, the first to write a sector went over
 * what it held at the new point.
 */
static int backwards(struct state *s, uint64_t done)
{
	const struct lw_index *idx = s->index;
	int ret;

	for (uint64_t i = idx->undo_first[done];
	     i < idx->undo_first[s->done]; i++) {
		const struct lw_undo *u = &idx->undo[i];

		if (u->prev != LW_NONE && u->prev >= done)
			continue;
		ret = restore(s, u);
		if (ret)
			return ret;
	}
	for (uint64_t nr = done; s->with_digest && nr < s->done; nr++) {
		ret = digest_remove(&s->digest, s->index, s->log, nr, s->from,
				    s->until);
		if (ret)
			return digest_fault(s, ret);
	}
	s->done = done;
	return 0;
}

int state_move(struct state *s, uint64_t done, state_seen *seen, void *arg)
{
	if (s->fault)
		return s->fault;	/* its message still stands */
	if (done > (s->index ? s->index->nr : s->log->nr_entries))
		return fail(s, -EINVAL, "%s: no entry %llu, the log has %llu",
			    s->log->path, LL(done - 1), LL(s->log->nr_entries));
	if (done < s->done && !(s->index && s->index->undo_first))
		return fail(s, -EINVAL, "already past entry %llu",
			    LL(done) - 1);
	if (done < s->done)
		s->fault = backwards(s, done);
	else
		s->fault = forwards(s, done, seen, arg);
	return s->fault;
}

int state_sync(struct state *s)
{
	if (!s->fault && fdatasync(s->fd))
		s->fault = fail(s, -errno, "cannot sync: %m");
	return s->fault;
}

int state_wipe(struct state *s)
{
	int ret;

	if (s->fault)
		return s->fault;
	state_stands(s, 0);
	ret = zero_range(s, 0, s->size);
	if (ret) {
		errno = -ret;
		s->fault = fail(s, ret, "cannot make it all zeros: %m");
	}
	return s->fault;
}

uint64_t state_stamp(const struct state *s)
{
	unsigned long long sectors = 0;
	char path[64];
	struct stat st;
	FILE *f;

	if (fstat(s->fd, &st))
		return 0;
	if (!s->is_block)
		return st.st_ctim.tv_sec * 1000000000ULL + st.st_ctim.tv_nsec;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat",
		 major(st.st_rdev), minor(st.st_rdev));
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* reads: I/Os, merges, sectors, ms; then the same of writes */
	if (fscanf(f, "%*u %*u %*u %*u %*u %*u %llu", &sectors) != 1)
		sectors = 0;
	fclose(f);
	return sectors;
}
