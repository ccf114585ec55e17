// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/journal.c: hand-made records of XFS's journal, in which an inode is
 * found through the cycle numbers that are in the place of each block's first word;
 * and what is not a record, or not an inode, is none.
 */

#define _GNU_SOURCE
#include <stdlib.h>

#include "../../replay/journal.h"
#include "../../replay/util.h"
#include "tap.h"

enum { MAX = 80 * 1024, CYCLE = 5, BLOCK_NR = 77, INODE = 131 };

static uint8_t rec[MAX];
static size_t headers, len;	/* bytes */

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = v >> (24 - 8 * i);
}

static void start(uint32_t iclog_size)
{
	memset(rec, 0, sizeof(rec));
	put32(rec, 0xfeedbabe);
	put32(rec + 8, 2);
	put32(rec + 16, CYCLE);
	put32(rec + 20, BLOCK_NR);
	put32(rec + 320, iclog_size);
	headers = 512 * ((iclog_size + 32767) / 32768 ?: 1);
	len = headers;
}

static void op(uint8_t client, uint8_t flags, const void *data, uint32_t n)
{
	put32(rec + len, 0x1234);
	put32(rec + len + 4, n);
	rec[len + 8] = client;
	rec[len + 9] = flags;
	len += 12;
	if (data)
		memcpy(rec + len, data, n);
	len += n;
}

static void inode(uint8_t flags, uint32_t n, uint64_t ino)
{
	uint8_t item[64] = { 0x3b, 0x12, 2 };

	for (int i = 0; i < 8; i++)
		item[16 + i] = ino >> (8 * i);
	op(0x69, flags, item, n);
}

/* Put the cycle in each block's first word, and that into the headers. */
static void finish(void)
{
	put32(rec + 12, len - headers);
	for (size_t i = 0; headers + i * 512 < len; i++) {
		uint8_t *word = rec + headers + i * 512;
		size_t h = i / 64;

		memcpy(rec + h * 512 + (h ? 4 : 44) + i % 64 * 4, word, 4);
		put32(word, CYCLE);
	}
	len = (len + 511) / 512 * 512;
}

static void found(uint64_t bytes, bool want, const char *what)
{
	struct journal_record r;

	ok(journal_record(rec, bytes, &r) && r.cycle == CYCLE &&
	   r.block == BLOCK_NR, "%s: a record", what);
	ok(journal_has_inode(rec, bytes, INODE) == want, "%s: inode 131 is%s there",
	   what, want ? "" : " not");
	ok(!journal_has_inode(rec, bytes, INODE + 1), "%s: inode 132 is not there",
	   what);
}

int main(void)
{
	struct journal_record r;
	size_t at;

	start(32768);
	op(0x69, 1, NULL, 0);
	op(0x69, 0, "TRANxxxxxxxxxxxx", 16);
	inode(0, 56, INODE);
	op(0x69, 2, NULL, 0);
	finish();
	found(len, true, "the first of a record");
	ok(!journal_record(rec, 512, &r), "a header alone is no record");
	rec[0] ^= 1;
	ok(!journal_record(rec, len, &r), "other data are no record");

	/* an item's type is a block's first word */
	start(32768);
	op(0x69, 0, NULL, 512 - 2 * 12);
	ok_int(len + 12 - headers, 512, "an inode that begins with a block");
	inode(0, 56, INODE);
	finish();
	found(len, true, "at a block's start");
	start(32768);
	op(0x69, 0, NULL, 512 - 2 * 12 - 20);
	at = len + 12 + 16;
	inode(0, 56, INODE);
	finish();
	ok_int((at - headers) % 512, 508, "an inode across two blocks");
	found(len, true, "across two blocks");

	start(65536);
	op(0x69, 0, NULL, 78 * 512 - 2 * 12);
	inode(0, 56, INODE);
	finish();
	found(len, true, "behind two headers");
	found(40000, false, "cut before it");

	start(32768);
	inode(8, 56, INODE);
	finish();
	found(len, false, "the rest of another item");
	start(32768);
	inode(0, 64, INODE);
	finish();
	found(len, false, "an item of another length");
	start(32768);
	op(0x69, 0, NULL, 16);
	op(0, 0, NULL, 0);
	inode(0, 56, INODE);
	finish();
	found(len, false, "behind the padding");
	return tap_end();
}
