// SPDX-License-Identifier: GPL-2.0-only
/*
 * supervise: run a command so that nothing of it outlives either the command
 * or the one who started this: pinned to a core and within a time limit, if
 * so told.
 *
 * A guest is several processes, some of which their kernel cannot reach once
 * it was killed. This process is the subreaper of them all, and kills them
 * when the command has ended, when the time is over, or when its own parent
 * dies, however that happens.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../replay/util.h"

enum { EXIT_TIMEOUT = 124, EXIT_NO_COMMAND = 127 };

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: supervise [OPTION]... COMMAND [ARG]...\n"
	     "\n"
	     "Run COMMAND, and leave no process of it behind.\n"
	     "\n"
	     "  -c, --cpu N        pin it to the Nth core that this process may use,\n"
	     "                     counted from 0 and around\n"
	     "  -n, --cpus COUNT   to so many cores, from that one on (default 1)\n"
	     "  -g, --own-group    in a process group of its own\n"
	     "  -t, --timeout SEC  kill it after so many seconds\n"
	     "  -h, --help         show this help\n"
	     "\n"
	     "Exit status: COMMAND's, 128 + N if signal N killed it, 124 after a timeout.");
	close_stdout();
	exit(EXIT_OK);
}

/* To count cores from the nth on, and around: or to all, if there are no more. */
static void pin(uint64_t n, uint64_t count)
{
	cpu_set_t may, want;
	uint64_t i = 0, nr;

	if (sched_getaffinity(0, sizeof(may), &may))
		die(EXIT_CANNOT, "sched_getaffinity: %m");
	nr = CPU_COUNT(&may);
	CPU_ZERO(&want);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &may))
			continue;
		if ((i++ + nr - n % nr) % nr < count)
			CPU_SET(cpu, &want);
	}
	if (sched_setaffinity(0, sizeof(want), &want))
		die(EXIT_CANNOT, "sched_setaffinity: %m");
}

/* Whether process pid is a child of this one */
static bool is_child(const char *pid)
{
	CLEANUP_FREE char *path = xasprintf("/proc/%s/stat", pid);
	FILE *f = fopen(path, "r");
	char line[256], *p;
	int parent = 0;

	if (!f)		/* it is gone, or was none */
		return false;
	/* its name, in brackets, may hold anything */
	if (fgets(line, sizeof(line), f) && (p = strrchr(line, ')')) &&
	    sscanf(p, ") %*c %d", &parent) != 1)
		parent = 0;
	fclose(f);
	return parent == getpid();
}

/* Where the kernel keeps no list of them: see PROC_CHILDREN */
static void kill_children_by_search(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	if (!dir)
		die(EXIT_CANNOT, "/proc: %m");
	while ((d = readdir(dir)))
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' &&
		    is_child(d->d_name))
			kill(atoi(d->d_name), SIGKILL);
	closedir(dir);
}

static void kill_children(void)
{
	CLEANUP_FREE char *path = xasprintf("/proc/self/task/%d/children",
					    getpid());
	FILE *f = fopen(path, "r");
	int pid;

	if (!f && errno == ENOENT) {
		kill_children_by_search();
		return;
	}
	if (!f)
		die(EXIT_CANNOT, "%s: %m", path);
	while (fscanf(f, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	fclose(f);
}

/*
 * Kill all that is left. Each child that dies hands its own children to this
 * process, so repeat until there are none.
 */
static void kill_descendants(void)
{
	for (;;) {
		kill_children();
		/* __WALL: a guest's I/O threads are clones without SIGCHLD */
		while (waitpid(-1, NULL, __WALL) < 0) {
			if (errno == ECHILD)
				return;
			if (errno != EINTR)
				die(EXIT_CANNOT, "wait: %m");
		}
	}
}

static int status_of(int status)
{
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

/* Returns the exit status for this process. */
static int wait_for(pid_t child, const sigset_t *set, uint64_t timeout)
{
	double deadline = timeout ? now() + timeout : 0;

	for (;;) {
		struct timespec ts = { .tv_sec = 3600 };
		int status, sig;
		pid_t pid;

		while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
			if (pid == child)
				return status_of(status);
		if (deadline) {
			double left = deadline - now();

			if (left <= 0)
				return EXIT_TIMEOUT;
			ts.tv_sec = left;
			ts.tv_nsec = (left - ts.tv_sec) * 1e9;
		}
		sig = sigtimedwait(set, NULL, &ts);
		if (sig > 0 && sig != SIGCHLD)
			return 128 + sig;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "cpu", required_argument, NULL, 'c' },
		{ "cpus", required_argument, NULL, 'n' },
		{ "own-group", no_argument, NULL, 'g' },
		{ "timeout", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	static const int signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	uint64_t cpu = UINT64_MAX, cpus = 1, timeout = 0;
	pid_t child, parent = getppid();
	bool own_group = false;
	sigset_t set, old;
	int c, ret;

	while ((c = getopt_long(argc, argv, "+c:gn:t:h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			cpu = arg_u64("--cpu", optarg, 0, INT32_MAX);
			break;
		case 'g':
			own_group = true;
			break;
		case 'n':
			cpus = arg_u64("--cpus", optarg, 1, INT32_MAX);
			break;
		case 't':
			timeout = arg_u64("--timeout", optarg, 1, INT32_MAX);
			break;
		case 'h':
			usage();
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind == argc)
		die(EXIT_USAGE, "expected a command; see supervise --help");

	/* ignoring it is inherited, and children that end would go unseen */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) ||
	    prctl(PR_SET_PDEATHSIG, SIGTERM))
		die(EXIT_CANNOT, "prctl: %m");
	if (getppid() != parent)	/* it died before that took effect */
		exit(EXIT_CANNOT);
	if (own_group)
		setpgid(0, 0);
	if (cpu != UINT64_MAX)
		pin(cpu, cpus);

	child = fork();
	if (child < 0)
		die(EXIT_CANNOT, "cannot fork: %m");
	if (child == 0) {
		/* for the case that this process itself is killed */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_SETMASK, &old, NULL);
		execvp(argv[optind], argv + optind);
		warn("cannot run %s: %m", argv[optind]);
		_exit(EXIT_NO_COMMAND);
	}
	ret = wait_for(child, &set, timeout);
	kill_descendants();
	return ret;
}
