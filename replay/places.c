// SPDX-License-Identifier: GPL-2.0-only
/* Points of a log, as people name them; see places.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "util.h"

#define LL(x)	((unsigned long long)(x))

__attribute__((format(printf, 3, 4)))
static int fail(struct lw_index *idx, int ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(idx->error, sizeof(idx->error), fmt, ap);
	va_end(ap);
	return ret;
}

static int after_mark(uint64_t *done, const char *text, struct lw_index *idx,
		      struct lw_log *log)
{
	uint64_t nr;
	int ret = lw_index_mark(idx, log, text, strlen(text), 0, &nr);

	if (ret)
		return ret;
	if (nr == LW_NONE)
		return fail(idx, -ENOENT, "%s: no mark '%s' in %llu entries%s%s",
			    log->path, text, LL(idx->nr),
			    idx->fault[0] ? "; " : "", idx->fault);
	*done = nr + 1;
	return 0;
}

int places_one(uint64_t *done, const char *spec, struct lw_index *idx,
	       struct lw_log *log)
{
	uint64_t nr;

	if (!strcmp(spec, "start")) {
		*done = 0;
		return 0;
	}
	if (!strcmp(spec, "end")) {
		if (idx->fault[0])
			return fail(idx, -EBADMSG, "%s", idx->fault);
		*done = idx->nr;
		return 0;
	}
	if (!strncmp(spec, "mark:", 5))
		return after_mark(done, spec + 5, idx, log);
	if (parse_u64(spec, 0, UINT64_MAX, &nr))
		return fail(idx, -EINVAL,
			    "'%s', expected an entry's number, mark:TEXT, start or end",
			    spec);
	if (nr >= idx->nr && idx->fault[0])
		return fail(idx, -EBADMSG, "%s", idx->fault);
	if (nr >= idx->nr)
		return fail(idx, -ENOENT, "%s: no entry %llu, the log has %llu",
			    log->path, LL(nr), LL(idx->nr));
	*done = nr + 1;
	return 0;
}

static void add(struct places *p, uint64_t done)
{
	if (p->nr == p->max) {
		p->max = p->max ? 2 * p->max : 64;
		p->done = xrealloc(p->done, p->max, sizeof(*p->done));
	}
	p->done[p->nr++] = done;
}

static int add_word(struct places *p, const char *word, struct lw_index *idx,
		    struct lw_log *log)
{
	static const struct {
		const char	*name;
		uint64_t	flag;
	} kinds[] = {
		{ "flush", LW_FLUSH }, { "fua", LW_FUA }, { "mark", LW_MARK },
	};
	uint64_t n;
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(word, kinds[i].name))
			continue;
		for (uint64_t nr = 0; nr < idx->nr; nr++)
			if (idx->entry[nr].flags & kinds[i].flag)
				add(p, nr + 1);
		return 0;
	}
	if (!strncmp(word, "every:", 6)) {
		if (parse_u64(word + 6, 1, UINT64_MAX, &n))
			return fail(idx, -EINVAL, "'%s': '%s' is not a count",
				    word, word + 6);
		for (uint64_t nr = n; nr <= idx->nr; nr += n)
			add(p, nr);
		return 0;
	}
	ret = places_one(&n, word, idx, log);
	if (!ret)
		add(p, n);
	else if (ret == -EINVAL)
		fail(idx, ret,
		     "'%s', expected an entry's number, mark:TEXT, start, end, flush, fua, mark or every:N",
		     word);
	return ret;
}

static int by_place(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int places_list(struct places *p, const char *spec, struct lw_index *idx,
		struct lw_log *log)
{
	CLEANUP_FREE char *words = xstrdup(spec);
	char *word, *rest = words;
	size_t n = 0;
	int ret = 0;

	memset(p, 0, sizeof(*p));
	while (!ret && (word = strsep(&rest, ",")))
		ret = add_word(p, word, idx, log);
	if (p->nr)
		qsort(p->done, p->nr, sizeof(*p->done), by_place);
	for (size_t i = 0; i < p->nr; i++)
		if (!n || p->done[n - 1] != p->done[i])
			p->done[n++] = p->done[i];
	p->nr = n;
	return ret;
}

void places_free(struct places *p)
{
	free(p->done);
	memset(p, 0, sizeof(*p));
}

const char *places_name(uint64_t done, char name[32])
{
	snprintf(name, 32, done ? "entry %llu" : "start", LL(done) - 1);
	return name;
}
