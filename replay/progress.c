// SPDX-License-Identifier: GPL-2.0-only
/* Progress on a terminal; see progress.h. */

#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "progress.h"
#include "util.h"

void progress_start(struct progress *p, const char *what, uint64_t total)
{
	*p = (struct progress){
		.what = what,
		.total = total,
		.start = now(),
		.terminal = isatty(STDERR_FILENO),
	};
	p->last = p->start;
}

void progress_tick(struct progress *p, uint64_t done)
{
	double t;

	if (!p->terminal)
		return;
	t = now();
	if (t - p->last < 1)
		return;
	p->last = t;
	p->shown = true;
	fprintf(stderr, "\r\033[K%s %llu of %llu", p->what,
		(unsigned long long)done, (unsigned long long)p->total);
	if (done && done <= p->total)
		fprintf(stderr, ", %llu %%, %.0f s left",
			(unsigned long long)(100 * done / p->total),
			(t - p->start) * (p->total - done) / done);
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
