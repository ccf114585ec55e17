// SPDX-License-Identifier: GPL-2.0-only
/* A search among the states of a log; see bisect-log.h. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bisect-log.h"
#include "util.h"

#define LL(x)	((unsigned long long)(x))

void bisect_log_states(struct bisect_log *l, const struct lw_index *idx,
		       uint64_t from, uint64_t to, uint64_t flags)
{
	l->entry = xcalloc(to - from + 1, sizeof(*l->entry));
	l->last = to;
	for (uint64_t nr = from; nr <= to; nr++)
		if (nr == from || idx->entry[nr].len ||
		    idx->entry[nr].flags & flags)
			l->entry[l->b.nr++] = nr;
}

void bisect_log_chosen(struct bisect_log *l, const uint64_t *entry, size_t nr)
{
	l->entry = xcalloc(nr, sizeof(*l->entry));
	memcpy(l->entry, entry, nr * sizeof(*entry));
	l->last = entry[nr - 1];
	l->chosen = true;
	l->b.nr = nr;
}

/* The first point at @entry or behind it */
static uint64_t find(const struct bisect_log *l, uint64_t entry)
{
	uint64_t low = 0, high = l->b.nr;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (l->entry[mid] < entry)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void bisect_log_suspect(struct bisect_log *l, uint64_t entry)
{
	uint64_t point = find(l, entry);
	size_t n = l->b.nr_suspects;

	if (entry < l->entry[0] || point == l->b.nr)
		return;
	/* grown whenever the count is a power of two */
	if (!(n & (n - 1)))
		l->suspect = xrealloc(l->suspect, n ? 2 * n : 1,
				      sizeof(*l->suspect));
	l->suspect[n] = point;
	l->b.suspect = l->suspect;
	l->b.nr_suspects++;
}

void bisect_log_free(struct bisect_log *l)
{
	bisect_free(&l->b);
	free(l->entry);
	free(l->suspect);
	memset(l, 0, sizeof(*l));
}

/* The last entry of @point */
static uint64_t until(const struct bisect_log *l, uint64_t point)
{
	return l->chosen ? l->entry[point] :
	       point + 1 < l->b.nr ? l->entry[point + 1] - 1 : l->last;
}


/* What nobody has looked at in a stretch: null, or its widest part */
static json_t *json_gap(const struct bisect_log *l,
			const struct bisect_stretch *s)
{
	if (!s->gap)
		return json_null();
	return json_pack("{s:I, s:o, s:o}", "points", (json_int_t)s->gap,
			 "first", json_integer(l->entry[s->gap_first]), "last",
			 json_integer(until(l, s->gap_first + s->gap - 1)));
}

/* In entries; "may_begin" and "may_end" tell how exact the edges are. */
static json_t *json_stretch(const struct bisect_log *l, size_t i)
{
	const struct bisect_stretch *s = &l->b.stretch[i];
	uint64_t from = bisect_from(&l->b, i), to = bisect_until(&l->b, i);

	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:I, s:I, s:o}",
			 "first", json_integer(l->entry[s->first]),
			 "last", json_integer(until(l, s->last)),
			 "may_begin", json_integer(l->entry[from]),
			 "may_end", json_integer(until(l, to)),
			 "first_proven", from == s->first,
			 "last_proven", to == s->last,
			 "points", (json_int_t)(s->last - s->first + 1),
			 "checked", (json_int_t)s->checked,
			 "gap", json_gap(l, s));
}

static json_t *json_first_bad(const struct bisect_log *l)
{
	size_t i = bisect_first_bad(&l->b);
	const struct bisect_stretch *s = &l->b.stretch[i];

	if (i == l->b.nr_stretches)
		return json_null();
	return json_pack("{s:o, s:b, s:I, s:o}",
			 "entry", json_integer(l->entry[s->first]),
			 "proven", bisect_from(&l->b, i) == s->first,
			 "good_before", (json_int_t)bisect_good_before(&l->b),
			 "gap_before", i ? json_gap(l, s - 1) : json_null());
}

/* Does a bad stretch end in a good one? */
static bool heals(const struct bisect_log *l)
{
	return bisect_first_bad(&l->b) + 1 < l->b.nr_stretches;
}

static bool is_whole(const struct bisect_log *l)
{
	return l->b.nr_samples - l->b.cannot == l->b.nr;
}

static size_t suspects_checked(const struct bisect_log *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->b.nr_suspects; i++)
		n += bisect_is_checked(&l->b, l->b.suspect[i]);
	return n;
}

static char *reproduce(const struct bisect_log *l)
{
	size_t i = bisect_first_bad(&l->b);

	return i == l->b.nr_stretches ? NULL :
	       xasprintf("%s%llu%s", l->command,
			 LL(l->entry[l->b.stretch[i].first]), l->command_end);
}

void bisect_log_print_json(const struct bisect_log *l, FILE *out)
{
	CLEANUP_FREE char *again = reproduce(l);
	json_t *bad = json_array(), *good = json_array();
	json_t *cannot = json_array(), *o;

	for (size_t i = 0; i < l->b.nr_stretches; i++)
		json_array_append_new(l->b.stretch[i].bad ? bad : good,
				      json_stretch(l, i));
	for (size_t i = 0; i < l->b.nr_samples; i++)
		if (l->b.sample[i].verdict == CHECK_CANNOT)
			json_array_append_new(cannot, json_integer(
					l->entry[l->b.sample[i].point]));
	o = json_pack("{s:s, s:s, s:o, s:o, s:I, s:I, s:b, s:b, s:o, s:o, s:o, s:o, s:I, s:I, s:s?}",
		      "of", l->path, "check", l->what,
		      "from", json_integer(l->entry[0]),
		      "to", json_integer(l->last),
		      "points", (json_int_t)l->b.nr,
		      "checks", (json_int_t)l->b.nr_samples,
		      "all_checked", is_whole(l), "heals", heals(l),
		      "first_bad", json_first_bad(l), "bad", bad, "good", good,
		      "cannot_tell", cannot,
		      "suspects", (json_int_t)l->b.nr_suspects,
		      "suspects_checked", (json_int_t)suspects_checked(l),
		      "reproduce", again);
	if (l->more_json)
		json_object_update(o, l->more_json);
	if (!o || json_dumpf(o, out, JSON_INDENT(1)))
		die(EXIT_CANNOT, "cannot print the report as JSON");
	putc('\n', out);
	json_decref(o);
}

/* "entry 7", or "one of the entries 3 to 7" where that is all that is known */
static void print_edge(FILE *out, const char *word, uint64_t low, uint64_t high)
{
	if (low == high)
		fprintf(out, "%s entry %llu", word, LL(low));
	else
		fprintf(out, "%s one of the entries %llu to %llu", word, LL(low),
			LL(high));
}

static void print_bad(FILE *out, const struct bisect_log *l, size_t i)
{
	const struct bisect_stretch *s = &l->b.stretch[i];
	uint64_t from = bisect_from(&l->b, i), to = bisect_until(&l->b, i);
	uint64_t points = s->last - s->first + 1;

	print_edge(out, "bad from", l->entry[from], l->entry[s->first]);
	if (!s->first)
		fprintf(out, " (the first)");
	print_edge(out, " to", until(l, s->last), until(l, to));
	if (s->last == l->b.nr - 1)
		fprintf(out, " (the last)");
	fprintf(out, ", %llu of %llu states checked%s\n", LL(s->checked),
		LL(points), s->checked == points ? "" :
		": good ones may be between them");
}

static void print_first_bad(FILE *out, const struct bisect_log *l, size_t i)
{
	const struct bisect_stretch *s = &l->b.stretch[i];
	uint64_t from = bisect_from(&l->b, i);

	if (from == s->first && !i)
		fprintf(out, "first bad: entry %llu, before which nothing was looked at\n",
		       LL(l->entry[s->first]));
	else if (from == s->first)
		fprintf(out, "first bad: entry %llu; the %llu states next before it are good\n",
		       LL(l->entry[s->first]), LL(bisect_good_before(&l->b)));
	else
		fprintf(out, "first bad: not proven, one of the entries %llu to %llu\n",
		       LL(l->entry[from]), LL(l->entry[s->first]));
}

/* Where bad ones may hide among the good */
static void print_missed(FILE *out, const struct bisect_log *l)
{
	const struct bisect_stretch *widest = NULL;

	for (size_t i = 0; i < l->b.nr_stretches; i++) {
		const struct bisect_stretch *s = &l->b.stretch[i];

		if (!s->bad && s->gap && (!widest || s->gap > widest->gap))
			widest = s;
	}
	if (widest)
		fprintf(out, "would be missed: a bad window of up to %llu states, as in the entries %llu to %llu\n",
		       LL(widest->gap), LL(l->entry[widest->gap_first]),
		       LL(until(l, widest->gap_first + widest->gap - 1)));
}

void bisect_log_print(const struct bisect_log *l, FILE *out)
{
	CLEANUP_FREE char *again = reproduce(l);
	size_t first = bisect_first_bad(&l->b), windows = 0;

	for (size_t i = 0; i < l->b.nr_stretches; i++)
		windows += l->b.stretch[i].bad;
	fprintf(out, "%llu states of the entries %llu to %llu, %zu checked: %zu bad window%s\n",
	       LL(l->b.nr), LL(l->entry[0]), LL(l->last), l->b.nr_samples,
	       windows, windows == 1 ? "" : "s");
	for (size_t i = 0; i < l->b.nr_stretches; i++)
		if (l->b.stretch[i].bad)
			print_bad(out, l, i);
	if (l->b.nr_suspects)
		fprintf(out, "suspects: %zu, %zu of them checked\n",
			l->b.nr_suspects, suspects_checked(l));
	if (l->b.cannot)
		fprintf(out, "cannot tell: %llu states\n", LL(l->b.cannot));
	if (heals(l))
		fprintf(out, "not monotonic: bad states become good again\n");
	else if (windows)
		fprintf(out, "monotonic: %s\n", is_whole(l) ? "yes" :
		       "as far as it was looked at");
	if (windows)
		print_first_bad(out, l, first);
	print_missed(out, l);
	if (l->more)
		fprintf(out, "%s\n", l->more);
	if (again)
		fprintf(out, "reproduce: %s\n", again);
}
