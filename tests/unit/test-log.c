// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/log.c: every kind of entry reads back as it was logged, and
 * every way in which a log can be damaged is refused with a message that names
 * the file, the entry and the byte.
 */

#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

static struct mklog l;
static uint8_t data[8192];

static struct lw_disk_super *super(void)
{
	return (struct lw_disk_super *)l.buf;
}

static void empty_log(uint32_t sectorsize)
{
	struct lw_log log;
	struct lw_entry e;

	mklog_init(&l, NULL, sectorsize);
	mklog_save(&l);
	ok_int(lw_open(&log, l.path), 0, "%u: an empty log opens", sectorsize);
	ok_int(lw_next(&log, &e), 0, "%u: and has no entries", sectorsize);
	lw_close(&log);
	mklog_free(&l);
}

static void same_entry(struct lw_log *log, uint64_t nr, uint64_t flags,
		       uint64_t header, uint64_t off, uint64_t len,
		       const char *what)
{
	struct lw_entry e;

	ok(lw_next(log, &e) == 1 && e.nr == nr && e.flags == flags &&
	   e.header_off == header && e.off == off && e.len == len &&
	   e.mark_len == 0,
	   "%u: entry %" PRIu64 ", %s", log->sectorsize, nr, what);
	if (!(flags & LW_DISCARD))
		ok(!memcmp(e.data, data, len), "%u: its data", log->sectorsize);
}

static void all_kinds(uint32_t size)
{
	static const char text[] = "a mark";
	uint64_t at = size;
	struct lw_log log;
	struct lw_entry e;

	mklog_init(&l, NULL, size);
	mklog_write(&l, 0, 3 * 4096, data, 8192);
	mklog_flush(&l);
	mklog_write(&l, LW_FUA | LW_METADATA, 0, data, 4096);
	mklog_discard(&l, 4096, 1ULL << 50);
	mklog_write(&l, LW_FLUSH | LW_FUA, 8192, data, 4096);
	mklog_text(&l, text, strlen(text));
	mklog_save(&l);

	ok_int(lw_open(&log, l.path), 0, "%u: opens", size);
	ok_int(log.nr_entries, 6, "%u: number of entries", size);
	same_entry(&log, 0, 0, at, 3 * 4096, 8192, "a write");
	at += size + 8192;
	same_entry(&log, 1, LW_FLUSH, at, 0, 0, "a flush");
	at += size;
	same_entry(&log, 2, LW_FUA | LW_METADATA, at, 0, 4096, "a FUA write");
	at += size + 4096;
	same_entry(&log, 3, LW_DISCARD, at, 4096, 1ULL << 50, "a discard");
	at += size;	/* a discard has no data */
	same_entry(&log, 4, LW_FLUSH | LW_FUA, at, 8192, 4096,
		   "a flush with data");
	at += size + 4096;
	ok_int(lw_next(&log, &e), 1, "%u: entry 5, a mark", size);
	ok(e.flags == LW_MARK && e.header_off == at && e.len == 0 &&
	   e.mark_len == strlen(text) && !memcmp(e.data, text, e.mark_len),
	   "%u: its text", size);
	ok(!lw_changes_device(&e), "%u: it changes nothing", size);
	ok_int(lw_next(&log, &e), 0, "%u: then the log ends", size);
	ok_int(lw_next(&log, &e), 0, "%u: and stays so", size);
	lw_rewind(&log);
	same_entry(&log, 0, 0, size, 3 * 4096, 8192, "a write, again");
	lw_close(&log);
	mklog_free(&l);
}

static void longest_mark(uint32_t size)
{
	uint32_t max = size - sizeof(struct lw_disk_entry);
	struct lw_log log;
	struct lw_entry e;

	mklog_init(&l, NULL, size);
	mklog_text(&l, data, max);
	mklog_save(&l);
	ok(!lw_open(&log, l.path) && lw_next(&log, &e) == 1 &&
	   e.mark_len == max && !memcmp(e.data, data, max),
	   "%u: a mark may fill its sector, %u bytes", size, max);
	lw_close(&log);
	mklog_free(&l);
}

/* Save and read the log: @ret and "PATH: @want" must come back. */
static void refused(int ret, const char *want)
{
	CLEANUP_FREE char *message = xasprintf("%s: %s", l.path, want);
	struct lw_log log;
	struct lw_entry e;
	int got;

	mklog_save(&l);
	got = lw_open(&log, l.path);
	while (!got && (got = lw_next(&log, &e)) == 1)
		got = 0;
	ok_int(got, ret, "refused: %s", want);
	ok_str(log.error, message, "with that message");
	lw_close(&log);
	mklog_free(&l);
}

static void bad_super(void)
{
	static const uint32_t sizes[] = { 0, 8, 32, 256, 513, 8192, 1 << 20 };

	mklog_init(&l, NULL, 512);
	l.len = 511;
	refused(-EINVAL, "not a dm-log-writes log: 511 bytes, expected a superblock of at least 512 at byte 0");
	mklog_init(&l, NULL, 512);
	super()->magic = htole64(LW_MAGIC + 1);
	refused(-EINVAL, "not a dm-log-writes log: magic 0x6a736677736873 at byte 0, expected 0x6a736677736872");
	mklog_init(&l, NULL, 512);
	super()->version = htole64(2);
	refused(-EINVAL, "log version 2 at byte 8, expected 1");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CLEANUP_FREE char *want =
			xasprintf("sector size %u at byte 24, expected 512 to 4096",
				  sizes[i]);

		mklog_init(&l, NULL, 512);
		super()->sectorsize = htole32(sizes[i]);
		refused(-EINVAL, want);
	}
}

static void not_openable(void)
{
	CLEANUP_FREE char *none = xasprintf("%s/none", scratch());
	CLEANUP_FREE char *want =
		xasprintf("%s: cannot open the log: No such file or directory",
			  none);
	CLEANUP_FREE char *folder =
		xasprintf("%s: neither a file nor a block device", scratch());
	struct lw_log log;

	ok_int(lw_open(&log, none), -ENOENT, "no such file");
	ok_str(log.error, want, "with its message");
	lw_close(&log);
	ok_int(lw_open(&log, scratch()), -EINVAL, "a folder");
	ok_str(log.error, folder, "with its message");
	lw_close(&log);
}

/* Each starts with a good entry 0, so that the bad one is 1 at byte 1024. */
static void start(void)
{
	mklog_init(&l, NULL, 512);
	mklog_flush(&l);
}

static void truncated(void)
{
	start();
	mklog_flush(&l);
	l.len--;
	refused(-EINVAL, "truncated: entry 1 of 2 at byte 1024, expected a header of 512 bytes before the log's end at 1535");
	start();
	super()->nr_entries = htole64(2);
	refused(-EINVAL, "truncated: entry 1 of 2 at byte 1024, expected a header of 512 bytes before the log's end at 1024");
	start();
	mklog_write(&l, 0, 0, data, 4096);
	l.len--;
	refused(-EINVAL, "truncated: entry 1 at byte 1024 has 4096 bytes of data, expected them before the log's end at 5631");
	/* the most that does not overflow is still more than there is */
	start();
	mklog_header(&l, 0, (1ULL << 55) - 1, 0, 0);
	refused(-EINVAL, "truncated: entry 1 at byte 1024 has 18446744073709551104 bytes of data, expected them before the log's end at 1536");
}

static void bad_entries(void)
{
	start();
	mklog_header(&l, 0, 0, 1 << 5, 0);
	refused(-EINVAL, "entry 1 at byte 1024: unknown flags 0x20, expected none beyond 0x1f");
	start();
	mklog_header(&l, 0, 0, 1ULL << 63 | LW_MARK, 0);
	refused(-EINVAL, "entry 1 at byte 1024: unknown flags 0x8000000000000008, expected none beyond 0x1f");
	start();
	mklog_header(&l, 0, 0, 0, 0);
	refused(-EINVAL, "entry 1 at byte 1024: neither data nor flags, expected an entry");
	start();
	mklog_header(&l, 0, 0, LW_MARK, 481);
	refused(-EINVAL, "entry 1 at byte 1024: a mark of 481 bytes, expected at most 480");
	start();
	mklog_header(&l, 0, 0, LW_MARK, UINT64_MAX);
	refused(-EINVAL, "entry 1 at byte 1024: a mark of 18446744073709551615 bytes, expected at most 480");
}

/* 2^55 sectors of 512 bytes, or 2^52 of 4096, are 2^64 bytes. */
static void overflow(void)
{
	struct lw_log log;
	struct lw_entry e;

	start();
	mklog_header(&l, 1ULL << 55, 1, LW_DISCARD, 0);
	refused(-EINVAL, "entry 1 at byte 1024: sector 36028797018963968 + 1 overflows");
	start();
	mklog_header(&l, 0, 1ULL << 55, LW_DISCARD, 0);
	refused(-EINVAL, "entry 1 at byte 1024: sector 0 + 36028797018963968 overflows");
	start();
	mklog_header(&l, 1, (1ULL << 55) - 1, 0, 0);
	refused(-EINVAL, "entry 1 at byte 1024: sector 1 + 36028797018963967 overflows");
	start();
	mklog_header(&l, UINT64_MAX, UINT64_MAX, LW_DISCARD, 0);
	refused(-EINVAL, "entry 1 at byte 1024: sector 18446744073709551615 + 18446744073709551615 overflows");
	mklog_init(&l, NULL, 4096);
	mklog_header(&l, 1ULL << 52, 0, LW_FLUSH, 0);
	refused(-EINVAL, "entry 0 at byte 4096: sector 4503599627370496 + 0 overflows");

	mklog_init(&l, NULL, 512);
	mklog_header(&l, 1, (1ULL << 55) - 2, LW_DISCARD, 0);
	mklog_save(&l);
	ok(!lw_open(&log, l.path) && lw_next(&log, &e) == 1 && e.off == 512 &&
	   e.len == UINT64_MAX - 1023, "a discard up to byte 2^64 - 512");
	lw_close(&log);
	mklog_free(&l);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i * 7 + i / 512;
	for (uint32_t size = 512; size <= 4096; size *= 8) {
		empty_log(size);
		all_kinds(size);
		longest_mark(size);
	}
	not_openable();
	bad_super();
	truncated();
	bad_entries();
	overflow();
	return tap_end();
}
