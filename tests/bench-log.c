// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure the log library: states of a log of a capture's shape, forwards and
 * backwards, and the index of a log of a million entries. Prints a table; what
 * is compared is measured in the same run. The logs are made here, in a folder
 * in TMPDIR that goes when this ends: 4 GB of disk, for a minute or two.
 *
 * usage: bench-log
 *        bench-log --find MARK LOG    (its own use: a process that is cold)
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../replay/index.h"
#include "../replay/le.h"
#include "../replay/places.h"
#include "../replay/state.h"
#include "../replay/util.h"
#include "unit/mklog.h"

#define KiB	1024ULL
#define MiB	(1024 * KiB)
#define GiB	(1024 * MiB)
#define LL(x)	((unsigned long long)(x))

/* The log of a capture */
#define DEVICE		(512 * MiB)
#define DATA		(128 * MiB)	/* the writers' files are within */
#define JOURNAL		(256 * MiB)	/* XFS's log: where, and how long */
#define JOURNAL_LEN	(10 * MiB)
enum { POINTS = 528, ENTRIES = 26400, HOT = 64, BEST_OF = 5 };

/* The log of a million entries */
#define LONG_SPAN	(10 * GiB)
enum { LONG_ENTRIES = 1000000, MARK_EACH = 25, LONG_BEST_OF = 3 };
enum { COLD_RUNS = 20 };

static char *target;

static uint64_t draw(uint64_t below)
{
	static uint64_t x = 1;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % below;
}

/* The mark is what differs: no two blocks are the same, none has zeros. */
static const void *some_data(size_t len)
{
	static uint64_t buf[32 * KiB / sizeof(uint64_t)];

	for (size_t i = 0; i < len / sizeof(*buf); i++)
		buf[i] = draw(UINT64_MAX);
	return buf;
}

__attribute__((format(printf, 2, 3)))
static void print(const char *what, const char *fmt, ...)
{
	va_list ap;

	printf("%-38s ", what);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* Making the logs */

static void data_write(struct mklog *l, bool hot)
{
	uint64_t blocks = hot ? HOT : DATA / (4 * KiB);

	mklog_write(l, 0, draw(blocks) * 4 * KiB, some_data(4 * KiB), 4 * KiB);
}

static void journal_write(struct mklog *l, uint64_t flags, size_t len)
{
	static uint64_t head;

	if (head + len > JOURNAL_LEN)
		head = 0;
	mklog_write(l, flags | LW_METADATA, JOURNAL + head, some_data(len),
		    len);
	head += len;
}

static void ack(struct mklog *l)
{
	static unsigned int nr;
	char text[64];

	mklog_text(l, text, snprintf(text, sizeof(text), "ack:%08x:%u:%u",
				     0x5eed, nr % 8, nr / 8));
	nr++;
}

/* What one FUA write closes, and it: 50 entries, the first @skip left out */
static void group(struct mklog *l, unsigned int skip, bool hot)
{
	/* data, journal, flush, ack; a digit is a journal write's blocks */
	static const char shape[] =
		"ddda1dfadddaf2ddadfda3adafda4ddfdaddf6ddafddadfda";

	for (unsigned int i = skip; shape[i]; i++) {
		switch (shape[i]) {
		case 'd':
			data_write(l, hot);
			break;
		case 'f':
			mklog_flush(l);
			break;
		case 'a':
			ack(l);
			break;
		default:
			journal_write(l, 0, (shape[i] - '0') * 4 * KiB);
		}
	}
	journal_write(l, LW_FUA, 32 * KiB);
}

/* 528 points as a capture has them; with @hot its data goes to few blocks */
static char *make_capture_log(const char *name, bool hot)
{
	struct mklog l;
	char *path;

	mklog_init(&l, NULL, 512);
	mklog_discard(&l, 0, DEVICE);
	for (int i = 0; i < POINTS; i++)
		group(&l, !i, hot);
	free(l.path);
	path = l.path = xasprintf("%s/%s", scratch(), name);
	mklog_save(&l);
	path = xstrdup(path);
	mklog_free(&l);
	return path;
}

static void long_header(uint8_t *sector, uint64_t nr, uint64_t nr_sectors)
{
	struct lw_disk_entry *e = (void *)sector;
	int n;

	memset(sector, 0, 512);
	if (nr % MARK_EACH) {
		e->sector = put_le64(draw(GiB / (4 * KiB)) * 8);
		e->nr_sectors = put_le64(nr_sectors);
		return;
	}
	e->flags = put_le64(LW_MARK);
	n = sprintf((char *)(e + 1), "mark:%llu", LL(nr));
	e->data_len = put_le64(n);
}

static void write_super(int fd, uint64_t nr_entries)
{
	struct lw_disk_super super = {
		.magic = put_le64(LW_MAGIC),
		.version = put_le64(LW_VERSION),
		.nr_entries = put_le64(nr_entries),
		.sectorsize = put_le32(512),
	};

	if (pwrite_all(fd, &super, sizeof(super), 0))
		die(EXIT_CANNOT, "cannot write a log's superblock");
}

/* 10 GiB by headers alone: a write's data is a hole. */
static char *make_long_log(void)
{
	char *path = xasprintf("%s/long", scratch());
	CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	const uint64_t all = LONG_SPAN / LONG_ENTRIES / 512;
	const uint64_t data = all * MARK_EACH / (MARK_EACH - 1);
	uint64_t off = 512;
	uint8_t sector[512];

	if (fd < 0)
		die(EXIT_CANNOT, "%s: %m", path);
	write_super(fd, LONG_ENTRIES);
	for (uint64_t nr = 0; nr < LONG_ENTRIES; nr++) {
		long_header(sector, nr, data);
		if (pwrite_all(fd, sector, sizeof(sector), off))
			die(EXIT_CANNOT, "%s: cannot write", path);
		off += 512 + (nr % MARK_EACH ? data * 512 : 0);
	}
	/* not to be written back while there is something to measure */
	if (ftruncate(fd, off) || fsync(fd))
		die(EXIT_CANNOT, "%s: %m", path);
	return path;
}

/* A log, its index and a target, as a tool has them */

struct job {
	struct lw_log	log;
	struct lw_index	idx;
	struct state	state;
	struct places	points;
};

static void empty_target(void)
{
	CLEANUP_CLOSE int fd = open(target, O_RDWR | O_CREAT | O_TRUNC |
				    O_CLOEXEC, 0644);

	if (fd < 0 || ftruncate(fd, DEVICE))
		die(EXIT_CANNOT, "%s: %m", target);
}

static void open_index(struct job *j, const char *path)
{
	memset(j, 0, sizeof(*j));
	if (lw_open(&j->log, path, 0) ||
	    lw_index_open(&j->idx, &j->log, NULL, LW_INDEX_ALL) ||
	    places_list(&j->points, "fua", &j->idx, &j->log))
		die(EXIT_LOSS, "%s%s", j->log.error, j->idx.error);
	if (j->idx.fault[0])
		die(EXIT_LOSS, "%s", j->idx.fault);
}

static void open_state(struct job *j)
{
	if (state_open(&j->state, &j->log, &j->idx, target))
		die(EXIT_LOSS, "%s", j->state.error);
}

static void go(struct job *j, uint64_t done)
{
	if (state_move(&j->state, done, NULL, NULL))
		die(EXIT_LOSS, "%s", j->state.error);
}

static void close_job(struct job *j)
{
	places_free(&j->points);
	state_close(&j->state);
	lw_index_close(&j->idx);
	lw_close(&j->log);
}

/* All 528 states */

struct pass {
	double		index, states, sync, all;	/* seconds */
};

static void one_pass(const char *path, bool with_digest, struct pass *p)
{
	double start;
	struct job j;

	empty_target();
	start = now();
	open_index(&j, path);
	p->index = now() - start;
	open_state(&j);
	j.state.with_digest = with_digest;
	for (size_t i = 0; i < j.points.nr; i++)
		go(&j, j.points.done[i]);
	p->all = now() - start;
	p->states = p->all - p->index;
	if (state_sync(&j.state))
		die(EXIT_LOSS, "%s", j.state.error);
	p->sync = now() - start - p->all;
	close_job(&j);
}

static double best_pass(const char *path, bool with_digest, const char *what)
{
	struct pass best = { .all = 1e9 }, p;

	for (int i = 0; i < BEST_OF; i++) {
		one_pass(path, with_digest, &p);
		if (p.all < best.all)
			best = p;
	}
	print(what, "%7.3f s  (index %.3f, states %.3f; one sync at the end %.3f)",
	      best.all, best.index, best.states, best.sync);
	return best.all;
}

/* The loop of those who have no index and do not go on from a state */
static double restarts(const char *path)
{
	double spent = 0;
	struct job j;

	open_index(&j, path);
	for (size_t i = 0; i < j.points.nr; i++) {
		double start;

		empty_target();
		start = now();
		if (state_open(&j.state, &j.log, NULL, target))
			die(EXIT_LOSS, "%s", j.state.error);
		go(&j, j.points.done[i]);
		state_close(&j.state);
		spent += now() - start;
	}
	j.state.fd = -1;
	close_job(&j);
	return spent;
}

static void describe(const char *path)
{
	uint64_t data = 0;
	struct job j;

	open_index(&j, path);
	for (uint64_t nr = 0; nr < j.idx.nr; nr++)
		if (!(j.idx.entry[nr].flags & LW_DISCARD))
			data += j.idx.entry[nr].len;
	print("log", "%.1f MB, %llu entries, %zu FUA points, %.1f MB of data",
	      j.log.src.size / 1e6, LL(j.idx.nr), j.points.nr, data / 1e6);
	if (j.idx.nr != ENTRIES || j.points.nr != POINTS)
		die(EXIT_LOSS, "expected %d entries, %d points", ENTRIES,
		    POINTS);
	j.state.fd = -1;
	close_job(&j);
}

static void bench_states(const char *path)
{
	double one, restarted;

	puts("528 states in one file");
	describe(path);
	one = best_pass(path, false, "one pass, best of 5");
	best_pass(path, true, "the same with the digest kept");
	restarted = restarts(path);
	print("from zero for each, once", "%7.3f s  %.0f times the one pass",
	      restarted, restarted / one);
}

/* Backwards */

/* Sectors of 512 bytes in which the target differs from @other */
static uint64_t count_differing(const char *other)
{
	static uint8_t a[64 * KiB], b[64 * KiB];
	CLEANUP_CLOSE int x = open(target, O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int y = open(other, O_RDONLY | O_CLOEXEC);
	uint64_t n = 0;

	for (uint64_t off = 0; off < DEVICE; off += sizeof(a)) {
		if (pread_all(x, a, sizeof(a), off) ||
		    pread_all(y, b, sizeof(b), off))
			die(EXIT_CANNOT, "cannot read a state back");
		if (!memcmp(a, b, sizeof(a)))
			continue;
		for (size_t i = 0; i < sizeof(a); i += 512)
			n += !!memcmp(a + i, b + i, 512);
	}
	return n;
}

static double to_point(const char *path, uint64_t done)
{
	double start;
	struct job j;

	empty_target();
	open_index(&j, path);
	open_state(&j);
	start = now();
	go(&j, done);
	start = now() - start;
	close_job(&j);
	return start;
}

/* @other holds the state at @to, for comparison. */
static void one_move(const char *path, uint64_t from, uint64_t to,
		     const char *other, double rebuilt)
{
	uint64_t sectors, written = 0;
	double best = 1e9;
	char what[64];
	struct job j;

	empty_target();
	open_index(&j, path);
	open_state(&j);
	go(&j, from);
	sectors = count_differing(other);
	for (int i = 0; i < BEST_OF; i++) {
		double start;

		go(&j, from);
		written = j.state.written + j.state.zeroed;
		start = now();
		go(&j, to);
		start = now() - start;
		written = j.state.written + j.state.zeroed - written;
		if (start < best)
			best = start;
	}
	if (count_differing(other))
		die(EXIT_LOSS, "%s: entry %llu backwards is another state",
		    path, LL(to));
	snprintf(what, sizeof(what), "  %llu back to %llu", LL(from), LL(to));
	print(what, "%8.2f ms %6.1f MB %7llu sectors %6.0f us/MB; from zero %6.1f ms",
	      best * 1e3, written / 1e6, LL(sectors),
	      sectors ? best * 1e6 / (sectors * 512 / 1e6) : 0,
	      rebuilt * 1e3);
	close_job(&j);
}

static void bench_backwards(const char *path, const char *what)
{
	static const uint64_t to[] = { 8900, 6000, 3000 };
	CLEANUP_FREE char *other = xasprintf("%s/other", scratch());

	puts(what);
	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		double rebuilt = to_point(path, to[i]);

		if (rename(target, other))
			die(EXIT_CANNOT, "%s: %m", other);
		one_move(path, 9000, to[i], other, rebuilt);
	}
	unlink(other);
}

/* The index */

static void build(const char *path, unsigned int need, const char *what)
{
	struct lw_index idx;
	double best = 1e9;
	uint64_t bytes = 0, peak = 0;
	struct lw_log log;
	struct stat st;

	for (int i = 0; i < LONG_BEST_OF; i++) {
		double start = now();

		if (lw_open(&log, path, 0) ||
		    lw_index_build(&idx, &log, need) || idx.fault[0])
			die(EXIT_LOSS, "%s%s", log.error, idx.fault);
		start = now() - start;
		if (start < best)
			best = start;
		bytes = idx.bytes / idx.nr;
		peak = idx.peak / idx.nr;
		lw_index_close(&idx);
		lw_close(&log);
	}
	if (stat(path, &st))
		die(EXIT_CANNOT, "%s: %m", path);
	print(what, "%7.3f s %6.2f M entries/s %6.2f GB/s spanned %5.2f GB/s allocated, %llu bytes an entry, %llu at most",
	      best, LONG_ENTRIES / best / 1e6, st.st_size / best / 1e9,
	      st.st_blocks * 512 / best / 1e9, LL(bytes), LL(peak));
}

static char *keep(const char *path)
{
	struct lw_index idx;
	struct lw_log log;
	struct stat st;
	double start;
	char *kept;

	if (lw_open(&log, path, 0) || lw_index_build(&idx, &log, LW_INDEX_ALL))
		die(EXIT_LOSS, "%s", log.error);
	start = now();
	if (lw_index_keep(&idx, &log, NULL))
		die(EXIT_LOSS, "%s", idx.error);
	start = now() - start;
	kept = lw_index_path(&log);
	if (stat(kept, &st))
		die(EXIT_CANNOT, "%s: %m", kept);
	print("keep it", "%7.3f s, %.1f MB", start, st.st_size / 1e6);
	lw_index_close(&idx);
	lw_close(&log);
	return kept;
}

/* The whole job of a process that looks up one mark */
static int find(const char *text, const char *path)
{
	struct lw_index idx;
	struct lw_log log;
	uint64_t nr;

	if (lw_open(&log, path, 0) ||
	    lw_index_open(&idx, &log, NULL, LW_INDEX_MARKS) ||
	    lw_index_mark(&idx, &log, text, strlen(text), 0, &nr))
		die(EXIT_LOSS, "%s%s", log.error, idx.error);
	return nr == LW_NONE || idx.note[0] ? EXIT_LOSS : EXIT_OK;
}

static void run_find(const char *path, uint64_t nr)
{
	CLEANUP_FREE char *text = xasprintf("mark:%llu", LL(nr));
	int status;
	pid_t pid = vfork();

	if (!pid) {
		execl("/proc/self/exe", "bench-log", "--find", text, path,
		      NULL);
		_exit(EXIT_CANNOT);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
		die(EXIT_LOSS, "no mark '%s' found by a process of its own",
		    text);
}

static void drop_cache(const char *path)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die(EXIT_CANNOT, "%s: cannot drop from the cache", path);
}

static void bench_find(const char *path, const char *kept, bool cold,
		       const char *what)
{
	double best = 1e9, worst = 0;

	for (int i = 0; i < COLD_RUNS; i++) {
		uint64_t nr = draw(LONG_ENTRIES / MARK_EACH) * MARK_EACH;
		double t;

		if (cold) {
			drop_cache(path);
			drop_cache(kept);
		}
		t = now();
		run_find(path, nr);
		t = now() - t;
		best = t < best ? t : best;
		worst = t > worst ? t : worst;
	}
	print(what, "%7.2f ms best, %.2f ms worst of %d", best * 1e3,
	      worst * 1e3, COLD_RUNS);
}

static void bench_index(void)
{
	CLEANUP_FREE char *path = make_long_log();
	CLEANUP_FREE char *kept = NULL;
	struct stat st;

	puts("Index");
	if (stat(path, &st))
		die(EXIT_CANNOT, "%s: %m", path);
	print("log", "%.2f GiB, %.2f GiB allocated, %d entries, 1 of %d a mark",
	      st.st_size / (double)GiB, st.st_blocks * 512.0 / GiB,
	      LONG_ENTRIES, MARK_EACH);
	build(path, LW_INDEX_MARKS, "marks only, best of 3");
	build(path, LW_INDEX_ALL, "all, best of 3");
	kept = keep(path);
	bench_find(path, kept, false, "find a mark, a new process");
	bench_find(path, kept, true, "and neither file in the cache");
	unlink(path);
	unlink(kept);
}

/* Gigabytes are not to be left behind: exit() removes them. */
static void *wait_for_signal(void *set)
{
	int sig = 0;

	sigwait(set, &sig);
	exit(128 + sig);
}

static void clean_up_on_signals(void)
{
	static sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pthread_create(&thread, NULL, wait_for_signal, &set))
		die(EXIT_CANNOT, "cannot start a thread");
}

int main(int argc, char **argv)
{
	CLEANUP_FREE char *capture = NULL, *hot = NULL;

	if (argc == 4 && !strcmp(argv[1], "--find"))
		return find(argv[2], argv[3]);
	if (argc != 1)
		die(EXIT_USAGE, "takes no arguments");
	clean_up_on_signals();
	target = xasprintf("%s/target", scratch());
	capture = make_capture_log("capture", false);
	hot = make_capture_log("hot", true);
	bench_states(capture);
	bench_backwards(capture, "Backwards, best of 5");
	bench_backwards(hot, "Backwards where data goes to 64 blocks");
	unlink(target);
	bench_index();
	free(target);
	close_stdout();
	return EXIT_OK;
}
