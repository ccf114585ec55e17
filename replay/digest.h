/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a state holds, as a number: the sum, over its sectors of 512 bytes that
 * are not zero, of a hash of the sector's place and contents. It is kept up to
 * date from the log alone, entry by entry and either way, and two states of any
 * logs with the same digest are the same.
 */
#ifndef ACKPROOF_DIGEST_H
#define ACKPROOF_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "index.h"

struct digest {
	uint64_t	low, high;	/* 0, 0: all zeros */
};

/*
 * Take entry @nr into *@d, or out of it: the state before it is the one after
 * the entries before @nr. Only bytes [@from, @until) of the device count. The
 * index must have LW_INDEX_UNDO. Returns 0, or -errno with idx->error set.
 */
int digest_add(struct digest *d, struct lw_index *idx, struct lw_log *log,
	       uint64_t nr, uint64_t from, uint64_t until);
int digest_remove(struct digest *d, struct lw_index *idx, struct lw_log *log,
		  uint64_t nr, uint64_t from, uint64_t until);

static inline bool digest_same(const struct digest *a, const struct digest *b)
{
	return a->low == b->low && a->high == b->high;
}

#endif
