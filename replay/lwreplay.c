// SPDX-License-Identifier: GPL-2.0-only
/*
 * lwreplay: make a file or a device hold what the recorded device held at a
 * point of its log, and check the states on the way.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "blockdev.h"
#include "compare.h"
#include "fsck.h"
#include "index.h"
#include "log.h"
#include "places.h"
#include "progress.h"
#include "seen.h"
#include "state.h"
#include "util.h"
#include "where.h"

#define LL(x)	((unsigned long long)(x))

enum {
	OPT_WIPE = OPT_BASE, OPT_WHERE, OPT_START_SECTOR, OPT_END_SECTOR,
	OPT_AT, OPT_FSCK, OPT_VERIFY, OPT_INDEX, OPT_SALVAGE, OPT_FORCE,
	OPT_JSON
};

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: lwreplay [OPTION]... LOG TARGET\n"
	     "\n"
	     "Make TARGET, a file or a block device, hold what the recorded device held at\n"
	     "a point of LOG, forwards or backwards from where it stands.\n"
	     "\n"
	     "  -t, --to POINT          go there (default: end)\n"
	     "  -f, --from POINT        where TARGET stands (default: what --where says)\n"
	     "  -s, --size BYTES        create TARGET, which must not exist\n"
	     "      --wipe              make TARGET all zeros first\n"
	     "      --where FILE        keep in FILE where TARGET stands\n"
	     "                          (default: TARGET.lwstate; none for a device)\n"
	     "      --start-sector N    replay sectors of the log's size from N on only,\n"
	     "      --end-sector N      and up to N\n"
	     "      --at POINT[,POINT]  stop on the way, and print a digest of each state; also\n"
	     "                          every:N, and flush, fua or mark for all of them\n"
	     "      --fsck COMMAND      run COMMAND there instead, once for equal states\n"
	     "  -k, --keep-going        also after it has found a state to be bad\n"
	     "      --verify-against IMAGE\n"
	     "                          compare TARGET with IMAGE at last\n"
	     "      --index FILE        keep the log's index there\n"
	     "      --salvage           take a damaged log up to its first fault\n"
	     "      --force             also where TARGET holds a file system or the like\n"
	     "  -v, --verbose           list the entries that are applied\n"
	     "      --json              print one JSON object\n"
	     "  -h, --help              show this help\n"
	     "\n"
	     "POINT is an entry's number, mark:TEXT, start or end.\n"
	     "\n"
	     "Exit status: 0 done; 1 a state was bad, TARGET is not like IMAGE, a log at\n"
	     "fault, or a failed write; 2 usage.");
	close_stdout();
	exit(EXIT_OK);
}

struct job {
	const char	*log_path, *target;
	const char	*to, *from, *at, *fsck, *image, *index_path;
	char		*where_path;
	uint64_t	size, start_sector, end_sector;
	bool		wipe, keep_going, salvage, force, json, created;
	int		verbose;

	struct lw_log	log;
	struct lw_index	idx;
	struct state	state;
	struct where	where;
	struct progress	progress;
	struct places	stops;
	struct seen	seen;
	uint64_t	start, end;	/* entries applied, before and after */
	uint64_t	checks, same, bad;
	json_t		*list;
};

/* A state's point is the last entry that it has applied; the start has none. */
static json_t *json_point(uint64_t done)
{
	return done ? json_integer(done - 1) : json_null();
}

/* Nothing half-written is taken for whole. */
static void __attribute__((noreturn, format(printf, 3, 4)))
give_up(struct job *j, int status, const char *fmt, ...)
{
	CLEANUP_FREE char *message = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&message, fmt, ap) < 0)
		message = NULL;
	va_end(ap);
	progress_clear(&j->progress);
	if (j->created)
		unlink(j->target);
	die(status, "%s", message ? message : "out of memory");
}

static void read_options(struct job *j, int argc, char **argv)
{
	static const struct option options[] = {
		{ "to", required_argument, NULL, 't' },
		{ "from", required_argument, NULL, 'f' },
		{ "size", required_argument, NULL, 's' },
		{ "wipe", no_argument, NULL, OPT_WIPE },
		{ "where", required_argument, NULL, OPT_WHERE },
		{ "start-sector", required_argument, NULL, OPT_START_SECTOR },
		{ "end-sector", required_argument, NULL, OPT_END_SECTOR },
		{ "at", required_argument, NULL, OPT_AT },
		{ "fsck", required_argument, NULL, OPT_FSCK },
		{ "keep-going", no_argument, NULL, 'k' },
		{ "verify-against", required_argument, NULL, OPT_VERIFY },
		{ "index", required_argument, NULL, OPT_INDEX },
		{ "salvage", no_argument, NULL, OPT_SALVAGE },
		{ "force", no_argument, NULL, OPT_FORCE },
		{ "verbose", no_argument, NULL, 'v' },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int c;

	while ((c = getopt_long(argc, argv, "t:f:s:kvh", options, NULL)) != -1) {
		switch (c) {
		case 't':
			j->to = optarg;
			break;
		case 'f':
			j->from = optarg;
			break;
		case 's':
			j->size = arg_size("--size", optarg, 1, INT64_MAX);
			break;
		case OPT_WIPE:
			j->wipe = true;
			break;
		case OPT_WHERE:
			j->where_path = xstrdup(optarg);
			break;
		case OPT_START_SECTOR:
			j->start_sector = arg_u64("--start-sector", optarg, 0,
						  UINT64_MAX);
			break;
		case OPT_END_SECTOR:
			j->end_sector = arg_u64("--end-sector", optarg, 0,
						UINT64_MAX);
			break;
		case OPT_AT:
			j->at = optarg;
			break;
		case OPT_FSCK:
			j->fsck = optarg;
			break;
		case 'k':
			j->keep_going = true;
			break;
		case OPT_VERIFY:
			j->image = optarg;
			break;
		case OPT_INDEX:
			j->index_path = optarg;
			break;
		case OPT_SALVAGE:
			j->salvage = true;
			break;
		case OPT_FORCE:
			j->force = true;
			break;
		case 'v':
			j->verbose++;
			break;
		case OPT_JSON:
			j->json = true;
			break;
		case 'h':
			usage();
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind + 2 != argc)
		die(EXIT_USAGE,
		    "expected a log and a target; see lwreplay --help");
	j->log_path = argv[optind];
	j->target = argv[optind + 1];
	if (!!j->size + j->wipe + !!j->from > 1)
		die(EXIT_USAGE,
		    "one of --size, --wipe and --from; see lwreplay --help");
	if (j->fsck && !j->at)
		die(EXIT_USAGE, "--fsck needs --at; see lwreplay --help");
	if (j->start_sector > j->end_sector)
		die(EXIT_USAGE, "--start-sector is behind --end-sector");
	if (j->verbose && j->json)
		die(EXIT_USAGE, "--verbose and --json: one of them");
}

static uint64_t place(struct job *j, const char *opt, const char *spec)
{
	uint64_t done;

	if (places_one(&done, spec, &j->idx, &j->log))
		die(j->idx.fault[0] ? EXIT_LOSS : EXIT_USAGE, "%s: %s", opt,
		    j->idx.error);
	return done;
}

/* All that is asked for must exist before anything is written. */
static void open_log(struct job *j)
{
	if (lw_open(&j->log, j->log_path, j->salvage ? LW_SALVAGE : 0))
		die(EXIT_USAGE, "%s", j->log.error);
	if (lw_index_open(&j->idx, &j->log, j->index_path, LW_INDEX_ALL))
		die(EXIT_LOSS, "%s", j->idx.error);
	if (j->idx.note[0])
		warn("%s", j->idx.note);
	if (j->log.note[0])
		warn("%s", j->log.note);
	if (j->index_path && !j->idx.map && lw_index_keep(&j->idx, &j->log,
							  j->index_path))
		die(EXIT_LOSS, "%s", j->idx.error);
	j->end = place(j, "--to", j->to ? j->to : "end");
	if (j->at && places_list(&j->stops, j->at, &j->idx, &j->log))
		die(EXIT_USAGE, "--at: %s", j->idx.error);
}

static void create_target(struct job *j)
{
	int fd = open(j->target, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);

	if (fd < 0)	/* one that exists may be somebody's */
		die(EXIT_USAGE, "%s: cannot create: %m", j->target);
	j->created = true;
	if (ftruncate(fd, j->size))
		give_up(j, EXIT_LOSS, "%s: cannot make it %llu bytes: %m",
			j->target, LL(j->size));
	close(fd);
}

static void save_where(struct job *j, uint64_t at, uint64_t to)
{
	char error[512];

	if (!j->where_path)
		return;
	j->where.at = at;
	j->where.to = to;
	if (where_save(&j->where, j->where_path, error, sizeof(error)))
		give_up(j, EXIT_LOSS, "%s", error);
}

/* Where a former run left the target: 0 if that is not known, else 1. */
static int load_where(struct job *j)
{
	const struct where now = j->where;
	char error[512];
	int ret;

	if (!j->where_path)
		return 0;
	ret = where_load(&j->where, j->where_path, error, sizeof(error));
	if (ret < 0)
		die(EXIT_USAGE, "%s; --from or --wipe starts anew", error);
	if (!ret)
		return 0;
	if (j->where.log != now.log || j->where.from != now.from ||
	    j->where.until != now.until || j->where.at > j->idx.nr ||
	    j->where.to > j->idx.nr)
		die(EXIT_USAGE,
		    "%s: of another log, or of other sectors; --from or --wipe starts anew",
		    j->where_path);
	return 1;
}

static void open_target(struct job *j)
{
	struct state *s = &j->state;
	bool known = false;
	struct stat st;

	if (blockdev_same(j->target, j->log.src.fd))
		die(EXIT_USAGE, "%s: is the log itself", j->target);
	if (j->size)
		create_target(j);
	else if (stat(j->target, &st))
		die(EXIT_USAGE, "%s: %m; --size creates it", j->target);
	if (!j->where_path && (j->size || S_ISREG(st.st_mode)))
		j->where_path = xasprintf("%s.lwstate", j->target);

	j->where.from = lw_bytes(&j->log, j->start_sector);
	j->where.until = j->end_sector == UINT64_MAX ? UINT64_MAX :
			 lw_bytes(&j->log, j->end_sector + 1);
	if (lw_index_identity(&j->idx, &j->log, &j->where.log))
		give_up(j, EXIT_LOSS, "%s", j->idx.error);
	if (!j->size && !j->wipe && !j->from) {
		known = load_where(j);
		if (!known)
			die(EXIT_USAGE,
			    "%s: where it stands is not known: --from POINT, --from start if it is all zeros, or --wipe",
			    j->target);
	}
	if (!j->size)
		blockdev_refuse(j->target, known || j->force);
	if (state_open(s, &j->log, &j->idx, j->target))
		give_up(j, EXIT_USAGE, "%s", s->error);
	if (flock(s->fd, LOCK_EX | LOCK_NB))
		give_up(j, EXIT_USAGE, "%s: another run is writing to it",
			j->target);
	s->from = j->where.from;
	s->until = j->where.until;
	if (j->from) {
		j->start = place(j, "--from", j->from);
		if (j->start)
			state_stands(s, j->start);
	} else if (known) {
		j->start = j->where.at;
		if (j->start || j->where.to)
			state_stands(s, j->start > j->where.to ? j->start :
				     j->where.to);
	}
}

static int move(struct job *j, uint64_t done);

/*
 * A run that was killed on its way has left parts of both states. All of them
 * lie in what the entries between the two write, so going back from the later
 * one sets all that right.
 */
static void start_target(struct job *j)
{
	struct state *s = &j->state;
	uint64_t low = j->where.at < j->where.to ? j->where.at : j->where.to;
	char at[32], to[32];

	if (j->wipe) {
		save_where(j, 0, j->idx.nr);
		if (state_wipe(s))
			give_up(j, EXIT_LOSS, "%s", s->error);
	} else if (!j->size && !j->from && j->where.at != j->where.to) {
		warn("%s: a run from %s to %s was cut off: going back to the earlier one first",
		     j->target, places_name(j->where.at, at),
		     places_name(j->where.to, to));
		if (move(j, low))
			give_up(j, EXIT_LOSS, "%s", s->error);
		j->start = low;
	}
	save_where(j, j->start, j->end);
}

static void see_entry(const struct lw_entry *e, void *arg)
{
	struct job *j = arg;
	char flags[LW_FLAGS_MAX];

	progress_tick(&j->progress, e->nr);
	if (j->verbose)
		printf("%llu: byte %llu, %llu bytes, %s\n",
		       LL(e->nr), LL(e->off),
		       LL(e->len), lw_flags(e->flags, flags));
}

static int move(struct job *j, uint64_t done)
{
	return state_move(&j->state, done, see_entry, j);
}

static void note_stop(struct job *j, uint64_t done, const char *what,
		      const struct seen_state *before)
{
	const bool bad = before ? before->bad : what[0];
	const struct digest *d = &j->state.digest;
	char point[32], same[32];
	json_t *o;

	progress_clear(&j->progress);
	j->checks += !before;
	j->same += !!before;
	j->bad += bad;
	if (j->json) {
		o = json_pack("{s:o, s:o}", "point", json_point(done),
			      "digest", json_sprintf("%016" PRIx64 "%016" PRIx64,
						     d->high, d->low));
		if (before)
			json_object_set_new(o, "same_as",
					    json_point(before->done - 1));
		if (j->fsck)
			json_object_set_new(o, "good", json_boolean(!bad));
		if (what[0])
			json_object_set_new(o, "what", json_string(what));
		json_array_append_new(j->list, o);
		return;
	}
	places_name(done, point);
	if (!j->fsck)
		printf("%s: %016" PRIx64 "%016" PRIx64 "\n", point, d->high,
		       d->low);
	else if (before && bad)
		printf("%s: bad, the same state as at %s\n", point,
		       places_name(before->done - 1, same));
	else if (bad)
		printf("%s: bad, %s\n", point, what);
}

static void run_fsck(struct job *j, char *what, size_t size)
{
	fflush(stdout);
	if (fsck_run(&j->state, j->fsck, what, size) < 0)
		give_up(j, EXIT_LOSS, "%s", j->state.error);
}

/* Returns true if all is well so far. */
static bool stop_at(struct job *j, uint64_t done)
{
	const struct seen_state *known;
	char what[128] = "";
	bool bad;

	if (move(j, done))
		give_up(j, EXIT_LOSS, "%s", j->state.error);
	known = seen_find(&j->seen, &j->state.digest);
	if (!known && j->fsck)
		run_fsck(j, what, sizeof(what));
	bad = known ? known->bad : what[0];
	note_stop(j, done, what, known);
	if (!known)
		seen_add(&j->seen, &j->state.digest, done, bad);
	return !bad;
}

/* The digest is of the whole state: it starts where all is zeros. */
static void start_digest(struct job *j)
{
	struct state *s = &j->state;

	for (uint64_t nr = 0; nr < s->done; nr++)
		if (digest_add(&s->digest, &j->idx, &j->log, nr, s->from,
			       s->until))
			give_up(j, EXIT_LOSS, "%s", j->idx.error);
	s->with_digest = true;
}

/* Those on the way, in its order */
static void visit_stops(struct job *j)
{
	const uint64_t start = j->start, end = j->end;
	const size_t nr = j->stops.nr;

	if (!nr)
		return;
	start_digest(j);
	for (size_t i = 0; i < nr; i++) {
		uint64_t done = j->stops.done[start <= end ? i : nr - 1 - i];

		if (done < (start < end ? start : end) ||
		    done > (start < end ? end : start))
			continue;
		if (!stop_at(j, done) && !j->keep_going)
			break;
	}
}

static void print_json(struct job *j, double seconds, const struct compare *c)
{
	json_t *o = json_pack("{s:s, s:s, s:I, s:o, s:o, s:I, s:I, s:f}",
			      "log", j->log.path, "target", j->target,
			      "entries", (json_int_t)j->idx.nr,
			      "from", json_point(j->start),
			      "to", json_point(j->state.done),
			      "written", (json_int_t)j->state.written,
			      "zeroed", (json_int_t)j->state.zeroed,
			      "seconds", seconds);

	if (j->log.note[0])
		json_object_set_new(o, "note", json_string(j->log.note));
	if (j->at)
		json_object_set(o, "stops", j->list);
	if (j->fsck)
		json_object_update_new(o, json_pack(
			"{s:I, s:I, s:I}", "checked", (json_int_t)j->checks,
			"same", (json_int_t)j->same,
			"bad", (json_int_t)j->bad));
	if (j->image)
		json_object_update_new(o, compare_json(c));
	if (!o || json_dumpf(o, stdout, JSON_INDENT(1)))
		die(EXIT_CANNOT, "cannot print the result as JSON");
	putchar('\n');
	json_decref(o);
}

int main(int argc, char **argv)
{
	struct job job = { .end_sector = UINT64_MAX }, *j = &job;
	struct compare c = {};
	double start = now();
	bool stopped;

	read_options(j, argc, argv);
	j->list = json_array();
	open_log(j);
	open_target(j);
	progress_start(&j->progress, "entry", j->end);
	start_target(j);
	visit_stops(j);
	stopped = j->bad && !j->keep_going;
	if (stopped)	/* where it is bad, for people to look at */
		j->end = j->state.done;
	if (move(j, j->end) || state_sync(&j->state))
		give_up(j, EXIT_LOSS, "%s", j->state.error);
	progress_clear(&j->progress);
	save_where(j, j->end, j->end);
	if (j->image && compare_run(&c, &j->state, j->image))
		die(EXIT_LOSS, "%s", c.error);
	if (j->json)
		print_json(j, now() - start, &c);
	else if (j->image)
		compare_print(&c, &j->state, j->image);
	if (!j->json && j->fsck)
		printf("%llu states checked, %llu the same as one before, %llu bad\n",
		       LL(j->checks),
		       LL(j->same),
		       LL(j->bad));
	close_stdout();
	json_decref(j->list);
	places_free(&j->stops);
	seen_free(&j->seen);
	state_close(&j->state);
	lw_index_close(&j->idx);
	lw_close(&j->log);
	free(j->where_path);
	return j->bad || c.differ ? EXIT_LOSS : EXIT_OK;
}
