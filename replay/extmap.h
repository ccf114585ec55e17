/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An ordered map from ranges to numbers: from sectors of the recorded device to
 * the entry that wrote them last, for example. Made for millions of ranges that
 * come in any order and overlap those before.
 */
#ifndef ACKPROOF_EXTMAP_H
#define ACKPROOF_EXTMAP_H

#include <stddef.h>
#include <stdint.h>

/* What a gap maps to */
#define EXTMAP_NONE	UINT64_MAX

struct extmap_leaf;

struct extmap {
	uint64_t	nr;		/* extents, gaps not counted */

	/* all below is extmap.c's own */
	struct extmap_leaf **leaf;	/* in order, none is empty */
	uint64_t	*first;		/* where each of them starts */
	size_t		nr_leaves, max_leaves;
	struct extmap_leaf *free;	/* list */
	struct extmap_leaf **chunk;	/* what the leaves are cut from */
	size_t		nr_chunks, nr_cut;	/* of the last chunk */
};

/* A part of a range, all of which maps to @value */
typedef void extmap_fn(uint64_t start, uint64_t end, uint64_t value,
		       void *arg);

/* An empty map is one gap. Out of memory is fatal, here and later. */
void extmap_init(struct extmap *m);
void extmap_free(struct extmap *m);

/*
 * Make [@start, @end) map to @value, where @start < @end, in any unit.
 * EXTMAP_NONE makes it a gap. Before the map changes, @cut, if not NULL, is
 * called for each part of the range and what it maps to until now: ascending,
 * gaps too, so that each part starts where the one before has ended. Neighbours
 * may have the same value. @cut must not use the map.
 */
void extmap_set(struct extmap *m, uint64_t start, uint64_t end,
		uint64_t value, extmap_fn *cut, void *arg);

/* Call @fn for each part of [@start, @end), in the way of @cut. */
void extmap_get(const struct extmap *m, uint64_t start, uint64_t end,
		extmap_fn *fn, void *arg);

/* Bytes that are allocated. They do not get fewer before extmap_free(). */
size_t extmap_memory(const struct extmap *m);

#endif
