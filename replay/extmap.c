// SPDX-License-Identifier: GPL-2.0-only
/*
 * The map of ranges; see extmap.h.
 *
 * What is kept are the places where the value changes, in ascending order: an
 * extent needs no end then, and a gap is an extent like others. They are cut
 * into small sorted arrays, the leaves, so that a new one moves only a part of
 * its leaf; the leaf is found by binary search.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "extmap.h"
#include "util.h"

/* Fewer make the list of leaves long, more make each new extent move more. */
#ifndef FUZZING
enum { LEAF_MAX = 255 };
#else	/* a small map is to have many */
enum { LEAF_MAX = 8 };
#endif

/* Starts are apart from the values: a search reads nothing else. */
struct extmap_leaf {
	uint64_t	nr;
	uint64_t	start[LEAF_MAX];
	uint64_t	value[LEAF_MAX];
	struct extmap_leaf *next_free;
};

/*
 * Leaves come from chunks of the size of a huge page, but for the first: many a
 * map is small.
 */
enum { CHUNK = 2 << 20, FIRST_CHUNK = 64 << 10 };

/* An extent: @slot of a leaf */
struct pos {
	size_t		leaf, slot;
};

/* The last of @n ascending keys that is not above @key: the first never is. */
static size_t search(const uint64_t *keys, size_t n, uint64_t key)
{
	size_t i = 0;

	/* no branch on a key: half of the guesses would be wrong */
	while (n > 1) {
		size_t half = n / 2;

		i += keys[i + half] <= key ? half : 0;
		n -= half;
	}
	return i;
}

static struct pos find(const struct extmap *m, uint64_t place)
{
	const struct extmap_leaf *l;
	struct pos p;

	p.leaf = search(m->first, m->nr_leaves, place);
	l = m->leaf[p.leaf];
	/* miss the cache once, not at each step of the search and the splice */
	for (size_t i = 0; i < sizeof(*l); i += 64)
		__builtin_prefetch((const char *)l + i);
	p.slot = search(l->start, l->nr, place);
	return p;
}

static uint64_t extent_end(const struct extmap *m, struct pos p)
{
	const struct extmap_leaf *l = m->leaf[p.leaf];

	if (p.slot + 1 < l->nr)
		return l->start[p.slot + 1];
	return p.leaf + 1 < m->nr_leaves ? m->first[p.leaf + 1] : UINT64_MAX;
}

/*
 * Call @fn, if any, for each extent's part of [@start, @end), the first of
 * which is at @p. Returns the last one; @nr is how many are no gaps.
 */
static struct pos walk(const struct extmap *m, struct pos p, uint64_t start,
		       uint64_t end, extmap_fn *fn, void *arg, uint64_t *nr)
{
	*nr = 0;
	for (;;) {
		uint64_t value = m->leaf[p.leaf]->value[p.slot];
		uint64_t until = extent_end(m, p);

		*nr += value != EXTMAP_NONE;
		if (fn)
			fn(start, until < end ? until : end, value, arg);
		if (until >= end)
			return p;
		start = until;
		if (++p.slot == m->leaf[p.leaf]->nr) {
			p.leaf++;
			p.slot = 0;
		}
	}
}

static size_t chunk_size(size_t i)
{
	return i ? CHUNK : FIRST_CHUNK;
}

static void add_chunk(struct extmap *m)
{
	const size_t size = chunk_size(m->nr_chunks);
	struct extmap_leaf *l = aligned_alloc(size, size);

	if (!l)
		die(EXIT_CANNOT, "out of memory (%zu bytes)", size);
	/* a set in any order misses the TLB otherwise; a kernel may have none */
	if (size == CHUNK)
		madvise(l, size, MADV_HUGEPAGE);
	m->chunk = xrealloc(m->chunk, m->nr_chunks + 1, sizeof(*m->chunk));
	m->chunk[m->nr_chunks++] = l;
	m->nr_cut = 0;
}

/* One that was dropped, or one not touched yet: a small map has few of them. */
static struct extmap_leaf *take_leaf(struct extmap *m)
{
	struct extmap_leaf *l = m->free;

	if (l) {
		m->free = l->next_free;
		return l;
	}
	if (!m->nr_chunks ||
	    m->nr_cut == chunk_size(m->nr_chunks - 1) / sizeof(*l))
		add_chunk(m);
	return m->chunk[m->nr_chunks - 1] + m->nr_cut++;
}

/* Put an empty leaf at @at. */
static struct extmap_leaf *add_leaf(struct extmap *m, size_t at)
{
	size_t behind = m->nr_leaves - at;
	struct extmap_leaf *l = take_leaf(m);

	l->nr = 0;
	if (m->nr_leaves == m->max_leaves) {
		m->max_leaves = m->max_leaves ? 2 * m->max_leaves : 16;
		m->leaf = xrealloc(m->leaf, m->max_leaves, sizeof(*m->leaf));
		m->first = xrealloc(m->first, m->max_leaves,
				    sizeof(*m->first));
	}
	memmove(m->leaf + at + 1, m->leaf + at, behind * sizeof(*m->leaf));
	memmove(m->first + at + 1, m->first + at, behind * sizeof(*m->first));
	m->leaf[at] = l;
	m->nr_leaves++;
	return l;
}

/* Drop the leaves [@from, @to). */
static void drop_leaves(struct extmap *m, size_t from, size_t to)
{
	size_t behind = m->nr_leaves - to;

	for (size_t i = from; i < to; i++) {
		m->leaf[i]->next_free = m->free;
		m->free = m->leaf[i];
	}
	memmove(m->leaf + from, m->leaf + to, behind * sizeof(*m->leaf));
	memmove(m->first + from, m->first + to, behind * sizeof(*m->first));
	m->nr_leaves -= to - from;
}

/* Put @n extents in the place of @gone, from @slot on. */
static void splice(struct extmap_leaf *l, size_t slot, size_t gone,
		   const uint64_t *start, const uint64_t *value, size_t n)
{
	size_t behind = l->nr - slot - gone;

	memmove(l->start + slot + n, l->start + slot + gone,
		behind * sizeof(*l->start));
	memmove(l->value + slot + n, l->value + slot + gone,
		behind * sizeof(*l->value));
	for (size_t i = 0; i < n; i++) {
		l->start[slot + i] = start[i];
		l->value[slot + i] = value[i];
	}
	l->nr = slot + n + behind;
}

static void erase(struct extmap_leaf *l, size_t slot, size_t gone)
{
	splice(l, slot, gone, NULL, NULL, 0);
}

/*
 * Cut a full leaf in two before extents are put at @p. Returns where that is
 * now. At the leaf's end they are probably some of many in ascending order, and
 * the leaf stays full.
 */
static struct pos split(struct extmap *m, struct pos p)
{
	struct extmap_leaf *l = m->leaf[p.leaf];
	struct extmap_leaf *right = add_leaf(m, p.leaf + 1);
	size_t at = p.slot == l->nr ? l->nr : l->nr / 2;

	splice(right, 0, 0, l->start + at, l->value + at, l->nr - at);
	l->nr = at;
	m->first[p.leaf + 1] = right->start[0];
	if (p.slot < at)
		return p;
	return (struct pos){ p.leaf + 1, p.slot - at };
}

void extmap_init(struct extmap *m)
{
	const uint64_t start = 0, value = EXTMAP_NONE;

	memset(m, 0, sizeof(*m));
	splice(add_leaf(m, 0), 0, 0, &start, &value, 1);
	m->first[0] = start;
}

void extmap_free(struct extmap *m)
{
	for (size_t i = 0; i < m->nr_chunks; i++)
		free(m->chunk[i]);
	free(m->chunk);
	free(m->leaf);
	free(m->first);
	memset(m, 0, sizeof(*m));
}

void extmap_set(struct extmap *m, uint64_t start, uint64_t end,
		uint64_t value, extmap_fn *cut, void *arg)
{
	struct pos a = find(m, start), b;
	uint64_t starts[3], values[3], nr_gone;
	struct extmap_leaf *l = m->leaf[a.leaf];
	struct extmap_leaf *last;
	size_t n = 0, gone;

	b = walk(m, a, start, end, cut, arg, &nr_gone);
	last = m->leaf[b.leaf];

	/* in the place of the extents from a to b: what is left of a ... */
	if (l->start[a.slot] < start) {
		starts[n] = l->start[a.slot];
		values[n++] = l->value[a.slot];
	}
	starts[n] = start;
	values[n++] = value;
	/* ... and of b, which may be the same one */
	if (extent_end(m, b) > end) {
		starts[n] = end;
		values[n++] = last->value[b.slot];
	}
	m->nr -= nr_gone;
	for (size_t i = 0; i < n; i++)
		m->nr += values[i] != EXTMAP_NONE;

	if (l == last) {
		gone = b.slot + 1 - a.slot;
	} else {
		gone = l->nr - a.slot;
		erase(last, 0, b.slot + 1);
		m->first[b.leaf] = last->start[0];
		drop_leaves(m, a.leaf + 1, last->nr ? b.leaf : b.leaf + 1);
	}
	if (l->nr - gone + n > LEAF_MAX) {
		erase(l, a.slot, gone);
		gone = 0;
		a = split(m, a);
		l = m->leaf[a.leaf];
	}
	splice(l, a.slot, gone, starts, values, n);
	m->first[a.leaf] = l->start[0];	/* if it is new */
}

void extmap_get(const struct extmap *m, uint64_t start, uint64_t end,
		extmap_fn *fn, void *arg)
{
	uint64_t nr;

	walk(m, find(m, start), start, end, fn, arg, &nr);
}

size_t extmap_memory(const struct extmap *m)
{
	size_t sum = m->nr_chunks * sizeof(*m->chunk) +
		     m->max_leaves * (sizeof(*m->leaf) + sizeof(*m->first));

	for (size_t i = 0; i < m->nr_chunks; i++)
		sum += chunk_size(i);
	return sum;
}
