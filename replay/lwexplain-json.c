// SPDX-License-Identifier: GPL-2.0-only
/* lwexplain: an explanation for machines. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "lwexplain.h"
#include "util.h"

static json_t *number_or_null(uint64_t v)
{
	return v == UINT64_MAX ? json_null() : json_integer(v);
}

/* Times in milliseconds since the ack */
static json_t *json_bio(const struct report *r, const struct trace_bio *b)
{
	CLEANUP_FREE char *who = b->submitted == TRACE_NEVER ? NULL :
				 submitter(r, b);

	return json_pack("{s:o, s:s*, s:o, s:o, s:i}",
			 "entry", number_or_null(b->entry), "by", who,
			 "submitted_ms", who ?
				json_real(since_ack(r, b->submit_us)) :
				json_null(),
			 "completed_ms", b->completed == TRACE_NEVER ?
				json_null() :
				json_real(since_ack(r, b->complete_us)),
			 "error", b->error);
}

static json_t *json_writes(const struct report *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->e->nr_writes; i++) {
		const struct trace_bio *b = trace_entry(&r->x->trace,
							r->e->write[i]);

		json_array_append_new(list, b ? json_bio(r, b) :
			json_pack("{s:I}", "entry",
				  (json_int_t)r->e->write[i]));
	}
	return list;
}

static json_t *json_flushes(const struct report *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->e->nr_flushes; i++) {
		const struct explain_flush *f = &r->e->flush[i];
		const struct trace_bio *t = r->x->trace.bio;
		json_t *j = f->bio == TRACE_NEVER ?
			json_pack("{s:I}", "entry", (json_int_t)f->entry) :
			json_bio(r, &t[f->bio]);

		json_object_set_new(j, "relation",
			json_string(explain_relation_name(f->relation)));
		json_object_set_new(j, "named",
				    json_boolean(f->bio != TRACE_NEVER &&
					 f->bio == r->e->named));
		json_object_set_new(j, "journal_entry",
			f->journal == TRACE_NEVER ? json_null() :
			number_or_null(t[f->journal].entry));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *json_record(const struct explain_journal *j)
{
	if (j->entry == AUDIT_NEVER)
		return json_null();
	return json_pack("{s:I, s:I, s:I}", "entry", (json_int_t)j->entry,
			 "cycle", (json_int_t)j->cycle,
			 "block", (json_int_t)j->block);
}

static json_t *json_causes(const struct report *r)
{
	json_t *j = json_object();

	for (int c = 0; c < NR_CAUSES; c++)
		json_object_set_new(j, explain_cause_name(c),
			json_integer(r->x->evidence.by_cause[c]));
	return j;
}

void print_json(const struct report *r)
{
	const struct explain_evidence *v = &r->x->evidence;
	const struct explanation *e = r->e;
	const struct audit_loss *l = e->loss;
	CLEANUP_FREE char *why = cause_text(r);
	json_t *j;

	j = json_pack("{s:s, s:o, s:I, s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:O?, s:o, s:o, s:s}",
		"capture", r->capture,
		"loss", json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:o}",
			"kind", loss_kind_name(l->kind), "writer", l->writer,
			"file", l->file, "block", l->block, "op", l->op,
			"ack_entry", (json_int_t)l->ack_entry,
			"from_entry", (json_int_t)l->from_entry,
			"until_entry", number_or_null(l->until_entry)),
		"point", (json_int_t)e->point,
		"cause", explain_cause_name(e->cause),
		"inferred", e->inferred,
		"why", why,
		"writes", json_writes(r),
		"written_over_by", number_or_null(e->over),
		"written_in_time", number_or_null(e->in_time),
		"logged_with_flush", number_or_null(e->holder),
		"flushes", json_flushes(r),
		"inode", e->ino ? json_integer(e->ino) : json_null(),
		"journal_before", json_record(&e->before),
		"journal_after", json_record(&e->after),
		"minimal", r->minimal,
		"capture_wide", json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I}",
			"traced", r->x->traced,
			"fsyncs", (json_int_t)v->fsyncs,
			"own_flushes", (json_int_t)v->own_flushes,
			"journal_flushes", (json_int_t)v->journal_flushes,
			"fsyncs_traced", (json_int_t)v->traced,
			"not_awaited", (json_int_t)v->not_awaited,
			"events_dropped", (json_int_t)r->x->trace.dropped),
		"losses_by_cause", json_causes(r),
		"token", r->token);
	if (!j || json_dumpf(j, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)))
		die(EXIT_LOSS, "cannot print the result as JSON");
	putchar('\n');
	json_decref(j);
}
