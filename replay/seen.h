/* SPDX-License-Identifier: GPL-2.0-only */
/* The states that were checked, by what they hold: each is checked once. */
#ifndef ACKPROOF_SEEN_H
#define ACKPROOF_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digest.h"

struct seen_state {
	struct digest	digest;
	uint64_t	done;		/* entries applied where it was met, plus
					 * one: 0 is a free slot */
	bool		bad;
};

struct seen {
	struct seen_state *slot;	/* open addressing, half full at most */
	size_t		nr, mask;
};

/* NULL, or what was added; it lives until the next seen_add(). */
const struct seen_state *seen_find(const struct seen *s,
				   const struct digest *d);

/* Must not be there yet. */
void seen_add(struct seen *s, const struct digest *d, uint64_t done, bool bad);
void seen_free(struct seen *s);

#endif
