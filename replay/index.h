/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The index of a log: every entry's header, the marks by their text, and for
 * each entry what its write went over, which is how a state is taken back. It is
 * built in one pass over the headers and may be kept in a file beside the log.
 */
#ifndef ACKPROOF_INDEX_H
#define ACKPROOF_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"

#define LW_NONE		UINT64_MAX	/* no such entry */

struct lw_index_entry {
	uint64_t	header_off;	/* all as in struct lw_entry */
	uint64_t	off;
	uint64_t	len;
	uint32_t	flags;
	uint32_t	mark_len;
};

struct lw_index_mark {
	uint64_t	hash;		/* XXH3 of the text; ascending */
	uint64_t	entry;		/* ascending where the hash is the same */
};

/*
 * A part of what an entry wrote, and the entry that had written there last, or
 * LW_NONE. An entry's parts are ascending and without gaps.
 */
struct lw_undo {
	uint64_t	off, len;	/* bytes on the device */
	uint64_t	prev;
};

struct lw_index {
	const struct lw_index_entry *entry;
	const struct lw_index_mark *mark;
	const struct lw_undo *undo;
	const uint64_t	*undo_first;	/* of an entry: undo[undo_first[nr]] up
					 * to undo[undo_first[nr + 1] - 1] */
	uint64_t	nr, nr_marks, nr_undo;
	char		fault[512];	/* why the log ends before its time */
	char		note[2048];	/* about a kept index, for people */
	char		error[1024];	/* why the last call failed */
	uint64_t	bytes, peak;	/* of memory, at last and at most */
	void		*map;		/* of a kept index */
	size_t		map_size;
};

/* What of the index is needed; entries are there always. */
enum {
	LW_INDEX_ENTRIES = 1 << 0,	/* all of them, checked */
	LW_INDEX_MARKS	= 1 << 1,
	LW_INDEX_UNDO	= 1 << 2,
	LW_INDEX_ALL	= (1 << 3) - 1,
};

/*
 * The index of @log: the one kept in file @kept or, if that is NULL, in the file
 * beside the log, if there is one and it fits the log. One that does not fit is
 * built and kept anew; without one, it is only built. A log opened to be
 * salvaged never uses one.
 *
 * A fault in an entry is no failure: the index ends before it, with idx->fault
 * set to the message. log->nr_entries is final afterwards, and so is log->note.
 * Returns 0, or -errno with idx->error set. Ends with lw_index_close(), also
 * after a failure.
 */
int lw_index_open(struct lw_index *idx, struct lw_log *log, const char *kept,
		  unsigned int need);
void lw_index_close(struct lw_index *idx);

/* Only build it. Returns as lw_index_open() does. */
int lw_index_build(struct lw_index *idx, struct lw_log *log, unsigned int need);

/*
 * Keep @idx, built with LW_INDEX_ALL, in file @kept or, if that is NULL, beside
 * the log. What was there stays until the new one is whole; a file @kept that
 * is no index stays for good: -EEXIST.
 */
int lw_index_keep(struct lw_index *idx, struct lw_log *log, const char *kept);

/* Is there a file @path that holds something else than an index? */
bool lw_index_is_other(const char *path);

/* The file beside @log, for the caller to free; NULL for a device. */
char *lw_index_path(const struct lw_log *log);

/*
 * Read entry @nr as lw_next() does; the one after it is next. Returns 1, or
 * -errno with idx->error set: a log that has changed is found here.
 */
int lw_index_read(struct lw_index *idx, struct lw_log *log, uint64_t nr,
		  struct lw_entry *e);

/*
 * The first entry from @from on that is the mark @text, or that has any of
 * @flags. Returns 0 with it, or LW_NONE, in *@nr; or -errno with idx->error set.
 */
int lw_index_mark(struct lw_index *idx, struct lw_log *log, const char *text,
		  size_t len, uint64_t from, uint64_t *nr);
uint64_t lw_index_flags(const struct lw_index *idx, uint64_t flags,
			uint64_t from);

/* What of the log makes it this log and no other: a hash. 0 or -errno. */
int lw_index_identity(struct lw_index *idx, struct lw_log *log, uint64_t *id);

#endif
