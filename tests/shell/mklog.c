// SPDX-License-Identifier: GPL-2.0-only
/*
 * mklog: a log from lines of text on stdin. Offsets and lengths are in bytes.
 *
 *	write OFF LEN [FLAGS]	all bytes are the entry's number plus 1
 *	fua OFF LEN		the same, with FUA
 *	discard OFF LEN
 *	flush
 *	mark TEXT
 *	super N			the superblock counts N entries
 *
 * usage: mklog LOG [SECTORSIZE]
 */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../replay/util.h"
#include "../unit/mklog.h"

static void add_write(struct mklog *l, uint64_t off, size_t len, uint64_t flags)
{
	CLEANUP_FREE void *data = xcalloc(1, len);

	memset(data, l->nr + 1, len);
	mklog_write(l, flags, off, data, len);
}

int main(int argc, char **argv)
{
	unsigned long long off, len, super = UINT64_MAX;
	CLEANUP_FREE char *line = NULL;
	size_t max = 0;
	struct mklog l;

	if (argc != 2 && argc != 3)
		die(EXIT_USAGE, "expected LOG [SECTORSIZE]");
	mklog_init(&l, NULL, argc == 3 ? atoi(argv[2]) : 512);
	free(l.path);
	l.path = xstrdup(argv[1]);
	while (getline(&line, &max, stdin) > 0) {
		unsigned int flags = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "write %llu %llu %u", &off, &len, &flags) >= 2)
			add_write(&l, off, len, flags);
		else if (sscanf(line, "fua %llu %llu", &off, &len) == 2)
			add_write(&l, off, len, LW_FUA);
		else if (sscanf(line, "discard %llu %llu", &off, &len) == 2)
			mklog_discard(&l, off, len);
		else if (!strcmp(line, "flush"))
			mklog_flush(&l);
		else if (!strncmp(line, "mark ", 5))
			mklog_text(&l, line + 5, strlen(line + 5));
		else if (sscanf(line, "super %llu", &super) != 1)
			die(EXIT_USAGE, "'%s' is no entry", line);
	}
	if (super != UINT64_MAX)
		mklog_count(&l, super);
	mklog_save(&l);
	mklog_free(&l);
	return EXIT_OK;
}
