// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/zst.c: what was written reads back, frame by frame and as one
 * file of plain zstd; files of others do, too; and whatever is wrong with a
 * seek table or a frame is refused with a message that names the byte, or at
 * least never passes as other data.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "../../replay/le.h"
#include "../../replay/util.h"
#include "../../replay/zst.h"
#include "mklog.h"
#include "tap.h"

enum { MIB = 1 << 20, SIZE = 3 * MIB };

static uint8_t data[SIZE];
static char *path;

/* A new file that holds @buf */
static int file_of(const void *buf, size_t len)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || pwrite_all(fd, buf, len, 0))
		die(EXIT_CANNOT, "%s: %m", path);
	return fd;
}

/* All of a file. Owned by the caller. */
static uint8_t *contents(int fd, size_t *len)
{
	uint8_t *buf;

	*len = lseek(fd, 0, SEEK_END);
	buf = xcalloc(*len, 1);
	if (pread_all(fd, buf, *len, 0))
		die(EXIT_CANNOT, "%s: %m", path);
	return buf;
}

/* A new file with the first @len bytes of data, given by @step bytes */
static int pack(size_t len, int level, uint32_t frame_size, size_t step)
{
	int fd = file_of(NULL, 0);
	struct zst_writer w;
	int ret;

	ret = zst_writer_open(&w, fd, level, frame_size);
	for (size_t i = 0; i < len && !ret; i += step)
		ret = zst_write(&w, data + i,
				len - i < step ? len - i : step);
	if (!ret)
		ret = zst_writer_finish(&w);
	zst_writer_free(&w);
	if (ret)
		die(EXIT_LOSS, "%s: cannot pack: %s", path, strerror(-ret));
	return fd;
}

/* Each frame, the last one first, holds what it should of data. */
static bool frames_hold_data(struct zst *z)
{
	bool same = true;

	for (size_t i = z->nr_frames; i-- > 0; ) {
		const struct zst_frame *f = &z->frame[i];
		CLEANUP_FREE uint8_t *buf = xcalloc(f->len, 1);

		same &= !zst_read_frame(z, i, buf) &&
			!memcmp(buf, data + f->off, f->len);
	}
	return same;
}

/* What zstd -d does, which knows nothing of seek tables */
static bool plain_zstd_unpacks(int fd, size_t len)
{
	CLEANUP_FREE uint8_t *buf = xcalloc(len, 1);
	CLEANUP_FREE uint8_t *packed = NULL;
	size_t packed_len;

	packed = contents(fd, &packed_len);
	return ZSTD_decompress(buf, len, packed, packed_len) == len &&
	       !memcmp(buf, data, len);
}

/* Each has the length in its header, and the flag for a checksum. */
static bool frames_have_all(int fd, const struct zst *z)
{
	bool all = true;

	for (size_t i = 0; i < z->nr_frames; i++) {
		const struct zst_frame *f = &z->frame[i];
		uint8_t header[18];	/* the longest that there is */
		size_t n = f->packed_len < sizeof(header) ? f->packed_len :
			   sizeof(header);

		all &= !pread_all(fd, header, n, f->packed_off) &&
		       (header[4] & 0x04) &&
		       ZSTD_getFrameContentSize(header, n) == f->len;
	}
	return all;
}

static void round_trip(size_t len, int level, uint32_t frame_size, size_t step,
		       size_t nr_frames)
{
	CLEANUP_CLOSE int fd = pack(len, level, frame_size, step);
	struct zst z;

	printf("# %zu bytes, level %d, frames of %u, given by %zu\n", len,
	       level, frame_size, step);
	ok(zst_is(fd), "is known by its contents");
	if (!ok_int(zst_open(&z, fd), 0, "opens"))
		printf("# %s\n", z.error);
	ok_int(z.size, len, "its size");
	ok_int(z.nr_frames, nr_frames, "its number of frames");
	ok(frames_hold_data(&z), "every frame on its own");
	ok(frames_have_all(fd, &z), "with its length and checksum");
	ok(plain_zstd_unpacks(fd, len), "plain zstd unpacks it");
	zst_close(&z);
}

static void round_trips(void)
{
	round_trip(0, 3, 4096, 1, 1);
	round_trip(1, 3, 4096, 1, 1);
	round_trip(4095, 3, 4096, 4095, 1);
	round_trip(4096, 3, 4096, 4096, 1);
	round_trip(4097, 3, 4096, 4097, 2);
	round_trip(8192, 3, 4096, 1, 2);
	round_trip(8193, 3, 4096, 3000, 3);
	round_trip(200, -5, 1, 77, 200);
	round_trip(SIZE - 1, 1, MIB, SIZE, 3);
	round_trip(SIZE, 1, 256 << 10, 100000, 12);
	round_trip(SIZE, 5, 2 * SIZE, MIB, 1);
}

/* The most that anything can be packed is not more than zst.c takes for true. */
static void best_case(void)
{
	CLEANUP_FREE uint8_t *was = xcalloc(SIZE, 1);

	memcpy(was, data, SIZE);
	memset(data, 0, SIZE);
	round_trip(SIZE, 1, SIZE, SIZE, 1);
	round_trip(MIB, 19, MIB, MIB, 1);
	memcpy(data, was, SIZE);
}

static uint32_t draw(uint32_t below)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return (x >> 33) % below;
}

/* Among frames of which many are empty, against a search one by one */
static void find(void)
{
	struct zst_frame frame[60];
	bool same = true;

	for (uint32_t nr = 1; nr <= ARRAY_SIZE(frame); nr++) {
		struct zst z = { .frame = frame, .nr_frames = nr };

		for (uint32_t i = 0; i < nr; i++) {
			frame[i].off = z.size;
			frame[i].len = draw(2) * draw(4);
			z.size += frame[i].len;
		}
		for (uint64_t off = 0; off < z.size; off++) {
			size_t i = 0;

			while (off - frame[i].off >= frame[i].len)
				i++;
			same &= zst_find(&z, off) == i;
		}
	}
	ok(same, "the frame of every byte is found");
}

/*
 * As others may write: with checksums in the table instead of the frames,
 * frames without data, and bits that mean nothing.
 */
static const uint8_t foreign[] = {
	/* 0: its length, 3, then a raw block */
	0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 'a', 'b', 'c',
	/* 12: to skip */
	0x53, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4,
	/* 24: no length, a block of 300 times the same */
	0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0x63, 0x09, 0, 'z',
	/* 34: no data */
	0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 0x01, 0, 0,
	/* 43: the table's header, 51: its entries, 99: its footer */
	0x5e, 0x2a, 0x4d, 0x18, 57, 0, 0, 0,
	12, 0, 0, 0, 3, 0, 0, 0, 0x99, 0x09, 0x77, 0xad,
	12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	10, 0, 0, 0, 300 & 0xff, 300 >> 8, 0, 0, 0x6b, 0x70, 0xe9, 0x39,
	9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	4, 0, 0, 0, 0x83, 0xb1, 0xea, 0x92, 0x8f,
};

static void foreign_file(void)
{
	CLEANUP_CLOSE int fd = file_of(foreign, sizeof(foreign));
	char want[300], got[300] = "";
	struct zst z;

	memset(want, 'z', sizeof(want));
	ok(zst_is(fd), "a foreign file is known by its contents");
	if (!ok_int(zst_open(&z, fd), 0, "opens"))
		printf("# %s\n", z.error);
	ok_int(z.size, 303, "its size");
	ok_int(z.nr_frames, 4, "its number of frames");
	ok(zst_find(&z, 0) == 0 && zst_find(&z, 2) == 0 &&
	   zst_find(&z, 3) == 2 && zst_find(&z, 302) == 2,
	   "no byte is in an empty frame");
	ok(!zst_read_frame(&z, 0, got) && !memcmp(got, "abc", 3),
	   "a frame with its length");
	ok(!zst_read_frame(&z, 2, got) && !memcmp(got, want, sizeof(want)),
	   "a frame without");
	ok(!zst_read_frame(&z, 1, NULL) && !zst_read_frame(&z, 3, NULL),
	   "frames without data");
	zst_close(&z);
}

/* The foreign file's first @len bytes, with @width bytes changed at @at */
static int damaged(size_t len, size_t at, size_t width, uint32_t value)
{
	__le32 v = put_le32(value);
	uint8_t buf[sizeof(foreign)];

	memcpy(buf, foreign, sizeof(buf));
	memcpy(buf + at, &v, width);
	return file_of(buf, len);
}

/* The file of @fd, which it closes, must not open. */
static void no_open(int fd, int ret, const char *want)
{
	struct zst z;

	ok_int(zst_open(&z, fd), ret, "refused: %s", want);
	ok_str(z.error, want, "with that message");
	zst_close(&z);
	cleanup_close(&fd);
}

/* It opens, but its frame @i must not unpack. */
static void no_frame(int fd, size_t i, int ret, const char *want)
{
	CLEANUP_FREE void *buf = NULL;
	struct zst z;

	if (zst_open(&z, fd))
		die(EXIT_LOSS, "%s: %s", path, z.error);
	buf = xcalloc(z.frame[i].len, 1);
	ok_int(zst_read_frame(&z, i, buf), ret, "refused: %s", want);
	ok_str(z.error, want, "with that message");
	zst_close(&z);
	cleanup_close(&fd);
}

/* @fmt has a %s for what libzstd calls it, in its version. */
__attribute__((format(printf, 2, 0)))
static char *libzstd_says(ZSTD_ErrorCode code, const char *fmt)
{
	return xasprintf(fmt, ZSTD_getErrorString(code));
}

static void bad_footer(void)
{
	const size_t all = sizeof(foreign);

	no_open(damaged(0, 0, 0, 0), -EINVAL,
		"not seekable, or cut short: 0 bytes, expected a seek table of at least 17 at the end: unpack it with zstd -d, or pack it with lwlog convert");
	no_open(damaged(16, 0, 0, 0), -EINVAL,
		"not seekable, or cut short: 16 bytes, expected a seek table of at least 17 at the end: unpack it with zstd -d, or pack it with lwlog convert");
	/* only the frames */
	no_open(damaged(43, 0, 0, 0), -EINVAL,
		"not seekable, or cut short: magic 0x100 at byte 39, expected a seek table's 0x8f92eab1: unpack it with zstd -d, or pack it with lwlog convert");
	no_open(damaged(all - 1, 0, 0, 0), -EINVAL,
		"not seekable, or cut short: magic 0x92eab183 at byte 103, expected a seek table's 0x8f92eab1: unpack it with zstd -d, or pack it with lwlog convert");
	no_open(damaged(all, 103, 1, 0x84), -EINVAL,
		"seek table's descriptor 0x84 at byte 103, expected none of the bits 0x7c");
	no_open(damaged(all, 103, 1, 0x40), -EINVAL,
		"seek table's descriptor 0x40 at byte 103, expected none of the bits 0x7c");
	no_open(damaged(all, 99, 4, 0x8000001), -EINVAL,
		"a seek table of 134217729 frames at byte 99, expected at most 134217728");
	no_open(damaged(all, 99, 4, 0x8000000), -EINVAL,
		"truncated: a seek table of 134217728 frames at byte 99, expected its 1610612753 bytes within the file's 108");
	no_open(damaged(all, 99, 4, 8), -EINVAL,
		"truncated: a seek table of 8 frames at byte 99, expected its 113 bytes within the file's 108");
	no_open(damaged(all, 99, 4, 7), -EINVAL,
		"seek table's magic 0x62610000 at byte 7, expected 0x184d2a5e, as there are 7 frames");
	no_open(damaged(all, 103, 1, 0), -EINVAL,
		"seek table's magic 0xad770999 at byte 59, expected 0x184d2a5e, as there are 4 frames");
	no_open(damaged(all, 43, 1, 0x5d), -EINVAL,
		"seek table's magic 0x184d2a5d at byte 43, expected 0x184d2a5e, as there are 4 frames");
	no_open(damaged(all, 47, 4, 58), -EINVAL,
		"seek table's length 58 at byte 47, expected 57, as there are 4 frames");
}

/* A table of one frame behind a hole of @packed_len bytes */
static int after_hole(uint32_t packed_len, uint32_t len)
{
	struct zst_disk_header header = {
		put_le32(ZST_TABLE_MAGIC),
		put_le32(sizeof(struct zst_disk_entry) +
			 sizeof(struct zst_disk_footer)),
	};
	struct zst_disk_entry entry = { put_le32(packed_len), put_le32(len) };
	struct zst_disk_footer footer = {
		put_le32(1), 0, put_le32(ZST_FOOTER_MAGIC),
	};
	int fd = file_of(NULL, 0);

	if (pwrite_all(fd, &header, sizeof(header), packed_len) ||
	    pwrite_all(fd, &entry, sizeof(entry), packed_len + 8ULL) ||
	    pwrite_all(fd, &footer, sizeof(footer), packed_len + 16ULL))
		die(EXIT_CANNOT, "%s: cannot write", path);
	return fd;
}

static void bad_entries(void)
{
	const size_t all = sizeof(foreign);
	CLEANUP_FREE char *too_small =
		libzstd_says(ZSTD_error_dstSize_tooSmall,
			     "frame 2 at byte 24 does not unpack, expected 0 bytes of data: %s");

	no_open(damaged(all, 63, 4, 7), -EINVAL,
		"frame 1 at byte 12 takes 7 bytes, expected at least 8");
	no_open(damaged(all, 87, 4, 10), -EINVAL,
		"frame 3 at byte 34 takes 10 bytes, expected its end before the seek table at byte 43");
	no_open(damaged(all, 51, 4, UINT32_MAX), -EINVAL,
		"frame 0 at byte 0 takes 4294967295 bytes, expected its end before the seek table at byte 43");
	no_open(damaged(all, 87, 4, 8), -EINVAL,
		"4 frames end at byte 42, expected the seek table there, which is at byte 43");
	no_open(after_hole(1077936129, 0), -EINVAL,
		"frame 0 at byte 0 takes 1077936129 bytes, expected at most 1077936128");
	no_open(after_hole(1 << 20, (1 << 30) + 1), -EINVAL,
		"frame 0 at byte 0 has 1073741825 bytes unpacked, expected at most 1073741824");
	no_open(damaged(all, 55, 4, 3 * (128 << 10) + 1), -EINVAL,
		"frame 0 at byte 0 has 393217 bytes unpacked, expected at most the 393216 that 12 bytes can hold");
	no_open(damaged(all, 79, 4, 1 << 30), -EINVAL,
		"frame 2 at byte 24 has 1073741824 bytes unpacked, expected at most the 262144 that 10 bytes can hold");

	/* data that nobody would read */
	no_open(damaged(all, 55, 4, 0), -EINVAL,
		"frame 0 at byte 0 has 3 bytes unpacked, expected the seek table's 0");
	no_open(damaged(all, 79, 4, 0), -EINVAL, too_small);
	no_open(damaged(all, 12, 1, 0x4f), -EINVAL,
		"frame 1 at byte 12 has magic 0x184d2a4f, expected 0xfd2fb528");
	no_open(damaged(all, 16, 1, 3), -EINVAL,
		"frame 1 at byte 12 takes 11 bytes, expected the seek table's 12");
}

static void bad_frames(void)
{
	const size_t all = sizeof(foreign);
	CLEANUP_FREE char *no_end =
		libzstd_says(ZSTD_error_srcSize_wrong,
			     "frame 0 at byte 0 has no end, expected it after 12 bytes: %s");
	CLEANUP_FREE char *bad_block =
		libzstd_says(ZSTD_error_corruption_detected,
			     "frame 0 at byte 0 has no end, expected it after 12 bytes: %s");
	CLEANUP_FREE char *too_small =
		libzstd_says(ZSTD_error_dstSize_tooSmall,
			     "frame 2 at byte 24 does not unpack, expected 299 bytes of data: %s");

	/* of zstd 0.7, which libzstd may know */
	no_frame(damaged(all, 0, 1, 0x27), 0, -EINVAL,
		 "frame 0 at byte 0 has magic 0xfd2fb527, expected 0xfd2fb528");
	no_frame(damaged(all, 67, 4, 4), 1, -EINVAL,
		 "frame 1 at byte 12 has magic 0x184d2a53, expected 0xfd2fb528");
	no_frame(damaged(all, 6, 1, 0x21), 0, -EINVAL, no_end);
	no_frame(damaged(all, 6, 1, 0x1f), 0, -EINVAL, bad_block);
	no_frame(damaged(all, 55, 4, 3 * (128 << 10)), 0, -EINVAL,
		 "frame 0 at byte 0 has 3 bytes unpacked, expected the seek table's 393216");
	no_frame(damaged(all, 79, 4, 299), 2, -EINVAL, too_small);
	no_frame(damaged(all, 79, 4, 301), 2, -EINVAL,
		 "frame 2 at byte 24 has 300 bytes unpacked, expected the seek table's 301");
	no_frame(damaged(all, 59, 1, 0x98), 0, -EINVAL,
		 "frame 0 at byte 0 has data of checksum 0xad770999, expected the seek table's 0xad770998");
	no_frame(damaged(all, 33, 1, 'y'), 2, -EINVAL,
		 "frame 2 at byte 24 has data of checksum 0xdc1eafc3, expected the seek table's 0x39e9706b");
}

/* A flipped byte in the middle of a frame that the writer made */
static void flipped_data(void)
{
	CLEANUP_FREE char *want =
		libzstd_says(ZSTD_error_checksum_wrong,
			     "frame 1 at byte 4110 does not unpack, expected 4096 bytes of data: %s");
	uint8_t byte;
	int fd;

	/* noise cannot be packed: only the checksum tells */
	for (size_t i = 0; i < 3 * 4096; i++)
		data[i] = draw(256);
	fd = pack(3 * 4096, 3, 4096, 4096);
	if (pread_all(fd, &byte, 1, 4110 + 2000))
		die(EXIT_CANNOT, "%s: %m", path);
	byte ^= 0x10;
	if (pwrite_all(fd, &byte, 1, 4110 + 2000))
		die(EXIT_CANNOT, "%s: %m", path);
	no_frame(fd, 1, -EINVAL, want);
}

/* The file is refused, with a message, or holds the first @len bytes of data. */
static bool refused_or_same(int fd, size_t len)
{
	uint64_t end = 0;
	struct zst z;
	bool good;
	int ret;

	ret = zst_open(&z, fd);
	for (size_t i = 0; i < z.nr_frames && !ret; i++) {
		const struct zst_frame *f = &z.frame[i];
		CLEANUP_FREE uint8_t *got = xcalloc(f->len, 1);

		ret = zst_read_frame(&z, i, got);
		if (!ret && (f->off != end || memcmp(got, data + end, f->len)))
			break;
		end += f->len;
	}
	good = ret ? *z.error : end == len && z.size == len;
	zst_close(&z);
	return good;
}

static void every_bit(void)
{
	enum { LEN = 300 };
	CLEANUP_CLOSE int fd = pack(LEN, 3, 128, LEN);
	CLEANUP_FREE uint8_t *buf = NULL;
	unsigned int bad = 0;
	struct zst z;
	size_t n;

	buf = contents(fd, &n);
	for (size_t i = 0; i < n; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			uint8_t byte = buf[i] ^ 1 << bit;

			if (pwrite_all(fd, &byte, 1, i))
				die(EXIT_CANNOT, "%s: %m", path);
			bad += !refused_or_same(fd, LEN);
		}
		if (pwrite_all(fd, &buf[i], 1, i))
			die(EXIT_CANNOT, "%s: %m", path);
	}
	ok_int(bad, 0, "no flipped bit gives other data");
	ok(refused_or_same(fd, LEN) && !zst_open(&z, fd),
	   "and without one it opens");
	zst_close(&z);
	bad = 0;
	while (n-- > 0) {
		if (ftruncate(fd, n))
			die(EXIT_CANNOT, "%s: %m", path);
		bad += zst_open(&z, fd) != -EINVAL;
		zst_close(&z);
	}
	ok_int(bad, 0, "wherever it is cut, it does not");
}

static void cannot_read(void)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	struct zst z;

	if (fd < 0 || pwrite_all(fd, foreign, sizeof(foreign), 0) ||
	    ftruncate(fd, sizeof(foreign)))
		die(EXIT_CANNOT, "%s: %m", path);
	ok(!zst_is(fd), "what cannot be read is nothing");
	no_open(fd, -EBADF,
		"cannot read the seek table's footer, 9 bytes at byte 99: Bad file descriptor");
	no_open(-1, -EBADF, "cannot tell its size: Bad file descriptor");

	fd = file_of(foreign, sizeof(foreign));
	if (zst_open(&z, fd) || ftruncate(fd, 30))
		die(EXIT_LOSS, "%s: %s", path, z.error);
	ok_int(zst_read_frame(&z, 2, data), -EIO, "cut while it is open");
	ok_str(z.error,
	       "cannot read frame 2, 10 bytes at byte 24: Input/output error",
	       "with its message");
	zst_close(&z);
	cleanup_close(&fd);
}

static void other_contents(void)
{
	CLEANUP_CLOSE int none = file_of(foreign, 3);
	CLEANUP_CLOSE int table = -1;
	struct zst_disk_header header = {
		put_le32(ZST_TABLE_MAGIC),
		put_le32(sizeof(struct zst_disk_footer)),
	};
	struct zst_disk_footer footer = { .magic = put_le32(ZST_FOOTER_MAGIC) };
	uint8_t buf[sizeof(header) + sizeof(footer)];
	struct zst z;

	ok(!zst_is(none), "three bytes are no zstd");
	memcpy(buf, &header, sizeof(header));
	memcpy(buf + sizeof(header), &footer, sizeof(footer));
	table = file_of(buf, sizeof(buf));
	ok(!zst_is(table), "nor is a table alone");
	ok(!zst_open(&z, table) && !z.size && !z.nr_frames,
	   "but it opens, with no data");
	zst_close(&z);
}

static void bad_parameters(void)
{
	struct zst_writer w;

	ok_int(zst_writer_open(&w, -1, ZSTD_maxCLevel() + 1, 4096), -EINVAL,
	       "level too high");
	ok_int(zst_write(&w, data, 1), -EINVAL, "stays so");
	ok_int(zst_writer_finish(&w), -EINVAL, "to the end");
	zst_writer_free(&w);
	ok_int(zst_writer_open(&w, -1, ZSTD_minCLevel() - 1, 4096), -EINVAL,
	       "level too low");
	zst_writer_free(&w);
	ok_int(zst_writer_open(&w, -1, 3, 0), -EINVAL, "frames of nothing");
	zst_writer_free(&w);
	ok_int(zst_writer_open(&w, -1, 3, ZST_MAX_FRAME + 1), -EINVAL,
	       "frames too large");
	zst_writer_free(&w);
}

static void disk_full(void)
{
	CLEANUP_CLOSE int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct zst_writer w;

	if (fd < 0 || zst_writer_open(&w, fd, 3, 4096))
		die(EXIT_CANNOT, "/dev/full: %m");
	ok_int(zst_write(&w, data, 4095), 0, "nothing to write yet");
	ok_int(zst_write(&w, data, 4096), -ENOSPC, "disk full");
	w.fd = -1;
	ok_int(zst_write(&w, data, 1), -ENOSPC, "stays so");
	ok_int(zst_writer_finish(&w), -ENOSPC, "to the end");
	zst_writer_free(&w);
}

/* Also where only the table finds no room, or a part of it */
static void no_room_for_table(void)
{
	struct rlimit old, limit;
	bool refused = true;
	struct stat st;
	int fd = pack(10000, 3, 4096, 10000);

	if (fstat(fd, &st) || getrlimit(RLIMIT_FSIZE, &old))
		die(EXIT_CANNOT, "%s: %m", path);
	cleanup_close(&fd);
	signal(SIGXFSZ, SIG_IGN);
	limit = old;
	for (off_t missing = 1; missing <= 8 + 3 * 8 + 9; missing++) {
		struct zst_writer w;

		fd = file_of(NULL, 0);
		limit.rlim_cur = st.st_size - missing;
		if (setrlimit(RLIMIT_FSIZE, &limit) ||
		    zst_writer_open(&w, fd, 3, 4096))
			die(EXIT_CANNOT, "%s: %m", path);
		refused &= !zst_write(&w, data, 10000) &&
			   zst_writer_finish(&w) == -EFBIG;
		zst_writer_free(&w);
		cleanup_close(&fd);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	ok(refused, "no room for the table");
}

static void too_many_frames(void)
{
	CLEANUP_CLOSE int fd = file_of(NULL, 0);
	struct zst_writer w;

	if (zst_writer_open(&w, fd, 3, 16))
		die(EXIT_LOSS, "%s: cannot pack", path);
	w.nr_frames = ZST_MAX_FRAMES;
	ok_int(zst_write(&w, data, 16), -EFBIG, "too many frames");
	ok_int(zst_writer_finish(&w), -EFBIG, "stays so");
	zst_writer_free(&w);
}

int main(void)
{
	path = xasprintf("%s/file.zst", scratch());
	/* packs somewhat, and no part is like another */
	for (size_t i = 0; i < SIZE; i++)
		data[i] = draw(i / 512 % 200 + 2);
	round_trips();
	best_case();
	find();
	foreign_file();
	bad_footer();
	bad_entries();
	bad_frames();
	every_bit();
	flipped_data();
	cannot_read();
	other_contents();
	bad_parameters();
	disk_full();
	no_room_for_table();
	too_many_frames();
	free(path);
	return tap_end();
}
