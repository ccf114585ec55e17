// SPDX-License-Identifier: GPL-2.0-only
/*
 * lwlog convert: copy a log to a file, packed or unpacked. It appears under its
 * name when it is whole, and on the disk.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "lwlog.h"
#include "progress.h"
#include "zst.h"

#define CHUNK		(1U << 20)	/* bytes copied at once */
#define BLOCK		4096U		/* as large is a hole at least */

/* What is left out may be all of a disk: no more of it is looked at. */
#define LOOK_MAX	(1ULL << 30)

struct copy {
	struct lwlog	*l;
	const char	*out;
	int		fd;
	bool		packed, whole;
	int		level;
	uint32_t	frame;		/* bytes */
	struct zst_writer w;
	uint64_t	end;		/* bytes of the log that are copied */
	uint64_t	left_out;	/* and that are not, if they are not zero */
	uint8_t		*buf;
	struct progress	progress;
};

/* What must not stay if the copy does not get finished */
static char *unfinished;

static void remove_and_die(int sig)
{
	unlink(unfinished);
	raise(sig);	/* which has its default action back */
}

static void __attribute__((noreturn, format(printf, 2, 3)))
give_up(struct copy *c, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	progress_clear(&c->progress);
	unlink(unfinished);
	die(EXIT_LOSS, "%s", message);
}

static void create(struct copy *c)
{
	const struct sigaction action = {
		.sa_handler = remove_and_die, .sa_flags = SA_RESETHAND,
	};
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	unfinished = xasprintf("%s.%ld", c->out, (long)getpid());
	c->fd = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (c->fd < 0)
		die(EXIT_LOSS, "%s: cannot create: %m", unfinished);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct sigaction old;

		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
	if (c->packed && zst_writer_open(&c->w, c->fd, c->level, c->frame))
		give_up(c, "%s: cannot pack at level %d in frames of %u bytes",
			c->out, c->level, c->frame);
}

/* Bytes of the log to c->buf */
static void get(struct copy *c, uint64_t off, uint64_t len)
{
	char why[256];

	if (source_peek(&c->l->log.src, c->buf, off, len, why, sizeof(why)))
		give_up(c, "%s: %s", c->l->log.path, why);
}

static bool all_zero(const uint8_t *p, size_t len)
{
	return !p[0] && !memcmp(p, p + 1, len - 1);
}

/* The next byte from @off on that is not in a hole, or @end */
static uint64_t next_data(const struct copy *c, uint64_t off, uint64_t end)
{
	const struct source *src = &c->l->log.src;
	off_t data;

	if (src->is_block || src->packed)
		return off;
	data = lseek(src->fd, off, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? end : off;
	return (uint64_t)data < end ? (uint64_t)data : end;
}

/* Blocks of zeros are not written: the file is as long as it is to be. */
static int put_sparse(struct copy *c, uint64_t off, size_t len)
{
	size_t from = 0, to;
	int ret = 0;

	for (; from < len && !ret; from = to) {
		to = from;
		while (to < len && !all_zero(c->buf + to, len - to < BLOCK ?
						  len - to : BLOCK))
			to += BLOCK;
		if (to > len)
			to = len;
		if (to > from)
			ret = pwrite_all(c->fd, c->buf + from, to - from,
					 off + from);
		else
			to += BLOCK;
	}
	return ret;
}

static void copy_bytes(struct copy *c)
{
	uint64_t off = 0, len;
	int ret = 0;

	progress_start(&c->progress, "byte", c->end);
	for (; off < c->end && !ret; off += len) {
		progress_tick(&c->progress, off);
		if (!c->packed)
			off = next_data(c, off, c->end) / BLOCK * BLOCK;
		len = CHUNK - off % CHUNK;
		if (len > c->end - off)
			len = c->end - off;
		get(c, off, len);
		ret = c->packed ? zst_write(&c->w, c->buf, len) :
				  put_sparse(c, off, len);
	}
	if (!ret && c->packed)
		ret = zst_writer_finish(&c->w);
	else if (!ret && ftruncate(c->fd, c->end))
		ret = -errno;
	progress_clear(&c->progress);
	if (ret) {
		errno = -ret;
		give_up(c, "%s: cannot write: %m", unfinished);
	}
}

/* Under the name that is asked for, unless that is taken meanwhile. */
static int give_name(const struct copy *c)
{
	if (!renameat2(AT_FDCWD, unfinished, AT_FDCWD, c->out,
		       RENAME_NOREPLACE))
		return 0;
	/* not every file system knows how */
	return errno == EINVAL ? rename(unfinished, c->out) : -1;
}

static void sync_folder(struct copy *c)
{
	CLEANUP_FREE char *path = xstrdup(c->out);
	CLEANUP_CLOSE int fd = open(dirname(path), O_RDONLY | O_DIRECTORY |
				    O_CLOEXEC);

	if (fd < 0 || fsync(fd))
		warn("%s: cannot sync its folder: %m", c->out);
}

static void finish(struct copy *c)
{
	if (fsync(c->fd) || close(c->fd))
		give_up(c, "%s: cannot write: %m", unfinished);
	if (give_name(c))
		give_up(c, "%s: cannot rename to it: %m", c->out);
	sync_folder(c);
}

/* What is behind the log's used part is no part of it, but may be looked for. */
static void look_behind(struct copy *c)
{
	const uint64_t size = c->l->log.src.size;
	uint64_t off = c->end, looked = 0, len;
	char why[256];

	for (; off < size && looked < LOOK_MAX; off += len, looked += len) {
		off = next_data(c, off, size);
		if (off == size)
			return;
		len = size - off < CHUNK ? size - off : CHUNK;
		if (source_peek(&c->l->log.src, c->buf, off, len, why,
				sizeof(why)) || !all_zero(c->buf, len)) {
			c->left_out = size - c->end;
			warn("%s: left out what is behind the entries, %llu bytes from byte %llu on that are not all zero: --whole copies them, too",
			     c->l->log.path, LL(c->left_out), LL(c->end));
			return;
		}
	}
}

static void find_end(struct copy *c)
{
	struct lw_log *log = &c->l->log;

	c->end = log->src.size;
	if (c->whole)
		return;
	if (lw_finish(log)) {
		tell_note(c->l);
		die(EXIT_LOSS, "%s; --whole copies the log as it is",
		    log->error);
	}
	c->end = log->next_off;
	tell_note(c->l);
}

static void print_copy(struct copy *c, double seconds)
{
	const uint64_t written = c->packed ? c->w.off : c->end;

	if (c->l->json)
		print_json(json_pack("{s:o, s:o, s:I, s:I, s:I, s:f}",
				     "copy", json_text(c->out),
				     "entries", c->whole ? json_null() :
						json_u64(c->l->log.nr_entries),
				     "bytes", (json_int_t)c->end,
				     "written", (json_int_t)written,
				     "left_out", (json_int_t)c->left_out,
				     "seconds", seconds), JSON_INDENT(1));
	else if (c->packed)
		printf("%s: %llu bytes in %llu\n", c->out, LL(c->end),
		       LL(written));
	else
		printf("%s: %llu bytes\n", c->out, LL(c->end));
}

static void read_options(struct copy *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "level", required_argument, NULL, OPT_LEVEL },
		{ "frame", required_argument, NULL, OPT_FRAME },
		{ "whole", no_argument, NULL, OPT_WHOLE },
		COMMON_OPTIONS, {}
	};
	const char *how = NULL;
	size_t len;
	int o;

	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (o) {
		case OPT_LEVEL:
			how = "--level";
			c->level = arg_u64(how, optarg, 1, ZSTD_maxCLevel());
			break;
		case OPT_FRAME:
			how = "--frame";
			c->frame = arg_u64(how, optarg, 1,
					   ZST_MAX_FRAME >> 10) << 10;
			break;
		case OPT_WHOLE:
			c->whole = true;
			break;
		default:
			common_option(c->l, o);
		}
	}
	if (optind + 2 != argc)
		die(EXIT_USAGE,
		    "expected a log and a new file; see lwlog convert --help");
	c->out = argv[optind + 1];
	len = strlen(c->out);
	c->packed = len > 4 && !strcmp(c->out + len - 4, ".zst");
	if (how && !c->packed)
		die(EXIT_USAGE, "%s: %s is not packed: its name does not end in .zst",
		    how, c->out);
}

static int run(struct lwlog *l, int argc, char **argv)
{
	struct copy c = { .l = l, .level = 3, .frame = 1024 << 10 };
	const double start = now();
	struct stat st;

	read_options(&c, argc, argv);
	open_log(l, argv[optind], LW_HEADERS);
	if (!lstat(c.out, &st))
		die(EXIT_USAGE, "%s: exists already", c.out);
	find_end(&c);
	c.buf = xcalloc(CHUNK, 1);
	create(&c);
	copy_bytes(&c);
	finish(&c);
	look_behind(&c);
	print_copy(&c, now() - start);
	zst_writer_free(&c.w);
	free(c.buf);
	free(unfinished);
	return EXIT_OK;
}

const struct command command_convert = {
	.name = "convert",
	.usage = "convert [OPTION]... LOG OUT\n"
		 "  Copy a log to the new file OUT: packed, in frames of zstd, if that ends in\n"
		 "  .zst, otherwise unpacked and sparse.\n",
	.options = "      --level N        of zstd, 1 to 22 (default: 3)\n"
		   "      --frame KIB      unpacked size of a frame (default: 1024)\n"
		   "      --whole          all of LOG, and not only its entries; also at fault\n",
	.run = run,
};
