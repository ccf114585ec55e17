/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state at a point: a target, file or block device, that holds what the
 * recorded device held after all entries up to and including that point.
 * States are built forwards, each from the one before.
 */
#ifndef ACKPROOF_STATE_H
#define ACKPROOF_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

struct state {
	struct lw_log	*log;
	char		*path;
	int		fd;
	uint64_t	size;		/* of the target, in bytes */
	bool		is_block;
	uint8_t		*touched;	/* one per region: something was written */
	int		fault;		/* -errno of an entry that was not applied */
	char		error[512];
};

/*
 * Start at the empty state: the log's first entry is next. The target must
 * read as zeros. Returns 0 or -errno with state->error set.
 */
int state_open(struct state *s, struct lw_log *log, const char *path);

/*
 * Apply all entries up to and including number @point, then make the target's
 * contents visible to others (fdatasync). @seen, if not NULL, is called for
 * each entry. Returns 0, or -errno with state->error set: nothing of an entry
 * that is at fault has been written then, and the target holds no state any
 * more: all further calls fail the same way.
 */
int state_advance(struct state *s, uint64_t point,
		  void (*seen)(const struct lw_entry *e, void *arg), void *arg);

void state_close(struct state *s);

#endif
