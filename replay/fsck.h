/* SPDX-License-Identifier: GPL-2.0-only */
/* Ask a user's command about a state. */
#ifndef ACKPROOF_FSCK_H
#define ACKPROOF_FSCK_H

#include <stddef.h>

#include "check.h"
#include "state.h"

/*
 * Sync the target, and run the command line @command on it, which finds it in
 * LWREPLAY_TARGET and the point, "entry 7" or "start", in LWREPLAY_POINT.
 * Returns what check_ask_shell() does, with @what; or -errno with s->error set:
 * -EBUSY if the command has written to the target.
 */
int fsck_run(struct state *s, const char *command, char *what, size_t size);

#endif
