// SPDX-License-Identifier: GPL-2.0-only
/* lwexplain: the story of a loss in time order, for people. */

#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwexplain.h"
#include "util.h"

/* One line of the story */
struct event {
	uint64_t	order;		/* the trace's line, or the log's entry */
	bool		timed;
	double		ms;		/* since the ack */
	uint64_t	entry;		/* or AUDIT_NEVER */
	char		*what;
};

struct story {
	const struct report *r;
	struct event	*event;
	size_t		nr, max;
};

static const struct trace_bio *bio_of(const struct report *r, uint64_t id)
{
	return id == TRACE_NEVER ? NULL : &r->x->trace.bio[id];
}

char *submitter(const struct report *r, const struct trace_bio *b)
{
	int64_t writer = explain_writer(r->x, b->pid);

	if (writer >= 0)
		return xasprintf("writer %d", (int)writer);
	return xasprintf("%s-%d", b->comm, b->pid);
}

double since_ack(const struct report *r, uint64_t us)
{
	const struct trace_bio *ack = trace_entry(&r->x->trace,
						  r->e->loss->ack_entry);

	return ack ? ((double)us - (double)ack->submit_us) / 1000 : 0;
}

/* "entry 4711", or that it has none */
static char *entry_text(uint64_t entry)
{
	if (entry == AUDIT_NEVER)
		return xstrdup("one that is not in the log");
	return xasprintf("entry %" PRIu64, entry);
}

static char *flush_text(const struct report *r, uint64_t id)
{
	const struct trace_bio *b = bio_of(r, id);
	CLEANUP_FREE char *entry = entry_text(b->entry);
	CLEANUP_FREE char *who = submitter(r, b);

	return xasprintf("%s (%s, by %s)", entry, b->flags & LW_METADATA ?
			 "the preflush of a journal write" : "a flush of its own",
			 who);
}

static char *next_text(const struct report *r)
{
	const struct trace_bio *b = bio_of(r, r->e->next);
	CLEANUP_FREE char *entry = NULL;
	double ms;

	if (!b)
		return xstrdup("No flush was submitted after the write had completed.");
	entry = entry_text(b->entry);
	ms = since_ack(r, b->submit_us);
	return xasprintf("The first flush to cover it, %s, was submitted %.3f ms %s the ack.",
			 entry, fabs(ms), ms < 0 ? "before" : "after");
}

static char *metadata_text(const struct report *r)
{
	const struct explanation *e = r->e;
	const struct trace_bio *b = trace_entry(&r->x->trace, e->after.entry);
	static const char in_time[] = "The data are in the log in time. What leads to them is not: recovery does not find them.";

	if (!e->ino || e->after.entry == AUDIT_NEVER)
		return xstrdup(in_time);
	if (!b || b->submitted == TRACE_NEVER || b->completed == TRACE_NEVER)
		return xasprintf("%s The next journal record with inode %" PRIu64 " is entry %" PRIu64 ".",
				 in_time, e->ino, e->after.entry);
	return xasprintf("%s The next journal record with inode %" PRIu64 ", entry %" PRIu64 ", was submitted %.3f ms %s the ack, and completed %.3f ms after it.",
			 in_time, e->ino, e->after.entry,
			 fabs(since_ack(r, b->submit_us)),
			 since_ack(r, b->submit_us) < 0 ? "before" : "after",
			 since_ack(r, b->complete_us));
}

char *cause_text(const struct report *r)
{
	const struct explain_evidence *v = &r->x->evidence;
	const struct explanation *e = r->e;
	CLEANUP_FREE char *named = e->named == TRACE_NEVER ? NULL :
				   flush_text(r, e->named);
	CLEANUP_FREE char *holder = entry_text(e->holder);
	CLEANUP_FREE char *next = next_text(r);

	switch (e->cause) {
	case CAUSE_UNKNOWN:
		return xstrdup("The capture has no trace of when the write completed: which flush had to cover it cannot be told.");
	case CAUSE_TAKEN_BY_ANOTHER:
		if (!named)
			return xasprintf("Older data had completed before newer ones were submitted, and are in the log after them, with FLUSH %s. No device loses data so: the log is wrong, and the loss false.",
					 holder);
		return xasprintf("FLUSH %s covers the write and completed before the ack. The log has the write later, with FLUSH %s, which had been submitted earlier and had taken it. No device loses data so: the log is wrong, and the loss false.",
				 named, holder);
	case CAUSE_WRITE_NOT_AWAITED:
		if (e->inferred)
			return xasprintf("FLUSH %s was submitted before the write had completed. fsync does not wait for its writes: %" PRIu64 " of %" PRIu64 " fsyncs of this capture sent their flush or returned before their write had completed. %s",
					 named ?: "of another", v->not_awaited,
					 v->traced, next);
		return xasprintf("The fsync did not wait for the write: its own flush, or its ack, came before the write had completed. %s",
				 next);
	case CAUSE_FLUSH_FAILED:
		return xasprintf("FLUSH %s covers the write, but it failed: errno %d.",
				 named, -bio_of(r, e->named)->error);
	case CAUSE_SUBMITTED_EARLY:
		return xasprintf("FLUSH %s completed before the ack, but it was submitted before the write had completed, and so it does not cover it. %s%s", named, next, v->own_flushes ? "" :
			" No fsync of this capture sent a flush of its own.");
	case CAUSE_COMPLETED_LATE:
		return xasprintf("FLUSH %s covers the write, but it had not completed at the ack: nobody waited for it.",
				 named);
	case CAUSE_NEVER_SENT:
		if (e->inferred)
			return xasprintf("No flush was sent for the write. None of the %" PRIu64 " fsyncs of this capture sent one of its own. %s",
					 v->fsyncs, next);
		return xasprintf("No flush was sent for the write. %s", next);
	case CAUSE_OVERTAKEN:
		return xasprintf("Older data of the block were still in flight when newer ones were submitted, and are in the log after them, at entry %" PRIu64 ".",
				 e->over);
	case CAUSE_METADATA_LATE:
		return metadata_text(r);
	case NR_CAUSES:
		break;
	}
	return NULL;
}

__attribute__((format(printf, 5, 6)))
static void tell(struct story *s, uint64_t line, uint64_t us, uint64_t entry,
		 const char *fmt, ...)
{
	struct event *e;
	va_list ap;

	if (s->nr == s->max) {
		s->max = s->max ? 2 * s->max : 32;
		s->event = xrealloc(s->event, s->max, sizeof(*s->event));
	}
	e = &s->event[s->nr++];
	*e = (struct event){ .order = line, .entry = entry };
	if (s->r->x->traced && line != TRACE_NEVER) {
		e->timed = true;
		e->ms = since_ack(s->r, us);
	}
	va_start(ap, fmt);
	if (vasprintf(&e->what, fmt, ap) < 0)
		die(EXIT_LOSS, "out of memory");
	va_end(ap);
}

static void tell_mark(struct story *s, uint64_t entry, const char *what,
		      uint32_t op)
{
	const struct trace_bio *b = trace_entry(&s->r->x->trace, entry);
	const struct audit_loss *l = s->r->e->loss;

	tell(s, s->r->x->traced ? b ? b->submitted : 0 : entry,
	     b ? b->submit_us : 0, entry, "writer %u: %s operation %u",
	     l->writer, what, op);
}

static void tell_write(struct story *s, uint64_t entry, const char *what)
{
	const struct trace_bio *b = trace_entry(&s->r->x->trace, entry);
	const struct audit_loss *l = s->r->e->loss;
	CLEANUP_FREE char *who = NULL;

	if (!s->r->x->traced)
		tell(s, entry, 0, entry, "%s of w%u/f%u block %u logged", what,
		     l->writer, l->file, l->block);
	if (!b)
		return;
	who = submitter(s->r, b);
	tell(s, b->submitted, b->submit_us, entry,
	     "%s of w%u/f%u block %u by %s submitted", what, l->writer,
	     l->file, l->block, who);
	if (b->completed != TRACE_NEVER)
		tell(s, b->completed, b->complete_us, entry, "%s completed",
		     what);
}

static const char *const relation_texts[NR_RELATIONS] = {
	[FLUSH_COVERS]	= "covers the write",
	[FLUSH_FAILED]	= "covers the write",
	[FLUSH_EARLY]	= "too early",
	[FLUSH_LATE]	= "covers the write",
	[FLUSH_AFTER]	= "covers the write",
	[FLUSH_UNTRACED] = "",
};

static void tell_flush(struct story *s, const struct explain_flush *f)
{
	const struct trace_bio *b = bio_of(s->r, f->bio);
	const struct trace_bio *j = bio_of(s->r, f->journal);
	CLEANUP_FREE char *ahead = j && j->entry != TRACE_NEVER ?
		xasprintf(", preflush of %" PRIu64 ",", j->entry) :
		xstrdup("");
	CLEANUP_FREE char *who = NULL;

	if (!b) {
		tell(s, f->entry, 0, f->entry, "FLUSH logged");
		return;
	}
	who = submitter(s->r, b);
	tell(s, b->submitted, b->submit_us, b->entry,
	     "FLUSH by %s%s submitted: %s", who, ahead,
	     relation_texts[f->relation]);
	if (b->completed != TRACE_NEVER)
		tell(s, b->completed, b->complete_us, b->entry, "FLUSH %s",
		     b->error ? "failed" : "completed");
	if (j && j->completed != TRACE_NEVER)
		tell(s, j->completed, j->complete_us, j->entry,
		     "journal write completed");
}

/* Is journal write @entry told of together with its preflush? */
static bool is_told(const struct report *r, uint64_t entry)
{
	for (size_t i = 0; i < r->e->nr_flushes; i++) {
		const struct trace_bio *b = bio_of(r, r->e->flush[i].journal);

		if (b && b->entry == entry)
			return true;
	}
	return false;
}

static void tell_journal(struct story *s, const struct explain_journal *j)
{
	const struct trace_bio *b;

	if (j->entry == AUDIT_NEVER)
		return;
	b = trace_entry(&s->r->x->trace, j->entry);
	tell(s, b ? b->submitted : s->r->x->traced ? 0 : j->entry,
	     b ? b->submit_us : 0, j->entry,
	     "journal record %u:%u with inode %" PRIu64 " %s", j->cycle,
	     j->block, s->r->e->ino, b ? "submitted" : "logged");
	if (b && b->completed != TRACE_NEVER && !is_told(s->r, j->entry))
		tell(s, b->completed, b->complete_us, j->entry,
		     "journal write completed");
}

static int by_order(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	return a->order < b->order ? -1 : a->order > b->order;
}

static void print_story(const struct report *r)
{
	struct story s = { .r = r };
	const struct explanation *e = r->e;

	if (e->loss->op)
		tell_mark(&s, e->previous, "ack of", e->loss->op - 1);
	tell_mark(&s, e->loss->ack_entry, "ACK of", e->loss->op);
	for (size_t i = 0; i < e->nr_writes; i++)
		tell_write(&s, e->write[i], "write");
	if (e->over != AUDIT_NEVER)
		tell_write(&s, e->over, "older write");
	if (e->in_time != AUDIT_NEVER)
		tell_write(&s, e->in_time, "write");
	for (size_t i = 0; i < e->nr_flushes; i++)
		tell_flush(&s, &e->flush[i]);
	tell_journal(&s, &e->before);
	tell_journal(&s, &e->after);
	qsort(s.event, s.nr, sizeof(*s.event), by_order);

	printf("\n%10s %9s  %s\n", "MS", "ENTRY", "WHAT");
	for (size_t i = 0; i < s.nr; i++) {
		const struct event *v = &s.event[i];

		if (v->timed)
			printf("%10.3f", v->ms);
		else
			printf("%10s", "-");
		if (v->entry != AUDIT_NEVER)
			printf(" %9" PRIu64, v->entry);
		else
			printf(" %9s", "-");
		printf("  %s\n", v->what);
		free(v->what);
	}
	free(s.event);
}

/* Words up to column 80 */
static void print_wrapped(const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column && column + 1 + n > 80) {
			putchar('\n');
			column = 0;
		}
		column += printf("%s%.*s", column ? " " : "", (int)n, text);
		text += n + (text[n] == ' ');
	}
	putchar('\n');
}

static void print_minimal(const struct report *r)
{
	json_t *list = json_object_get(r->minimal, "entries"), *v;
	bool smallest = json_is_true(json_object_get(r->minimal, "smallest"));
	size_t i;

	if (!list)
		return;
	if (!json_array_size(list)) {
		printf("no entries after it bring the block back%s\n",
		       smallest ? "" : ", as far as was tried");
		return;
	}
	printf("%s set of entries that brings the block back:",
	       smallest ? "smallest" : "not reduced any further, a");
	json_array_foreach(list, i, v)
		printf(" %lld", (long long)json_integer_value(v));
	printf("\n  (state at entry %" PRIu64 ", mounted %lld times: lost without them, there with them)\n",
	       r->e->point, (long long)json_integer_value(
		json_object_get(r->minimal, "trials")));
}

void print_text(const struct report *r)
{
	const struct explanation *e = r->e;
	const struct audit_loss *l = e->loss;
	CLEANUP_FREE char *why = cause_text(r);

	printf("lost: w%u/f%u block %u, %s: operation %u of writer %u, acknowledged at entry %" PRIu64 "\n",
	       l->writer, l->file, l->block, loss_kind_name(l->kind), l->op,
	       l->writer, l->ack_entry);
	if (e->in_time != AUDIT_NEVER)
		printf("lost by a mount of the state at entry %" PRIu64 "\n",
		       l->from_entry);
	else if (l->until_entry == AUDIT_NEVER)
		printf("lost from entry %" PRIu64 " to the end\n",
		       l->from_entry);
	else
		printf("lost from entry %" PRIu64 " until entry %" PRIu64 "\n",
		       l->from_entry, l->until_entry);
	print_story(r);
	printf("\ncause: %s\n", explain_cause_name(e->cause));
	print_wrapped(why);
	putchar('\n');
	print_minimal(r);
	if (r->x->audit.nr_losses)
		printf("losses by cause:");
	for (int c = 0; c < NR_CAUSES; c++)
		if (r->x->evidence.by_cause[c])
			printf(" %" PRIu64 " %s", r->x->evidence.by_cause[c],
			       explain_cause_name(c));
	if (r->x->audit.nr_losses)
		putchar('\n');
	if (r->x->trace.dropped)
		printf("the trace lacks the last %" PRIu64 " events: there was no room for them\n",
		       r->x->trace.dropped);
	printf("reproduce: ackproof reproduce %s %s\n", r->token, r->capture);
}
