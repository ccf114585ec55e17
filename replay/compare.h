/* SPDX-License-Identifier: GPL-2.0-only */
/* Compare a target with an image, and say which entries wrote what differs. */
#ifndef ACKPROOF_COMPARE_H
#define ACKPROOF_COMPARE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "state.h"

enum { COMPARE_LISTED = 20 };

struct compare {
	uint64_t	differ;		/* sectors of 512 bytes */
	size_t		nr;		/* ranges in the list */
	struct compare_range {
		uint64_t	off, len;	/* bytes */
		uint64_t	entry;		/* last to write @off, or LW_NONE */
	} range[COMPARE_LISTED];
	char		error[512];
};

/*
 * Compare the bytes that count of @s's target with those of @image. Returns 0,
 * or -errno with c->error set: also where the sizes differ.
 */
int compare_run(struct compare *c, const struct state *s, const char *image);

/* For people; and for machines, owned by the caller. */
void compare_print(const struct compare *c, const struct state *s,
		   const char *image);
json_t *compare_json(const struct compare *c);

#endif
