// SPDX-License-Identifier: GPL-2.0-only
/*
 * replay-log: the options of the program of that name in xfstests, for the
 * scripts that call it. What differs, and why, is in replay-log(1).
 */

#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blockdev.h"
#include "check.h"
#include "index.h"
#include "log.h"
#include "state.h"
#include "util.h"

#define LL(x)	((unsigned long long)(x))

enum {
	OPT_LOG = OPT_BASE, OPT_REPLAY, OPT_LIMIT, OPT_NEXT_FLUSH,
	OPT_NEXT_FUA, OPT_START_ENTRY, OPT_START_MARK, OPT_END_MARK, OPT_FIND,
	OPT_NUM_ENTRIES, OPT_NO_DISCARD, OPT_FSCK, OPT_CHECK,
	OPT_START_SECTOR, OPT_END_SECTOR
};

struct job {
	const char	*log_path, *target;
	const char	*start_mark, *end_mark, *fsck;
	uint64_t	start_entry, limit, stop_flags;
	uint64_t	check_every, check_flags;
	uint64_t	start_sector, end_sector;
	bool		find, count, no_discard;
	int		verbose;

	struct lw_log	log;
	struct lw_index	idx;
	struct state	state;
	uint64_t	start;		/* the first entry */
	uint64_t	from, until;	/* bytes of the device */
	bool		warned;
};

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: replay-log --log FILE [OPTION]...\n"
	     "\n"
	     "Replay a dm-log-writes log, or find an entry in it, with the options of the\n"
	     "program of this name in xfstests. Without an option that says what to do, print\n"
	     "a line about the log.\n"
	     "\n"
	     "      --log FILE          the log, a file or a block device\n"
	     "      --replay TARGET     replay the entries onto this file or block device\n"
	     "      --find              print the entry to stop at, and where its data ends\n"
	     "      --num-entries       print how many entries there are\n"
	     "\n"
	     "      --start-entry N     start at entry N (default: 0)\n"
	     "      --start-mark TEXT   start behind this mark\n"
	     "      --end-mark TEXT     stop at this mark,\n"
	     "      --next-flush        the first flush,\n"
	     "      --next-fua          the first FUA entry,\n"
	     "      --limit N           or the Nth entry, whichever comes first\n"
	     "\n"
	     "      --start-sector N    replay sectors of the log's size from N on only,\n"
	     "      --end-sector N      and up to N\n"
	     "      --no-discard        leave discards out\n"
	     "      --fsck COMMAND      run COMMAND, which must succeed,\n"
	     "      --check N           after each Nth entry;\n"
	     "                          or flush, or fua: after each of these\n"
	     "  -v, --verbose           list the entries that are replayed; twice, also those\n"
	     "                          that are skipped\n"
	     "  -h, --help              show this help\n"
	     "\n"
	     "Exit status: 0 done; 1 all that fails, also wrong usage; 2 TARGET is in use.");
	close_stdout();
	exit(EXIT_OK);
}

/* The scripts know of no other status than the old program's. */
static void __attribute__((noreturn)) usage_line(void)
{
	fputs("Usage: replay-log --log FILE [OPTION]...; see replay-log --help\n",
	      stderr);
	exit(EXIT_FAILURE);
}

static void __attribute__((noreturn)) usage_error(const char *message)
{
	warn("%s", message);
	usage_line();
}

/* Scripts give numbers as C does, and not only in decimal. */
static uint64_t number(const char *opt, const char *s)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(s, &end, 0);
	/* strtoull takes signs and blanks */
	if (*s < '0' || *s > '9' || *end || errno)
		usage_error(xasprintf("%s: '%s' is not a number", opt, s));
	return v;
}

static void read_check(struct job *j, const char *s)
{
	j->check_every = 0;
	j->check_flags = 0;
	if (!strcmp(s, "flush"))
		j->check_flags = LW_FLUSH;
	else if (!strcmp(s, "fua"))
		j->check_flags = LW_FUA;
	else
		j->check_every = number("--check", s);
	if (!j->check_flags && !j->check_every)
		usage_error("--check: after each 0th entry is never");
}

static void read_option(struct job *j, int c)
{
	switch (c) {
	case OPT_LOG:
		j->log_path = optarg;
		break;
	case OPT_REPLAY:
		j->target = optarg;
		break;
	case OPT_LIMIT:
		j->limit = number("--limit", optarg);
		break;
	case OPT_NEXT_FLUSH:
		j->stop_flags |= LW_FLUSH;
		break;
	case OPT_NEXT_FUA:
		j->stop_flags |= LW_FUA;
		break;
	case OPT_START_ENTRY:
		j->start_entry = number("--start-entry", optarg);
		break;
	case OPT_START_MARK:
		j->start_mark = optarg;
		break;
	case OPT_END_MARK:
		j->end_mark = optarg;
		break;
	case OPT_FIND:
		j->find = true;
		break;
	case OPT_NUM_ENTRIES:
		j->count = true;
		break;
	case OPT_NO_DISCARD:
		j->no_discard = true;
		break;
	case OPT_FSCK:
		j->fsck = optarg;
		break;
	case OPT_CHECK:
		read_check(j, optarg);
		break;
	case OPT_START_SECTOR:
		j->start_sector = number("--start-sector", optarg);
		break;
	case OPT_END_SECTOR:
		j->end_sector = number("--end-sector", optarg);
		break;
	case 'v':
		j->verbose++;
		break;
	case 'h':
		usage();
	default:
		usage_line();	/* getopt has said why */
	}
}

static void read_options(struct job *j, int argc, char **argv)
{
	static const struct option options[] = {
		{ "log", required_argument, NULL, OPT_LOG },
		{ "replay", required_argument, NULL, OPT_REPLAY },
		{ "limit", required_argument, NULL, OPT_LIMIT },
		{ "next-flush", no_argument, NULL, OPT_NEXT_FLUSH },
		{ "next-fua", no_argument, NULL, OPT_NEXT_FUA },
		{ "start-entry", required_argument, NULL, OPT_START_ENTRY },
		{ "start-mark", required_argument, NULL, OPT_START_MARK },
		{ "end-mark", required_argument, NULL, OPT_END_MARK },
		{ "find", no_argument, NULL, OPT_FIND },
		{ "num-entries", no_argument, NULL, OPT_NUM_ENTRIES },
		{ "no-discard", no_argument, NULL, OPT_NO_DISCARD },
		{ "fsck", required_argument, NULL, OPT_FSCK },
		{ "check", required_argument, NULL, OPT_CHECK },
		{ "start-sector", required_argument, NULL, OPT_START_SECTOR },
		{ "end-sector", required_argument, NULL, OPT_END_SECTOR },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int c;

	while ((c = getopt_long(argc, argv, "vh", options, NULL)) != -1)
		read_option(j, c);
	/* no script that runs today should end here */
	for (int i = optind; i < argc; i++)
		warn("'%s' is no option: ignored", argv[i]);
	if (!j->log_path)
		usage_error("no log");
	if (!j->fsck != !(j->check_every || j->check_flags))
		usage_error("--fsck and --check need each other");
	if (j->start_sector > j->end_sector)
		usage_error("--start-sector is behind --end-sector");
	if (j->find && !j->end_mark && !j->stop_flags && !j->limit)
		usage_error("--find needs --end-mark, --next-flush, --next-fua or --limit");
}

static void open_log(struct job *j)
{
	if (lw_open(&j->log, j->log_path, 0))
		die(EXIT_FAILURE, "%s", j->log.error);
	if (lw_index_open(&j->idx, &j->log, NULL, LW_INDEX_MARKS))
		die(EXIT_FAILURE, "%s", j->idx.error);
	if (j->idx.note[0])
		warn("%s", j->idx.note);
	if (j->log.note[0])
		warn("%s", j->log.note);
	j->from = lw_bytes(&j->log, j->start_sector);
	j->until = j->end_sector == UINT64_MAX ? UINT64_MAX :
		   lw_bytes(&j->log, j->end_sector + 1);
}

/* What was asked for is not in the log, as far as that can be read. */
static void __attribute__((noreturn))
missing(const struct job *j, const char *what)
{
	die(EXIT_FAILURE, "%s: no %s, the log has %llu entries%s%s",
	    j->log.path, what, LL(j->idx.nr), j->idx.fault[0] ? "; " : "",
	    j->idx.fault);
}

static uint64_t find_mark(struct job *j, const char *text, uint64_t from)
{
	uint64_t nr;

	if (lw_index_mark(&j->idx, &j->log, text, strlen(text), from, &nr))
		die(EXIT_FAILURE, "%s", j->idx.error);
	if (nr == LW_NONE)
		missing(j, xasprintf("mark '%s' from entry %llu on", text,
				     LL(from)));
	return nr;
}

static uint64_t find_start(struct job *j)
{
	if (j->start_mark)
		return find_mark(j, j->start_mark, 0) + 1;
	/* a log without entries has no entry 0, but can be counted */
	if (j->start_entry >= j->idx.nr &&
	    (j->start_entry || j->find || (j->target && !j->count)))
		missing(j, xasprintf("entry %llu", LL(j->start_entry)));
	return j->start_entry;
}

static const char *flags_wanted(const struct job *j)
{
	if (j->stop_flags == LW_FLUSH)
		return "flush";
	return j->stop_flags == LW_FUA ? "FUA entry" : "flush or FUA entry";
}

/* The last entry, or LW_NONE if nothing says where to stop. */
static uint64_t find_stop(struct job *j)
{
	const uint64_t start = j->start;
	uint64_t stop = LW_NONE, nr;

	/* also where another comes first: who names a mark means it */
	if (j->end_mark)
		stop = find_mark(j, j->end_mark, start);
	if (j->stop_flags) {
		nr = lw_index_flags(&j->idx, j->stop_flags, start);
		if (nr < stop)
			stop = nr;
	}
	if (j->limit && j->limit - 1 < stop - start)
		stop = start + j->limit - 1;
	if (stop < j->idx.nr)
		return stop;
	if (j->stop_flags)
		missing(j, xasprintf("%s from entry %llu on", flags_wanted(j),
				     LL(start)));
	if (j->limit)
		missing(j, xasprintf("%llu entries from entry %llu on",
				     LL(j->limit), LL(start)));
	return LW_NONE;
}

/*
 * Entries that are looked at only, from the log's first for where to start. By
 * number, they are listed as the old program did: at their header, unnamed.
 */
static void list_sought(const struct job *j, uint64_t from, uint64_t until,
			bool by_number)
{
	const uint64_t unit = j->log.sectorsize;
	char flags[LW_FLAGS_MAX];

	for (uint64_t nr = from; nr < until && j->verbose > 1; nr++) {
		const struct lw_index_entry *x = &j->idx.entry[nr];

		printf("seek entry %llu@%llu: %llu, size %llu, flags 0x%x",
		       LL(nr), LL(x->header_off / unit + !by_number),
		       LL(x->off / unit), LL(x->len / unit), x->flags);
		if (by_number)
			putchar('\n');
		else
			printf("(%s)\n", lw_flags(x->flags, flags));
	}
}

static void print_found(const struct job *j, uint64_t nr)
{
	const struct lw_index_entry *x = &j->idx.entry[nr];
	uint64_t behind = x->header_off + j->log.sectorsize;

	if (!(x->flags & LW_DISCARD))
		behind += x->len;
	printf("%llu@%llu\n", LL(nr), LL(behind / j->log.sectorsize));
}

static bool out_of_range(const struct job *j, uint64_t off, uint64_t len)
{
	return len && (off + len <= j->from || off >= j->until);
}

static void see_entry(const struct lw_entry *e, void *arg)
{
	const struct job *j = arg;
	const bool skip = out_of_range(j, e->off, e->len);
	const uint64_t unit = j->log.sectorsize;
	char flags[LW_FLAGS_MAX];

	if (j->verbose > 1 || (j->verbose && !skip))
		printf("%s %llu@%llu: sector %llu, size %llu, flags 0x%llx(%s)\n",
		       skip ? "skipping" : "replaying", LL(e->nr),
		       LL(e->header_off / unit + 1), LL(e->off / unit),
		       LL(e->len), LL(e->flags), lw_flags(e->flags, flags));
}

/*
 * The target is named to be overwritten, and holds a file system after each
 * call before: a signature is no reason to refuse it.
 */
static void refuse_target(const struct job *j)
{
	if (access(j->target, F_OK))
		die(EXIT_FAILURE, "%s: %m", j->target);
	if (blockdev_same(j->target, j->log.src.fd))
		die(EXIT_FAILURE, "%s: is the log itself", j->target);
	blockdev_refuse(j->target, true);
}

/* A file grows by what is written to it; a state, of a device, does not. */
static void grow_file(const struct job *j, uint64_t end)
{
	uint64_t size = 0;
	struct stat st;

	if (stat(j->target, &st) || !S_ISREG(st.st_mode))
		return;
	for (uint64_t nr = j->start; nr < end; nr++) {
		const struct lw_index_entry *x = &j->idx.entry[nr];
		uint64_t stop = x->off + x->len;

		if (!x->len || out_of_range(j, x->off, x->len) ||
		    (j->no_discard && x->flags & LW_DISCARD))
			continue;
		if (stop > j->until)
			stop = j->until;
		if (stop > size)
			size = stop;
	}
	if (size > (uint64_t)st.st_size && truncate(j->target, size))
		die(EXIT_FAILURE, "%s: cannot make it %llu bytes: %m",
		    j->target, LL(size));
}

static void open_target(struct job *j, uint64_t end)
{
	struct state *s = &j->state;

	refuse_target(j);
	grow_file(j, end);
	if (state_open(s, &j->log, &j->idx, j->target))
		die(EXIT_FAILURE, "%s", s->error);
	s->from = j->from;
	s->until = j->until;
	s->no_discard = j->no_discard;
	/* also for 0: it is not zeroed first, and may hold anything */
	state_stands(s, j->start);
}

static void move(struct job *j, uint64_t done)
{
	if (state_move(&j->state, done, see_entry, j))
		die(EXIT_FAILURE, "%s", j->state.error);
}

static void sync_target(struct job *j)
{
	if (state_sync(&j->state))
		die(EXIT_FAILURE, "%s", j->state.error);
}

static void check(struct job *j)
{
	char what[128];
	struct state *s = &j->state;
	uint64_t stamp;

	sync_target(j);
	stamp = state_stamp(s);
	fflush(stdout);
	if (check_run_shell(j->fsck, NULL, STDOUT_FILENO, what,
			    sizeof(what))) {
		warn("'%s': %s", j->fsck, what);
		fprintf(stderr, "Fsck errored out on entry %llu\n",
			LL(s->done - 1));
		exit(EXIT_FAILURE);
	}
	/*
	 * Scripts mount the target here, and the file system recovers its log:
	 * they have always gone on with what that leaves.
	 */
	if (state_stamp(s) != stamp && !j->warned) {
		warn("'%s' has written to %s: from entry %llu on it is not what was recorded",
		     j->fsck, j->target, LL(s->done));
		j->warned = true;
	}
	state_stands(s, s->done);	/* what was zeros may not be now */
}

/* How many entries are done at the next check, or LW_NONE behind @end. */
static uint64_t next_check(const struct job *j, uint64_t end)
{
	const uint64_t done = j->state.done;
	uint64_t n;

	if (!j->fsck)
		return LW_NONE;
	if (j->check_flags) {
		n = lw_index_flags(&j->idx, j->check_flags, done);
		return n < end ? n + 1 : LW_NONE;
	}
	n = j->check_every - (done - j->start) % j->check_every;
	return n <= end - done ? done + n : LW_NONE;
}

static void replay(struct job *j, uint64_t end)
{
	uint64_t at;

	open_target(j, end);
	while ((at = next_check(j, end)) != LW_NONE) {
		move(j, at);
		check(j);
	}
	move(j, end);
	sync_target(j);
	state_close(&j->state);
}

int main(int argc, char **argv)
{
	struct job job = { .end_sector = UINT64_MAX }, *j = &job;
	uint64_t stop = LW_NONE;

	read_options(j, argc, argv);
	open_log(j);
	/* all that is asked for must exist before anything is written */
	j->start = find_start(j);
	if (j->find || (j->target && !j->count))
		stop = find_stop(j);
	if (stop == LW_NONE && j->idx.fault[0])
		die(EXIT_FAILURE, "%s", j->idx.fault);
	list_sought(j, 0, j->start, !j->start_mark);
	if (j->find) {
		list_sought(j, j->start, stop + 1, false);
		print_found(j, stop);
	} else if (j->count) {
		printf("%llu\n", LL(j->idx.nr));
	} else if (j->target) {
		replay(j, stop == LW_NONE ? j->idx.nr : stop + 1);
	} else {
		printf("Log version=%llu, sectorsize=%u, entries=%llu\n",
		       LW_VERSION, j->log.sectorsize, LL(j->idx.nr));
	}
	close_stdout();
	lw_index_close(&j->idx);
	lw_close(&j->log);
	return EXIT_OK;
}
