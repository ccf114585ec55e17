/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a log's bytes come from: a file, a sparse file, a block device, or a
 * file of zstd in seekable frames. All look the same: a range of addresses in
 * which bytes are present after they have been asked for.
 */
#ifndef ACKPROOF_SOURCE_H
#define ACKPROOF_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zst.h"

struct source {
	const uint8_t	*map;
	uint64_t	size;		/* of the log in bytes, unpacked */
	uint64_t	from, until;	/* bytes that are mapped in */
	uint64_t	window;		/* to map in at once: grows */
	uint64_t	peeked;		/* by source_peek() last */
	uint64_t	peeks;		/* that each went on from the last */
	uint64_t	ahead;		/* up to where it reads ahead */
	uint8_t		*near;		/* what it has read more than asked */
	uint64_t	near_from, near_until;
	int		fd;
	bool		is_block;
	bool		packed;		/* zstd */
	struct zst	zst;
	uint8_t		*unpacked;	/* one per frame */
	size_t		*held;		/* ring of the unpacked frames */
	size_t		nr_held, first_held;
	uint64_t	held_bytes, held_max;	/* about */
};

/*
 * Open @path for reading. What a block device has cached is dropped: device-
 * mapper has written below the cache. Returns 0, or -errno with a message, that
 * does not name the path, in @error. Ends with source_close(), also after a
 * failure.
 */
int source_open(struct source *s, const char *path, char *error, size_t size);
void source_close(struct source *s);

/*
 * See what a log that grows holds now. Everything that was present is not any
 * more, and the map may have moved. Returns as source_open() does.
 */
int source_refresh(struct source *s, char *error, size_t size);

/*
 * Make bytes [@off, @off + @len) of the map present, within its size. They stay
 * so until the next call or, if the source is not packed, for its life. Returns
 * as source_open() does; -EIO and the like for what cannot be read, so that a
 * bad disk or a file that was cut is no fatal signal.
 */
int source_need_more(struct source *s, uint64_t off, uint64_t len, char *error,
		     size_t size);

/*
 * Copy bytes to @buf, for who goes through a log and leaves most of it alone:
 * nothing else is mapped in. Returns as source_open() does.
 */
int source_peek(struct source *s, void *buf, uint64_t off, uint64_t len,
		char *error, size_t size);

static inline int source_need(struct source *s, uint64_t off, uint64_t len,
			      char *error, size_t size)
{
	if (off >= s->from && off + len <= s->until)
		return 0;
	return source_need_more(s, off, len, error, size);
}

#endif
