/* SPDX-License-Identifier: GPL-2.0-only */
/* How far and how long still: one line on a terminal, silence elsewhere. */
#ifndef ACKPROOF_PROGRESS_H
#define ACKPROOF_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char	*what;		/* of which there are @total */
	uint64_t	total;
	double		start, last;	/* seconds: begun, last shown */
	bool		terminal, shown;
};

/* @what is not copied. Nothing is shown in the first second. */
void progress_start(struct progress *p, const char *what, uint64_t total);

/* @done of them; cheap enough for every call of a loop over entries. */
void progress_tick(struct progress *p, uint64_t done);

/* Wipe the line, for other output or at the end. */
void progress_clear(struct progress *p);

#endif
