// SPDX-License-Identifier: GPL-2.0-only
/* crashcheck --bisect: find a capture's bad states with few mounts. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "bisect-log.h"
#include "crashcheck.h"
#include "util.h"

#define LL(x)	((unsigned long long)(x))

static int losses(const struct trial *t)
{
	return t->mount_errno ? CHECK_CANNOT :
	       t->nr_losses ? CHECK_BAD : CHECK_GOOD;
}

static int mounts(const struct trial *t)
{
	return t->mount_errno ? CHECK_BAD : CHECK_GOOD;
}

static int repairs(const struct trial *t)
{
	return t->dirty ? CHECK_BAD : CHECK_GOOD;
}

static int all(const struct trial *t)
{
	return t->mount_errno || t->nr_losses || t->dirty ? CHECK_BAD :
							    CHECK_GOOD;
}

static const struct checker {
	const char	*name;
	int		(*verdict)(const struct trial *t);
	bool		repair;
	bool		acks;		/* an ack may make a state bad */
} checkers[] = {
	{ "loss", losses, .acks = true },
	{ "mount", mounts },
	{ "repair", repairs, .repair = true },
	{ "builtin", all, .repair = true, .acks = true },
};

struct search {
	struct trial	*t;
	const struct checker *checker;
	struct bisect_log l;
	char		*more;		/* the report's line on the audit */
};

static int check_point(uint64_t point, void *arg)
{
	struct search *s = arg;

	trial_move(s->t, s->l.entry[point]);
	trial_run(s->t, NULL, 0, s->checker->repair);
	print_result(s->t, s->checker->repair);
	return s->checker->verdict(s->t);
}

static int by_from(const void *a, const void *b)
{
	const struct audit_loss *x = a, *y = b;

	return x->from_entry < y->from_entry ? -1 :
	       x->from_entry > y->from_entry;
}

struct window {
	uint64_t	from, until;	/* entries; AUDIT_NEVER: to the end */
};

/* The states that lack something acknowledged, by the log alone */
static size_t join_losses(struct audit *a, struct window **list)
{
	struct window *w = xcalloc(a->nr_losses, sizeof(*w));
	size_t n = 0;

	*list = w;
	if (a->nr_losses)
		qsort(a->loss, a->nr_losses, sizeof(*a->loss), by_from);
	for (size_t i = 0; i < a->nr_losses; i++) {
		const struct audit_loss *l = &a->loss[i];

		if (!n || l->from_entry > w[n - 1].until)
			w[n++] = (struct window){ l->from_entry, l->until_entry };
		else if (l->until_entry > w[n - 1].until)
			w[n - 1].until = l->until_entry;
	}
	return n;
}

/* Their edges are where to look, and they are a part of the report. */
static void add_losses(struct search *s, struct audit *a)
{
	CLEANUP_FREE struct window *w = NULL;
	size_t n = join_losses(a, &w), in = 0;
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		uint64_t last = w[i].until == AUDIT_NEVER ? a->end_entry :
				w[i].until - 1;

		if (last < s->l.entry[0] || w[i].from > s->l.last)
			continue;
		in++;
		json_array_append_new(list, json_pack(
			"{s:I, s:I}", "first", (json_int_t)w[i].from,
			"last", (json_int_t)last));
		bisect_log_suspect(&s->l, w[i].from);
		bisect_log_suspect(&s->l, w[i].until);
	}
	s->l.more_json = json_pack("{s:o}", "audit", list);
	s->more = xasprintf("audit: %zu bad windows in these entries, from the log alone",
			    in);
	s->l.more = s->more;
}

static const struct checker *find_checker(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(checkers); i++)
		if (!strcmp(checkers[i].name, name))
			return &checkers[i];
	die(EXIT_USAGE, "--bisect: '%s', expected loss, mount, repair or builtin",
	    name);
}

/* Teardown logs unflushed writes as if they were durable: the run's own only */
static void choose_points(struct search *s, const struct bisect_args *args)
{
	struct trial *t = s->t;
	uint64_t from, to;
	char error[600];
	struct audit a;

	if (audit_run(&a, &t->log, &t->cap.model, error, sizeof(error)))
		die(EXIT_USAGE, "%s", error);
	from = args->from == UINT64_MAX ? a.begin_entry : args->from;
	to = args->to == UINT64_MAX ? a.end_entry : args->to;
	if (from < a.begin_entry || to > a.end_entry || from > to)
		die(EXIT_USAGE,
		    "entries %llu to %llu, expected some from %llu to %llu, which are the run's",
		    LL(from), LL(to), LL(a.begin_entry), LL(a.end_entry));
	bisect_log_states(&s->l, &t->index, from, to,
			  s->checker->acks ? LW_MARK : 0);
	if (s->checker->acks)
		add_losses(s, &a);
	audit_free(&a);
}

static void write_report(const struct bisect_log *l, const char *name,
			 const char *suffix,
			 void (*print)(const struct bisect_log *l, FILE *out))
{
	CLEANUP_FREE char *path = xasprintf("%s%s", name, suffix);
	FILE *f = fopen(path, "we");

	if (!f)
		die(EXIT_LOSS, "%s: cannot create: %m", path);
	print(l, f);
	if (ferror(f) | fclose(f))
		die(EXIT_LOSS, "%s: cannot write: %m", path);
}

void crashcheck_bisect(struct trial *t, const struct bisect_args *args)
{
	struct search s = { .t = t, .checker = find_checker(args->check) };
	CLEANUP_FREE char *end = xasprintf(" %s", args->capture);

	choose_points(&s, args);
	s.l.b.budget = args->budget;
	s.l.b.check = check_point;
	s.l.b.arg = &s;
	s.l.what = args->check;
	s.l.path = args->capture;
	s.l.command = s.checker->repair ? "ackproof replay --repair --points " :
					  "ackproof replay --points ";
	s.l.command_end = end;
	bisect_run(&s.l.b);
	write_report(&s.l, args->report, ".txt", bisect_log_print);
	write_report(&s.l, args->report, ".json", bisect_log_print_json);
	json_decref(s.l.more_json);
	free(s.more);
	bisect_log_free(&s.l);
}
