// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/ddmin.c: the smallest set is found wherever it is, what is
 * returned does it and no part of it does, and few questions are asked.
 */

#define _GNU_SOURCE
#include <stdlib.h>

#include "../../replay/ddmin.h"
#include "../../replay/util.h"
#include "tap.h"

/* What must be in a set: all of @need, or all of @instead */
struct wanted {
	uint64_t	need[4], instead[4];
	size_t		nr, nr_instead;
	unsigned int	asked;
};

static bool has(const uint64_t *set, size_t nr, const uint64_t *need, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < nr; i++)
		for (size_t j = 0; j < n; j++)
			found += set[i] == need[j];
	return found == n;
}

static bool test(const uint64_t *set, size_t nr, void *arg)
{
	struct wanted *w = arg;

	w->asked++;
	for (size_t i = 1; i < nr; i++)
		if (set[i - 1] >= set[i])
			ok(false, "ascending: %" PRIu64 " after %" PRIu64,
			   set[i], set[i - 1]);
	return has(set, nr, w->need, w->nr) ||
	       (w->nr_instead && has(set, nr, w->instead, w->nr_instead));
}

static bool is_minimal(const uint64_t *set, size_t nr, struct wanted *w)
{
	uint64_t part[8];

	if (nr > 8 || !test(set, nr, w))
		return false;
	for (size_t out = 0; out < nr; out++) {
		size_t n = 0;

		for (size_t i = 0; i < nr; i++)
			if (i != out)
				part[n++] = set[i];
		if (n && test(part, n, w))
			return false;
	}
	return true;
}

/* @nr elements from 100 on */
static size_t reduce(size_t nr, struct wanted *w, uint64_t **set)
{
	*set = xcalloc(nr, sizeof(**set));
	for (size_t i = 0; i < nr; i++)
		(*set)[i] = 100 + i;
	w->asked = 0;
	return ddmin(*set, nr, test, w);
}

static void one_of(size_t nr)
{
	unsigned int most = 0;
	bool all = true;

	for (size_t at = 0; at < nr; at++) {
		struct wanted w = { .need = { 100 + at }, .nr = 1 };
		uint64_t *set;
		size_t n = reduce(nr, &w, &set);

		all &= n == 1 && set[0] == 100 + at;
		most = w.asked > most ? w.asked : most;
		free(set);
	}
	ok(all, "one element of %zu, wherever it is", nr);
	ok(most <= 2 * 10, "in 20 questions of the 1,000 at most: %u", most);
}

static void some_of(void)
{
	bool all = true;

	srand(1);
	for (int round = 0; round < 500; round++) {
		size_t nr = 1 + rand() % 60, n;
		struct wanted w = { .nr = 1 + rand() % 4, .nr_instead = rand() % 4 };
		uint64_t *set;

		if (w.nr > nr || w.nr_instead > nr)
			continue;
		for (size_t i = 0; i < 4; i++) {
			/* different ones */
			w.need[i] = 100 + (i * nr / 4 + rand() % (nr / 4 + 1)) % nr;
			w.instead[i] = 100 + (i * nr / 4 + rand() % (nr / 4 + 1)) % nr;
		}
		for (size_t i = 1; i < 4; i++)
			if (w.need[i] <= w.need[i - 1] ||
			    w.instead[i] <= w.instead[i - 1])
				w.nr = w.nr_instead = 1;
		n = reduce(nr, &w, &set);
		if (!is_minimal(set, n, &w)) {
			ok(false, "round %d: %zu of %zu are minimal", round, n, nr);
			all = false;
		}
		free(set);
	}
	ok(all, "up to four elements, or others instead: always minimal");
}

int main(void)
{
	struct wanted w = { .need = { 100 }, .nr = 1 };
	uint64_t *set;

	ok_int(reduce(1, &w, &set), 1, "one element stays");
	ok_int(w.asked, 0, "without a question");
	free(set);
	one_of(2);
	one_of(17);
	one_of(1000);
	some_of();
	return tap_end();
}
