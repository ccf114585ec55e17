// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/state.c and replay/digest.c: the state at each point is what a
 * plain simulation in memory says, whichever way it was come by; an entry at
 * fault leaves the target as it was; and what the target refuses is told.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../replay/state.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

enum { SIZE = 1 << 20 };

static struct mklog l;
static struct lw_log lw;
static struct lw_index idx;
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
	if (lw_open(&lw, l.path, 0) || state_open(&s, &lw, NULL, target))
		die(EXIT_LOSS, "%s%s", lw.error, s.error);
}

/* The linker leads the library's calls here: see the Makefile. */
static int refuse_errno;		/* of the next call that is asked for */
static enum { NOTHING, WRITE, SHORT, ZERO, SYNC } refused_call;

ssize_t __real_pwrite(int fd, const void *buf, size_t len, off_t off);
int __real_fallocate(int fd, int mode, off_t off, off_t len);
int __real_fdatasync(int fd);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t off);
int __wrap_fallocate(int fd, int mode, off_t off, off_t len);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	if (refused_call == WRITE) {
		errno = refuse_errno;
		return refuse_errno ? -1 : 0;
	}
	return __real_pwrite(fd, buf, refused_call == SHORT && len > 100 ?
				      100 : len, off);
}

int __wrap_fallocate(int fd, int mode, off_t off, off_t len)
{
	if (refused_call != ZERO)
		return __real_fallocate(fd, mode, off, len);
	errno = refuse_errno;
	return -1;
}

int __wrap_fdatasync(int fd)
{
	if (refused_call != SYNC)
		return __real_fdatasync(fd);
	errno = refuse_errno;
	return -1;
}

static void close_all(void)
{
	lw_index_close(&idx);
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
	ok_int(state_open(&s, &lw, NULL, path), -ENOENT, "no such target");
	ok_str(s.error, want, "with its message");
	close_all();
}

static void open_indexed(void)
{
	open_all();
	if (lw_index_build(&idx, &lw, LW_INDEX_ALL))
		die(EXIT_LOSS, "%s", idx.error);
	s.index = &idx;
	lw_rewind(&lw);
}

/* From any point to any other, within any part of the device */
static void either_way(uint32_t sectorsize, uint64_t from, uint64_t until)
{
	enum { N = 120, JUMPS = 150 };
	static uint8_t sim[N + 1][SIZE], part[SIZE];
	static struct digest digest[N + 1];
	bool same = true, digests = true, differ = true;
	uint64_t last = 0;

	random_log(sectorsize, N);
	open_indexed();
	s.from = from;
	s.until = until;
	s.with_digest = true;
	memset(sim[0], 0, SIZE);
	for (uint32_t i = 0; i < N; i++) {
		memcpy(sim[i + 1], sim[i], SIZE);
		simulate(sim[i + 1], i);
	}
	for (uint32_t n = 0; n < JUMPS; n++) {
		/* to each once, then anywhere */
		uint32_t done = n <= N ? n : draw(N + 1);
		uint64_t end = until < SIZE ? until : SIZE;

		same &= !state_move(&s, done, NULL, NULL) && s.done == done;
		memset(part, 0, SIZE);
		memcpy(part + from, sim[done] + from, end - from);
		same &= target_is(part);
		if (n <= N)
			digest[done] = s.digest;
		else
			digests &= digest_same(&digest[done], &s.digest);
	}
	ok(same, "%u: from any point to any other, bytes %" PRIu64 " to %" PRIu64,
	   sectorsize, from, until);
	ok(digests, "%u: the digest is that of the point", sectorsize);
	for (uint32_t a = 0; a <= N; a++) {
		for (uint32_t b = 0; b < a; b++) {
			uint64_t end = until < SIZE ? until : SIZE;

			differ &= digest_same(&digest[a], &digest[b]) ==
				  !memcmp(sim[a] + from, sim[b] + from,
					  end - from);
		}
		last += digest_same(&digest[a], &digest[0]);
	}
	ok(differ && last, "%u: equal digests are equal states", sectorsize);
	close_all();
}

/* The same data in another place are another state, and zeros are none. */
static void digests(void)
{
	static const uint8_t zeros[4096];
	struct digest first;

	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 4096);
	mklog_write(&l, 0, 0, zeros, 4096);
	mklog_write(&l, 0, 4096, data, 4096);
	mklog_discard(&l, 4096, 4096);
	mklog_write(&l, 0, 0, data, 2048);
	mklog_write(&l, 0, 2048, data + 2048, 2048);
	open_indexed();
	s.with_digest = true;
	state_move(&s, 1, NULL, NULL);
	first = s.digest;
	ok(first.low && first.high, "data have a digest");
	state_move(&s, 2, NULL, NULL);
	ok(!s.digest.low && !s.digest.high, "zeros have none");
	state_move(&s, 3, NULL, NULL);
	ok(s.digest.low != first.low && s.digest.high != first.high,
	   "the same data elsewhere have another");
	state_move(&s, 5, NULL, NULL);
	ok(s.digest.low != first.low && s.digest.high != first.high,
	   "and so has a half");
	state_move(&s, 6, NULL, NULL);
	ok(digest_same(&s.digest, &first), "in two writes it is the same");
	close_all();
}

/* The way back writes each sector that differs once, whatever lies between. */
static void back_is_cheap(void)
{
	static uint8_t sim[SIZE];

	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 4096);
	for (int i = 0; i < 1000; i++)
		mklog_write(&l, 0, 8192, data + i, 512);
	open_indexed();
	ok(!state_move(&s, 1001, NULL, NULL) && s.written == 4096 + 512000,
	   "forwards, each entry is applied");
	s.written = s.zeroed = 0;
	memcpy(sim, data, 4096);
	memcpy(sim + 8192, data + 9, 512);
	ok(!state_move(&s, 11, NULL, NULL) && s.written == 512 && !s.zeroed &&
	   target_is(sim), "back over 990 writes of a sector, it is written once");
	memset(sim + 8192, 0, 512);
	ok(!state_move(&s, 1, NULL, NULL) && s.written == 512 &&
	   s.zeroed == 512 && target_is(sim), "and zeroed before the first");
	close_all();
}

/* A target that stands somewhere already holds more than zeros. */
static void stands(void)
{
	static uint8_t sim[SIZE];

	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 4096);
	mklog_write(&l, 0, 65536, data, 4096);
	mklog_discard(&l, 0, SIZE);
	open_indexed();
	state_move(&s, 2, NULL, NULL);
	state_close(&s);
	if (state_open(&s, &lw, &idx, target))
		die(EXIT_LOSS, "%s", s.error);
	state_stands(&s, 2);
	ok(!state_move(&s, 3, NULL, NULL) && target_is(sim),
	   "a discard zeroes what was there before");
	memcpy(sim, data, 4096);
	ok(!state_move(&s, 1, NULL, NULL) && target_is(sim),
	   "and back behind where it stood");
	memset(sim, 0, SIZE);
	ok(!state_wipe(&s) && s.done == 0 && target_is(sim), "all zeros");
	close_all();
}

static void without_discards(void)
{
	static uint8_t sim[SIZE];

	start();
	mklog_discard(&l, 0, 4096);
	mklog_write(&l, 0, 4096, data, 512);
	open_all();
	s.no_discard = true;
	memcpy(sim, data, 512);
	memcpy(sim + 4096, data, 512);
	ok(!state_move(&s, 3, NULL, NULL) && target_is(sim),
	   "discards are left out when asked to");
	close_all();
}

/* A mark or a flush with sectors is a write as well: flags combine. */
static void flags_combine(void)
{
	static uint8_t sim[SIZE];

	mklog_init(&l, NULL, 512);
	mklog_write(&l, LW_MARK | LW_FUA, 0, data, 512);
	mklog_write(&l, LW_FLUSH, 512, data, 512);
	mklog_header(&l, 0, 1, LW_DISCARD | LW_MARK, 0);
	open_all();
	memcpy(sim + 512, data, 512);
	ok(!state_move(&s, 3, NULL, NULL) && target_is(sim),
	   "a write, a write and a discard by other names");
	close_all();
}

static void refusal(int call, int err, uint64_t done, int want, const char *what,
		    const char *message)
{
	CLEANUP_FREE char *full = xasprintf("%s: %s", target, message);
	int ret;

	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 4096);
	mklog_discard(&l, 0, 4096);
	open_all();
	if (done == 2)
		state_move(&s, 1, NULL, NULL);
	refused_call = call;
	refuse_errno = err;
	ret = state_move(&s, done, NULL, NULL);
	if (!ret)
		ret = state_sync(&s);
	refused_call = NOTHING;
	ok_int(ret, want, "%s", what);
	if (want)
		ok_str(s.error, full, "with its message");
	if (want)
		ok_int(state_move(&s, 2, NULL, NULL), want, "and no state");
	close_all();
}

static void target_refuses(void)
{
	static uint8_t sim[SIZE];

	refusal(WRITE, ENOSPC, 1, -ENOSPC, "a full disk",
		"cannot write 4096 bytes at 0, of entry 0: No space left on device");
	refusal(WRITE, EIO, 1, -EIO, "a write error",
		"cannot write 4096 bytes at 0, of entry 0: Input/output error");
	refusal(WRITE, 0, 1, -EIO, "nothing written",
		"cannot write 4096 bytes at 0, of entry 0: Input/output error");
	refusal(SYNC, EIO, 1, -EIO, "a failed sync",
		"cannot sync: Input/output error");

	/* writes in many parts, and holes refused, come to the same */
	mklog_init(&l, NULL, 512);
	mklog_write(&l, 0, 0, data, 8192);
	mklog_discard(&l, 1024, 1024);
	open_all();
	memcpy(sim, data, 8192);
	memset(sim + 1024, 0, 1024);
	refused_call = SHORT;
	ok(!state_move(&s, 1, NULL, NULL), "short writes go on");
	refused_call = ZERO;
	refuse_errno = EOPNOTSUPP;
	ok(!state_move(&s, 2, NULL, NULL) && target_is(sim),
	   "a target that cannot discard gets zeros");
	refused_call = NOTHING;
	close_all();
}

/* Longer than a tool that fills a buffer would do */
static void long_discard(void)
{
	uint64_t size = 1ULL << 40, off;
	uint8_t byte = 1;

	mklog_init(&l, NULL, 512);
	for (off = 0; off < size; off += size / 16)
		mklog_write(&l, 0, off + 1024, data, 512);
	mklog_discard(&l, 0, size);
	make_target();
	if (truncate(target, size))
		die(EXIT_CANNOT, "%s: %m", target);
	mklog_save(&l);
	if (lw_open(&lw, l.path, 0) || state_open(&s, &lw, NULL, target))
		die(EXIT_LOSS, "%s%s", lw.error, s.error);
	ok(!state_move(&s, 16, NULL, NULL) && s.written == 16 * 512,
	   "writes over 1 TiB");
	refused_call = ZERO;
	refuse_errno = EOPNOTSUPP;
	ok(!state_move(&s, 17, NULL, NULL), "a discard of 1 TiB");
	refused_call = NOTHING;
	for (off = 0; off < size; off += size / 16)
		if (pread_all(s.fd, &byte, 1, off + 1024) || byte)
			break;
	ok(off == size && s.zeroed == 16 * 65536,
	   "leaves zeros, and writes them only where something was");
	close_all();
}

/* Only what others write to the target changes the stamp. */
static void stamp(void)
{
	CLEANUP_CLOSE int fd = -1;
	uint64_t before;
	char byte;

	start();
	open_all();
	state_advance(&s, 0, NULL, NULL);
	before = state_stamp(&s);
	fd = open(target, O_RDWR | O_CLOEXEC);
	if (pread_all(fd, &byte, 1, 0))
		die(EXIT_CANNOT, "%s: %m", target);
	ok(state_stamp(&s) == before, "a read leaves the stamp as it is");
	usleep(20000);		/* a tick of the file's clock */
	if (pwrite_all(fd, &byte, 1, 0))
		die(EXIT_CANNOT, "%s: %m", target);
	ok(state_stamp(&s) != before, "a write changes it");
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
	either_way(512, 0, UINT64_MAX);
	either_way(512, 70000 / 512 * 512, 300000 / 512 * 512);
	either_way(4096, 0, UINT64_MAX);
	either_way(4096, 4096, SIZE - 4096);
	digests();
	back_is_cheap();
	stands();
	without_discards();
	flags_combine();
	target_refuses();
	long_discard();
	stamp();
	free(target);
	return tap_end();
}
