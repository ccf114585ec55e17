// SPDX-License-Identifier: GPL-2.0-only
/* lwpoints: choose points of a capture, and print them an entry a line. */

#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture.h"
#include "points.h"
#include "util.h"

enum { OPT_SAMPLE = OPT_BASE };

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: lwpoints [--sample SEED] CAPTURE SPEC\n"
	     "\n"
	     "Print the entries that SPEC chooses, in order, one a line.\n"
	     "SPEC is a comma-separated list of KIND, N@KIND or an entry's number;\n"
	     "KIND is ack, flush, fua, mark or suspects (what the audit found lost).\n"
	     "\n"
	     "      --sample SEED  draw the N points instead of spreading them evenly\n"
	     "  -h, --help         show this help\n"
	     "\n"
	     "Exit status: 0 points printed (maybe none), 1 a log at fault, 2 usage.");
	close_stdout();
	exit(EXIT_OK);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "sample", required_argument, NULL, OPT_SAMPLE },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	bool sample = false;
	uint64_t seed = 0;
	struct points pts;
	struct capture cap;
	struct lw_log log;
	struct audit a;
	char error[600];
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case OPT_SAMPLE:
			sample = true;
			seed = arg_u64("--sample", optarg, 0, INT64_MAX);
			break;
		case 'h':
			usage();
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind + 2 != argc)
		die(EXIT_USAGE,
		    "expected a capture and points; see lwpoints --help");
	if (capture_load(&cap, argv[optind], false, error, sizeof(error)))
		die(EXIT_USAGE, "%s", error);
	if (lw_open(&log, cap.log, 0))
		die(EXIT_USAGE, "%s", log.error);
	if (audit_run(&a, &log, &cap.model, error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	if (points_choose(&pts, argv[optind + 1], &log, &cap.model, &a, sample,
			  seed, error, sizeof(error)))
		die(EXIT_USAGE, "%s", error);
	for (size_t i = 0; i < pts.nr; i++)
		printf("%llu\n", (unsigned long long)pts.entry[i]);
	free(pts.entry);
	audit_free(&a);
	lw_close(&log);
	capture_free(&cap);
	close_stdout();
	return EXIT_OK;
}
