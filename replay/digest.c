// SPDX-License-Identifier: GPL-2.0-only
/* What a state holds, as a number; see digest.h. */

#define _GNU_SOURCE
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"
#include "le.h"

#define SECTOR	512

/* Add @sign times bytes [@off, @off + @len) of the device, which are @data. */
static void add_data(struct digest *d, uint64_t sign, const uint8_t *data,
		     uint64_t off, uint64_t len)
{
	static const uint8_t zero[SECTOR];

	for (; len; data += SECTOR, off += SECTOR, len -= SECTOR) {
		struct {
			__le64	low, high, sector;
		} at;
		XXH128_hash_t h;

		if (!memcmp(data, zero, SECTOR))
			continue;
		h = XXH3_128bits(data, SECTOR);
		at.low = put_le64(h.low64);
		at.high = put_le64(h.high64);
		at.sector = put_le64(off / SECTOR);
		h = XXH3_128bits(&at, sizeof(at));
		d->low += sign * h.low64;
		d->high += sign * h.high64;
	}
}

/* The part of [@off, @off + @len) in [@from, @until) that entry @nr wrote */
static int add_entry(struct digest *d, uint64_t sign, struct lw_index *idx,
		     struct lw_log *log, uint64_t nr, uint64_t off,
		     uint64_t len, uint64_t from, uint64_t until)
{
	uint64_t end = off + len < until ? off + len : until;
	struct lw_entry e;
	int ret;

	if (off < from)
		off = from;
	if (off >= end || nr == LW_NONE || idx->entry[nr].flags & LW_DISCARD)
		return 0;
	ret = lw_index_read(idx, log, nr, &e);
	if (ret < 0)
		return ret;
	add_data(d, sign, e.data + (off - e.off), off, end - off);
	return 0;
}

static int change(struct digest *d, uint64_t sign, struct lw_index *idx,
		  struct lw_log *log, uint64_t nr, uint64_t from,
		  uint64_t until)
{
	const struct lw_index_entry *x = &idx->entry[nr];
	int ret = add_entry(d, sign, idx, log, nr, x->off, x->len, from, until);

	for (uint64_t i = idx->undo_first[nr];
	     i < idx->undo_first[nr + 1] && !ret; i++) {
		const struct lw_undo *u = &idx->undo[i];

		ret = add_entry(d, -sign, idx, log, u->prev, u->off, u->len,
				from, until);
	}
	return ret;
}

int digest_add(struct digest *d, struct lw_index *idx, struct lw_log *log,
	       uint64_t nr, uint64_t from, uint64_t until)
{
	return change(d, 1, idx, log, nr, from, until);
}

int digest_remove(struct digest *d, struct lw_index *idx, struct lw_log *log,
		  uint64_t nr, uint64_t from, uint64_t until)
{
	return change(d, -1, idx, log, nr, from, until);
}
