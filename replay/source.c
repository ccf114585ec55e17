// SPDX-License-Identifier: GPL-2.0-only
/* Where a log's bytes come from; see source.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source.h"
#include "util.h"

#define PAGE		(64ULL << 10)	/* the largest there is */
#define WINDOW_MAX	(4ULL << 20)	/* mapped in at once */
#define AHEAD		(4ULL << 20)	/* read ahead at once */
#define PATTERN		3		/* peeks that go on, until believed */
#ifndef FUZZING
#define NEAR		(32ULL << 10)	/* a header: read on to it */
#define NEAR_MAX	(64ULL << 10)	/* and as much at once */
#define HELD_MAX	(256ULL << 20)	/* of unpacked frames */
#else	/* a small log is to go past them */
#define NEAR		(4ULL << 10)
#define NEAR_MAX	(6ULL << 10)
#define HELD_MAX	(8ULL << 10)
#endif

/*
 * A kernel before 5.14 says EINVAL. It is as good, but a page that cannot be
 * read is a SIGBUS there.
 */
static int populate(const struct source *s, uint64_t off, uint64_t len)
{
	if (madvise((void *)(s->map + off), len, MADV_POPULATE_READ) &&
	    errno != EINVAL)
		return -errno;
	return 0;
}

static int cannot_read(int ret, uint64_t off, uint64_t len, char *error,
		       size_t size)
{
	errno = -ret;
	snprintf(error, size, "cannot read bytes %llu to %llu: %m",
		 (unsigned long long)off, (unsigned long long)(off + len));
	return ret;
}

static int map_file(struct source *s, char *error, size_t size)
{
	off_t end = lseek(s->fd, 0, SEEK_END);	/* st_size is 0 on devices */
	int ret;
	void *map;

	if (end < 0) {
		ret = -errno;
		snprintf(error, size, "cannot tell its size: %m");
		return ret;
	}
	s->size = end;
	s->from = s->until = 0;
	if (!end)
		return 0;
	map = mmap(NULL, end, PROT_READ, MAP_SHARED, s->fd, 0);
	if (map == MAP_FAILED) {
		ret = -errno;
		snprintf(error, size, "cannot map the log: %m");
		return ret;
	}
	madvise(map, end, MADV_SEQUENTIAL);
	s->map = map;
	return 0;
}

/* Room for all that is packed; pages are there where a frame was unpacked. */
static int map_packed(struct source *s, char *error, size_t size)
{
	void *map;
	int ret = zst_open(&s->zst, s->fd);

	s->packed = true;
	s->held_max = HELD_MAX;
	if (ret) {
		snprintf(error, size, "%s", s->zst.error);
		return ret;
	}
	s->size = s->zst.size;
	s->unpacked = xcalloc(s->zst.nr_frames, 1);
	s->held = xcalloc(s->zst.nr_frames, sizeof(*s->held));
	if (!s->size)
		return 0;
	map = mmap(NULL, s->size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) {
		ret = -errno;
		snprintf(error, size, "no room for its %llu unpacked bytes: %m",
			 (unsigned long long)s->size);
		return ret;
	}
	s->map = map;
	return 0;
}

int source_open(struct source *s, const char *path, char *error, size_t size)
{
	struct stat st;
	int ret;

	memset(s, 0, sizeof(*s));
	s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (s->fd < 0 || fstat(s->fd, &st) < 0) {
		ret = -errno;
		snprintf(error, size, "cannot open the log: %m");
		return ret;
	}
	s->is_block = S_ISBLK(st.st_mode);
	if (!S_ISREG(st.st_mode) && !s->is_block) {
		snprintf(error, size, "neither a file nor a block device");
		return -EINVAL;
	}
	if (s->is_block)
		posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
	else if (zst_is(s->fd))
		return map_packed(s, error, size);
	return map_file(s, error, size);
}

void source_close(struct source *s)
{
	if (s->map)
		munmap((void *)s->map, s->size);
	if (s->packed)
		zst_close(&s->zst);
	cleanup_close(&s->fd);
	free(s->unpacked);
	free(s->held);
	free(s->near);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

int source_refresh(struct source *s, char *error, size_t size)
{
	if (s->packed)
		return 0;	/* is written at once, and does not grow */
	if (s->map)
		munmap((void *)s->map, s->size);
	s->map = NULL;
	s->near_from = s->near_until = 0;
	if (s->is_block)
		posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
	return map_file(s, error, size);
}

/* Forget the oldest frames, but none of those from @first to @last. */
static void drop_frames(struct source *s, size_t first, size_t last)
{
	const struct zst *z = &s->zst;
	uint64_t page = sysconf(_SC_PAGESIZE);

	while (s->nr_held && s->held_bytes > s->held_max) {
		size_t i = s->held[s->first_held];
		uint64_t a = z->frame[i].off, b = a + z->frame[i].len;

		if (i >= first && i <= last)
			return;
		/* the frames beside it may share its first and last page */
		a = (a + page - 1) / page * page;
		b = b / page * page;
		if (a < b)
			madvise((void *)(s->map + a), b - a, MADV_DONTNEED);
		s->unpacked[i] = 0;
		s->held_bytes -= z->frame[i].len;
		s->first_held = (s->first_held + 1) % z->nr_frames;
		s->nr_held--;
	}
}

static int unpack(struct source *s, uint64_t off, uint64_t len, char *error,
		  size_t size)
{
	const struct zst *z = &s->zst;
	size_t first = zst_find(z, off), last = zst_find(z, off + len - 1);

	for (size_t i = first; i <= last; i++) {
		int ret;

		if (s->unpacked[i] || !z->frame[i].len)
			continue;
		ret = zst_read_frame(&s->zst, i,
				     (void *)(s->map + z->frame[i].off));
		if (ret) {
			snprintf(error, size, "%s", z->error);
			return ret;
		}
		s->unpacked[i] = 1;
		s->held[(s->first_held + s->nr_held++) % z->nr_frames] = i;
		s->held_bytes += z->frame[i].len;
	}
	drop_frames(s, first, last);
	s->from = z->frame[first].off;
	s->until = z->frame[last].off + z->frame[last].len;
	return 0;
}

/*
 * Map the pages that come next in one go: a fault for each costs more than all
 * the rest where the kernel runs as a process. Who jumps about gets what is
 * asked for, who goes on more each time.
 */
int source_need_more(struct source *s, uint64_t off, uint64_t len, char *error,
		     size_t size)
{
	bool goes_on = off >= s->from && off <= s->until;
	uint64_t start = (goes_on ? s->until : off) / PAGE * PAGE;
	uint64_t n;
	int ret;

	if (!len)
		return 0;
	if (s->packed)
		return unpack(s, off, len, error, size);
	if (!goes_on)
		s->window = PAGE;
	else if (s->window < WINDOW_MAX)
		s->window = s->window ? 2 * s->window : PAGE;
	n = (off + len - start + s->window - 1) / s->window * s->window;
	if (n > s->size - start)
		n = s->size - start;
	ret = populate(s, start, n);
	if (ret) {
		/* what is asked for may well be there */
		n = off + len - start;
		ret = populate(s, start, n);
	}
	if (ret)
		return cannot_read(ret, start, n, error, size);
	if (!goes_on)
		s->from = start;
	s->until = start + n;
	return 0;
}

/* The kernel sees no pattern in headers, so it is told what comes next. */
static void read_ahead(struct source *s, uint64_t off, uint64_t len)
{
	if (off + len <= s->ahead && s->ahead - off <= 2 * AHEAD)
		return;
	s->ahead = (off + len + AHEAD - 1) / AHEAD * AHEAD;
	posix_fadvise(s->fd, s->ahead - AHEAD, 2 * AHEAD, POSIX_FADV_WILLNEED);
	s->ahead += AHEAD;
}

/* Read what is at @off, and more. */
static int read_near(struct source *s, uint64_t off)
{
	uint64_t n = s->size - off < NEAR_MAX ? s->size - off : NEAR_MAX;

	if (!s->near)
		s->near = xrealloc(NULL, NEAR_MAX, 1);
	s->near_from = s->near_until = off;
	if (pread_all(s->fd, s->near, n, off))
		return -EIO;
	s->near_until = off + n;
	return 0;
}

/*
 * A read costs less than to map a page for a header, and where entries are
 * short, less than one for each is to read all of them.
 */
int source_peek(struct source *s, void *buf, uint64_t off, uint64_t len,
		char *error, size_t size)
{
	const uint64_t apart = off - s->peeked;		/* huge if backwards */
	bool goes_on = false;
	int ret;

	if (s->packed) {
		ret = source_need(s, off, len, error, size);
		if (!ret)
			memcpy(buf, s->map + off, len);
		return ret;
	}
	s->peeked = off;
	s->peeks = apart <= AHEAD ? s->peeks + 1 : 0;
	if (s->peeks >= PATTERN) {
		read_ahead(s, off, len);
		goes_on = apart <= NEAR && len <= NEAR_MAX;
	}
	if ((off >= s->near_from && off + len <= s->near_until) ||
	    (goes_on && !read_near(s, off))) {
		memcpy(buf, s->near + (off - s->near_from), len);
		return 0;
	}
	ret = pread_all(s->fd, buf, len, off);
	return ret ? cannot_read(ret, off, len, error, size) : 0;
}
