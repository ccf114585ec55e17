// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards workloads/model.c: the operations follow from the parameters alone,
 * and a tag or a mark that is not exactly what this run writes is never taken
 * for one that is.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "../../replay/util.h"
#include "../../workloads/model.h"
#include "tap.h"

static const struct model_params small = {
	.seed = 1, .writers = 2, .ops = 40, .files = 3, .blocks = 5,
};

static struct model make(struct model_params p)
{
	struct model m;
	char error[256];

	if (model_init(&m, &p, error, sizeof(error)))
		die(EXIT_LOSS, "model_init: %s", error);
	return m;
}

static bool same_ops(const struct model *a, const struct model *b)
{
	return !memcmp(a->op, b->op, (size_t)a->p.writers * a->p.ops *
		       sizeof(*a->op));
}

static void determinism(void)
{
	for (int mode = MODE_OVERWRITE; mode <= MODE_MIXED; mode++) {
		struct model_params p = small;
		struct model a, b, c;

		p.mode = mode;
		a = make(p);
		b = make(p);
		p.seed++;
		c = make(p);
		ok(same_ops(&a, &b) && a.run == b.run,
		   "%s: the same seed, the same operations",
		   model_mode_name(mode));
		ok(a.run != c.run, "%s: another seed, another run",
		   model_mode_name(mode));
		ok(same_ops(&a, &c) == (mode == MODE_APPEND),
		   "%s: another seed, %s operations", model_mode_name(mode),
		   mode == MODE_APPEND ? "yet the same" : "other");
		if (mode != MODE_APPEND)
			ok(memcmp(model_op(&a, 0, 0), model_op(&a, 1, 0),
				  a.p.ops * sizeof(*a.op)),
			   "%s: writers differ", model_mode_name(mode));
		model_free(&a);
		model_free(&b);
		model_free(&c);
	}
}

/* Every parameter is part of the run's number: tags never mix. */
static void runs(void)
{
	struct model_params p[7];
	bool differ = true;

	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = small;
	p[1].writers++;
	p[2].ops++;
	p[3].files++;
	p[4].blocks++;
	p[5].mode = MODE_MIXED;
	p[6].datasync = true;
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		for (size_t j = 0; j < i; j++) {
			struct model a = make(p[i]), b = make(p[j]);

			differ &= a.run != b.run;
			model_free(&a);
			model_free(&b);
		}
	}
	ok(differ, "a run's number depends on every parameter");
}

/* What holds in all modes: within the file, numbered densely. */
static void check_shape(const struct model *m)
{
	const char *mode = model_mode_name(m->p.mode);
	uint32_t next = 0;
	bool inside = true, dense = true;

	for (uint32_t w = 0; w < m->p.writers; w++) {
		for (uint32_t n = 0; n < m->p.ops; n++) {
			const struct model_op *op = model_op(m, w, n);

			inside &= op->file < m->p.files && op->nr_blocks &&
				  op->block + op->nr_blocks <=
				  model_file_blocks(m, w, op->file);
		}
		for (uint32_t f = 0; f < m->p.files; f++)
			for (uint32_t b = 0; b < model_file_blocks(m, w, f);
			     b++)
				dense &= model_block_index(m, w, f, b) ==
					 next++;
	}
	ok(inside, "%s: no operation leaves its file", mode);
	ok(dense && next == m->nr_blocks, "%s: blocks are numbered densely",
	   mode);
}

/* The first operation of each file writes it whole, except for appending. */
static void check_first(const struct model *m)
{
	bool whole = true;

	for (uint32_t w = 0; w < m->p.writers; w++)
		for (uint32_t n = 0; n < m->p.files; n++) {
			const struct model_op *op = model_op(m, w, n);

			whole &= op->file == n && op->block == 0 &&
				 op->nr_blocks == m->p.blocks;
		}
	ok(whole, "%s: a file's first operation writes all of it",
	   model_mode_name(m->p.mode));
}

static void overwrite(void)
{
	struct model m = make(small);
	bool one = true, touched[3][5] = {};
	int n_touched = 0;

	check_shape(&m);
	check_first(&m);
	for (uint32_t n = m.p.files; n < m.p.ops; n++) {
		const struct model_op *op = model_op(&m, 0, n);

		one &= op->nr_blocks == 1;
		n_touched += !touched[op->file][op->block];
		touched[op->file][op->block] = true;
	}
	ok(one, "overwrite: later ones write one block");
	ok(n_touched > 10, "overwrite: and reach the blocks of all files");
	ok_int(m.nr_blocks, 2 * 3 * 5, "overwrite: files never grow");
	model_free(&m);
}

static void append(void)
{
	struct model_params p = small;
	uint32_t size[3] = {};
	bool at_end = true;
	struct model m;

	p.mode = MODE_APPEND;
	m = make(p);
	check_shape(&m);
	for (uint32_t n = 0; n < m.p.ops; n++) {
		const struct model_op *op = model_op(&m, 1, n);

		at_end &= op->file == n % 3 && op->nr_blocks == 1 &&
			  op->block == size[op->file]++;
	}
	ok(at_end, "append: files in turn, each time the next block");
	ok(model_file_blocks(&m, 1, 0) == 14 &&
	   model_file_blocks(&m, 1, 1) == 13 &&
	   model_file_blocks(&m, 1, 2) == 13, "append: sizes at the end");
	model_free(&m);
}

static void mixed(void)
{
	struct model_params p = small;
	uint32_t size[3] = { 5, 5, 5 }, appends = 0;
	bool fits = true;
	struct model m;

	p.mode = MODE_MIXED;
	m = make(p);
	check_shape(&m);
	check_first(&m);
	for (uint32_t n = 3; n < m.p.ops; n++) {
		const struct model_op *op = model_op(&m, 0, n);

		fits &= op->nr_blocks == 1 && op->block <= size[op->file];
		if (op->block == size[op->file]) {
			size[op->file]++;
			appends++;
		}
	}
	ok(fits, "mixed: one block, at the end or before it");
	ok(appends > 8 && appends < 29, "mixed: both kinds, %u appends",
	   appends);
	ok_int(model_file_blocks(&m, 0, 0), size[0], "mixed: size at the end");
	model_free(&m);
}

static void refuse(struct model_params p, const char *want)
{
	char error[256] = "";
	struct model m;

	ok_int(model_init(&m, &p, error, sizeof(error)), -EINVAL,
	       "refused: %s", want);
	ok_str(error, want, "with that message");
}

static struct model_params with(uint32_t writers, uint32_t ops,
				uint32_t files, uint32_t blocks)
{
	return (struct model_params){
		.writers = writers, .ops = ops, .files = files,
		.blocks = blocks,
	};
}

static void ranges(void)
{
	struct model_params few = with(1, 2, 3, 1);
	struct model m;

	refuse(with(0, 1, 1, 1), "writers: 0, expected 1 to 1024");
	refuse(with(1025, 1, 1, 1), "writers: 1025, expected 1 to 1024");
	refuse(with(1, 0, 1, 1), "fsyncs: 0, expected 1 to 10000000");
	refuse(with(1, 10000001, 1, 1),
	       "fsyncs: 10000001, expected 1 to 10000000");
	refuse(with(1, 1, 0, 1), "files: 0, expected 1 to 1024");
	refuse(with(1, 2000, 1025, 1), "files: 1025, expected 1 to 1024");
	refuse(with(1, 1, 1, 0), "blocks: 0, expected 1 to 1048576");
	refuse(with(1, 1, 1, 1048577),
	       "blocks: 1048577, expected 1 to 1048576");
	refuse(few, "fsyncs: 2, expected at least one for each of 3 files");
	refuse(with(5, 1024, 1024, 1 << 20), "more than 2^32 blocks in all");

	few.mode = MODE_APPEND;
	m = make(few);
	ok_int(m.nr_blocks, 2, "append: files may stay without a block");
	model_free(&m);
}

static void tags_round_trip(const struct model *m)
{
	struct tag tags[SECTORS_PER_BLOCK];
	bool good = true;
	struct tag_id id;

	tag_block(m, 1, 39, 2, 4, tags);
	for (uint32_t s = 0; s < SECTORS_PER_BLOCK; s++)
		good &= tag_read(m, &tags[s], &id) == TAG_OURS &&
			id.writer == 1 && id.op == 39 && id.file == 2 &&
			id.block == 4 && id.sector == s;
	ok(good, "each sector of a block tells whose it is");
	good = true;
	for (uint32_t s = 1; s < SECTORS_PER_BLOCK; s++)
		good &= memcmp(tags[0].fill, tags[s].fill,
			       sizeof(tags[0].fill)) != 0;
	ok(good, "each sector's fill differs");
}

static void flipped_bits(const struct model *m)
{
	struct tag tags[SECTORS_PER_BLOCK];
	uint8_t *p = (uint8_t *)&tags[3];
	uint32_t foreign = 0;
	struct tag_id id;

	tag_block(m, 0, 7, 1, 2, tags);
	for (uint32_t bit = 0; bit < TAG_SECTOR * 8; bit++) {
		p[bit / 8] ^= 1 << bit % 8;
		foreign += tag_read(m, p, &id) == TAG_FOREIGN;
		p[bit / 8] ^= 1 << bit % 8;
	}
	ok_int(foreign, 4096, "one flipped bit, whichever, is foreign");
	ok_int(tag_read(m, p, &id), TAG_OURS, "without it, it is ours");
}

static void other_sectors(const struct model *m)
{
	struct tag tags[SECTORS_PER_BLOCK], zero = {};
	struct model_params p = small;
	struct model other, longer = *m;
	struct tag_id id;

	ok_int(tag_read(m, &zero, &id), TAG_ZERO, "zeros");
	((uint8_t *)&zero)[511] = 1;
	ok_int(tag_read(m, &zero, &id), TAG_FOREIGN, "zeros but for the end");

	p.seed = 2;
	other = make(p);
	tag_block(&other, 0, 0, 0, 0, tags);
	ok_int(tag_read(m, tags, &id), TAG_FOREIGN, "another run's tag");
	model_free(&other);

	/* whole tags of this run, with numbers that it does not have */
	longer.p.ops++;
	tag_block(&longer, 0, 40, 0, 0, tags);
	ok_int(tag_read(m, tags, &id), TAG_FOREIGN, "no such operation");
	tag_block(m, 2, 0, 0, 0, tags);
	ok_int(tag_read(m, tags, &id), TAG_FOREIGN, "no such writer");
	tag_block(m, 0, 0, 3, 0, tags);
	ok_int(tag_read(m, tags, &id), TAG_FOREIGN, "no such file");
	tag_block(m, 0, 0, 0, 5, tags);
	ok_int(tag_read(m, tags, &id), TAG_FOREIGN, "no such block");
}

static enum mark_kind parse(const struct model *m, const char *text,
			    uint32_t len)
{
	struct mark mark;

	mark_parse(m, text, len, &mark);
	return mark.kind;
}

static void marks_round_trip(const struct model *m)
{
	static const struct mark marks[] = {
		{ MARK_BEGIN }, { MARK_END }, { MARK_ACK, 0, 0 },
		{ MARK_ACK, 1, 39 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		char text[MARK_TEXT_MAX];
		struct mark got = {};

		mark_format(m, &marks[i], text);
		mark_parse(m, text, strlen(text), &got);
		ok(got.kind == marks[i].kind &&
		   (got.kind != MARK_ACK ||
		    (got.writer == marks[i].writer && got.op == marks[i].op)),
		   "mark '%s'", text);
	}
}

static void other_marks(const struct model *m)
{
	static const char *const forms[] = {
		/* %llx is the run */
		"ack:%016llx:2:0",	/* no such writer */
		"ack:%016llx:0:40",	/* no such operation */
		"ack:%016llx:4294967296:0",
		"ack:%016llx:0:4294967296",
		"ack:%016llx:-1:0",
		"ack:%016llx:00:0",
		"ack:%016llx:0:+0",
		"ack:%016llx:0: 0",
		"ack:%016llx:0:0 ",
		"ack:%016llx:0:0:0",
		"ack:%016llx:0",
		"ack:%016llX:0:0",
		"ack: %016llx:0:0",
		"ACK:%016llx:0:0",
		"begin:%016llx ",
		"begin:0x%014llx",
		"begin:%016llx0",
		" begin:%016llx",
		"end:%016llx.",
		"end",
		"",
		"dm-log-writes-end",
		"begin:%016llx                                               ",
	};
	struct model other = *m;
	struct mark begin = { MARK_BEGIN };
	char text[MARK_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		char line[128];

		snprintf(line, sizeof(line), forms[i],
			 (unsigned long long)m->run);
		ok_int(parse(m, line, strlen(line)), MARK_OTHER,
		       "not ours: '%s'", line);
	}
	other.run++;
	mark_format(&other, &begin, text);
	ok_int(parse(m, text, strlen(text)), MARK_OTHER,
	       "not ours: another run's");
	mark_format(m, &begin, text);
	text[strlen(text) + 1] = 'x';
	ok_int(parse(m, text, strlen(text) + 2), MARK_OTHER,
	       "not ours: more behind a zero byte");
	ok_int(parse(m, text, strlen(text) - 1), MARK_OTHER,
	       "not ours: one byte short");
}

int main(void)
{
	struct model m = make(small);

	determinism();
	runs();
	overwrite();
	append();
	mixed();
	ranges();
	tags_round_trip(&m);
	flipped_bits(&m);
	other_sectors(&m);
	marks_round_trip(&m);
	other_marks(&m);
	model_free(&m);
	return tap_end();
}
