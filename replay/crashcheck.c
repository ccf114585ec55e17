// SPDX-License-Identifier: GPL-2.0-only
/*
 * crashcheck: mount the states of a capture, and check them against the acks.
 *
 * Runs on the kernel under test. Per point: advance the base device by the
 * entries since the last point, lay a snapshot over it, mount that (which
 * recovers the log), verify, unmount, drop the snapshot. Nothing is forked.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>
#include <libmount/libmount.h>

#include "../workloads/verify.h"
#include "blockdev.h"
#include "capture.h"
#include "check.h"
#include "dm.h"
#include "log.h"
#include "state.h"
#include "util.h"

#define SNAPSHOT	"ackproof-snap"

enum { OPT_REPAIR = OPT_BASE, OPT_FORCE };

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: crashcheck [OPTION]... CAPTURE BASE COW MOUNTPOINT < POINTS > RESULTS\n"
	     "\n"
	     "Check the states of CAPTURE at the entries that POINTS lists, ascending, one\n"
	     "a line. BASE is a device at least as large as the recorded one that reads as\n"
	     "zeros, COW a device for the snapshots' exceptions. RESULTS gets one JSON\n"
	     "object a point, as they come.\n"
	     "\n"
	     "      --force   also where BASE or COW holds a file system or the like\n"
	     "      --repair  also run xfs_repair -n on each state after its mount\n"
	     "  -h, --help    show this help\n"
	     "\n"
	     "Exit status: 0 all points checked, whatever was found; 1 could not; 2 usage.");
	close_stdout();
	exit(EXIT_OK);
}

/* Where a replay's time goes */
enum step { ADVANCE, SNAP, MOUNT, VERIFY, UNMOUNT, DROP, NR_STEPS };

static const char *const step_names[NR_STEPS] = {
	"advance", "snapshot", "mount", "verify", "unmount", "drop"
};

struct checker {
	struct capture	cap;
	struct lw_log	log;
	struct state	state;
	struct verify	verify;
	const char	*base, *cow, *dir;
	bool		repair;
	unsigned long	mount_flags;
	char		*fs_options;
	double		step[NR_STEPS];
	double		last;		/* when the last step ended */
	json_t		*losses;
};

static void step_done(struct checker *c, enum step step)
{
	double t = now();

	c->step[step] = t - c->last;
	c->last = t;
}

static void see_entry(const struct lw_entry *e, void *arg)
{
	struct checker *c = arg;
	struct mark mark;

	if (!(e->flags & LW_MARK))
		return;
	mark_parse(&c->cap.model, e->mark, e->mark_len, &mark);
	if (mark.kind == MARK_ACK)
		verify_ack(&c->verify, mark.writer, mark.op);
}

static void see_loss(const struct verify_loss *l, void *arg)
{
	struct checker *c = arg;

	json_array_append_new(c->losses, json_pack(
		"{s:s, s:i, s:I, s:i, s:I, s:I}",
		"kind", loss_kind_name(l->kind), "writer", l->writer,
		"file", l->file == UINT32_MAX ? (json_int_t)-1 : l->file,
		"block", l->block, "op", (json_int_t)l->op,
		"got", (json_int_t)l->got));
}

/* xfs_repair -n: 0 clean, 1 it found something. Anything else: it failed. */
static int run_repair(const char *node)
{
	char *argv[] = { "xfs_repair", "-n", (char *)node, NULL };
	char what[128];
	int status;

	check_run_argv(argv, NULL, STDERR_FILENO, what, sizeof(what),
		       &status);
	if (status < 0 || status > 1)
		die(EXIT_LOSS, "xfs_repair -n: %s", what);
	return status;
}

/*
 * A full exception store fails all further I/O on the snapshot, which would
 * look like losses.
 */
static void check_snapshot(uint64_t point)
{
	char status[128];

	if (dm_status(SNAPSHOT, status, sizeof(status)))
		die(EXIT_LOSS, "point %llu: no status of the snapshot: %s",
		    (unsigned long long)point, dm_error());
	if (status[0] < '0' || status[0] > '9')
		die(EXIT_LOSS,
		    "point %llu: the snapshot is '%s', expected a use count: is the exception store too small?",
		    (unsigned long long)point, status);
}

/* mount(8) takes all options in one string, mount(2) wants two kinds apart */
static void read_mount_options(struct checker *c)
{
	const char *options = c->cap.mount_options;

	if (mnt_optstr_get_flags(options, &c->mount_flags,
				 mnt_get_builtin_optmap(MNT_LINUX_MAP)) ||
	    mnt_split_optstr(options, NULL, NULL, &c->fs_options, 0, 0))
		die(EXIT_USAGE, "cannot understand the mount options '%s'",
		    options);
}

static void check_point(struct checker *c, uint64_t point)
{
	int mounted, mount_errno = 0, repair = -1;
	char params[256], node[32];
	json_t *j, *ms;

	c->last = now();
	if (state_advance(&c->state, point, see_entry, c))
		die(EXIT_LOSS, "%s", c->state.error);
	step_done(c, ADVANCE);

	/* not persistent, in chunks of 4 KiB */
	snprintf(params, sizeof(params), "%s %s N 8", c->base, c->cow);
	if (dm_create(SNAPSHOT, c->cap.data_size / 512, "snapshot", params,
		      node, sizeof(node)))
		die(EXIT_LOSS, "point %llu: cannot create the snapshot: %s",
		    (unsigned long long)point, dm_error());
	step_done(c, SNAP);

	mounted = !mount(node, c->dir, "xfs", c->mount_flags,
			 c->fs_options);
	if (!mounted)
		mount_errno = errno;
	step_done(c, MOUNT);

	c->losses = json_array();
	if (mounted)
		verify_tree(&c->verify, c->dir, see_loss, c);
	check_snapshot(point);
	step_done(c, VERIFY);

	if (mounted && umount2(c->dir, 0))
		die(EXIT_LOSS, "point %llu: cannot unmount: %m",
		    (unsigned long long)point);
	step_done(c, UNMOUNT);

	if (c->repair) {
		repair = run_repair(node);
		check_snapshot(point);
		c->last = now();
	}
	if (dm_remove(SNAPSHOT))
		die(EXIT_LOSS, "point %llu: cannot remove the snapshot: %s",
		    (unsigned long long)point, dm_error());
	step_done(c, DROP);

	ms = json_object();
	for (int i = 0; i < NR_STEPS; i++)
		json_object_set_new(ms, step_names[i],
				    json_real(1e3 * c->step[i]));
	j = json_pack("{s:I, s:s, s:o, s:o, s:o}",
		      "point", (json_int_t)point,
		      "mount", mounted ? "ok" : strerror(mount_errno),
		      "losses", c->losses,
		      "repair", repair < 0 ? json_null() :
				json_string(repair ? "dirty" : "clean"),
		      "ms", ms);
	if (!j || json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(4)))
		die(EXIT_LOSS, "cannot print point %llu as JSON",
		    (unsigned long long)point);
	putchar('\n');
	json_decref(j);
	close_stdout();		/* people watch the results grow */
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, OPT_FORCE },
		{ "repair", no_argument, NULL, OPT_REPAIR },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct checker c = {};
	char error[600], line[64];
	bool force = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case OPT_FORCE:
			force = true;
			break;
		case OPT_REPAIR:
			c.repair = true;
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
	c.base = argv[optind + 1];
	c.cow = argv[optind + 2];
	c.dir = argv[optind + 3];
	if (capture_load(&c.cap, argv[optind], false, error, sizeof(error)))
		die(EXIT_USAGE, "%s", error);
	if (lw_open(&c.log, c.cap.log, 0))
		die(EXIT_USAGE, "%s", c.log.error);
	blockdev_refuse(c.base, force);
	blockdev_refuse(c.cow, force);
	read_mount_options(&c);
	if (state_open(&c.state, &c.log, NULL, c.base))
		die(EXIT_USAGE, "%s", c.state.error);
	if (c.state.size < c.cap.data_size)
		die(EXIT_USAGE, "%s: %llu bytes, expected at least %llu",
		    c.base, (unsigned long long)c.state.size,
		    (unsigned long long)c.cap.data_size);
	verify_init(&c.verify, &c.cap.model);
	dm_setup();

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t point;

		line[strcspn(line, "\n")] = '\0';
		if (parse_u64(line, 0, UINT64_MAX - 1, &point))
			die(EXIT_USAGE, "'%s' is not an entry's number", line);
		check_point(&c, point);
	}
	free(c.fs_options);
	verify_free(&c.verify);
	state_close(&c.state);
	lw_close(&c.log);
	capture_free(&c.cap);
	return EXIT_OK;
}
