// SPDX-License-Identifier: GPL-2.0-only
/* The search for bad points; see bisect.h. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "bisect.h"
#include "util.h"

#define NONE	UINT64_MAX

enum {
	GRID = 8,	/* no gap is wider than this part of all points */
	FAR = 64,	/* where the neighbourhood ends: a part of all points */
};

/* The first sample at @point or behind it */
static size_t find(const struct bisect *b, uint64_t point)
{
	size_t low = 0, high = b->nr_samples;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (b->sample[mid].point < point)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool bisect_is_checked(const struct bisect *b, uint64_t point)
{
	size_t i = find(b, point);

	return i < b->nr_samples && b->sample[i].point == point;
}

static int check(struct bisect *b, uint64_t point)
{
	int verdict = b->check(point, b->arg);
	size_t i = find(b, point);

	if (verdict < 0)
		return verdict;
	if (b->nr_samples == b->max_samples) {
		b->max_samples = b->max_samples ? 2 * b->max_samples : 64;
		b->sample = xrealloc(b->sample, b->max_samples,
				     sizeof(*b->sample));
	}
	memmove(b->sample + i + 1, b->sample + i,
		(b->nr_samples++ - i) * sizeof(*b->sample));
	b->sample[i] = (struct bisect_sample){ point, verdict };
	b->cannot += verdict == CHECK_CANNOT;
	return 0;
}

/*
 * The middle of the widest gap between samples @from and @to, or NONE if that is
 * not wider than @wider points.
 */
static uint64_t middle(const struct bisect *b, size_t from, size_t to,
		       uint64_t wider)
{
	uint64_t point = NONE;

	for (size_t i = from; i < to; i++) {
		uint64_t start = b->sample[i].point;
		uint64_t gap = b->sample[i + 1].point - start - 1;

		if (gap <= wider)
			continue;
		wider = gap;
		point = start + 1 + (gap - 1) / 2;
	}
	return point;
}

static uint64_t next_end(const struct bisect *b)
{
	return !bisect_is_checked(b, 0) ? 0 :
	       !bisect_is_checked(b, b->nr - 1) ? b->nr - 1 : NONE;
}

static uint64_t next_suspect(struct bisect *b)
{
	for (; b->next_suspect < b->nr_suspects; b->next_suspect++) {
		uint64_t point = b->suspect[b->next_suspect];

		if (point >= b->nr)
			continue;
		if (point && !bisect_is_checked(b, point - 1))
			return point - 1;
		if (!bisect_is_checked(b, point))
			return point;
	}
	return NONE;
}

static bool is_bad(const struct bisect *b, uint64_t point)
{
	size_t i = find(b, point);

	return i < b->nr_samples && b->sample[i].point == point &&
	       b->sample[i].verdict == CHECK_BAD;
}

/* Has the last suspect begun a window? Then the next one may well end it. */
static bool is_in_window(const struct bisect *b)
{
	size_t n = b->next_suspect;

	return n && is_bad(b, b->suspect[n - 1]) &&
	       !(n > 1 && is_bad(b, b->suspect[n - 2]));
}

/*
 * Of the first edge only, or of the first one that is not proven. Those that
 * cannot tell lie between the two sides of an edge.
 */
static uint64_t next_of_edges(const struct bisect *b, bool first)
{
	size_t before = NONE;

	for (size_t i = 0; i < b->nr_samples; i++) {
		enum check_verdict verdict = b->sample[i].verdict;
		uint64_t point;

		if (verdict == CHECK_CANNOT)
			continue;
		if (before != NONE && b->sample[before].verdict != verdict) {
			point = middle(b, before, i, 0);
			if (point != NONE || first)
				return point;
		}
		before = i;
	}
	return NONE;
}

static uint64_t first_bad(const struct bisect *b)
{
	for (size_t i = 0; i < b->nr_samples; i++)
		if (b->sample[i].verdict == CHECK_BAD)
			return b->sample[i].point;
	return NONE;
}

/* Before the first bad one, which they may refute */
static uint64_t next_before(const struct bisect *b)
{
	uint64_t bad = first_bad(b);

	for (uint64_t d = 1; bad != NONE && d <= BISECT_NEAR && d <= bad; d++)
		if (!bisect_is_checked(b, bad - d))
			return bad - d;
	return NONE;
}

static uint64_t next_around(const struct bisect *b)
{
	uint64_t bad = first_bad(b), far = b->nr / FAR;

	if (bad == NONE)
		return NONE;
	for (uint64_t d = 1; d <= BISECT_NEAR || d <= far;
	     d += d < BISECT_NEAR ? 1 : d) {
		if (d <= bad && !bisect_is_checked(b, bad - d))
			return bad - d;
		if (d < b->nr - bad && !bisect_is_checked(b, bad + d))
			return bad + d;
	}
	return NONE;
}

static uint64_t choose(struct bisect *b)
{
	const size_t last = b->nr_samples ? b->nr_samples - 1 : 0;
	const uint64_t suspect = next_suspect(b);
	uint64_t point = next_end(b);

	if (point == NONE &&
	    (b->nr_samples < b->budget / 2 || is_in_window(b)))
		point = suspect;
	if (point == NONE)
		point = middle(b, 0, last, b->nr / GRID);
	if (point == NONE)
		point = next_of_edges(b, true);
	if (point == NONE)
		point = next_before(b);
	if (point == NONE)
		point = next_of_edges(b, false);
	if (point == NONE)
		point = next_around(b);
	if (point == NONE)
		point = suspect;
	if (point == NONE)
		point = middle(b, 0, last, 0);
	return point;
}

static void note_gap(struct bisect_stretch *s, uint64_t first, uint64_t end)
{
	if (end - first > s->gap) {
		s->gap = end - first;
		s->gap_first = first;
	}
}

static void find_stretches(struct bisect *b)
{
	struct bisect_stretch *s = NULL;

	b->stretch = xcalloc(b->nr_samples, sizeof(*b->stretch));
	for (size_t i = 0; i < b->nr_samples; i++) {
		uint64_t point = b->sample[i].point;
		bool bad = b->sample[i].verdict == CHECK_BAD;

		if (b->sample[i].verdict == CHECK_CANNOT)
			continue;
		if (s && s->bad == bad) {
			note_gap(s, s->last + 1, point);
		} else {
			s = &b->stretch[b->nr_stretches++];
			s->bad = bad;
			s->first = point;
		}
		s->last = point;
		s->checked++;
	}
}

int bisect_run(struct bisect *b)
{
	uint64_t point;
	int ret = 0;

	if (b->budget >= b->nr) {	/* all, and in the cheapest order */
		for (point = 0; point < b->nr && !ret; point++)
			ret = check(b, point);
	}
	while (!ret && b->nr_samples < b->budget) {
		point = choose(b);
		if (point == NONE)
			break;
		ret = check(b, point);
	}
	if (!ret)
		find_stretches(b);
	return ret;
}

void bisect_free(struct bisect *b)
{
	free(b->sample);
	free(b->stretch);
	b->sample = NULL;
	b->stretch = NULL;
	b->nr_samples = b->max_samples = b->nr_stretches = 0;
}

size_t bisect_first_bad(const struct bisect *b)
{
	size_t i = 0;

	while (i < b->nr_stretches && !b->stretch[i].bad)
		i++;
	return i;
}

uint64_t bisect_good_before(const struct bisect *b)
{
	size_t i = bisect_first_bad(b), k;
	uint64_t n = 0;

	if (i == b->nr_stretches)
		return 0;
	k = find(b, b->stretch[i].first);
	while (k-- && b->sample[k].verdict == CHECK_GOOD &&
	       b->sample[k].point + n + 1 == b->stretch[i].first)
		n++;
	return n;
}
