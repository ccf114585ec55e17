/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The trace of a capture: when each bio of the recorded device was submitted, by
 * whom, when it completed, and which entry of the log it became. It is the text
 * of tracefs's file "trace" with the events of dm-log-writes, from
 * kernel-patches: include/trace/events/dm_log_writes.h.
 *
 * What happened before what is told by the order of the trace's lines: a flush
 * covers a write that completed in a line before the flush's submission. Times
 * are for people.
 */
#ifndef ACKPROOF_TRACE_H
#define ACKPROOF_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_NEVER	UINT64_MAX	/* did not happen, as far as was traced */

/* A bio, or a mark, which does not complete */
struct trace_bio {
	uint64_t	submitted, completed, logged;	/* line numbers, from 1,
							 * or TRACE_NEVER */
	uint64_t	submit_us, complete_us;		/* monotonic clock */
	uint64_t	flags;		/* as in the log: LW_FLUSH and so on */
	uint64_t	sector;		/* of the log */
	uint64_t	entry;		/* of the log, or TRACE_NEVER */
	int32_t		pid;		/* of its submitter */
	int32_t		error;		/* of its completion: -errno or 0 */
	char		comm[16];	/* the submitter's name */
};

struct trace {
	struct trace_bio *bio;		/* by id; those that were not traced have
					 * never been submitted nor completed */
	uint64_t	nr;
	uint64_t	*by_entry;	/* an entry's bio, or TRACE_NEVER */
	uint64_t	nr_entries;
	uint64_t	lines;
	uint64_t	dropped;	/* events, from the end: no room for them */
};

/*
 * Read the trace in file @path. Returns 0, or -errno with a message in @error
 * that names the file, the line and the byte: -ENOENT where there is none. Ends
 * with trace_free(), also after a failure.
 */
int trace_load(struct trace *t, const char *path, char *error, size_t size);
void trace_free(struct trace *t);

/* The bio that became @entry, or NULL */
static inline const struct trace_bio *
trace_entry(const struct trace *t, uint64_t entry)
{
	if (entry >= t->nr_entries || t->by_entry[entry] == TRACE_NEVER)
		return NULL;
	return &t->bio[t->by_entry[entry]];
}

#endif
