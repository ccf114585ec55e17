// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the fuzzer changes a log. Bytes that are changed anywhere hardly ever
 * leave a chain of entries, so most changes go by the entries: a field gets a
 * value that is worth a try, an entry comes, goes or comes again. A packed log
 * is changed unpacked and packed again.
 */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../replay/le.h"
#include "../../replay/log.h"
#include "../../replay/util.h"
#include "../../replay/zst.h"

/* The fuzzer's own */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed);

enum { MAX = 256 << 10 };

struct chain {
	uint8_t		*buf;
	size_t		size, max;
	size_t		unit;
	size_t		at[64];		/* headers; at[nr] is behind the last */
	unsigned int	nr;
};

static uint64_t state;

static uint32_t draw(uint64_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static struct lw_disk_super *super(struct chain *c)
{
	return (void *)c->buf;
}

static struct lw_disk_entry *entry(struct chain *c, unsigned int i)
{
	return (void *)(c->buf + c->at[i]);
}

/* Find the headers, as far as they make sense. */
static void walk(struct chain *c, uint8_t *buf, size_t size, size_t max)
{
	size_t off;

	c->buf = buf;
	c->size = size;
	c->max = max;
	c->nr = 0;
	c->unit = 512;
	if (size >= sizeof(struct lw_disk_super))
		c->unit = get_le32(super(c)->sectorsize);
	if (c->unit < 512 || c->unit > 4096 || c->unit & (c->unit - 1))
		c->unit = 512;
	c->at[0] = off = c->unit;
	while (c->nr + 1 < ARRAY_SIZE(c->at) && off + c->unit <= size) {
		struct lw_disk_entry *e = entry(c, c->nr);
		uint64_t n = get_le64(e->nr_sectors);

		if (get_le64(e->flags) & LW_DISCARD)
			n = 0;
		off += c->unit;
		if (n > (size - off) / c->unit)
			return;
		off += n * c->unit;
		c->at[++c->nr] = off;
	}
}

static uint64_t worth_a_try(const struct chain *c)
{
	const uint64_t edges[] = {
		0, 1, 2, 8, 31, 32, 33, c->unit - 32, c->unit, c->nr,
		4096 / c->unit, (64 << 10) / c->unit, (160 << 10) / c->unit,
		(256 << 10) / c->unit, (1 << 20) / c->unit, c->size / c->unit,
		1ULL << 32, UINT64_MAX / c->unit, 1ULL << 63, UINT64_MAX,
	};
	uint64_t v = edges[draw(ARRAY_SIZE(edges))];

	return draw(2) ? v : v + draw(5) - 2;
}

static void change_count(struct chain *c, int by)
{
	if (c->size >= c->unit && draw(4))
		super(c)->nr_entries =
			put_le64(get_le64(super(c)->nr_entries) + by);
}

static void change_super(struct chain *c)
{
	if (c->size < sizeof(*super(c)))
		return;
	switch (draw(8)) {
	case 0:
		super(c)->sectorsize = put_le32(256U << draw(10));
		break;
	case 1:
		memset(c->buf, 0, sizeof(*super(c)));
		break;
	case 2:
		c->buf[draw(sizeof(*super(c)))] ^= 1 << draw(8);
		break;
	case 3:
		super(c)->nr_entries = put_le64(worth_a_try(c));
		break;
	default:
		super(c)->nr_entries = put_le64(draw(c->nr + 3));
	}
}

static void change_field(struct chain *c)
{
	struct lw_disk_entry *e = entry(c, draw(c->nr));

	switch (draw(6)) {
	case 0:
		e->sector = put_le64(worth_a_try(c));
		break;
	case 1:
		e->nr_sectors = put_le64(worth_a_try(c));
		break;
	case 2:
		e->flags = put_le64(draw(4) ? draw(32) : worth_a_try(c));
		break;
	case 3:
		e->data_len = put_le64(worth_a_try(c));
		break;
	case 4:
		/* where others write, too */
		e->sector = put_le64(draw((64 << 10) / c->unit));
		break;
	default:
		/* where zeros belong, perhaps */
		((uint8_t *)e)[draw(c->unit)] ^= 1 << draw(8);
	}
}

/* Make room for @len bytes at @at. False if there is none. */
static bool make_room(struct chain *c, size_t at, size_t len)
{
	if (at > c->size || len > c->max - c->size)
		return false;
	memmove(c->buf + at + len, c->buf + at, c->size - at);
	memset(c->buf + at, 0, len);
	c->size += len;
	return true;
}

static void repeat_entry(struct chain *c)
{
	unsigned int i = draw(c->nr);
	size_t len = c->at[i + 1] - c->at[i];
	uint8_t *copy = malloc(len);

	memcpy(copy, entry(c, i), len);
	i = draw(c->nr + 1);
	if (make_room(c, c->at[i], len)) {
		memcpy(c->buf + c->at[i], copy, len);
		change_count(c, 1);
	}
	free(copy);
}

static void remove_entry(struct chain *c)
{
	unsigned int i = draw(c->nr);
	size_t len = c->at[i + 1] - c->at[i];

	memmove(c->buf + c->at[i], c->buf + c->at[i + 1],
		c->size - c->at[i + 1]);
	c->size -= len;
	change_count(c, -1);
}

static void add_entry(struct chain *c)
{
	static const uint8_t kinds[] = {
		0, 0, 0, LW_FUA, LW_METADATA, LW_DISCARD, LW_FLUSH, LW_MARK,
	};
	const uint64_t flags = kinds[draw(ARRAY_SIZE(kinds))];
	unsigned int i = draw(c->nr + 1);
	uint64_t n = flags & (LW_FLUSH | LW_MARK) ? 0 : 1 + draw(6);
	size_t len = (flags & LW_DISCARD ? 1 : n + 1) * c->unit;
	struct lw_disk_entry *e;

	if (!make_room(c, c->at[i], len))
		return;
	e = entry(c, i);
	e->flags = put_le64(flags);
	e->nr_sectors = put_le64(flags & LW_DISCARD && draw(2) ?
				 n * 64 : n);
	if (n)
		e->sector = put_le64(draw((32 << 10) / c->unit + 16));
	if (flags & LW_MARK) {
		memset(e + 1, 'a' + draw(3), 4);
		e->data_len = put_le64(4);
	} else if (!(flags & LW_DISCARD) && draw(8)) {
		memset((uint8_t *)e + c->unit, 1 + draw(255), n * c->unit);
	}
	change_count(c, 1);
}

static void change_log(struct chain *c)
{
	switch (draw(c->nr ? 16 : 4)) {
	case 0:
		c->size = LLVMFuzzerMutate(c->buf, c->size, c->max);
		break;
	case 1:
		change_super(c);
		break;
	case 2:
		add_entry(c);
		break;
	case 3:
		if (draw(4))
			add_entry(c);
		else
			c->size = draw(c->size + 1);
		break;
	case 4:
	case 5:
		repeat_entry(c);
		break;
	case 6:
		remove_entry(c);
		break;
	case 7:
	case 8:
	case 9:
		add_entry(c);
		break;
	default:
		change_field(c);
	}
}

/* Packed logs */

static int file_of(const void *data, size_t size)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);

	if (fd < 0 || pwrite_all(fd, data, size, 0))
		abort();
	return fd;
}

/* Unpack @data to @buf. Returns the size, or 0. */
static size_t unpack(const uint8_t *data, size_t size, uint8_t *buf)
{
	CLEANUP_CLOSE int fd = file_of(data, size);
	struct zst z;
	size_t len = 0;

	if (zst_is(fd) && !zst_open(&z, fd)) {
		len = z.size <= MAX ? z.size : 0;
		for (size_t i = 0; i < z.nr_frames && len; i++)
			if (z.frame[i].len &&
			    zst_read_frame(&z, i, buf + z.frame[i].off))
				len = 0;
	}
	if (zst_is(fd))
		zst_close(&z);
	return len;
}

static size_t pack(const struct chain *c, uint8_t *data, size_t max)
{
	const uint32_t frame = draw(2) ? 256U << draw(9) : 64 + draw(2000);
	CLEANUP_CLOSE int fd = file_of(NULL, 0);
	struct zst_writer w;
	size_t size = 0;

	if (zst_writer_open(&w, fd, 1, frame) ||
	    zst_write(&w, c->buf, c->size) || zst_writer_finish(&w))
		abort();
	if (w.off <= max) {
		size = w.off;
		if (pread_all(fd, data, size, 0))
			abort();
	}
	zst_writer_free(&w);
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed)
{
	static uint8_t *buf;
	struct chain c;
	size_t n;

	state = seed;
	draw(1);
	if (!buf)
		buf = malloc(MAX);
	n = draw(4) ? unpack(data, size, buf) : 0;
	if (n)
		walk(&c, buf, n, MAX);
	else
		walk(&c, data, size, max);
	for (uint32_t i = draw(3) + 1; i; i--) {
		change_log(&c);
		walk(&c, c.buf, c.size, c.max);
	}
	if (!n && draw(64))
		return c.size;
	/* @buf may be too long to be packed in @max bytes */
	n = pack(&c, data, max);
	return n ? n : LLVMFuzzerMutate(data, size, max);
}
