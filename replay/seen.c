// SPDX-License-Identifier: GPL-2.0-only
/* The states that were checked; see seen.h. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "seen.h"
#include "util.h"

static struct seen_state *find_slot(const struct seen *s,
				    const struct digest *d)
{
	/* a digest is a hash already */
	for (size_t i = d->low;; i++) {
		struct seen_state *slot = &s->slot[i & s->mask];

		if (!slot->done || digest_same(&slot->digest, d))
			return slot;
	}
}

const struct seen_state *seen_find(const struct seen *s,
				   const struct digest *d)
{
	const struct seen_state *slot = s->slot ? find_slot(s, d) : NULL;

	return slot && slot->done ? slot : NULL;
}

static void grow(struct seen *s)
{
	struct seen old = *s;

	s->mask = old.slot ? 2 * old.mask + 1 : 63;
	s->slot = xcalloc(s->mask + 1, sizeof(*s->slot));
	for (size_t i = 0; old.slot && i <= old.mask; i++)
		if (old.slot[i].done)
			*find_slot(s, &old.slot[i].digest) = old.slot[i];
	free(old.slot);
}

void seen_add(struct seen *s, const struct digest *d, uint64_t done, bool bad)
{
	if (!s->slot || s->nr > s->mask / 2)
		grow(s);
	*find_slot(s, d) = (struct seen_state){ *d, done + 1, bad };
	s->nr++;
}

void seen_free(struct seen *s)
{
	free(s->slot);
	memset(s, 0, sizeof(*s));
}
