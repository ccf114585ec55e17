// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/check.c: only exit status 0 is good, all else is told as what
 * it was, and a command has the input, output and environment that it should.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../replay/check.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

/* The last command's */
static char what[128];
static int exit_status;
static char out[256], err[256];

static int new_file(const char *name, mode_t mode, const char *content)
{
	CLEANUP_FREE char *path = xasprintf("%s/%s", scratch(), name);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0 || pwrite_all(fd, content, strlen(content), 0))
		die(EXIT_CANNOT, "%s: %m", path);
	return fd;
}

/* Let @fd be @file, and return what it was. */
static int redirect(int fd, int file)
{
	int old = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	if (old < 0 || dup2(file, fd) < 0)
		die(EXIT_CANNOT, "cannot redirect %d: %m", fd);
	return old;
}

/* Undo that, and read what has come. */
static void restore(int fd, int old, int file, char *buf, size_t size)
{
	ssize_t n;

	dup2(old, fd);
	close(old);
	n = pread(file, buf, size - 1, 0);
	buf[n < 0 ? 0 : n] = '\0';
	close(file);
}

/* One of @argv and @command; our own input holds a line. */
static enum check_verdict run(char *const argv[], const char *command,
			      char *const env[])
{
	int in_file = new_file("in", 0600, "a line\n");
	int out_file = new_file("out", 0600, "");
	int err_file = new_file("err", 0600, "");
	char read_back[16];
	enum check_verdict verdict;
	int old_in, old_out, old_err;

	fflush(stdout);
	old_in = redirect(STDIN_FILENO, in_file);
	old_out = redirect(STDOUT_FILENO, out_file);
	old_err = redirect(STDERR_FILENO, err_file);
	strcpy(what, "?");
	exit_status = -2;
	if (argv)
		verdict = check_run_argv(argv, env, STDERR_FILENO, what, sizeof(what),
					 &exit_status);
	else
		verdict = check_run_shell(command, env, STDERR_FILENO, what, sizeof(what));
	restore(STDERR_FILENO, old_err, err_file, err, sizeof(err));
	restore(STDOUT_FILENO, old_out, out_file, out, sizeof(out));
	restore(STDIN_FILENO, old_in, in_file, read_back, sizeof(read_back));
	return verdict;
}

/* @want is what to be told, "" of a good one. */
static void shell(const char *command, const char *want)
{
	enum check_verdict verdict = run(NULL, command, NULL);

	ok(verdict == (*want ? CHECK_BAD : CHECK_GOOD), "sh: %s", command);
	ok_str(what, want, "is told so");
}

/* The same without the shell; but sh is a program like others. */
static void program(const char *name, const char *command, const char *want,
		    int status)
{
	char *argv[] = { (char *)name, "-c", (char *)command, NULL };
	enum check_verdict verdict = run(argv, NULL, NULL);

	ok(verdict == (*want ? CHECK_BAD : CHECK_GOOD), "%s -c %s", name,
	   command);
	ok_str(what, want, "is told so");
	ok_int(exit_status, status, "with the exit status");
}

static void statuses(void)
{
	shell("true", "");
	shell("exit 1", "exit status 1");
	shell("exit 4", "exit status 4");
	shell("exit 128", "exit status 128");
	shell("exit 255", "exit status 255");
	program("sh", "exit 0", "", 0);
	program("sh", "exit 1", "exit status 1", 1);
	program("sh", "exit 255", "exit status 255", 255);
	/* of a program they may mean anything */
	program("sh", "exit 126", "exit status 126", 126);
	program("sh", "exit 127", "exit status 127", 127);
}

static void signals(void)
{
	shell("kill -KILL $$", "killed by SIGKILL");
	shell("sh -c 'kill -KILL $$'; exit $?",
	      "exit status 137 (128 + SIGKILL)");
	shell("sh -c 'kill -SEGV $$'; exit $?",
	      "exit status 139 (128 + SIGSEGV)");
	shell("sh -c 'kill -TERM $$'; exit $?",
	      "exit status 143 (128 + SIGTERM)");
	program("sh", "kill -KILL $$", "killed by SIGKILL", -1);
	program("sh", "kill -SEGV $$", "killed by SIGSEGV", -1);
	program("sh", "kill -TERM $$", "killed by SIGTERM", -1);
	program("sh", "kill -HUP $$", "killed by SIGHUP", -1);
	program("sh", "kill -40 $$", "killed by signal 40", -1);
	program("sh", "exit 129", "exit status 129 (128 + SIGHUP)", 129);
}

/* valgrind spawns by a fork, and the reason does not come back from that. */
static bool in_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

static void not_started(void)
{
	CLEANUP_FREE char *none = xasprintf("%s/none", scratch());
	CLEANUP_FREE char *data = xasprintf("%s/data", scratch());
	CLEANUP_FREE char *text = xasprintf("%s/text", scratch());

	close(new_file("data", 0644, ""));
	close(new_file("text", 0755, "not a program\n"));
	if (!in_valgrind()) {
		program(none, "",
			"cannot be started: No such file or directory", -1);
		program("ackproof-none", "",
			"cannot be started: No such file or directory", -1);
		program(data, "", "cannot be started: Permission denied", -1);
		program(text, "", "cannot be started: Exec format error", -1);
	}
	shell(none, "exit status 127: the shell cannot find the command");
	shell("ackproof-none",
	      "exit status 127: the shell cannot find the command");
	shell(data, "exit status 126: the shell cannot run the command");
}

static void input_and_output(void)
{
	shell("read line && exit 3; echo out; echo err >&2", "");
	ok_str(out, "", "nothing of it is in our output");
	ok_str(err, "out\nerr\n", "all is in our error output");
	program("sh", "read line && exit 3; echo out; echo err >&2", "", 0);
	ok_str(out, "", "nothing of it is in our output");
	ok_str(err, "out\nerr\n", "all is in our error output");
}

static void environment(void)
{
	char *env[] = { "AP_NEW=two words", "AP_OLD=new", "AP_EMPTY=", NULL };
	char *argv[] = { "env", NULL };
	const char *print = "env | grep ^AP_ | sort";

	setenv("AP_KEPT", "kept", 1);
	setenv("AP_OLD", "old", 1);
	setenv("AP_OLDER", "older", 1);
	setenv("AP_O", "short", 1);
	ok(run(NULL, print, env) == CHECK_GOOD, "with an environment");
	ok_str(err, "AP_EMPTY=\nAP_KEPT=kept\nAP_NEW=two words\nAP_O=short\n"
	       "AP_OLD=new\nAP_OLDER=older\n", "it is there, and ours is");
	ok(run(NULL, print, NULL) == CHECK_GOOD, "without one");
	ok_str(err, "AP_KEPT=kept\nAP_O=short\nAP_OLD=old\nAP_OLDER=older\n",
	       "ours is there");
	ok_str(getenv("AP_OLD"), "old", "and not changed");

	/* a shell would set some again */
	clearenv();
	ok(run(argv, NULL, env) == CHECK_GOOD, "a program with one");
	ok_str(err, "AP_NEW=two words\nAP_OLD=new\nAP_EMPTY=\n",
	       "each variable is there once");
}

/* The verdict by the rules of git bisect run */
static void asked(const char *command, enum check_verdict want)
{
	ok(check_ask_shell(command, NULL, STDERR_FILENO, what,
			   sizeof(what)) == want, "asked: %s", command);
	ok(!what[0] == (want == CHECK_GOOD), "told: %s", what);
}

static void verdicts(void)
{
	asked("exit 0", CHECK_GOOD);
	asked("exit 1", CHECK_BAD);
	asked("exit 124", CHECK_BAD);
	asked("exit 125", CHECK_CANNOT);
	asked("exit 126", CHECK_BROKEN);
	asked("exit 127", CHECK_BROKEN);
	asked("exit 128", CHECK_BROKEN);
	asked("exit 255", CHECK_BROKEN);
	asked("kill -KILL $$", CHECK_BROKEN);
	clearenv();
	setenv("PATH", "/nowhere", 1);
	asked("exit 0", CHECK_BROKEN);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void interrupted(void)
{
	const struct itimerval often = { { 0, 10000 }, { 0, 10000 } };
	const struct itimerval never = {};
	struct sigaction sa = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	shell("sleep 0.2; exit 5", "exit status 5");
	setitimer(ITIMER_REAL, &never, NULL);
}

/* A parent that ignores its children leaves that to us. */
static void ignored_children(void)
{
	struct sigaction sa;

	signal(SIGCHLD, SIG_IGN);
	shell("exit 6", "exit status 6");
	sigaction(SIGCHLD, NULL, &sa);
	ok(sa.sa_handler == SIG_IGN, "SIGCHLD is as it was");
	signal(SIGCHLD, SIG_DFL);
}

/* What system(3) does is wrong here: one could not stop a tool by ctrl-C. */
static void stopped(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		check_run_shell("kill -INT $PPID; sleep 0.5", NULL, STDERR_FILENO, what,
				sizeof(what));
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT,
	   "a SIGINT ends the one who waits");
}

int main(void)
{
	const struct rlimit no_core = {};

	setrlimit(RLIMIT_CORE, &no_core);
	/* ignored in a background job, or below nohup */
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	statuses();
	signals();
	not_started();
	input_and_output();
	interrupted();
	ignored_children();
	stopped();
	environment();
	verdicts();
	return tap_end();
}
