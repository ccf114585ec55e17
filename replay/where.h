/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a target stands: a small file that says which log's state it holds, so
 * that the next run goes on from there, also after one that was killed on its
 * way.
 */
#ifndef ACKPROOF_WHERE_H
#define ACKPROOF_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct where {
	uint64_t	log;		/* lw_index_identity() of the log */
	uint64_t	at;		/* entries applied */
	uint64_t	to;		/* other than @at: was on its way there,
					 * and holds parts of both */
	uint64_t	from, until;	/* bytes of the device that count */
};

/*
 * Read the file @path. Returns 1, 0 if there is none, or -errno with a message
 * in @error.
 */
int where_load(struct where *w, const char *path, char *error, size_t size);

/* Write it, durably: the old one or the new one is there at any time. */
int where_save(const struct where *w, const char *path, char *error,
	       size_t size);

#endif
