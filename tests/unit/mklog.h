/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Synthetic dm-log-writes logs: a log is put together in memory, entry by
 * entry, and saved with its capture.json into a folder that goes when the test
 * ends. A test of damaged logs changes @buf or @len before it saves.
 */
#ifndef ACKPROOF_MKLOG_H
#define ACKPROOF_MKLOG_H

#include <stddef.h>
#include <stdint.h>

#include "../../replay/log.h"
#include "../../workloads/model.h"

struct mklog {
	const struct model *m;	/* NULL: no tags, no acks, no capture.json */
	uint32_t	sectorsize;
	uint64_t	nr;		/* the next entry's number */
	uint8_t		*buf;		/* a struct lw_disk_super at first */
	size_t		len, max;
	char		*path;
};

/* The test's own folder, made at the first call. Never NULL. */
const char *scratch(void);

/* A folder and all below it; one that is not there is fine. */
void remove_tree(const char *path);

void mklog_init(struct mklog *l, const struct model *m, uint32_t sectorsize);
void mklog_free(struct mklog *l);

/*
 * Each appends an entry and returns its number. Places on the device are in
 * bytes, whatever the sector size.
 */
uint64_t mklog_write(struct mklog *l, uint64_t flags, uint64_t off,
		     const void *data, size_t len);
uint64_t mklog_discard(struct mklog *l, uint64_t off, uint64_t len);
uint64_t mklog_flush(struct mklog *l);
uint64_t mklog_text(struct mklog *l, const void *text, size_t len);
uint64_t mklog_mark(struct mklog *l, enum mark_kind kind, uint32_t writer,
		    uint32_t op);

/* A block as the writer writes it, or @n of its 512-byte sectors. */
uint64_t mklog_block(struct mklog *l, uint64_t off, uint32_t writer,
		     uint32_t op, uint32_t file, uint32_t block);
uint64_t mklog_part(struct mklog *l, uint64_t off, uint32_t writer,
		    uint32_t op, uint32_t file, uint32_t block,
		    uint32_t first, uint32_t n);

/* A header as given, in the log's sectors, with no data after it. */
uint64_t mklog_header(struct mklog *l, uint64_t sector, uint64_t nr_sectors,
		      uint64_t flags, uint64_t data_len);

/* Bytes as they are, or zeros if @data is NULL. */
void mklog_raw(struct mklog *l, const void *data, size_t len);

/* Make the superblock count @nr entries: what is appended later changes it. */
void mklog_count(struct mklog *l, uint64_t nr);

/* Save as l->path, and capture.json beside it. */
void mklog_save(struct mklog *l);

#endif
