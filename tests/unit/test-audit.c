// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/audit.c: hand-made logs of two writers, each with one thing
 * wrong in it, and exactly that loss must be found, from the right entry to
 * the right entry; and logs where something looks wrong and nothing is lost.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "../../replay/audit.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

#define HOME(writer)	(((uint64_t)(writer) + 1) << 26)

static struct model m;
static struct mklog l;
static struct audit a;
static char error[600];
static uint32_t acked[2];
static uint8_t junk[4 * DATA_BLOCK];

/* Each writer has one file of @blocks blocks; its first operation writes all. */
static void init(uint32_t ops, uint32_t blocks)
{
	struct model_params p = {
		.seed = 7, .writers = 2, .ops = ops, .files = 1,
		.blocks = blocks,
	};

	if (model_init(&m, &p, error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	mklog_init(&l, &m, 512);
	acked[0] = acked[1] = 0;
}

static uint64_t begin(void)
{
	return mklog_mark(&l, MARK_BEGIN, 0, 0);
}

static uint64_t end(void)
{
	return mklog_mark(&l, MARK_END, 0, 0);
}

/* A log of one-block files, begun */
static void start(uint32_t ops)
{
	init(ops, 1);
	begin();
}

static uint64_t put_at(uint64_t off, uint32_t writer, uint32_t op)
{
	return mklog_block(&l, off, writer, op, 0, 0);
}

static uint64_t put(uint32_t writer, uint32_t op)
{
	return put_at(HOME(writer), writer, op);
}

static uint64_t ack(uint32_t writer)
{
	return mklog_mark(&l, MARK_ACK, writer, acked[writer]++);
}

/* All that the writers have not done yet, as it should be, and the end. */
static void finish(void)
{
	for (uint32_t w = 0; w < 2; w++) {
		while (acked[w] < m.p.ops) {
			put(w, acked[w]);
			mklog_flush(&l);
			ack(w);
		}
	}
	end();
}

static int run(void)
{
	struct lw_log log;
	int ret;

	error[0] = '\0';
	mklog_save(&l);
	if (lw_open(&log, l.path, 0))
		die(EXIT_LOSS, "%s", log.error);
	ret = audit_run(&a, &log, &m, error, sizeof(error));
	lw_close(&log);
	return ret;
}

static void forget(void)
{
	audit_free(&a);
	mklog_free(&l);
	model_free(&m);
}

static void losses(size_t blocks, uint64_t acks, const char *what)
{
	ok_int(run(), 0, "%s: audited%s%s", what, *error ? ": " : "", error);
	ok_int(a.nr_losses, blocks, "%s: blocks lost", what);
	ok_int(a.acks_lost, acks, "%s: acks lost", what);
}

static void loss(size_t i, enum loss_kind kind, uint32_t op, uint64_t at,
		 uint64_t from, uint64_t until)
{
	const struct audit_loss *got = &a.loss[i];

	if (!ok(i < a.nr_losses && got->kind == kind && got->writer == 0 &&
		got->file == 0 && got->block == 0 && got->op == op &&
		got->ack_entry == at && got->from_entry == from &&
		got->until_entry == until,
		"loss %zu is %s, operation %u, ack %" PRIu64 ", from %" PRIu64 " until %" PRId64,
		i, loss_kind_name(kind), op, at, from, (int64_t)until) &&
	    i < a.nr_losses)
		printf("# got %s, writer %u, operation %u, ack %" PRIu64 ", from %" PRIu64 " until %" PRId64 "\n",
		       loss_kind_name(got->kind), got->writer, got->op,
		       got->ack_entry, got->from_entry,
		       (int64_t)got->until_entry);
}

static void no_loss(const char *what)
{
	finish();
	losses(0, 0, what);
	forget();
}

/* One loss of writer 0, and no other */
static void one_loss(const char *what, enum loss_kind kind, uint32_t op,
		     uint64_t at, uint64_t from, uint64_t until)
{
	finish();
	losses(1, 1, what);
	loss(0, kind, op, at, from, until);
	ok_int(a.by_kind[kind], 1, "%s: counted by kind", what);
	forget();
}

static void clean(void)
{
	uint64_t e;

	init(3, 1);
	mklog_text(&l, "mkfs", 4);
	e = begin();
	finish();
	losses(0, 0, "clean");
	ok_int(a.acks, 6, "clean: acks");
	ok_int(a.begin_entry, e, "clean: begin");
	ok_int(a.end_entry, l.nr - 1, "clean: end");
	ok_int(a.entries, l.nr, "clean: entries");
	ok_int(a.longest, 0, "clean: no window");
	forget();
}

static void stale(void)
{
	uint64_t e;

	start(2);
	put(0, 0);
	ack(0);
	e = ack(0);
	one_loss("ack before data", LOSS_STALE, 1, e, e,
		 put(0, 1));
}

static void missing(void)
{
	uint64_t e;

	start(1);
	e = ack(0);
	one_loss("never logged", LOSS_MISSING, 0, e, e, AUDIT_NEVER);
}

static void torn(void)
{
	uint64_t e;

	start(2);
	put(0, 0);
	ack(0);
	mklog_part(&l, HOME(0), 0, 1, 0, 0, 0, 4);
	e = ack(0);
	one_loss("half a block", LOSS_TORN, 1, e, e,
		 mklog_part(&l, HOME(0), 0, 1, 0, 0, 4, 4));

	start(1);
	mklog_part(&l, HOME(0), 0, 0, 0, 0, 0, 7);
	e = ack(0);
	one_loss("a new block but for a sector", LOSS_TORN, 0, e, e,
		 mklog_part(&l, HOME(0), 0, 0, 0, 0, 7, 1));

	start(1);
	mklog_part(&l, HOME(0), 0, 0, 0, 0, 4, 4);
	mklog_part(&l, HOME(0), 0, 0, 0, 0, 0, 4);
	ack(0);
	no_loss("a block in two halves");
}

/* What goes over an acknowledged block loses it from there, not from the ack. */
static void overwritten(void)
{
	uint64_t at, e;

	start(3);
	put(0, 0);
	ack(0);
	put(0, 1);
	at = ack(0);
	mklog_flush(&l);
	e = put(0, 0);
	mklog_flush(&l);
	one_loss("old data later", LOSS_STALE, 1, at, e, put(0, 2));

	start(2);
	put(0, 0);
	at = ack(0);
	e = mklog_write(&l, LW_METADATA, HOME(0) + 7 * 512, junk, 512);
	one_loss("foreign data in one sector", LOSS_FOREIGN, 0, at, e,
		 put(0, 1));

	start(2);
	put(0, 0);
	at = ack(0);
	e = put_at(HOME(0), 1, 0);
	put(1, 0);
	one_loss("another writer's block", LOSS_FOREIGN, 0, at, e, put(0, 1));

	start(1);
	put(0, 0);
	ack(0);
	mklog_write(&l, 0, HOME(0) - 2 * DATA_BLOCK, junk, 2 * DATA_BLOCK);
	mklog_write(&l, 0, HOME(0) + DATA_BLOCK, junk, 2 * DATA_BLOCK);
	no_loss("foreign data beside a block");
}

static void zeroed(void)
{
	static const uint8_t zeros[DATA_BLOCK];
	uint64_t at, e;

	start(2);
	put(0, 0);
	at = ack(0);
	e = mklog_write(&l, 0, HOME(0), zeros, sizeof(zeros));
	one_loss("zeros written", LOSS_ZERO, 0, at, e, put(0, 1));

	start(2);
	put(0, 0);
	at = ack(0);
	e = mklog_discard(&l, HOME(0), DATA_BLOCK);
	one_loss("a discard of a block", LOSS_ZERO, 0, at, e, put(0, 1));

	start(2);
	put(0, 0);
	at = ack(0);
	e = mklog_discard(&l, HOME(0) + 7 * 512, DATA_BLOCK);
	one_loss("a discard of a sector", LOSS_TORN, 0, at, e, put(0, 1));

	/* longer than the table of sectors is large: the other way round */
	start(2);
	put(0, 0);
	at = ack(0);
	e = mklog_discard(&l, 0, 1ULL << 40);
	one_loss("a discard of all", LOSS_ZERO, 0, at, e, put(0, 1));

	start(2);
	put(0, 0);
	at = ack(0);
	e = mklog_discard(&l, HOME(0) + 7 * 512, 1 << 20);
	one_loss("a long discard, from the last sector", LOSS_TORN, 0, at, e,
		 put(0, 1));

	start(1);
	put(0, 0);
	ack(0);
	mklog_discard(&l, HOME(0) - DATA_BLOCK, DATA_BLOCK);
	mklog_discard(&l, HOME(0) + DATA_BLOCK, DATA_BLOCK);
	mklog_discard(&l, HOME(0) - (1 << 20), 1 << 20);
	mklog_discard(&l, HOME(0) + DATA_BLOCK, 1 << 20);
	no_loss("discards beside a block");
}

/* No block can hold an operation that its writer has not begun. */
static void from_the_future(void)
{
	uint64_t at, e;

	start(3);
	put(0, 0);
	at = ack(0);
	e = put(0, 2);
	one_loss("an operation not begun", LOSS_FOREIGN, 0, at, e, put(0, 1));

	start(3);
	put(0, 0);
	put(0, 0);
	ack(0);
	put(0, 1);
	mklog_flush(&l);
	put(0, 1);
	no_loss("the operation in flight");
}

/* A file system may put a block elsewhere; then its old place is free. */
static void moved(void)
{
	uint64_t at, e;

	start(3);
	put_at(HOME(4), 0, 0);
	ack(0);
	put(0, 1);
	ack(0);
	mklog_write(&l, 0, HOME(4), junk, DATA_BLOCK);
	mklog_discard(&l, HOME(4), DATA_BLOCK);
	put_at(HOME(4), 1, 0);
	ack(1);
	mklog_discard(&l, 0, HOME(0));
	no_loss("a block's old place is used again");

	/* old data at the old place does not go over the new */
	start(3);
	put_at(HOME(4), 0, 0);
	ack(0);
	put(0, 1);
	ack(0);
	put_at(HOME(4), 0, 0);
	at = l.nr - 2;
	e = mklog_discard(&l, HOME(0), DATA_BLOCK);
	one_loss("old data at the old place", LOSS_ZERO, 1, at, e, put(0, 2));

	/* and what holds there now is followed */
	start(3);
	put_at(HOME(4), 1, 0);
	ack(1);
	put(1, 1);
	ack(1);
	put_at(HOME(4), 0, 0);
	at = ack(0);
	e = mklog_write(&l, 0, HOME(4), junk, DATA_BLOCK);
	one_loss("the new owner of a place", LOSS_FOREIGN, 0, at, e,
		 put(0, 1));
}

/* More sectors than the table starts with */
static void many_blocks(void)
{
	uint64_t at, e;

	init(1, 200);
	begin();
	for (uint32_t b = 0; b < 200; b++)
		mklog_block(&l, HOME(0) + b * DATA_BLOCK, 0, 0, 0, b);
	at = ack(0);
	for (uint32_t b = 0; b < 200; b++)
		mklog_block(&l, HOME(1) + b * DATA_BLOCK, 1, 0, 0, b);
	ack(1);
	e = mklog_write(&l, 0, HOME(0), junk, sizeof(junk));
	mklog_discard(&l, HOME(0) + 150 * DATA_BLOCK, 3 * DATA_BLOCK);
	mklog_discard(&l, HOME(1) + 100 * DATA_BLOCK, 1 << 20);
	end();
	losses(4 + 3 + 100, 2, "200 blocks");
	loss(0, LOSS_FOREIGN, 0, at, e, AUDIT_NEVER);
	ok_int(a.by_kind[LOSS_FOREIGN], 4, "200 blocks: foreign");
	ok_int(a.by_kind[LOSS_ZERO], 103, "200 blocks: zero");
	forget();
}

/* One ack that is lost, found and lost again is two losses of one ack. */
static void lost_twice(void)
{
	uint64_t at, e, f, g, h;

	start(3);
	put(0, 0);
	ack(0);
	at = ack(0);
	e = put(0, 1);
	f = mklog_discard(&l, HOME(0), DATA_BLOCK);
	mklog_flush(&l);
	mklog_flush(&l);
	g = put(0, 2);
	ack(0);
	h = put(0, 1);
	finish();
	losses(3, 2, "lost, found, lost");
	loss(0, LOSS_STALE, 1, at, at, e);
	loss(1, LOSS_ZERO, 1, at, f, g);
	loss(2, LOSS_STALE, 2, g + 1, h, AUDIT_NEVER);
	ok_int(a.longest, l.nr - h, "the longest window, to the log's end");
	ok_int(a.longest_loss, 2, "and whose it is");
	forget();

	start(2);
	e = ack(0);
	mklog_flush(&l);
	mklog_flush(&l);
	f = put(0, 0);
	ack(0);
	put(0, 1);
	finish();
	losses(2, 2, "two windows");
	ok_int(a.longest, f - e, "the longest window");
	ok_int(a.longest_loss, 0, "and whose it is");
	forget();
}

/* Later acks do not end an earlier one's loss; its data does. */
static void open_losses(void)
{
	uint64_t e, f, g;

	start(2);
	e = ack(0);
	f = ack(0);
	mklog_flush(&l);
	put(0, 0);
	g = put(0, 1);
	finish();
	losses(2, 2, "two acks of one block");
	loss(0, LOSS_MISSING, 0, e, e, g - 1);
	loss(1, LOSS_MISSING, 1, f, f, g);
	forget();
}

/* After the end mark data may still appear, but nothing is lost any more. */
static void teardown(void)
{
	uint64_t e, f;

	start(2);
	put(0, 0);
	ack(0);
	e = ack(0);
	put(1, 0);
	ack(1);
	put(1, 1);
	ack(1);
	end();
	f = put(0, 1);
	mklog_write(&l, 0, HOME(1), junk, DATA_BLOCK);
	losses(1, 1, "teardown");
	loss(0, LOSS_STALE, 1, e, e, f);
	forget();
}

static void flushes(void)
{
	uint8_t data[512] = {};

	init(2, 1);
	mklog_flush(&l);
	mklog_flush(&l);
	begin();
	put(0, 0);
	mklog_flush(&l);
	ack(0);
	put(1, 0);
	mklog_write(&l, LW_FLUSH | LW_FUA, 0, data, sizeof(data));
	ack(1);
	put(0, 1);
	ack(0);
	put(1, 1);
	ack(1);
	mklog_flush(&l);
	end();
	mklog_flush(&l);
	losses(0, 0, "flushes");
	ok_int(a.flushes, 2, "flushes from begin to the last ack");
	ok_int(audit_skipped_min(&a), 2, "the others went without");
	a.flushes = 9;
	ok_int(audit_skipped_min(&a), 0, "more flushes than acks: none");
	forget();
}

/* Run a log of marks alone: -EINVAL and "PATH: @want" must come back. */
static void refused(const char *want)
{
	CLEANUP_FREE char *message = xasprintf("%s: %s", l.path, want);

	ok_int(run(), -EINVAL, "refused: %s", want);
	ok_str(error, message, "with that message");
	ok(!a.loss, "and nothing to free");
	forget();
}

static void bad_marks(void)
{
	start(2);
	acked[0] = 1;
	ack(0);
	refused("entry 1 at byte 1024: ack of writer 0 for operation 1, expected operation 0");

	start(2);
	ack(1);
	acked[1] = 0;
	ack(1);
	refused("entry 2 at byte 1536: ack of writer 1 for operation 0, expected operation 1");

	init(1, 1);
	ack(0);
	begin();
	refused("entry 0 at byte 512: an ack outside the run's begin and end marks");

	start(1);
	ack(0);
	end();
	ack(1);
	refused("entry 3 at byte 2048: an ack outside the run's begin and end marks");

	start(1);
	begin();
	refused("entry 1 at byte 1024: a second begin mark, the first is entry 0");

	start(1);
	end();
	end();
	refused("entry 2 at byte 1536: a second end mark, the first is entry 1");
}

static void incomplete(void)
{
	init(1, 1);
	refused("no begin mark of this run in 0 entries up to byte 512");

	start(1);
	ack(0);
	ack(1);
	refused("no end mark of this run in 3 entries up to byte 2048");

	start(2);
	ack(0);
	ack(0);
	ack(1);
	end();
	refused("1 acks of writer 1 before the end mark, expected 2");

	start(1);
	mklog_header(&l, 0, 0, 0, 0);
	refused("entry 1 at byte 1024: neither data nor flags, expected an entry, one of 2");

	/* nothing is kept of losses found before the fault */
	start(1);
	ack(0);
	refused("no end mark of this run in 2 entries up to byte 1536");
}

int main(void)
{
	memset(junk, 0x5a, sizeof(junk));
	clean();
	stale();
	missing();
	torn();
	overwritten();
	zeroed();
	from_the_future();
	moved();
	many_blocks();
	lost_twice();
	open_losses();
	teardown();
	flushes();
	bad_marks();
	incomplete();
	return tap_end();
}
