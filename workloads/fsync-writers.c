// SPDX-License-Identifier: GPL-2.0-only
/*
 * fsync-writers: the workload. One process a writer writes the model's blocks,
 * makes each operation durable, and then puts its ack into the dm-log-writes
 * log. Runs on the kernel under test.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../replay/capture.h"
#include "../replay/dm.h"
#include "../replay/util.h"
#include "model.h"

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: fsync-writers CAPTURE DM-NAME DIRECTORY\n"
	     "\n"
	     "Run the workload of the capture that is being recorded in DIRECTORY, on the\n"
	     "dm-log-writes device DM-NAME. Prints the seconds that it took.\n"
	     "\n"
	     "  -h, --help  show this help\n"
	     "\n"
	     "Exit status: 0 done, 1 a writer or the log failed, 2 usage.");
	close_stdout();
	exit(EXIT_OK);
}

static void put_mark(const struct model *m, const char *dm, enum mark_kind kind,
		     uint32_t writer, uint32_t op)
{
	struct mark mark = { kind, writer, op };
	char text[MARK_TEXT_MAX], message[MARK_TEXT_MAX + 8];

	mark_format(m, &mark, text);
	snprintf(message, sizeof(message), "mark %s", text);
	if (dm_message(dm, message))
		die(EXIT_LOSS, "%s: cannot log the mark '%s': %s", dm, text,
		    dm_error());
}

static int open_file(int dirfd, uint32_t writer, uint32_t file)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "f%u", file);
	fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		die(EXIT_LOSS, "w%u/%s: cannot create: %m", writer, name);
	/* POSIX wants the name made durable by its own fsync */
	if (fsync(dirfd))
		die(EXIT_LOSS, "w%u: fsync: %m", writer);
	return fd;
}

static void write_op(const struct model *m, uint32_t writer, uint32_t n,
		     int dirfd, int *fd, uint8_t *buf)
{
	const struct model_op *op = model_op(m, writer, n);
	int ret;

	if (fd[op->file] < 0)
		fd[op->file] = open_file(dirfd, writer, op->file);
	for (uint32_t i = 0; i < op->nr_blocks; i++) {
		tag_block(m, writer, n, op->file, op->block + i, buf);
		ret = pwrite_all(fd[op->file], buf, DATA_BLOCK,
				 (uint64_t)(op->block + i) * DATA_BLOCK);
		if (ret) {
			errno = -ret;
			die(EXIT_LOSS, "w%u/f%u: operation %u: write: %m",
			    writer, op->file, n);
		}
	}
	ret = m->p.datasync ? fdatasync(fd[op->file]) : fsync(fd[op->file]);
	if (ret)
		die(EXIT_LOSS, "w%u/f%u: operation %u: %s: %m", writer,
		    op->file, n, m->p.datasync ? "fdatasync" : "fsync");
}

static void run_writer(const struct model *m, uint32_t writer, const char *dm,
		       int dirfd, int start)
{
	uint8_t *buf = xcalloc(1, DATA_BLOCK);
	int *fd = xcalloc(m->p.files, sizeof(*fd));
	char byte;

	for (uint32_t f = 0; f < m->p.files; f++)
		fd[f] = -1;
	/* all start together: when the parent closes the pipe */
	if (read(start, &byte, 1) < 0)
		die(EXIT_LOSS, "writer %u: cannot wait: %m", writer);
	for (uint32_t n = 0; n < m->p.ops; n++) {
		write_op(m, writer, n, dirfd, fd, buf);
		put_mark(m, dm, MARK_ACK, writer, n);
	}
	free(fd);
	free(buf);
	exit(EXIT_OK);
}

/* Once the log device is full, marks still succeed and nothing is logged. */
static void check_logging(const char *dm)
{
	char status[128];

	if (dm_status(dm, status, sizeof(status)))
		die(EXIT_LOSS, "%s: no status: %s", dm, dm_error());
	if (strstr(status, "logging_disabled"))
		die(EXIT_LOSS,
		    "%s: logging stopped: the log device is full or failed",
		    dm);
}

static void wait_writers(uint32_t writers, const char *dm)
{
	const struct timespec poll = { .tv_nsec = 100000000 };
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	while (writers) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid < 0)
			die(EXIT_LOSS, "cannot wait for the writers: %m");
		if (pid == 0) {
			check_logging(dm);
			sigtimedwait(&chld, NULL, &poll);
			continue;
		}
		if (WIFSIGNALED(status))
			die(EXIT_LOSS, "a writer was killed by SIG%s",
			    sigabbrev_np(WTERMSIG(status)));
		if (WEXITSTATUS(status))
			exit(EXIT_LOSS);	/* the writer said why */
		writers--;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	const char *dm, *dir;
	struct capture cap;
	char error[600];
	sigset_t chld;
	double start;
	int c, gate[2];

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h')
			usage();
		exit(EXIT_USAGE);
	}
	if (optind + 3 != argc)
		die(EXIT_USAGE,
		    "expected a capture, a device and a directory; see fsync-writers --help");
	if (capture_load(&cap, argv[optind], true, error, sizeof(error)))
		die(EXIT_USAGE, "%s", error);
	dm = argv[optind + 1];
	dir = argv[optind + 2];
	dm_setup();

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	if (pipe2(gate, O_CLOEXEC))
		die(EXIT_LOSS, "pipe: %m");
	for (uint32_t w = 0; w < cap.model.p.writers; w++) {
		CLEANUP_FREE char *path = xasprintf("%s/w%u", dir, w);
		CLEANUP_CLOSE int dirfd = -1;
		pid_t pid;

		if (mkdir(path, 0755))
			die(EXIT_LOSS, "%s: cannot create: %m", path);
		dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dirfd < 0)
			die(EXIT_LOSS, "%s: cannot open: %m", path);
		pid = fork();
		if (pid < 0)
			die(EXIT_LOSS, "cannot fork writer %u: %m", w);
		if (pid == 0) {
			/* none outlives the parent, whatever ends it */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(gate[1]);
			run_writer(&cap.model, w, dm, dirfd, gate[0]);
		}
	}
	sync();		/* the directories are not part of the workload */
	put_mark(&cap.model, dm, MARK_BEGIN, 0, 0);
	start = now();
	close(gate[1]);
	wait_writers(cap.model.p.writers, dm);
	printf("%.6f\n", now() - start);
	check_logging(dm);
	put_mark(&cap.model, dm, MARK_END, 0, 0);
	capture_free(&cap);
	close_stdout();
	return EXIT_OK;
}
