// SPDX-License-Identifier: GPL-2.0-only
/* lwlog list: the entries, in one pass and in constant memory. */

#define _GNU_SOURCE
#include "lwlog-filter.h"
#include "lwlog.h"

static int run(struct lwlog *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "limit", required_argument, NULL, OPT_LIMIT },
		FILTER_OPTIONS, COMMON_OPTIONS, {}
	};
	uint64_t limit = UINT64_MAX;
	struct filter f = {};
	struct lw_entry e;
	struct scan s;
	int c, ret = 0;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == OPT_LIMIT)
			limit = arg_u64("--limit", optarg, 0, UINT64_MAX);
		else if (!filter_option(&f, c, optarg))
			common_option(l, c);
	}
	open_only(l, argc, argv, LW_HEADERS);
	scan_start(&s, &f, &l->log, NULL);
	for (; limit && (ret = scan_next(&s, &e)) == 1; limit--)
		print_entry(l, &e);
	tell_note(l);
	if (ret < 0)
		die(s.status, "%s", s.error);
	return EXIT_OK;
}

const struct command command_list = {
	.name = "list",
	.usage = "list [FILTER]... [OPTION]... LOG\n"
		 "  List entries, one a line.\n",
	.options = "      --limit N        at most N entries\n",
	.filters = true,
	.run = run,
};
