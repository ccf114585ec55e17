// SPDX-License-Identifier: GPL-2.0-only
/* lwlog stat: what is in a log, counted. */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwlog.h"
#include "progress.h"

/* Places and lengths on the device are in sectors: so they fit, and add up. */
struct sum {
	uint64_t	size, sectorsize, counted;
	uint64_t	entries, writes, flushes, fuas, discards, marks, metadata;
	uint64_t	data;			/* bytes */
	uint64_t	discarded;
	uint64_t	written_end, discarded_end;
	uint64_t	used;			/* bytes of the log */
	uint64_t	first, last;		/* marks, if there are any */
	char		*first_mark, *last_mark;
	bool		clean;
};

static const struct row {
	const char	*text, *key;
	size_t		offset;
	bool		sectors;
} rows[] = {
	{ "size", "size", offsetof(struct sum, size) },
	{ "sector size", "sector_size", offsetof(struct sum, sectorsize) },
	{ "superblock counts", "counted", offsetof(struct sum, counted) },
	{ "entries", "entries", offsetof(struct sum, entries) },
	{ "writes", "writes", offsetof(struct sum, writes) },
	{ "flushes", "flushes", offsetof(struct sum, flushes) },
	{ "FUA", "fua", offsetof(struct sum, fuas) },
	{ "discards", "discards", offsetof(struct sum, discards) },
	{ "marks", "marks", offsetof(struct sum, marks) },
	{ "metadata", "metadata", offsetof(struct sum, metadata) },
	{ "data", "data_bytes", offsetof(struct sum, data) },
	{ "discarded", "discarded_sectors", offsetof(struct sum, discarded),
	  true },
	{ "written up to", "written_end_sector",
	  offsetof(struct sum, written_end), true },
	{ "discarded up to", "discarded_end_sector",
	  offsetof(struct sum, discarded_end), true },
	{ "used up to", "used", offsetof(struct sum, used) },
};

static uint64_t value(const struct sum *s, const struct row *r)
{
	return *(const uint64_t *)((const char *)s + r->offset);
}

static void raise_to(uint64_t *max, uint64_t v)
{
	if (v > *max)
		*max = v;
}

static void add_mark(struct sum *s, const struct lw_entry *e)
{
	char *text = xstrdup(printable(e->mark, e->mark_len));

	if (!s->marks++) {
		s->first_mark = xstrdup(text);
		s->first = e->nr;
	}
	free(s->last_mark);
	s->last_mark = text;
	s->last = e->nr;
}

static void add_entry(struct sum *s, const struct lw_entry *e)
{
	const uint64_t sectors = e->len / s->sectorsize;
	const uint64_t end = e->off / s->sectorsize + sectors;

	s->entries++;
	s->flushes += !!(e->flags & LW_FLUSH);
	s->fuas += !!(e->flags & LW_FUA);
	s->discards += !!(e->flags & LW_DISCARD);
	s->metadata += !!(e->flags & LW_METADATA);
	s->writes += is_plain_write(e);
	if (e->flags & LW_MARK)
		add_mark(s, e);
	if (e->flags & LW_DISCARD) {
		/* each fits, all of a log that is made up need not */
		s->discarded += sectors;
		if (s->discarded > INT64_MAX)
			s->discarded = INT64_MAX;
		raise_to(&s->discarded_end, end);
	} else if (e->len) {
		s->data += e->len;
		raise_to(&s->written_end, end);
	}
	s->clean = is_end_mark(e);
}

static json_t *mark_json(uint64_t entry, const char *text)
{
	return json_pack("{s:o, s:s}", "entry", json_u64(entry), "text", text);
}

static json_t *sum_json(const struct sum *s)
{
	json_t *o = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		json_object_set_new(o, rows[i].key,
				    json_u64(value(s, &rows[i])));
	json_object_set_new(o, "first_mark", s->marks ?
			    mark_json(s->first, s->first_mark) : json_null());
	json_object_set_new(o, "last_mark", s->marks ?
			    mark_json(s->last, s->last_mark) : json_null());
	json_object_set_new(o, "clean_end", json_boolean(s->clean));
	return o;
}

static void print_sum(const struct sum *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint64_t v = value(s, &rows[i]);
		uint64_t bytes;

		printf("%-17s  %llu", rows[i].text, LL(v));
		if (rows[i].sectors &&
		    !__builtin_mul_overflow(v, s->sectorsize, &bytes))
			printf(" sectors, %llu bytes", LL(bytes));
		else if (rows[i].sectors)
			printf(" sectors");
		putchar('\n');
	}
	if (s->marks) {
		printf("%-17s  %llu: %s\n", "first mark", LL(s->first),
		       s->first_mark);
		printf("%-17s  %llu: %s\n", "last mark", LL(s->last),
		       s->last_mark);
	}
	printf("%-17s  %s\n", "clean end", s->clean ? "yes" : "no");
}

static int run(struct lwlog *l, int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS, {} };
	struct lw_log *log = &l->log;
	struct sum s = {};
	struct progress p;
	struct lw_entry e;
	int c, ret;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1)
		common_option(l, c);
	open_only(l, argc, argv, LW_HEADERS);
	s.size = log->src.size;
	s.sectorsize = log->sectorsize;
	s.counted = log->counted;
	progress_start(&p, "entry", log->counted);
	while ((ret = lw_next(log, &e)) == 1) {
		progress_tick(&p, e.nr);
		add_entry(&s, &e);
	}
	progress_clear(&p);
	s.used = log->next_off;
	if (l->json) {
		json_t *o = sum_json(&s);

		json_object_set_new(o, "note", json_text(log->note));
		json_object_set_new(o, "fault",
				    json_text(ret < 0 ? log->error : ""));
		print_json(o, JSON_INDENT(1));
	} else {
		print_sum(&s);
	}
	free(s.first_mark);
	free(s.last_mark);
	return tell_end(l, ret);
}

const struct command command_stat = {
	.name = "stat",
	.usage = "stat [OPTION]... LOG\n"
		 "  Sum up a log: how much of what is in it, and how it ends.\n",
	.run = run,
};
