// SPDX-License-Identifier: GPL-2.0-only
/* lwlog's output: one table of columns for text and JSON. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwlog.h"

const char *printable(const char *text, size_t len)
{
	static char *buf;
	char *p;

	free(buf);
	p = buf = xcalloc(len + 1, 4);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = text[i];

		if (c < ' ' || c > '~' || c == '\\')
			p += sprintf(p, "\\x%02x", c);
		else
			*p++ = c;
	}
	return buf;
}

json_t *json_u64(uint64_t v)
{
	return v > INT64_MAX ? json_null() : json_integer(v);
}

json_t *json_text(const char *text)
{
	json_t *o = *text ? json_string(text) : json_null();

	return o ? o : json_string(printable(text, strlen(text)));
}

void print_json(json_t *o, size_t flags)
{
	if (!o)
		die(EXIT_CANNOT, "out of memory");
	json_dumpf(o, stdout, flags);	/* close_stdout() tells a failure */
	putchar('\n');
	json_decref(o);
}

static uint64_t nr_of(const struct lw_log *log, const struct lw_entry *e)
{
	(void)log;
	return e->nr;
}

static uint64_t offset_of(const struct lw_log *log, const struct lw_entry *e)
{
	(void)log;
	return e->header_off;
}

/* In sectors, the numbers of a discard are below 2^63 whatever the log says. */
static uint64_t sector_of(const struct lw_log *log, const struct lw_entry *e)
{
	return e->off / log->sectorsize;
}

static uint64_t sectors_of(const struct lw_log *log, const struct lw_entry *e)
{
	return e->len / log->sectorsize;
}

static const char *flags_of(const struct lw_entry *e)
{
	static char buf[LW_FLAGS_MAX];

	return lw_flags(e->flags, buf);
}

/* NULL where there is none */
static const char *mark_of(const struct lw_entry *e)
{
	return e->flags & LW_MARK ? printable(e->mark, e->mark_len) : NULL;
}

static const struct column {
	const char	*head, *key;
	int		width;
	uint64_t	(*number)(const struct lw_log *log,
				  const struct lw_entry *e);
	const char	*(*text)(const struct lw_entry *e);
} columns[] = {
	{ "ENTRY",	"entry",	9,	.number = nr_of },
	{ "OFFSET",	"offset",	13,	.number = offset_of },
	{ "SECTOR",	"sector",	11,	.number = sector_of },
	{ "SECTORS",	"sectors",	8,	.number = sectors_of },
	{ "FLAGS",	"flags",	12,	.text = flags_of },
	{ "MARK",	"mark",		0,	.text = mark_of },
};

static void print_heads(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		printf("%s%*s", i ? " " : "", columns[i].width,
		       columns[i].head);
	putchar('\n');
}

static void print_columns(const struct lw_log *log, const struct lw_entry *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		const struct column *c = &columns[i];
		const char *sep = i ? " " : "";
		const char *text = c->text ? c->text(e) : NULL;

		if (c->number)
			printf("%s%*llu", sep, c->width,
			       LL(c->number(log, e)));
		else if (text)
			printf("%s%*s", sep, c->width, text);
	}
	putchar('\n');
}

static json_t *entry_json(const struct lw_log *log, const struct lw_entry *e)
{
	json_t *o = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		const struct column *c = &columns[i];
		const char *text = c->text ? c->text(e) : NULL;

		if (c->number)
			json_object_set_new(o, c->key,
					    json_u64(c->number(log, e)));
		else if (text)
			json_object_set_new(o, c->key, json_string(text));
	}
	return o;
}

void print_entry(struct lwlog *l, const struct lw_entry *e)
{
	if (l->json) {
		print_json(entry_json(&l->log, e), JSON_COMPACT);
	} else {
		if (!l->headed)
			print_heads();
		l->headed = true;
		print_columns(&l->log, e);
	}
	/* the rest of a long log would be for nobody */
	if (ferror(stdout))
		close_stdout();
}
