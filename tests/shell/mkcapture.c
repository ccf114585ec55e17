// SPDX-License-Identifier: GPL-2.0-only
/*
 * mkcapture: a small capture for the tests of the shell side, complete or with
 * one fault.
 *
 * usage: mkcapture FOLDER [FAULT]
 */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../replay/util.h"
#include "../unit/mklog.h"

enum { WRITERS = 2, OPS = 5 };

static const char *fault = "none";

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static void operations(struct mklog *l)
{
	for (uint32_t op = 0; op < OPS; op++) {
		for (uint32_t w = 0; w < WRITERS; w++) {
			/* the last one's data is lost */
			if (!is("loss") || op + 1 < OPS || w)
				mklog_block(l, (w + 1) << 16, w, op, 0, 0);
			mklog_flush(l);
			mklog_mark(l, MARK_ACK, w, op);
		}
	}
}

int main(int argc, char **argv)
{
	struct model_params p = {
		.seed = 7, .writers = WRITERS, .ops = OPS, .files = 1,
		.blocks = 1,
	};
	struct mklog l;
	struct model m;
	char error[256];

	if (argc != 2 && argc != 3)
		die(EXIT_USAGE, "expected FOLDER [FAULT]");
	if (argc == 3)
		fault = argv[2];
	/* it is put together beside the folder, and then renamed */
	setenv("TMPDIR", ".", 1);
	if (model_init(&m, &p, error, sizeof(error)))
		die(EXIT_USAGE, "%s", error);
	mklog_init(&l, &m, 512);
	if (!is("no-begin"))
		mklog_mark(&l, MARK_BEGIN, 0, 0);
	operations(&l);
	if (!is("no-end"))
		mklog_mark(&l, MARK_END, 0, 0);
	if (is("cut-header")) {
		l.len -= 100;
	} else if (is("cut-data")) {
		mklog_block(&l, 0, 0, 0, 0, 0);
		l.len -= 1000;
	} else if (is("empty")) {
		l.len = 0;
	} else if (is("no-log")) {
		memset(l.buf, 'x', l.len);
	}
	mklog_save(&l);
	if (rename(scratch(), argv[1]))
		die(EXIT_CANNOT, "%s: cannot rename: %m", argv[1]);
	mklog_free(&l);
	model_free(&m);
	return EXIT_OK;
}
