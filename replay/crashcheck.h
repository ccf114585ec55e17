/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of crashcheck share, and what each does with a trial. */
#ifndef ACKPROOF_CRASHCHECK_H
#define ACKPROOF_CRASHCHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "trial.h"

/* Print what the last trial found, as a line of JSON. */
void print_result(const struct trial *t, bool repair);

/*
 * Read losses from the standard input, a line "POINT WRITER FILE BLOCK ENTRY..."
 * each, and print for each the smallest set of entries after POINT that brings the
 * block back when it is written over the state there. The ENTRYs, if they do, are
 * what is reduced. A line "POINT" is of a state that is not mounted.
 * @t was opened with TRIAL_INDEX.
 */
void crashcheck_minimal(struct trial *t);

struct bisect_args {
	const char	*check;		/* loss, mount, repair or builtin */
	const char	*capture;	/* its folder */
	const char	*report;	/* goes there, with .txt and .json */
	uint64_t	budget;
	uint64_t	from, to;	/* entries, UINT64_MAX: the run's own */
};

/* Search the capture's bad states. @t was opened with TRIAL_INDEX. */
void crashcheck_bisect(struct trial *t, const struct bisect_args *args);

#endif
