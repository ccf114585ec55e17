// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/bisect.c and replay/bisect-log.c: what is claimed to be proven
 * is true for any badness, planted windows are found within the budget, and what
 * was not looked at is told. Each claim is compared with the truth, point by
 * point.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "../../replay/bisect-log.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

enum { BUDGET = BISECT_BUDGET, MANY = 20000 };

static uint8_t truth[MANY];	/* an enum check_verdict */
static bool seen[MANY];
static uint64_t nr, calls, stop_at;
static const char *wrong;	/* the first thing that is not as it should be */

static int check(uint64_t point, void *arg __attribute__((unused)))
{
	calls++;
	if (point >= nr)
		wrong = wrong ?: "a point that is none";
	else if (seen[point])
		wrong = wrong ?: "a point twice";
	if (calls == stop_at)
		return -EIO;
	seen[point] = true;
	return truth[point];
}

static void all_good(uint64_t n)
{
	nr = n;
	memset(truth, CHECK_GOOD, sizeof(truth));
}

static void plant(uint64_t first, uint64_t last, enum check_verdict what)
{
	memset(truth + first, what, last - first + 1);
}

static void require(bool good, const char *what)
{
	if (!good && !wrong)
		wrong = what;
}

/* What the points of a stretch have told, and the widest gap, counted anew */
static void compare_stretch(const struct bisect_stretch *s)
{
	enum check_verdict want = s->bad ? CHECK_BAD : CHECK_GOOD;
	uint64_t told = 0, gap = 0, widest = 0;

	for (uint64_t p = s->first; p <= s->last; p++) {
		bool tells = seen[p] && truth[p] != CHECK_CANNOT;

		require(!tells || truth[p] == want, "one in a stretch of others");
		told += tells;
		gap = tells ? 0 : gap + 1;
		widest = gap > widest ? gap : widest;
		if (s->gap && p >= s->gap_first && p < s->gap_first + s->gap)
			require(!tells, "one that has told in a gap");
	}
	require(truth[s->first] == want && seen[s->first], "a wrong first one");
	require(truth[s->last] == want && seen[s->last], "a wrong last one");
	require(told == s->checked, "a wrong count");
	require(widest == s->gap, "not the widest gap");
}

static void compare_first_bad(const struct bisect *b)
{
	size_t i = bisect_first_bad(b);
	uint64_t n, p;

	for (p = 0; p < nr && !(seen[p] && truth[p] == CHECK_BAD); p++)
		;
	if (p == nr) {
		require(i == b->nr_stretches, "a bad one that was not seen");
		return;
	}
	require(i < b->nr_stretches && b->stretch[i].first == p,
		"not the first one that was seen to be bad");
	if (wrong)
		return;
	n = bisect_good_before(b);
	for (uint64_t k = 1; k <= n; k++)
		require(truth[p - k] == CHECK_GOOD, "scanned, and not good");
	require(n == p || !seen[p - n - 1] || truth[p - n - 1] == CHECK_CANNOT,
		"scanned more than it says");
}

/* Search, and compare all that it claims with the truth. */
static int search(struct bisect *b, uint64_t budget, const uint64_t *suspect,
		  size_t nr_suspects)
{
	int ret;

	*b = (struct bisect){ .nr = nr, .budget = budget, .check = check,
			      .suspect = suspect, .nr_suspects = nr_suspects };
	memset(seen, 0, sizeof(seen));
	calls = 0;
	wrong = NULL;
	ret = bisect_run(b);
	if (ret)
		return ret;
	require(calls == (budget < nr ? budget : nr), "the budget is not used");
	require(b->nr_samples == calls, "a sample too many or too few");
	for (size_t i = 0; i < b->nr_stretches; i++) {
		uint64_t from = bisect_from(b, i), to = bisect_until(b, i);

		compare_stretch(&b->stretch[i]);
		require(!i || b->stretch[i].bad != b->stretch[i - 1].bad,
			"two stretches of a kind");
		for (uint64_t p = from; p < b->stretch[i].first; p++)
			require(!seen[p] || truth[p] == CHECK_CANNOT,
				"one that has told between two stretches");
		for (uint64_t p = b->stretch[i].last + 1; p <= to; p++)
			require(!seen[p] || truth[p] == CHECK_CANNOT,
				"one that has told behind a stretch");
	}
	compare_first_bad(b);
	return 0;
}

static bool proven(const struct bisect *b, size_t i)
{
	return bisect_from(b, i) == b->stretch[i].first &&
	       bisect_until(b, i) == b->stretch[i].last;
}

/* Is stretch @i bad from @first to @last, proven at both edges? */
static bool is_window(const struct bisect *b, size_t i, uint64_t first,
		      uint64_t last)
{
	return i < b->nr_stretches && b->stretch[i].bad && proven(b, i) &&
	       b->stretch[i].first == first && b->stretch[i].last == last;
}

static void finds(const struct bisect *b, uint64_t first, uint64_t last,
		  size_t i, const char *what)
{
	if (!ok(is_window(b, i, first, last) && !wrong,
		"%s: bad from %" PRIu64 " to %" PRIu64 ", proven", what, first,
		last))
		printf("# %s; %zu stretches\n", wrong ? wrong : "not found",
		       b->nr_stretches);
}

/* Good up to an edge and bad from there on, at every edge */
static void monotonic(uint64_t n, uint64_t step)
{
	uint64_t found = 0, tried = 0, near = 0;
	const char *first_wrong = NULL;
	struct bisect b;

	for (uint64_t edge = 0; edge < n; edge += step) {
		all_good(n);
		plant(edge, n - 1, CHECK_BAD);
		search(&b, BUDGET, NULL, 0);
		tried++;
		found += b.nr_stretches == 1 + !!edge &&
			 is_window(&b, b.nr_stretches - 1, edge, n - 1);
		near += bisect_good_before(&b) >=
			(edge < BISECT_NEAR ? edge : BISECT_NEAR);
		first_wrong = first_wrong ?: wrong;
		bisect_free(&b);
	}
	ok_int(found, tried, "bad from an edge of %" PRIu64
	       " points on: found at every one", n);
	ok_int(near, tried, "and the nearest before it were checked");
	ok(!first_wrong, "in %d checks, and no claim is wrong%s%s", BUDGET,
	   first_wrong ? ": " : "", first_wrong ?: "");
}

static void only_the_last(void)
{
	struct bisect b;

	all_good(MANY);
	plant(MANY - 1, MANY - 1, CHECK_BAD);
	search(&b, BUDGET, NULL, 0);
	finds(&b, MANY - 1, MANY - 1, 1, "the last point only");
	bisect_free(&b);
}

static void none_or_all(void)
{
	struct bisect b;

	all_good(MANY);
	search(&b, BUDGET, NULL, 0);
	ok(b.nr_stretches == 1 && !b.stretch[0].bad && !wrong,
	   "all good: one good stretch");
	ok(bisect_first_bad(&b) == b.nr_stretches, "and no bad one");
	ok(b.stretch[0].gap > 0 && b.stretch[0].gap < MANY / 32,
	   "the widest gap is narrow (%" PRIu64 ")", b.stretch[0].gap);
	bisect_free(&b);

	plant(0, MANY - 1, CHECK_BAD);
	search(&b, BUDGET, NULL, 0);
	finds(&b, 0, MANY - 1, 0, "all bad");
	bisect_free(&b);

	all_good(1);
	plant(0, 0, CHECK_BAD);
	search(&b, BUDGET, NULL, 0);
	finds(&b, 0, 0, 0, "one point");
	bisect_free(&b);
}

static void windows(void)
{
	static const uint64_t one[] = { 12345 }, edges[] = { 777, 778, 15001, 15002 };
	struct bisect b;

	all_good(MANY);
	plant(6001, 11234, CHECK_BAD);
	search(&b, BUDGET, NULL, 0);
	finds(&b, 6001, 11234, 1, "a wide window");
	bisect_free(&b);

	plant(13003, 18001, CHECK_BAD);
	search(&b, BUDGET, NULL, 0);
	finds(&b, 6001, 11234, 1, "two wide windows");
	finds(&b, 13003, 18001, 3, "two wide windows");
	bisect_free(&b);

	all_good(MANY);
	for (uint64_t p = 1700; p + 1000 < MANY; p += 2000)
		plant(p, p + 999, CHECK_BAD);
	search(&b, BUDGET, NULL, 0);
	ok(!wrong && bisect_from(&b, 1) == b.stretch[1].first &&
	   bisect_good_before(&b) >= BISECT_NEAR,
	   "more windows than the budget is for: the first is still looked at");
	ok(!proven(&b, b.nr_stretches - 2), "the last one is not proven");
	bisect_free(&b);

	all_good(MANY);
	plant(12345, 12345, CHECK_BAD);
	search(&b, BUDGET, one, 1);
	finds(&b, 12345, 12345, 1, "one point and a suspect");
	bisect_free(&b);

	search(&b, BUDGET, NULL, 0);
	ok(b.nr_stretches == 1 && !wrong, "one point, no suspect: missed");
	ok(b.stretch[0].gap >= 1, "and that it may be is told");
	bisect_free(&b);

	search(&b, UINT64_MAX, NULL, 0);
	finds(&b, 12345, 12345, 1, "one point, all checked");
	ok_int(b.stretch[0].gap + b.stretch[2].gap, 0, "without a gap");
	bisect_free(&b);

	all_good(MANY);
	plant(777, 777, CHECK_BAD);
	plant(15001, 15001, CHECK_BAD);
	search(&b, BUDGET, edges, ARRAY_SIZE(edges));
	finds(&b, 777, 777, 1, "two single points and suspects");
	finds(&b, 15001, 15001, 3, "two single points and suspects");
	bisect_free(&b);
}

/* More suspects than checks: half of the budget is for the rest */
static void many_suspects(void)
{
	static uint64_t suspect[MANY];
	struct bisect b;

	for (size_t i = 0; i < MANY; i++)
		suspect[i] = i;
	all_good(MANY);
	plant(17000, MANY - 1, CHECK_BAD);
	search(&b, BUDGET, suspect, MANY);
	finds(&b, 17000, MANY - 1, 1, "as many suspects as points");
	bisect_free(&b);
}

/*
 * Many windows and the suspects at their edges: half of the budget is enough to
 * prove a window for each four of its checks, and the last one is not left half
 * done for other things.
 */
static void suspected_windows(void)
{
	uint64_t suspect[100];
	const char *first_wrong = NULL;
	unsigned int fewer = 0;
	struct bisect b;

	all_good(MANY);
	for (size_t i = 0; i < ARRAY_SIZE(suspect); i += 2) {
		suspect[i] = 300 + 170 * i;
		suspect[i + 1] = suspect[i] + 7 + i;
		plant(suspect[i], suspect[i + 1] - 1, CHECK_BAD);
	}
	for (uint64_t budget = 20; budget < 100; budget++) {
		uint64_t whole = 0;

		search(&b, budget, suspect, ARRAY_SIZE(suspect));
		for (size_t i = 0; i < b.nr_stretches; i++)
			whole += b.stretch[i].bad && proven(&b, i);
		/* the ends take two, and the last one may take two more */
		fewer += whole < budget / 2 / 4;
		first_wrong = first_wrong ?: wrong;
		bisect_free(&b);
	}
	ok_int(fewer, 0, "many windows and suspects: proven for half of any budget");
	ok(!first_wrong, "and no claim is wrong%s%s", first_wrong ? ": " : "",
	   first_wrong ?: "");
}

static void cannot_tell(void)
{
	struct bisect b;

	all_good(MANY);
	plant(9000, MANY - 1, CHECK_BAD);
	plant(8996, 9003, CHECK_CANNOT);
	search(&b, BUDGET, NULL, 0);
	ok(!wrong && b.nr_stretches == 2 && b.stretch[0].last == 8995 &&
	   b.stretch[1].first == 9004,
	   "an edge where eight points cannot tell: as near as can be");
	ok(!proven(&b, 1) && bisect_from(&b, 1) == 8996, "and not proven");
	ok_int(b.cannot, 8, "eight could not tell");
	bisect_free(&b);

	all_good(MANY);
	for (uint64_t p = 2000; p < 13000; p += 5000)
		plant(p, p + 999, CHECK_CANNOT);
	plant(15555, MANY - 1, CHECK_BAD);
	search(&b, BUDGET, NULL, 0);
	finds(&b, 15555, MANY - 1, 1, "behind many that cannot tell");
	bisect_free(&b);

	plant(0, MANY - 1, CHECK_CANNOT);
	search(&b, BUDGET, NULL, 0);
	ok(!wrong && !b.nr_stretches && b.cannot == BUDGET,
	   "no point can tell: no stretch");
	bisect_free(&b);
}

static void broken(void)
{
	struct bisect b;

	all_good(MANY);
	stop_at = 7;
	ok_int(search(&b, BUDGET, NULL, 0), -EIO, "a check that fails ends it");
	ok_int(calls, 7, "at once");
	bisect_free(&b);
	ok_int(search(&b, UINT64_MAX, NULL, 0), -EIO,
	       "also where all are checked");
	ok_int(calls, 7, "at once");
	bisect_free(&b);
	stop_at = 0;
}

/* Any windows, any points that cannot tell, any suspects, any budget */
static void anything(void)
{
	uint64_t suspect[8];
	struct bisect b;
	int round;

	srandom(1);
	for (round = 0; round < 3000; round++) {
		all_good(1 + random() % 3000);
		for (int i = random() % 6; i--; ) {
			uint64_t first = random() % nr;
			uint64_t len = 1 + random() % (nr - first);

			if (random() % 2)
				len = 1 + len % 5;
			if (len > nr - first)
				len = nr - first;
			plant(first, first + len - 1,
			      random() % 3 ? CHECK_BAD : CHECK_CANNOT);
		}
		for (size_t i = 0; i < ARRAY_SIZE(suspect); i++)
			suspect[i] = random() % (nr + 9);
		search(&b, 1 + random() % 200, suspect, random() % 9);
		bisect_free(&b);
		if (wrong)
			break;
	}
	ok(!wrong, "no claim is wrong in 3000 searches%s%s", wrong ? ": " : "",
	   wrong ?: "");
}

static void entries_are(const struct bisect_log *l, const uint64_t *want,
			size_t n, const char *what)
{
	bool same = l->b.nr == n;

	for (size_t i = 0; same && i < n; i++)
		same = l->entry[i] == want[i];
	ok(same, "%s: %zu points", what, n);
}

/* What leaves the state as it is makes no point of its own. */
static void points_of_a_log(void)
{
	static const uint64_t all[] = { 0, 1, 3, 6, 7, 8 };
	static const uint64_t marks[] = { 0, 1, 3, 4, 6, 7, 8 };
	static const uint64_t later[] = { 2, 3, 6, 7 };
	static const uint64_t at[] = { 1, 5, 8 };
	static const uint8_t data[512];
	struct mklog l;
	struct lw_log log;
	struct lw_index idx;
	struct bisect_log b = {};

	mklog_init(&l, NULL, 512);
	mklog_flush(&l);
	mklog_write(&l, 0, 0, data, 512);
	mklog_flush(&l);
	mklog_write(&l, LW_FUA, 0, data, 512);
	mklog_text(&l, "mark", 4);
	mklog_header(&l, 0, 0, LW_FUA, 0);
	mklog_discard(&l, 512, 512);
	mklog_write(&l, LW_FLUSH | LW_FUA, 0, data, 512);
	mklog_write(&l, 0, 512, data, 512);
	mklog_flush(&l);
	mklog_save(&l);
	if (lw_open(&log, l.path, 0) ||
	    lw_index_build(&idx, &log, LW_INDEX_ENTRIES))
		die(EXIT_LOSS, "%s%s", log.error, idx.error);

	bisect_log_states(&b, &idx, 0, idx.nr - 1, 0);
	entries_are(&b, all, ARRAY_SIZE(all), "the states of a log");
	for (uint64_t i = 0; i < 12; i++)
		bisect_log_suspect(&b, i);
	ok(b.b.nr_suspects == 9 && b.b.suspect[2] == 2 && b.b.suspect[4] == 3 &&
	   b.b.suspect[8] == 5, "a suspect is the next state");
	bisect_log_free(&b);

	bisect_log_states(&b, &idx, 0, idx.nr - 1, LW_MARK);
	entries_are(&b, marks, ARRAY_SIZE(marks), "and the marks");
	bisect_log_free(&b);

	bisect_log_states(&b, &idx, 2, 7, 0);
	entries_are(&b, later, ARRAY_SIZE(later), "from an entry to an entry");
	bisect_log_suspect(&b, 0);
	bisect_log_suspect(&b, 8);
	ok_int(b.b.nr_suspects, 0, "suspects outside are left out");
	bisect_log_free(&b);

	bisect_log_chosen(&b, at, ARRAY_SIZE(at));
	entries_are(&b, at, ARRAY_SIZE(at), "chosen ones");
	bisect_log_free(&b);

	lw_index_close(&idx);
	lw_close(&log);
	mklog_free(&l);
}

int main(void)
{
	monotonic(MANY, 37);
	monotonic(MANY, MANY - 1);
	monotonic(300, 1);
	monotonic(2, 1);
	only_the_last();
	none_or_all();
	windows();
	many_suspects();
	suspected_windows();
	cannot_tell();
	broken();
	anything();
	points_of_a_log();
	return tap_end();
}
