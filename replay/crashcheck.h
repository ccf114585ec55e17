/* SPDX-License-Identifier: GPL-2.0-only */
/* What crashcheck does with a trial, each in a file of its own. */
#ifndef ACKPROOF_CRASHCHECK_H
#define ACKPROOF_CRASHCHECK_H

#include "trial.h"

/*
 * Read losses from the standard input, a line "POINT WRITER FILE BLOCK ENTRY..."
 * each, and print for each the smallest set of entries after POINT that brings the
 * block back when it is written over the state there. The ENTRYs, if they do, are
 * what is reduced. A line "POINT" is of a state that is not mounted.
 */
void crashcheck_minimal(struct trial *t);

#endif
