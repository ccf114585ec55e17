// SPDX-License-Identifier: GPL-2.0-only
/*
 * Running checkers; see check.h.
 *
 * They are spawned, not forked: the caller may have mapped a log of many
 * gigabytes, whose page tables a fork would copy.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "util.h"

/* Whether one of @env is of the variable that @var is of */
static bool has_variable(char *const env[], const char *var)
{
	size_t len = strcspn(var, "=") + 1;

	for (; *env; env++)
		if (!strncmp(*env, var, len))
			return true;
	return false;
}

/* @env, and of our own what it does not replace. The strings are not copied. */
static char **join_environ(char *const env[])
{
	static char *const none[] = { NULL };
	char *const *own = environ ? environ : none;
	size_t n = 0, max = 1;
	char **all;

	if (!env)
		env = none;
	for (size_t i = 0; env[i]; i++)
		max++;
	for (size_t i = 0; own[i]; i++)
		max++;
	all = xcalloc(max, sizeof(*all));
	for (size_t i = 0; env[i]; i++)
		all[n++] = env[i];
	/* of two with one name, programs disagree which one counts */
	for (size_t i = 0; own[i]; i++)
		if (!has_variable(env, own[i]))
			all[n++] = own[i];
	return all;
}

/* Returns 0, or the errno of why it was not started. */
static int spawn(pid_t *pid, char *const argv[], char *const env[], int out)
{
	CLEANUP_FREE char **all = join_environ(env);
	posix_spawn_file_actions_t actions;
	int ret;

	ret = posix_spawn_file_actions_init(&actions);
	if (ret)
		return ret;
	ret = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
					       "/dev/null", O_RDONLY, 0);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&actions, out,
						       STDOUT_FILENO);
	if (!ret)
		ret = posix_spawnp(pid, argv[0], &actions, NULL, argv, all);
	posix_spawn_file_actions_destroy(&actions);
	return ret;
}

/* As spawn(), and wait for its end: @status is that of wait(2). */
static int run(char *const argv[], char *const env[], int out, int *status,
	       char *what, size_t size)
{
	struct sigaction old, dfl = { .sa_handler = SIG_DFL };
	pid_t pid;
	int ret;

	/* statuses are lost where it is ignored, as our parent may have it */
	sigaction(SIGCHLD, &dfl, &old);
	ret = spawn(&pid, argv, env, out);
	if (ret)
		snprintf(what, size, "cannot be started: %s", strerror(ret));
	while (!ret && waitpid(pid, status, 0) < 0) {
		if (errno == EINTR)
			continue;
		ret = errno;
		snprintf(what, size, "cannot be waited for: %m");
	}
	sigaction(SIGCHLD, &old, NULL);
	return ret;
}

/* What a shell means by an exit status of its own */
static const char *shell_note(int code)
{
	switch (code) {
	case 126:
		return ": the shell cannot run the command";
	case 127:
		return ": the shell cannot find the command";
	default:
		return "";
	}
}

static void tell_exit(int code, const char *note, char *what, size_t size)
{
	/* of what a shell, or anything like it, has waited for */
	const char *name = code > 128 ? sigabbrev_np(code - 128) : NULL;

	if (name)
		snprintf(what, size, "exit status %d (128 + SIG%s)", code,
			 name);
	else
		snprintf(what, size, "exit status %d%s", code, note);
}

static void tell_signal(int sig, char *what, size_t size)
{
	const char *name = sigabbrev_np(sig);

	if (name)
		snprintf(what, size, "killed by SIG%s", name);
	else
		snprintf(what, size, "killed by signal %d", sig);
}

enum check_verdict check_run_argv(char *const argv[], char *const env[],
				  int out, char *what, size_t size, int *exit_status)
{
	int status;

	what[0] = '\0';
	*exit_status = -1;
	if (run(argv, env, out, &status, what, size))
		return CHECK_BAD;
	if (WIFSIGNALED(status)) {
		tell_signal(WTERMSIG(status), what, size);
		return CHECK_BAD;
	}
	*exit_status = WEXITSTATUS(status);
	if (!*exit_status)
		return CHECK_GOOD;
	tell_exit(*exit_status, "", what, size);
	return CHECK_BAD;
}

static enum check_verdict run_shell(const char *command, char *const env[],
				    int out, char *what, size_t size,
				    int *exit_status)
{
	char *argv[] = { "sh", "-c", (char *)command, NULL };
	enum check_verdict verdict;

	verdict = check_run_argv(argv, env, out, what, size, exit_status);
	if (*exit_status > 0)
		tell_exit(*exit_status, shell_note(*exit_status), what, size);
	return verdict;
}

enum check_verdict check_run_shell(const char *command, char *const env[],
				   int out, char *what, size_t size)
{
	int exit_status;

	return run_shell(command, env, out, what, size, &exit_status);
}

enum check_verdict check_ask_shell(const char *command, char *const env[],
				   int out, char *what, size_t size)
{
	int exit_status;
	enum check_verdict verdict;

	verdict = run_shell(command, env, out, what, size, &exit_status);
	if (exit_status == 125)
		return CHECK_CANNOT;
	return exit_status < 0 || exit_status > 125 ? CHECK_BROKEN : verdict;
}
