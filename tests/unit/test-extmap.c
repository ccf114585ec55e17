// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/extmap.c: the map is what an array with one element per place
 * says, and every part that is cut or found has its old value, in order.
 */

#include <stdlib.h>

#include "../../replay/extmap.h"
#include "../../replay/util.h"
#include "tap.h"

enum { SPAN = 1 << 14 };

/* Where the array below lies; all other places are a gap. */
static uint64_t base;
static uint64_t model[SPAN];
static struct extmap m;

static uint32_t draw(uint32_t below)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return (x >> 33) % below;
}

/* The parts of a range up to @end: the next one must start at @at. */
struct parts {
	uint64_t	at, end;
	bool		good;
};

static bool is_gap(uint64_t start, uint64_t end, uint64_t value)
{
	return start >= end || value == EXTMAP_NONE;
}

static void see_part(uint64_t start, uint64_t end, uint64_t value, void *arg)
{
	struct parts *p = arg;
	uint64_t top = base + SPAN;
	uint64_t from = start > base ? start : base;
	uint64_t until = end < top ? end : top;

	p->good &= start == p->at && start < end && end <= p->end &&
		   is_gap(start, end < base ? end : base, value) &&
		   is_gap(start > top ? start : top, end, value);
	for (uint64_t i = from; i < until && p->good; i++)
		p->good = model[i - base] == value;
	p->at = end;
}

/* Both of these return whether every part was right. */
static bool set(uint64_t start, uint64_t end, uint64_t value)
{
	struct parts p = { base + start, base + end, true };

	extmap_set(&m, base + start, base + end, value, see_part, &p);
	for (uint64_t i = start; i < end; i++)
		model[i] = value;
	return p.good && p.at == p.end;
}

static bool get(uint64_t start, uint64_t end)
{
	struct parts p = { start, end, true };

	extmap_get(&m, start, end, see_part, &p);
	return p.good && p.at == p.end;
}

/* The whole map. Values are not set twice, so each run of one is an extent. */
static bool all(void)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < SPAN; i++)
		nr += model[i] != EXTMAP_NONE &&
		      (!i || model[i] != model[i - 1]);
	return get(0, UINT64_MAX) && m.nr == nr;
}

static void start(uint64_t at)
{
	base = at;
	for (size_t i = 0; i < SPAN; i++)
		model[i] = EXTMAP_NONE;
	extmap_init(&m);
}

/*
 * Ranges of up to @longest at places that are close to each other for a while,
 * and from time to time a long one, or a new gap.
 */
static void random_ranges(uint64_t at, uint32_t n, uint32_t longest)
{
	bool cut = true, got = true, whole = true;
	size_t most = 0, drops = 0;
	uint32_t middle = 0;

	start(at);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = 1 + draw(longest), from;
		size_t leaves = m.nr_leaves;

		if (i % 64 == 0)
			middle = draw(SPAN);
		if (draw(256) == 0)
			len += draw(SPAN / 8);
		from = draw(4) ? (middle + draw(256)) % SPAN : draw(SPAN);
		if (from + len > SPAN)
			from = SPAN - len;
		cut &= set(from, from + len, draw(16) ? i : EXTMAP_NONE);
		if (m.nr_leaves > most)
			most = m.nr_leaves;
		drops += m.nr_leaves < leaves;

		from = draw(SPAN);
		len = 1 + draw(SPAN - from < 256 ? SPAN - from : 256);
		got &= get(base + from, base + from + len);
		if (i % 256 == 0)
			whole &= all();
	}
	ok(cut, "%u random ranges of up to %u: what was cut", n, longest);
	ok(got, "and what was got");
	ok(whole && all(), "and the whole map");
	ok(most > 10 && drops > 5, "on %zu leaves, dropped %zu times", most,
	   drops);
	extmap_free(&m);
}

/* The parts as text: "0-10:- 10-20:7" */
static char text[512];

static void print_part(uint64_t start, uint64_t end, uint64_t value, void *arg)
{
	size_t n = strlen(text);

	(void)arg;
	n += snprintf(text + n, sizeof(text) - n, "%s%" PRIu64 "-",
		      n ? " " : "", start);
	if (end == UINT64_MAX)
		n += snprintf(text + n, sizeof(text) - n, "max:");
	else
		n += snprintf(text + n, sizeof(text) - n, "%" PRIu64 ":", end);
	if (value == EXTMAP_NONE)
		snprintf(text + n, sizeof(text) - n, "-");
	else
		snprintf(text + n, sizeof(text) - n, "%" PRIu64, value);
}

/* What a set cuts, and all that is there after it, in so many extents */
static void step(uint64_t start, uint64_t end, uint64_t value,
		 const char *cut, const char *after, uint64_t nr)
{
	text[0] = '\0';
	extmap_set(&m, start, end, value, print_part, NULL);
	ok_str(text, cut, "%" PRIu64 " to %" PRIu64 " cuts", start, end);
	text[0] = '\0';
	extmap_get(&m, 0, UINT64_MAX, print_part, NULL);
	ok_str(text, after, "which leaves");
	ok_int(m.nr, nr, "that many extents");
}

static void borders(void)
{
	extmap_init(&m);
	step(10, 20, 1, "10-20:-", "0-10:- 10-20:1 20-max:-", 1);
	step(20, 30, 2, "20-30:-", "0-10:- 10-20:1 20-30:2 30-max:-", 2);
	step(5, 10, 3, "5-10:-", "0-5:- 5-10:3 10-20:1 20-30:2 30-max:-", 3);
	step(20, 30, 4, "20-30:2",
	     "0-5:- 5-10:3 10-20:1 20-30:4 30-max:-", 3);
	step(12, 14, 5, "12-14:1",
	     "0-5:- 5-10:3 10-12:1 12-14:5 14-20:1 20-30:4 30-max:-", 5);
	step(0, 6, 6, "0-5:- 5-6:3",
	     "0-6:6 6-10:3 10-12:1 12-14:5 14-20:1 20-30:4 30-max:-", 6);
	step(13, 21, 7, "13-14:5 14-20:1 20-21:4",
	     "0-6:6 6-10:3 10-12:1 12-13:5 13-21:7 21-30:4 30-max:-", 6);
	step(0, 13, EXTMAP_NONE, "0-6:6 6-10:3 10-12:1 12-13:5",
	     "0-13:- 13-21:7 21-30:4 30-max:-", 2);
	step(29, UINT64_MAX, 8, "29-30:4 30-max:-",
	     "0-13:- 13-21:7 21-29:4 29-max:8", 3);
	step(0, UINT64_MAX, 9, "0-13:- 13-21:7 21-29:4 29-max:8",
	     "0-max:9", 1);
	step(0, 1, 10, "0-1:9", "0-1:10 1-max:9", 2);

	text[0] = '\0';
	extmap_get(&m, 0, 1, print_part, NULL);
	extmap_get(&m, 1, 2, print_part, NULL);
	extmap_get(&m, UINT64_MAX - 1, UINT64_MAX, print_part, NULL);
	ok_str(text, "0-1:10 1-2:9 18446744073709551614-max:9",
	       "parts of an extent");
	extmap_free(&m);
}

/* Each split keeps order: one full leaf after another is cut at each place. */
static void splits(void)
{
	bool good = true;

	start(0);
	for (uint32_t at = 0; at < 600; at++) {
		uint32_t n = 0;

		good &= set(0, SPAN, EXTMAP_NONE);
		for (uint32_t i = 0; i < 600; i += 2)
			good &= set(2 * i, 2 * i + 3, n++);
		for (uint32_t i = 0; i < 3; i++)
			good &= set(2 * at + i, 2 * at + i + 1, n++);
		good &= get(0, 2000);
	}
	good &= all();
	extmap_free(&m);
	ok(good, "a set at each place of leaves that are full");
}

/* All of @n ascending extents in as few leaves as can be */
static void ascending(void)
{
	bool good = true;
	size_t leaves;

	start(0);
	for (uint32_t i = 0; i < SPAN; i++)
		good &= set(i, i + 1, i);
	leaves = m.nr_leaves;
	ok(good && all(), "ascending");
	ok(leaves > 10 && SPAN / leaves > 200, "%d extents are in %zu leaves",
	   SPAN, leaves);
	good = true;
	for (uint32_t i = SPAN; i-- > 0; )
		good &= set(i, i + 1, SPAN + i);
	ok(good && all() && m.nr_leaves == leaves, "once more, descending");
	extmap_free(&m);
}

/*
 * Leaves are dropped when nothing is left in them: by ranges that end within a
 * leaf, at its end, and that leave only a part of both borders.
 */
static void drops(void)
{
	bool good = true;

	for (uint32_t len = 200; len < 800; len += 7) {
		size_t leaves;

		start(0);
		for (uint32_t i = 0; i < 4096; i++)
			good &= set(i, i + 1, i);
		leaves = m.nr_leaves;
		good &= set(100, 100 + len, SPAN);
		good &= len < 600 || m.nr_leaves < leaves;
		good &= all();
		for (uint32_t i = 0; i < 3000; i += 50)
			good &= set(i, i + len, SPAN + 1 + i);
		good &= m.nr_leaves < leaves / 2 && all();
		extmap_free(&m);
	}
	ok(good, "long ranges over leaves");
}

static void count_part(uint64_t start, uint64_t end, uint64_t value, void *arg)
{
	uint64_t *n = arg;

	(void)start, (void)end;
	*n += value != EXTMAP_NONE;
}

/* One range over all, as mkfs discards a device, and all of it once more */
static void swallow(void)
{
	enum { N = 200000 };
	size_t memory = 0;

	extmap_init(&m);
	for (uint64_t round = 1; round <= 2; round++) {
		uint64_t cut = 0;

		for (uint64_t i = 0; i < N; i++) {
			uint64_t at = i * 7919 % N * 16;

			extmap_set(&m, at, at + 8, i, NULL, NULL);
		}
		if (round == 1)
			memory = extmap_memory(&m);
		extmap_set(&m, 0, UINT64_MAX, round, count_part, &cut);
		/* what was between them is of the first round then */
		ok_int(cut, round * N, "one range over all extents");
		ok_int(m.nr, 1, "leaves one");
		ok_int(m.nr_leaves, 1, "in one leaf");
	}
	ok(memory > (size_t)N * 32 && memory < (size_t)N * 64,
	   "%d extents and gaps took %zu bytes", N, memory);
	ok_int(extmap_memory(&m), memory, "which were used again");
	extmap_free(&m);
}

int main(void)
{
	borders();
	random_ranges(0, 20000, 4);
	random_ranges(1ULL << 40, 20000, 12);
	random_ranges(UINT64_MAX - SPAN, 20000, 4);
	splits();
	ascending();
	drops();
	swallow();
	return tap_end();
}
