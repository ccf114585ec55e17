// SPDX-License-Identifier: GPL-2.0-only
/*
 * init: the first process of a guest. Makes the few mounts that a job needs,
 * runs the job's command, leaves its exit status in the job's folder, and
 * powers off.
 *
 * The kernel hands its unknown command line options on as environment:
 *   ACKPROOF_DISKS   the disks: name=device, comma-separated
 *   ACKPROOF_JOBFS   file system type that shares the job's folder
 *   ACKPROOF_JOBTAG  what to mount, where the type needs to be told
 *   ACKPROOF_JOB     the mount options; of hostfs, that is the folder's path
 *
 * The root file system is the host's, read-only. Written are tmpfs mounts and
 * the job's folder, which is at GUEST_JOB. The command is the shell script
 * "command" in there. Its disks are at GUEST_DISKS, and every path of the host
 * is below GUEST_HOST.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GUEST_RUN	"/run/ackproof"
#define GUEST_JOB	GUEST_RUN "/job"
#define GUEST_HOST	GUEST_RUN "/host"
#define GUEST_DISKS	GUEST_RUN "/disk"
#define GUEST_MOUNT	GUEST_RUN "/mnt"

/* The engine finds the reason in the kernel's log. */
static void fail(const char *what)
{
	printf("ackproof init: %s: %m\n", what);
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void do_mount(const char *type, const char *where, unsigned long flags,
		     const char *options)
{
	if (mount(type, where, type, flags, options))
		fail(where);
}

static const char *need(const char *name)
{
	const char *v = getenv(name);

	if (!v || !*v) {
		errno = EINVAL;
		fail(name);
	}
	return v;
}

static void name_disks(void)
{
	char *disks = strdup(need("ACKPROOF_DISKS")), *name;
	char path[256];

	while ((name = strsep(&disks, ","))) {
		char *dev = strchr(name, '=');

		if (!dev) {
			errno = EINVAL;
			fail("ACKPROOF_DISKS");
		}
		*dev++ = '\0';
		snprintf(path, sizeof(path), GUEST_DISKS "/%s", name);
		if (symlink(dev, path))
			fail(path);
	}
}

static void redirect(const char *path, int fd)
{
	int new = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (new < 0 || dup2(new, fd) < 0)
		fail(path);
	close(new);
}

static void run_command(void)
{
	static char *const env[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/run", "TMPDIR=/run", "LC_ALL=C",
		/* no udev in here: libdevmapper makes its own nodes */
		"DM_DISABLE_UDEV=1",
		"ACKPROOF_GUEST_JOB=" GUEST_JOB,
		"ACKPROOF_GUEST_DISKS=" GUEST_DISKS,
		"ACKPROOF_GUEST_HOST=" GUEST_HOST,
		"ACKPROOF_GUEST_MOUNT=" GUEST_MOUNT,
		NULL
	};

	redirect(GUEST_JOB "/stdout", STDOUT_FILENO);
	redirect(GUEST_JOB "/stderr", STDERR_FILENO);
	if (chdir(GUEST_JOB))
		fail(GUEST_JOB);
	execle("/bin/bash", "bash", "command", NULL, env);
	fprintf(stderr, "ackproof init: /bin/bash: %m\n");
	_exit(127);
}

/* Written under another name first, so that a status is whole or not there. */
static void leave_status(int status)
{
	FILE *f = fopen(GUEST_JOB "/status.new", "w");

	if (!f)
		fail("status");
	if (WIFSIGNALED(status))
		fprintf(f, "%d\n", 128 + WTERMSIG(status));
	else
		fprintf(f, "%d\n", WEXITSTATUS(status));
	if (fclose(f) || rename(GUEST_JOB "/status.new", GUEST_JOB "/status"))
		fail("status");
}

/* All of the kernel's messages, also those too quiet for the console */
static void save_kernel_log(void)
{
	enum { READ_ALL = 3, BUFFER_SIZE = 10 };
	int size = klogctl(BUFFER_SIZE, NULL, 0), n;
	char *buf = malloc(size > 0 ? size : 1);
	FILE *f;

	n = buf ? klogctl(READ_ALL, buf, size) : -1;
	if (n < 0)
		fail("kernel log");
	f = fopen(GUEST_JOB "/dmesg", "w");
	if (!f || fwrite(buf, 1, n, f) != (size_t)n || fclose(f))
		fail("dmesg");
	free(buf);
}

int main(void)
{
	const char *jobtag;
	int status;
	pid_t pid, got;

	do_mount("proc", "/proc", 0, NULL);
	do_mount("sysfs", "/sys", 0, NULL);
	do_mount("devtmpfs", "/dev", 0, NULL);
	do_mount("tmpfs", "/run", 0, NULL);
	if (mkdir(GUEST_RUN, 0755) || mkdir(GUEST_JOB, 0755) ||
	    mkdir(GUEST_HOST, 0755) || mkdir(GUEST_DISKS, 0755) ||
	    mkdir(GUEST_MOUNT, 0755))
		fail(GUEST_RUN);
	jobtag = getenv("ACKPROOF_JOBTAG");
	if (mount(jobtag ? jobtag : "job", GUEST_JOB, need("ACKPROOF_JOBFS"), 0,
		  need("ACKPROOF_JOB")))
		fail(GUEST_JOB);
	/*
	 * /dev and /run are covered now, and people keep captures there. What
	 * is bound is the root alone, without the mounts that cover them.
	 */
	if (mount("/", GUEST_HOST, NULL, MS_BIND, NULL))
		fail(GUEST_HOST);
	name_disks();

	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0)
		run_command();
	do		/* orphans of the command are ours, too */
		got = waitpid(-1, &status, 0);
	while (got != pid && (got > 0 || errno == EINTR));
	if (got != pid)
		fail("wait");
	save_kernel_log();
	leave_status(status);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
