/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reader of dm-log-writes logs. The format is that of the kernel's
 * drivers/md/dm-log-writes.c (struct log_write_super, log_write_entry):
 * one sector of superblock, then per entry one sector of header followed by
 * nr_sectors of data, which a discard does not have. A mark's text is in its
 * header sector.
 */
#ifndef ACKPROOF_LOG_H
#define ACKPROOF_LOG_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#define LW_MAGIC	0x6a736677736872ULL
#define LW_VERSION	1ULL

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

/* An open log: mapped whole, read-only. */
struct lw_log {
	char		*path;
	const uint8_t	*map;
	uint64_t	size;		/* of the log file or device, in bytes */
	uint32_t	sectorsize;	/* the log's unit, in bytes */
	uint64_t	nr_entries;	/* what the superblock counts */
	uint64_t	next;		/* number of the entry lw_next() reads */
	uint64_t	next_off;	/* and its header's byte offset */
	uint64_t	populated;	/* bytes that are mapped in already */
	char		error[512];	/* why the last call failed */
};

/* One entry, in bytes whatever the log's sector size. */
struct lw_entry {
	uint64_t	nr;		/* 0 is the first */
	uint64_t	header_off;	/* byte offset of its header in the log */
	uint64_t	off;		/* byte offset on the device */
	uint64_t	len;		/* bytes written or discarded */
	uint64_t	flags;
	const uint8_t	*data;		/* the payload, or a mark's text */
	uint32_t	mark_len;	/* of a mark's text, not terminated */
};

/*
 * Open @path, a file or a block device. Returns 0, or -errno with log->error
 * set: -EINVAL where the contents are not a log that can be read. The caller
 * owns @log and ends it with lw_close(), also after a failure.
 */
int lw_open(struct lw_log *log, const char *path);
void lw_close(struct lw_log *log);

/* Go back to the first entry. */
void lw_rewind(struct lw_log *log);

/*
 * Read the next entry. Returns 1 with *@e filled in (its pointers live as long
 * as the log), 0 after the last, or -EINVAL with log->error naming the file,
 * the entry, the byte offset and what was expected there.
 */
int lw_next(struct lw_log *log, struct lw_entry *e);

/* True for an entry that changes the device: a write with data or a discard */
static inline bool lw_changes_device(const struct lw_entry *e)
{
	return e->len && !(e->flags & LW_MARK);
}

#endif
