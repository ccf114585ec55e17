// SPDX-License-Identifier: GPL-2.0-only
/* Thin calls on libdevmapper; see dm.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <libdevmapper.h>

#include "dm.h"

static char last_error[256];

__attribute__((format(printf, 5, 6)))
static void log_line(int level, const char *file, int line, int dm_errno,
		     const char *fmt, ...)
{
	va_list ap;

	(void)file;
	(void)line;
	(void)dm_errno;
	/* log levels are syslog's, with flags above the lowest three bits */
	if ((level & 7) > 3)
		return;
	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
}

const char *dm_error(void)
{
	return last_error;
}

void dm_setup(void)
{
	dm_log_with_errno_init(log_line);
	/*
	 * The devices live for milliseconds and are used by this process only,
	 * by the node that devtmpfs makes: there is nothing to wait for.
	 */
	dm_udev_set_sync_support(0);
}

static void destroy_task(struct dm_task **t)
{
	if (*t)
		dm_task_destroy(*t);
}

#define CLEANUP_TASK __attribute__((cleanup(destroy_task)))

static int task_failed(struct dm_task *t)
{
	int err = t ? dm_task_get_errno(t) : ENOMEM;

	return err ? -err : -EIO;
}

int dm_create(const char *name, uint64_t sectors, const char *target,
	      const char *params, char *node, size_t size)
{
	CLEANUP_TASK struct dm_task *t = dm_task_create(DM_DEVICE_CREATE);
	struct dm_info info;

	if (!t || !dm_task_set_name(t, name) ||
	    !dm_task_set_add_node(t, DM_ADD_NODE_ON_CREATE) ||
	    !dm_task_add_target(t, 0, sectors, target, params) ||
	    !dm_task_run(t) || !dm_task_get_info(t, &info))
		return task_failed(t);
	snprintf(node, size, "/dev/dm-%u", info.minor);
	return 0;
}

int dm_remove(const char *name)
{
	CLEANUP_TASK struct dm_task *t = dm_task_create(DM_DEVICE_REMOVE);

	if (!t || !dm_task_set_name(t, name) || !dm_task_retry_remove(t) ||
	    !dm_task_run(t))
		return task_failed(t);
	return 0;
}

int dm_message(const char *name, const char *message)
{
	CLEANUP_TASK struct dm_task *t = dm_task_create(DM_DEVICE_TARGET_MSG);

	if (!t || !dm_task_set_name(t, name) || !dm_task_set_sector(t, 0) ||
	    !dm_task_set_message(t, message) || !dm_task_run(t))
		return task_failed(t);
	return 0;
}

int dm_status(const char *name, char *status, size_t size)
{
	CLEANUP_TASK struct dm_task *t = dm_task_create(DM_DEVICE_STATUS);
	char *type = NULL, *params = NULL;
	uint64_t start, length;

	if (!t || !dm_task_set_name(t, name) || !dm_task_run(t))
		return task_failed(t);
	dm_get_next_target(t, NULL, &start, &length, &type, &params);
	snprintf(status, size, "%s", params ? params : "");
	return 0;
}
