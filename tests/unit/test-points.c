// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/points.c: which entries a specification chooses, that a sample
 * can be drawn again, and that no point lies outside the run's own marks.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "../../replay/points.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

enum { PLACE = 1 << 20, OPS = 10 };

static struct model m;
static struct mklog l;
static struct lw_log lw;
static struct audit a;
static char error[600];
static uint8_t junk[DATA_BLOCK];

/*
 * Entries 0 to 2 are before the run, 3 is its begin mark, 4 to 43 are ten
 * operations of write, flush, FUA write and ack, 44 is the end mark.
 */
static void begin_log(void)
{
	struct model_params p = {
		.seed = 3, .writers = 1, .ops = OPS, .files = 1, .blocks = 1,
	};

	if (model_init(&m, &p, error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	mklog_init(&l, &m, 512);
	mklog_text(&l, "before", 6);
	mklog_flush(&l);
	mklog_write(&l, LW_FUA, 0, junk, sizeof(junk));
	mklog_mark(&l, MARK_BEGIN, 0, 0);
	for (uint32_t n = 0; n < OPS; n++) {
		mklog_block(&l, PLACE, 0, n, 0, 0);
		mklog_flush(&l);
		mklog_write(&l, LW_FUA, 0, junk, 512);
		mklog_mark(&l, MARK_ACK, 0, n);
	}
}

static void end_log(void)
{
	mklog_mark(&l, MARK_END, 0, 0);
	mklog_flush(&l);
	mklog_write(&l, LW_FUA, 0, junk, sizeof(junk));
	/* even data over an acknowledged block */
	mklog_write(&l, 0, PLACE, junk, sizeof(junk));
	mklog_text(&l, "dm-log-writes-end", 17);
	mklog_save(&l);
	if (lw_open(&lw, l.path, 0) ||
	    audit_run(&a, &lw, &m, error, sizeof(error)))
		die(EXIT_LOSS, "%s%s", lw.error, error);
}

static void close_log(void)
{
	audit_free(&a);
	lw_close(&lw);
	mklog_free(&l);
	model_free(&m);
}

/* The entries as text, to compare and to print */
static char *choose(const char *spec, bool sample, uint64_t seed)
{
	char *text = xstrdup("");
	struct points pts;

	if (points_choose(&pts, spec, &lw, &m, &a, sample, seed, error,
			  sizeof(error))) {
		free(text);
		return xstrdup(error);
	}
	for (size_t i = 0; i < pts.nr; i++) {
		char *longer = xasprintf("%s%s%llu", text, i ? " " : "",
					 (unsigned long long)pts.entry[i]);

		free(text);
		text = longer;
	}
	free(pts.entry);
	return text;
}

static void chosen(const char *spec, const char *want)
{
	CLEANUP_FREE char *got = choose(spec, false, 0);

	ok_str(got, want, "%s", spec);
}

static void kinds(void)
{
	chosen("ack", "7 11 15 19 23 27 31 35 39 43");
	chosen("flush", "5 9 13 17 21 25 29 33 37 41");
	chosen("fua", "6 10 14 18 22 26 30 34 38 42");
	chosen("mark", "3 7 11 15 19 23 27 31 35 39 43 44");
}

/* The middle of each of N equal parts */
static void spread(void)
{
	chosen("1@ack", "27");
	chosen("2@ack", "15 35");
	chosen("3@ack", "11 27 39");
	chosen("9@ack", "7 11 15 19 27 31 35 39 43");
	chosen("10@ack", "7 11 15 19 23 27 31 35 39 43");
	chosen("18446744073709551615@ack", "7 11 15 19 23 27 31 35 39 43");
}

static void lists(void)
{
	chosen("20", "20");
	chosen("20,3,44", "3 20 44");
	chosen("7,7,2@ack,ack", "7 11 15 19 23 27 31 35 39 43");
	chosen("1@flush,1@ack,26", "25 26 27");
}

static void bad(void)
{
#define WORDS ", expected ack, flush, fua, mark, suspects, N@ one of them, or an entry's number"
	chosen("", "points: ''" WORDS);
	chosen("ack,", "points: ''" WORDS);
	chosen("acks", "points: 'acks'" WORDS);
	chosen("3@7", "points: '7'" WORDS);
	chosen("-1", "points: '-1'" WORDS);
	chosen("7x", "points: '7x'" WORDS);
	chosen("ack,0@ack", "points: '0@ack': '0' is not a count");
	chosen("@ack", "points: '@ack': '' is not a count");
	chosen("x@ack", "points: 'x@ack': 'x' is not a count");
	chosen("18446744073709551616@ack",
	       "points: '18446744073709551616@ack': '18446744073709551616' is not a count");
	chosen("2", "points: entry 2 is not between the run's marks, entries 3 to 44");
	chosen("45", "points: entry 45 is not between the run's marks, entries 3 to 44");
}

static void samples(void)
{
	CLEANUP_FREE char *all = choose("ack", false, 0);
	bool again = true, within = true;
	int differ = 0;
	bool seen[OPS * 4 + 8] = {};
	int n_seen = 0;

	for (uint64_t seed = 0; seed < 50; seed++) {
		CLEANUP_FREE char *one = choose("4@ack", true, seed);
		CLEANUP_FREE char *two = choose("4@ack", true, seed);
		CLEANUP_FREE char *next = choose("4@ack", true, seed + 1);
		struct points pts;

		again &= !strcmp(one, two);
		differ += strcmp(one, next) != 0;
		if (points_choose(&pts, "4@ack", &lw, &m, &a, true, seed,
				  error, sizeof(error)))
			die(EXIT_LOSS, "%s", error);
		within &= pts.nr == 4;	/* none twice: they were merged */
		for (size_t i = 0; i < pts.nr; i++) {
			within &= pts.entry[i] % 4 == 3 && pts.entry[i] > 3 &&
				  pts.entry[i] < 44;
			n_seen += !seen[pts.entry[i]];
			seen[pts.entry[i]] = true;
		}
		free(pts.entry);
	}
	ok(again, "the same seed draws the same sample");
	ok(differ > 40, "another seed another one (%d of 50)", differ);
	ok(within, "a sample of 4 is 4 different acks");
	ok_int(n_seen, OPS, "each ack is drawn by some seed");
	{
		CLEANUP_FREE char *got = choose("10@ack", true, 1);

		ok_str(got, all, "a sample of all is all");
	}
}

/* The points where the audit found losses, but none after the end mark */
static void suspects(void)
{
	begin_log();
	end_log();
	chosen("suspects", "");
	close_log();

	begin_log();
	mklog_discard(&l, PLACE, DATA_BLOCK);			/* 44 */
	mklog_block(&l, PLACE, 0, OPS - 1, 0, 0);
	mklog_block(&l, PLACE, 0, 0, 0, 0);			/* 46 */
	mklog_block(&l, PLACE, 0, OPS - 1, 0, 0);
	end_log();
	chosen("suspects", "44 46");
	chosen("1@suspects", "46");
	close_log();
}

static void bad_log(void)
{
	CLEANUP_FREE char *want = NULL;
	struct lw_disk_entry *e;

	begin_log();
	end_log();
	/* the file changes under the audit's feet */
	e = (struct lw_disk_entry *)(l.buf + 512);
	e->flags = ~e->flags;
	mklog_save(&l);
	want = xasprintf("%s: entry 0 at byte 512: flags FLUSH|FUA|DISCARD|METADATA|0xffffffffffffffe0, expected none but FLUSH, FUA, DISCARD, MARK and METADATA",
			 l.path);
	chosen("ack", want);
	close_log();
}

int main(void)
{
	begin_log();
	end_log();
	kinds();
	spread();
	lists();
	bad();
	samples();
	close_log();
	suspects();
	bad_log();
	return tap_end();
}
