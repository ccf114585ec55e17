/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model that the writers, the audit and the verifier share: which blocks
 * writer W writes in its operation N, what is in every sector of them, and
 * which operation a block may hold after W was acknowledged N.
 *
 * Writer W has a directory "wW" with files "fF". An operation writes one or
 * more whole blocks of one file, makes them durable, and is then acknowledged
 * by a mark in the log. A writer's operations are numbered from 0 and
 * acknowledged in order, so one number tells all that was acknowledged.
 */
#ifndef ACKPROOF_MODEL_H
#define ACKPROOF_MODEL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	DATA_BLOCK		= 4096,
	TAG_SECTOR		= 512,
	SECTORS_PER_BLOCK	= DATA_BLOCK / TAG_SECTOR,

	MAX_WRITERS		= 1024,
	MAX_FILES		= 1024,
	MAX_BLOCKS		= 1 << 20,	/* of one file, at first */
	MAX_OPS			= 10000000,	/* of one writer */
};

enum model_mode {
	/* each file's blocks are written once, then overwritten one by one */
	MODE_OVERWRITE,
	/* each operation appends one block */
	MODE_APPEND,
	/* each file's blocks are written once, then either, by coin */
	MODE_MIXED,
};

struct model_op {
	uint32_t	file;
	uint32_t	block;		/* the first one */
	uint32_t	nr_blocks;
};

struct model_params {
	uint64_t	seed;
	uint32_t	writers;
	uint32_t	ops;		/* of each writer, so many acks each */
	uint32_t	files;		/* of each writer */
	uint32_t	blocks;		/* of each file, for overwriting */
	enum model_mode	mode;
	bool		datasync;	/* fdatasync(2) instead of fsync(2) */
};

struct model {
	struct model_params p;
	uint64_t	run;		/* tells this run's tags from others' */
	struct model_op	*op;		/* writers x ops */
	uint32_t	*file_blocks;	/* writers x files: size at the end */
	uint32_t	*file_base;	/* index of each file's block 0 */
	uint32_t	nr_blocks;	/* blocks of all files of all writers */
};

/*
 * Work out all operations. Returns 0, or -EINVAL with a message in @error if
 * a parameter is out of range. Ends with model_free().
 */
int model_init(struct model *m, const struct model_params *p,
	       char *error, size_t size);
void model_free(struct model *m);

static inline const struct model_op *
model_op(const struct model *m, uint32_t writer, uint32_t n)
{
	return &m->op[(uint64_t)writer * m->p.ops + n];
}

static inline uint32_t
model_file_blocks(const struct model *m, uint32_t writer, uint32_t file)
{
	return m->file_blocks[writer * m->p.files + file];
}

/* A dense number for each block of the run, below model.nr_blocks. */
static inline uint32_t
model_block_index(const struct model *m, uint32_t writer, uint32_t file,
		  uint32_t block)
{
	return m->file_base[writer * m->p.files + file] + block;
}

const char *model_mode_name(enum model_mode mode);
int model_mode_parse(const char *s, enum model_mode *mode);

/* One sector's contents: who wrote it, and that it is whole. */
struct tag {
	__le64	magic;
	__le64	run;
	__le64	op;
	__le32	writer;
	__le32	file;
	__le32	block;
	__le32	sector;		/* within the block */
	__le64	checksum;	/* XXH3 of fill, seeded with that of the above */
	__le64	fill[58];	/* differs from operation to operation */
};

enum tag_kind {
	TAG_OURS,		/* @id tells which one */
	TAG_ZERO,		/* nothing but zeros */
	TAG_FOREIGN,		/* anything else, a damaged tag too */
};

struct tag_id {
	uint32_t	writer, file, block, sector, op;
};

/* Fill @buf (DATA_BLOCK bytes) with what @op of @writer puts in @block. */
void tag_block(const struct model *m, uint32_t writer, uint32_t op,
	       uint32_t file, uint32_t block, void *buf);

/*
 * Tell what the TAG_SECTOR bytes at @buf are. TAG_OURS only for a whole tag of
 * this run whose numbers are within the model.
 */
enum tag_kind tag_read(const struct model *m, const void *buf,
		       struct tag_id *id);

/* The names of the marks in the log, all with the run's number in them */
enum mark_kind {
	MARK_OTHER,		/* not this run's */
	MARK_BEGIN,		/* the writers are about to start */
	MARK_ACK,		/* @writer's operation @op was made durable */
	MARK_END,		/* all writers are done, still mounted */
};

struct mark {
	enum mark_kind	kind;
	uint32_t	writer, op;
};

enum { MARK_TEXT_MAX = 64 };	/* bytes, with the terminator */

void mark_format(const struct model *m, const struct mark *mark,
		 char text[MARK_TEXT_MAX]);
void mark_parse(const struct model *m, const void *text, uint32_t len,
		struct mark *mark);

#endif
