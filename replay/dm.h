/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few device-mapper calls that the tools make, on libdevmapper, in this
 * process: a fork costs more than a whole replay's device work.
 */
#ifndef ACKPROOF_DM_H
#define ACKPROOF_DM_H

#include <stddef.h>
#include <stdint.h>

/*
 * All return 0, or -errno with a message in dm_error(). Names are those of
 * /dev/mapper.
 */

/* Call first. Makes the device nodes without udev where none is running. */
void dm_setup(void);

/*
 * Create and start @name with one target over @sectors (of 512 bytes). The
 * device's node, made by devtmpfs, is written to @node.
 */
int dm_create(const char *name, uint64_t sectors, const char *target,
	      const char *params, char *node, size_t size);

int dm_remove(const char *name);

/* Send @message to the target at sector 0. */
int dm_message(const char *name, const char *message);

/* The status line of the first target. */
int dm_status(const char *name, char *status, size_t size);

const char *dm_error(void);

#endif
