/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points of any log, as people name them: an entry's number, mark:TEXT, start
 * or end; and lists of them. A point is returned as the number of entries that
 * its state has applied, so 0 is the start.
 */
#ifndef ACKPROOF_PLACES_H
#define ACKPROOF_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "index.h"

struct places {
	uint64_t	*done;		/* ascending, each once */
	size_t		nr, max;
};

/*
 * One point. Returns 0, or -errno with a message in idx->error: -EINVAL for a
 * bad @spec, -ENOENT for what the log does not have, -EBADMSG for the end of a
 * log that is at fault. The index must have LW_INDEX_MARKS.
 */
int places_one(uint64_t *done, const char *spec, struct lw_index *idx,
	       struct lw_log *log);

/*
 * A comma-separated list of points, flush, fua or mark for all entries of that
 * kind, or every:N for each Nth entry. End @p with places_free(), also after a
 * failure.
 */
int places_list(struct places *p, const char *spec, struct lw_index *idx,
		struct lw_log *log);
void places_free(struct places *p);

/* "entry 7" or "start". Returns @name. */
const char *places_name(uint64_t done, char name[32]);

#endif
