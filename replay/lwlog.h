/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the commands of lwlog share: the table's entry, the options that all of
 * them have, how a log is opened and how its oddities are told.
 */
#ifndef ACKPROOF_LWLOG_H
#define ACKPROOF_LWLOG_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "log.h"
#include "util.h"

#define LL(x)	((unsigned long long)(x))

struct lwlog;

struct command {
	const char	*name;
	const char	*usage;		/* arguments, and what it does ... */
	const char	*options;	/* and its own: this is the help */
	bool		filters;	/* it has FILTER_OPTIONS, too */
	int		(*run)(struct lwlog *l, int argc, char **argv);
};

extern const struct command command_stat, command_list, command_find,
			    command_tail, command_convert, command_check,
			    command_index;

/* One run of one command */
struct lwlog {
	const struct command *command;
	const char	*index;		/* --index, or NULL */
	bool		json, salvage;
	bool		headed;		/* the columns' heads are printed */
	struct lw_log	log;
};

/* getopt_long values of all commands */
enum {
	OPT_JSON = OPT_BASE, OPT_SALVAGE, OPT_INDEX, OPT_DROP,
	OPT_FROM, OPT_TO, OPT_FLAGS, OPT_MARK, OPT_SECTORS, OPT_LIMIT,
	OPT_ENTRY, OPT_LAST, OPT_LEVEL, OPT_FRAME, OPT_WHOLE
};

/* Those of all commands, and their help */
#define COMMON_OPTIONS						\
	{ "salvage", no_argument, NULL, OPT_SALVAGE },		\
	{ "json", no_argument, NULL, OPT_JSON },		\
	{ "help", no_argument, NULL, 'h' }

#define COMMON_USAGE \
	"      --salvage        take a damaged log up to its first fault\n" \
	"      --json           print JSON\n" \
	"  -h, --help           show this help\n"

/* Take option @c if it is one of all commands; a wrong one is the end. */
void common_option(struct lwlog *l, int c);

/* The only argument left. */
const char *only_argument(struct lwlog *l, int argc, char **argv);

/* Open a log, or the one that is the only argument left; or that is the end. */
void open_log(struct lwlog *l, const char *path, unsigned int how);
void open_only(struct lwlog *l, int argc, char **argv, unsigned int how);

/* Say what is odd about the log's end, if that is known and odd. */
void tell_note(const struct lwlog *l);

/*
 * After the last lw_next(), which returned @ret: say that, and what the fault
 * is. Returns the exit status.
 */
int tell_end(const struct lwlog *l, int ret);

/* Is @e the mark that the target leaves when it is removed? */
bool is_end_mark(const struct lw_entry *e);

/* Is @e a write of data that is not flagged, or as metadata only? */
static inline bool is_plain_write(const struct lw_entry *e)
{
	return e->len && !(e->flags & ~(uint64_t)LW_METADATA);
}

/*
 * Text as it is printed: what is not printable, and backslashes, as \xNN. The
 * string lives until the next call.
 */
const char *printable(const char *text, size_t len);

/* Print one entry, as a line of columns or of JSON. */
void print_entry(struct lwlog *l, const struct lw_entry *e);

/* Print @o and drop it. */
void print_json(json_t *o, size_t flags);

/* A number, or null where JSON's are too small for it */
json_t *json_u64(uint64_t v);

/* A string, as printable() if it is no UTF-8, or null for an empty one */
json_t *json_text(const char *text);

#endif
