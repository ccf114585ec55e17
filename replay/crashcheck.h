/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of crashcheck share. */
#ifndef ACKPROOF_CRASHCHECK_H
#define ACKPROOF_CRASHCHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "trial.h"

/* Print what the last trial found, as a line of JSON. */
void print_result(const struct trial *t, bool repair);

struct bisect_args {
	const char	*check;		/* loss, mount, repair or builtin */
	const char	*capture;	/* its folder */
	const char	*report;	/* goes there, with .txt and .json */
	uint64_t	budget;
	uint64_t	from, to;	/* entries, UINT64_MAX: the run's own */
};

/* Search the capture's bad states. @t was opened with TRIAL_INDEX. */
void bisect_capture(struct trial *t, const struct bisect_args *args);

#endif
