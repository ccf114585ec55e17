/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why an acknowledged block is lost: which flush should have covered its write,
 * and why it did not.
 *
 * A flush makes durable what had completed when the flush was submitted
 * (Documentation/block/writeback_cache_control.rst). So an ack may rely on a flush
 * only if that was submitted after the write completed, and completed without an
 * error before the ack. The log has neither time; the capture's trace has both.
 */
#ifndef ACKPROOF_EXPLAIN_H
#define ACKPROOF_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit.h"
#include "capture.h"
#include "log.h"
#include "trace.h"
#include "../workloads/verify.h"

enum explain_cause {
	/* no trace, or none of this write */
	CAUSE_UNKNOWN,
	/* a flush that covers the write completed before the ack, and yet the log
	 * has the write later: another flush had taken it. No device loses it. */
	CAUSE_TAKEN_BY_ANOTHER,
	/* the write was still in flight at the ack, or when the ack's own flush
	 * was submitted */
	CAUSE_WRITE_NOT_AWAITED,
	/* a flush that covers the write failed */
	CAUSE_FLUSH_FAILED,
	/* a flush completed before the ack, but it was submitted before the write
	 * completed */
	CAUSE_SUBMITTED_EARLY,
	/* a flush that covers the write was submitted before the ack and
	 * completed after it */
	CAUSE_COMPLETED_LATE,
	/* no flush was sent that could have covered the write */
	CAUSE_NEVER_SENT,
	/* older data of the block were in flight at the same time */
	CAUSE_OVERTAKEN,
	/* the data are there in time, and what leads to them is not: only a mount
	 * has lost them */
	CAUSE_METADATA_LATE,
	NR_CAUSES,
};

const char *explain_cause_name(enum explain_cause cause);

/* How a flush stands to the write and the ack */
enum explain_relation {
	FLUSH_COVERS,		/* in time, and yet */
	FLUSH_FAILED,		/* it would have */
	FLUSH_EARLY,		/* submitted before the write completed */
	FLUSH_LATE,		/* submitted in time, completed after the ack */
	FLUSH_AFTER,		/* submitted after the ack */
	FLUSH_UNTRACED,		/* nobody knows */
	NR_RELATIONS,
};

const char *explain_relation_name(enum explain_relation relation);

/* One flush near a loss */
struct explain_flush {
	uint64_t	entry;		/* of the log, or AUDIT_NEVER */
	uint64_t	bio;		/* its number in the trace, or
					 * TRACE_NEVER: then there is no more */
	uint64_t	journal;	/* that of the journal's write that it
					 * is the preflush of, or TRACE_NEVER */
	enum explain_relation relation;
};

/* Where the log has a write of the journal with the file's inode in it */
struct explain_journal {
	uint64_t	entry;
	uint32_t	cycle, block;	/* the record's LSN */
};

struct explanation {
	const struct audit_loss *loss;
	uint64_t	point;		/* the state that shows it */
	uint64_t	*write;		/* entries with the acknowledged data, or
					 * newer, that come too late; ascending */
	size_t		nr_writes;
	uint64_t	in_time;	/* the entry of data that are there, and
					 * yet not found, or AUDIT_NEVER */
	uint64_t	over;		/* entry of older data that went over
					 * them, or AUDIT_NEVER */
	uint64_t	previous;	/* the writer's ack before, or the begin
					 * mark: an entry */
	uint64_t	holder;		/* the FLUSH entry that the writes were
					 * logged with, or AUDIT_NEVER */
	enum explain_cause cause;
	bool		inferred;	/* from what the capture shows elsewhere,
					 * as this loss alone cannot tell */
	uint64_t	named;		/* the bio of the flush that the cause is
					 * about, or TRACE_NEVER */
	uint64_t	next;		/* the first flush submitted after the
					 * write completed, likewise */
	struct explain_flush *flush;	/* near: in order of submission */
	size_t		nr_flushes;
	uint64_t	ino;		/* of the file, 0: not known */
	struct explain_journal before, after;	/* the last record with it before
					 * the ack, the first after: entry is
					 * AUDIT_NEVER where there is none */
};

/* What the capture as a whole shows of how its fsyncs went about it */
struct explain_evidence {
	uint64_t	fsyncs;
	uint64_t	own_flushes;	/* FLUSH entries of the run that are not
					 * an iclog's: fsyncs sent them */
	uint64_t	journal_flushes;
	uint64_t	traced;		/* fsyncs whose writes are in the trace */
	uint64_t	not_awaited;	/* of those: their own flush, or the ack,
					 * came before the write completed */
	uint64_t	alone[NR_CAUSES];	/* losses, each by itself */
	uint64_t	by_cause[NR_CAUSES];	/* and with what the others tell */
};

struct explain {
	struct capture	cap;
	struct lw_log	log;
	struct audit	audit;
	struct trace	trace;
	bool		traced;
	struct explain_evidence evidence;

	/* private */
	struct block_write *block;
	size_t		nr_blocks, max_blocks;
	uint64_t	*ack;		/* the entry of each, by writer and number */
	struct flush_entry *flush;	/* FLUSH entries of the log */
	size_t		nr_flushes, max_flushes;
	struct journal_write *journal;
	size_t		nr_journal, max_journal;
	uint64_t	*by_submit;	/* bios that flush, by submission */
	size_t		nr_by_submit;
	int32_t		*pid;		/* of each writer, 0: not known */
	uint64_t	*ino;		/* of each file, by writer and number */
};

/*
 * Audit the capture in folder @dir, and read its trace if it has one. Returns 0,
 * or -errno with a message in @error. Ends with explain_close(), also after a
 * failure.
 */
int explain_open(struct explain *x, const char *dir, char *error, size_t size);
void explain_close(struct explain *x);

/*
 * Explain a loss of the audit, or with explain_mounted() one that a mount of the
 * state at entry @point has found: that fills in @l, and fails with -EINVAL if it is
 * not of an acknowledged block. @e refers to the loss, and ends with
 * explain_free().
 */
void explain_loss(struct explain *x, const struct audit_loss *l,
		  struct explanation *e);
int explain_mounted(struct explain *x, const struct verify_loss *v,
		    uint64_t point, struct audit_loss *l);
void explain_free(struct explanation *e);

/* The writer whose process is @pid, or -1 */
int64_t explain_writer(const struct explain *x, int32_t pid);

#endif
