// SPDX-License-Identifier: GPL-2.0-only
/* Which entries of a log are meant; see lwlog-filter.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwlog-filter.h"
#include "lwlog.h"
#include "places.h"

/* The options */

static void parse_point(struct point *p, const char *opt, const char *spec)
{
	p->spec = spec;
	if (!strcmp(spec, "start")) {
		p->kind = POINT_START;
	} else if (!strcmp(spec, "end")) {
		p->kind = POINT_END;
	} else if (!strncmp(spec, "mark:", 5)) {
		p->kind = POINT_MARK;
		p->text = spec + 5;
	} else if (!parse_u64(spec, 0, UINT64_MAX - 1, &p->nr)) {
		p->kind = POINT_NUMBER;
	} else {
		die(EXIT_USAGE,
		    "%s: '%s', expected an entry's number, mark:TEXT, start or end",
		    opt, spec);
	}
}

static void parse_flag(struct filter *f, const char *word)
{
	static const struct {
		const char	*name;
		uint64_t	flag;
	} flags[] = {
		{ "flush", LW_FLUSH }, { "fua", LW_FUA },
		{ "discard", LW_DISCARD }, { "mark", LW_MARK },
		{ "metadata", LW_METADATA }, { "write", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		if (strcmp(word, flags[i].name))
			continue;
		f->flags |= flags[i].flag;
		f->writes |= !flags[i].flag;
		return;
	}
	die(EXIT_USAGE,
	    "--flags: '%s', expected flush, fua, discard, mark, metadata or write",
	    word);
}

static void parse_flags(struct filter *f, const char *list)
{
	CLEANUP_FREE char *words = xstrdup(list);
	char *word, *rest = words;

	while ((word = strsep(&rest, ",")))
		parse_flag(f, word);
}

static void parse_sectors(struct filter *f, const char *range)
{
	CLEANUP_FREE char *first = xstrdup(range);
	char *last = first;

	strsep(&last, "-");
	f->by_sector = true;
	if (parse_u64(first, 0, UINT64_MAX, &f->first_sector) ||
	    parse_u64(last ? last : first, 0, UINT64_MAX, &f->last_sector) ||
	    f->first_sector > f->last_sector)
		die(EXIT_USAGE, "--sectors: '%s', expected A or A-B", range);
}

bool filter_option(struct filter *f, int c, const char *arg)
{
	switch (c) {
	case OPT_FROM:
		parse_point(&f->from, "--from", arg);
		break;
	case OPT_TO:
		parse_point(&f->to, "--to", arg);
		f->has_to = true;
		break;
	case OPT_FLAGS:
		parse_flags(f, arg);
		break;
	case OPT_MARK:
		f->mark = arg;
		f->literal = !strpbrk(arg, "*?[\\");
		break;
	case OPT_SECTORS:
		parse_sectors(f, arg);
		break;
	default:
		return false;
	}
	return true;
}

void filter_entry(struct filter *f, const char *arg)
{
	uint64_t nr = arg_u64("--entry", arg, 0, UINT64_MAX - 1);

	f->from = f->to = (struct point){ .kind = POINT_NUMBER, .nr = nr };
	f->has_to = true;
}

/* What it selects */

static bool like_mark(const struct filter *f, const struct lw_entry *e)
{
	CLEANUP_FREE char *text = NULL;

	if (!(e->flags & LW_MARK))
		return false;
	if (f->literal)
		return lw_is_mark(e, f->mark, strlen(f->mark));
	text = strndup(e->mark, e->mark_len);
	if (!text)
		die(EXIT_CANNOT, "out of memory");
	return !fnmatch(f->mark, text, 0);
}

static bool has_flags(const struct filter *f, const struct lw_entry *e)
{
	return e->flags & f->flags || (f->writes && is_plain_write(e));
}

static bool touches(const struct filter *f, const struct lw_entry *e,
		    uint32_t unit)
{
	uint64_t first = e->off / unit, nr = e->len / unit;

	return nr && first <= f->last_sector &&
	       first + nr - 1 >= f->first_sector;
}

static bool selects(const struct filter *f, const struct lw_entry *e,
		    uint32_t unit)
{
	return (!(f->flags || f->writes) || has_flags(f, e)) &&
	       (!f->mark || like_mark(f, e)) &&
	       (!f->by_sector || touches(f, e, unit));
}

/* Going through them */

__attribute__((format(printf, 3, 4)))
static int fail(struct scan *s, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->error, sizeof(s->error), fmt, ap);
	va_end(ap);
	s->status = status;
	return -1;
}

static int backwards(struct scan *s)
{
	s->no_point = true;
	return fail(s, EXIT_USAGE, "%s: --to is before --from", s->log->path);
}

/* The log has no such point: what is said is what places_one() says. */
static int missing(struct scan *s, const struct point *p)
{
	s->no_point = true;
	if (p->kind == POINT_MARK)
		return fail(s, EXIT_LOSS, "%s: no mark '%s' in %llu entries",
			    s->log->path, p->text, LL(s->log->nr_entries));
	return fail(s, EXIT_LOSS, "%s: no entry %llu, the log has %llu",
		    s->log->path, LL(p->nr), LL(s->log->nr_entries));
}

/* The end is not known before it is there. */
static bool is_point(const struct point *p, const struct lw_entry *e)
{
	switch (p->kind) {
	case POINT_START:
		return !e->nr;
	case POINT_NUMBER:
		return e->nr == p->nr;
	case POINT_MARK:
		return lw_is_mark(e, p->text, strlen(p->text));
	default:
		return false;
	}
}

/* A point that a log need not have */
static bool named(const struct point *p)
{
	return p->kind == POINT_NUMBER || p->kind == POINT_MARK;
}

/* The log's end was met. Returns 1 if its last entry is where to start. */
static int at_end(struct scan *s)
{
	const struct filter *f = s->f;
	const uint64_t nr = s->log->nr_entries;

	s->ended = true;
	if (!s->started && named(&f->from))
		return missing(s, &f->from);
	if (f->has_to && s->to_nr == LW_NONE && named(&f->to))
		return missing(s, &f->to);
	if (s->started || !nr)
		return 0;
	if (s->to_nr != LW_NONE && s->to_nr != nr - 1)
		return backwards(s);
	s->started = true;
	lw_seek(s->log, nr - 1, s->last_off);
	return 1;
}

/* Without an index, all entries from the first on are read. */
static int read_on(struct scan *s, struct lw_entry *e)
{
	const struct filter *f = s->f;
	int ret;

	while (!s->ended && (ret = lw_next(s->log, e)) == 1) {
		s->last_off = e->header_off;
		if (f->has_to && s->to_nr == LW_NONE && is_point(&f->to, e))
			s->to_nr = e->nr;
		if (!s->started)
			s->started = is_point(&f->from, e);
		if (s->started) {
			s->ended = s->to_nr == e->nr;
			return 1;
		}
		if (s->to_nr == e->nr && f->from.kind != POINT_END)
			return backwards(s);
	}
	if (s->ended)
		return 0;
	if (ret < 0)
		return fail(s, EXIT_LOSS, "%s", s->log->error);
	ret = at_end(s);
	return ret == 1 ? lw_next(s->log, e) : ret;
}

static int index_failed(struct scan *s)
{
	s->stale = true;
	return fail(s, EXIT_LOSS, "%s", s->idx->error);
}

/* The number of an entry that may be selected, as far as the index tells */
static int candidate(struct scan *s, uint64_t *nr)
{
	const struct filter *f = s->f;

	*nr = s->next;
	if (f->mark && f->literal)
		return lw_index_mark(s->idx, s->log, f->mark, strlen(f->mark),
				     s->next, nr);
	if (f->flags && !f->writes)
		*nr = lw_index_flags(s->idx, f->flags, s->next);
	return 0;
}

static int read_by_index(struct scan *s, struct lw_entry *e)
{
	uint64_t nr;

	if (candidate(s, &nr))
		return index_failed(s);
	if (nr <= s->last && nr < s->idx->nr) {
		s->next = nr + 1;
		return lw_index_read(s->idx, s->log, nr, e) == 1 ? 1 :
		       index_failed(s);
	}
	if (s->idx->fault[0] && s->last >= s->idx->nr)
		return fail(s, EXIT_LOSS, "%s", s->idx->fault);
	return 0;
}

/* A point by the index, which counts the entries up to it. */
static int find_point(struct scan *s, const struct point *p, uint64_t *nr)
{
	CLEANUP_FREE char *spec = p->spec ? NULL : xasprintf("%llu", LL(p->nr));
	uint64_t done;
	int ret = places_one(&done, p->spec ? p->spec : spec, s->idx, s->log);

	if (ret && ret != -ENOENT && ret != -EBADMSG)
		s->stale = true;
	if (ret)
		return fail(s, EXIT_LOSS, "%s", s->idx->error);
	*nr = done ? done - 1 : 0;
	return 0;
}

int scan_start(struct scan *s, const struct filter *f, struct lw_log *log,
	       struct lw_index *idx)
{
	*s = (struct scan){
		.f = f, .log = log, .idx = idx,
		.last = LW_NONE, .to_nr = LW_NONE,
	};
	if (!idx)
		return 0;
	if (f->from.kind != POINT_START && find_point(s, &f->from, &s->next))
		return -1;
	if (f->has_to && f->to.kind != POINT_END &&
	    find_point(s, &f->to, &s->last))
		return -1;
	return s->next > s->last ? backwards(s) : 0;
}

int scan_next(struct scan *s, struct lw_entry *e)
{
	int ret;

	do {
		ret = s->idx ? read_by_index(s, e) : read_on(s, e);
	} while (ret == 1 && !selects(s->f, e, s->log->sectorsize));
	return ret;
}
