/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checkers: commands that say by their exit status whether a state is good.
 */
#ifndef ACKPROOF_CHECK_H
#define ACKPROOF_CHECK_H

#include <stddef.h>

enum check_verdict { CHECK_GOOD, CHECK_BAD, CHECK_CANNOT, CHECK_BROKEN };

/*
 * Run a command and wait for its end: a program, which is looked for in PATH,
 * and its arguments up to a NULL; or a command line for sh. To this process's
 * environment come the "NAME=value" strings of @env up to a NULL, in the place
 * of any with the same name; @env may be NULL. The command has no input, and
 * its output goes to the descriptor @out: to the standard error, where ours is
 * data. A ctrl-C ends this process, too.
 *
 * Exit status 0 is good. All else is bad, also a command that cannot be
 * started, and @what, of @size bytes, tells it: "exit status 4", "killed by
 * SIGKILL". It is empty for a good one.
 *
 * @exit_status gets the exit status, or -1 where there is none.
 */
enum check_verdict check_run_argv(char *const argv[], char *const env[],
				  int out, char *what, size_t size, int *exit_status);
enum check_verdict check_run_shell(const char *command, char *const env[],
				   int out, char *what, size_t size);

/*
 * Ask a command line by the rules of git bisect run: 125 is CHECK_CANNOT, it
 * cannot tell. What is not an answer, as it was not started or was killed, or
 * says that of itself by 126, 127 or more, is CHECK_BROKEN. @what as above.
 */
enum check_verdict check_ask_shell(const char *command, char *const env[],
				   int out, char *what, size_t size);

#endif
