// SPDX-License-Identifier: GPL-2.0-only
/* lwlog index: keep an index of a log, for the tools that use one. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index.h"
#include "lwlog.h"

static int drop(const struct lwlog *l, const char *path)
{
	if (l->index && lw_index_is_other(path))
		die(EXIT_USAGE, "%s: not an index, and left alone", path);
	if (!unlink(path))
		return EXIT_OK;
	if (errno == ENOENT)
		die(EXIT_LOSS, "%s: there is no index", path);
	die(EXIT_LOSS, "%s: cannot remove: %m", path);
}

static void print_index(const struct lwlog *l, const struct lw_index *idx,
			const char *path, double seconds)
{
	struct stat st;

	if (stat(path, &st))
		die(EXIT_LOSS, "%s: cannot look at it: %m", path);
	if (l->json)
		print_json(json_pack("{s:o, s:I, s:I, s:I, s:f}",
				     "index", json_text(path),
				     "entries", (json_int_t)idx->nr,
				     "marks", (json_int_t)idx->nr_marks,
				     "bytes", (json_int_t)st.st_size,
				     "seconds", seconds), JSON_INDENT(1));
	else
		printf("%s: %llu entries, %llu marks, %lld bytes, %.2f s\n",
		       path, LL(idx->nr), LL(idx->nr_marks),
		       (long long)st.st_size, seconds);
}

static int keep(struct lwlog *l, const char *path)
{
	const double start = now();
	struct lw_index idx;
	int status;

	if (l->index && lw_index_is_other(path))
		die(EXIT_USAGE, "%s: not an index, and left alone", path);
	if (lw_index_build(&idx, &l->log, LW_INDEX_ALL) ||
	    lw_index_keep(&idx, &l->log, l->index))
		die(EXIT_LOSS, "%s", idx.error);
	print_index(l, &idx, path, now() - start);
	tell_note(l);
	status = idx.fault[0] ? EXIT_LOSS : EXIT_OK;
	if (status)
		warn("%s", idx.fault);
	lw_index_close(&idx);
	return status;
}

static int run(struct lwlog *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "drop", no_argument, NULL, OPT_DROP },
		{ "index", required_argument, NULL, OPT_INDEX },
		COMMON_OPTIONS, {}
	};
	CLEANUP_FREE char *path = NULL;
	bool dropped = false;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == OPT_DROP)
			dropped = true;
		else if (c == OPT_INDEX)
			l->index = optarg;
		else
			common_option(l, c);
	}
	if (l->salvage)	/* it would pass for the whole log's */
		die(EXIT_USAGE, "--salvage: an index is of the whole log");
	open_only(l, argc, argv, LW_HEADERS);
	path = l->index ? xstrdup(l->index) : lw_index_path(&l->log);
	if (!path)
		die(EXIT_USAGE,
		    "%s: a device has no file beside it: name one with --index",
		    l->log.path);
	return dropped ? drop(l, path) : keep(l, path);
}

const struct command command_index = {
	.name = "index",
	.usage = "index [OPTION]... LOG\n"
		 "  Keep an index of LOG, in LOG.lwindex, for find and for lwreplay.\n",
	.options = "      --index FILE     keep it in FILE instead\n"
		   "      --drop           remove it\n",
	.run = run,
};
