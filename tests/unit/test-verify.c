// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards workloads/verify.c: on a tree that the model's writers left, nothing
 * is lost; with one loss planted in it, exactly that one is.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../replay/util.h"
#include "../../workloads/verify.h"
#include "mklog.h"
#include "tap.h"

enum { OPS = 24, BLOCKS = 3, ACKED = 12, MAX_LOSSES = 64 };

static struct model m;
static struct verify v;
static char *root;
static struct verify_loss found[MAX_LOSSES];
static uint64_t n_found;

static void see(const struct verify_loss *l, void *arg)
{
	(void)arg;
	if (n_found < MAX_LOSSES)
		found[n_found] = *l;
	n_found++;
}

static char *file_path(uint32_t writer, const char *name)
{
	return xasprintf("%s/w%u/%s", root, writer, name);
}

static void put_bytes(uint32_t writer, const char *name, uint64_t off,
		      const void *data, size_t len)
{
	CLEANUP_FREE char *path = file_path(writer, name);
	CLEANUP_CLOSE int fd = -1;

	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || pwrite_all(fd, data, len, off))
		die(EXIT_CANNOT, "%s: %m", path);
}

/* @n sectors from @first of what @op of @writer puts into a block */
static void put_sectors(uint32_t writer, uint32_t op, uint32_t file,
			uint32_t block, uint32_t first, uint32_t n)
{
	struct tag tags[SECTORS_PER_BLOCK];
	char name[16];

	snprintf(name, sizeof(name), "f%u", file);
	tag_block(&m, writer, op, file, block, tags);
	put_bytes(writer, name,
		  (uint64_t)block * DATA_BLOCK + first * TAG_SECTOR,
		  tags + first, n * TAG_SECTOR);
}

static void put_op(uint32_t writer, uint32_t op)
{
	const struct model_op *o = model_op(&m, writer, op);

	for (uint32_t i = 0; i < o->nr_blocks; i++)
		put_sectors(writer, op, o->file, o->block + i, 0,
			    SECTORS_PER_BLOCK);
}

/* Two writers, each acknowledged @acked operations of @mode */
static void start(enum model_mode mode, uint32_t acked)
{
	struct model_params p = {
		.seed = 5, .writers = 2, .ops = OPS, .files = 2,
		.blocks = BLOCKS, .mode = mode,
	};
	char error[256];

	if (model_init(&m, &p, error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	verify_init(&v, &m);
	root = xasprintf("%s/tree", scratch());
	remove_tree(root);
	if (mkdir(root, 0755))
		die(EXIT_CANNOT, "%s: %m", root);
	for (uint32_t w = 0; w < 2; w++) {
		CLEANUP_FREE char *dir = xasprintf("%s/w%u", root, w);

		if (mkdir(dir, 0755))
			die(EXIT_CANNOT, "%s: %m", dir);
		for (uint32_t n = 0; n < acked; n++) {
			put_op(w, n);
			verify_ack(&v, w, n);
		}
	}
}

static void finish(uint64_t losses, const char *what)
{
	n_found = 0;
	ok_int(verify_tree(&v, root, see, NULL), losses, "%s: losses", what);
	ok_int(n_found, losses, "%s: each was reported", what);
	verify_free(&v);
	model_free(&m);
	free(root);
}

static void loss(size_t i, enum loss_kind kind, uint32_t writer, uint32_t file,
		 uint32_t block, int64_t op, int64_t got)
{
	const struct verify_loss *l = &found[i];

	if (!ok(i < n_found && l->kind == kind && l->writer == writer &&
		l->file == file && l->block == block && l->op == op &&
		l->got == got,
		"loss %zu is %s, w%u/f%u block %u, operation %" PRId64 ", holds %" PRId64,
		i, loss_kind_name(kind), writer, file, block, op, got) &&
	    i < n_found)
		printf("# got %s, w%u/f%u block %u, operation %" PRId64 ", holds %" PRId64 "\n",
		       loss_kind_name(l->kind), l->writer, l->file, l->block,
		       l->op, l->got);
}

/* The last of the first @below operations of writer 0 that wrote a block */
static int64_t last_op(uint32_t below, uint32_t file, uint32_t block)
{
	for (int64_t n = (int64_t)below - 1; n >= 0; n--) {
		const struct model_op *o = model_op(&m, 0, n);

		if (o->file == file && block - o->block < o->nr_blocks)
			return n;
	}
	return -1;
}

/* The block of writer 0's last acknowledged operation, and who had it before */
static struct {
	uint32_t	file, block;
	int64_t		before;
} last;

static void start_overwrite(void)
{
	const struct model_op *o;

	start(MODE_OVERWRITE, ACKED);
	o = model_op(&m, 0, ACKED - 1);
	last.file = o->file;
	last.block = o->block;
	last.before = last_op(ACKED - 1, o->file, o->block);
}

static void one_loss(const char *what, enum loss_kind kind, int64_t got)
{
	uint32_t file = last.file, block = last.block;

	finish(1, what);
	loss(0, kind, 0, file, block, ACKED - 1, got);
}

static void clean(void)
{
	for (int mode = MODE_OVERWRITE; mode <= MODE_MIXED; mode++) {
		for (uint32_t acked = 0; acked <= OPS; acked += 6) {
			CLEANUP_FREE char *what =
				xasprintf("%s, %u acked",
					  model_mode_name(mode), acked);

			start(mode, acked);
			finish(0, what);
		}
	}
}

static void blocks(void)
{
	uint8_t bytes[DATA_BLOCK] = {};

	start_overwrite();
	put_sectors(0, last.before, last.file, last.block, 0, 8);
	one_loss("stale block", LOSS_STALE, last.before);

	start_overwrite();
	put_sectors(0, last.before, last.file, last.block, 3, 5);
	one_loss("torn block", LOSS_TORN, last.before);

	start_overwrite();
	put_bytes(0, last.file ? "f1" : "f0",
		  last.block * DATA_BLOCK + 2048, bytes, 2048);
	one_loss("half a block of zeros", LOSS_TORN, -1);

	start_overwrite();
	put_bytes(0, last.file ? "f1" : "f0", last.block * DATA_BLOCK, bytes,
		  DATA_BLOCK);
	one_loss("zero block", LOSS_ZERO, -1);

	bytes[0] = 1;
	start_overwrite();
	put_bytes(0, last.file ? "f1" : "f0",
		  last.block * DATA_BLOCK + 7 * 512, bytes, 512);
	one_loss("foreign sector", LOSS_FOREIGN, -1);
}

/* A whole sector of this run, but not of this place */
static void misplaced(void)
{
	static const struct { uint32_t writer, file, block, sector; } diff[] = {
		{ 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 }, { 0, 0, 0, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(diff); i++) {
		struct tag tags[SECTORS_PER_BLOCK];

		start_overwrite();
		tag_block(&m, diff[i].writer, ACKED - 1,
			  last.file ^ diff[i].file,
			  (last.block + diff[i].block) % BLOCKS, tags);
		put_bytes(0, last.file ? "f1" : "f0",
			  last.block * DATA_BLOCK, &tags[diff[i].sector], 512);
		one_loss("another place's sector", LOSS_FOREIGN, -1);
	}
}

static void names_and_sizes(void)
{
	CLEANUP_FREE char *f0 = NULL, *f1 = NULL, *w1 = NULL, *away = NULL;

	start_overwrite();
	f0 = file_path(0, "f0");
	f1 = file_path(0, "f1");
	w1 = file_path(1, "");
	away = xasprintf("%s/away", root);
	unlink(f0);
	finish(BLOCKS, "missing file");
	for (uint32_t b = 0; b < BLOCKS; b++) {
		start_overwrite();
		loss(b, LOSS_MISSING, 0, 0, b, last_op(ACKED, 0, b), -1);
		verify_free(&v);
		model_free(&m);
		free(root);
	}

	start_overwrite();
	if (rename(w1, away))
		die(EXIT_CANNOT, "%s: %m", w1);
	finish(2 * BLOCKS, "missing directory");
	ok(found[0].writer == 1 && found[0].file == 0 &&
	   found[2 * BLOCKS - 1].file == 1, "all files of writer 1");

	start_overwrite();
	if (truncate(f1, 2 * DATA_BLOCK))
		die(EXIT_CANNOT, "%s: %m", f1);
	{
		int64_t op = last_op(ACKED, 1, 2);

		finish(1, "short file");
		loss(0, LOSS_MISSING, 0, 1, 2, op, -1);
	}

	start_overwrite();
	if (truncate(f1, 4 * DATA_BLOCK))
		die(EXIT_CANNOT, "%s: %m", f1);
	finish(1, "file too long");
	loss(0, LOSS_FOREIGN, 0, 1, 4, -1, -1);

	start_overwrite();
	if (truncate(f1, 3 * DATA_BLOCK + 1))
		die(EXIT_CANNOT, "%s: %m", f1);
	finish(1, "file of an odd size");
	loss(0, LOSS_FOREIGN, 0, 1, 3, -1, -1);
}

static void unexpected_names(void)
{
	static const char *const names[] = {
		"f2", "g0", "f", "f00", "f1 ", "f-1", "F0", "f4294967296",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		start_overwrite();
		put_bytes(0, names[i], 0, "", 0);
		finish(1, "unexpected name");
		loss(0, LOSS_FOREIGN, 0, UINT32_MAX, 0, -1, -1);
	}
}

/* Operation 1 is the first of file 1. */
static void first_of_a_file(void)
{
	uint8_t zero[2 * DATA_BLOCK] = {};

	start(MODE_OVERWRITE, 1);
	put_bytes(0, "f1", 0, "", 0);
	finish(0, "the next operation's file, empty");

	start(MODE_OVERWRITE, 1);
	put_bytes(0, "f1", 0, zero, sizeof(zero));
	put_sectors(0, 1, 1, 1, 0, 3);
	finish(0, "the next operation's file, in part");

	start(MODE_OVERWRITE, 0);
	put_bytes(0, "f1", 0, "", 0);
	finish(1, "a later operation's file, empty");
	loss(0, LOSS_FOREIGN, 0, 1, 0, -1, -1);

	start(MODE_OVERWRITE, 0);
	put_op(0, 1);
	finish(1, "a later operation's file");
	loss(0, LOSS_FOREIGN, 0, 1, 3, -1, -1);
}

static void in_flight(void)
{
	const struct model_op *o;
	uint32_t file, block;
	int64_t acked;

	start_overwrite();
	put_op(0, ACKED);
	finish(0, "the operation in flight, whole");

	start_overwrite();
	o = model_op(&m, 0, ACKED);
	put_sectors(0, ACKED, o->file, o->block, 4, 4);
	finish(0, "the operation in flight, half");

	/* on a block that was lost before, it does not hide that */
	start_overwrite();
	o = model_op(&m, 0, ACKED);
	file = o->file;
	block = o->block;
	acked = last_op(ACKED, file, block);
	put_sectors(0, last_op(acked, file, block), file, block, 0, 8);
	put_sectors(0, ACKED, file, block, 0, 4);
	finish(1, "half of it on a stale block");
	ok(found[0].kind == LOSS_TORN && found[0].op == acked,
	   "is torn");

	start_overwrite();
	o = model_op(&m, 0, ACKED + 1);
	file = o->file;
	block = o->block;
	acked = last_op(ACKED, file, block);
	put_op(0, ACKED + 1);
	finish(1, "the operation after it");
	loss(0, LOSS_FOREIGN, 0, file, block, acked, -1);

	/* its data belongs into its own block only */
	start_overwrite();
	o = model_op(&m, 0, ACKED);
	file = o->file;
	block = (o->block + 1) % BLOCKS;
	acked = last_op(ACKED, file, block);
	put_sectors(0, ACKED, file, block, 0, 8);
	finish(1, "the operation in flight in another block");
	loss(0, LOSS_FOREIGN, 0, file, block, acked, -1);
}

/* ACKED appends are six to each file; the next goes to file 0. */
static void append(void)
{
	uint8_t zero[DATA_BLOCK] = {};

	start(MODE_APPEND, ACKED);
	put_op(0, ACKED);
	finish(0, "the append in flight");

	start(MODE_APPEND, ACKED);
	put_bytes(0, "f0", 6 * DATA_BLOCK, zero, DATA_BLOCK);
	finish(0, "the append in flight, the size only");

	start(MODE_APPEND, ACKED);
	put_bytes(0, "f0", 6 * DATA_BLOCK, zero, 100);
	finish(1, "the append in flight, an odd size");
	loss(0, LOSS_FOREIGN, 0, 0, 6, -1, -1);

	start(MODE_APPEND, ACKED);
	put_op(0, ACKED + 1);
	finish(1, "the append after it");
	loss(0, LOSS_FOREIGN, 0, 1, 7, -1, -1);

	start(MODE_APPEND, ACKED);
	put_bytes(0, "f1", 5 * DATA_BLOCK, zero, DATA_BLOCK);
	finish(1, "an acknowledged append without its data");
	loss(0, LOSS_ZERO, 0, 1, 5, ACKED - 1, -1);

	start(MODE_APPEND, OPS);
	put_bytes(0, "f0", 12 * DATA_BLOCK, zero, DATA_BLOCK);
	finish(1, "an append after the last operation");
	loss(0, LOSS_FOREIGN, 0, 0, 13, -1, -1);
}

/* Longer than the buffer that files are read with */
static void long_file(void)
{
	struct model_params p = {
		.seed = 5, .writers = 1, .ops = 2, .files = 1, .blocks = 600,
	};
	uint8_t zero[DATA_BLOCK] = {};
	CLEANUP_FREE char *dir = NULL;
	char error[256];

	start(MODE_OVERWRITE, 0);
	verify_free(&v);
	model_free(&m);
	if (model_init(&m, &p, error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	verify_init(&v, &m);
	put_op(0, 0);
	verify_ack(&v, 0, 0);
	dir = file_path(0, "f0");
	put_bytes(0, "f0", 256 * DATA_BLOCK, zero, DATA_BLOCK);
	if (truncate(dir, 599 * DATA_BLOCK))
		die(EXIT_CANNOT, "%s: %m", dir);
	finish(2, "a file of 600 blocks");
	loss(0, LOSS_ZERO, 0, 0, 256, 0, -1);
	loss(1, LOSS_MISSING, 0, 0, 599, 0, -1);
}

int main(void)
{
	clean();
	blocks();
	misplaced();
	names_and_sizes();
	unexpected_names();
	first_of_a_file();
	in_flight();
	append();
	long_file();
	return tap_end();
}
