// SPDX-License-Identifier: GPL-2.0-only
/*
 * lwlog check: all that is wrong with a log, and what is odd about it. Behind a
 * fault, what the superblock counts says nothing any more: entries are looked
 * for there sector by sector.
 */

#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "le.h"
#include "lwlog.h"
#include "progress.h"

#define CHUNK		(1ULL << 20)	/* bytes searched at once */
#define SEARCH_MAX	(1ULL << 30)	/* and in all, behind one fault */
#define PAGE		4096U		/* a disk's smallest part that is bad */
#define IN_A_ROW	3		/* entries that are no coincidence */

/* The kernel's longest mark: a sector without the header and a last zero */
#define MARK_MAX(unit)	((unit) - sizeof(struct lw_disk_entry) - 1)

struct check {
	struct lwlog	*l;
	struct lw_log	again;		/* the log behind a fault */
	uint8_t		*chunk;
	uint64_t	chunk_off, chunk_len;
	uint64_t	entries, end;	/* read in all, and up to that byte */
	uint64_t	long_marks;
	char		first_long[256];
	bool		ended;		/* the last was the end mark */
	uint64_t	nr_faults, nr_notes;
	json_t		*faults, *notes;
	struct progress	progress;
};

static void see_entry(struct check *c, const struct lw_entry *e)
{
	const uint32_t unit = c->l->log.sectorsize;

	progress_tick(&c->progress, e->header_off);
	c->entries++;
	c->ended = is_end_mark(e);
	if (e->mark_len <= MARK_MAX(unit))
		return;
	if (!c->long_marks++)
		snprintf(c->first_long, sizeof(c->first_long),
			 "entry %llu at byte %llu: a mark of %u bytes, the kernel writes %zu at most",
			 LL(e->nr), LL(e->header_off), e->mark_len,
			 MARK_MAX(unit));
}

/* Notes are of the whole log: without a newline, and without its name. */
__attribute__((format(printf, 2, 3)))
static void note(struct check *c, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->nr_notes++;
	if (c->l->json)
		json_array_append_new(c->notes, json_string(text));
	else
		printf("note: %s: %s\n", c->l->log.path, text);
}

/* @log is at a fault. Returns it as JSON, to be added to. */
static json_t *fault(struct check *c, const struct lw_log *log)
{
	progress_clear(&c->progress);
	c->nr_faults++;
	if (!c->l->json) {
		printf("fault: %s\n", log->error);
		return NULL;
	}
	return json_pack("{s:o, s:o, s:o}", "entry", json_u64(log->next),
			 "offset", json_u64(log->next_off),
			 "message", json_text(log->error));
}

/* Where entries go on behind that fault, and how many; none if @nr is 0. */
static void goes_on(struct check *c, json_t *at, uint64_t off, uint64_t nr)
{
	if (at) {
		json_object_set_new(at, "goes_on",
				    nr ? json_u64(off) : json_null());
		json_object_set_new(at, "entries", json_u64(nr));
		json_array_append_new(c->faults, at);
	} else if (nr) {
		printf("  entries go on at byte %llu: %llu up to byte %llu\n",
		       LL(off), LL(nr), LL(c->again.next_off));
	} else {
		printf("  no entries are found behind it\n");
	}
}

/* The next entry, whatever the superblock counts */
static int next(struct lw_log *log, struct lw_entry *e)
{
	log->looked = true;
	log->nr_entries = log->counted > log->next ? log->counted :
						     log->next + 1;
	return lw_next(log, e);
}

/* Do entries go on here, or is it data that looks like one? */
static bool goes_on_at(struct check *c, uint64_t nr, uint64_t off)
{
	struct lw_log *log = &c->again;
	struct lw_entry e;

	log->how |= LW_HEADERS;
	lw_seek(log, nr, off);
	for (int i = 0; i < IN_A_ROW; i++) {
		if (next(log, &e) != 1)
			return false;
		if (is_end_mark(&e))
			break;
	}
	log->how = c->l->log.how;
	lw_seek(log, nr, off);
	return true;
}

/* What is no header is seen here at least cost. */
static bool may_be_header(const uint8_t *p)
{
	const struct lw_disk_entry *d = (const void *)p;

	return (get_le64(d->flags) || get_le64(d->nr_sectors)) &&
	       !(get_le64(d->flags) & ~(uint64_t)LW_KNOWN_FLAGS);
}

/* The sector at @off, or NULL where it cannot be read */
static const uint8_t *sector(struct check *c, uint64_t off)
{
	const uint64_t left = c->again.src.size - off;
	const uint32_t unit = c->again.sectorsize;
	char why[256];

	if (off >= c->chunk_off && off + unit <= c->chunk_off + c->chunk_len)
		return c->chunk + off - c->chunk_off;
	c->chunk_off = off;
	c->chunk_len = left < CHUNK ? left : CHUNK;
	while (source_peek(&c->again.src, c->chunk, off, c->chunk_len, why,
			   sizeof(why))) {
		if (c->chunk_len == unit) {
			c->chunk_len = 0;
			return NULL;
		}
		/* what cannot be read may be further on */
		c->chunk_len = c->chunk_len / 2 > unit ? c->chunk_len / 2 :
							 unit;
	}
	return c->chunk;
}

/* Where to try again behind a sector that cannot be read */
static uint64_t behind_bad(const struct lw_log *log, uint64_t off)
{
	const struct zst *z = &log->src.zst;
	const uint32_t unit = log->sectorsize;

	off += PAGE;
	if (log->src.packed) {
		const struct zst_frame *f = &z->frame[zst_find(z, off - PAGE)];

		off = f->off + f->len;
	}
	return (off + unit - 1) / unit * unit;
}

/* Look for entries from byte @off on, where number @nr would be. */
static bool find_entries(struct check *c, uint64_t nr, uint64_t off)
{
	const uint32_t unit = c->again.sectorsize;
	const uint64_t size = c->again.src.size;
	const uint64_t until = off > size || size - off < SEARCH_MAX ? size :
							off + SEARCH_MAX;

	while (off + unit <= until) {
		const uint8_t *p = sector(c, off);

		if (p && may_be_header(p) && goes_on_at(c, nr, off))
			return true;
		off = p ? off + unit : behind_bad(&c->again, off);
		progress_tick(&c->progress, off);
	}
	return false;
}

/* Zeros or nothing: here a log may well end that is not counted. */
static bool may_end(struct lw_log *log)
{
	static const uint8_t zeros[sizeof(struct lw_disk_entry)];
	uint8_t header[sizeof(zeros)];
	uint64_t len = log->src.size - log->next_off;
	char why[256];

	if (len > sizeof(header))
		len = sizeof(header);
	return !source_peek(&log->src, header, log->next_off, len, why,
			    sizeof(why)) && !memcmp(header, zeros, len);
}

static void open_again(struct check *c)
{
	if (lw_open(&c->again, c->l->log.path, c->l->log.how | LW_SALVAGE))
		die(EXIT_LOSS, "%s", c->again.error);
	c->again.how = c->l->log.how;
	c->chunk = xcalloc(CHUNK, 1);
}

/* Read what has been found up to its end, or to the next fault: as lw_next() */
static int read_on(struct check *c)
{
	struct lw_entry e;
	int ret = 1;

	while (ret == 1 && !c->ended && !may_end(&c->again)) {
		ret = next(&c->again, &e);
		if (ret == 1)
			see_entry(c, &e);
	}
	c->end = c->again.next_off;
	return ret;
}

/*
 * The log is at its first fault. An entry that cannot be read counts as one,
 * whatever was lost with it.
 */
static void look_behind(struct check *c)
{
	const struct lw_log *log = &c->l->log;
	int ret = -1;

	open_again(c);
	while (ret < 0) {
		json_t *at = fault(c, log);
		uint64_t nr = log->next + 1;
		uint64_t off = log->next_off + log->sectorsize;

		if (!find_entries(c, nr, off)) {
			goes_on(c, at, 0, 0);
			return;
		}
		log = &c->again;
		off = log->next_off;
		ret = read_on(c);
		goes_on(c, at, off, log->next - nr);
	}
}

static void print_result(struct check *c)
{
	const struct lw_log *log = &c->l->log;

	if (!c->l->json) {
		printf("%s: %llu entries up to byte %llu, %llu faults, %llu notes\n",
		       log->path, LL(c->entries), LL(c->end),
		       LL(c->nr_faults), LL(c->nr_notes));
		return;
	}
	tell_note(c->l);
	print_json(json_pack("{s:o, s:o, s:b, s:o, s:O, s:O}",
			     "entries", json_u64(c->entries),
			     "end", json_u64(c->end), "clean_end", c->ended,
			     "note", json_text(log->note), "faults", c->faults,
			     "notes", c->notes), JSON_INDENT(1));
}

static void take_notes(struct check *c)
{
	const struct lw_log *log = &c->l->log;
	const size_t prefix = strlen(log->path) + strlen(": ");

	/* which begins with the log's name, if it is not cut */
	if (log->note[0] && strlen(log->note) > prefix)
		note(c, "%s", log->note + prefix);
	if (c->long_marks)
		note(c, "%s%s", c->first_long,
		     c->long_marks > 1 ? ", and others are too long, too" : "");
	if (!c->ended)
		note(c, "the last entry is not the mark %s: the target was not removed before the log was taken, or the log is cut",
		     LW_END_MARK);
}

static int run(struct lwlog *l, int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS, {} };
	struct check c = { .l = l };
	struct lw_log *log = &l->log;
	struct lw_entry e;
	int o, ret;

	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1)
		common_option(l, o);
	open_only(l, argc, argv, 0);
	/* a fault is what is looked for; of a packed log, in the data as well */
	log->how = log->src.packed ? 0 : LW_HEADERS;
	c.faults = json_array();
	c.notes = json_array();
	progress_start(&c.progress, "byte", log->src.size);
	while ((ret = lw_next(log, &e)) == 1)
		see_entry(&c, &e);
	c.end = log->next_off;
	if (ret < 0)
		look_behind(&c);
	progress_clear(&c.progress);
	take_notes(&c);
	print_result(&c);
	if (c.chunk)
		lw_close(&c.again);
	free(c.chunk);
	json_decref(c.faults);
	json_decref(c.notes);
	return c.nr_faults ? EXIT_LOSS : EXIT_OK;
}

const struct command command_check = {
	.name = "check",
	.usage = "check [OPTION]... LOG\n"
		 "  Look for faults in a log, and for entries behind them.\n",
	.run = run,
};
