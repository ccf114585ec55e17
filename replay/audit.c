// SPDX-License-Identifier: GPL-2.0-only
/* The check of every ack from the log alone; see audit.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "util.h"

static const char *const kind_names[NR_LOSS_KINDS] = {
	[LOSS_MISSING]	= "missing",
	[LOSS_STALE]	= "stale",
	[LOSS_TORN]	= "torn",
	[LOSS_FOREIGN]	= "foreign",
	[LOSS_ZERO]	= "zero",
};

const char *loss_kind_name(enum loss_kind kind)
{
	return kind_names[kind];
}

/* What a sector holds that is no operation's */
enum { HOLDS_NOTHING = -1, HOLDS_ZERO = -2, HOLDS_FOREIGN = -3 };

#define NONE	UINT64_MAX

/* One sector of one block of the run, a "slot" */
struct slot {
	int64_t		op;	/* what it holds, or one of HOLDS_* */
	uint64_t	at;	/* device sector (512 bytes) where it lives */
};

struct block {
	int64_t		acked;	/* last acknowledged operation, or -1 */
	uint64_t	ack_entry;
	uint64_t	open;	/* first open loss, or NONE */
	uint64_t	seen;	/* last entry that touched it, plus one */
	uint32_t	writer, file, block;
};

/* device sector -> slot: open addressing, keys are never removed */
struct owner {
	uint64_t	sector;	/* plus one, 0 is free */
	uint64_t	slot;
};

struct run {
	struct audit	*a;
	const struct model *m;
	struct slot	*slot;
	struct block	*block;
	int64_t		*last_ack;	/* of each writer */
	uint8_t		*lost;		/* one per writer and operation */
	struct owner	*owner;
	uint64_t	nr_owners, owner_mask;
	uint32_t	*touched;	/* blocks that this entry touched */
	size_t		nr_touched, max_touched;
	size_t		max_losses;
};

static uint64_t hash_sector(uint64_t sector)
{
	return (sector * 0x9e3779b97f4a7c15ULL) >> 24;
}

static struct owner *find_owner(const struct run *r, uint64_t sector)
{
	uint64_t i = hash_sector(sector);

	for (;; i++) {
		struct owner *o = &r->owner[i & r->owner_mask];

		if (!o->sector || o->sector == sector + 1)
			return o;
	}
}

static void set_owner(struct run *r, uint64_t sector, uint64_t slot)
{
	struct owner *o = find_owner(r, sector);

	if (!o->sector && ++r->nr_owners > r->owner_mask / 2) {
		struct owner *old = r->owner;
		uint64_t n = r->owner_mask + 1;

		r->owner = xcalloc(2 * n, sizeof(*r->owner));
		r->owner_mask = 2 * n - 1;
		for (uint64_t i = 0; i < n; i++)
			if (old[i].sector)
				*find_owner(r, old[i].sector - 1) = old[i];
		free(old);
		o = find_owner(r, sector);
	}
	o->sector = sector + 1;
	o->slot = slot;
}

static void touch(struct run *r, uint64_t slot, uint64_t entry)
{
	uint32_t b = slot / SECTORS_PER_BLOCK;

	if (r->block[b].seen == entry + 1)
		return;
	r->block[b].seen = entry + 1;
	if (r->nr_touched == r->max_touched) {
		r->max_touched = r->max_touched ? 2 * r->max_touched : 64;
		r->touched = xrealloc(r->touched, r->max_touched,
				      sizeof(*r->touched));
	}
	r->touched[r->nr_touched++] = b;
}

/* Something that is not a tag went over device sector @sector. */
static void overwrite(struct run *r, const struct owner *o, uint64_t sector,
		      int64_t holds, uint64_t entry)
{
	if (o->sector != sector + 1 || r->slot[o->slot].at != sector)
		return;
	r->slot[o->slot].op = holds;
	touch(r, o->slot, entry);
}

static bool whole(const struct run *r, uint32_t b, int64_t op)
{
	const struct slot *s = &r->slot[(uint64_t)b * SECTORS_PER_BLOCK];

	for (int i = 0; i < SECTORS_PER_BLOCK; i++)
		if (s[i].op < op)
			return false;
	return true;
}

static enum loss_kind classify(const struct run *r, uint32_t b)
{
	const struct slot *s = &r->slot[(uint64_t)b * SECTORS_PER_BLOCK];
	bool same = true;

	for (int i = 0; i < SECTORS_PER_BLOCK; i++) {
		if (s[i].op == HOLDS_FOREIGN)
			return LOSS_FOREIGN;
		same &= s[i].op == s[0].op;
	}
	if (!same)
		return LOSS_TORN;
	if (s[0].op == HOLDS_NOTHING)
		return LOSS_MISSING;
	return s[0].op == HOLDS_ZERO ? LOSS_ZERO : LOSS_STALE;
}

static void open_loss(struct run *r, uint32_t b, uint64_t from)
{
	struct audit *a = r->a;
	struct block *blk = &r->block[b];
	struct audit_loss *l;
	uint64_t ack;

	if (a->nr_losses == r->max_losses) {
		r->max_losses = r->max_losses ? 2 * r->max_losses : 256;
		a->loss = xrealloc(a->loss, r->max_losses, sizeof(*a->loss));
	}
	l = &a->loss[a->nr_losses];
	*l = (struct audit_loss){
		.kind = classify(r, b),
		.writer = blk->writer,
		.file = blk->file,
		.block = blk->block,
		.op = blk->acked,
		.ack_entry = blk->ack_entry,
		.from_entry = from,
		.until_entry = AUDIT_NEVER,
		.next = blk->open,
	};
	blk->open = a->nr_losses++;
	a->by_kind[l->kind]++;
	ack = (uint64_t)l->writer * r->m->p.ops + l->op;
	if (!r->lost[ack]) {
		r->lost[ack] = 1;
		a->acks_lost++;
	}
}

/* After a change of block @b, or a new ack for it: what is lost, what found */
static void settle(struct run *r, uint32_t b, uint64_t entry)
{
	struct block *blk = &r->block[b];
	uint64_t *link = &blk->open;
	bool known = false;

	while (*link != NONE) {
		struct audit_loss *l = &r->a->loss[*link];

		if (whole(r, b, l->op)) {
			l->until_entry = entry;
			*link = l->next;
			continue;
		}
		known |= l->op == blk->acked;
		link = &l->next;
	}
	/* what teardown logs after the end mark is no state of the run */
	if (r->a->end_entry == NONE && blk->acked >= 0 && !known &&
	    !whole(r, b, blk->acked))
		open_loss(r, b, entry);
}

static void audit_write(struct run *r, const struct lw_entry *e)
{
	uint64_t sector = e->off / TAG_SECTOR;
	const uint8_t *p = e->data, *end = p + e->len;

	for (; p < end; p += TAG_SECTOR, sector++) {
		struct owner *o = find_owner(r, sector);
		enum tag_kind kind;
		struct tag_id id;
		uint64_t slot;

		kind = tag_read(r->m, p, &id);
		/* a block cannot hold what its writer has not begun */
		if (kind == TAG_OURS &&
		    (int64_t)id.op > r->last_ack[id.writer] + 1)
			kind = TAG_FOREIGN;
		if (kind != TAG_OURS) {
			overwrite(r, o, sector, kind == TAG_ZERO ?
				  HOLDS_ZERO : HOLDS_FOREIGN, e->nr);
			continue;
		}
		slot = (uint64_t)model_block_index(r->m, id.writer, id.file,
						   id.block) *
		       SECTORS_PER_BLOCK + id.sector;
		if (o->sector != sector + 1 || o->slot != slot) {
			overwrite(r, o, sector, HOLDS_FOREIGN, e->nr);
			set_owner(r, sector, slot);
		}
		/* an older copy, where the block lived before, is not over it */
		if (id.op < r->slot[slot].op && r->slot[slot].at != sector)
			continue;
		r->slot[slot].op = id.op;
		r->slot[slot].at = sector;
		touch(r, slot, e->nr);
	}
}

/* A discard may cover the whole device: go through whichever is smaller. */
static void audit_discard(struct run *r, const struct lw_entry *e)
{
	uint64_t first = e->off / TAG_SECTOR, n = e->len / TAG_SECTOR;

	if (n <= r->owner_mask) {
		for (uint64_t s = first; s < first + n; s++)
			overwrite(r, find_owner(r, s), s, HOLDS_ZERO, e->nr);
		return;
	}
	for (uint64_t i = 0; i <= r->owner_mask; i++) {
		const struct owner *o = &r->owner[i];

		if (o->sector && o->sector - 1 >= first &&
		    o->sector - 1 - first < n)
			overwrite(r, o, o->sector - 1, HOLDS_ZERO, e->nr);
	}
}

__attribute__((format(printf, 5, 6)))
static int bad_entry(const struct lw_log *log, const struct lw_entry *e,
		     char *error, size_t size, const char *fmt, ...)
{
	int n = snprintf(error, size, "%s: entry %llu at byte %llu: ",
			 log->path, (unsigned long long)e->nr,
			 (unsigned long long)e->header_off);
	va_list ap;

	if (n > 0 && (size_t)n < size) {
		va_start(ap, fmt);
		vsnprintf(error + n, size - n, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

static int audit_mark(struct run *r, const struct lw_log *log,
		      const struct lw_entry *e, char *error, size_t size)
{
	struct audit *a = r->a;
	const struct model_op *op;
	struct mark mark;

	mark_parse(r->m, e->mark, e->mark_len, &mark);
	switch (mark.kind) {
	case MARK_OTHER:
		return 0;
	case MARK_BEGIN:
		if (a->begin_entry != NONE)
			return bad_entry(log, e, error, size,
					 "a second begin mark, the first is entry %llu",
					 (unsigned long long)a->begin_entry);
		a->begin_entry = e->nr;
		return 0;
	case MARK_END:
		if (a->end_entry != NONE)
			return bad_entry(log, e, error, size,
					 "a second end mark, the first is entry %llu",
					 (unsigned long long)a->end_entry);
		a->end_entry = e->nr;
		return 0;
	case MARK_ACK:
		break;
	}
	if (a->begin_entry == NONE || a->end_entry != NONE)
		return bad_entry(log, e, error, size,
				 "an ack outside the run's begin and end marks");
	if ((int64_t)mark.op != r->last_ack[mark.writer] + 1)
		return bad_entry(log, e, error, size,
				 "ack of writer %u for operation %u, expected operation %lld",
				 mark.writer, mark.op,
				 (long long)r->last_ack[mark.writer] + 1);
	r->last_ack[mark.writer] = mark.op;
	a->acks++;
	op = model_op(r->m, mark.writer, mark.op);
	for (uint32_t i = 0; i < op->nr_blocks; i++) {
		uint32_t b = model_block_index(r->m, mark.writer, op->file,
					       op->block + i);

		r->block[b].acked = mark.op;
		r->block[b].ack_entry = e->nr;
		settle(r, b, e->nr);
	}
	return 0;
}

static void init_blocks(struct run *r)
{
	const struct model *m = r->m;
	uint32_t b = 0;

	for (uint64_t i = 0; i < (uint64_t)m->nr_blocks * SECTORS_PER_BLOCK;
	     i++)
		r->slot[i] = (struct slot){ HOLDS_NOTHING, NONE };
	for (uint32_t w = 0; w < m->p.writers; w++)
		for (uint32_t f = 0; f < m->p.files; f++)
			for (uint32_t n = 0; n < model_file_blocks(m, w, f);
			     n++, b++)
				r->block[b] = (struct block){
					.acked = -1, .open = NONE,
					.writer = w, .file = f, .block = n,
				};
	for (uint32_t w = 0; w < m->p.writers; w++)
		r->last_ack[w] = -1;
}

static int audit_entries(struct run *r, struct lw_log *log, char *error,
			 size_t size)
{
	struct audit *a = r->a;
	uint64_t flushes = 0;
	struct lw_entry e;
	int ret;

	lw_rewind(log);
	while ((ret = lw_next(log, &e)) == 1) {
		a->entries++;
		if (e.flags & LW_MARK) {
			uint64_t acks = a->acks;

			ret = audit_mark(r, log, &e, error, size);
			if (ret)
				return ret;
			if (a->acks != acks)
				a->flushes = flushes;
		}
		if (e.flags & LW_FLUSH && a->begin_entry != NONE)
			flushes++;
		if (e.flags & LW_DISCARD)
			audit_discard(r, &e);
		else
			audit_write(r, &e);
		for (size_t i = 0; i < r->nr_touched; i++)
			settle(r, r->touched[i], e.nr);
		r->nr_touched = 0;
	}
	if (ret < 0)
		snprintf(error, size, "%s", log->error);
	return ret;
}

static int check_complete(const struct run *r, const struct lw_log *log,
			  char *error, size_t size)
{
	const struct audit *a = r->a;

	if (a->begin_entry == NONE || a->end_entry == NONE) {
		snprintf(error, size,
			 "%s: no %s mark of this run in %llu entries up to byte %llu",
			 log->path, a->begin_entry == NONE ? "begin" : "end",
			 (unsigned long long)a->entries,
			 (unsigned long long)log->next_off);
		return -EINVAL;
	}
	for (uint32_t w = 0; w < r->m->p.writers; w++) {
		if (r->last_ack[w] + 1 == r->m->p.ops)
			continue;
		snprintf(error, size,
			 "%s: %lld acks of writer %u before the end mark, expected %u",
			 log->path, (long long)r->last_ack[w] + 1, w,
			 r->m->p.ops);
		return -EINVAL;
	}
	return 0;
}

static void find_longest(struct audit *a)
{
	for (size_t i = 0; i < a->nr_losses; i++) {
		const struct audit_loss *l = &a->loss[i];
		uint64_t until = l->until_entry, n;

		if (until == AUDIT_NEVER)
			until = a->entries;
		n = until - l->from_entry;
		if (n > a->longest) {
			a->longest = n;
			a->longest_loss = i;
		}
	}
}

int audit_run(struct audit *a, struct lw_log *log, const struct model *m,
	      char *error, size_t size)
{
	struct run r = { .a = a, .m = m };
	int ret;

	memset(a, 0, sizeof(*a));
	a->begin_entry = a->end_entry = NONE;
	r.slot = xcalloc((size_t)m->nr_blocks * SECTORS_PER_BLOCK,
			 sizeof(*r.slot));
	r.block = xcalloc(m->nr_blocks, sizeof(*r.block));
	r.last_ack = xcalloc(m->p.writers, sizeof(*r.last_ack));
	r.lost = xcalloc((size_t)m->p.writers * m->p.ops, 1);
	r.owner_mask = 1023;
	r.owner = xcalloc(r.owner_mask + 1, sizeof(*r.owner));
	init_blocks(&r);

	ret = audit_entries(&r, log, error, size);
	if (!ret)
		ret = check_complete(&r, log, error, size);
	if (!ret)
		find_longest(a);

	free(r.slot);
	free(r.block);
	free(r.last_ack);
	free(r.lost);
	free(r.owner);
	free(r.touched);
	if (ret)
		audit_free(a);
	return ret;
}

char *audit_token(const struct audit_loss *l, const char *hash)
{
	return xasprintf("%s@%llu:%s:w%u:f%u:b%u:op%u", hash,
			 (unsigned long long)l->from_entry,
			 loss_kind_name(l->kind), l->writer, l->file, l->block,
			 l->op);
}

void audit_free(struct audit *a)
{
	free(a->loss);
	memset(a, 0, sizeof(*a));
}
