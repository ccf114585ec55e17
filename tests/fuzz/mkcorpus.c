// SPDX-License-Identifier: GPL-2.0-only
/*
 * Make the fuzzer's first inputs, one file each in a folder: small logs that
 * each have something the reader treats in a way of its own.
 *
 * usage: mkcorpus FOLDER
 *
 *   flags-UNIT      an entry of every kind, in sectors of 512, 1024 and 4096
 *   empty           a superblock and nothing else
 *   no-super        zeros where the superblock belongs: is to be salvaged
 *   cut-header      ends within a header; cut-data: within a write's data
 *   counts-fewer    more entries than the superblock counts, up to a FUA one
 *   counts-more     fewer, and zeros behind them
 *   older-log       the entries of a longer log behind, that are not this one's
 *   older-in-data   and where the data of one not counted belongs
 *   end-mark        the target's last mark, and entries that follow it
 *   overflow        sectors and lengths that are past 64 bits, in bytes
 *   past-the-end    a write and a discard across the end of 1 MiB
 *   discards        short, long, empty, over data and over each other
 *   marks           of 0 bytes, 479, 480; the same text twice
 *   too-long-mark   and of 481 bytes, which has no room
 *   dax             data lengths that are not whole sectors
 *   overwrites      writes over parts of others, which undo has to tell apart
 *   padding         bytes behind a header that are not zero
 *   no-entry        a header of zeros
 *   zst-one         flags-512 packed in one frame; zst-many: in frames of 1000
 *   zst-empty       of no bytes; zst-cut: without its end
 *   zst-damaged     a frame that does not unpack, behind what is counted
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../replay/le.h"
#include "../../replay/util.h"
#include "../../replay/zst.h"
#include "../unit/mklog.h"

static const char *folder;
static uint8_t data[8192];

static int create(const char *name)
{
	CLEANUP_FREE char *path = xasprintf("%s/%s", folder, name);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		die(EXIT_CANNOT, "%s: cannot create: %m", path);
	return fd;
}

static void save(struct mklog *l, const char *name)
{
	CLEANUP_CLOSE int fd = create(name);

	if (pwrite_all(fd, l->buf, l->len, 0))
		die(EXIT_CANNOT, "%s: cannot write", name);
	mklog_free(l);
}

static void count(struct mklog *l, uint64_t nr)
{
	((struct lw_disk_super *)l->buf)->nr_entries = put_le64(nr);
}

static void write_at(struct mklog *l, uint64_t flags, uint64_t off, size_t len)
{
	static uint8_t fill;

	memset(data, ++fill, len);
	mklog_write(l, flags, off, data, len);
}

static void mark(struct mklog *l, const char *text)
{
	mklog_text(l, text, strlen(text));
}

static void all_flags(struct mklog *l, uint32_t unit)
{
	mklog_init(l, NULL, unit);
	write_at(l, 0, 0, unit);
	write_at(l, LW_METADATA, unit, unit);
	mklog_flush(l);
	write_at(l, LW_FUA, 2 * unit, unit);
	mark(l, "ack");
	write_at(l, LW_FLUSH | LW_FUA, unit, unit);
	mklog_discard(l, 0, 2 * unit);
	mklog_header(l, 8, 1, LW_DISCARD | LW_METADATA, 0);
	mark(l, LW_END_MARK);
}

static void flags(void)
{
	struct mklog l;

	all_flags(&l, 512);
	save(&l, "flags-512");
	all_flags(&l, 1024);
	save(&l, "flags-1024");
	all_flags(&l, 4096);
	save(&l, "flags-4096");
}

static void ends(void)
{
	struct mklog l;

	mklog_init(&l, NULL, 512);
	save(&l, "empty");

	all_flags(&l, 512);
	memset(l.buf, 0, 512);
	save(&l, "no-super");

	mklog_init(&l, NULL, 512);
	write_at(&l, 0, 0, 512);
	mklog_flush(&l);
	l.len -= 500;
	save(&l, "cut-header");

	mklog_init(&l, NULL, 512);
	mklog_flush(&l);
	write_at(&l, 0, 0, 1024);
	l.len -= 512;
	save(&l, "cut-data");

	all_flags(&l, 512);
	mklog_header(&l, 0, 0, 0, 0);
	count(&l, 20);
	save(&l, "counts-more");
}

static void older(void)
{
	struct mklog l;

	mklog_init(&l, NULL, 512);
	mark(&l, "first");
	write_at(&l, 0, 4096, 512);
	mklog_flush(&l);
	write_at(&l, LW_FUA, 8192, 512);
	count(&l, 1);
	save(&l, "counts-fewer");

	mklog_init(&l, NULL, 512);
	mark(&l, "first");
	write_at(&l, 0, 4096, 512);
	write_at(&l, LW_FUA, 8192, 512);
	mark(&l, "older");
	mklog_flush(&l);
	count(&l, 2);
	save(&l, "older-log");

	mklog_init(&l, NULL, 512);
	mark(&l, "first");
	mklog_header(&l, 16, 3, 0, 0);
	mklog_flush(&l);
	mark(&l, "older");
	mklog_flush(&l);
	count(&l, 1);
	save(&l, "older-in-data");

	mklog_init(&l, NULL, 512);
	write_at(&l, 0, 0, 512);
	mark(&l, LW_END_MARK);
	write_at(&l, 0, 0, 512);
	mark(&l, LW_END_MARK);
	save(&l, "end-mark");
}

static void sizes(void)
{
	struct mklog l;

	mklog_init(&l, NULL, 512);
	mklog_flush(&l);
	mklog_header(&l, UINT64_MAX / 512, 1, LW_DISCARD, 0);
	mklog_header(&l, 1, UINT64_MAX / 512, LW_DISCARD, 0);
	mklog_header(&l, 1ULL << 55, 1, 0, 0);
	save(&l, "overflow");

	mklog_init(&l, NULL, 512);
	write_at(&l, 0, (1 << 20) - 512, 512);
	write_at(&l, 0, (1 << 20) - 512, 1024);
	mklog_discard(&l, (1 << 20) - 1024, 4096);
	save(&l, "past-the-end");

	mklog_init(&l, NULL, 512);
	write_at(&l, 0, 60 << 10, 8192);
	mklog_discard(&l, 62 << 10, 512);
	mklog_discard(&l, 0, 1 << 20);
	write_at(&l, 0, 64 << 10, 1024);
	mklog_header(&l, 128, 0, LW_DISCARD, 0);
	mklog_discard(&l, 63 << 10, 65 << 10);
	save(&l, "discards");

	mklog_init(&l, NULL, 512);
	memset(data, 0x78, 1024);
	mklog_write(&l, 0, 0, data, 1024);
	((struct lw_disk_entry *)(l.buf + 512))->data_len = put_le64(513);
	mklog_write(&l, 0, 512, data, 512);
	((struct lw_disk_entry *)(l.buf + 2048))->data_len = put_le64(1);
	save(&l, "dax");

	mklog_init(&l, NULL, 512);
	write_at(&l, 0, 4096, 4096);
	write_at(&l, 0, 5120, 512);
	write_at(&l, 0, 3584, 1024);
	write_at(&l, 0, 7680, 1024);
	write_at(&l, 0, 4608, 2048);
	mklog_discard(&l, 5120, 1024);
	write_at(&l, LW_FUA, 3584, 5120);
	save(&l, "overwrites");
}

static void headers(void)
{
	struct mklog l;

	memset(data, 'm', 512);
	mklog_init(&l, NULL, 512);
	mklog_text(&l, data, 0);
	mklog_text(&l, data, 479);
	mklog_text(&l, data, 480);
	mklog_text(&l, data, 479);
	save(&l, "marks");

	mklog_init(&l, NULL, 512);
	mklog_header(&l, 0, 0, LW_MARK, 481);
	save(&l, "too-long-mark");

	mklog_init(&l, NULL, 512);
	mklog_flush(&l);
	mark(&l, "text");
	l.buf[l.len - 1] = 1;
	save(&l, "padding");

	mklog_init(&l, NULL, 512);
	mklog_flush(&l);
	mklog_header(&l, 0, 0, 0, 0);
	save(&l, "no-entry");
}

static void pack(const char *name, size_t len, uint32_t frame, int less)
{
	CLEANUP_CLOSE int fd = create(name);
	struct zst_writer w;
	struct mklog l;

	all_flags(&l, 512);
	if (zst_writer_open(&w, fd, 3, frame) ||
	    zst_write(&w, l.buf, len < l.len ? len : l.len) ||
	    zst_writer_finish(&w) || ftruncate(fd, w.off - less))
		die(EXIT_CANNOT, "%s: cannot write", name);
	zst_writer_free(&w);
	mklog_free(&l);
}

/* A frame a sector: damage the one with the data of entry 1. */
static void pack_damaged(void)
{
	CLEANUP_CLOSE int fd = create("zst-damaged");
	struct zst_writer w;
	struct mklog l;
	struct zst z;

	mklog_init(&l, NULL, 512);
	mark(&l, "first");
	write_at(&l, 0, 4096, 512);
	write_at(&l, LW_FUA, 8192, 512);
	mklog_flush(&l);
	count(&l, 1);
	if (zst_writer_open(&w, fd, 3, 512) || zst_write(&w, l.buf, l.len) ||
	    zst_writer_finish(&w) || zst_open(&z, fd) ||
	    pwrite_all(fd, "damaged", 7, z.frame[3].packed_off + 8))
		die(EXIT_CANNOT, "zst-damaged: cannot write");
	zst_close(&z);
	zst_writer_free(&w);
	mklog_free(&l);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die(EXIT_USAGE, "expected a folder");
	folder = argv[1];
	flags();
	ends();
	older();
	sizes();
	headers();
	pack("zst-one", SIZE_MAX, 1 << 20, 0);
	pack("zst-many", SIZE_MAX, 1000, 0);
	pack("zst-empty", 0, 1000, 0);
	pack("zst-cut", SIZE_MAX, 1000, 5);
	pack_damaged();
	return EXIT_OK;
}
