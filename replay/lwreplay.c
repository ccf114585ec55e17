// SPDX-License-Identifier: GPL-2.0-only
/* lwreplay: build the state at a point of a log in a new image file. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "state.h"
#include "util.h"

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: lwreplay --size BYTES [--to ENTRY] LOG IMAGE\n"
	     "\n"
	     "Write what the device held after an entry of LOG to the file IMAGE, which\n"
	     "must not exist.\n"
	     "\n"
	     "  -s, --size BYTES  size of the recorded device\n"
	     "  -t, --to ENTRY    the last entry to apply (default: the log's last)\n"
	     "  -h, --help        show this help\n"
	     "\n"
	     "Exit status: 0 done, 1 a log at fault or a failed write, 2 usage.");
	close_stdout();
	exit(EXIT_OK);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "to", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	uint64_t size = 0, to = UINT64_MAX;
	const char *image;
	struct state s;
	struct lw_log log;
	int c, fd, ret = EXIT_OK;

	while ((c = getopt_long(argc, argv, "s:t:h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			size = arg_u64("--size", optarg, 1, INT64_MAX);
			break;
		case 't':
			to = arg_u64("--to", optarg, 0, UINT64_MAX - 1);
			break;
		case 'h':
			usage();
		default:
			exit(EXIT_USAGE);
		}
	}
	if (!size || optind + 2 != argc)
		die(EXIT_USAGE,
		    "expected --size, a log and an image; see lwreplay --help");
	image = argv[optind + 1];
	if (lw_open(&log, argv[optind], 0))
		die(EXIT_USAGE, "%s", log.error);
	if (to == UINT64_MAX && log.nr_entries)
		to = log.nr_entries - 1;
	if (to >= log.nr_entries && log.nr_entries)
		die(EXIT_USAGE, "%s: no entry %llu, the log has %llu",
		    log.path, (unsigned long long)to,
		    (unsigned long long)log.nr_entries);

	/* an image that exists may be somebody's */
	fd = open(image, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0)
		die(EXIT_USAGE, "%s: cannot create: %m", image);
	if (ftruncate(fd, size)) {
		warn("%s: cannot make it %llu bytes: %m", image,
		     (unsigned long long)size);
		ret = EXIT_LOSS;
	}
	close(fd);
	if (!ret && log.nr_entries) {
		if (state_open(&s, &log, NULL, image) ||
		    state_advance(&s, to, NULL, NULL)) {
			warn("%s", s.error);
			ret = EXIT_LOSS;
		}
		state_close(&s);
	}
	if (ret)
		unlink(image);	/* nothing half-written taken for whole */
	lw_close(&log);
	return ret;
}
