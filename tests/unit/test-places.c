// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/places.c and replay/seen.c: each way to name a point leads to
 * it, what the log does not have is an error, and a state that was checked is
 * known again.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "../../replay/places.h"
#include "../../replay/seen.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

static struct mklog l;
static struct lw_log log;
static struct lw_index idx;
static uint8_t data[512];

/* 0 write, 1 flush, 2 FUA, 3 mark a, 4 mark b, 5 mark a, 6 flush + FUA */
static void make_log(bool fault)
{
	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 512);
	mklog_flush(&l);
	mklog_write(&l, LW_FUA, 0, data, 512);
	mklog_text(&l, "a", 1);
	mklog_text(&l, "b", 1);
	mklog_text(&l, "a", 1);
	mklog_write(&l, LW_FLUSH | LW_FUA, 0, data, 512);
	if (fault)
		mklog_header(&l, 0, 0, 1 << 20, 0);
	mklog_save(&l);
	if (lw_open(&log, l.path, 0) ||
	    lw_index_build(&idx, &log, LW_INDEX_MARKS))
		die(EXIT_LOSS, "%s%s", log.error, idx.error);
}

static void close_all(void)
{
	lw_index_close(&idx);
	lw_close(&log);
	mklog_free(&l);
}

static void one(const char *spec, uint64_t want)
{
	uint64_t done = 99;

	ok(!places_one(&done, spec, &idx, &log) && done == want,
	   "%s: %" PRIu64 " entries applied", spec, want);
}

static void not_one(const char *spec, int ret, const char *want)
{
	uint64_t done;

	ok_int(places_one(&done, spec, &idx, &log), ret, "'%s' is none", spec);
	ok(strstr(idx.error, want) != NULL, "it says: %s", idx.error);
}

static void list(const char *spec, const char *want)
{
	struct places p;
	char got[1024] = "";
	int ret = places_list(&p, spec, &idx, &log);

	if (ret)
		snprintf(got, sizeof(got), "%s", idx.error);
	for (size_t i = 0; !ret && i < p.nr; i++)
		sprintf(got + strlen(got), "%s%" PRIu64, i ? " " : "",
			p.done[i]);
	ok_str(got, want, "the list %s", spec);
	places_free(&p);
}

static void seen_states(void)
{
	struct seen seen = {};
	struct digest d = {};
	bool known = true, new = true;

	ok(!seen_find(&seen, &d), "nothing was seen at first");
	for (uint64_t i = 0; i < 1000; i++) {
		/* many in the same slot at first */
		d = (struct digest){ i % 10 << 40, i };
		new &= !seen_find(&seen, &d);
		seen_add(&seen, &d, i, i % 3);
	}
	for (uint64_t i = 0; i < 1000; i++) {
		const struct seen_state *s;

		d = (struct digest){ i % 10 << 40, i };
		s = seen_find(&seen, &d);
		known &= s && s->done == i + 1 && s->bad == !!(i % 3);
	}
	ok(new && known, "each is new once, and known then");
	seen_free(&seen);
}

int main(void)
{
	make_log(false);
	one("0", 1);
	one("6", 7);
	one("start", 0);
	one("end", 7);
	one("mark:a", 4);
	one("mark:b", 5);
	not_one("7", -ENOENT, "/log: no entry 7, the log has 7");
	not_one("18446744073709551615", -ENOENT, "no entry 18446744073709551615");
	not_one("18446744073709551616", -EINVAL, "expected an entry's number");
	not_one("mark:c", -ENOENT, "/log: no mark 'c' in 7 entries");
	not_one("mark:", -ENOENT, "no mark ''");
	not_one("flush", -EINVAL, "'flush', expected an entry's number");
	not_one("-1", -EINVAL, "'-1', expected");
	not_one("", -EINVAL, "'', expected");
	list("end,0,3,0", "1 4 7");
	list("flush", "2 7");
	list("fua", "3 7");
	list("mark,start", "0 4 5 6");
	list("flush,fua,mark", "2 3 4 5 6 7");
	list("every:3", "3 6");
	list("every:1", "1 2 3 4 5 6 7");
	list("every:8", "");
	list("every:0", "'every:0': '0' is not a count");
	list("every:18446744073709551615", "");
	list("nothing", "'nothing', expected an entry's number, mark:TEXT, start, end, flush, fua, mark or every:N");
	list("1,,2", "'', expected an entry's number, mark:TEXT, start, end, flush, fua, mark or every:N");
	close_all();

	make_log(true);
	one("6", 7);
	not_one("7", -EBADMSG, "entry 7 at byte 5632: flags 0x100000");
	not_one("end", -EBADMSG, "entry 7 at byte 5632: flags 0x100000");
	not_one("mark:c", -ENOENT, "in 7 entries; ");
	close_all();
	seen_states();
	return tap_end();
}
