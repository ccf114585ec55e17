/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trial of a state: mount it on a snapshot of the device that holds it, which
 * recovers the file system's log, and compare what is there with the acks.
 * Nothing is forked but xfs_repair, and nothing is left: the next trial finds the
 * state as this one did.
 *
 * Needs device-mapper and root. What fails for another reason than the state's
 * contents ends the process, with a message: it is no verdict.
 */
#ifndef ACKPROOF_TRIAL_H
#define ACKPROOF_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../workloads/verify.h"
#include "capture.h"
#include "index.h"
#include "log.h"
#include "state.h"

/* Where a trial's time goes */
enum trial_step { ADVANCE, SNAP, MOUNT, VERIFY, UNMOUNT, DROP, NR_TRIAL_STEPS };

extern const char *const trial_step_names[NR_TRIAL_STEPS];

struct trial {
	struct capture	cap;
	struct lw_log	log;
	struct lw_index	index;
	struct state	state;
	struct verify	verify;
	const char	*base, *cow, *dir;
	bool		indexed;
	uint64_t	point;		/* where the base device stands */
	unsigned long	mount_flags;
	char		*fs_options;

	/* what the last trial found */
	int		mount_errno;	/* 0: it mounted */
	struct verify_loss *loss;
	size_t		nr_losses;
	bool		dirty;		/* xfs_repair -n found something */
	double		seconds[NR_TRIAL_STEPS];
	double		last;		/* private: when the last step ended */
};

/* How to open one */
enum {
	TRIAL_INDEX	= 1 << 0,	/* for backwards, or with more entries */
	TRIAL_FORCE	= 1 << 1,	/* overwrite what the devices hold */
};

/*
 * States of the capture in folder @capture are built on @base, which reads as
 * zeros and is as large as the recorded device at least; @cow holds a snapshot's
 * exceptions, and @dir is where to mount. The strings are not copied.
 */
void trial_open(struct trial *t, const char *capture, const char *base,
		const char *cow, const char *dir, unsigned int how);
void trial_close(struct trial *t);

/* Go to entry @point: backwards only if opened with TRIAL_INDEX. */
void trial_move(struct trial *t, uint64_t point);

/*
 * Try the state as it stands, with the @nr log entries of @more, ascending,
 * written over it; those need TRIAL_INDEX. With @repair, run xfs_repair -n after
 * the unmount. Returns whether all is well: it mounts and nothing is lost, and
 * xfs_repair agrees.
 */
bool trial_run(struct trial *t, const uint64_t *more, size_t nr, bool repair);

#endif
