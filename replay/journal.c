// SPDX-License-Identifier: GPL-2.0-only
/* Records of XFS's journal; see journal.h. */

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "journal.h"
#include "util.h"

/* As in fs/xfs/libxfs/xfs_log_format.h; big-endian but for the log items */
enum {
	XLOG_HEADER_MAGIC	= 0xfeedbabe,
	XLOG_VERSION_2		= 2,
	BLOCK			= 512,
	CYCLES_PER_HEADER	= 64,

	/* byte offsets in the header */
	H_VERSION		= 8,
	H_LEN			= 12,
	H_LSN			= 16,
	H_CYCLE_DATA		= 44,
	H_SIZE			= 320,
	XH_CYCLE_DATA		= 4,	/* and in those that may follow it */

	OP_HEADER		= 12,
	OP_LEN			= 4,
	OP_CLIENT		= 8,
	OP_FLAGS		= 9,
	XFS_TRANSACTION		= 0x69,
	XFS_LOG			= 0xaa,
	XLOG_WAS_CONT_TRANS	= 0x08,

	XFS_LI_INODE		= 0x123b,
	INODE_LOG_FORMAT	= 56,
	ILF_INO			= 16,
};

static uint32_t be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

bool journal_record(const uint8_t *data, uint64_t len,
		    struct journal_record *record)
{
	if (len < 2 * BLOCK || be32(data) != XLOG_HEADER_MAGIC)
		return false;
	record->cycle = be32(data + H_LSN);
	record->block = be32(data + H_LSN + 4);
	record->len = be32(data + H_LEN);
	return true;
}

/* Blocks of headers: one for each 32 KiB that an iclog can hold */
static uint64_t header_blocks(const uint8_t *data)
{
	uint32_t bytes = CYCLES_PER_HEADER * BLOCK, size = be32(data + H_SIZE);

	if (!(be32(data + H_VERSION) & XLOG_VERSION_2) || size <= bytes)
		return 1;
	return ((uint64_t)size + bytes - 1) / bytes;
}

/*
 * The operations, with the first word of each block put back: the record has the
 * cycle number there, so that recovery sees which blocks have been written.
 */
static uint8_t *unpack(const uint8_t *data, uint64_t len, uint64_t *size)
{
	uint64_t headers = header_blocks(data), n = be32(data + H_LEN);
	uint8_t *ops;

	if (len <= headers * BLOCK)
		return NULL;
	if (n > len - headers * BLOCK)
		n = len - headers * BLOCK;
	ops = xcalloc(n + 4, 1);
	memcpy(ops, data + headers * BLOCK, n);
	for (uint64_t i = 0; i * BLOCK < n; i++) {
		uint64_t h = i / CYCLES_PER_HEADER, word = i % CYCLES_PER_HEADER;

		if (h >= headers)
			break;
		memcpy(ops + i * BLOCK, data + h * BLOCK +
		       (h ? XH_CYCLE_DATA : H_CYCLE_DATA) + 4 * word, 4);
	}
	*size = n;
	return ops;
}

static bool is_inode(const uint8_t *item, uint64_t ino)
{
	uint64_t v;

	memcpy(&v, item + ILF_INO, sizeof(v));
	return (item[0] | item[1] << 8) == XFS_LI_INODE && le64toh(v) == ino;
}

bool journal_has_inode(const uint8_t *data, uint64_t len, uint64_t ino)
{
	CLEANUP_FREE uint8_t *ops = NULL;
	uint64_t size, at = 0;

	ops = unpack(data, len, &size);
	while (ops && size - at >= OP_HEADER) {
		const uint8_t *op = ops + at;
		uint64_t n = be32(op + OP_LEN);

		if (op[OP_CLIENT] != XFS_TRANSACTION && op[OP_CLIENT] != XFS_LOG)
			break;		/* padding */
		at += OP_HEADER;
		if (n > size - at)
			break;		/* the rest is another write's */
		if (n == INODE_LOG_FORMAT &&
		    !(op[OP_FLAGS] & XLOG_WAS_CONT_TRANS) &&
		    is_inode(ops + at, ino))
			return true;
		at += n;
	}
	return false;
}
