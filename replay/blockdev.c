// SPDX-License-Identifier: GPL-2.0-only
/* Signatures on devices, as libblkid knows them; see blockdev.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <blkid/blkid.h>

#include "blockdev.h"
#include "util.h"

static void free_probe(blkid_probe *pr)
{
	blkid_free_probe(*pr);
}

int blockdev_signature(const char *path, char *what, size_t size)
{
	__attribute__((cleanup(free_probe)))
	blkid_probe pr = blkid_new_probe_from_filename(path);
	const char *type;
	int ret;

	if (!pr)
		return errno ? -errno : -EIO;
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE);
	blkid_probe_enable_partitions(pr, 1);
	ret = blkid_do_safeprobe(pr);
	if (ret == 1)
		return 0;	/* nothing found */
	if (ret == -1)
		return -EIO;
	/* found one, or -2: several that contradict each other */
	if (blkid_probe_lookup_value(pr, "TYPE", &type, NULL) &&
	    blkid_probe_lookup_value(pr, "PTTYPE", &type, NULL))
		type = "several";
	snprintf(what, size, "%s", type);
	return 1;
}

bool blockdev_same(const char *path, int fd)
{
	struct stat a, b;

	if (stat(path, &a) || fstat(fd, &b))
		return false;
	if (S_ISBLK(a.st_mode) && S_ISBLK(b.st_mode))
		return a.st_rdev == b.st_rdev;
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void blockdev_refuse(const char *path, bool force)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	char what[64];
	int ret;

	if (fd < 0 && errno == EBUSY)
		die(EXIT_USAGE, "%s: is mounted or in use", path);
	ret = force ? 0 : blockdev_signature(path, what, sizeof(what));
	if (ret < 0) {
		errno = -ret;
		die(EXIT_USAGE, "%s: cannot look for signatures: %m", path);
	}
	if (ret)
		die(EXIT_USAGE, "%s: holds %s: use --force to overwrite it",
		    path, what);
}
