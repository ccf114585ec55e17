/* SPDX-License-Identifier: GPL-2.0-only */
/* Guarding devices that hold somebody's data. */
#ifndef ACKPROOF_BLOCKDEV_H
#define ACKPROOF_BLOCKDEV_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Look for a file system, a RAID member, a partition table or the like on
 * @path. Returns 0 if there is none, 1 with the kind of it in @what, or -errno
 * if the device cannot be read.
 */
int blockdev_signature(const char *path, char *what, size_t size);

/* Is @path what @fd is open on? False if there is no @path. */
bool blockdev_same(const char *path, int fd);

/*
 * Refuse, fatally, to write to @path if it is a device in use or, unless
 * @force, holds a signature.
 */
void blockdev_refuse(const char *path, bool force);

#endif
