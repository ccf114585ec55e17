/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reader of dm-log-writes logs. The format is that of the kernel's
 * drivers/md/dm-log-writes.c (struct log_write_super, log_write_entry):
 * one sector of superblock, then per entry one sector of header followed by
 * nr_sectors of data, which a discard does not have. A mark's text is in its
 * header sector. ackproof-log(5) tells what the reader accepts, and where it
 * sees the end of a log.
 */
#ifndef ACKPROOF_LOG_H
#define ACKPROOF_LOG_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "source.h"

#define LW_MAGIC	0x6a736677736872ULL
#define LW_VERSION	1ULL

/* The mark that the target leaves when it is removed: nothing follows it. */
#define LW_END_MARK	"dm-log-writes-end"

enum {
	LW_FLUSH	= 1 << 0,
	LW_FUA		= 1 << 1,
	LW_DISCARD	= 1 << 2,
	LW_MARK		= 1 << 3,
	LW_METADATA	= 1 << 4,
	LW_KNOWN_FLAGS	= (1 << 5) - 1,
};

struct lw_disk_super {
	__le64	magic;
	__le64	version;
	__le64	nr_entries;
	__le32	sectorsize;
};

struct lw_disk_entry {
	__le64	sector;
	__le64	nr_sectors;
	__le64	flags;
	__le64	data_len;
};

/* How to open a log */
enum {
	LW_SALVAGE	= 1 << 0,	/* a fault is the end; see lw_next() */
	LW_HEADERS	= 1 << 1,	/* no data is looked at but the marks' */
	LW_GROWING	= 1 << 2,	/* only what the superblock counts */
};

/* An open log */
struct lw_log {
	char		*path;
	struct source	src;
	unsigned int	how;
	uint32_t	sectorsize;	/* the log's unit, in bytes */
	uint64_t	counted;	/* entries that the superblock counts */
	uint64_t	nr_entries;	/* and that there are, as far as is
					 * known: final after the last */
	uint64_t	next;		/* number of the entry lw_next() reads */
	uint64_t	next_off;	/* and its header's byte offset */
	void		*header;	/* with LW_HEADERS, the last one */
	bool		no_super;	/* salvaged without one */
	bool		looked;		/* behind what the superblock counts */
	char		error[512];	/* why the last call failed */
	char		note[512];	/* what is odd about the log's end, or
					 * empty: for people, once */
};

/* One entry, in bytes whatever the log's sector size. */
struct lw_entry {
	uint64_t	nr;		/* 0 is the first */
	uint64_t	header_off;	/* byte offset of its header in the log */
	uint64_t	off;		/* byte offset on the device */
	uint64_t	len;		/* bytes written or discarded */
	uint64_t	flags;
	const uint8_t	*data;		/* the payload */
	const char	*mark;		/* a mark's text, not terminated */
	uint32_t	mark_len;
};

/*
 * Open @path: a file, a block device, or a file of zstd in seekable frames; @how
 * is LW_SALVAGE and the like. Returns 0, or -errno with log->error set: -EINVAL
 * where the contents are not a log that can be read; with LW_GROWING, -ENODATA
 * where they may become one, as there is no superblock yet. The caller owns @log
 * and ends it with lw_close(), also after a failure.
 */
int lw_open(struct lw_log *log, const char *path, unsigned int how);
void lw_close(struct lw_log *log);

/* Go back to the first entry, or to number @nr, whose header is at @off. */
void lw_rewind(struct lw_log *log);
void lw_seek(struct lw_log *log, uint64_t nr, uint64_t off);

/* Look again at a log that grows. Returns 0 or as lw_open() does. */
int lw_refresh(struct lw_log *log);

/*
 * Read the next entry. Returns 1 with *@e filled in (its pointers live until
 * the next call or, if the source is not packed, as long as the log), 0 after
 * the last, or -errno with log->error naming the file, the entry, the byte
 * offset and what was expected there.
 *
 * The superblock is written after FUA entries and marks only, and before the
 * next entry (log_super(), in order since 5.3, commit 211ad4b73303). So valid
 * entries behind those that it counts are read, but no further than to the
 * first FUA entry or mark: if more follow, they are an older log's, and so may
 * be those before, and none is read. The first of them whose data cannot be
 * read is not read either. LW_END_MARK ends the log whatever the superblock
 * counts. log->note tells of each such case.
 *
 * With LW_SALVAGE, a fault is the end as well, and log->note tells of it.
 */
int lw_next(struct lw_log *log, struct lw_entry *e);

/* Go to the log's end, so that log->nr_entries and log->note are final. */
int lw_finish(struct lw_log *log);

/*
 * Go to the log's end, and write the XXH128 of its bytes from 0 to there to @hex, as
 * xxhsum -H2 prints it: packed or not, on a larger disk or not, the same log has
 * the same. Returns 0, or -errno with log->error set.
 */
#define LW_HASH_SIZE	33
int lw_hash(struct lw_log *log, char hex[LW_HASH_SIZE]);

/* "FLUSH|FUA", "NONE", or unknown ones as numbers. Returns @buf. */
#define LW_FLAGS_MAX	64
const char *lw_flags(uint64_t flags, char buf[LW_FLAGS_MAX]);

/* Sectors of the log in bytes, or UINT64_MAX where those are too many. */
static inline uint64_t lw_bytes(const struct lw_log *log, uint64_t sectors)
{
	return sectors > UINT64_MAX / log->sectorsize ? UINT64_MAX :
	       sectors * log->sectorsize;
}

static inline bool lw_is_mark(const struct lw_entry *e, const char *text,
			      size_t len)
{
	return e->flags & LW_MARK && e->mark_len == len &&
	       !__builtin_memcmp(e->mark, text, len);
}

#endif
