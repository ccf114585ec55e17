// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/explain.c: hand-made logs with their traces, in each of which an
 * fsync returned too early for another reason, and exactly that must be told.
 *
 * A trace and a log are each a string of events:
 *
 *	w	the write of writer 0's operation 1
 *	o, f, g	flushes: writer 0's own, and two of writer 1
 *	j, k	the preflush of a journal write, by the kernel, and that write
 *	p, q, a	acks: operation 0 of writers 0 and 1, operation 1 of writer 0
 *	x	a copy of what operation 0 wrote, later
 *
 * In a trace, + is a submission, - a completion, ! one that fails.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../replay/explain.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

enum { HOME = 1 << 20, JOURNAL = 1 << 22, INODE = 131 };

static struct model m;
static struct mklog l;
static uint64_t entry_of[128];
static char error[1200];

static uint64_t put(char what)
{
	uint8_t record[1024] = { 0xfe, 0xed, 0xba, 0xbe };

	switch (what) {
	case 'w': return mklog_block(&l, HOME, 0, 1, 0, 0);
	case 'x': return mklog_block(&l, HOME, 0, 0, 0, 0);
	case 'p': return mklog_mark(&l, MARK_ACK, 0, 0);
	case 'q': return mklog_mark(&l, MARK_ACK, 1, 0);
	case 'a': return mklog_mark(&l, MARK_ACK, 0, 1);
	case 'j': return mklog_write(&l, LW_FLUSH | LW_FUA | LW_METADATA,
				     JOURNAL, NULL, 0);
	case 'k': return mklog_write(&l, LW_FUA | LW_METADATA, JOURNAL,
				     record, sizeof(record));
	default:  return mklog_flush(&l);
	}
}

static void make_log(const char *log)
{
	struct model_params p = {
		.seed = 7, .writers = 2, .ops = 2, .files = 1, .blocks = 1,
	};

	if (model_init(&m, &p, error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	mklog_init(&l, &m, 512);
	memset(entry_of, 0xff, sizeof(entry_of));
	mklog_mark(&l, MARK_BEGIN, 0, 0);
	mklog_block(&l, HOME, 0, 0, 0, 0);
	mklog_block(&l, 2 * HOME, 1, 0, 0, 0);
	mklog_flush(&l);
	for (; *log; log++)
		entry_of[(int)*log] = put(*log);
	mklog_block(&l, 2 * HOME, 1, 1, 0, 0);
	mklog_flush(&l);
	mklog_mark(&l, MARK_ACK, 1, 1);
	mklog_mark(&l, MARK_END, 0, 0);
	mklog_save(&l);
}

static const char *submitter_of(char what)
{
	if (strchr("wopa", what))
		return "fsync-writers-100";
	return strchr("jk", what) ? "kworker/0:1 [x]-7" : "fsync-writers-101";
}

static void make_trace(const char *trace)
{
	CLEANUP_FREE char *path = xasprintf("%s/trace", scratch());
	unsigned int us = 0;
	FILE *f = fopen(path, "w");

	if (!f)
		die(EXIT_CANNOT, "%s: %m", path);
	fprintf(f, "# tracer: nop\n");
	for (; *trace; trace++) {
		const char *who = submitter_of(*trace);
		unsigned int flags = strchr("ofg", *trace) ? 1 :
			*trace == 'j' ? 0x13 : *trace == 'k' ? 0x12 :
			strchr("pqa", *trace) ? 8 : 0;
		char id = *trace;

		us += 1000;
		if (strchr("-!", trace[1]) && trace[1]) {
			fprintf(f, " <idle>-0 [000] d.h.. 1.%06u: dm_log_writes_complete: dev 254:1 id %d error %d\n",
				us, id, *++trace == '!' ? -5 : 0);
			continue;
		}
		trace += trace[1] == '+';
		fprintf(f, " %s [000] ..... 1.%06u: dm_log_writes_submit: dev 254:1 id %d flags 0x%x sector %d nr_sectors 0\n",
			who, us, id, flags, strchr("jk", id) ? JOURNAL / 512 : 0);
		if (entry_of[(int)id] != UINT64_MAX)
			fprintf(f, " log-1 [000] d.... 1.%06u: dm_log_writes_log: dev 254:1 id %d entry %llu\n",
				us, id, (unsigned long long)entry_of[(int)id]);
	}
	if (fclose(f))
		die(EXIT_CANNOT, "%s: %m", path);
}

static void forget(void)
{
	CLEANUP_FREE char *path = xasprintf("%s/trace", scratch());

	unlink(path);
	mklog_free(&l);
	model_free(&m);
}

static const struct {
	const char *what, *trace, *log;
	enum explain_cause cause;
	char named, next, holder;
} tests[] = {
	{ "another flush took the write", "q p w+ w- g+ o+ o- a g-", "qpoawg",
	  CAUSE_TAKEN_BY_ANOTHER, 'o', 'g', 'g' },
	{ "a write in flight at the ack", "q p w+ f+ f- a w- g+ g-", "qpfawg",
	  CAUSE_WRITE_NOT_AWAITED, 0, 'g', 'g' },
	{ "its own flush is ahead of the write's end", "q p w+ o+ w- o- a g+ g-",
	  "qpoawg", CAUSE_WRITE_NOT_AWAITED, 0, 'g', 'g' },
	{ "another's flush is ahead of the write's end", "q p w+ f+ w- f- a g+ g-",
	  "qpfawg", CAUSE_SUBMITTED_EARLY, 'f', 'g', 'g' },
	{ "a flush submitted between the ack before and the write",
	  "q p f+ w+ w- f- a g+ g-", "qpfawg", CAUSE_SUBMITTED_EARLY, 'f', 'g',
	  'g' },
	{ "the preflush of a journal write that was waited for",
	  "q j+ p w+ j- k+ w- k- a g+ g-", "qpjkawg", CAUSE_SUBMITTED_EARLY,
	  'j', 'g', 'g' },
	{ "a journal write that was complete before the data",
	  "q j+ p w+ j- k+ k- w- a g+ g-", "qpjkawg", CAUSE_NEVER_SENT, 0, 'g',
	  'g' },
	{ "a flush from before the ack before", "q f+ p w+ f- w- a g+ g-",
	  "qpfawg", CAUSE_NEVER_SENT, 0, 'g', 'g' },
	{ "an early flush that completes after the ack",
	  "q p w+ f+ w- a f- g+ g-", "qpafwg", CAUSE_NEVER_SENT, 0, 'g', 'g' },
	{ "a flush that nobody waited for", "q p w+ w- f+ a f-", "qpawf",
	  CAUSE_COMPLETED_LATE, 'f', 'f', 'f' },
	{ "a flush that failed", "q p w+ w- o+ o! a g+ g-", "qpawg",
	  CAUSE_FLUSH_FAILED, 'o', 'o', 'g' },
	{ "no flush at all", "q p w+ w- a g+ g-", "qpawg", CAUSE_NEVER_SENT, 0,
	  'g', 'g' },
	{ "no trace", NULL, "qpfawg", CAUSE_UNKNOWN, 0, 0, 'g' },
	{ "no trace of the write", "q p a g+ g-", "qpawg", CAUSE_UNKNOWN, 0, 0,
	  'g' },
	/* op 1 is in time, and then op 0's data go over it */
	{ "older data over newer, in the log only",
	  "q x+ x- p w+ w- o+ o- a g+ g-", "qpwoaxg", CAUSE_TAKEN_BY_ANOTHER, 0,
	  0, 'g' },
	{ "older data over newer, in flight beside them",
	  "q x+ p w+ w- o+ o- a x- g+ g-", "qpwoaxg", CAUSE_OVERTAKEN, 0, 0,
	  'g' },
};

static void check(size_t i)
{
	const char *what = tests[i].what;
	struct explanation e;
	struct explain x;
	int ret;

	make_log(tests[i].log);
	if (tests[i].trace)
		make_trace(tests[i].trace);
	ret = explain_open(&x, scratch(), error, sizeof(error));
	if (!ok_int(ret, 0, "%s: can be explained%s", what, ret ? error : ""))
		return;
	ok_int(x.audit.nr_losses, 1, "%s: one loss", what);
	explain_loss(&x, x.audit.loss, &e);
	ok_str(explain_cause_name(e.cause), explain_cause_name(tests[i].cause),
	       "%s: the cause", what);
	ok(!e.inferred, "%s: it tells by itself", what);
	ok_int(e.named, tests[i].named ?: -1, "%s: the flush that is named", what);
	ok_int(e.next, tests[i].next ?: -1, "%s: the first that covers it", what);
	ok_int(e.holder, entry_of[(int)tests[i].holder],
	       "%s: the flush that it was logged with", what);
	ok_int(e.previous, entry_of['p'], "%s: the ack before", what);
	if (strchr(tests[i].log, 'x')) {
		ok_int(e.over, entry_of['x'], "%s: what went over it", what);
	} else if (ok_int(e.nr_writes, 1, "%s: one late write", what)) {
		ok_int(e.write[0], entry_of['w'], "%s: which it is", what);
	}
	if (!tests[i].trace) {
		ok_int(e.nr_flushes, 2, "%s: the log's flushes up to then", what);
		ok_int(e.flush[0].entry, entry_of['f'], "%s: the first", what);
	}
	explain_free(&e);
	explain_close(&x);
	forget();
}

/* Writer 0 sends its flush too early at operation 1, writer 1 at operation 0 */
static void infer(void)
{
	struct explanation e;
	struct explain x;

	/* the early flush is another's, and yet: op 0 was seen not to wait */
	make_log("qxopfawg");
	entry_of['w'] = entry_of['f'] + 2;
	make_trace("q x+ o+ x- o- p w+ f+ w- f- a g+ g-");
	ok_int(explain_open(&x, scratch(), error, sizeof(error)), 0,
	       "two fsyncs, of which one does not wait");
	explain_loss(&x, x.audit.loss, &e);
	ok_int(x.evidence.traced, 2, "both are in the trace");
	ok_int(x.evidence.not_awaited, 1, "one did not wait");
	ok_str(explain_cause_name(e.cause), "write-not-awaited",
	       "the other is taken not to have waited either");
	ok(e.inferred, "and that is said");
	ok_int(x.evidence.alone[CAUSE_SUBMITTED_EARLY], 1, "by itself it is early");
	explain_free(&e);
	explain_close(&x);
	forget();
}

/* The data are there, and a mount does not find them */
static void mounted(void)
{
	struct verify_loss v = { .kind = LOSS_MISSING, .op = 1, .got = -1 };
	struct audit_loss l;
	struct explanation e;
	struct explain x;

	make_log("qpwoagh");
	make_trace("q p w+ w- o+ o- a g+ g-");
	ok_int(explain_open(&x, scratch(), error, sizeof(error)), 0,
	       "nothing that the audit finds");
	ok_int(x.audit.nr_losses, 0, "nothing");
	ok_int(explain_mounted(&x, &v, entry_of['g'], &l), 0, "a mount does");
	explain_loss(&x, &l, &e);
	ok_str(explain_cause_name(e.cause), "metadata-late", "the cause");
	ok_int(e.in_time, entry_of['w'], "the data that are there");
	ok_int(e.nr_writes, 0, "nothing is late");
	ok_int(e.point, entry_of['g'], "the point");
	ok(e.nr_flushes == 2 && e.flush[0].bio == 'o' &&
	   e.flush[0].relation == FLUSH_COVERS, "the flush that covers the data");
	explain_free(&e);
	ok_int(explain_mounted(&x, &v, entry_of['o'], &l), -EINVAL,
	       "a point ahead of the ack shows no loss of it");
	v.block = 1;
	ok_int(explain_mounted(&x, &v, entry_of['g'], &l), -EINVAL,
	       "a block that no operation writes");
	explain_close(&x);
	forget();
}

static void journal(void)
{
	CLEANUP_FREE char *path = xasprintf("%s/inodes", scratch());
	FILE *f = fopen(path, "w");
	struct explain x;

	if (!f || fprintf(f, "w0/f0 %d\nw1/f0 133\n", INODE) < 0 || fclose(f))
		die(EXIT_CANNOT, "%s: %m", path);
	make_log("qpawg");
	ok_int(explain_open(&x, scratch(), error, sizeof(error)), 0, "with inodes");
	ok_int(x.ino[0], INODE, "writer 0's inode");
	ok_int(x.ino[1], 133, "writer 1's inode");
	explain_close(&x);

	f = fopen(path, "w");
	if (!f || fprintf(f, "w0/f0 131\nw2/f0 133\n") < 0 || fclose(f))
		die(EXIT_CANNOT, "%s: %m", path);
	ok_int(explain_open(&x, scratch(), error, sizeof(error)), -EINVAL,
	       "an inode of a writer that is none");
	ok(strstr(error, "/inodes: line 2: expected") != NULL, "is told: %s",
	   error);
	explain_close(&x);
	unlink(path);
	forget();
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		check(i);
	infer();
	mounted();
	journal();
	return tap_end();
}
