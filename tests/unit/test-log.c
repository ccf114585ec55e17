// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/log.c: every kind of entry reads back as it was logged, and
 * every way in which a log can be damaged is refused with a message that names
 * the file, the entry and the byte.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../../replay/le.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

static struct mklog l;
static uint8_t data[65536];

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
	ok_int(lw_open(&log, l.path, 0), 0, "%u: an empty log opens", sectorsize);
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

	ok_int(lw_open(&log, l.path, 0), 0, "%u: opens", size);
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
	   e.mark_len == strlen(text) && !memcmp(e.mark, text, e.mark_len),
	   "%u: its text", size);
	ok(!e.len, "%u: it changes nothing", size);
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
	ok(!lw_open(&log, l.path, 0) && lw_next(&log, &e) == 1 &&
	   e.mark_len == max && !memcmp(e.mark, data, max),
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
	got = lw_open(&log, l.path, 0);
	while (!got && (got = lw_next(&log, &e)) == 1)
		got = 0;
	ok_int(got, ret, "refused: %s", want);
	ok_str(log.error, message, "with that message");
	lw_close(&log);
	mklog_free(&l);
}

static void bad_super(void)
{
	static const uint32_t sizes[] = {
		0, 8, 32, 256, 513, 1536, 1 << 17, 1 << 20, 1U << 31
	};

	mklog_init(&l, NULL, 512);
	l.len = 511;
	refused(-EINVAL, "not a dm-log-writes log: 511 bytes, expected a superblock of at least 512 at byte 0");
	mklog_init(&l, NULL, 512);
	super()->magic = put_le64(LW_MAGIC + 1);
	refused(-EINVAL, "not a dm-log-writes log: magic 0x6a736677736873 at byte 0, expected 0x6a736677736872");
	mklog_init(&l, NULL, 512);
	super()->version = put_le64(2);
	refused(-EINVAL, "log version 2 at byte 8, expected 1");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CLEANUP_FREE char *want =
			xasprintf("sector size %u at byte 24, expected a power of two from 512 to 65536",
				  sizes[i]);

		mklog_init(&l, NULL, 512);
		super()->sectorsize = put_le32(sizes[i]);
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

	ok_int(lw_open(&log, none, 0), -ENOENT, "no such file");
	ok_str(log.error, want, "with its message");
	lw_close(&log);
	ok_int(lw_open(&log, scratch(), 0), -EINVAL, "a folder");
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
	super()->nr_entries = put_le64(2);
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
	refused(-EINVAL, "entry 1 at byte 1024: flags 0x20, expected none but FLUSH, FUA, DISCARD, MARK and METADATA");
	start();
	mklog_header(&l, 0, 0, 1ULL << 63 | LW_MARK, 0);
	refused(-EINVAL, "entry 1 at byte 1024: flags MARK|0x8000000000000000, expected none but FLUSH, FUA, DISCARD, MARK and METADATA");
	start();
	mklog_header(&l, 0, 0, 0, 0);
	refused(-EINVAL, "entry 1 at byte 1024: neither data nor flags, expected an entry, one of 2");
	start();
	mklog_header(&l, 0, 0, LW_MARK, 481);
	refused(-EINVAL, "entry 1 at byte 1024: a mark of 481 bytes, expected at most 480");
	start();
	mklog_header(&l, 0, 0, LW_MARK, UINT64_MAX);
	refused(-EINVAL, "entry 1 at byte 1024: a mark of 18446744073709551615 bytes, expected at most 480");
}

/* Data where a header belongs: its sector goes on behind the entry. */
static void not_a_header(void)
{
	start();
	mklog_flush(&l);
	l.buf[1024 + 511] = 7;
	refused(-EINVAL, "entry 1 at byte 1024: byte 511 of its header is 0x07, expected zeros from byte 32 on: data where a header belongs");
	start();
	mklog_text(&l, "four", 4);
	l.buf[1024 + 32 + 4] = 'x';
	refused(-EINVAL, "entry 1 at byte 1024: byte 36 of its header is 0x78, expected zeros from byte 36 on: data where a header belongs");
	/* half of the data was never logged, so the chain lands within it */
	start();
	mklog_write(&l, 0, 0, data + 1024, 1024);
	((struct lw_disk_entry *)(l.buf + 1024))->nr_sectors = put_le64(1);
	mklog_flush(&l);
	refused(-EINVAL, "entry 2 at byte 2048: flags FLUSH|FUA|METADATA|0xa49d968f88817a60, expected none but FLUSH, FUA, DISCARD, MARK and METADATA");
}

/* A write by DAX has its data's length in the header: any, in whole sectors. */
static void dax(void)
{
	static const struct {
		uint64_t	nr_sectors, flags, data_len;
		bool		good;
	} tries[] = {
		{ 2, 0, 1024, true }, { 2, 0, 513, true }, { 2, 0, 0, true },
		{ 2, 0, 512, false }, { 2, 0, 1025, false },
		{ 0, LW_FLUSH, 1, false }, { 2, 0, UINT64_MAX, false },
		{ 2, LW_DISCARD, 1024, false }, { 2, LW_FUA, 1024, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		struct lw_log log;
		struct lw_entry e;
		int ret;

		mklog_init(&l, NULL, 512);
		mklog_header(&l, 8, tries[i].nr_sectors, tries[i].flags,
			     tries[i].data_len);
		mklog_raw(&l, data, 1024);
		mklog_save(&l);
		ret = lw_open(&log, l.path, 0);
		if (!ret)
			ret = lw_next(&log, &e);
		ok_int(ret, tries[i].good ? 1 : -EINVAL,
		       "a data length of %" PRIu64 " in %" PRIu64 " sectors",
		       tries[i].data_len, tries[i].nr_sectors);
		if (ret == 1)
			ok(e.len == 1024 && !memcmp(e.data, data, 1024),
			   "and all its sectors");
		lw_close(&log);
		mklog_free(&l);
	}
	mklog_init(&l, NULL, 512);
	mklog_header(&l, 8, 2, 0, 512);
	mklog_raw(&l, data, 1024);
	refused(-EINVAL, "entry 0 at byte 512: a data length of 512 bytes in 1024, expected 0 or what the sectors hold");
}

/* Save, read to the end, and expect so many entries,  and . */
static void ends(unsigned int how, uint64_t nr, int ret, const char *note,
		 const char *what)
{
	CLEANUP_FREE char *message = xasprintf("%s%s%s", *note ? l.path : "",
					       *note ? ": " : "", note);

	mklog_save(&l);
	for (unsigned int headers = 0; headers <= LW_HEADERS;
	     headers += LW_HEADERS) {
		struct lw_entry e;
		struct lw_log log;
		uint64_t n = 0;
		int got;

		if (lw_open(&log, l.path, how | headers))
			die(EXIT_LOSS, "%s", log.error);
		while ((got = lw_next(&log, &e)) == 1)
			n++;
		ok(n == nr && got == ret && (ret || log.nr_entries == nr),
		   "%s: %" PRIu64 " entries", what, nr);
		ok_str(log.note, message, "and its note");
		lw_rewind(&log);
		n = 0;
		while ((got = lw_next(&log, &e)) == 1)
			n++;
		ok(n == nr && got == ret, "the same again");
		lw_close(&log);
	}
	mklog_free(&l);
}

/* Entries 0 to 2: a write, a flush, a FUA write */
static void three(void)
{
	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 512);
	mklog_flush(&l);
	mklog_write(&l, LW_FUA, 4096, data, 512);
}

static void counted_too_few(void)
{
	three();
	mklog_count(&l, 0);
	ends(0, 3, 0, "the superblock counts 0 entries; read 3 more that had not been counted yet",
	     "nothing was counted");
	three();
	mklog_write(&l, 0, 0, data, 512);
	mklog_count(&l, 3);
	mklog_raw(&l, NULL, 8192);
	ends(0, 4, 0, "the superblock counts 3 entries; read 1 more that had not been counted yet",
	     "one behind the last FUA write");
	three();
	mklog_discard(&l, 0, 1 << 20);
	mklog_count(&l, 3);
	l.len--;
	ends(0, 3, 0, "", "the last header is cut");
	three();
	mklog_write(&l, 0, 0, data, 1024);
	mklog_count(&l, 3);
	l.len--;
	ends(0, 3, 0, "", "the last data are cut");
	three();
	mklog_text(&l, LW_END_MARK, strlen(LW_END_MARK));
	mklog_count(&l, 3);
	ends(0, 4, 0, "the superblock counts 3 entries; read 1 more that had not been counted yet",
	     "the end mark");
	three();
	mklog_write(&l, 0, 0, data, 512);
	mklog_count(&l, 3);
	ends(LW_GROWING, 3, 0, "", "only what is counted yet");
}

/* What the kernel would have counted is not this log's. */
static void older_log_behind(void)
{
	three();
	mklog_write(&l, 0, 0, data, 512);
	mklog_write(&l, LW_FUA, 0, data, 512);
	mklog_flush(&l);
	mklog_count(&l, 3);
	ends(0, 3, 0, "the superblock counts 3 entries; more follow at byte 3072, past entry 4, a FUA entry or mark that the kernel would have counted: they are an older log's, and are not read",
	     "more behind a second FUA write");
	three();
	mklog_text(&l, "m", 1);
	mklog_flush(&l);
	mklog_count(&l, 3);
	ends(0, 3, 0, "the superblock counts 3 entries; more follow at byte 3072, past entry 3, a FUA entry or mark that the kernel would have counted: they are an older log's, and are not read",
	     "more behind a mark");
	/* its header was logged, its data not: an older header is there */
	three();
	mklog_flush(&l);
	mklog_header(&l, 0, 2, 0, 0);
	mklog_flush(&l);
	mklog_raw(&l, data, 512);
	mklog_count(&l, 3);
	ends(0, 4, 0, "the superblock counts 3 entries; read 1 more; entry 4 at byte 3584 has a header where its data belongs, at byte 4096: an older log's, and is not read",
	     "a header in the data");
	/* the same where all is counted is data like any other */
	three();
	mklog_header(&l, 0, 1, 0, 0);
	mklog_flush(&l);
	mklog_count(&l, 4);
	ends(0, 4, 0, "", "a log that was itself recorded");
	three();
	mklog_text(&l, LW_END_MARK, strlen(LW_END_MARK));
	mklog_flush(&l);
	mklog_flush(&l);
	ends(0, 4, 0, "the superblock counts 6 entries, but entry 3 is the mark dm-log-writes-end: what follows at byte 3584 is an older log's, and is not read",
	     "more behind the end mark");
	three();
	mklog_text(&l, LW_END_MARK, strlen(LW_END_MARK));
	mklog_flush(&l);
	mklog_count(&l, 4);
	ends(0, 4, 0, "", "an older flush behind the end mark");
	three();
	mklog_text(&l, "dm-log-writes-end ", strlen(LW_END_MARK) + 1);
	mklog_text(&l, LW_END_MARK, strlen(LW_END_MARK) - 1);
	mklog_flush(&l);
	ends(0, 6, 0, "", "marks that only look like the end");
}

/* The log ends before the superblock's count: a fault, or what is salvaged. */
static void counted_too_many(void)
{
	three();
	mklog_count(&l, 9);
	refused(-EINVAL, "truncated: entry 3 of 9 at byte 3072, expected a header of 512 bytes before the log's end at 3072");
	three();
	mklog_count(&l, 9);
	ends(LW_SALVAGE, 3, 0, "truncated: entry 3 of 9 at byte 3072, expected a header of 512 bytes before the log's end at 3072: salvaged the 3 entries before it, left out 6",
	     "salvage: the file ends");
	three();
	mklog_count(&l, 9);
	mklog_raw(&l, NULL, 4096);
	refused(-EINVAL, "entry 3 at byte 3072: neither data nor flags, expected an entry, one of 9");
	three();
	mklog_count(&l, 4);
	mklog_raw(&l, NULL, 4096);
	ends(LW_SALVAGE, 3, 0, "entry 3 at byte 3072: neither data nor flags, expected an entry, one of 4: salvaged the 3 entries before it, left out 1",
	     "salvage: zeros");
	three();
	mklog_raw(&l, data + 1, 512);
	mklog_count(&l, 4);
	ends(LW_SALVAGE, 3, 0, "entry 3 at byte 3072: flags FLUSH|FUA|DISCARD|METADATA|0xa8a19a938c857e60, expected none but FLUSH, FUA, DISCARD, MARK and METADATA: salvaged the 3 entries before it, left out 1",
	     "salvage: something else");
	three();
	mklog_write(&l, 0, 0, data, 4096);
	l.len -= 512;
	ends(LW_SALVAGE, 3, 0, "truncated: entry 3 at byte 3072 has 4096 bytes of data, expected them before the log's end at 7168: salvaged the 3 entries before it, left out 1",
	     "salvage: data cut");
}

static void no_super(void)
{
	for (uint32_t size = 512; size <= 65536; size *= 2) {
		CLEANUP_FREE char *note =
			xasprintf("no superblock: salvaged by the first entry at byte %u",
				  size);

		mklog_init(&l, NULL, size);
		mklog_write(&l, LW_FUA, 0, data, 65536);
		mklog_flush(&l);
		mklog_text(&l, "m", 1);
		mklog_flush(&l);
		memset(l.buf, 0, size);
		mklog_save(&l);
		ends(LW_SALVAGE, 4, 0, note, "salvage: no superblock");
	}
	three();
	memset(l.buf, 0, 512);
	refused(-EINVAL, "no superblock yet: zeros at byte 0, expected magic 0x6a736677736872; the kernel writes it after the first FUA entry or mark");
	mklog_init(&l, NULL, 512);
	memset(l.buf, 0, 512);
	mklog_save(&l);
	{
		CLEANUP_FREE char *want = xasprintf("%s: neither a superblock at byte 0 nor an entry behind it, at bytes 512 to 65536",
						    l.path);
		struct lw_log log;

		ok_int(lw_open(&log, l.path, LW_SALVAGE), -EINVAL,
		       "salvage: nothing there");
		ok_str(log.error, want, "with its message");
		lw_close(&log);
	}
	mklog_free(&l);
}

/* Kernels before 4.12 count in 512 bytes whatever the device has. */
static void small_units(void)
{
	three();
	super()->sectorsize = put_le32(4096);
	mklog_raw(&l, NULL, 65536);
	refused(-EINVAL, "byte 520 is 0x01, expected zeros behind the superblock in its sector of 4096 bytes: are the log's entries in units of 512, by a kernel before 4.12?");
	/* the other way round there is no entry where the first one should be */
	mklog_init(&l, NULL, 4096);
	mklog_flush(&l);
	super()->sectorsize = put_le32(512);
	refused(-EINVAL, "entry 0 at byte 512: neither data nor flags, expected an entry, one of 1");
	mklog_init(&l, NULL, 512);
	super()->sectorsize = put_le32(4096);
	refused(-EINVAL, "truncated: 512 bytes, expected a superblock of 4096 at byte 0");
}

/* Flags say what they say in any combination. */
static void flag_combinations(void)
{
	struct lw_log log;
	struct lw_entry e;
	char buf[LW_FLAGS_MAX];
	bool good = true;

	mklog_init(&l, NULL, 512);
	for (uint64_t flags = 1; flags <= LW_KNOWN_FLAGS; flags++) {
		mklog_header(&l, 8, 2, flags, flags & LW_MARK ? 4 : 0);
		if (flags & LW_MARK)
			memcpy(l.buf + l.len - 480, "mark", 4);
		if (!(flags & LW_DISCARD))
			mklog_raw(&l, data, 1024);
	}
	mklog_save(&l);
	if (lw_open(&log, l.path, 0))
		die(EXIT_LOSS, "%s", log.error);
	for (uint64_t flags = 1; flags <= LW_KNOWN_FLAGS; flags++) {
		good &= lw_next(&log, &e) == 1 && e.flags == flags &&
			e.off == 4096 && e.len == 1024 &&
			lw_is_mark(&e, "mark", 4) == !!(flags & LW_MARK);
		if (!(flags & LW_DISCARD))
			good &= !memcmp(e.data, data, 1024);
	}
	ok(good && !lw_next(&log, &e), "all combinations of flags");
	lw_close(&log);
	mklog_free(&l);
	ok_str(lw_flags(0, buf), "NONE", "no flags");
	ok_str(lw_flags(LW_MARK | LW_FUA, buf), "FUA|MARK", "two flags");
	ok_str(lw_flags(UINT64_MAX, buf),
	       "FLUSH|FUA|DISCARD|MARK|METADATA|0xffffffffffffffe0",
	       "all of them");
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
	ok(!lw_open(&log, l.path, 0) && lw_next(&log, &e) == 1 && e.off == 512 &&
	   e.len == UINT64_MAX - 1023, "a discard up to byte 2^64 - 512");
	lw_close(&log);
	mklog_free(&l);
}

static void same_entries(struct lw_log *a, struct lw_log *b, const char *what)
{
	struct lw_entry x, y;
	uint64_t n = 0;
	int ret;

	for (;; n++) {
		ret = lw_next(a, &x);
		if (lw_next(b, &y) != ret || ret != 1 || x.nr != y.nr ||
		    x.header_off != y.header_off || x.off != y.off ||
		    x.len != y.len || x.flags != y.flags ||
		    x.mark_len != y.mark_len ||
		    (x.mark && memcmp(x.mark, y.mark, x.mark_len)) ||
		    (!(x.flags & LW_DISCARD) && memcmp(x.data, y.data, x.len)))
			break;
	}
	ok(!ret && n == a->nr_entries && n == b->nr_entries, "%s: the same %" PRIu64 " entries",
	   what, n);
}

/* Packed in frames of any size, and with few of them held, all is the same. */
static void packed(void)
{
	CLEANUP_FREE char *path = xasprintf("%s/log.zst", scratch());
	static const uint32_t frames[] = { 512, 1000, 4096, 1 << 20 };
	struct lw_log raw, zst;
	uint64_t off[40];

	mklog_init(&l, NULL, 512);
	for (unsigned int i = 0; i < 40; i++) {
		off[i] = l.len;
		if (i % 7 == 6)
			mklog_text(&l, "seven", 5);
		else
			mklog_write(&l, i % 3, i * 4096, data + i,
				    (1 + i % 9) * 512);
	}
	mklog_save(&l);
	if (lw_open(&raw, l.path, 0))
		die(EXIT_LOSS, "%s", raw.error);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		struct zst_writer w;
		struct lw_entry x, y;
		bool same = true;
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
			      0644);

		if (fd < 0 || zst_writer_open(&w, fd, 1, frames[i]) ||
		    zst_write(&w, l.buf, l.len) || zst_writer_finish(&w))
			die(EXIT_CANNOT, "%s: %m", path);
		zst_writer_free(&w);
		close(fd);
		if (lw_open(&zst, path, 0))
			die(EXIT_LOSS, "%s", zst.error);
		ok_int(zst.src.size, l.len, "frames of %u: the size",
		       frames[i]);
		zst.src.held_max = 3000;
		lw_rewind(&raw);
		same_entries(&raw, &zst, "packed");
		for (unsigned int nr = 40; nr--;) {
			lw_seek(&raw, nr, off[nr]);
			lw_seek(&zst, nr, off[nr]);
			same &= lw_next(&raw, &x) == 1 &&
				lw_next(&zst, &y) == 1 && x.len == y.len &&
				!memcmp(x.data, y.data, x.len);
		}
		ok(same && zst.src.held_bytes <= 3000 + 2 * 5120 + frames[i],
		   "packed: the same backwards, with few frames held");
		lw_close(&zst);
		if (lw_open(&zst, path, LW_HEADERS))
			die(EXIT_LOSS, "%s", zst.error);
		ok(!lw_finish(&zst) && zst.nr_entries == 40,
		   "packed: its headers");
		lw_close(&zst);
	}
	lw_close(&raw);
	mklog_free(&l);
}

/* A frame that is damaged is found when it is needed, and not before. */
static void packed_damaged(void)
{
	CLEANUP_FREE char *path = xasprintf("%s/log.zst", scratch());
	struct zst_writer w;
	struct lw_entry e;
	struct lw_log log;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 4096);
	mklog_write(&l, 0, 0, data, 4096);
	if (fd < 0 || zst_writer_open(&w, fd, 1, 4608) ||
	    zst_write(&w, l.buf, l.len) || zst_writer_finish(&w))
		die(EXIT_CANNOT, "%s: %m", path);
	if (pwrite_all(fd, "x", 1, get_le32(w.entry[0].packed_len) + 20))
		die(EXIT_CANNOT, "%s: %m", path);
	zst_writer_free(&w);
	close(fd);
	if (lw_open(&log, path, 0))
		die(EXIT_LOSS, "%s", log.error);
	ok_int(lw_next(&log, &e), -EINVAL, "data in a damaged frame");
	ok(!strncmp(log.error, path, strlen(path)) &&
	   strstr(log.error, "frame 1"), "says which: %s", log.error);
	lw_close(&log);
	mklog_free(&l);
}

/* A log that grows, and one that is cut while it is open */
static void refreshed(void)
{
	struct lw_log log;
	struct lw_entry e;

	three();
	mklog_save(&l);
	if (lw_open(&log, l.path, LW_GROWING))
		die(EXIT_LOSS, "%s", log.error);
	ok(!lw_finish(&log) && log.next == 3, "three entries");
	mklog_write(&l, LW_FUA, 0, data, 4096);
	mklog_save(&l);
	ok(!lw_refresh(&log) && lw_next(&log, &e) == 1 && e.nr == 3 &&
	   !memcmp(e.data, data, 4096), "and a fourth when it has grown");
	ok_int(lw_next(&log, &e), 0, "and no fifth");
	lw_close(&log);

	if (lw_open(&log, l.path, 0))
		die(EXIT_LOSS, "%s", log.error);
	log.src.from = log.src.until = 0;
	if (truncate(l.path, 0))
		die(EXIT_CANNOT, "%s: %m", l.path);
	ok(lw_next(&log, &e) < 0 && strstr(log.error, "cannot read bytes 0 to "),
	   "cut while it is open: %s", log.error);
	lw_close(&log);
	mklog_free(&l);
}

/* The same log has the same hash wherever it is, and another has another. */
static void hashed(void)
{
	CLEANUP_FREE char *path = xasprintf("%s/log.zst", scratch());
	char want[LW_HASH_SIZE], hex[LW_HASH_SIZE];
	const size_t size = 3 << 20;	/* more than one step */
	CLEANUP_FREE void *block = xcalloc(size, 1);
	struct zst_writer w;
	XXH128_hash_t h;
	struct lw_log log;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, block, size);
	mklog_write(&l, LW_FUA, 0, data, 4096);
	h = XXH3_128bits(l.buf, l.len);
	snprintf(want, sizeof(want), "%016llx%016llx",
		 (unsigned long long)h.high64, (unsigned long long)h.low64);
	if (fd < 0 || zst_writer_open(&w, fd, 1, 65536) ||
	    zst_write(&w, l.buf, l.len) || zst_writer_finish(&w))
		die(EXIT_CANNOT, "%s: %m", path);
	zst_writer_free(&w);
	close(fd);
	if (lw_open(&log, path, 0))
		die(EXIT_LOSS, "%s", log.error);
	log.src.held_max = 100000;
	ok(!lw_hash(&log, hex) && !strcmp(hex, want), "hash: packed: %s", hex);
	lw_close(&log);

	mklog_save(&l);
	if (truncate(l.path, l.len + 100000))
		die(EXIT_CANNOT, "%s: %m", l.path);
	if (lw_open(&log, l.path, 0))
		die(EXIT_LOSS, "%s", log.error);
	ok(!lw_hash(&log, hex) && !strcmp(hex, want),
	   "hash: on a larger disk: %s", hex);
	lw_close(&log);

	l.buf[l.len - 1] ^= 1;
	mklog_save(&l);
	if (lw_open(&log, l.path, 0))
		die(EXIT_LOSS, "%s", log.error);
	ok(!lw_hash(&log, hex) && strcmp(hex, want),
	   "hash: the last byte counts: %s", hex);
	lw_close(&log);

	l.len -= 100;
	mklog_save(&l);
	if (lw_open(&log, l.path, 0))
		die(EXIT_LOSS, "%s", log.error);
	ok(lw_hash(&log, hex) == -EINVAL && strstr(log.error, "truncated"),
	   "hash: none of a log at fault: %s", log.error);
	lw_close(&log);
	mklog_free(&l);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i * 7 + i / 512;
	for (uint32_t size = 512; size <= 4096; size *= 2) {
		empty_log(size);
		all_kinds(size);
		longest_mark(size);
	}
	not_openable();
	bad_super();
	truncated();
	bad_entries();
	not_a_header();
	dax();
	overflow();
	counted_too_few();
	older_log_behind();
	counted_too_many();
	no_super();
	small_units();
	flag_combinations();
	packed();
	packed_damaged();
	refreshed();
	hashed();
	return tap_end();
}
