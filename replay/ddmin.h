/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delta debugging: the smallest part of a set that still does what the whole
 * does (A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing
 * Input", 2002).
 */
#ifndef ACKPROOF_DDMIN_H
#define ACKPROOF_DDMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Do the @nr elements of @set, ascending, do it? Asked once for each set. */
typedef bool ddmin_test(const uint64_t *set, size_t nr, void *arg);

/*
 * Reduce @set, of @nr elements that do it together, where none at all do not.
 * Afterwards its first elements, as many as are returned, do it, and would not if
 * any one of them were missing.
 */
size_t ddmin(uint64_t *set, size_t nr, ddmin_test *test, void *arg);

#endif
