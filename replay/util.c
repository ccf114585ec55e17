// SPDX-License-Identifier: GPL-2.0-only
/* Small helpers that every tool needs; see util.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

void cleanup_free(void *pp)
{
	free(*(void **)pp);
}

static void vmessage(const char *fmt, va_list ap)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmessage(fmt, ap);
	va_end(ap);
	exit(status);
}

void warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmessage(fmt, ap);
	va_end(ap);
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		die(EXIT_CANNOT, "out of memory (%zu x %zu bytes)", n, size);
	return p;
}

void *xrealloc(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n ? n : 1, size);
	if (!p)
		die(EXIT_CANNOT, "out of memory (%zu x %zu bytes)", n, size);
	return p;
}

char *xstrdup(const char *s)
{
	char *p = strdup(s);

	if (!p)
		die(EXIT_CANNOT, "out of memory");
	return p;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	if (vasprintf(&p, fmt, ap) < 0)
		die(EXIT_CANNOT, "out of memory");
	va_end(ap);
	return p;
}

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *val)
{
	unsigned long long v;
	char *end;

	if (*s < '0' || *s > '9')	/* strtoull takes signs and blanks */
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno == ERANGE || v < min || v > max)
		return -ERANGE;
	*val = v;
	return 0;
}

uint64_t arg_u64(const char *opt, const char *s, uint64_t min, uint64_t max)
{
	uint64_t v;

	if (parse_u64(s, min, max, &v))
		die(EXIT_USAGE, "%s: '%s' is not a number from %llu to %llu",
		    opt, s, (unsigned long long)min, (unsigned long long)max);
	return v;
}

uint64_t arg_size(const char *opt, const char *s, uint64_t min, uint64_t max)
{
	static const char suffixes[] = "KMGT";
	CLEANUP_FREE char *number = xstrdup(s);
	size_t len = strlen(s);
	const char *suffix = len ? strchr(suffixes, s[len - 1]) : NULL;
	unsigned int shift = 0;
	uint64_t v;

	if (suffix) {
		shift = 10 * (suffix - suffixes + 1);
		number[len - 1] = '\0';
	}
	if (parse_u64(number, 0, UINT64_MAX >> shift, &v) ||
	    v << shift < min || v << shift > max)
		die(EXIT_USAGE,
		    "%s: '%s' is not a size from %llu to %llu bytes, maybe with K, M, G or T",
		    opt, s, (unsigned long long)min, (unsigned long long)max);
	return v << shift;
}

int pwrite_all(int fd, const void *buf, size_t len, uint64_t off)
{
	while (len) {
		ssize_t n = pwrite(fd, buf, len, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		buf = (const char *)buf + n;
		len -= n;
		off += n;
	}
	return 0;
}

int pread_all(int fd, void *buf, size_t len, uint64_t off)
{
	while (len) {
		ssize_t n = pread(fd, buf, len, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		buf = (char *)buf + n;
		len -= n;
		off += n;
	}
	return 0;
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

void close_stdout(void)
{
	if (fflush(stdout) || ferror(stdout))
		die(EXIT_LOSS, "cannot write to stdout: %m");
}
