// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading dm-log-writes logs: every number that comes from the log is checked
 * against the log's size before it is used.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "le.h"
#include "log.h"
#include "util.h"

/* The kernel writes a sector from one page, and those have 64 KiB at most. */
#define SECTOR_MAX	65536

/* Numbers in messages */
#define LL(x)	((unsigned long long)(x))

__attribute__((format(printf, 3, 4)))
static int fail(struct lw_log *log, int ret, const char *fmt, ...)
{
	int n = snprintf(log->error, sizeof(log->error), "%s: ", log->path);
	va_list ap;

	if (n < 0 || (size_t)n >= sizeof(log->error))
		n = 0;
	va_start(ap, fmt);
	vsnprintf(log->error + n, sizeof(log->error) - n, fmt, ap);
	va_end(ap);
	return ret;
}

static int need(struct lw_log *log, uint64_t off, uint64_t len)
{
	char why[sizeof(log->error)];
	int ret = source_need(&log->src, off, len, why, sizeof(why));

	return ret ? fail(log, ret, "%s", why) : 0;
}

const char *lw_flags(uint64_t flags, char buf[LW_FLAGS_MAX])
{
	static const char *const names[] = {
		"FLUSH", "FUA", "DISCARD", "MARK", "METADATA"
	};
	const char *sep = "";
	char *p = buf;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!(flags & 1ULL << i))
			continue;
		p += sprintf(p, "%s%s", sep, names[i]);
		sep = "|";
	}
	if (flags & ~(uint64_t)LW_KNOWN_FLAGS)
		p += sprintf(p, "%s0x%llx", sep,
			     LL(flags & ~(uint64_t)LW_KNOWN_FLAGS));
	if (p == buf)
		strcpy(buf, "NONE");
	return buf;
}

/* @len bytes at @off, of a header, or NULL with the error in *@ret */
static const void *read_header(struct lw_log *log, uint64_t off, uint32_t len,
			       int *ret)
{
	char why[sizeof(log->error)];

	if (!(log->how & LW_HEADERS)) {
		*ret = need(log, off, len);
		return *ret ? NULL : log->src.map + off;
	}
	if (!log->header)
		log->header = xcalloc(1, SECTOR_MAX);
	*ret = source_peek(&log->src, log->header, off, len, why, sizeof(why));
	if (*ret)
		fail(log, *ret, "%s", why);
	return *ret ? NULL : log->header;
}

/* The first byte of @p that is not zero, or @len */
static uint64_t zeros(const uint8_t *p, uint64_t len)
{
	uint64_t i = 0;

	if (len && !p[0] && !memcmp(p, p + 1, len - 1))
		return len;
	while (i < len && !p[i])
		i++;
	return i;
}

/*
 * Read entry @nr with its header at byte @off. Returns 1 with the offset of
 * the next in *@next_off, or -errno.
 */
static int parse(struct lw_log *log, uint64_t nr, uint64_t off,
		 struct lw_entry *e, uint64_t *next_off)
{
	const uint32_t unit = log->sectorsize;
	const uint64_t size = log->src.size;
	const struct lw_disk_entry *d;
	uint64_t sector, nr_sectors, data_len, n;
	char flags[LW_FLAGS_MAX];
	int ret;

	if (off > size || size - off < unit)
		return fail(log, -EINVAL,
			    "truncated: entry %llu of %llu at byte %llu, expected a header of %u bytes before the log's end at %llu",
			    LL(nr), LL(log->nr_entries), LL(off), unit,
			    LL(size));
	d = read_header(log, off, unit, &ret);
	if (!d)
		return ret;
	sector = get_le64(d->sector);
	nr_sectors = get_le64(d->nr_sectors);
	data_len = get_le64(d->data_len);
	*e = (struct lw_entry){
		.nr = nr,
		.header_off = off,
		.flags = get_le64(d->flags),
		.data = log->src.map + off + unit,
	};

	/* An all-zero header is no entry: the kernel never logs an empty one */
	if (!e->flags && !nr_sectors)
		return fail(log, -EINVAL,
			    "entry %llu at byte %llu: neither data nor flags, expected an entry, one of %llu",
			    LL(nr), LL(off), LL(log->nr_entries));
	if (e->flags & ~(uint64_t)LW_KNOWN_FLAGS)
		return fail(log, -EINVAL,
			    "entry %llu at byte %llu: flags %s, expected none but FLUSH, FUA, DISCARD, MARK and METADATA",
			    LL(nr), LL(off), lw_flags(e->flags, flags));
	if (sector > UINT64_MAX / unit || nr_sectors > UINT64_MAX / unit - sector)
		return fail(log, -EINVAL,
			    "entry %llu at byte %llu: sector %llu + %llu overflows",
			    LL(nr), LL(off), LL(sector), LL(nr_sectors));
	e->off = sector * unit;
	e->len = nr_sectors * unit;
	if (e->flags & LW_MARK) {
		if (data_len > unit - sizeof(*d))
			return fail(log, -EINVAL,
				    "entry %llu at byte %llu: a mark of %llu bytes, expected at most %zu",
				    LL(nr), LL(off), LL(data_len),
				    unit - sizeof(*d));
		e->mark = (const char *)(d + 1);
		e->mark_len = data_len;
	} else if (data_len && (e->flags & LW_DISCARD ||
				e->len - data_len >= unit)) {
		/*
		 * A write by DAX has data of any length in as many sectors. A
		 * longer one wraps around.
		 */
		return fail(log, -EINVAL,
			    "entry %llu at byte %llu: a data length of %llu bytes in %llu, expected 0 or what the sectors hold",
			    LL(nr), LL(off), LL(data_len), LL(e->len));
	}
	/* write_metadata() clears the rest of the sector */
	n = sizeof(*d) + e->mark_len;
	n += zeros((const uint8_t *)d + n, unit - n);
	if (n < unit)
		return fail(log, -EINVAL,
			    "entry %llu at byte %llu: byte %llu of its header is 0x%02x, expected zeros from byte %zu on: data where a header belongs",
			    LL(nr), LL(off), LL(n), ((const uint8_t *)d)[n],
			    sizeof(*d) + e->mark_len);

	off += unit;
	if (!(e->flags & LW_DISCARD)) {
		if (e->len > size - off)
			return fail(log, -EINVAL,
				    "truncated: entry %llu at byte %llu has %llu bytes of data, expected them before the log's end at %llu",
				    LL(nr), LL(e->header_off), LL(e->len),
				    LL(size));
		if (!(log->how & LW_HEADERS)) {
			/* from the header on: a packed log may move on */
			ret = need(log, e->header_off, unit + e->len);
			if (ret)
				return ret;
		}
		off += e->len;
	}
	*next_off = off;
	return 1;
}

static int read_super(struct lw_log *log)
{
	const struct lw_disk_super *super;
	uint32_t unit;
	uint64_t n;
	int ret;

	/* one that grows may be a file that has just been made */
	if (log->src.size < 512)
		return fail(log, !log->src.size && log->how & LW_GROWING ?
				 -ENODATA : -EINVAL,
			    "not a dm-log-writes log: %llu bytes, expected a superblock of at least 512 at byte 0",
			    LL(log->src.size));
	super = read_header(log, 0, 512, &ret);
	if (!super)
		return ret;
	if (zeros((const void *)super, sizeof(*super)) == sizeof(*super))
		return fail(log, -ENODATA,
			    "no superblock yet: zeros at byte 0, expected magic 0x%llx; the kernel writes it after the first FUA entry or mark",
			    LW_MAGIC);
	if (get_le64(super->magic) != LW_MAGIC)
		return fail(log, -EINVAL,
			    "not a dm-log-writes log: magic 0x%llx at byte 0, expected 0x%llx",
			    LL(get_le64(super->magic)), LW_MAGIC);
	if (get_le64(super->version) != LW_VERSION)
		return fail(log, -EINVAL,
			    "log version %llu at byte 8, expected %llu",
			    LL(get_le64(super->version)), LW_VERSION);
	unit = get_le32(super->sectorsize);
	if (unit < 512 || unit > SECTOR_MAX || unit & (unit - 1))
		return fail(log, -EINVAL,
			    "sector size %u at byte 24, expected a power of two from 512 to %u",
			    unit, SECTOR_MAX);
	if (log->src.size < unit)
		return fail(log, -EINVAL,
			    "truncated: %llu bytes, expected a superblock of %u at byte 0",
			    LL(log->src.size), unit);
	super = read_header(log, 0, unit, &ret);
	if (!super)
		return ret;
	/*
	 * Kernels before 4.12 (commit 228bb5b26038) count in sectors of 512
	 * bytes whatever the device has.
	 */
	n = sizeof(*super);
	n += zeros((const uint8_t *)super + n, unit - n);
	if (unit > 512 && n < unit)
		return fail(log, -EINVAL,
			    "byte %llu is 0x%02x, expected zeros behind the superblock in its sector of %u bytes: are the log's entries in units of 512, by a kernel before 4.12?",
			    LL(n), ((const uint8_t *)super)[n], unit);
	log->sectorsize = unit;
	log->counted = get_le64(super->nr_entries);
	log->nr_entries = log->counted;
	log->looked = false;
	return 0;
}

/* Without a superblock, the sector size is the one that has a first entry. */
static int guess_super(struct lw_log *log)
{
	uint64_t next_off;
	struct lw_entry e;

	for (uint32_t unit = 512; unit <= SECTOR_MAX; unit *= 2) {
		log->sectorsize = unit;
		if (parse(log, 0, unit, &e, &next_off) != 1)
			continue;
		log->no_super = true;
		snprintf(log->note, sizeof(log->note),
			 "%s: no superblock: salvaged by the first entry at byte %u",
			 log->path, unit);
		return 0;
	}
	return fail(log, -EINVAL,
		    "neither a superblock at byte 0 nor an entry behind it, at bytes 512 to %u",
		    SECTOR_MAX);
}

int lw_open(struct lw_log *log, const char *path, unsigned int how)
{
	char why[sizeof(log->error)];
	int ret;

	memset(log, 0, sizeof(*log));
	log->path = xstrdup(path);
	log->how = how;
	ret = source_open(&log->src, path, why, sizeof(why));
	if (ret)
		return fail(log, ret, "%s", why);
	ret = read_super(log);
	if (ret == -ENODATA && how & LW_SALVAGE)
		ret = guess_super(log);
	else if (ret == -ENODATA && !(how & LW_GROWING))
		ret = -EINVAL;
	if (!ret)
		lw_rewind(log);
	return ret;
}

void lw_close(struct lw_log *log)
{
	source_close(&log->src);
	free(log->path);
	free(log->header);
	memset(log, 0, sizeof(*log));
	log->src.fd = -1;
}

void lw_seek(struct lw_log *log, uint64_t nr, uint64_t off)
{
	log->next = nr;
	log->next_off = off;
}

void lw_rewind(struct lw_log *log)
{
	lw_seek(log, 0, log->sectorsize);
}

int lw_refresh(struct lw_log *log)
{
	char why[sizeof(log->error)];
	int ret = source_refresh(&log->src, why, sizeof(why));

	if (ret)
		return fail(log, ret, "%s", why);
	ret = read_super(log);
	return ret == -ENODATA ? -EINVAL : ret;
}

/* Does @p, a sector of data, look like an entry's header? */
static bool like_header(const struct lw_log *log, const uint8_t *p)
{
	const struct lw_disk_entry *d = (const void *)p;
	uint64_t flags = get_le64(d->flags);

	return (flags || get_le64(d->nr_sectors)) &&
	       !(flags & ~(uint64_t)LW_KNOWN_FLAGS) &&
	       get_le64(d->nr_sectors) <= log->src.size / log->sectorsize &&
	       (flags & LW_MARK ?
		get_le64(d->data_len) <= log->sectorsize - sizeof(*d) :
		!get_le64(d->data_len) &&
		zeros(p + sizeof(*d), log->sectorsize - sizeof(*d)) ==
			log->sectorsize - sizeof(*d));
}

/*
 * The data of a write may never have reached the log, and then an older log's
 * headers may be in its place. Returns 1 with the offset of one in *@at, 0, or
 * -errno if the data cannot be read.
 */
static int header_in_data(struct lw_log *log, const struct lw_entry *e,
			  uint64_t *at)
{
	int ret;

	if (e->flags & LW_DISCARD)
		return 0;
	ret = need(log, e->header_off, log->sectorsize + e->len);
	if (ret)
		return ret;
	for (uint64_t i = 0; i < e->len; i += log->sectorsize) {
		*at = e->header_off + log->sectorsize + i;
		if (like_header(log, log->src.map + *at))
			return 1;
	}
	return 0;
}

/* Not counted yet, and the data cannot be read: log->error says why. */
static void note_unreadable(struct lw_log *log, const struct lw_entry *e)
{
	int n = snprintf(log->note, sizeof(log->note), "%s", log->error);

	if (n > 0 && (size_t)n < sizeof(log->note))
		snprintf(log->note + n, sizeof(log->note) - n,
			 ": the superblock counts %llu entries; read %llu more; entry %llu at byte %llu is not read",
			 LL(log->counted), LL(e->nr - log->next), LL(e->nr),
			 LL(e->header_off));
}

/* Look at what is behind the counted entries; see lw_next(). */
static void look_behind(struct lw_log *log)
{
	uint64_t nr = log->next, off = log->next_off, odd = 0, last = 0;
	bool ended = false;
	struct lw_entry e;
	int ret = 0;

	log->looked = true;
	while (parse(log, nr, off, &e, &off) == 1) {
		if (ended) {
			snprintf(log->note, sizeof(log->note),
				 "%s: the superblock counts %llu entries; more follow at byte %llu, past entry %llu, a FUA entry or mark that the kernel would have counted: they are an older log's, and are not read",
				 log->path, LL(log->counted),
				 LL(log->next_off), LL(last));
			return;
		}
		ret = log->no_super ? 0 : header_in_data(log, &e, &odd);
		if (ret)
			break;
		last = nr++;
		ended = !log->no_super && e.flags & (LW_FUA | LW_MARK);
		if (lw_is_mark(&e, LW_END_MARK, strlen(LW_END_MARK)))
			break;
	}
	if (ret > 0) {
		snprintf(log->note, sizeof(log->note),
			 "%s: the superblock counts %llu entries; read %llu more; entry %llu at byte %llu has a header where its data belongs, at byte %llu: an older log's, and is not read",
			 log->path, LL(log->counted), LL(nr - log->next),
			 LL(nr), LL(e.header_off), LL(odd));
	} else if (ret < 0) {
		note_unreadable(log, &e);
	} else if (nr > log->next && !log->no_super) {
		snprintf(log->note, sizeof(log->note),
			 "%s: the superblock counts %llu entries; read %llu more that had not been counted yet",
			 log->path, LL(log->counted), LL(nr - log->next));
	}
	log->nr_entries = nr;
}

/* The end mark ends the log, whatever the superblock counts. */
static void end_here(struct lw_log *log)
{
	log->looked = true;
	if (log->counted > log->next)
		snprintf(log->note, sizeof(log->note),
			 "%s: the superblock counts %llu entries, but entry %llu is the mark %s: what follows at byte %llu is an older log's, and is not read",
			 log->path, LL(log->counted), LL(log->next - 1),
			 LW_END_MARK, LL(log->next_off));
	log->nr_entries = log->next;
}

/* With LW_SALVAGE, the fault in log->error is the end. */
static void salvage(struct lw_log *log)
{
	int n = snprintf(log->note, sizeof(log->note), "%s", log->error);

	if (n < 0 || (size_t)n >= sizeof(log->note))
		n = 0;
	if (log->no_super)
		snprintf(log->note + n, sizeof(log->note) - n,
			 ": salvaged the %llu entries before it; there is no superblock that counts the rest",
			 LL(log->next));
	else
		snprintf(log->note + n, sizeof(log->note) - n,
			 ": salvaged the %llu entries before it, left out %llu",
			 LL(log->next), LL(log->nr_entries - log->next));
	log->looked = true;
	log->nr_entries = log->next;
}

int lw_next(struct lw_log *log, struct lw_entry *e)
{
	const unsigned int how = log->how;
	uint64_t next_off;
	int ret;

	if (log->next >= log->nr_entries && !log->looked &&
	    !(log->how & LW_GROWING)) {
		/* the same is found, whether the data is read or not */
		log->how |= LW_HEADERS;
		look_behind(log);
		log->how = how;
		log->error[0] = '\0';	/* whatever ended it is no fault */
	}
	if (log->next >= log->nr_entries)
		return 0;
	ret = parse(log, log->next, log->next_off, e, &next_off);
	if (ret < 0 && log->how & LW_SALVAGE) {
		salvage(log);
		return 0;
	}
	if (ret < 0)
		return ret;
	lw_seek(log, log->next + 1, next_off);
	if (lw_is_mark(e, LW_END_MARK, strlen(LW_END_MARK)))
		end_here(log);
	return 1;
}

int lw_finish(struct lw_log *log)
{
	struct lw_entry e;
	int ret;

	while ((ret = lw_next(log, &e)) == 1)
		;
	return ret;
}

int lw_hash(struct lw_log *log, char hex[LW_HASH_SIZE])
{
	const uint64_t step = 1 << 20;
	XXH3_state_t state;
	XXH128_hash_t h;
	int ret;

	ret = lw_finish(log);
	if (ret)
		return ret;
	XXH3_128bits_reset(&state);
	for (uint64_t off = 0, len; off < log->next_off; off += len) {
		len = log->next_off - off < step ? log->next_off - off : step;
		ret = need(log, off, len);
		if (ret)
			return ret;
		XXH3_128bits_update(&state, log->src.map + off, len);
	}
	h = XXH3_128bits_digest(&state);
	snprintf(hex, LW_HASH_SIZE, "%016llx%016llx", LL(h.high64),
		 LL(h.low64));
	return 0;
}
