// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/index.c: the index says what a pass over the log says, a kept
 * one that does not fit its log is never used, and every entry that it leads to
 * is held against the log.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../replay/index.h"
#include "../../replay/le.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

static struct mklog l;
static struct lw_log log;
static struct lw_index idx;
static uint8_t data[65536];

enum { DEVICE = 256 * 512 };

static uint32_t draw(uint32_t below)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return (x >> 33) % below;
}

static void random_log(uint32_t sectorsize, unsigned int n)
{
	mklog_init(&l, NULL, sectorsize);
	for (unsigned int i = 0; i < n; i++) {
		CLEANUP_FREE char *text = xasprintf("mark %u", i % 50);
		uint64_t len = (1 + draw(12)) * sectorsize;
		uint64_t off = draw((DEVICE - len) / sectorsize) * sectorsize;

		switch (draw(8)) {
		case 0:
			mklog_flush(&l);
			break;
		case 1:
			mklog_text(&l, text, strlen(text));
			break;
		case 2:
			mklog_discard(&l, off, DEVICE - off);
			break;
		case 3:
			mklog_write(&l, LW_FUA, off, data, len);
			break;
		default:
			mklog_write(&l, 0, off, data, len);
		}
	}
	mklog_save(&l);
}

static void open_log(unsigned int how)
{
	if (lw_open(&log, l.path, how))
		die(EXIT_LOSS, "%s", log.error);
}

static void close_all(void)
{
	lw_index_close(&idx);
	lw_close(&log);
}

/* What went over what, as an array of the device's sectors tells it */
static bool undo_is_right(uint32_t sectorsize)
{
	static uint64_t last[DEVICE / 512];

	memset(last, 0xff, sizeof(last));
	for (uint64_t nr = 0; nr < idx.nr; nr++) {
		uint64_t at = idx.entry[nr].off;

		for (uint64_t i = idx.undo_first[nr];
		     i < idx.undo_first[nr + 1]; i++) {
			const struct lw_undo *u = &idx.undo[i];

			if (u->off != at || !u->len || u->len % sectorsize)
				return false;
			for (uint64_t s = 0; s < u->len; s += sectorsize) {
				if (last[(at + s) / sectorsize] != u->prev)
					return false;
				last[(at + s) / sectorsize] = nr;
			}
			at += u->len;
		}
		if (at != idx.entry[nr].off + idx.entry[nr].len)
			return false;
	}
	return true;
}

static bool reads_back(void)
{
	struct lw_entry e, x;

	for (uint64_t nr = idx.nr; nr--;) {
		if (lw_index_read(&idx, &log, nr, &e) != 1 || e.nr != nr)
			return false;
		if (e.flags & LW_MARK) {
			uint64_t at;

			/* the last one before this that has the text */
			if (lw_index_mark(&idx, &log, e.mark, e.mark_len, nr,
					  &at) || at != nr)
				return false;
		}
	}
	lw_rewind(&log);
	for (uint64_t nr = 0; lw_next(&log, &e) == 1; nr++) {
		const struct lw_index_entry *i = &idx.entry[nr];

		if (i->off != e.off || i->len != e.len ||
		    i->flags != e.flags || i->header_off != e.header_off)
			return false;
	}
	return !lw_next(&log, &x) && log.next == idx.nr;
}

static void says_what_the_log_says(uint32_t sectorsize)
{
	enum { N = 2000 };
	uint64_t nr, flushes = 0, counted = 0;

	random_log(sectorsize, N);
	open_log(0);
	ok_int(lw_index_build(&idx, &log, LW_INDEX_ALL), 0,
	       "%u: the index", sectorsize);
	ok(idx.nr == N && !idx.fault[0] && log.nr_entries == N,
	   "%u: all entries", sectorsize);
	ok(reads_back(), "%u: each reads back", sectorsize);
	ok(undo_is_right(sectorsize), "%u: what went over what", sectorsize);
	ok(idx.peak <= 200 * N + (2 << 20), "%u: memory, %" PRIu64 " bytes",
	   sectorsize, idx.peak);
	for (nr = lw_index_flags(&idx, LW_FLUSH, 0); nr != LW_NONE;
	     nr = lw_index_flags(&idx, LW_FLUSH, nr + 1))
		flushes++;
	for (nr = 0; nr < N; nr++)
		counted += idx.entry[nr].flags & LW_FLUSH;
	ok(flushes == counted && flushes, "%u: all flushes", sectorsize);
	ok(!lw_index_mark(&idx, &log, "mark 50", 7, 0, &nr) && nr == LW_NONE,
	   "%u: no such mark", sectorsize);
	ok(!lw_index_mark(&idx, &log, "mark 1", 6, N, &nr) && nr == LW_NONE,
	   "%u: no mark from there on", sectorsize);
	close_all();
	mklog_free(&l);
}

static void empty(void)
{
	mklog_init(&l, NULL, 512);
	mklog_save(&l);
	open_log(0);
	ok(!lw_index_build(&idx, &log, LW_INDEX_ALL) && !idx.nr &&
	   !idx.undo_first[0], "an empty log has an index");
	ok_int(lw_index_keep(&idx, &log, NULL), 0, "that can be kept");
	close_all();
	open_log(0);
	ok(!lw_index_open(&idx, &log, NULL, LW_INDEX_ALL) && idx.map && !idx.nr,
	   "and used");
	close_all();
	mklog_free(&l);
}

static void fault(void)
{
	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 512);
	mklog_header(&l, 0, 0, 1 << 9, 0);
	mklog_flush(&l);
	mklog_save(&l);
	open_log(0);
	ok(!lw_index_build(&idx, &log, LW_INDEX_ALL) && idx.nr == 1 &&
	   log.nr_entries == 1, "the index ends before a fault");
	ok(strstr(idx.fault, "entry 1 at byte 1536: flags 0x200") != NULL,
	   "and has its message");
	close_all();
	open_log(LW_SALVAGE);
	ok(!lw_index_build(&idx, &log, LW_INDEX_ALL) && idx.nr == 1 &&
	   !idx.fault[0] && log.note[0], "salvaged, it is none");
	close_all();
	mklog_free(&l);
}

/* Open the kept index, and expect it to be used or built anew with @why. */
static void kept(const char *why, const char *what)
{
	CLEANUP_FREE char *path = xasprintf("%s.lwindex", l.path);
	CLEANUP_FREE char *note = xasprintf("%s: built anew: %s", path, why);

	open_log(0);
	ok(!lw_index_open(&idx, &log, NULL, LW_INDEX_ALL) &&
	   !!idx.map == !*why, "%s: %s", what, *why ? "built anew" : "used");
	if (*why)
		ok_str(idx.note, note, "%s: it says so", what);
	ok(idx.nr == 500 && reads_back() && undo_is_right(512),
	   "%s: it is right", what);
	close_all();
	if (*why) {
		open_log(0);
		ok(!lw_index_open(&idx, &log, NULL, LW_INDEX_ALL) && idx.map,
		   "%s: and kept again", what);
		close_all();
	}
}

static void flip(const char *path, off_t at, int whence)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	off_t off = fd < 0 ? -1 : lseek(fd, at, whence);
	uint8_t byte;

	if (off < 0 || pread_all(fd, &byte, 1, off))
		die(EXIT_CANNOT, "%s: %m", path);
	byte ^= 1;
	if (pwrite_all(fd, &byte, 1, off))
		die(EXIT_CANNOT, "%s: %m", path);
	close(fd);
}

/* The times of @path as they were, so that only its contents tell */
static void same_time(const char *path, const struct stat *st)
{
	const struct timespec t[2] = { st->st_atim, st->st_mtim };

	if (utimensat(AT_FDCWD, path, t, 0))
		die(EXIT_CANNOT, "%s: %m", path);
}

static void kept_index(void)
{
	CLEANUP_FREE char *path = NULL;
	struct stat st;
	uint64_t nr;

	random_log(512, 500);
	path = xasprintf("%s.lwindex", l.path);
	unlink(path);
	open_log(0);
	ok(!lw_index_open(&idx, &log, NULL, LW_INDEX_ALL) && !idx.map &&
	   access(path, F_OK), "none is kept unasked");
	ok_int(lw_index_keep(&idx, &log, NULL), 0, "it can be kept");
	close_all();
	kept("", "kept");

	open_log(0);
	ok(!lw_index_open(&idx, &log, NULL, LW_INDEX_MARKS) &&
	   !lw_index_mark(&idx, &log, "mark 7", 6, 0, &nr) && nr % 50 == 7,
	   "a mark by the kept index");
	close_all();

	open_log(LW_SALVAGE);
	ok(!lw_index_open(&idx, &log, NULL, LW_INDEX_ALL) && !idx.map,
	   "salvage looks for itself");
	close_all();

	flip(path, -1, SEEK_END);
	if (stat(path, &st))
		die(EXIT_CANNOT, "%s: %m", path);
	{
		CLEANUP_FREE char *why = NULL;
		uint64_t first = st.st_size - 501 * 8;

		why = xasprintf("damaged at byte %" PRIu64, first);
		kept(why, "its last byte");
	}
	flip(path, 100, SEEK_SET);
	kept("not an index of this version", "its head");
	flip(path, 0, SEEK_SET);
	kept("not an index of this version", "its magic");
	if (truncate(path, st.st_size - 8))
		die(EXIT_CANNOT, "%s: %m", path);
	kept("truncated", "cut by 8 bytes");
	if (truncate(path, 100))
		die(EXIT_CANNOT, "%s: %m", path);
	kept("100 bytes, expected 1160 at least", "cut to 100 bytes");

	/* another log of the same size and time */
	if (stat(l.path, &st))
		die(EXIT_CANNOT, "%s: %m", l.path);
	((struct lw_disk_entry *)(l.buf + 512))->flags ^= put_le64(LW_METADATA);
	mklog_save(&l);
	same_time(l.path, &st);
	kept("of another log, or the log has changed", "another first entry");
	mklog_save(&l);
	kept("of another log, or the log has changed", "written again");
	mklog_raw(&l, NULL, 512);
	mklog_save(&l);
	same_time(l.path, &st);
	kept("of another log, or the log has changed", "another size");
	unlink(path);
	mklog_free(&l);
}

/* The log changes behind the index: what it leads to is not that any more. */
static void changed_behind(void)
{
	struct lw_entry e;

	mklog_init(&l, NULL, 512);
	for (unsigned int i = 0; i < 100; i++)
		mklog_write(&l, 0, i * 512, data, 512);
	mklog_save(&l);
	open_log(0);
	lw_index_build(&idx, &log, LW_INDEX_ALL);
	flip(l.path, 512 + 50 * 1024, SEEK_SET);
	ok_int(lw_index_read(&idx, &log, 49, &e), 1, "an entry that is the same");
	ok_int(lw_index_read(&idx, &log, 50, &e), -ESTALE, "one that is not");
	ok(strstr(idx.error, "entry 50 at byte 51712 is not the one that the index has") != NULL,
	   "it says which");
	close_all();
	mklog_free(&l);
}

static void cannot_keep(void)
{
	CLEANUP_FREE char *path = xasprintf("%s/no/such", scratch());

	mklog_init(&l, NULL, 512);
	mklog_flush(&l);
	mklog_save(&l);
	open_log(0);
	lw_index_build(&idx, &log, LW_INDEX_ALL);
	ok_int(lw_index_keep(&idx, &log, path), -ENOENT, "no such folder");
	ok(strstr(idx.error, path) != NULL, "with its message");
	close_all();
	mklog_free(&l);
}

/* The same log in another place, or packed, is the same; another is not. */
static void identity(void)
{
	uint64_t a, b;

	random_log(512, 60);
	open_log(0);
	lw_index_build(&idx, &log, LW_INDEX_ALL);
	lw_index_identity(&idx, &log, &a);
	close_all();
	mklog_save(&l);
	open_log(0);
	lw_index_build(&idx, &log, LW_INDEX_ALL);
	lw_index_identity(&idx, &log, &b);
	close_all();
	ok(a == b, "a log written again is the same");
	mklog_flush(&l);
	mklog_save(&l);
	open_log(0);
	lw_index_build(&idx, &log, LW_INDEX_ALL);
	lw_index_identity(&idx, &log, &b);
	close_all();
	ok(a != b, "one with an entry more is not");
	mklog_free(&l);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i * 7 + i / 512;
	says_what_the_log_says(512);
	says_what_the_log_says(4096);
	empty();
	fault();
	kept_index();
	changed_behind();
	cannot_keep();
	identity();
	return tap_end();
}
