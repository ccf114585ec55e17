// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/state.c: the state at each point is what a plain simulation in
 * memory says, and an entry at fault leaves the target as it was.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../replay/state.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

enum { SIZE = 1 << 20 };

static struct mklog l;
static struct lw_log lw;
static struct state s;
static char *target;
static uint8_t data[32768];

/* A new target of zeros, but for the size that the last test left */
static void make_target(void)
{
	CLEANUP_CLOSE int fd = -1;

	fd = open(target, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, SIZE))
		die(EXIT_CANNOT, "%s: %m", target);
}

static void open_all(void)
{
	make_target();
	mklog_save(&l);
	if (lw_open(&lw, l.path, 0) || state_open(&s, &lw, target))
		die(EXIT_LOSS, "%s%s", lw.error, s.error);
}

static void close_all(void)
{
	state_close(&s);
	lw_close(&lw);
	mklog_free(&l);
}

static bool target_is(const uint8_t *want)
{
	static uint8_t got[SIZE];
	CLEANUP_CLOSE int fd = open(target, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && pread(fd, got, SIZE, 0) == SIZE &&
	       lseek(fd, 0, SEEK_END) == SIZE && !memcmp(got, want, SIZE);
}

/* What the simulation does at an entry; a length of 0 does nothing. */
struct step {
	uint64_t	off, len;
	bool		zero;
};

static struct step step[256];

static uint32_t draw(uint32_t below)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return (x >> 33) % below;
}

/* A log of @n entries of all kinds at places that overlap */
static void random_log(uint32_t sectorsize, uint32_t n)
{
	mklog_init(&l, NULL, sectorsize);
	for (uint32_t i = 0; i < n; i++) {
		struct step *t = &step[i];

		t->len = (1 + draw(7)) * sectorsize;
		t->off = draw((SIZE - t->len) / sectorsize) * sectorsize;
		t->zero = false;
		switch (draw(8)) {
		case 0:
			mklog_flush(&l);
			t->len = 0;
			break;
		case 1:
			mklog_text(&l, "mark", 4);
			t->len = 0;
			break;
		case 2:
			t->len += draw(200000) / sectorsize * sectorsize;
			if (t->len > SIZE - t->off)
				t->len = SIZE - t->off;
			t->zero = true;
			mklog_discard(&l, t->off, t->len);
			break;
		case 3:
			mklog_write(&l, LW_FUA, t->off, data + i, t->len);
			break;
		default:
			mklog_write(&l, 0, t->off, data + i, t->len);
		}
	}
}

static void simulate(uint8_t *sim, uint32_t i)
{
	if (step[i].zero)
		memset(sim + step[i].off, 0, step[i].len);
	else
		memcpy(sim + step[i].off, data + i, step[i].len);
}

static void count_entry(const struct lw_entry *e, void *arg)
{
	uint64_t *n = arg;

	/* numbers in order, each once: their sum tells */
	*n += e->nr + 1;
}

static void every_point(uint32_t sectorsize, uint32_t stride)
{
	enum { N = 80 };
	static uint8_t sim[SIZE];
	uint64_t seen = 0;
	bool same = true;

	random_log(sectorsize, N);
	open_all();
	memset(sim, 0, SIZE);
	for (uint32_t point = stride - 1; point < N; point += stride) {
		for (uint32_t i = point + 1 - stride; i <= point; i++)
			simulate(sim, i);
		same &= !state_advance(&s, point, count_entry, &seen) &&
			target_is(sim);
	}
	ok(same, "%u: the state at every %u. point", sectorsize, stride);
	ok_int(seen, N * (N + 1) / 2, "%u: each entry was seen once",
	       sectorsize);
	ok_int(s.size, SIZE, "%u: the target's size", sectorsize);
	ok(!state_advance(&s, N - 1, count_entry, &seen) && target_is(sim) &&
	   seen == N * (N + 1) / 2, "%u: the same point again", sectorsize);
	close_all();
}

/* The log's order counts, also where a FUA write overtook an older one. */
static void log_order(void)
{
	static uint8_t sim[SIZE];

	mklog_init(&l, NULL, 512);
	mklog_write(&l, LW_FUA, 4096, data, 512);
	mklog_write(&l, 0, 4096, data + 512, 512);
	mklog_flush(&l);
	open_all();
	memcpy(sim + 4096, data, 512);
	ok(!state_advance(&s, 0, NULL, NULL) && target_is(sim),
	   "after the FUA write, its data");
	memcpy(sim + 4096, data + 512, 512);
	ok(!state_advance(&s, 2, NULL, NULL) && target_is(sim),
	   "after the flush, the data logged last");
	close_all();
}

/* An entry at fault after a good one: @want, and only the good one applied */
static void refused(const char *want)
{
	CLEANUP_FREE char *message = xasprintf("%s: %s: %s", target, l.path,
					       want);
	static uint8_t sim[SIZE];

	memcpy(sim, data, 512);
	open_all();
	ok_int(state_advance(&s, 1, NULL, NULL), -EINVAL, "refused: %s", want);
	ok_str(s.error, message, "with that message");
	ok(target_is(sim), "and nothing of it was written");
	close_all();
}

static void start(void)
{
	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 512);
}

static void past_the_end(void)
{
	start();
	mklog_write(&l, 0, SIZE - 512, data, 1024);
	refused("entry 1 at byte 1536 writes bytes 1048064 to 1049088, expected within the target's 1048576");
	start();
	mklog_write(&l, LW_FUA, SIZE, data, 512);
	refused("entry 1 at byte 1536 writes bytes 1048576 to 1049088, expected within the target's 1048576");
	start();
	mklog_write(&l, 0, 1ULL << 40, data, 512);
	refused("entry 1 at byte 1536 writes bytes 1099511627776 to 1099511628288, expected within the target's 1048576");
	start();
	mklog_discard(&l, 512, SIZE);
	refused("entry 1 at byte 1536 writes bytes 512 to 1049088, expected within the target's 1048576");
	start();
	mklog_header(&l, 0, 0, 1 << 9, 0);
	refused("entry 1 at byte 1536: flags 0x200, expected none but FLUSH, FUA, DISCARD, MARK and METADATA");

	start();
	mklog_discard(&l, 512, SIZE - 512);
	mklog_write(&l, 0, SIZE - 512, data, 512);
	open_all();
	ok_int(state_advance(&s, 2, NULL, NULL), 0, "up to the end is fine");
	close_all();
}

/* A fault must stay one: a second try must not go on behind the entry. */
static void fault_again(void)
{
	static uint8_t sim[SIZE];

	start();
	mklog_write(&l, 0, SIZE, data, 512);
	mklog_write(&l, 0, 0, data + 512, 512);
	memcpy(sim, data, 512);
	open_all();
	ok_int(state_advance(&s, 2, NULL, NULL), -EINVAL, "a fault");
	ok_int(state_advance(&s, 2, NULL, NULL), -EINVAL, "is one again");
	ok(target_is(sim), "and nothing after it was written");
	close_all();
}

static void bad_points(void)
{
	CLEANUP_FREE char *beyond = xasprintf("%s: %s/log: no entry 3, the log has 3",
					      target, scratch());
	CLEANUP_FREE char *past = xasprintf("%s: already past entry 0",
					    target);
	static uint8_t sim[SIZE];

	start();
	mklog_write(&l, 0, 0, data + 512, 512);
	mklog_write(&l, 0, 0, data + 1024, 512);
	open_all();
	memcpy(sim, data + 512, 512);
	ok_int(state_advance(&s, 1, NULL, NULL), 0, "entry 1");
	ok_int(state_advance(&s, 3, NULL, NULL), -EINVAL, "beyond the log");
	ok_str(s.error, beyond, "with its message");
	ok_int(state_advance(&s, UINT64_MAX, NULL, NULL), -EINVAL,
	       "far beyond the log");
	ok_int(state_advance(&s, 0, NULL, NULL), -EINVAL, "backwards");
	ok_str(s.error, past, "with its message");
	ok(target_is(sim), "nothing of that was written");
	close_all();
}

static void no_target(void)
{
	CLEANUP_FREE char *path = xasprintf("%s/none", scratch());
	CLEANUP_FREE char *want =
		xasprintf("%s: cannot open for writing: No such file or directory",
			  path);

	start();
	mklog_save(&l);
	if (lw_open(&lw, l.path, 0))
		die(EXIT_LOSS, "%s", lw.error);
	ok_int(state_open(&s, &lw, path), -ENOENT, "no such target");
	ok_str(s.error, want, "with its message");
	close_all();
}

int main(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i * 131 + i / 256 * 17 + 1;
	target = xasprintf("%s/target", scratch());
	every_point(512, 1);
	every_point(512, 40);
	every_point(4096, 1);
	log_order();
	past_the_end();
	fault_again();
	bad_points();
	no_target();
	free(target);
	return tap_end();
}
