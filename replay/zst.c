// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seekable zstd; see zst.h. The frames are libzstd's, the table is ours: every
 * number that comes from it is checked before it is used.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

/* no library to link with */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "le.h"
#include "util.h"
#include "zst.h"

/* A frame to skip, of no bytes, is the shortest that there is. */
#define MIN_PACKED	8

/* What fits into a frame's four bytes, at best: a block of one byte repeated */
#define MIN_BLOCK	4
#define MAX_BLOCK	(128 << 10)

#define NOT_SEEKABLE	"not seekable, or cut short: "
#define WHAT_TO_DO	": unpack it with zstd -d, or pack it with lwlog convert"

__attribute__((format(printf, 3, 4)))
static int fail(struct zst *z, int ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(z->error, sizeof(z->error), fmt, ap);
	va_end(ap);
	return ret;
}

/* pread_all() with a message that names @what */
static int get(struct zst *z, void *buf, size_t len, uint64_t off,
	       const char *what)
{
	int ret = pread_all(z->fd, buf, len, off);

	if (!ret)
		return 0;
	errno = -ret;
	return fail(z, ret, "cannot read %s, %zu bytes at byte %llu: %m",
		    what, len, (unsigned long long)off);
}

bool zst_is(int fd)
{
	__le32 magic;

	return !pread_all(fd, &magic, sizeof(magic), 0) &&
	       get_le32(magic) == ZST_MAGIC;
}

/* Sets what is to be known of the table before it can be read. */
static int find_table(struct zst *z, uint64_t size)
{
	const uint64_t least = sizeof(struct zst_disk_header) +
			       sizeof(struct zst_disk_footer);
	struct zst_disk_header header;
	struct zst_disk_footer footer;
	uint64_t len, at;
	int ret;

	if (size < least)
		return fail(z, -EINVAL,
			    NOT_SEEKABLE "%llu bytes, expected a seek table of at least %llu at the end"
			    WHAT_TO_DO,
			    (unsigned long long)size,
			    (unsigned long long)least);
	at = size - sizeof(footer);
	ret = get(z, &footer, sizeof(footer), at, "the seek table's footer");
	if (ret)
		return ret;
	if (get_le32(footer.magic) != ZST_FOOTER_MAGIC)
		return fail(z, -EINVAL,
			    NOT_SEEKABLE "magic 0x%x at byte %llu, expected a seek table's 0x%x"
			    WHAT_TO_DO, get_le32(footer.magic),
			    (unsigned long long)(size - sizeof(__le32)),
			    ZST_FOOTER_MAGIC);
	if (footer.descriptor & ZST_RESERVED)
		return fail(z, -EINVAL,
			    "seek table's descriptor 0x%x at byte %llu, expected none of the bits 0x%x",
			    footer.descriptor,
			    (unsigned long long)(at + sizeof(__le32)),
			    ZST_RESERVED);
	z->nr_frames = get_le32(footer.nr_frames);
	if (z->nr_frames > ZST_MAX_FRAMES)
		return fail(z, -EINVAL,
			    "a seek table of %zu frames at byte %llu, expected at most %u",
			    z->nr_frames, (unsigned long long)at,
			    ZST_MAX_FRAMES);
	z->checksums = footer.descriptor & ZST_CHECKSUMS;

	len = least + z->nr_frames * (sizeof(struct zst_disk_entry) +
				      (z->checksums ? sizeof(__le32) : 0));
	if (len > size)
		return fail(z, -EINVAL,
			    "truncated: a seek table of %zu frames at byte %llu, expected its %llu bytes within the file's %llu",
			    z->nr_frames, (unsigned long long)at,
			    (unsigned long long)len, (unsigned long long)size);
	z->packed_size = size - len;
	at = z->packed_size;
	ret = get(z, &header, sizeof(header), at, "the seek table's header");
	if (ret)
		return ret;
	if (get_le32(header.magic) != ZST_TABLE_MAGIC)
		return fail(z, -EINVAL,
			    "seek table's magic 0x%x at byte %llu, expected 0x%x, as there are %zu frames",
			    get_le32(header.magic), (unsigned long long)at,
			    ZST_TABLE_MAGIC, z->nr_frames);
	if (get_le32(header.len) != len - sizeof(header))
		return fail(z, -EINVAL,
			    "seek table's length %u at byte %llu, expected %llu, as there are %zu frames",
			    get_le32(header.len),
			    (unsigned long long)(at + sizeof(__le32)),
			    (unsigned long long)(len - sizeof(header)),
			    z->nr_frames);
	return 0;
}

/*
 * Whether frame @i may be: it ends before the table, and nobody has to get
 * memory for more than the frame could hold.
 */
static int check_frame(struct zst *z, size_t i)
{
	const struct zst_frame *f = &z->frame[i];
	unsigned long long at = f->packed_off;

	if (f->packed_len < MIN_PACKED)
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu takes %u bytes, expected at least %u",
			    i, at, f->packed_len, MIN_PACKED);
	if (f->packed_len > z->packed_size - f->packed_off)
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu takes %u bytes, expected its end before the seek table at byte %llu",
			    i, at, f->packed_len,
			    (unsigned long long)z->packed_size);
	if (f->packed_len > ZSTD_COMPRESSBOUND(ZST_MAX_FRAME))
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu takes %u bytes, expected at most %u",
			    i, at, f->packed_len,
			    (uint32_t)ZSTD_COMPRESSBOUND(ZST_MAX_FRAME));
	if (f->len > ZST_MAX_FRAME)
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu has %u bytes unpacked, expected at most %u",
			    i, at, f->len, ZST_MAX_FRAME);
	if (f->len > (uint64_t)f->packed_len / MIN_BLOCK * MAX_BLOCK)
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu has %u bytes unpacked, expected at most the %llu that %u bytes can hold",
			    i, at, f->len,
			    (unsigned long long)f->packed_len / MIN_BLOCK *
			    MAX_BLOCK, f->packed_len);
	return 0;
}

static int read_table(struct zst *z)
{
	size_t step = sizeof(struct zst_disk_entry) +
		      (z->checksums ? sizeof(__le32) : 0);
	CLEANUP_FREE uint8_t *table = xcalloc(z->nr_frames, step);
	uint64_t packed_off = 0;
	int ret;

	ret = get(z, table, z->nr_frames * step,
		  z->packed_size + sizeof(struct zst_disk_header),
		  "the seek table");
	if (ret)
		return ret;
	z->frame = xcalloc(z->nr_frames, sizeof(*z->frame));
	for (size_t i = 0; i < z->nr_frames; i++) {
		const struct zst_disk_entry *d = (void *)(table + i * step);
		struct zst_frame *f = &z->frame[i];

		f->off = z->size;
		f->packed_off = packed_off;
		f->len = get_le32(d->len);
		f->packed_len = get_le32(d->packed_len);
		if (z->checksums)
			f->checksum = get_le32(*(const __le32 *)(d + 1));
		ret = check_frame(z, i);
		if (ret)
			return ret;
		z->size += f->len;
		packed_off += f->packed_len;
	}
	if (packed_off != z->packed_size)
		return fail(z, -EINVAL,
			    "%zu frames end at byte %llu, expected the seek table there, which is at byte %llu",
			    z->nr_frames, (unsigned long long)packed_off,
			    (unsigned long long)z->packed_size);
	return 0;
}

int zst_open(struct zst *z, int fd)
{
	off_t size;
	int ret;

	memset(z, 0, sizeof(*z));
	z->fd = fd;
	size = lseek(fd, 0, SEEK_END);	/* st_size is 0 on block devices */
	if (size < 0)
		return fail(z, -errno, "cannot tell its size: %m");
	ret = find_table(z, size);
	if (!ret)
		ret = read_table(z);
	if (ret)
		return ret;
	z->dctx = ZSTD_createDCtx();
	if (!z->dctx)
		die(EXIT_CANNOT, "out of memory");

	/*
	 * No byte is in an empty frame, so nobody would ever read one that the
	 * table calls empty, and miss its data.
	 */
	for (size_t i = 0; i < z->nr_frames && !ret; i++)
		if (!z->frame[i].len)
			ret = zst_read_frame(z, i, NULL);
	return ret;
}

void zst_close(struct zst *z)
{
	ZSTD_freeDCtx(z->dctx);
	free(z->frame);
	free(z->buf);
	memset(z, 0, sizeof(*z));
	z->fd = -1;
}

size_t zst_find(const struct zst *z, uint64_t off)
{
	size_t low = 0, high = z->nr_frames;

	/*
	 * The last frame that does not start after @off: an empty one starts
	 * where the next one does, too, or at the end.
	 */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (z->frame[middle].off <= off)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * Is z->buf one frame, of the length that the table says, packed and, as far as
 * its header tells, unpacked? libzstd alone takes older formats as well, and
 * any number of frames.
 */
static int check_header(struct zst *z, size_t i)
{
	const struct zst_frame *f = &z->frame[i];
	uint32_t magic = get_le32(*(const __le32 *)z->buf);
	unsigned long long len, at = f->packed_off;
	size_t n;

	if (magic != ZST_MAGIC &&
	    (f->len || (magic & ~15U) != ZST_SKIP_MAGIC))
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu has magic 0x%x, expected 0x%x",
			    i, at, magic, ZST_MAGIC);
	n = ZSTD_findFrameCompressedSize(z->buf, f->packed_len);
	if (ZSTD_isError(n))
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu has no end, expected it after %u bytes: %s",
			    i, at, f->packed_len, ZSTD_getErrorName(n));
	if (n != f->packed_len)
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu takes %zu bytes, expected the seek table's %u",
			    i, at, n, f->packed_len);
	len = ZSTD_getFrameContentSize(z->buf, f->packed_len);
	if (len != f->len && len != ZSTD_CONTENTSIZE_UNKNOWN)
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu has %llu bytes unpacked, expected the seek table's %u",
			    i, at, len, f->len);
	return 0;
}

int zst_read_frame(struct zst *z, size_t i, void *dst)
{
	const struct zst_frame *f = &z->frame[i];
	unsigned long long at = f->packed_off;
	uint32_t checksum;
	char what[64];
	char none;
	size_t n;
	int ret;

	if (z->buf_size < f->packed_len) {
		free(z->buf);
		z->buf = xcalloc(f->packed_len, 1);
		z->buf_size = f->packed_len;
	}
	snprintf(what, sizeof(what), "frame %zu", i);
	ret = get(z, z->buf, f->packed_len, f->packed_off, what);
	if (!ret)
		ret = check_header(z, i);
	if (ret)
		return ret;

	/* libzstd compares the frame's own checksum, if it has one */
	n = ZSTD_decompressDCtx(z->dctx, f->len ? dst : &none, f->len, z->buf,
				f->packed_len);
	if (ZSTD_isError(n))
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu does not unpack, expected %u bytes of data: %s",
			    i, at, f->len, ZSTD_getErrorName(n));
	if (n != f->len)
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu has %zu bytes unpacked, expected the seek table's %u",
			    i, at, n, f->len);
	if (!z->checksums || !f->len)
		return 0;
	checksum = XXH64(dst, f->len, 0);
	if (checksum != f->checksum)
		return fail(z, -EINVAL,
			    "frame %zu at byte %llu has data of checksum 0x%x, expected the seek table's 0x%x",
			    i, at, checksum, f->checksum);
	return 0;
}

int zst_writer_open(struct zst_writer *w, int fd, int level,
		    uint32_t frame_size)
{
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->fault = -EINVAL;
	if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel() ||
	    !frame_size || frame_size > ZST_MAX_FRAME)
		return w->fault;
	w->cctx = ZSTD_createCCtx();
	if (!w->cctx)
		die(EXIT_CANNOT, "out of memory");
	if (ZSTD_isError(ZSTD_CCtx_setParameter(w->cctx,
						ZSTD_c_compressionLevel,
						level)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(w->cctx, ZSTD_c_checksumFlag,
						1)))
		return w->fault;
	w->frame_size = frame_size;
	w->in = xcalloc(frame_size, 1);
	w->out_size = ZSTD_compressBound(frame_size);
	w->out = xcalloc(w->out_size, 1);
	w->fault = 0;
	return 0;
}

void zst_writer_free(struct zst_writer *w)
{
	ZSTD_freeCCtx(w->cctx);
	free(w->in);
	free(w->out);
	free(w->entry);
	memset(w, 0, sizeof(*w));
	w->fd = -1;
}

static int put(struct zst_writer *w, const void *data, size_t len)
{
	if (w->fault)
		return w->fault;
	w->fault = pwrite_all(w->fd, data, len, w->off);
	if (!w->fault)
		w->off += len;
	return w->fault;
}

/* Pack and write w->in */
static int put_frame(struct zst_writer *w)
{
	struct zst_disk_entry *d;
	size_t n;

	if (w->nr_frames == ZST_MAX_FRAMES)
		return w->fault = -EFBIG;
	n = ZSTD_compress2(w->cctx, w->out, w->out_size, w->in, w->in_len);
	if (ZSTD_isError(n))	/* there is room enough, so it lacks memory */
		die(EXIT_CANNOT, "cannot pack %zu bytes: %s", w->in_len,
		    ZSTD_getErrorName(n));
	if (put(w, w->out, n))
		return w->fault;
	if (w->nr_frames == w->max_frames) {
		w->max_frames = 2 * w->max_frames + 64;
		w->entry = xrealloc(w->entry, w->max_frames,
				    sizeof(*w->entry));
	}
	d = &w->entry[w->nr_frames++];
	d->packed_len = put_le32(n);
	d->len = put_le32(w->in_len);
	w->in_len = 0;
	return 0;
}

int zst_write(struct zst_writer *w, const void *data, size_t len)
{
	while (len && !w->fault) {
		size_t n = w->frame_size - w->in_len;

		if (n > len)
			n = len;
		memcpy(w->in + w->in_len, data, n);
		w->in_len += n;
		data = (const char *)data + n;
		len -= n;
		if (w->in_len == w->frame_size)
			put_frame(w);
	}
	return w->fault;
}

int zst_writer_finish(struct zst_writer *w)
{
	struct zst_disk_header header = {};
	struct zst_disk_footer footer = {};
	size_t len;

	/* Also without data there is a frame: its magic tells what this is */
	if (!w->fault && (w->in_len || !w->nr_frames))
		put_frame(w);
	len = w->nr_frames * sizeof(*w->entry);
	header.magic = put_le32(ZST_TABLE_MAGIC);
	header.len = put_le32(len + sizeof(footer));
	footer.nr_frames = put_le32(w->nr_frames);
	footer.magic = put_le32(ZST_FOOTER_MAGIC);
	put(w, &header, sizeof(header));
	put(w, w->entry, len);
	put(w, &footer, sizeof(footer));
	return w->fault;
}
