// SPDX-License-Identifier: GPL-2.0-only
/* crashcheck --minimal: which entries would have kept a block; see crashcheck.h. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "crashcheck.h"
#include "ddmin.h"
#include "util.h"

/* A search that takes more is not worth the wait: what is left then is told. */
enum { MAX_TRIALS = 400 };

struct request {
	struct trial	*t;
	bool		any;		/* what makes the state mount is enough */
	uint64_t	point, writer, file, block;
	uint64_t	*guess;
	size_t		nr_guess;
	uint64_t	trials;
	bool		gave_up;
};

/* "POINT", or "POINT WRITER FILE BLOCK ENTRY...", which goes to pieces */
static void parse_request(struct request *q, char *line)
{
	uint64_t *number[] = { &q->point, &q->writer, &q->file, &q->block };
	uint64_t last = q->t->index.nr - 1;
	size_t n = 0;
	char *word;

	while ((word = strsep(&line, " \n"))) {
		uint64_t *to;

		if (!*word)
			continue;
		if (n >= ARRAY_SIZE(number)) {
			q->guess = xrealloc(q->guess, q->nr_guess + 1,
					    sizeof(*q->guess));
			to = &q->guess[q->nr_guess++];
		} else {
			to = number[n];
		}
		if (parse_u64(word, 0, to == &q->point || n >= ARRAY_SIZE(number) ?
			      last : UINT32_MAX, to))
			die(EXIT_USAGE,
			    "'%s' in a line of 'POINT WRITER FILE BLOCK ENTRY...': expected a number up to %llu",
			    word, (unsigned long long)last);
		n++;
	}
	q->any = n == 1;
	if (!q->any && n < ARRAY_SIZE(number))
		die(EXIT_USAGE, "expected 'POINT' or 'POINT WRITER FILE BLOCK ENTRY...'");
}

/* Is the block there, or the state mounted, with these entries written over the state? */
static bool brings_back(const uint64_t *entry, size_t nr, void *arg)
{
	struct request *q = arg;
	struct trial *t = q->t;

	if (q->trials == MAX_TRIALS) {
		q->gave_up = true;
		return false;
	}
	q->trials++;
	trial_run(t, entry, nr, false);
	if (t->mount_errno)
		return false;
	for (size_t i = 0; i < t->nr_losses && !q->any; i++) {
		const struct verify_loss *l = &t->loss[i];

		if (l->writer == q->writer && l->file == q->file &&
		    l->block == q->block)
			return false;
	}
	return true;
}

/* The entries after the point that change the device: up to the log's end */
static uint64_t *later_entries(const struct request *q, size_t *nr)
{
	const struct lw_index *index = &q->t->index;
	uint64_t *entry = xcalloc(index->nr, sizeof(*entry));

	*nr = 0;
	for (uint64_t i = q->point + 1; i < index->nr; i++)
		if (index->entry[i].len)
			entry[(*nr)++] = i;
	return entry;
}

/*
 * All that follows should bring the block back at some place. Take so much of it
 * that it does, twice as much each time, and then reduce that.
 */
static uint64_t *search(struct request *q, size_t *found)
{
	size_t nr, n = 16;
	uint64_t *entry = later_entries(q, &nr);

	while (n < nr && !brings_back(entry, n, q))
		n *= 2;
	if (n >= nr) {
		n = nr;
		if (!brings_back(entry, n, q)) {
			free(entry);
			*found = 0;
			return NULL;
		}
	}
	*found = ddmin(entry, n, brings_back, q);
	return entry;
}

static void print_request(const struct request *q, bool lost,
			  const uint64_t *entry, size_t nr)
{
	json_t *list = json_array(), *j;

	for (size_t i = 0; i < nr; i++)
		json_array_append_new(list, json_integer(entry[i]));
	j = json_pack("{s:I, s:I, s:I, s:I, s:b, s:o, s:b, s:I}",
		      "point", (json_int_t)q->point,
		      "writer", (json_int_t)q->writer,
		      "file", (json_int_t)q->file,
		      "block", (json_int_t)q->block, "lost", lost,
		      "entries", entry ? list : json_null(),
		      "smallest", !q->gave_up,
		      "trials", (json_int_t)q->trials);
	if (!j || json_dumpf(j, stdout, JSON_COMPACT))
		die(EXIT_LOSS, "cannot print the result as JSON");
	putchar('\n');
	json_decref(j);
	if (!entry)
		json_decref(list);
	close_stdout();
}

static void reduce(struct request *q)
{
	CLEANUP_FREE uint64_t *entry = NULL;
	size_t nr = q->nr_guess;
	bool lost;

	trial_move(q->t, q->point);
	lost = !brings_back(NULL, 0, q);
	if (lost && nr && brings_back(q->guess, nr, q)) {
		nr = ddmin(q->guess, nr, brings_back, q);
		print_request(q, lost, q->guess, nr);
		return;
	}
	if (lost)
		entry = search(q, &nr);
	print_request(q, lost, entry, nr);
}

void crashcheck_minimal(struct trial *t)
{
	CLEANUP_FREE char *line = NULL;
	size_t max = 0;

	while (getline(&line, &max, stdin) > 0) {
		struct request q = { .t = t };

		parse_request(&q, line);
		reduce(&q);
		free(q.guess);
	}
}
