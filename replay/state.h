/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state at a point: a target, file or block device, that holds what the
 * recorded device held after all entries up to and including that point.
 *
 * Forwards, a state is built from the one before. Backwards, only those sectors
 * are written that differ: the first entry after the new point to write a
 * sector knows, from the index, which entry had written it before.
 */
#ifndef ACKPROOF_STATE_H
#define ACKPROOF_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digest.h"
#include "index.h"
#include "log.h"

struct state {
	struct lw_log	*log;
	struct lw_index	*index;
	char		*path;
	int		fd;
	uint64_t	size;		/* of the target, in bytes */
	bool		is_block;
	uint64_t	from, until;	/* bytes of the device that are replayed;
					 * for the caller to set */
	bool		no_discard;	/* leave discards out, likewise */
	bool		with_digest;	/* keep the digest, likewise */
	struct digest	digest;
	uint8_t		*touched;	/* one per region: may be not zero */
	uint64_t	done;		/* entries applied: the log's first */
	uint64_t	written, zeroed;	/* bytes so far */
	int		fault;		/* -errno: holds no state any more */
	char		error[1024];
};

/*
 * Start at the empty state: the log's first entry is next. The target must
 * read as zeros. @index may be NULL: then states go forwards only, from the
 * first entry. Returns 0 or -errno with state->error set.
 */
int state_open(struct state *s, struct lw_log *log, struct lw_index *index,
	       const char *path);
void state_close(struct state *s);

/* The target holds the state after the first @done entries. */
void state_stands(struct state *s, uint64_t done);

/*
 * Make the target hold the state after the first @done entries, forwards or
 * backwards. @seen, if not NULL, is called for each entry on the way forwards.
 * Returns 0, or -errno with state->error set: nothing of an entry that is at
 * fault has been written then, and the target holds no state any more: all
 * further calls fail the same way.
 */
typedef void state_seen(const struct lw_entry *e, void *arg);
int state_move(struct state *s, uint64_t done, state_seen *seen, void *arg);

/* Make all of the target zeros: the state before the first entry. */
int state_wipe(struct state *s);

/*
 * A number that changes when others write to the target, after state_sync().
 */
uint64_t state_stamp(const struct state *s);

/*
 * The target's contents are durable, and others that look below its cache see
 * them. Returns as state_move() does.
 */
int state_sync(struct state *s);

/* Both: the state at entry number @point. */
static inline int state_advance(struct state *s, uint64_t point,
				state_seen *seen, void *arg)
{
	int ret = state_move(s, point + 1, seen, arg);

	return ret ? ret : state_sync(s);
}

#endif
