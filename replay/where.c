// SPDX-License-Identifier: GPL-2.0-only
/* Where a target stands; see where.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "util.h"
#include "where.h"

#define FORMAT	1

/* 64 bits do not fit JSON's integers: they are strings, in hexadecimal. */
static bool read_hex(const char *s, uint64_t *v)
{
	char *end;

	*v = strtoull(s, &end, 16);
	return strlen(s) == 16 && !*end;
}

int where_load(struct where *w, const char *path, char *error, size_t size)
{
	const char *log, *from, *until;
	json_int_t at, to;
	json_error_t e;
	json_t *j;
	int format, bad;

	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	j = json_load_file(path, 0, &e);
	if (!j) {
		snprintf(error, size, "%s: line %d: %s", path, e.line, e.text);
		return -EINVAL;
	}
	bad = json_unpack_ex(j, &e, 0, "{s:i, s:s, s:I, s:I, s:s, s:s}",
			     "format", &format, "log", &log, "at", &at,
			     "to", &to, "from", &from, "until", &until);
	if (bad)
		snprintf(error, size, "%s: %s", path, e.text);
	else if (format != FORMAT)
		snprintf(error, size, "%s: format %d, expected %d", path,
			 format, FORMAT);
	else if (!read_hex(log, &w->log) || !read_hex(from, &w->from) ||
		 !read_hex(until, &w->until) || at < 0 || to < 0)
		snprintf(error, size, "%s: a number in it is none", path);
	else
		format = 0;
	w->at = at;
	w->to = to;
	json_decref(j);
	return bad || format ? -EINVAL : 1;
}

static int sync_folder(const char *path)
{
	CLEANUP_FREE char *copy = xstrdup(path);
	CLEANUP_CLOSE int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY |
				    O_CLOEXEC);

	return fd < 0 || fsync(fd) ? -errno : 0;
}

int where_save(const struct where *w, const char *path, char *error,
	       size_t size)
{
	CLEANUP_FREE char *new = xasprintf("%s.new", path);
	CLEANUP_FREE char *text = xasprintf(
		"{\"format\": %d, \"log\": \"%016" PRIx64 "\", \"at\": %" PRIu64
		", \"to\": %" PRIu64 ", \"from\": \"%016" PRIx64
		"\", \"until\": \"%016" PRIx64 "\"}\n",
		FORMAT, w->log, w->at, w->to, w->from, w->until);
	CLEANUP_CLOSE int fd = -1;
	int ret = 0;

	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		ret = -errno;
	if (!ret)
		ret = pwrite_all(fd, text, strlen(text), 0);
	if (!ret && (fsync(fd) || rename(new, path)))
		ret = -errno;
	if (!ret)
		ret = sync_folder(path);
	if (ret) {
		errno = -ret;
		snprintf(error, size, "%s: cannot write: %m", path);
	}
	return ret;
}
