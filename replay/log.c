// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading dm-log-writes logs: every number that comes from the log is checked
 * against the log's size before it is used.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "le.h"
#include "log.h"
#include "util.h"

__attribute__((format(printf, 3, 4)))
static int fail(struct lw_log *log, int ret, const char *fmt, ...)
{
	int n = snprintf(log->error, sizeof(log->error), "%s: ", log->path);
	va_list ap;

	if (n < 0 || (size_t)n >= sizeof(log->error))
		n = 0;
	va_start(ap, fmt);
	vsnprintf(log->error + n, sizeof(log->error) - n, fmt, ap);
	va_end(ap);
	return ret;
}

int lw_open(struct lw_log *log, const char *path)
{
	const struct lw_disk_super *super;
	CLEANUP_CLOSE int fd = -1;
	uint32_t sectorsize;
	struct stat st;
	off_t size;
	void *map;

	memset(log, 0, sizeof(*log));
	log->path = xstrdup(path);

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(log, -errno, "cannot open the log: %m");
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return fail(log, -EINVAL,
			    "neither a file nor a block device");
	size = lseek(fd, 0, SEEK_END);	/* st_size is 0 on block devices */
	if (size < 0)
		return fail(log, -errno, "cannot tell its size: %m");
	if (size < 512)
		return fail(log, -EINVAL,
			    "not a dm-log-writes log: %lld bytes, expected a superblock of at least 512 at byte 0",
			    (long long)size);
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return fail(log, -errno, "cannot map the log: %m");
	madvise(map, size, MADV_SEQUENTIAL);
	log->map = map;
	log->size = size;

	super = map;
	if (get_le64(super->magic) != LW_MAGIC)
		return fail(log, -EINVAL,
			    "not a dm-log-writes log: magic 0x%llx at byte 0, expected 0x%llx",
			    (unsigned long long)get_le64(super->magic),
			    LW_MAGIC);
	if (get_le64(super->version) != LW_VERSION)
		return fail(log, -EINVAL,
			    "log version %llu at byte 8, expected %llu",
			    (unsigned long long)get_le64(super->version),
			    LW_VERSION);
	sectorsize = get_le32(super->sectorsize);
	if (sectorsize < 512 || sectorsize > 4096 ||
	    (sectorsize & (sectorsize - 1)))
		return fail(log, -EINVAL,
			    "sector size %u at byte 24, expected 512 to 4096",
			    sectorsize);
	log->sectorsize = sectorsize;
	log->nr_entries = get_le64(super->nr_entries);
	lw_rewind(log);
	return 0;
}

void lw_close(struct lw_log *log)
{
	if (log->map)
		munmap((void *)log->map, log->size);
	free(log->path);
	memset(log, 0, sizeof(*log));
}

void lw_rewind(struct lw_log *log)
{
	log->next = 0;
	log->next_off = log->sectorsize;
}

/*
 * Map the pages that come next in one go: a fault for each costs more than all
 * the rest where the kernel runs as a process. It is only advice, so a kernel
 * that cannot do it is as good.
 */
static void populate(struct lw_log *log, uint64_t until)
{
	const uint64_t window = 4 << 20;
	uint64_t len;

	if (until <= log->populated)
		return;
	len = until - log->populated;
	len = (len + window - 1) / window * window;
	if (len > log->size - log->populated)
		len = log->size - log->populated;
	madvise((void *)(log->map + log->populated), len, MADV_POPULATE_READ);
	log->populated += len;
}

int lw_next(struct lw_log *log, struct lw_entry *e)
{
	uint64_t nr_sectors, left, off = log->next_off;
	const struct lw_disk_entry *d;

	if (log->next >= log->nr_entries)
		return 0;
	if (off > log->size || log->size - off < log->sectorsize)
		return fail(log, -EINVAL,
			    "truncated: entry %llu of %llu at byte %llu, expected a header of %u bytes before the log's end at %llu",
			    (unsigned long long)log->next,
			    (unsigned long long)log->nr_entries,
			    (unsigned long long)off, log->sectorsize,
			    (unsigned long long)log->size);
	populate(log, off + log->sectorsize);
	d = (const void *)(log->map + off);
	nr_sectors = get_le64(d->nr_sectors);
	e->nr = log->next;
	e->header_off = off;
	e->flags = get_le64(d->flags);
	e->mark_len = 0;

	if (e->flags & ~(uint64_t)LW_KNOWN_FLAGS)
		return fail(log, -EINVAL,
			    "entry %llu at byte %llu: unknown flags 0x%llx, expected none beyond 0x%x",
			    (unsigned long long)e->nr, (unsigned long long)off,
			    (unsigned long long)e->flags, LW_KNOWN_FLAGS);
	/* An all-zero header is no entry: the kernel never logs an empty one */
	if (!e->flags && !nr_sectors)
		return fail(log, -EINVAL,
			    "entry %llu at byte %llu: neither data nor flags, expected an entry",
			    (unsigned long long)e->nr, (unsigned long long)off);
	if (get_le64(d->sector) > UINT64_MAX / log->sectorsize ||
	    nr_sectors > UINT64_MAX / log->sectorsize - get_le64(d->sector))
		return fail(log, -EINVAL,
			    "entry %llu at byte %llu: sector %llu + %llu overflows",
			    (unsigned long long)e->nr, (unsigned long long)off,
			    (unsigned long long)get_le64(d->sector),
			    (unsigned long long)nr_sectors);
	e->off = get_le64(d->sector) * log->sectorsize;
	e->len = nr_sectors * log->sectorsize;

	off += log->sectorsize;
	left = log->size - off;
	e->data = log->map + off;
	if (e->flags & LW_MARK) {
		uint64_t len = get_le64(d->data_len);

		if (len > log->sectorsize - sizeof(*d))
			return fail(log, -EINVAL,
				    "entry %llu at byte %llu: a mark of %llu bytes, expected at most %zu",
				    (unsigned long long)e->nr,
				    (unsigned long long)e->header_off,
				    (unsigned long long)len,
				    log->sectorsize - sizeof(*d));
		e->mark_len = len;
		e->data = (const uint8_t *)(d + 1);
	}
	if (!(e->flags & LW_DISCARD)) {
		if (e->len > left)
			return fail(log, -EINVAL,
				    "truncated: entry %llu at byte %llu has %llu bytes of data, expected them before the log's end at %llu",
				    (unsigned long long)e->nr,
				    (unsigned long long)e->header_off,
				    (unsigned long long)e->len,
				    (unsigned long long)log->size);
		off += e->len;
		populate(log, off);
	}
	log->next++;
	log->next_off = off;
	return 1;
}
