/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TAP for the unit tests: one line a check, what was got and expected where it
 * failed, and the plan at the end, so that a test that dies has none.
 */
#ifndef ACKPROOF_TAP_H
#define ACKPROOF_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned int tap_run, tap_failed;

/* Returns @good. */
__attribute__((format(printf, 2, 0)))
static inline bool vok(bool good, const char *fmt, va_list ap)
{
	printf("%sok %u - ", good ? "" : "not ", ++tap_run);
	vprintf(fmt, ap);
	putchar('\n');
	fflush(stdout);
	tap_failed += !good;
	return good;
}

__attribute__((format(printf, 2, 3)))
static inline bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vok(good, fmt, ap);
	va_end(ap);
	return good;
}

__attribute__((format(printf, 3, 4)))
static inline bool ok_int(int64_t got, int64_t want, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vok(got == want, fmt, ap);
	va_end(ap);
	if (got != want)
		printf("# got %" PRId64 ", expected %" PRId64 "\n", got, want);
	return got == want;
}

__attribute__((format(printf, 3, 4)))
static inline bool ok_str(const char *got, const char *want,
			  const char *fmt, ...)
{
	bool good = !strcmp(got, want);
	va_list ap;

	va_start(ap, fmt);
	vok(good, fmt, ap);
	va_end(ap);
	if (!good)
		printf("# got      '%s'\n# expected '%s'\n", got, want);
	return good;
}

/* The plan. Returns the exit status. */
static inline int tap_end(void)
{
	printf("1..%u\n", tap_run);
	return tap_failed || fflush(stdout) ? 1 : 0;
}

#endif
