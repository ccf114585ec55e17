/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The audit: the check of every ack from the log alone. In one pass over the
 * log it follows what each sector of the writers' blocks holds. At an ack, the
 * acknowledged sectors must have been logged before it; afterwards, until the
 * end mark, nothing older may be logged over them. A loss found so is real
 * for data. Whether the metadata still leads to the data, only a mount can
 * tell.
 */
#ifndef ACKPROOF_AUDIT_H
#define ACKPROOF_AUDIT_H

#include <stddef.h>
#include <stdint.h>

#include "../workloads/model.h"
#include "log.h"

enum loss_kind {
	LOSS_MISSING,	/* never logged; at a mount: no such file or block */
	LOSS_STALE,	/* an older operation's data, all of it */
	LOSS_TORN,	/* parts of several operations */
	LOSS_FOREIGN,	/* what no writer wrote, or what none can have yet */
	LOSS_ZERO,	/* zeros */
	NR_LOSS_KINDS,
};

const char *loss_kind_name(enum loss_kind kind);

struct audit_loss {
	enum loss_kind	kind;
	uint32_t	writer, file, block;
	uint32_t	op;		/* the acknowledged operation */
	uint64_t	ack_entry;	/* the ack's own entry */
	uint64_t	from_entry;	/* lost from here: the ack, or later the
					 * entry that went over the data */
	uint64_t	until_entry;	/* where the data appeared, or
					 * AUDIT_NEVER */
	uint64_t	next;		/* private: the block's next open loss */
};

#define AUDIT_NEVER	UINT64_MAX

struct audit {
	/* results */
	struct audit_loss *loss;
	size_t		nr_losses;
	uint64_t	acks, acks_lost;
	uint64_t	entries;
	uint64_t	begin_entry, end_entry;	/* of the run's own marks */
	uint64_t	flushes;	/* FLUSH entries from begin to last ack */
	uint64_t	by_kind[NR_LOSS_KINDS];
	uint64_t	longest;	/* window, in entries */
	size_t		longest_loss;	/* the index of its loss */
};

/*
 * Audit @log from its first entry against @m. Returns 0 with @a filled in, to
 * be ended by audit_free(), or -EINVAL with a message in @error: a fault in
 * the log, an ack out of order, no begin or end mark, acks missing.
 */
int audit_run(struct audit *a, struct lw_log *log, const struct model *m,
	      char *error, size_t size);
void audit_free(struct audit *a);

/*
 * What names a loss on any machine, as ackproof-reproduce(1) reads it: @hash, which
 * is the log's by lw_hash(), the point, and the verdict. For the caller to free.
 */
char *audit_token(const struct audit_loss *l, const char *hash);

/*
 * fsyncs that sent no flush of their own, at the least: a FLUSH entry pays for
 * one fsync at the most, so the others went without.
 */
static inline uint64_t audit_skipped_min(const struct audit *a)
{
	return a->acks > a->flushes ? a->acks - a->flushes : 0;
}

#endif
