// SPDX-License-Identifier: GPL-2.0-only
/*
 * lwbisect: find the states of a log that a command calls bad, with few runs of
 * the command.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bisect-log.h"
#include "blockdev.h"
#include "fsck.h"
#include "index.h"
#include "log.h"
#include "places.h"
#include "progress.h"
#include "state.h"
#include "util.h"
#include "where.h"

#define LL(x)	((unsigned long long)(x))

enum {
	OPT_WIPE = OPT_BASE, OPT_FROM, OPT_TO, OPT_AT, OPT_SUSPECTS,
	OPT_BUDGET, OPT_EXHAUSTIVE, OPT_INDEX, OPT_FORCE, OPT_JSON
};

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: lwbisect --check COMMAND --size BYTES [OPTION]... LOG TARGET\n"
	     "       lwbisect --check COMMAND --wipe [OPTION]... LOG TARGET\n"
	     "\n"
	     "Find the states of LOG that COMMAND calls bad: build some of them on TARGET, run\n"
	     "COMMAND on each, and go on where good ones and bad ones meet.\n"
	     "\n"
	     "  -c, --check COMMAND     exit status 0: good, 1 to 124: bad, 125: cannot tell\n"
	     "  -s, --size BYTES        create TARGET, and remove it at the end\n"
	     "      --wipe              make TARGET, a file or a device, all zeros first\n"
	     "  -n, --budget N          run COMMAND at most N times (default 60)\n"
	     "      --exhaustive        check every state\n"
	     "      --from POINT        look at the states from there on only,\n"
	     "      --to POINT          and up to there\n"
	     "      --at POINT[,POINT]  look at these only; also every:N, and flush, fua or\n"
	     "                          mark for all of them\n"
	     "      --suspects POINT[,POINT]\n"
	     "                          where it may go wrong or heal: looked at first\n"
	     "      --index FILE        keep the log's index there\n"
	     "      --force             also where TARGET holds a file system or the like\n"
	     "      --json              print one JSON object\n"
	     "  -h, --help              show this help\n"
	     "\n"
	     "POINT is an entry's number, mark:TEXT, start or end.\n"
	     "\n"
	     "Exit status: 0 no bad state was seen; 1 one was; 2 usage, or no such log;\n"
	     "77 the search could not be finished (says why).");
	close_stdout();
	exit(EXIT_OK);
}

struct job {
	const char	*log_path, *target, *command;
	const char	*from, *to, *at, *suspects, *index_path;
	uint64_t	size;
	bool		wipe, force, json, created;

	struct lw_log	log;
	struct lw_index	idx;
	struct state	state;
	struct where	where;
	char		*where_path;
	struct bisect_log search;
	struct progress	progress;
};

static void read_options(struct job *j, int argc, char **argv)
{
	static const struct option options[] = {
		{ "check", required_argument, NULL, 'c' },
		{ "size", required_argument, NULL, 's' },
		{ "wipe", no_argument, NULL, OPT_WIPE },
		{ "budget", required_argument, NULL, 'n' },
		{ "exhaustive", no_argument, NULL, OPT_EXHAUSTIVE },
		{ "from", required_argument, NULL, OPT_FROM },
		{ "to", required_argument, NULL, OPT_TO },
		{ "at", required_argument, NULL, OPT_AT },
		{ "suspects", required_argument, NULL, OPT_SUSPECTS },
		{ "index", required_argument, NULL, OPT_INDEX },
		{ "force", no_argument, NULL, OPT_FORCE },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int c;

	j->search.b.budget = BISECT_BUDGET;
	while ((c = getopt_long(argc, argv, "c:s:n:h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			j->command = optarg;
			break;
		case 's':
			j->size = arg_size("--size", optarg, 1, INT64_MAX);
			break;
		case OPT_WIPE:
			j->wipe = true;
			break;
		case 'n':
			j->search.b.budget = arg_u64("--budget", optarg, 1,
						     UINT64_MAX);
			break;
		case OPT_EXHAUSTIVE:
			j->search.b.budget = UINT64_MAX;
			break;
		case OPT_FROM:
			j->from = optarg;
			break;
		case OPT_TO:
			j->to = optarg;
			break;
		case OPT_AT:
			j->at = optarg;
			break;
		case OPT_SUSPECTS:
			j->suspects = optarg;
			break;
		case OPT_INDEX:
			j->index_path = optarg;
			break;
		case OPT_FORCE:
			j->force = true;
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
		    "expected a log and a target; see lwbisect --help");
	j->log_path = argv[optind];
	j->target = argv[optind + 1];
	if (!j->command)
		die(EXIT_USAGE, "expected --check; see lwbisect --help");
	if (!!j->size + j->wipe != 1)
		die(EXIT_USAGE,
		    "expected --size or --wipe, one of them; see lwbisect --help");
}

/* What TARGET holds then can be told from its .lwstate, as after a kill. */
static void __attribute__((noreturn, format(printf, 2, 3)))
give_up(struct job *j, const char *fmt, ...)
{
	CLEANUP_FREE char *message = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&message, fmt, ap) < 0)
		message = NULL;
	va_end(ap);
	progress_clear(&j->progress);
	if (j->created) {
		unlink(j->target);
		unlink(j->where_path);
	}
	die(EXIT_CANNOT, "%s", message ? message : "out of memory");
}

static void open_log(struct job *j)
{
	if (lw_open(&j->log, j->log_path, 0))
		die(EXIT_USAGE, "%s", j->log.error);
	if (lw_index_open(&j->idx, &j->log, j->index_path, LW_INDEX_ALL))
		die(EXIT_CANNOT, "%s", j->idx.error);
	if (j->idx.note[0])
		warn("%s", j->idx.note);
	if (j->log.note[0])
		warn("%s", j->log.note);
	if (j->index_path && !j->idx.map &&
	    lw_index_keep(&j->idx, &j->log, j->index_path))
		die(EXIT_CANNOT, "%s", j->idx.error);
	if (!j->idx.nr)
		die(EXIT_USAGE, "%s: no entries%s%s", j->log.path,
		    j->idx.fault[0] ? "; " : "", j->idx.fault);
}

/* An entry: the start is no state of interest, so it means the first one. */
static uint64_t entry(struct job *j, const char *opt, const char *spec)
{
	uint64_t done;

	if (places_one(&done, spec, &j->idx, &j->log))
		die(EXIT_USAGE, "%s: %s", opt, j->idx.error);
	return done ? done - 1 : 0;
}

static void list(struct job *j, struct places *p, const char *opt,
		 const char *spec)
{
	if (places_list(p, spec, &j->idx, &j->log))
		die(EXIT_USAGE, "%s: %s", opt, j->idx.error);
	for (size_t i = 0; i < p->nr; i++)
		p->done[i] -= !!p->done[i];
}

static void choose_points(struct job *j)
{
	uint64_t from = entry(j, "--from", j->from ? j->from : "start");
	uint64_t to = entry(j, "--to", j->to ? j->to : "end");
	struct places p = {};
	size_t n = 0;

	if (from > to)
		die(EXIT_USAGE, "--from: entry %llu is behind entry %llu of --to",
		    LL(from), LL(to));
	if (!j->at) {
		bisect_log_states(&j->search, &j->idx, from, to, 0);
		return;
	}
	list(j, &p, "--at", j->at);
	for (size_t i = 0; i < p.nr; i++)
		if (p.done[i] >= from && p.done[i] <= to &&
		    (!n || p.done[n - 1] != p.done[i]))
			p.done[n++] = p.done[i];
	if (!n)
		die(EXIT_USAGE, "--at: none of the entries %llu to %llu is '%s'",
		    LL(from), LL(to), j->at);
	bisect_log_chosen(&j->search, p.done, n);
	places_free(&p);
}

static void choose_suspects(struct job *j)
{
	struct places p;

	if (!j->suspects)
		return;
	list(j, &p, "--suspects", j->suspects);
	for (size_t i = 0; i < p.nr; i++)
		bisect_log_suspect(&j->search, p.done[i]);
	places_free(&p);
}

static void save_where(struct job *j, uint64_t at, uint64_t to)
{
	char error[512];

	if (!j->where_path)
		return;
	j->where.at = at;
	j->where.to = to;
	if (where_save(&j->where, j->where_path, error, sizeof(error)))
		give_up(j, "%s", error);
}

/*
 * Has a run that was killed left it, on its way through this very log? One that
 * lives holds the lock.
 */
static bool is_left_over(struct job *j)
{
	CLEANUP_CLOSE int fd = open(j->target, O_RDONLY | O_CLOEXEC);
	struct where w;
	char error[512];
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       !flock(fd, LOCK_EX | LOCK_NB) &&
	       where_load(&w, j->where_path, error, sizeof(error)) == 1 &&
	       w.log == j->where.log && w.at != w.to;
}

static void create_target(struct job *j)
{
	const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
	int fd = open(j->target, flags, 0666);

	if (fd < 0 && errno == EEXIST) {
		if (!is_left_over(j))	/* it may be somebody's */
			die(EXIT_USAGE, "%s: exists already", j->target);
		warn("%s: a run that was cut off has left it: it is made anew",
		     j->target);
		unlink(j->target);
		fd = open(j->target, flags, 0666);
	}
	if (fd < 0)
		die(EXIT_USAGE, "%s: cannot create: %m", j->target);
	j->created = true;
	if (ftruncate(fd, j->size))
		give_up(j, "%s: cannot make it %llu bytes: %m", j->target,
			LL(j->size));
	close(fd);
}

/* The state will go to and fro between the start and the last point. */
static void open_target(struct job *j)
{
	struct state *s = &j->state;
	struct stat st;

	if (blockdev_same(j->target, j->log.src.fd))
		die(EXIT_USAGE, "%s: is the log itself", j->target);
	if (!j->size && stat(j->target, &st))
		die(EXIT_USAGE, "%s: %m; --size creates it", j->target);
	if (j->size || S_ISREG(st.st_mode))
		j->where_path = xasprintf("%s.lwstate", j->target);
	j->where.until = UINT64_MAX;
	if (lw_index_identity(&j->idx, &j->log, &j->where.log))
		die(EXIT_CANNOT, "%s", j->idx.error);
	if (j->size)
		create_target(j);
	else
		blockdev_refuse(j->target, j->force);
	if (state_open(s, &j->log, &j->idx, j->target))
		give_up(j, "%s", s->error);
	if (flock(s->fd, LOCK_EX | LOCK_NB))
		die(EXIT_CANNOT, "%s: another run is writing to it", j->target);
	save_where(j, 0, j->idx.nr);
	if (j->wipe && state_wipe(s))
		give_up(j, "%s", s->error);
}

static void go_to(struct job *j, uint64_t point)
{
	if (state_advance(&j->state, j->search.entry[point], NULL, NULL))
		give_up(j, "%s", j->state.error);
}

static int check_point(uint64_t point, void *arg)
{
	struct job *j = arg;
	char what[128];
	int verdict;

	progress_tick(&j->progress, j->search.b.nr_samples);
	go_to(j, point);
	verdict = fsck_run(&j->state, j->command, what, sizeof(what));
	if (verdict < 0)
		give_up(j, "%s", j->state.error);
	if (verdict == CHECK_BROKEN)
		give_up(j, "entry %llu: '%s' gives no verdict: %s",
			LL(j->search.entry[point]), j->command, what);
	return verdict;
}

/* @s for a shell */
static char *quote(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:=@";
	char *q = xcalloc(4 * strlen(s) + 3, 1), *p = q;

	if (*s && !s[strspn(s, plain)])
		return strcpy(q, s);
	*p++ = '\'';
	for (; *s; s++)
		p = *s == '\'' ? stpcpy(p, "'\\''") : (*p = *s, p + 1);
	*p = '\'';
	return q;
}

/* lwreplay stops at the state, and asks the command again. */
static void set_commands(struct job *j, char **command, char **end)
{
	CLEANUP_FREE char *check = quote(j->command);
	CLEANUP_FREE char *log = quote(j->log_path);
	CLEANUP_FREE char *target = quote(j->target);

	*command = j->size ? xasprintf("lwreplay --size %llu --fsck %s --at ",
				       LL(j->size), check) :
		   xasprintf("lwreplay --wipe%s --fsck %s --at ",
			     j->force ? " --force" : "", check);
	*end = xasprintf(" %s %s", log, target);
	j->search.command = *command;
	j->search.command_end = *end;
}

/* Where it is bad, for people to look at */
static void leave_target(struct job *j)
{
	const struct bisect *b = &j->search.b;
	size_t i = bisect_first_bad(b);

	if (j->created) {
		unlink(j->target);
		unlink(j->where_path);
		return;
	}
	if (i < b->nr_stretches)
		go_to(j, b->stretch[i].first);
	save_where(j, j->state.done, j->state.done);
}

int main(int argc, char **argv)
{
	struct job job = {}, *j = &job;
	CLEANUP_FREE char *command = NULL, *end = NULL;
	struct bisect *b = &j->search.b;
	bool bad;

	read_options(j, argc, argv);
	open_log(j);
	choose_points(j);
	choose_suspects(j);
	set_commands(j, &command, &end);
	open_target(j);
	b->check = check_point;
	b->arg = j;
	j->search.what = j->command;
	j->search.path = j->log.path;
	progress_start(&j->progress, "check", b->budget < b->nr ? b->budget :
							b->nr);
	bisect_run(b);
	leave_target(j);
	progress_clear(&j->progress);
	if (j->json)
		bisect_log_print_json(&j->search, stdout);
	else
		bisect_log_print(&j->search, stdout);
	bad = bisect_first_bad(b) < b->nr_stretches;
	close_stdout();
	bisect_log_free(&j->search);
	state_close(&j->state);
	lw_index_close(&j->idx);
	lw_close(&j->log);
	free(j->where_path);
	return bad ? EXIT_LOSS : EXIT_OK;
}
