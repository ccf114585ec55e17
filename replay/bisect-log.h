/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A log's states as the points of a search, and the report of what was found.
 *
 * An entry that writes nothing leaves the state as it is, so the entries up to
 * the next one that writes are one point: they are good or bad together.
 */
#ifndef ACKPROOF_BISECT_LOG_H
#define ACKPROOF_BISECT_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bisect.h"
#include "index.h"

struct bisect_log {
	struct bisect	b;
	uint64_t	*entry;		/* of each point, the first one */
	uint64_t	last;		/* the last entry of the last point */
	bool		chosen;		/* these entries only: a point is one */
	uint64_t	*suspect;	/* points, what b.suspect is */

	/* for the report, not copied */
	const char	*what;		/* what was checked */
	const char	*path;		/* of which log or capture */
	const char	*command;	/* to see a bad state again: what comes
					 * before its entry's number */
	const char	*command_end;	/* and what behind it */
	const char	*more;		/* another line, or NULL */
	json_t		*more_json;	/* other keys, or NULL */
};

/*
 * The points are all states of the entries from @from to @to: each entry that
 * writes or that has any of @flags begins one.
 */
void bisect_log_states(struct bisect_log *l, const struct lw_index *idx,
		       uint64_t from, uint64_t to, uint64_t flags);

/* The points are the @nr entries of @entry, ascending. At least one. */
void bisect_log_chosen(struct bisect_log *l, const uint64_t *entry, size_t nr);

/*
 * At entry @entry something may go wrong or heal. Those that are added first are
 * checked first.
 */
void bisect_log_suspect(struct bisect_log *l, uint64_t entry);
void bisect_log_free(struct bisect_log *l);

/* Print the report: for people, or as one JSON object. */
void bisect_log_print(const struct bisect_log *l, FILE *out);
void bisect_log_print_json(const struct bisect_log *l, FILE *out);

#endif
