/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * zstd in seekable frames, so that any part of a packed log can be read without
 * unpacking what is before it. The format is the public "Zstandard Seekable
 * Format" 0.1.0 of zstd's contrib/seekable_format: frames that each unpack on
 * their own, then a skippable frame that holds a table of their sizes. Plain
 * zstd unpacks such a file like any other.
 */
#ifndef ACKPROOF_ZST_H
#define ACKPROOF_ZST_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZST_MAGIC		0xfd2fb528U	/* of a frame */
#define ZST_SKIP_MAGIC		0x184d2a50U	/* of one to skip: up to + 15 */
#define ZST_TABLE_MAGIC		0x184d2a5eU	/* of the one with the table */
#define ZST_FOOTER_MAGIC	0x8f92eab1U

#define ZST_MAX_FRAME		(1U << 30)	/* unpacked, in bytes */
#define ZST_MAX_FRAMES		0x8000000U

/* Bits of a footer's descriptor; what is neither has no meaning yet. */
enum {
	ZST_CHECKSUMS	= 0x80,	/* each entry is followed by a checksum */
	ZST_RESERVED	= 0x7c,	/* of formats to come that we cannot read */
};

/*
 * The seek table: a header, an entry for each frame in the file's order, and
 * the footer, which ends the file.
 */
struct zst_disk_header {
	__le32	magic;
	__le32	len;		/* of all that follows: entries and footer */
};

struct zst_disk_entry {
	__le32	packed_len;
	__le32	len;		/* 0 where the frame is to be skipped */
};

struct zst_disk_footer {
	__le32	nr_frames;
	__u8	descriptor;
	__le32	magic;
} __attribute__((packed));

/* One frame, in bytes. */
struct zst_frame {
	uint64_t	off;		/* in the unpacked data */
	uint64_t	packed_off;	/* in the file */
	uint32_t	len;
	uint32_t	packed_len;
	uint32_t	checksum;	/* of the unpacked data, if zst->checksums */
};

/* An open file. It reads one frame at a time: a thread needs its own. */
struct zst {
	int			fd;		/* the caller's */
	uint64_t		size;		/* of the unpacked data, in bytes */
	uint64_t		packed_size;	/* of all frames, as they are */
	struct zst_frame	*frame;
	size_t			nr_frames;
	bool			checksums;
	struct ZSTD_DCtx_s	*dctx;
	void			*buf;		/* a packed frame */
	size_t			buf_size;
	char			error[256];	/* why the last call failed */
};

/*
 * True if @fd starts with a frame of zstd, seekable or not. What cannot be read
 * does not.
 */
bool zst_is(int fd);

/*
 * Read the seek table of @fd, a file or a block device, which must stay open
 * as long as @z. Returns 0, or -errno with z->error set: -EINVAL where there is
 * no table or it cannot be true: that frames have the lengths it says, other
 * than 0, is seen only when they are read. Messages name the byte in @fd and
 * what was expected there; they do not name the file. End @z with zst_close(),
 * also after a failure.
 */
int zst_open(struct zst *z, int fd);
void zst_close(struct zst *z);

/* Number of the frame that holds byte @off of the unpacked data, < z->size. */
size_t zst_find(const struct zst *z, uint64_t off);

/*
 * Unpack frame @i into @dst, of z->frame[i].len bytes. Returns 0, or -errno
 * with z->error set: -EINVAL where the frame is not what the table says or its
 * data do not match a checksum. @dst is undefined then.
 */
int zst_read_frame(struct zst *z, size_t i, void *dst);

/* A file that is being written. */
struct zst_writer {
	int			fd;	/* the caller's */
	uint64_t		off;	/* bytes written so far */
	struct ZSTD_CCtx_s	*cctx;
	uint8_t			*in;	/* the frame to be, unpacked */
	size_t			in_len, frame_size;
	void			*out;	/* the frame, packed */
	size_t			out_size;
	struct zst_disk_entry	*entry;
	size_t			nr_frames, max_frames;
	int			fault;	/* -errno of the first failure */
};

/*
 * Start to write at byte 0 of @fd, an empty file that must stay open as long as
 * @w: @level as zstd has them, @frame_size bytes of data, unpacked, a frame.
 * Returns 0, or -EINVAL where one of these is out of range. End @w with
 * zst_writer_free(), also after a failure.
 */
int zst_writer_open(struct zst_writer *w, int fd, int level,
		    uint32_t frame_size);

/*
 * Add @len bytes. Returns 0 or -errno, -EFBIG for more frames than a table may
 * have; after a failure all calls fail the same way.
 */
int zst_write(struct zst_writer *w, const void *data, size_t len);

/*
 * Write what is left, and the table. Returns 0 or -errno, as zst_write(); only
 * after 0 the file is complete, though not synced. No zst_write() after that.
 */
int zst_writer_finish(struct zst_writer *w);
void zst_writer_free(struct zst_writer *w);

#endif
