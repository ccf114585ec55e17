/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which entries of a log are meant: between two points, by their flags, by a
 * mark's text, by the sectors that they touch. A scan goes through those that a
 * filter selects, in one pass over the log and in constant memory, or by an
 * index of the log.
 */
#ifndef ACKPROOF_LWLOG_FILTER_H
#define ACKPROOF_LWLOG_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "index.h"
#include "log.h"

/* The filters among the options, and their help */
#define FILTER_OPTIONS						\
	{ "from", required_argument, NULL, OPT_FROM },		\
	{ "to", required_argument, NULL, OPT_TO },		\
	{ "flags", required_argument, NULL, OPT_FLAGS },	\
	{ "mark", required_argument, NULL, OPT_MARK },		\
	{ "sectors", required_argument, NULL, OPT_SECTORS }

#define FILTER_USAGE \
	"      --from POINT     from there on: an entry's number, mark:TEXT, start or end\n" \
	"      --to POINT       up to there\n" \
	"      --flags LIST     any of flush, fua, discard, mark, metadata and write: data\n" \
	"                       without any of these but metadata\n" \
	"      --mark PATTERN   marks whose text is like that; *, ? and [ are wildcards\n" \
	"      --sectors A[-B]  what touches sectors A to B of the device\n"

/* An entry. The first mark of a text is meant. */
struct point {
	enum { POINT_START, POINT_END, POINT_NUMBER, POINT_MARK } kind;
	uint64_t	nr;
	const char	*text;
	const char	*spec;		/* all of it, as it was given, or NULL */
};

/* All zeros selects all entries. Strings are the caller's. */
struct filter {
	struct point	from, to;	/* both of them included */
	bool		has_to;
	uint64_t	flags;		/* any of these, if not 0 */
	bool		writes;		/* or a plain write */
	const char	*mark;		/* pattern, or NULL */
	bool		literal;	/* it has no wildcards */
	bool		by_sector;
	uint64_t	first_sector, last_sector;
};

/* Take option @c if it is a filter: a wrong @arg ends with EXIT_USAGE. */
bool filter_option(struct filter *f, int c, const char *arg);

/* The entry of number @arg only */
void filter_entry(struct filter *f, const char *arg);

struct scan {
	const struct filter *f;
	struct lw_log	*log;
	struct lw_index	*idx;		/* or NULL */
	uint64_t	next, last;	/* by index: numbers */
	bool		started, ended;
	uint64_t	to_nr;		/* where --to is, once it is known */
	uint64_t	last_off;	/* of the last header that was read */
	int		status;		/* what to exit with after a failure */
	bool		stale;		/* by the index, it was */
	bool		no_point;	/* as there is no such f->from or to */
	char		error[1024];
};

/*
 * Start at @log's first entry or, with an index that has LW_INDEX_MARKS (and
 * LW_INDEX_ENTRIES, if f->flags is set), at f->from. Returns 0, or -1 with
 * s->error and s->status set.
 */
int scan_start(struct scan *s, const struct filter *f, struct lw_log *log,
	       struct lw_index *idx);

/*
 * The next entry that is selected, as lw_next() has it. Returns 1, 0 after the
 * last, or -1 as scan_start(): also where the log has no f->from or f->to.
 */
int scan_next(struct scan *s, struct lw_entry *e);

#endif
