// SPDX-License-Identifier: GPL-2.0-only
/* Choosing the points to replay; see points.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"
#include "util.h"

enum kind { ACK, FLUSH, FUA, MARK, SUSPECTS, NR_KINDS };

static const char *const kinds[NR_KINDS] = {
	"ack", "flush", "fua", "mark", "suspects"
};

static void add(struct points *p, uint64_t entry)
{
	/* grown whenever the count is a power of two */
	if (!(p->nr & (p->nr - 1)))
		p->entry = xrealloc(p->entry, p->nr ? 2 * p->nr : 1,
				    sizeof(*p->entry));
	p->entry[p->nr++] = entry;
}

static int by_entry(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sort_unique(struct points *p)
{
	size_t n = 0;

	if (p->nr)
		qsort(p->entry, p->nr, sizeof(*p->entry), by_entry);
	for (size_t i = 0; i < p->nr; i++)
		if (!n || p->entry[n - 1] != p->entry[i])
			p->entry[n++] = p->entry[i];
	p->nr = n;
}

static int collect(struct points all[NR_KINDS], struct lw_log *log,
		   const struct model *m, const struct audit *a,
		   char *error, size_t size)
{
	struct lw_entry e;
	int ret;

	lw_rewind(log);
	while ((ret = lw_next(log, &e)) == 1 && e.nr <= a->end_entry) {
		if (e.nr < a->begin_entry)
			continue;
		if (e.flags & LW_FLUSH)
			add(&all[FLUSH], e.nr);
		if (e.flags & LW_FUA)
			add(&all[FUA], e.nr);
		if (e.flags & LW_MARK) {
			struct mark mark;

			add(&all[MARK], e.nr);
			mark_parse(m, e.mark, e.mark_len, &mark);
			if (mark.kind == MARK_ACK)
				add(&all[ACK], e.nr);
		}
	}
	if (ret < 0) {
		snprintf(error, size, "%s", log->error);
		return ret;
	}
	for (size_t i = 0; i < a->nr_losses; i++)
		add(&all[SUSPECTS], a->loss[i].from_entry);
	sort_unique(&all[SUSPECTS]);
	return 0;
}

/* xorshift64*: only has to be the same everywhere for the same seed */
static uint64_t next_random(uint64_t *x)
{
	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return *x * 0x2545f4914f6cdd1dULL;
}

static void take(struct points *p, const struct points *from, uint64_t n,
		 bool sample, uint64_t seed)
{
	uint64_t x = seed * 2 + 1;

	if (n >= from->nr) {
		for (size_t i = 0; i < from->nr; i++)
			add(p, from->entry[i]);
		return;
	}
	if (!sample) {
		/* the middle of each of n equal parts */
		for (uint64_t i = 0; i < n; i++)
			add(p, from->entry[(2 * i + 1) * from->nr / (2 * n)]);
		return;
	}
	/* selection sampling: each of the rest with chance needed / left */
	for (size_t i = 0; n; i++)
		if (next_random(&x) % (from->nr - i) < n) {
			add(p, from->entry[i]);
			n--;
		}
}

static int choose_one(struct points *p, char *word,
		      const struct points all[NR_KINDS], const struct audit *a,
		      bool sample, uint64_t seed, char *error, size_t size)
{
	char *at = strchr(word, '@');
	uint64_t n = UINT64_MAX;
	const char *name = word;

	if (at) {
		*at = '\0';
		name = at + 1;
		if (parse_u64(word, 1, UINT64_MAX, &n)) {
			snprintf(error, size,
				 "points: '%s@%s': '%s' is not a count", word,
				 name, word);
			return -EINVAL;
		}
	}
	for (int k = 0; k < NR_KINDS; k++) {
		if (!strcmp(name, kinds[k])) {
			take(p, &all[k], n, sample, seed);
			return 0;
		}
	}
	if (!at && !parse_u64(word, 0, UINT64_MAX, &n)) {
		if (n < a->begin_entry || n > a->end_entry) {
			snprintf(error, size,
				 "points: entry %llu is not between the run's marks, entries %llu to %llu",
				 (unsigned long long)n,
				 (unsigned long long)a->begin_entry,
				 (unsigned long long)a->end_entry);
			return -EINVAL;
		}
		add(p, n);
		return 0;
	}
	snprintf(error, size,
		 "points: '%s', expected ack, flush, fua, mark, suspects, N@ one of them, or an entry's number",
		 name);
	return -EINVAL;
}

int points_choose(struct points *pts, const char *spec, struct lw_log *log,
		  const struct model *m, const struct audit *a, bool sample,
		  uint64_t seed, char *error, size_t size)
{
	CLEANUP_FREE char *words = xstrdup(spec);
	struct points all[NR_KINDS] = {};
	char *word, *rest = words;
	int ret;

	memset(pts, 0, sizeof(*pts));
	ret = collect(all, log, m, a, error, size);
	while (!ret && (word = strsep(&rest, ",")))
		ret = choose_one(pts, word, all, a, sample, seed, error, size);
	for (int k = 0; k < NR_KINDS; k++)
		free(all[k].entry);
	if (ret) {
		free(pts->entry);
		memset(pts, 0, sizeof(*pts));
		return ret;
	}
	sort_unique(pts);
	return 0;
}
