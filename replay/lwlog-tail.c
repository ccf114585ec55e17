// SPDX-License-Identifier: GPL-2.0-only
/* lwlog tail: the last entries, and those that come while the log grows. */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lwlog.h"

#define PERIOD	200	/* ms from one look to the next */

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* An interrupt is how people end it: what was printed is whole. */
static void catch_signals(void)
{
	const struct sigaction action = { .sa_handler = stop };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* The next write would find out that nobody reads any more; it may be far. */
static void wait_a_moment(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	if (poll(&out, 1, PERIOD) <= 0)
		return;
	raise(SIGPIPE);
	die(EXIT_LOSS, "cannot write to stdout: %s", strerror(EPIPE));
}

/* Returns false if it was stopped before there was a superblock. */
static bool await_log(struct lwlog *l, const char *path)
{
	bool told = false;
	int ret;

	while ((ret = lw_open(&l->log, path, LW_HEADERS | LW_GROWING)) ==
	       -ENODATA && !stopped) {
		if (!told)
			warn("%s: no superblock yet: waiting for it", path);
		told = true;
		lw_close(&l->log);
		wait_a_moment();
	}
	if (ret && ret != -ENODATA)
		die(EXIT_USAGE, "%s", l->log.error);
	if (!ret && l->log.src.packed)
		die(EXIT_USAGE, "%s: a packed log does not grow; -f is for one that is being written",
		    path);
	return !ret;
}

/*
 * Go to the last @n entries. What ends the log is met again from there. Returns
 * whether that is the end mark.
 */
static bool go_to_last(struct lw_log *log, uint64_t n)
{
	CLEANUP_FREE uint64_t *off = NULL;	/* of the last headers: a ring */
	uint64_t nr = 0, max = 0, end;
	bool ended = false;
	struct lw_entry e;

	for (; lw_next(log, &e) == 1; nr++) {
		if (nr == max && max < n) {
			max = max ? 2 * max : 64;
			if (max > n)
				max = n;
			off = xrealloc(off, max, sizeof(*off));
		}
		if (n)
			off[nr % n] = e.header_off;
		ended = is_end_mark(&e);
	}
	end = log->next_off;
	if (n > nr)
		n = nr;
	lw_seek(log, nr - n, n ? off[(nr - n) % n] : end);
	return ended;
}

/* Returns what lw_next() did at last; *@ended, if an entry was the end mark. */
static int print_rest(struct lwlog *l, bool *ended)
{
	struct lw_entry e;
	int ret;

	while ((ret = lw_next(&l->log, &e)) == 1) {
		print_entry(l, &e);
		*ended = is_end_mark(&e);
	}
	return ret;
}

static int follow(struct lwlog *l, bool ended)
{
	struct lw_log *log = &l->log;
	int ret = 0;

	while (!ret && !ended && !stopped) {
		wait_a_moment();
		ret = lw_refresh(log);
		if (ret)
			break;
		if (log->counted < log->next)
			die(EXIT_LOSS, "%s: it was written anew: the superblock counts %llu entries, %llu were read",
			    log->path, LL(log->counted), LL(log->next));
		ret = print_rest(l, &ended);
		if (ferror(stdout))
			close_stdout();
	}
	return ret;
}

static int run(struct lwlog *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "lines", required_argument, NULL, 'n' },
		{ "follow", no_argument, NULL, 'f' },
		COMMON_OPTIONS, {}
	};
	bool growing = false, ended;
	uint64_t n = 10;
	int c, ret;

	while ((c = getopt_long(argc, argv, "n:fh", options, NULL)) != -1) {
		if (c == 'n')
			n = arg_u64("--lines", optarg, 0, UINT64_MAX);
		else if (c == 'f')
			growing = true;
		else
			common_option(l, c);
	}
	if (growing && l->salvage)
		die(EXIT_USAGE, "--follow and --salvage: one of them");
	if (!growing) {
		open_only(l, argc, argv, LW_HEADERS);
	} else {
		setvbuf(stdout, NULL, _IOLBF, 0);
		catch_signals();
		if (!await_log(l, only_argument(l, argc, argv)))
			return EXIT_OK;
	}
	ended = go_to_last(&l->log, n);
	ret = print_rest(l, &ended);
	if (growing && !ret)
		ret = follow(l, ended);
	return tell_end(l, ret);
}

const struct command command_tail = {
	.name = "tail",
	.usage = "tail [OPTION]... LOG\n"
		 "  List the last entries.\n",
	.options = "  -n, --lines N        N of them (default: 10)\n"
		   "  -f, --follow         go on as the log grows, up to its end or an interrupt\n",
	.run = run,
};
