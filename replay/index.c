// SPDX-License-Identifier: GPL-2.0-only
/* The index of a log; see index.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "extmap.h"
#include "index.h"
#include "util.h"

#define SUFFIX		".lwindex"
#define MAGIC		0x317865646e69776cULL	/* "lwindex1", this host's order */
#define PIECE		(64U << 10)	/* bytes read at once */
#define SAMPLES		16		/* headers that tell logs apart */

/* What the index was made of. In this host's byte order, like all of it. */
struct identity {
	uint64_t	size, packed_size;	/* of the log in bytes */
	int64_t		mtime, mtime_nsec;	/* 0 for a device */
	uint64_t	counted;
	uint64_t	sectorsize;
	uint64_t	sample;			/* XXH3 of some sectors */
};

enum section { ENTRIES, MARKS, UNDO, UNDO_FIRST, NR_SECTIONS };

/* The file: this, then the sections in their order. */
struct kept {
	uint64_t	magic;
	uint64_t	hash;			/* of all that follows here */
	struct identity	id;
	struct {
		uint64_t	nr;
		uint64_t	hash;
	} section[NR_SECTIONS];
	char		fault[512];
	char		log_note[512];
};

static const size_t item_size[NR_SECTIONS] = {
	[ENTRIES]	= sizeof(struct lw_index_entry),
	[MARKS]		= sizeof(struct lw_index_mark),
	[UNDO]		= sizeof(struct lw_undo),
	[UNDO_FIRST]	= sizeof(uint64_t),
};

__attribute__((format(printf, 3, 4)))
static int fail(struct lw_index *idx, int ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(idx->error, sizeof(idx->error), fmt, ap);
	va_end(ap);
	return ret;
}

/* The sections as they are in memory */
static const void *section(const struct lw_index *idx, enum section s,
			   uint64_t *nr)
{
	switch (s) {
	case ENTRIES:
		*nr = idx->nr;
		return idx->entry;
	case MARKS:
		*nr = idx->nr_marks;
		return idx->mark;
	case UNDO:
		*nr = idx->nr_undo;
		return idx->undo;
	default:
		*nr = idx->nr + 1;
		return idx->undo_first;
	}
}

/* Building */

struct builder {
	struct lw_index_entry *entry;
	struct lw_index_mark *mark;
	struct lw_undo	*undo;
	uint64_t	*undo_first;
	uint64_t	nr, nr_marks, nr_undo;
	uint64_t	max, max_marks, max_undo;
	struct extmap	last;		/* device bytes -> last entry there */
};

static void *grow(void *p, uint64_t nr, uint64_t *max, size_t size)
{
	if (nr < *max)
		return p;
	*max = *max ? *max + *max / 2 : 1024;
	return xrealloc(p, *max, size);
}

static void add_undo(uint64_t start, uint64_t end, uint64_t old, void *arg)
{
	struct builder *b = arg;

	b->undo = grow(b->undo, b->nr_undo, &b->max_undo, sizeof(*b->undo));
	b->undo[b->nr_undo++] = (struct lw_undo){ start, end - start, old };
}

static void add_entry(struct builder *b, const struct lw_entry *e,
		      unsigned int need)
{
	uint64_t max = b->max;

	b->entry = grow(b->entry, b->nr, &b->max, sizeof(*b->entry));
	b->entry[b->nr] = (struct lw_index_entry){
		.header_off = e->header_off,
		.off = e->off,
		.len = e->len,
		.flags = e->flags,
		.mark_len = e->mark_len,
	};
	if (e->flags & LW_MARK && need & LW_INDEX_MARKS) {
		b->mark = grow(b->mark, b->nr_marks, &b->max_marks,
			       sizeof(*b->mark));
		b->mark[b->nr_marks++] = (struct lw_index_mark){
			XXH3_64bits(e->mark, e->mark_len), b->nr
		};
	}
	if (need & LW_INDEX_UNDO) {
		if (max != b->max)	/* one more than entries */
			b->undo_first = xrealloc(b->undo_first, b->max + 1,
						 sizeof(*b->undo_first));
		b->undo_first[b->nr] = b->nr_undo;
		if (e->len)
			extmap_set(&b->last, e->off, e->off + e->len, b->nr,
				   add_undo, b);
		b->undo_first[b->nr + 1] = b->nr_undo;
	}
	b->nr++;
}

static int by_hash(const void *a, const void *b)
{
	const struct lw_index_mark *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

int lw_index_build(struct lw_index *idx, struct lw_log *log, unsigned int need)
{
	unsigned int how = log->how;
	struct builder b = {};
	struct lw_entry e;
	int ret;

	memset(idx, 0, sizeof(*idx));
	extmap_init(&b.last);
	log->how |= LW_HEADERS;
	lw_rewind(log);
	while ((ret = lw_next(log, &e)) == 1)
		add_entry(&b, &e, need);
	log->how = how;
	if (ret < 0) {
		snprintf(idx->fault, sizeof(idx->fault), "%s", log->error);
		log->nr_entries = b.nr;
		log->looked = true;
	}
	lw_rewind(log);
	if (need & LW_INDEX_UNDO && !b.undo_first)
		b.undo_first = xcalloc(1, sizeof(*b.undo_first));
	if (b.nr_marks)
		qsort(b.mark, b.nr_marks, sizeof(*b.mark), by_hash);
	idx->entry = b.entry;
	idx->mark = b.mark;
	idx->undo = b.undo;
	idx->undo_first = b.undo_first;
	idx->nr = b.nr;
	idx->nr_marks = b.nr_marks;
	idx->nr_undo = b.nr_undo;
	idx->bytes = b.max * sizeof(*b.entry) + b.max_marks * sizeof(*b.mark) +
		     b.max_undo * sizeof(*b.undo);
	if (b.undo_first)
		idx->bytes += (b.max + 1) * sizeof(*b.undo_first);
	idx->peak = idx->bytes + extmap_memory(&b.last);
	extmap_free(&b.last);
	return 0;
}

void lw_index_close(struct lw_index *idx)
{
	if (idx->map) {
		munmap(idx->map, idx->map_size);
	} else {
		free((void *)idx->entry);
		free((void *)idx->mark);
		free((void *)idx->undo);
		free((void *)idx->undo_first);
	}
	memset(idx, 0, sizeof(*idx));
}

/* Reading */

int lw_index_read(struct lw_index *idx, struct lw_log *log, uint64_t nr,
		  struct lw_entry *e)
{
	const struct lw_index_entry *x = &idx->entry[nr];
	int ret;

	lw_seek(log, nr, x->header_off);
	ret = lw_next(log, e);
	if (ret < 0)
		return fail(idx, ret, "%s", log->error);
	if (!ret || e->off != x->off || e->len != x->len ||
	    e->flags != x->flags || e->mark_len != x->mark_len)
		return fail(idx, -ESTALE,
			    "%s: entry %llu at byte %llu is not the one that the index has: has the log changed?",
			    log->path, (unsigned long long)nr,
			    (unsigned long long)x->header_off);
	return 1;
}

int lw_index_mark(struct lw_index *idx, struct lw_log *log, const char *text,
		  size_t len, uint64_t from, uint64_t *nr)
{
	const struct lw_index_mark want = { XXH3_64bits(text, len), from };
	uint64_t low = 0, high = idx->nr_marks;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (by_hash(&idx->mark[mid], &want) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < idx->nr_marks && idx->mark[low].hash == want.hash; low++) {
		struct lw_entry e;
		int ret = lw_index_read(idx, log, idx->mark[low].entry, &e);

		if (ret < 0)
			return ret;
		if (!lw_is_mark(&e, text, len))
			continue;	/* another text with that hash */
		*nr = e.nr;
		return 0;
	}
	*nr = LW_NONE;
	return 0;
}

uint64_t lw_index_flags(const struct lw_index *idx, uint64_t flags,
			uint64_t from)
{
	for (uint64_t nr = from; nr < idx->nr; nr++)
		if (idx->entry[nr].flags & flags)
			return nr;
	return LW_NONE;
}

/* Keeping */

static int hash_sector(struct lw_index *idx, struct lw_log *log, uint64_t off,
		       XXH3_state_t *h)
{
	CLEANUP_FREE void *buf = xcalloc(1, log->sectorsize);
	char why[256];
	uint64_t len = log->src.size - off;
	int ret;

	if (len > log->sectorsize)
		len = log->sectorsize;
	/* a few of them all over the log: nothing around them is of use */
	ret = source_peek(&log->src, buf, off, len, why, sizeof(why));
	if (ret)
		return fail(idx, ret, "%s: %s", log->path, why);
	XXH3_64bits_update(h, buf, len);
	return 0;
}

/* Of  headers, evenly spread, the first and the last among them */
static int identify(struct lw_index *idx, struct lw_log *log,
		    const struct lw_index_entry *entry, uint64_t nr,
		    unsigned int n, struct identity *id)
{
	XXH3_state_t *h = XXH3_createState();
	struct stat st;
	int ret = 0;

	if (!h || fstat(log->src.fd, &st))
		return fail(idx, -errno, "%s: cannot look at it: %m", log->path);
	memset(id, 0, sizeof(*id));
	id->size = log->src.size;
	if (!log->src.is_block) {
		id->packed_size = st.st_size;
		id->mtime = st.st_mtim.tv_sec;
		id->mtime_nsec = st.st_mtim.tv_nsec;
	}
	id->counted = log->counted;
	id->sectorsize = log->sectorsize;
	XXH3_64bits_reset(h);
	ret = hash_sector(idx, log, 0, h);
	for (unsigned int i = 0; nr && i < n && !ret; i++) {
		uint64_t off = entry[(nr - 1) * i / (n - 1)].header_off;

		/* a kept index is not checked yet */
		ret = off < log->src.size ? hash_sector(idx, log, off, h) :
		      fail(idx, -ESTALE, "an entry behind the log's end");
	}
	id->sample = XXH3_64bits_digest(h);
	XXH3_freeState(h);
	return ret;
}

/* Unpacking costs more than all the rest, so of a packed log only the ends */
static unsigned int samples(const struct lw_log *log)
{
	return log->src.packed ? 2 : SAMPLES;
}

int lw_index_identity(struct lw_index *idx, struct lw_log *log, uint64_t *id)
{
	struct identity i;
	int ret = identify(idx, log, idx->entry, idx->nr, 2, &i);

	/* the same in another place, packed or not */
	if (!ret)
		*id = i.sample ^ idx->nr;
	return ret;
}

char *lw_index_path(const struct lw_log *log)
{
	return log->src.is_block ? NULL : xasprintf("%s" SUFFIX, log->path);
}

bool lw_index_is_other(const char *path)
{
	CLEANUP_CLOSE int fd = -1;
	uint64_t magic = 0;
	ssize_t n;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno != ENOENT;
	n = pread(fd, &magic, sizeof(magic), 0);
	/* an empty one is of no worth, another version's has another digit */
	return n && (n != sizeof(magic) ||
		     (magic ^ MAGIC) & ~(0xffULL << 56));
}

static uint64_t hash_kept(const struct kept *k)
{
	const size_t from = offsetof(struct kept, id);

	return XXH3_64bits((const char *)k + from, sizeof(*k) - from);
}

static int write_sections(struct lw_index *idx, struct kept *k, int fd)
{
	uint64_t off = sizeof(*k);

	for (int s = 0; s < NR_SECTIONS; s++) {
		uint64_t nr, len;
		const void *p = section(idx, s, &nr);
		int ret;

		len = nr * item_size[s];
		k->section[s].nr = nr;
		k->section[s].hash = XXH3_64bits(p, len);
		ret = pwrite_all(fd, p, len, off);
		if (ret)
			return ret;
		off += len;
	}
	k->hash = hash_kept(k);
	return pwrite_all(fd, k, sizeof(*k), 0);
}

int lw_index_keep(struct lw_index *idx, struct lw_log *log, const char *kept)
{
	CLEANUP_FREE char *beside = kept ? NULL : lw_index_path(log);
	const char *path = kept ? kept : beside;
	CLEANUP_FREE char *new = NULL;
	struct kept k = { .magic = MAGIC };
	int fd, ret;

	if (!path)
		return fail(idx, -EINVAL,
			    "%s: a device has no file beside it: name one for its index",
			    log->path);
	if (kept && lw_index_is_other(kept))
		return fail(idx, -EEXIST,
			    "%s: holds something else than an index, and is left alone",
			    kept);
	ret = identify(idx, log, idx->entry, idx->nr, samples(log), &k.id);
	if (ret)
		return ret;
	snprintf(k.fault, sizeof(k.fault), "%s", idx->fault);
	snprintf(k.log_note, sizeof(k.log_note), "%s", log->note);
	new = xasprintf("%s.%ld", path, (long)getpid());
	fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(idx, -errno, "%s: cannot create: %m", new);
	ret = write_sections(idx, &k, fd);
	if (!ret && fsync(fd))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && rename(new, path))
		ret = -errno;
	if (ret) {
		unlink(new);
		errno = -ret;
		fail(idx, ret, "%s: cannot write: %m", path);
	}
	return ret;
}

/* Read, and not mapped: of a section that is checked, little is looked at. */
static int hash_bytes(struct lw_index *idx, int fd, uint64_t off, uint64_t len,
		      uint64_t *hash)
{
	CLEANUP_FREE uint8_t *buf = xcalloc(1, PIECE);
	XXH3_state_t *h = XXH3_createState();
	int ret = 0;

	if (!h)
		die(EXIT_CANNOT, "out of memory");
	XXH3_64bits_reset(h);
	while (len && !ret) {
		size_t n = len < PIECE ? len : PIECE;

		ret = pread_all(fd, buf, n, off);
		XXH3_64bits_update(h, buf, n);
		off += n;
		len -= n;
	}
	*hash = XXH3_64bits_digest(h);
	XXH3_freeState(h);
	errno = -ret;
	return ret ? fail(idx, ret, "cannot read: %m") : 0;
}

/* Use the file at @fd. Returns 0, or -errno and why it is of no use. */
static int load(struct lw_index *idx, struct lw_log *log, int fd,
		unsigned int need)
{
	static const unsigned int needed_by[NR_SECTIONS] = {
		[ENTRIES] = LW_INDEX_ENTRIES, [MARKS] = LW_INDEX_MARKS,
		[UNDO] = LW_INDEX_UNDO, [UNDO_FIRST] = LW_INDEX_UNDO,
	};
	const void *at[NR_SECTIONS];
	const struct kept *k;
	struct identity id;
	struct stat st;
	uint64_t off = sizeof(*k);
	void *map;
	int ret;

	if (fstat(fd, &st))
		return fail(idx, -errno, "%m");
	if (st.st_size < (off_t)sizeof(*k))
		return fail(idx, -EINVAL, "%lld bytes, expected %zu at least",
			    (long long)st.st_size, sizeof(*k));
	map = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return fail(idx, -errno, "%m");
	idx->map = map;
	idx->map_size = st.st_size;
	k = map;
	if (k->magic != MAGIC || k->hash != hash_kept(k))
		return fail(idx, -EINVAL, "not an index of this version");
	for (int s = 0; s < NR_SECTIONS; s++) {
		uint64_t len, hash;

		if (k->section[s].nr > (st.st_size - off) / item_size[s])
			return fail(idx, -EINVAL, "truncated");
		len = k->section[s].nr * item_size[s];
		at[s] = (const char *)map + off;
		if (need & needed_by[s]) {
			ret = hash_bytes(idx, fd, off, len, &hash);
			if (!ret && hash != k->section[s].hash)
				ret = fail(idx, -EINVAL, "damaged at byte %llu",
					   (unsigned long long)off);
			if (ret)
				return ret;
		}
		off += len;
	}
	if (off != (uint64_t)st.st_size ||
	    k->section[UNDO_FIRST].nr != k->section[ENTRIES].nr + 1)
		return fail(idx, -EINVAL, "not an index of this version");
	ret = identify(idx, log, at[ENTRIES], k->section[ENTRIES].nr,
		       samples(log), &id);
	if (ret)
		return ret;
	if (memcmp(&id, &k->id, sizeof(id)))
		return fail(idx, -ESTALE, "of another log, or the log has changed");
	idx->entry = at[ENTRIES];
	idx->mark = at[MARKS];
	idx->undo = at[UNDO];
	idx->undo_first = at[UNDO_FIRST];
	idx->nr = k->section[ENTRIES].nr;
	idx->nr_marks = k->section[MARKS].nr;
	idx->nr_undo = k->section[UNDO].nr;
	memcpy(idx->fault, k->fault, sizeof(idx->fault));
	memcpy(log->note, k->log_note, sizeof(log->note));
	log->nr_entries = idx->nr;
	log->looked = true;
	return 0;
}

int lw_index_open(struct lw_index *idx, struct lw_log *log, const char *kept,
		  unsigned int need)
{
	CLEANUP_FREE char *beside = kept ? NULL : lw_index_path(log);
	const char *path = kept ? kept : beside;
	char note[sizeof(idx->note)];
	CLEANUP_CLOSE int fd = -1;
	int ret;

	memset(idx, 0, sizeof(*idx));
	if (log->how & LW_SALVAGE || !path)
		return lw_index_build(idx, log, need);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return lw_index_build(idx, log, need);
	ret = fd < 0 ? fail(idx, -errno, "%m") : load(idx, log, fd, need);
	if (!ret)
		return 0;
	snprintf(note, sizeof(note), "%s: built anew: %s", path, idx->error);
	lw_index_close(idx);
	ret = lw_index_build(idx, log, LW_INDEX_ALL);
	if (!ret && lw_index_keep(idx, log, kept))
		snprintf(idx->note, sizeof(idx->note), "%s", idx->error);
	else
		memcpy(idx->note, note, sizeof(note));
	return ret;
}
