// SPDX-License-Identifier: GPL-2.0-only
/* Compare a target with an image; see compare.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "util.h"

#define SECTOR	512
#define CHUNK	(1 << 20)

#define LL(x)	((unsigned long long)(x))

static uint64_t last_writer(const struct state *s, uint64_t off)
{
	for (uint64_t nr = s->done; nr--;) {
		const struct lw_index_entry *x = &s->index->entry[nr];

		if (off >= x->off && off - x->off < x->len)
			return nr;
	}
	return LW_NONE;
}

static void add(struct compare *c, const struct state *s, uint64_t off,
		uint64_t len)
{
	struct compare_range *last = c->nr ? &c->range[c->nr - 1] : NULL;

	c->differ += (len + SECTOR - 1) / SECTOR;
	if (last && last->off + last->len == off)
		last->len += len;
	else if (c->nr < COMPARE_LISTED)
		c->range[c->nr++] = (struct compare_range){
			off, len, last_writer(s, off)
		};
}

int compare_run(struct compare *c, const struct state *s, const char *image)
{
	CLEANUP_FREE uint8_t *a = xcalloc(2, CHUNK);
	uint64_t end = s->until < s->size ? s->until : s->size;
	CLEANUP_CLOSE int fd = -1;
	uint8_t *b = a + CHUNK;
	off_t size;

	memset(c, 0, sizeof(*c));
	fd = open(image, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (size < 0) {
		int ret = -errno;

		snprintf(c->error, sizeof(c->error), "%s: cannot open: %m",
			 image);
		return ret;
	}
	if ((uint64_t)size != s->size) {
		snprintf(c->error, sizeof(c->error),
			 "%s: %lld bytes, expected the %llu of %s", image,
			 (long long)size, LL(s->size), s->path);
		return -EINVAL;
	}
	for (uint64_t off = s->from, n; off < end; off += n) {
		int ret;

		n = end - off < CHUNK ? end - off : CHUNK;
		ret = pread_all(s->fd, a, n, off);
		if (!ret)
			ret = pread_all(fd, b, n, off);
		if (ret) {
			errno = -ret;
			snprintf(c->error, sizeof(c->error),
				 "%s or %s: cannot read %llu bytes at %llu: %m",
				 s->path, image, LL(n), LL(off));
			return ret;
		}
		if (!memcmp(a, b, n))
			continue;
		for (uint64_t i = 0; i < n; i += SECTOR) {
			uint64_t len = n - i < SECTOR ? n - i : SECTOR;

			if (memcmp(a + i, b + i, len))
				add(c, s, off + i, len);
		}
	}
	return 0;
}

void compare_print(const struct compare *c, const struct state *s,
		   const char *image)
{
	uint64_t listed = 0;

	if (!c->differ) {
		printf("%s is like %s\n", s->path, image);
		return;
	}
	printf("%s differs from %s in %llu sectors of %d bytes\n", s->path,
	       image, LL(c->differ), SECTOR);
	for (size_t i = 0; i < c->nr; i++) {
		const struct compare_range *r = &c->range[i];

		listed += (r->len + SECTOR - 1) / SECTOR;
		printf("  bytes %llu to %llu: ", LL(r->off),
		       LL(r->off + r->len));
		if (r->entry == LW_NONE)
			puts("no entry wrote there");
		else
			printf("the first were written last by entry %llu\n",
			       LL(r->entry));
	}
	if (c->differ > listed)
		printf("  and %llu sectors more\n", LL(c->differ - listed));
}

json_t *compare_json(const struct compare *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->nr; i++) {
		const struct compare_range *r = &c->range[i];

		json_array_append_new(list, json_pack(
			"{s:I, s:I, s:o}", "offset", (json_int_t)r->off,
			"length", (json_int_t)r->len, "entry",
			r->entry == LW_NONE ? json_null() :
					      json_integer(r->entry)));
	}
	return json_pack("{s:I, s:o}", "differing_sectors",
			 (json_int_t)c->differ, "differences", list);
}
