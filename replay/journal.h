/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * XFS's journal as the device sees it: each write of it is a record, a header of
 * one or more 512-byte blocks and then log operations. The format is that of
 * fs/xfs/libxfs/xfs_log_format.h.
 */
#ifndef ACKPROOF_JOURNAL_H
#define ACKPROOF_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal_record {
	uint32_t	cycle, block;	/* its LSN */
	uint32_t	len;		/* bytes behind the headers */
};

/* Is the write of @len bytes at @data a record? One that wraps around the end of
 * the journal is two writes, and only the first is. */
bool journal_record(const uint8_t *data, uint64_t len,
		    struct journal_record *record);

/* Does the record log inode @ino, as far as it is in these bytes? */
bool journal_has_inode(const uint8_t *data, uint64_t len, uint64_t ino);

#endif
