// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fuzz target for libFuzzer: any bytes are a log, plain or packed. What the
 * library makes of it in one way has to agree with what it makes of it in
 * another, and states with a plain simulation in memory. Whatever does not
 * agree ends with abort(), and so does exit(): no input is a reason for it.
 *
 * Options that are not in a log follow from a hash of it, so that each input is
 * a log and nothing else.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../../replay/index.h"
#include "../../replay/state.h"
#include "../../replay/util.h"
#include "../../replay/zst.h"

#define LL(x)	((unsigned long long)(x))

/* What is packed may be far larger than its file: no time for that here. */
#define UNPACKED_MAX	(4ULL << 20)

enum { TARGET_MAX = 1 << 20, STEPS = 8 };

#define CHECK(cond, fmt, ...)						\
	do {								\
		if (!(cond))						\
			disagree(__LINE__, #cond, fmt, ##__VA_ARGS__);	\
	} while (0)

__attribute__((noreturn, format(printf, 3, 4)))
static void disagree(int line, const char *cond, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "fuzz-log.c:%d: not so: %s: ", line, cond);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

/* Files in memory, and the paths by which they are opened again */
struct file {
	int		fd;
	char		path[32];
};

static struct file input, target;
static uint64_t draws;

static uint32_t draw(uint32_t below)
{
	draws = draws * 6364136223846793005ULL + 1442695040888963407ULL;
	return (draws >> 33) % below;
}

static void make_file(struct file *f, const char *name)
{
	f->fd = memfd_create(name, MFD_CLOEXEC);
	CHECK(f->fd >= 0, "%m");
	snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
}

static void fill_file(struct file *f, const void *data, size_t size,
		      uint64_t file_size)
{
	CHECK(!ftruncate(f->fd, 0) && !pwrite_all(f->fd, data, size, 0) &&
	      !ftruncate(f->fd, file_size), "%m");
}

/*
 * Does a frame of the input not unpack? Only who reads the data finds that, and
 * not in entries that are not counted: there, it is the log's end.
 */
static bool bad_frame;

static void try_frames(void)
{
	struct zst z;

	bad_frame = false;
	if (!zst_is(input.fd))
		return;
	if (!zst_open(&z, input.fd) && z.size <= UNPACKED_MAX) {
		void *buf = xcalloc(z.size, 1);

		for (size_t i = 0; i < z.nr_frames && !bad_frame; i++)
			bad_frame = z.frame[i].len &&
				    zst_read_frame(&z, i, buf);
		free(buf);
	}
	zst_close(&z);
}

/* All that one way to read the log says */

struct reading {
	unsigned int	how;
	int		opened, ended;	/* by lw_open() and lw_next() */
	uint32_t	unit;
	bool		packed, no_super;
	uint64_t	size, counted, nr_entries;
	struct lw_entry	*e;		/* with data and marks of their own */
	uint64_t	nr, max;
	char		error[512], note[512];
};

static void *copy(const void *p, size_t len)
{
	return len ? memcpy(xcalloc(len, 1), p, len) : NULL;
}

static void add(struct reading *r, const struct lw_entry *e)
{
	struct lw_entry *own;
	bool data = !(r->how & LW_HEADERS) && !(e->flags & LW_DISCARD);

	if (r->nr == r->max) {
		r->max = r->max ? 2 * r->max : 64;
		r->e = xrealloc(r->e, r->max, sizeof(*r->e));
	}
	own = &r->e[r->nr++];
	*own = *e;
	own->mark = copy(e->mark, e->mark_len);
	own->data = data ? copy(e->data, e->len) : NULL;
}

/* No sanitizer knows where a mapped file ends. */
static bool lies_within(const struct lw_log *log, const struct lw_entry *e)
{
	uint64_t left = log->src.size - e->header_off;

	return e->header_off < log->src.size && log->sectorsize <= left &&
	       (e->flags & LW_DISCARD || e->len <= left - log->sectorsize);
}

static void read_all(struct reading *r, unsigned int how)
{
	struct lw_entry e;
	struct lw_log log;

	memset(r, 0, sizeof(*r));
	r->how = how;
	r->opened = lw_open(&log, input.path, how);
	CHECK(r->opened <= 0, "%d", r->opened);
	r->packed = log.src.packed;
	r->size = log.src.size;
	if (!r->opened && !(r->packed && r->size > UNPACKED_MAX)) {
		while ((r->ended = lw_next(&log, &e)) == 1) {
			CHECK(lies_within(&log, &e), "entry %llu", LL(e.nr));
			add(r, &e);
		}
		CHECK(lw_next(&log, &e) == r->ended, "ended with %d",
		      r->ended);
	}
	CHECK(log.error[0] || !(r->opened || r->ended), "no message");
	r->unit = log.sectorsize;
	r->no_super = log.no_super;
	r->counted = log.counted;
	r->nr_entries = log.nr_entries;
	memcpy(r->error, log.error, sizeof(r->error));
	memcpy(r->note, log.note, sizeof(r->note));
	lw_close(&log);
}

static void free_reading(struct reading *r)
{
	for (uint64_t i = 0; i < r->nr; i++) {
		free((void *)r->e[i].data);
		free((void *)r->e[i].mark);
	}
	free(r->e);
}

static bool same_header(const struct lw_entry *a, const struct lw_entry *b)
{
	return a->nr == b->nr && a->header_off == b->header_off &&
	       a->off == b->off && a->len == b->len && a->flags == b->flags &&
	       a->mark_len == b->mark_len &&
	       (!a->mark_len || !memcmp(a->mark, b->mark, a->mark_len));
}

static bool same_data(const struct lw_entry *a, const struct lw_entry *b)
{
	return a->flags & LW_DISCARD || !a->len ||
	       !memcmp(a->data, b->data, a->len);
}

/* @b starts with all entries of @a */
static void starts_with(const struct reading *b, const struct reading *a)
{
	CHECK(a->nr <= b->nr, "how %x: %llu entries, how %x: %llu: %s%s",
	      a->how, LL(a->nr), b->how, LL(b->nr), a->error, b->error);
	for (uint64_t i = 0; i < a->nr; i++)
		CHECK(same_header(&a->e[i], &b->e[i]),
		      "how %x and %x: entry %llu", a->how, b->how, LL(i));
}

static void same_without_data(const struct reading *all,
			      const struct reading *headers)
{
	/* then, they may not even agree on a sector size */
	if (bad_frame && (all->no_super || headers->no_super))
		return;
	CHECK(all->opened == headers->opened, "%s|%s", all->error,
	      headers->error);
	starts_with(headers, all);
	/* what is not counted ends before data that cannot be read */
	CHECK(!all->ended || all->nr < all->counted, "%s", all->error);
	if (bad_frame && (all->ended || all->how & LW_SALVAGE))
		return;
	CHECK(all->nr == headers->nr && all->ended == headers->ended &&
	      all->nr_entries == headers->nr_entries &&
	      !strcmp(all->error, headers->error) &&
	      !strcmp(all->note, headers->note),
	      "%llu, %llu entries; ended %d, %d; errors %s|%s; notes %s|%s",
	      LL(all->nr), LL(headers->nr), all->ended, headers->ended,
	      all->error, headers->error, all->note, headers->note);
}

static void check_salvage(const struct reading *all,
			  const struct reading *salvage)
{
	CHECK(!all->opened || salvage->opened || salvage->no_super, "%s",
	      all->error);
	CHECK(!salvage->ended, "%s", salvage->error);
	if (all->opened)
		return;
	CHECK(all->nr == salvage->nr && salvage->nr_entries == salvage->nr,
	      "%llu entries, salvaged %llu of %llu", LL(all->nr),
	      LL(salvage->nr), LL(salvage->nr_entries));
	starts_with(salvage, all);
	CHECK(!all->ended || strstr(salvage->note, "salvaged"), "%s|%s",
	      all->error, salvage->note);
}

static void check_growing(const struct reading *all)
{
	struct reading growing;

	read_all(&growing, LW_GROWING);
	/* a log without a superblock yet is no fault where it may still come */
	CHECK(growing.opened == all->opened ||
	      (growing.opened == -ENODATA && all->opened == -EINVAL),
	      "%s|%s", all->error, growing.error);
	starts_with(all, &growing);
	CHECK(growing.nr <= all->counted, "%llu of %llu", LL(growing.nr),
	      LL(all->counted));
	CHECK(growing.nr == all->nr || growing.nr == all->counted,
	      "%llu of %llu", LL(growing.nr), LL(all->nr));
	free_reading(&growing);
}

/* The index */

static void check_undo(const struct lw_index *idx, uint64_t nr)
{
	const struct lw_index_entry *x = &idx->entry[nr];
	uint64_t off = x->off;

	for (uint64_t i = idx->undo_first[nr]; i < idx->undo_first[nr + 1];
	     i++) {
		const struct lw_undo *u = &idx->undo[i];

		CHECK(u->off == off && u->len, "entry %llu", LL(nr));
		CHECK(u->prev == LW_NONE || u->prev < nr, "entry %llu",
		      LL(nr));
		off += u->len;
	}
	CHECK(off == x->off + x->len, "entry %llu", LL(nr));
}

/* The first from @from on that is the mark of entry @nr */
static void find_mark(struct lw_index *idx, struct lw_log *log,
		      const struct reading *all, uint64_t nr, uint64_t from)
{
	const struct lw_entry *e = &all->e[nr];
	uint64_t first = from, found;

	while (first < all->nr &&
	       !lw_is_mark(&all->e[first], e->mark, e->mark_len))
		first++;
	/* those in a bad frame are not known here */
	if (first == all->nr && idx->nr > all->nr)
		return;
	CHECK(!lw_index_mark(idx, log, e->mark, e->mark_len, from, &found),
	      "%s", idx->error);
	CHECK(found == (first < all->nr ? first : LW_NONE),
	      "entry %llu, not %llu", LL(found), LL(first));
}

/* @headers is what the index is made of; data is as in @all. */
static void check_index(struct lw_index *idx, struct lw_log *log,
			const struct reading *all,
			const struct reading *headers)
{
	struct lw_entry e;

	CHECK(idx->nr == headers->nr &&
	      !strcmp(idx->fault, headers->ended ? headers->error : ""),
	      "%llu entries: %s|%s", LL(idx->nr), idx->fault, headers->error);
	CHECK(log->nr_entries == idx->nr, "%llu", LL(log->nr_entries));
	for (uint64_t nr = idx->nr; nr--; ) {
		check_undo(idx, nr);
		CHECK(idx->entry[nr].header_off == headers->e[nr].header_off,
		      "entry %llu", LL(nr));
		if (nr >= all->nr)
			continue;	/* in a bad frame */
		CHECK(lw_index_read(idx, log, nr, &e) == 1, "%s", idx->error);
		CHECK(same_header(&e, &all->e[nr]) &&
		      same_data(&e, &all->e[nr]), "entry %llu", LL(nr));
		if (!(e.flags & LW_MARK))
			continue;
		find_mark(idx, log, all, nr, 0);
		find_mark(idx, log, all, nr, nr);
		find_mark(idx, log, all, nr, nr + 1);
	}
}

static bool same_memory(const void *a, const void *b, uint64_t nr, size_t size)
{
	return !nr || !memcmp(a, b, nr * size);
}

static void same_index(const struct lw_index *a, const struct lw_index *b)
{
	CHECK(a->nr == b->nr && a->nr_marks == b->nr_marks &&
	      a->nr_undo == b->nr_undo, "%llu, %llu entries", LL(a->nr),
	      LL(b->nr));
	CHECK(same_memory(a->entry, b->entry, a->nr, sizeof(*a->entry)) &&
	      same_memory(a->mark, b->mark, a->nr_marks, sizeof(*a->mark)) &&
	      same_memory(a->undo, b->undo, a->nr_undo, sizeof(*a->undo)) &&
	      same_memory(a->undo_first, b->undo_first, a->nr + 1,
			  sizeof(*a->undo_first)), "a kept index");
	CHECK(!strcmp(a->fault, b->fault), "%s|%s", a->fault, b->fault);
}

/* @damaged: it is to be seen, and the index made anew. */
static void use_kept(const struct lw_index *idx, const struct lw_log *log,
		     const char *path, bool damaged)
{
	struct lw_log log2;
	struct lw_index again;

	CHECK(!lw_open(&log2, input.path, 0), "%s", log2.error);
	CHECK(!lw_index_open(&again, &log2, path, LW_INDEX_ALL), "%s",
	      again.error);
	CHECK(!again.map == damaged && !again.note[0] == !damaged, "%s",
	      again.note);
	same_index(&again, idx);
	CHECK(!strcmp(log2.note, log->note), "%s|%s", log2.note, log->note);
	lw_index_close(&again);
	lw_close(&log2);
}

/* Not its magic: a file without that is left alone. */
static void damage(const char *path)
{
	CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
	uint64_t off = 8 + draw(lseek(fd, 0, SEEK_END) - 8);
	uint8_t byte;

	CHECK(!pread_all(fd, &byte, 1, off), "%m");
	byte ^= 1 << draw(8);
	CHECK(!pwrite_all(fd, &byte, 1, off), "%m");
}

/* What was kept and is used again is the same. */
static void check_kept(struct lw_index *idx, struct lw_log *log)
{
	const char *tmp = getenv("TMPDIR");
	CLEANUP_FREE char *path = xasprintf("%s/fuzz-log.%d.lwindex",
					    tmp ? tmp : "/tmp", getpid());

	CHECK(!lw_index_keep(idx, log, path), "%s", idx->error);
	use_kept(idx, log, path, false);
	damage(path);
	use_kept(idx, log, path, true);
	use_kept(idx, log, path, false);
	unlink(path);
}

/* States, next to a plain simulation */

static struct {
	uint8_t		image[TARGET_MAX];
	uint64_t	size, done;
	uint64_t	from, until;
	bool		no_discard;
} sim;

/* The part of @e that counts. False if there is none. */
static bool clip(const struct lw_entry *e, uint64_t *start, uint64_t *end)
{
	*start = e->off > sim.from ? e->off : sim.from;
	*end = e->off + e->len < sim.until ? e->off + e->len : sim.until;
	return *start < *end && !(sim.no_discard && e->flags & LW_DISCARD);
}

static void simulate(const struct reading *all, uint64_t done)
{
	if (done < sim.done) {
		memset(sim.image, 0, sim.size);
		sim.done = 0;
	}
	for (; sim.done < done; sim.done++) {
		const struct lw_entry *e = &all->e[sim.done];
		uint64_t start, end;

		if (!clip(e, &start, &end))
			continue;
		if (e->flags & LW_DISCARD)
			memset(sim.image + start, 0, end - start);
		else
			memcpy(sim.image + start, e->data + (start - e->off),
			       end - start);
	}
}

/* Entries before the first that does not fit, or that has no data */
static uint64_t count_good(const struct reading *all)
{
	uint64_t nr = 0, start, end;

	while (nr < all->nr &&
	       (!clip(&all->e[nr], &start, &end) || end <= sim.size))
		nr++;
	return nr;
}

static void compare(uint64_t done, const char *what)
{
	static uint8_t got[TARGET_MAX];
	off_t size = lseek(target.fd, 0, SEEK_END);

	CHECK((uint64_t)size == sim.size, "%lld bytes", (long long)size);
	CHECK(!pread_all(target.fd, got, sim.size, 0), "%m");
	if (!memcmp(got, sim.image, sim.size))
		return;
	for (uint64_t i = 0; i < sim.size; i++)
		CHECK(got[i] == sim.image[i], "%llu entries %s: byte %llu",
		      LL(done), what, LL(i));
}

/* Two states have the same digest if they are the same, and only then. */
static struct {
	struct digest	digest;
	XXH128_hash_t	hash;
} known[4 * STEPS];
static unsigned int nr_known;

static void check_digest(const struct state *s)
{
	XXH128_hash_t h = XXH3_128bits(sim.image, sim.size);

	for (unsigned int i = 0; i < nr_known; i++)
		CHECK(!!XXH128_isEqual(known[i].hash, h) ==
		      digest_same(&known[i].digest, &s->digest),
		      "after %llu entries", LL(s->done));
	if (nr_known == ARRAY_SIZE(known))
		return;
	known[nr_known].digest = s->digest;
	known[nr_known++].hash = h;
}

static void move(struct state *s, const struct reading *all, uint64_t done)
{
	const char *what = done < s->done ? "backwards" : "forwards";

	CHECK(!state_move(s, done, NULL, NULL), "%s", s->error);
	CHECK(s->done == done, "%llu", LL(s->done));
	simulate(all, done);
	compare(done, what);
	if (s->with_digest)
		check_digest(s);
}

/* Nothing of the entry at fault is there, and nothing else works any more. */
static void check_fault(struct state *s, uint64_t good, uint64_t last)
{
	int ret = state_move(s, last, NULL, NULL);

	CHECK(ret < 0 && s->error[0], "entry %llu", LL(good));
	compare(good, "and one at fault");
	CHECK(state_move(s, 0, NULL, NULL) == ret &&
	      state_move(s, good, NULL, NULL) == ret &&
	      state_sync(s) == ret && state_wipe(s) == ret,
	      "entry %llu", LL(good));
	compare(good, "and no way on");
}

static void choose_options(struct state *s, uint32_t unit)
{
	static const uint64_t sizes[] = {
		128 << 10, 64 << 10, (80 << 10) - 512, 4096
	};

	sim.size = draw(16) ? sizes[draw(ARRAY_SIZE(sizes))] : TARGET_MAX;
	sim.from = draw(4) ? 0 : draw(sim.size / unit + 1) * (uint64_t)unit;
	sim.until = draw(4) ? UINT64_MAX :
		    draw(sim.size / unit + 8) * (uint64_t)unit;
	sim.no_discard = !draw(8);
	sim.done = 0;
	memset(sim.image, 0, sim.size);
	fill_file(&target, NULL, 0, sim.size);
	s->from = sim.from;
	s->until = sim.until;
	s->no_discard = sim.no_discard;
	s->with_digest = !sim.no_discard && draw(4);
	nr_known = 0;
}

static void check_states(struct lw_index *idx, struct lw_log *log,
			 const struct reading *all)
{
	struct state options, s;
	uint64_t good, step;

	choose_options(&options, all->unit);
	good = count_good(all);
	step = good / STEPS + 1 + draw(3);
	CHECK(!state_open(&s, log, idx, target.path), "%s", s.error);
	s.from = options.from;
	s.until = options.until;
	s.no_discard = options.no_discard;
	s.with_digest = options.with_digest;
	for (uint64_t done = 0; done < good; done += step)
		move(&s, all, done);
	move(&s, all, good);
	/* the entry before a discard is not known to those who leave it out */
	for (int i = 0; i < STEPS && !s.no_discard; i++)
		move(&s, all, draw(good + 1));
	if (good < idx->nr) {
		move(&s, all, good);
		check_fault(&s, good, draw(2) ? idx->nr : good + 1);
	} else if (!draw(8)) {
		CHECK(!state_wipe(&s), "%s", s.error);
		simulate(all, 0);
		compare(0, "wiped");
	}
	state_close(&s);
}

static void check_log(const struct reading *all, const struct reading *headers)
{
	struct lw_index idx;
	struct lw_log log;

	CHECK(!lw_open(&log, input.path, all->how), "%s", log.error);
	CHECK(!lw_index_build(&idx, &log, LW_INDEX_ALL), "%s", idx.error);
	check_index(&idx, &log, all, headers);
	if (!(all->how & LW_SALVAGE) && !bad_frame && !draw(8))
		check_kept(&idx, &log);
	check_states(&idx, &log, all);
	lw_index_close(&idx);
	lw_close(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reading all, headers, salvage, salvage_headers;

	if (!input.path[0]) {
		make_file(&input, "log");
		make_file(&target, "target");
	}
	draws = XXH3_64bits(data, size);
	fill_file(&input, data, size, size);
	try_frames();
	read_all(&all, 0);
	read_all(&headers, LW_HEADERS);
	read_all(&salvage, LW_SALVAGE);
	read_all(&salvage_headers, LW_SALVAGE | LW_HEADERS);
	same_without_data(&all, &headers);
	same_without_data(&salvage, &salvage_headers);
	check_salvage(&all, &salvage);
	check_growing(&all);
	if (salvage.packed && salvage.size > UNPACKED_MAX)
		;
	else if (!all.opened)
		check_log(&all, &headers);
	else if (!salvage.opened && !bad_frame)
		check_log(&salvage, &salvage_headers);
	free_reading(&all);
	free_reading(&headers);
	free_reading(&salvage);
	free_reading(&salvage_headers);
	return 0;
}
