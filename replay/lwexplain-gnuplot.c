// SPDX-License-Identifier: GPL-2.0-only
/*
 * lwexplain: a picture of a loss, as commands for gnuplot. Time goes to the right.
 * Each submitter of a flush is a lane, and so is the device with the write in it;
 * flushes are spans, and the ack is a line.
 */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwexplain.h"
#include "util.h"

enum { MAX_LANES = 64 };

struct lanes {
	char	*name[MAX_LANES];
	int	nr;
};

static const struct {
	const char *title, *colour;
} styles[NR_RELATIONS] = {
	[FLUSH_COVERS]	= { "FLUSH that covers the write", "#2ca02c" },
	[FLUSH_FAILED]	= { "FLUSH that failed", "#9467bd" },
	[FLUSH_EARLY]	= { "FLUSH submitted before the write completed", "#d62728" },
	[FLUSH_LATE]	= { "FLUSH completed after the ack", "#ff7f0e" },
	[FLUSH_AFTER]	= { "FLUSH submitted after the ack", "#7f7f7f" },
};

/* The lane of that name, the last one if there are too many */
static int lane(struct lanes *l, const char *name)
{
	for (int i = 0; i < l->nr; i++)
		if (!strcmp(l->name[i], name))
			return i;
	if (l->nr == MAX_LANES)
		return MAX_LANES - 1;
	l->name[l->nr] = xstrdup(name);
	return l->nr++;
}

/* A span that has no end in the trace has none in the picture */
static void print_span(const struct report *r, const struct trace_bio *b, int y,
		       double *first, double *last)
{
	double from = since_ack(r, b->submit_us), until = from;

	if (b->completed != TRACE_NEVER)
		until = since_ack(r, b->complete_us);
	if (from < *first)
		*first = from;
	if (until > *last)
		*last = until;
	printf("%.3f %d %.3f 0\n", from, y, until - from);
}

/* gnuplot reads text in double quotes as it is, but for these */
static void print_quoted(const char *s)
{
	putchar('"');
	for (; *s; s++)
		putchar(strchr("\"\\{}_^@&~", *s) ? ' ' : *s);
	putchar('"');
}

static void print_lanes(const struct lanes *l)
{
	printf("set yrange [-0.7:%d.7]\nset ytics (", l->nr - 1);
	for (int i = 0; i < l->nr; i++) {
		printf(i ? ", " : "");
		print_quoted(l->name[i]);
		printf(" %d", i);
	}
	printf(")\n");
}

void print_gnuplot(const struct report *r)
{
	const struct explanation *e = r->e;
	const struct audit_loss *l = e->loss;
	const struct trace_bio *t = r->x->trace.bio;
	CLEANUP_FREE char *acked = xasprintf("writer %u", l->writer);
	CLEANUP_FREE char *title = NULL;
	const struct trace_bio *b;
	bool shown[NR_RELATIONS] = {};
	struct lanes lanes = {};
	double first = 0, last = 0;

	if (!r->x->traced)
		die(EXIT_USAGE, "%s: without a trace there are no times to plot",
		    r->capture);
	lane(&lanes, "device");
	lane(&lanes, acked);
	printf("$write << END\n");
	for (size_t i = 0; i < e->nr_writes; i++) {
		b = trace_entry(&r->x->trace, e->write[i]);
		if (b && b->submitted != TRACE_NEVER)
			print_span(r, b, 0, &first, &last);
	}
	b = trace_entry(&r->x->trace, e->in_time);
	if (b && b->submitted != TRACE_NEVER)
		print_span(r, b, 0, &first, &last);
	printf("END\n");
	for (int relation = 0; relation < NR_RELATIONS; relation++) {
		printf("$flush%d << END\n", relation);
		for (size_t i = 0; i < e->nr_flushes; i++) {
			const struct explain_flush *f = &e->flush[i];
			CLEANUP_FREE char *who = NULL;

			if ((int)f->relation != relation)
				continue;
			shown[relation] = true;
			who = submitter(r, &t[f->bio]);
			print_span(r, &t[f->bio], lane(&lanes, who), &first,
				   &last);
		}
		printf("END\n");
	}
	title = xasprintf("w%u/f%u block %u: operation %u, %s: %s", l->writer,
			  l->file, l->block, l->op, loss_kind_name(l->kind),
			  explain_cause_name(e->cause));
	printf("set title ");
	print_quoted(title);
	printf("\nset xlabel \"milliseconds from the ack (entry %llu)\"\n",
	       (unsigned long long)l->ack_entry);
	print_lanes(&lanes);
	printf("set xrange [%.3f:%.3f]\n", first - 0.5, last + 0.5);
	printf("set key below\nset grid x\n"
	       "set arrow 1 from 0, graph 0 to 0, graph 1 nohead lw 2 lc rgb \"black\"\n"
	       "set label 1 \"ack\" at 0, graph 1 offset 0.5, -0.7\n"
	       "plot $write using 1:2:3:4 with vectors nohead lw 9 lc rgb \"#1f77b4\" title \"the write, in flight\"");
	for (int i = 0; i < NR_RELATIONS; i++)
		if (shown[i])
			printf(", $flush%d using 1:2:3:4 with vectors nohead lw 6 lc rgb \"%s\" title \"%s\"",
			       i, styles[i].colour, styles[i].title);
	putchar('\n');
	for (int i = 0; i < lanes.nr; i++)
		free(lanes.name[i]);
}
