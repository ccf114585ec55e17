/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The oracle: the model read the other way. It follows the acks and then says
 * of a mounted file system what it has lost of what was acknowledged.
 */
#ifndef ACKPROOF_VERIFY_H
#define ACKPROOF_VERIFY_H

#include <stdint.h>

#include "../replay/audit.h"
#include "model.h"

struct verify {
	const struct model *m;
	int64_t		*last_ack;	/* of each writer, -1 at first */
	int64_t		*acked;		/* last acked operation of each block */
	uint32_t	*min_blocks;	/* acked size of each file */
	uint8_t		*buf;
};

struct verify_loss {
	enum loss_kind	kind;
	uint32_t	writer, file, block;
	int64_t		op;		/* acknowledged, -1 if none was */
	int64_t		got;		/* oldest operation found, or -1 */
};

void verify_init(struct verify *v, const struct model *m);
void verify_free(struct verify *v);

/* Writer @writer was acknowledged operation @op, the one after its last. */
void verify_ack(struct verify *v, uint32_t writer, uint32_t op);

/*
 * Compare every acknowledged name, size and block below @root with the acks so
 * far, and call @lost for each loss. A block that cannot be read is missing.
 * Returns the number of losses.
 */
uint64_t verify_tree(struct verify *v, const char *root,
		     void (*lost)(const struct verify_loss *l, void *arg),
		     void *arg);

#endif
