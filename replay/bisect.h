/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The search for bad points among many, with few checks. Badness need not be
 * monotonic: a window of bad points may heal again. So a search that checks
 * less than all of them proves only what it has looked at, and the result keeps
 * apart what was proven and what was only sampled.
 *
 * Here are no logs and no devices: points are numbers from 0 on.
 */
#ifndef ACKPROOF_BISECT_H
#define ACKPROOF_BISECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check.h"

enum {
	BISECT_BUDGET = 60,	/* checks, where nobody says how many */
	BISECT_NEAR = 8,	/* points next to the first bad one that are
				 * checked without a gap */
};

/*
 * Check @point: an enum check_verdict, where CHECK_CANNOT tells nothing about
 * the point, or a negative number, which ends the search.
 */
typedef int bisect_check(uint64_t point, void *arg);

struct bisect_sample {
	uint64_t	point;
	enum check_verdict verdict;
};

/*
 * Points in a row of which all that told something told the same. The next one
 * of the list tells the opposite.
 */
struct bisect_stretch {
	bool		bad;
	uint64_t	first, last;	/* checked; nothing beyond was, up to
					 * the neighbouring stretch's */
	uint64_t	checked;	/* points from first to last that told */
	uint64_t	gap, gap_first;	/* in there, the most in a row that did
					 * not, and the first of them */
};

struct bisect {
	/* for the caller to set; nothing is copied */
	uint64_t	nr;		/* points */
	uint64_t	budget;		/* checks, at most */
	const uint64_t	*suspect;	/* points that may differ from the one
					 * before; the most interesting first,
					 * and where a window may begin before
					 * where it may end */
	size_t		nr_suspects;
	bisect_check	*check;
	void		*arg;

	/* results */
	struct bisect_sample *sample;	/* all that was checked, ascending */
	size_t		nr_samples;
	uint64_t	cannot;		/* of these, could not tell */
	struct bisect_stretch *stretch;	/* ascending, good and bad in turn */
	size_t		nr_stretches;

	/* private */
	size_t		max_samples, next_suspect;
};

/*
 * Search, and fill in the results. No point is checked twice. In this order, as
 * far as the budget goes, and from the top again after each check:
 *
 *   both ends
 *   each suspect and the point before it, for half of the budget, and always the
 *   one that follows one where a window has begun
 *   a coarse grid
 *   the first edge between good and bad points, until its two sides are neighbours
 *   the points directly before the first bad one
 *   the other edges likewise
 *   both sides of the first bad point: first the nearest, then farther and farther
 *   the other suspects
 *   the middle of the widest gap
 *
 * Returns 0, or what the check has returned, if negative. Both ways bisect_free()
 * ends it.
 */
int bisect_run(struct bisect *b);
void bisect_free(struct bisect *b);

bool bisect_is_checked(const struct bisect *b, uint64_t point);

/* The first point that may be of stretch @i, for all that is known. */
static inline uint64_t bisect_from(const struct bisect *b, size_t i)
{
	return i ? b->stretch[i - 1].last + 1 : 0;
}

/* And the last one. */
static inline uint64_t bisect_until(const struct bisect *b, size_t i)
{
	return i + 1 < b->nr_stretches ? b->stretch[i + 1].first - 1 :
					 b->nr - 1;
}

/* The first bad stretch's index, or nr_stretches if there is none. */
size_t bisect_first_bad(const struct bisect *b);

/* Points in a row up to the first bad stretch that were checked: all good. */
uint64_t bisect_good_before(const struct bisect *b);

#endif
