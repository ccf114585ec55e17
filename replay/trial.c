// SPDX-License-Identifier: GPL-2.0-only
/* Mounting states, and checking them against the acks; see trial.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <libmount/libmount.h>

#include "blockdev.h"
#include "check.h"
#include "dm.h"
#include "trial.h"
#include "util.h"

#define SNAPSHOT	"ackproof-snap"

const char *const trial_step_names[NR_TRIAL_STEPS] = {
	"advance", "snapshot", "mount", "verify", "unmount", "drop"
};

static void step_done(struct trial *t, enum trial_step step)
{
	double time = now();

	t->seconds[step] = time - t->last;
	t->last = time;
}

static void see_entry(const struct lw_entry *e, void *arg)
{
	struct trial *t = arg;
	struct mark mark;

	if (!(e->flags & LW_MARK))
		return;
	mark_parse(&t->cap.model, e->mark, e->mark_len, &mark);
	if (mark.kind == MARK_ACK)
		verify_ack(&t->verify, mark.writer, mark.op);
}

static void see_loss(const struct verify_loss *l, void *arg)
{
	struct trial *t = arg;

	/* grown whenever the count is a power of two */
	if (!(t->nr_losses & (t->nr_losses - 1)))
		t->loss = xrealloc(t->loss, t->nr_losses ? 2 * t->nr_losses : 1,
				   sizeof(*t->loss));
	t->loss[t->nr_losses++] = *l;
}

/* xfs_repair -n: 0 clean, 1 it found something. Anything else: it failed. */
static bool repair_finds(const char *node)
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
static void check_snapshot(const struct trial *t)
{
	char status[128];

	if (dm_status(SNAPSHOT, status, sizeof(status)))
		die(EXIT_LOSS, "point %llu: no status of the snapshot: %s",
		    (unsigned long long)t->point, dm_error());
	if (status[0] < '0' || status[0] > '9')
		die(EXIT_LOSS,
		    "point %llu: the snapshot is '%s', expected a use count: is the exception store too small?",
		    (unsigned long long)t->point, status);
}

/* mount(8) takes all options in one string, mount(2) wants two kinds apart */
static void read_mount_options(struct trial *t)
{
	const char *options = t->cap.mount_options;

	if (mnt_optstr_get_flags(options, &t->mount_flags,
				 mnt_get_builtin_optmap(MNT_LINUX_MAP)) ||
	    mnt_split_optstr(options, NULL, NULL, &t->fs_options, 0, 0))
		die(EXIT_USAGE, "cannot understand the mount options '%s'",
		    options);
}

void trial_open(struct trial *t, const char *capture, const char *base,
		const char *cow, const char *dir, unsigned int how)
{
	char error[600];

	memset(t, 0, sizeof(*t));
	t->base = base;
	t->cow = cow;
	t->dir = dir;
	t->indexed = how & TRIAL_INDEX;
	if (capture_load(&t->cap, capture, false, error, sizeof(error)))
		die(EXIT_USAGE, "%s", error);
	if (lw_open(&t->log, t->cap.log, 0))
		die(EXIT_USAGE, "%s", t->log.error);
	blockdev_refuse(base, how & TRIAL_FORCE);
	blockdev_refuse(cow, how & TRIAL_FORCE);
	read_mount_options(t);
	if (t->indexed && lw_index_open(&t->index, &t->log, NULL, LW_INDEX_ALL))
		die(EXIT_USAGE, "%s", t->index.error);
	if (state_open(&t->state, &t->log, t->indexed ? &t->index : NULL, base))
		die(EXIT_USAGE, "%s", t->state.error);
	if (t->state.size < t->cap.data_size)
		die(EXIT_USAGE, "%s: %llu bytes, expected at least %llu",
		    base, (unsigned long long)t->state.size,
		    (unsigned long long)t->cap.data_size);
	verify_init(&t->verify, &t->cap.model);
	dm_setup();
}

void trial_close(struct trial *t)
{
	free(t->fs_options);
	free(t->loss);
	verify_free(&t->verify);
	state_close(&t->state);
	if (t->indexed)
		lw_index_close(&t->index);
	lw_close(&t->log);
	capture_free(&t->cap);
	memset(t, 0, sizeof(*t));
}

/* What was acknowledged by then, anew from the log's first entry */
static void recount_acks(struct trial *t, uint64_t point)
{
	struct lw_entry e;

	verify_free(&t->verify);
	verify_init(&t->verify, &t->cap.model);
	for (uint64_t nr = 0; nr <= point; nr++) {
		if (!(t->index.entry[nr].flags & LW_MARK))
			continue;
		if (lw_index_read(&t->index, &t->log, nr, &e) != 1)
			die(EXIT_LOSS, "%s", t->index.error);
		see_entry(&e, t);
	}
}

void trial_move(struct trial *t, uint64_t point)
{
	t->last = now();
	if (point + 1 < t->state.done)
		recount_acks(t, point);
	if (state_advance(&t->state, point, see_entry, t))
		die(EXIT_LOSS, "%s", t->state.error);
	t->point = point;
	step_done(t, ADVANCE);
}

static void write_entry(int fd, const char *node, const struct lw_entry *e)
{
	uint64_t range[2] = { e->off, e->len };

	if (e->flags & LW_DISCARD ? ioctl(fd, BLKZEROOUT, range) :
	    pwrite_all(fd, e->data, e->len, e->off))
		die(EXIT_LOSS, "%s: cannot write entry %llu: %m", node,
		    (unsigned long long)e->nr);
}

static void write_more(struct trial *t, const char *node, const uint64_t *more,
		       size_t nr)
{
	CLEANUP_CLOSE int fd = -1;
	struct lw_entry e;

	if (!nr)
		return;
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die(EXIT_LOSS, "%s: %m", node);
	for (size_t i = 0; i < nr; i++) {
		if (lw_index_read(&t->index, &t->log, more[i], &e) != 1)
			die(EXIT_LOSS, "%s", t->index.error);
		write_entry(fd, node, &e);
	}
	if (fsync(fd))
		die(EXIT_LOSS, "%s: cannot write: %m", node);
}

bool trial_run(struct trial *t, const uint64_t *more, size_t nr, bool repair)
{
	char params[256], node[32];

	t->last = now();
	/* not persistent, in chunks of 4 KiB */
	snprintf(params, sizeof(params), "%s %s N 8", t->base, t->cow);
	if (dm_create(SNAPSHOT, t->cap.data_size / 512, "snapshot", params,
		      node, sizeof(node)))
		die(EXIT_LOSS, "point %llu: cannot create the snapshot: %s",
		    (unsigned long long)t->point, dm_error());
	write_more(t, node, more, nr);
	step_done(t, SNAP);

	t->mount_errno = 0;
	if (mount(node, t->dir, "xfs", t->mount_flags, t->fs_options))
		t->mount_errno = errno;
	step_done(t, MOUNT);

	t->nr_losses = 0;
	if (!t->mount_errno)
		verify_tree(&t->verify, t->dir, see_loss, t);
	check_snapshot(t);
	step_done(t, VERIFY);

	if (!t->mount_errno && umount2(t->dir, 0))
		die(EXIT_LOSS, "point %llu: cannot unmount: %m",
		    (unsigned long long)t->point);
	step_done(t, UNMOUNT);

	t->dirty = false;
	if (repair) {
		t->dirty = repair_finds(node);
		check_snapshot(t);
		t->last = now();
	}
	if (dm_remove(SNAPSHOT))
		die(EXIT_LOSS, "point %llu: cannot remove the snapshot: %s",
		    (unsigned long long)t->point, dm_error());
	step_done(t, DROP);
	return !t->mount_errno && !t->nr_losses && !t->dirty;
}
