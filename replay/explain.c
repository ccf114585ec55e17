// SPDX-License-Identifier: GPL-2.0-only
/* Why an acknowledged block is lost; see explain.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "journal.h"
#include "util.h"

static const char *const cause_names[NR_CAUSES] = {
	[CAUSE_UNKNOWN]			= "unknown",
	[CAUSE_TAKEN_BY_ANOTHER]	= "taken-by-another",
	[CAUSE_WRITE_NOT_AWAITED]	= "write-not-awaited",
	[CAUSE_FLUSH_FAILED]		= "flush-failed",
	[CAUSE_SUBMITTED_EARLY]		= "submitted-early",
	[CAUSE_COMPLETED_LATE]		= "completed-late",
	[CAUSE_NEVER_SENT]		= "never-sent",
	[CAUSE_OVERTAKEN]		= "overtaken",
	[CAUSE_METADATA_LATE]		= "metadata-late",
};

static const char *const relation_names[NR_RELATIONS] = {
	[FLUSH_COVERS]	= "covers",
	[FLUSH_FAILED]	= "failed",
	[FLUSH_EARLY]	= "early",
	[FLUSH_LATE]	= "late",
	[FLUSH_AFTER]	= "after",
	[FLUSH_UNTRACED] = "untraced",
};

const char *explain_cause_name(enum explain_cause cause)
{
	return cause_names[cause];
}

const char *explain_relation_name(enum explain_relation relation)
{
	return relation_names[relation];
}

/* A block that an entry writes, with the tag of its first sector in there */
struct block_write {
	uint64_t	entry;
	uint32_t	writer, file, block, op;
};

/* An entry that is a FLUSH */
struct flush_entry {
	uint64_t	entry, flags;
};

/* An entry that is a write of the journal */
struct journal_write {
	uint64_t	entry, header_off;
	uint32_t	cycle, block;
};

/* Of so many fsyncs, one may look as if it had not waited, by coincidence. */
enum { NOT_AWAITED_RARE = 100 };

/* Make room for one more in an array of @nr, of which @max are allocated. */
#define grow(array, nr, max)						\
	((nr) < (max) ? (void)0 : (void)((array) = xrealloc((array),	\
		(max) = (max) ? 2 * (max) : 256, sizeof(*(array)))))

static uint64_t *ack_of(const struct explain *x, uint32_t writer, uint32_t op)
{
	return &x->ack[(uint64_t)writer * x->cap.model.p.ops + op];
}

static void see_data(struct explain *x, const struct lw_entry *e)
{
	const struct model *m = &x->cap.model;

	for (uint64_t o = 0; o < e->len; o += TAG_SECTOR) {
		struct block_write *last = NULL;
		struct tag_id id;

		if (tag_read(m, e->data + o, &id) != TAG_OURS)
			continue;
		if (x->nr_blocks)
			last = &x->block[x->nr_blocks - 1];
		if (last && last->entry == e->nr && last->writer == id.writer &&
		    last->file == id.file && last->block == id.block)
			continue;
		grow(x->block, x->nr_blocks, x->max_blocks);
		x->block[x->nr_blocks++] = (struct block_write){
			e->nr, id.writer, id.file, id.block, id.op,
		};
	}
}

static void see_entry(struct explain *x, const struct lw_entry *e)
{
	struct journal_record record;
	struct mark mark;

	if (e->flags & LW_MARK) {
		mark_parse(&x->cap.model, e->mark, e->mark_len, &mark);
		if (mark.kind == MARK_ACK)
			*ack_of(x, mark.writer, mark.op) = e->nr;
		return;
	}
	if (e->flags & LW_DISCARD)
		return;
	if (e->flags & LW_FLUSH) {
		grow(x->flush, x->nr_flushes, x->max_flushes);
		x->flush[x->nr_flushes++] = (struct flush_entry){
			e->nr, e->flags,
		};
	}
	if (journal_record(e->data, e->len, &record)) {
		grow(x->journal, x->nr_journal, x->max_journal);
		x->journal[x->nr_journal++] = (struct journal_write){
			e->nr, e->header_off, record.cycle, record.block,
		};
		return;
	}
	see_data(x, e);
}

static int read_log(struct explain *x, char *error, size_t size)
{
	struct lw_entry e;
	int ret;

	lw_rewind(&x->log);
	while ((ret = lw_next(&x->log, &e)) == 1)
		see_entry(x, &e);
	if (ret)
		snprintf(error, size, "%s", x->log.error);
	return ret;
}

/* "w3/f0 131": the writers' files, as harness/guest/capture left them */
static int read_inodes(struct explain *x, const char *dir, char *error,
		       size_t size)
{
	CLEANUP_FREE char *path = xasprintf("%s/inodes", dir);
	const struct model_params *p = &x->cap.model.p;
	uint32_t writer, file;
	uint64_t ino;
	int line = 0, ret = 0;
	char text[64];
	FILE *f;

	x->ino = xcalloc((size_t)p->writers * p->files, sizeof(*x->ino));
	f = fopen(path, "re");
	if (!f)		/* older captures have none */
		return errno == ENOENT ? 0 : -errno;
	while (!ret && fgets(text, sizeof(text), f)) {
		line++;
		if (sscanf(text, "w%" SCNu32 "/f%" SCNu32 " %" SCNu64, &writer,
			   &file, &ino) != 3 ||
		    writer >= p->writers || file >= p->files) {
			snprintf(error, size,
				 "%s: line %d: expected 'wWRITER/fFILE INODE'",
				 path, line);
			ret = -EINVAL;
			break;
		}
		x->ino[writer * p->files + file] = ino;
	}
	fclose(f);
	return ret;
}

static int by_submission(const void *pa, const void *pb, void *arg)
{
	const struct explain *x = arg;
	const struct trace_bio *a = &x->trace.bio[*(const uint64_t *)pa];
	const struct trace_bio *b = &x->trace.bio[*(const uint64_t *)pb];

	return a->submitted < b->submitted ? -1 : a->submitted > b->submitted;
}

/* All bios that flush, and the processes that the writers are */
static void index_trace(struct explain *x)
{
	const struct model_params *p = &x->cap.model.p;

	x->by_submit = xcalloc(x->trace.nr + 1, sizeof(*x->by_submit));
	for (uint64_t id = 0; id < x->trace.nr; id++) {
		const struct trace_bio *b = &x->trace.bio[id];

		if (b->submitted != TRACE_NEVER && b->flags & LW_FLUSH)
			x->by_submit[x->nr_by_submit++] = id;
	}
	qsort_r(x->by_submit, x->nr_by_submit, sizeof(*x->by_submit),
		by_submission, x);
	x->pid = xcalloc(p->writers, sizeof(*x->pid));
	for (uint32_t w = 0; w < p->writers; w++) {
		const struct trace_bio *b = trace_entry(&x->trace,
							*ack_of(x, w, 0));

		if (b && b->submitted != TRACE_NEVER)
			x->pid[w] = b->pid;
	}
}

int64_t explain_writer(const struct explain *x, int32_t pid)
{
	for (uint32_t w = 0; x->pid && w < x->cap.model.p.writers; w++)
		if (x->pid[w] && x->pid[w] == pid)
			return w;
	return -1;
}

/* The first flush in x->by_submit that was submitted after line @after */
static size_t first_after(const struct explain *x, uint64_t after)
{
	size_t lo = 0, hi = x->nr_by_submit;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->trace.bio[x->by_submit[mid]].submitted > after)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/*
 * Did @pid submit a flush between lines @from and @until? It is the ack's own,
 * if those are its write's submission and completion: a log force comes after
 * the wait for the data as well.
 */
static bool flushed_between(const struct explain *x, int32_t pid, uint64_t from,
			    uint64_t until)
{
	for (size_t i = first_after(x, from); i < x->nr_by_submit; i++) {
		const struct trace_bio *b = &x->trace.bio[x->by_submit[i]];

		if (b->submitted >= until)
			break;
		if (b->pid == pid)
			return true;
	}
	return false;
}

/*
 * How the fsyncs of the capture went about it: those that did not wait for their
 * writes are found also where nothing was lost.
 */
static void gather_evidence(struct explain *x)
{
	const struct model *m = &x->cap.model;
	struct explain_evidence *v = &x->evidence;

	v->fsyncs = x->audit.acks;
	for (size_t i = 0; i < x->nr_flushes; i++) {
		const struct flush_entry *f = &x->flush[i];

		if (f->entry < x->audit.begin_entry ||
		    f->entry > x->audit.end_entry)
			continue;
		if (f->flags & LW_METADATA)
			v->journal_flushes++;
		else
			v->own_flushes++;
	}
	for (size_t i = 0; x->traced && i < x->nr_blocks; i++) {
		const struct block_write *w = &x->block[i];
		const struct trace_bio *b = trace_entry(&x->trace, w->entry);
		const struct trace_bio *ack;

		if (!b || b->submitted == TRACE_NEVER)
			continue;
		/* one block of each fsync will do */
		if (model_op(m, w->writer, w->op)->block != w->block)
			continue;
		ack = trace_entry(&x->trace, *ack_of(x, w->writer, w->op));
		if (!ack || ack->submitted == TRACE_NEVER)
			continue;
		v->traced++;
		v->not_awaited += b->completed > ack->submitted ||
				  flushed_between(x, ack->pid, b->submitted,
						  b->completed);
	}
}

/* What a loss is about, on the trace's time: lines */
struct times {
	uint64_t	previous;	/* the writer's ack before */
	uint64_t	submitted, completed;	/* of the write, all of it */
	uint64_t	ack;
};

/*
 * The journal's write that flush @id is the preflush of: device-mapper splits the
 * two, and both name the same sector. Or TRACE_NEVER.
 */
static uint64_t journal_of(const struct explain *x, uint64_t id)
{
	const struct trace *t = &x->trace;
	const struct trace_bio *f = &t->bio[id];

	if (!(f->flags & LW_METADATA))
		return TRACE_NEVER;
	/* the target numbers bios as they come in */
	for (uint64_t i = id + 1; i < t->nr; i++) {
		const struct trace_bio *b = &t->bio[i];

		if (b->submitted != TRACE_NEVER && b->flags & LW_METADATA &&
		    !(b->flags & LW_FLUSH) && b->sector == f->sector)
			return i;
	}
	return TRACE_NEVER;
}

static enum explain_relation relation(const struct trace_bio *f,
				      const struct times *t)
{
	if (t->completed == TRACE_NEVER || f->submitted < t->completed)
		return FLUSH_EARLY;
	if (f->submitted > t->ack)
		return FLUSH_AFTER;
	if (f->completed > t->ack)
		return FLUSH_LATE;
	return f->error ? FLUSH_FAILED : FLUSH_COVERS;
}

/*
 * Could fsync have taken early flush @f for one that covers the write? One that
 * was submitted since the fsync began could pass for it if it completed before
 * the ack; an iclog's preflush also if fsync waited for the iclog after its data.
 */
static bool may_mislead(const struct explain *x, const struct explain_flush *f,
			const struct times *t)
{
	const struct trace_bio *b = &x->trace.bio[f->bio], *j;

	if (f->relation != FLUSH_EARLY || b->error || b->completed > t->ack)
		return false;
	if (b->submitted > t->previous)
		return true;
	if (f->journal == TRACE_NEVER)
		return false;
	j = &x->trace.bio[f->journal];
	return j->completed > t->completed && j->completed < t->ack;
}

/* All that were in flight, from the ack before on, up to the first one after */
static void collect_flushes(struct explain *x, struct explanation *e,
			    const struct times *t)
{
	enum { LONGEST = 64 };	/* flushes that one can be in flight beside */
	size_t first = first_after(x, t->previous), max = 0;

	first = first > LONGEST ? first - LONGEST : 0;
	for (size_t i = first; i < x->nr_by_submit; i++) {
		const struct trace_bio *b = &x->trace.bio[x->by_submit[i]];
		struct explain_flush f = {
			.entry = b->entry,
			.bio = x->by_submit[i],
			.relation = relation(b, t),
		};

		f.journal = journal_of(x, f.bio);
		if (e->next == TRACE_NEVER && f.relation != FLUSH_EARLY)
			e->next = f.bio;
		if (b->completed < t->previous && !may_mislead(x, &f, t))
			continue;
		grow(e->flush, e->nr_flushes, max);
		e->flush[e->nr_flushes++] = f;
		if (f.relation == FLUSH_AFTER)
			break;
	}
}

/* Without a trace, those that the log has up to the one that brought the write */
static void list_flushes(struct explain *x, struct explanation *e)
{
	size_t max = 0;

	for (size_t i = 0; i < x->nr_flushes; i++) {
		const struct flush_entry *f = &x->flush[i];

		if (f->entry < e->previous)
			continue;
		if (f->entry > e->loss->ack_entry && e->holder == AUDIT_NEVER)
			break;
		if (e->holder != AUDIT_NEVER && f->entry > e->holder)
			break;
		grow(e->flush, e->nr_flushes, max);
		e->flush[e->nr_flushes++] = (struct explain_flush){
			.entry = f->entry, .bio = TRACE_NEVER,
			.journal = TRACE_NEVER, .relation = FLUSH_UNTRACED,
		};
	}
}

/* The last flush near of which @is holds, or TRACE_NEVER */
static uint64_t last_flush(const struct explain *x, const struct explanation *e,
			   enum explain_relation is, const struct times *mislead)
{
	for (size_t i = e->nr_flushes; i-- > 0;) {
		const struct explain_flush *f = &e->flush[i];

		if (f->relation == is &&
		    (!mislead || may_mislead(x, f, mislead)))
			return f->bio;
	}
	return TRACE_NEVER;
}

static void judge(const struct explain *x, struct explanation *e,
		  const struct times *t, int32_t pid)
{
	if ((e->named = last_flush(x, e, FLUSH_COVERS, NULL)) != TRACE_NEVER)
		e->cause = CAUSE_TAKEN_BY_ANOTHER;
	else if (t->completed == TRACE_NEVER || t->completed > t->ack ||
		 flushed_between(x, pid, t->submitted, t->completed))
		e->cause = CAUSE_WRITE_NOT_AWAITED;
	else if ((e->named = last_flush(x, e, FLUSH_FAILED, NULL)) != TRACE_NEVER)
		e->cause = CAUSE_FLUSH_FAILED;
	else if ((e->named = last_flush(x, e, FLUSH_EARLY, t)) != TRACE_NEVER)
		e->cause = CAUSE_SUBMITTED_EARLY;
	else if ((e->named = last_flush(x, e, FLUSH_LATE, NULL)) != TRACE_NEVER)
		e->cause = CAUSE_COMPLETED_LATE;
	else
		e->cause = CAUSE_NEVER_SENT;
}

/* The writes with the data that the ack promised, and that come too late */
static void find_writes(struct explain *x, struct explanation *e)
{
	const struct audit_loss *l = e->loss;
	uint32_t op = UINT32_MAX;
	size_t max = 0;

	for (size_t i = 0; i < x->nr_blocks; i++) {
		const struct block_write *w = &x->block[i];

		if (w->entry <= l->from_entry || w->writer != l->writer ||
		    w->file != l->file || w->block != l->block || w->op < l->op)
			continue;
		if (w->entry > l->until_entry)
			break;
		/* those of one operation: the ack's if they are there */
		if (op == UINT32_MAX)
			op = w->op;
		if (w->op != op)
			continue;
		grow(e->write, e->nr_writes, max);
		e->write[e->nr_writes++] = w->entry;
	}
}

/* The last write of the ack's data or newer ahead of entry @before */
static uint64_t last_write(const struct explain *x, const struct audit_loss *l,
			   uint64_t before)
{
	uint64_t entry = AUDIT_NEVER;

	for (size_t i = 0; i < x->nr_blocks; i++) {
		const struct block_write *w = &x->block[i];

		if (w->entry >= before)
			break;
		if (w->writer == l->writer && w->file == l->file &&
		    w->block == l->block && w->op >= l->op)
			entry = w->entry;
	}
	return entry;
}

static uint64_t holder_of(const struct explain *x, const struct explanation *e)
{
	uint64_t last = e->over;

	if (last == AUDIT_NEVER && e->nr_writes)
		last = e->write[e->nr_writes - 1];
	for (size_t i = 0; last != AUDIT_NEVER && i < x->nr_flushes; i++)
		if (x->flush[i].entry > last)
			return x->flush[i].entry;
	return AUDIT_NEVER;
}

static bool record_has(struct explain *x, const struct journal_write *j,
		       uint64_t ino)
{
	struct lw_entry e;

	lw_seek(&x->log, j->entry, j->header_off);
	return lw_next(&x->log, &e) == 1 && journal_has_inode(e.data, e.len, ino);
}

static void find_journal(struct explain *x, struct explanation *e)
{
	const struct audit_loss *l = e->loss;
	size_t first = 0;

	e->before.entry = e->after.entry = AUDIT_NEVER;
	e->ino = x->ino[(size_t)l->writer * x->cap.model.p.files + l->file];
	if (!e->ino)
		return;
	while (first < x->nr_journal && x->journal[first].entry < l->ack_entry)
		first++;
	for (size_t i = first; i-- > 0;) {
		if (!record_has(x, &x->journal[i], e->ino))
			continue;
		e->before = (struct explain_journal){ x->journal[i].entry,
			x->journal[i].cycle, x->journal[i].block };
		break;
	}
	for (size_t i = first; i < x->nr_journal; i++) {
		if (!record_has(x, &x->journal[i], e->ino))
			continue;
		e->after = (struct explain_journal){ x->journal[i].entry,
			x->journal[i].cycle, x->journal[i].block };
		break;
	}
}

/* The times of the @nr writes at @entry; false if some are not in the trace */
static bool find_times(const struct explain *x, const struct explanation *e,
		       const uint64_t *entry, size_t nr, struct times *t)
{
	const struct trace_bio *ack = trace_entry(&x->trace, e->loss->ack_entry);
	const struct trace_bio *previous = trace_entry(&x->trace, e->previous);

	*t = (struct times){ .submitted = TRACE_NEVER };
	if (!nr || !ack || ack->submitted == TRACE_NEVER)
		return false;
	t->ack = ack->submitted;
	if (previous && previous->submitted != TRACE_NEVER)
		t->previous = previous->submitted;
	for (size_t i = 0; i < nr; i++) {
		const struct trace_bio *b = trace_entry(&x->trace, entry[i]);

		if (!b || b->submitted == TRACE_NEVER)
			return false;
		if (b->submitted < t->submitted)
			t->submitted = b->submitted;
		if (b->completed > t->completed)
			t->completed = b->completed;
	}
	return true;
}

/*
 * Older data went over the block. If they had completed before the newer ones were
 * submitted, then the device was right, and the log is not.
 */
static void judge_over(const struct explain *x, struct explanation *e)
{
	uint64_t newer = last_write(x, e->loss, e->over);
	const struct trace_bio *old = trace_entry(&x->trace, e->over);
	const struct trace_bio *new = trace_entry(&x->trace, newer);

	if (!old || !new || new->submitted == TRACE_NEVER)
		return;
	e->cause = old->completed < new->submitted ? CAUSE_TAKEN_BY_ANOTHER :
		   CAUSE_OVERTAKEN;
}

static bool is_audits(const struct explain *x, const struct audit_loss *l)
{
	return l >= x->audit.loss && l < x->audit.loss + x->audit.nr_losses;
}

/* The data are there: it is recovery that does not lead to them */
static void explain_metadata(struct explain *x, struct explanation *e)
{
	struct times t;

	e->in_time = last_write(x, e->loss, e->point + 1);
	if (e->in_time == AUDIT_NEVER)
		return;
	e->cause = CAUSE_METADATA_LATE;
	if (find_times(x, e, &e->in_time, 1, &t))
		collect_flushes(x, e, &t);
}

static enum explain_cause explain_alone(struct explain *x,
					const struct audit_loss *l,
					struct explanation *e)
{
	const struct trace_bio *ack;
	struct times t;

	*e = (struct explanation){
		.loss = l, .point = l->from_entry, .over = AUDIT_NEVER,
		.in_time = AUDIT_NEVER, .named = TRACE_NEVER, .next = TRACE_NEVER,
		.previous = l->op ? *ack_of(x, l->writer, l->op - 1) :
			    x->audit.begin_entry,
	};
	if (!is_audits(x, l)) {
		explain_metadata(x, e);
		return e->cause;
	}
	find_writes(x, e);
	if (l->from_entry != l->ack_entry)
		e->over = l->from_entry;
	e->holder = holder_of(x, e);
	if (!x->traced) {
		list_flushes(x, e);
		return e->cause;
	}
	if (e->over != AUDIT_NEVER) {
		judge_over(x, e);
	} else if (find_times(x, e, e->write, e->nr_writes, &t)) {
		ack = trace_entry(&x->trace, l->ack_entry);
		collect_flushes(x, e, &t);
		judge(x, e, &t, ack->pid);
	}
	return e->cause;
}

/*
 * An early flush is what misleads several kinds of bugs. Which of them this kernel
 * has, other fsyncs of the capture tell.
 */
static enum explain_cause infer(const struct explain *x, enum explain_cause cause)
{
	const struct explain_evidence *v = &x->evidence;

	if (cause != CAUSE_SUBMITTED_EARLY && cause != CAUSE_COMPLETED_LATE)
		return cause;
	if (v->not_awaited * NOT_AWAITED_RARE > v->traced)
		return CAUSE_WRITE_NOT_AWAITED;
	if (!v->own_flushes && v->alone[CAUSE_NEVER_SENT])
		return CAUSE_NEVER_SENT;
	return cause;
}

void explain_loss(struct explain *x, const struct audit_loss *l,
		  struct explanation *e)
{
	enum explain_cause alone = explain_alone(x, l, e);

	find_journal(x, e);
	e->cause = infer(x, alone);
	e->inferred = e->cause != alone;
}

int explain_mounted(struct explain *x, const struct verify_loss *v,
		    uint64_t point, struct audit_loss *l)
{
	const struct model *m = &x->cap.model;

	if (v->op < 0 || v->op >= m->p.ops || v->writer >= m->p.writers ||
	    v->file >= m->p.files ||
	    v->block >= model_file_blocks(m, v->writer, v->file))
		return -EINVAL;
	*l = (struct audit_loss){
		.kind = v->kind, .writer = v->writer, .file = v->file,
		.block = v->block, .op = v->op,
		.ack_entry = *ack_of(x, v->writer, v->op),
		.from_entry = point, .until_entry = AUDIT_NEVER,
	};
	return l->ack_entry <= point ? 0 : -EINVAL;
}

void explain_free(struct explanation *e)
{
	free(e->write);
	free(e->flush);
	memset(e, 0, sizeof(*e));
}

static void explain_all(struct explain *x)
{
	struct explain_evidence *v = &x->evidence;
	struct explanation e;

	for (size_t i = 0; i < x->audit.nr_losses; i++) {
		v->alone[explain_alone(x, &x->audit.loss[i], &e)]++;
		explain_free(&e);
	}
	for (int c = 0; c < NR_CAUSES; c++)
		v->by_cause[infer(x, c)] += v->alone[c];
}

int explain_open(struct explain *x, const char *dir, char *error, size_t size)
{
	CLEANUP_FREE char *path = xasprintf("%s/trace", dir);
	const struct model_params *p = &x->cap.model.p;
	int ret;

	memset(x, 0, sizeof(*x));
	ret = capture_load(&x->cap, dir, false, error, size);
	if (ret)
		return ret;
	ret = lw_open(&x->log, x->cap.log, 0);
	if (ret) {
		snprintf(error, size, "%s", x->log.error);
		return ret;
	}
	ret = audit_run(&x->audit, &x->log, &x->cap.model, error, size);
	if (ret)
		return ret;
	x->ack = xcalloc((size_t)p->writers * p->ops, sizeof(*x->ack));
	ret = read_log(x, error, size);
	if (!ret)
		ret = read_inodes(x, dir, error, size);
	if (ret)
		return ret;
	ret = trace_load(&x->trace, path, error, size);
	if (ret && ret != -ENOENT)
		return ret;
	x->traced = !ret;
	if (x->traced)
		index_trace(x);
	gather_evidence(x);
	explain_all(x);
	return 0;
}

void explain_close(struct explain *x)
{
	trace_free(&x->trace);
	audit_free(&x->audit);
	lw_close(&x->log);
	capture_free(&x->cap);
	free(x->block);
	free(x->ack);
	free(x->flush);
	free(x->journal);
	free(x->by_submit);
	free(x->pid);
	free(x->ino);
	memset(x, 0, sizeof(*x));
}
