// SPDX-License-Identifier: GPL-2.0-only
/* Delta debugging; see ddmin.h. */

#include <string.h>

#include "ddmin.h"
#include "util.h"

/* Part @i of @parts of @nr elements: where it begins; it ends where the next does */
static size_t part(size_t nr, size_t parts, size_t i)
{
	return nr * i / parts;
}

/* Copy all of @set but elements @from up to @until. */
static size_t without(uint64_t *to, const uint64_t *set, size_t nr, size_t from,
		      size_t until)
{
	memcpy(to, set, from * sizeof(*set));
	memcpy(to + from, set + until, (nr - until) * sizeof(*set));
	return nr - (until - from);
}

size_t ddmin(uint64_t *set, size_t nr, ddmin_test *test, void *arg)
{
	CLEANUP_FREE uint64_t *rest = xcalloc(nr, sizeof(*rest));
	size_t parts = 2;

	while (nr > 1) {
		bool reduced = false;

		/* two parts are each other's rest: that is tried below */
		for (size_t i = 0; i < parts && parts > 2; i++) {
			size_t from = part(nr, parts, i);
			size_t n = part(nr, parts, i + 1) - from;

			if (!test(set + from, n, arg))
				continue;
			memmove(set, set + from, n * sizeof(*set));
			nr = n;
			parts = 2;
			reduced = true;
			break;
		}
		for (size_t i = 0; i < parts && !reduced; i++) {
			size_t n = without(rest, set, nr, part(nr, parts, i),
					   part(nr, parts, i + 1));

			if (!test(rest, n, arg))
				continue;
			memcpy(set, rest, n * sizeof(*set));
			nr = n;
			parts = parts > 3 ? parts - 1 : 2;
			reduced = true;
		}
		if (reduced)
			continue;
		if (parts == nr)
			break;
		parts = parts * 2 < nr ? parts * 2 : nr;
	}
	return nr;
}
