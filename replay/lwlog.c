// SPDX-License-Identifier: GPL-2.0-only
/* lwlog: look into a dm-log-writes log, and copy it. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwlog-filter.h"
#include "lwlog.h"

static const struct command *const commands[] = {
	&command_stat, &command_list, &command_find, &command_tail,
	&command_check, &command_convert, &command_index,
};

#define STATUS_USAGE \
	"Exit status: 0 done; 1 nothing found, a log at fault, or a failed write; 2 usage,\n" \
	"or no log."

static void __attribute__((noreturn)) help_all(void)
{
	puts("Usage: lwlog COMMAND [OPTION]... LOG\n"
	     "\n"
	     "Look into LOG, a dm-log-writes log: a file, a block device, or a file of zstd\n"
	     "in seekable frames.\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("lwlog %s%s\n", commands[i]->usage,
		       commands[i]->options ? commands[i]->options : "");
	puts("FILTER: entries are selected that fit all of\n"
	     FILTER_USAGE
	     "\n"
	     "All commands:\n"
	     COMMON_USAGE
	     "\n"
	     STATUS_USAGE);
	close_stdout();
	exit(EXIT_OK);
}

static void __attribute__((noreturn)) help(const struct command *c)
{
	printf("Usage: lwlog %s\n%s%s%s\n%s\n", c->usage,
	       c->options ? c->options : "", c->filters ? FILTER_USAGE : "",
	       COMMON_USAGE, STATUS_USAGE);
	close_stdout();
	exit(EXIT_OK);
}

void common_option(struct lwlog *l, int c)
{
	switch (c) {
	case OPT_SALVAGE:
		l->salvage = true;
		break;
	case OPT_JSON:
		l->json = true;
		break;
	case 'h':
		help(l->command);
	default:
		exit(EXIT_USAGE);
	}
}

void open_log(struct lwlog *l, const char *path, unsigned int how)
{
	if (l->salvage)
		how |= LW_SALVAGE;
	if (lw_open(&l->log, path, how))
		die(EXIT_USAGE, "%s", l->log.error);
}

const char *only_argument(struct lwlog *l, int argc, char **argv)
{
	if (optind + 1 != argc)
		die(EXIT_USAGE, "expected one log; see lwlog %s --help",
		    l->command->name);
	return argv[optind];
}

void open_only(struct lwlog *l, int argc, char **argv, unsigned int how)
{
	open_log(l, only_argument(l, argc, argv), how);
}

void tell_note(const struct lwlog *l)
{
	if (l->log.note[0])
		warn("%s", l->log.note);
}

int tell_end(const struct lwlog *l, int ret)
{
	tell_note(l);
	if (ret >= 0)
		return EXIT_OK;
	warn("%s", l->log.error);
	return EXIT_LOSS;
}

bool is_end_mark(const struct lw_entry *e)
{
	return lw_is_mark(e, LW_END_MARK, strlen(LW_END_MARK));
}

int main(int argc, char **argv)
{
	struct lwlog l = { .log.src.fd = -1 };
	int status;

	if (argc < 2)
		die(EXIT_USAGE, "expected a command; see lwlog --help");
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		help_all();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i]->name))
			l.command = commands[i];
	if (!l.command)
		die(EXIT_USAGE, "unknown command '%s'; see lwlog --help",
		    argv[1]);
	argv[1] = argv[0];	/* getopt's messages start with it */
	status = l.command->run(&l, argc - 1, argv + 1);
	lw_close(&l.log);
	close_stdout();
	return status;
}
