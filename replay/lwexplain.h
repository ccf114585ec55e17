/* SPDX-License-Identifier: GPL-2.0-only */
/* What lwexplain's forms of output share: each is a file. */
#ifndef ACKPROOF_LWEXPLAIN_H
#define ACKPROOF_LWEXPLAIN_H

#include <jansson.h>

#include "explain.h"

struct report {
	const struct explain	*x;
	const struct explanation *e;
	const char		*capture;	/* its folder */
	json_t			*minimal;	/* or NULL */
	char			*token;		/* see audit_token() */
};

void print_text(const struct report *r);
void print_json(const struct report *r);
void print_gnuplot(const struct report *r);

/* Why the block is lost, as sentences, for the caller to free */
char *cause_text(const struct report *r);

/* "writer 3", or "kworker/0:1-21": who submitted the bio; the same */
char *submitter(const struct report *r, const struct trace_bio *b);

/* Milliseconds from the ack's mark to @us */
double since_ack(const struct report *r, uint64_t us);

#endif
