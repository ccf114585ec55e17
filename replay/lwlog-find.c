// SPDX-License-Identifier: GPL-2.0-only
/*
 * lwlog find: one entry. A kept index makes it cheap, however long the log is;
 * without one, the log is read up to that entry.
 */

#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "lwlog-filter.h"
#include "lwlog.h"
#include "progress.h"

struct find {
	struct lwlog	*l;
	struct filter	filter;
	bool		last;
	struct lw_index	idx;
	struct scan	scan;
	bool		found;
	uint64_t	nr, off;	/* what was found: number, header */
};

/* Is there an index that is to be used? */
static bool has_index(const struct lwlog *l)
{
	CLEANUP_FREE char *beside = lw_index_path(&l->log);

	if (l->salvage)		/* it is of the whole log */
		return false;
	if (!l->index)
		return beside && !access(beside, F_OK);
	if (access(l->index, F_OK))
		die(EXIT_USAGE, "%s: cannot open the index: %m; lwlog index makes it",
		    l->index);
	return true;
}

/* The first or the last that is selected. Returns 0, or -1 as scan_next(). */
static int search(struct find *f, struct lw_index *idx)
{
	struct progress p;
	struct lw_entry e;
	int ret;

	f->found = false;
	if (scan_start(&f->scan, &f->filter, &f->l->log, idx))
		return -1;
	progress_start(&p, "entry", f->l->log.counted);
	while ((ret = scan_next(&f->scan, &e)) == 1) {
		progress_tick(&p, e.nr);
		f->found = true;
		f->nr = e.nr;
		f->off = e.header_off;
		if (!f->last)
			break;
	}
	progress_clear(&p);
	if (f->scan.no_point)
		f->found = false;
	return ret < 0 ? ret : 0;
}

static void open_index(struct find *f, unsigned int need)
{
	if (lw_index_open(&f->idx, &f->l->log, f->l->index, need))
		die(EXIT_LOSS, "%s", f->idx.error);
	if (f->idx.note[0])
		warn("%s", f->idx.note);
}

/*
 * Only what is needed of the index is checked as it is opened. Where it leads
 * astray it is damaged elsewhere: all of it is checked then, or built anew.
 */
static int search_by_index(struct find *f)
{
	int ret;

	open_index(f, LW_INDEX_MARKS |
		      (f->filter.flags ? LW_INDEX_ENTRIES : 0));
	ret = search(f, &f->idx);
	if (ret < 0 && f->scan.stale && f->idx.map) {
		lw_index_close(&f->idx);
		open_index(f, LW_INDEX_ALL);
		ret = search(f, &f->idx);
	}
	lw_index_close(&f->idx);
	return ret;
}

static void print_found(struct find *f)
{
	struct lw_log *log = &f->l->log;
	struct lw_entry e;

	lw_seek(log, f->nr, f->off);
	if (lw_next(log, &e) != 1)
		die(EXIT_LOSS, "%s", log->error);
	print_entry(f->l, &e);
}

static int run(struct lwlog *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "entry", required_argument, NULL, OPT_ENTRY },
		{ "last", no_argument, NULL, OPT_LAST },
		{ "index", required_argument, NULL, OPT_INDEX },
		FILTER_OPTIONS, COMMON_OPTIONS, {}
	};
	struct find f = { .l = l };
	int c, ret;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == OPT_ENTRY)
			filter_entry(&f.filter, optarg);
		else if (c == OPT_LAST)
			f.last = true;
		else if (c == OPT_INDEX)
			l->index = optarg;
		else if (!filter_option(&f.filter, c, optarg))
			common_option(l, c);
	}
	open_only(l, argc, argv, LW_HEADERS);
	ret = has_index(l) ? search_by_index(&f) : search(&f, NULL);
	if (f.found)
		print_found(&f);
	tell_note(l);
	if (ret < 0)
		die(f.scan.status, "%s", f.scan.error);
	if (!f.found)
		die(EXIT_LOSS, "%s: none of %llu entries is like that",
		    l->log.path, LL(l->log.nr_entries));
	return EXIT_OK;
}

const struct command command_find = {
	.name = "find",
	.usage = "find [FILTER]... [OPTION]... LOG\n"
		 "  Find the first entry that is selected. With a kept index that takes no time.\n",
	.options = "      --entry N        entry N\n"
		   "      --last           the last one instead of the first\n"
		   "      --index FILE     the index is in FILE, and not in LOG.lwindex\n",
	.filters = true,
	.run = run,
};
