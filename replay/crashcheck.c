// SPDX-License-Identifier: GPL-2.0-only
/*
 * crashcheck: mount the states of a capture, and check them against the acks.
 * Runs on the kernel under test.
 */

#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "bisect.h"
#include "crashcheck.h"
#include "util.h"

enum {
	OPT_REPAIR = OPT_BASE, OPT_FORCE, OPT_MINIMAL, OPT_BISECT, OPT_REPORT,
	OPT_BUDGET, OPT_FROM, OPT_TO
};

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: crashcheck [OPTION]... CAPTURE BASE COW MOUNTPOINT < POINTS > RESULTS\n"
	     "       crashcheck --bisect CHECK --report NAME [OPTION]... CAPTURE BASE COW \\\n"
	     "                  MOUNTPOINT > RESULTS\n"
	     "\n"
	     "Check the states of CAPTURE at the entries that POINTS lists, ascending, one\n"
	     "a line. BASE is a device at least as large as the recorded one that reads as\n"
	     "zeros, COW a device for the snapshots' exceptions. RESULTS gets one JSON\n"
	     "object a point, as they come.\n"
	     "\n"
	     "With --minimal, POINTS has losses, a line 'POINT WRITER FILE BLOCK ENTRY...'\n"
	     "each, and RESULTS tells the smallest set of entries after POINT that brings the\n"
	     "block back when it is written over the state there. If the ENTRYs do, then it is\n"
	     "a part of them. A line 'POINT' is of a state that is not mounted.\n"
	     "\n"
	     "      --force         also where BASE or COW holds a file system or the like\n"
	     "      --repair        also run xfs_repair -n on each state after its mount\n"
	     "      --minimal       find smallest sets of entries\n"
	     "      --bisect CHECK  find the states that are bad: CHECK is loss, mount (it\n"
	     "                      does not), repair (xfs_repair -n finds something), or\n"
	     "                      builtin: any of them\n"
	     "      --report NAME   write what was found to NAME.txt and NAME.json\n"
	     "      --budget N      check at most N states (default 60)\n"
	     "      --from ENTRY    look at the states from there on only,\n"
	     "      --to ENTRY      and up to there\n"
	     "  -h, --help          show this help\n"
	     "\n"
	     "Exit status: 0 all points checked, whatever was found; 1 could not; 2 usage.");
	close_stdout();
	exit(EXIT_OK);
}

static json_t *json_losses(const struct trial *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->nr_losses; i++) {
		const struct verify_loss *l = &t->loss[i];

		json_array_append_new(list, json_pack(
			"{s:s, s:i, s:I, s:i, s:I, s:I}",
			"kind", loss_kind_name(l->kind), "writer", l->writer,
			"file", l->file == UINT32_MAX ? (json_int_t)-1 : l->file,
			"block", l->block, "op", (json_int_t)l->op,
			"got", (json_int_t)l->got));
	}
	return list;
}

void print_result(const struct trial *t, bool repair)
{
	json_t *j, *ms = json_object();

	for (int i = 0; i < NR_TRIAL_STEPS; i++)
		json_object_set_new(ms, trial_step_names[i],
				    json_real(1e3 * t->seconds[i]));
	j = json_pack("{s:I, s:s, s:o, s:o, s:o}",
		      "point", (json_int_t)t->point,
		      "mount", t->mount_errno ? strerror(t->mount_errno) : "ok",
		      "losses", json_losses(t),
		      "repair", !repair ? json_null() :
				json_string(t->dirty ? "dirty" : "clean"),
		      "ms", ms);
	if (!j || json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(4)))
		die(EXIT_LOSS, "cannot print point %llu as JSON",
		    (unsigned long long)t->point);
	putchar('\n');
	json_decref(j);
	close_stdout();		/* people watch the results grow */
}

static void check_points(struct trial *t, bool repair)
{
	uint64_t point;
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (parse_u64(line, 0, UINT64_MAX - 1, &point))
			die(EXIT_USAGE, "'%s' is not an entry's number", line);
		trial_move(t, point);
		trial_run(t, NULL, 0, repair);
		print_result(t, repair);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, OPT_FORCE },
		{ "minimal", no_argument, NULL, OPT_MINIMAL },
		{ "repair", no_argument, NULL, OPT_REPAIR },
		{ "bisect", required_argument, NULL, OPT_BISECT },
		{ "report", required_argument, NULL, OPT_REPORT },
		{ "budget", required_argument, NULL, OPT_BUDGET },
		{ "from", required_argument, NULL, OPT_FROM },
		{ "to", required_argument, NULL, OPT_TO },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct bisect_args bisect = {
		.budget = BISECT_BUDGET, .from = UINT64_MAX, .to = UINT64_MAX,
	};
	unsigned int how = 0;
	bool repair = false, minimal = false;
	struct trial t;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case OPT_FORCE:
			how |= TRIAL_FORCE;
			break;
		case OPT_MINIMAL:
			minimal = true;
			how |= TRIAL_INDEX;
			break;
		case OPT_REPAIR:
			repair = true;
			break;
		case OPT_BISECT:
			bisect.check = optarg;
			how |= TRIAL_INDEX;
			break;
		case OPT_REPORT:
			bisect.report = optarg;
			break;
		case OPT_BUDGET:
			bisect.budget = arg_u64("--budget", optarg, 1,
						UINT64_MAX);
			break;
		case OPT_FROM:
			bisect.from = arg_u64("--from", optarg, 0,
					      UINT64_MAX - 1);
			break;
		case OPT_TO:
			bisect.to = arg_u64("--to", optarg, 0, UINT64_MAX - 1);
			break;
		case 'h':
			usage();
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind + 4 != argc)
		die(EXIT_USAGE,
		    "expected a capture, two devices and a directory; see crashcheck --help");
	if (!bisect.check != !bisect.report || (!!bisect.check + minimal + repair > 1))
		die(EXIT_USAGE,
		    "--bisect goes with --report, and not with --minimal or --repair; see crashcheck --help");
	trial_open(&t, argv[optind], argv[optind + 1], argv[optind + 2],
		   argv[optind + 3], how);
	if (bisect.check) {
		bisect.capture = argv[optind];
		crashcheck_bisect(&t, &bisect);
	} else if (minimal) {
		crashcheck_minimal(&t);
	} else {
		check_points(&t, repair);
	}
	trial_close(&t);
	return EXIT_OK;
}
