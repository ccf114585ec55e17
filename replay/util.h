/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every tool here needs: fatal errors, checked allocation, numbers with
 * suffixes, cleanup of descriptors by attribute, and a checked stdout.
 */
#ifndef ACKPROOF_UTIL_H
#define ACKPROOF_UTIL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Exit statuses of all tools. */
enum {
	EXIT_OK		= 0,
	EXIT_LOSS	= 1,	/* an expectation failed: a loss, a bad log */
	EXIT_USAGE	= 2,
	EXIT_CANNOT	= 77,	/* cannot run here */
};

/* getopt_long values of options that have no letter */
enum { OPT_BASE = CHAR_MAX + 1 };

#define CLEANUP_CLOSE	__attribute__((cleanup(cleanup_close)))
#define CLEANUP_FREE	__attribute__((cleanup(cleanup_free)))

void cleanup_close(int *fd);
void cleanup_free(void *pp);

/* "tool: message" on stderr, then exit. The message has no newline. */
void die(int status, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Like their namesakes, and never return NULL: out of memory is fatal. */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Parse a whole unsigned decimal number within [min, max].
 * Returns 0, or -EINVAL if @s is not one, or -ERANGE.
 */
int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *val);

/* parse_u64() for an option's argument: a bad one ends with EXIT_USAGE. */
uint64_t arg_u64(const char *opt, const char *s, uint64_t min, uint64_t max);

/* The same for a size in bytes, maybe with a suffix K, M, G or T (of 1024). */
uint64_t arg_size(const char *opt, const char *s, uint64_t min, uint64_t max);

/* Write or read all @len bytes at @off. Returns 0 or -errno (-EIO: short). */
int pwrite_all(int fd, const void *buf, size_t len, uint64_t off);
int pread_all(int fd, void *buf, size_t len, uint64_t off);

/* Seconds of the monotonic clock. */
double now(void);

/* Call last: a full disk or a closed pipe must not look like success. */
void close_stdout(void);

#endif
