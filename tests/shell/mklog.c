// SPDX-License-Identifier: GPL-2.0-only
/*
 * mklog: a dm-log-writes log for the tests of the shell side, as stdin describes
 * it: a word and what it needs in each line. Numbers are decimal or 0x..., and
 * in bytes where nothing else is said.
 *
 * usage: mklog LOG
 *
 *   sector N                 the log's sector size; the first line, or 512
 *   write OFF LEN [FLAG]... [fill BYTE]
 *                            data for byte OFF of the device: LEN times BYTE, or
 *                            times the entry's number plus 1
 *   fua OFF LEN [FLAG]... [fill BYTE]
 *   flush [FLAG]...          FLAG is flush, fua, discard, mark or metadata
 *   discard OFF LEN
 *   mark TEXT                all that follows in the line; \xNN is a byte
 *   header SECTOR NR FLAGS LEN
 *                            any header, in sectors, without data behind it
 *   zero N                   N zeros, and
 *   raw HEX                  any bytes: no entries, if they are none by chance
 *   poke OFF HEX             put bytes over those at OFF of the log so far
 *   cut N                    take the last N bytes off
 *   super N                  the superblock counts N entries, whatever there are
 *   super none               it is not written yet
 *   # ...                    and empty lines: nothing
 *
 * LOG may exist. The superblock is written last, as by the kernel, so a log that
 * somebody reads meanwhile grows if more is described of it than before.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../replay/util.h"
#include "../unit/mklog.h"

static struct mklog l;
static unsigned int line_nr;
static uint64_t sectorsize = 512;
static bool no_super, other_count;
static uint64_t count;

#define wrong(fmt, ...) \
	die(EXIT_USAGE, "line %u: " fmt, line_nr, ## __VA_ARGS__)

/* The next word of the line, or NULL */
static char *word(char **rest)
{
	char *w;

	do {
		w = strsep(rest, " \t");
	} while (w && !*w);
	return w;
}

static uint64_t number(char **rest, const char *what)
{
	const char *w = word(rest);
	char *end;
	uint64_t v;

	if (!w)
		wrong("expected %s", what);
	v = strtoull(w, &end, 0);
	if (*w < '0' || *w > '9' || *end)
		wrong("'%s' is no number, expected %s", w, what);
	return v;
}

static unsigned int hex_byte(const char *p)
{
	unsigned int byte;
	int n = 0;

	if (sscanf(p, "%2x%n", &byte, &n) != 1 || n != 2)
		wrong("'%.2s', expected two hexadecimal digits", p);
	return byte;
}

static uint64_t flag(const char *name)
{
	static const char *const names[] = {
		"flush", "fua", "discard", "mark", "metadata"
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return 1ULL << i;
	wrong("unknown flag '%s'", name);
}

static void add_data(char *rest, uint64_t flags)
{
	uint64_t off = number(&rest, "where on the device");
	uint64_t len = number(&rest, "a length");
	CLEANUP_FREE uint8_t *data = xcalloc(len, 1);
	uint64_t fill = l.nr + 1;
	const char *w;

	while ((w = word(&rest))) {
		if (!strcmp(w, "fill"))
			fill = number(&rest, "a byte");
		else
			flags |= flag(w);
	}
	memset(data, fill, len);
	mklog_write(&l, flags, off, data, len);
}

static void add_write(char *rest)
{
	add_data(rest, 0);
}

static void add_fua(char *rest)
{
	add_data(rest, LW_FUA);
}

static void add_flush(char *rest)
{
	uint64_t flags = LW_FLUSH;
	const char *w;

	while ((w = word(&rest)))
		flags |= flag(w);
	mklog_header(&l, 0, 0, flags, 0);
}

static void add_discard(char *rest)
{
	uint64_t off = number(&rest, "where on the device");

	mklog_discard(&l, off, number(&rest, "a length"));
}

static void add_mark(char *rest)
{
	CLEANUP_FREE char *text = xstrdup(rest ? rest : "");
	size_t len = 0;

	for (const char *p = text; *p; len++) {
		if (p[0] == '\\' && p[1] == 'x') {
			text[len] = hex_byte(p + 2);
			p += 4;
		} else {
			text[len] = *p++;
		}
	}
	if (len > sectorsize - sizeof(struct lw_disk_entry))
		wrong("a mark of %zu bytes", len);
	mklog_text(&l, text, len);
}

static void add_header(char *rest)
{
	uint64_t sector = number(&rest, "a sector");
	uint64_t nr = number(&rest, "a number of sectors");
	uint64_t flags = number(&rest, "flags");

	mklog_header(&l, sector, nr, flags, number(&rest, "a data length"));
}

static void add_zeros(char *rest)
{
	uint64_t len = number(&rest, "a length");

	mklog_raw(&l, NULL, len);
}

static void add_raw(char *rest)
{
	const char *w = word(&rest);

	for (; w && *w; w += 2) {
		uint8_t byte = hex_byte(w);

		mklog_raw(&l, &byte, 1);
	}
}

static void poke(char *rest)
{
	uint64_t off = number(&rest, "a byte of the log");
	const char *w = word(&rest);

	for (; w && *w; w += 2) {
		if (off >= l.len)
			wrong("byte %llu of %zu", (unsigned long long)off,
			      l.len);
		l.buf[off++] = hex_byte(w);
	}
}

static void cut(char *rest)
{
	uint64_t n = number(&rest, "a length");

	if (n > l.len)
		wrong("there are %zu bytes only", l.len);
	l.len -= n;
}

static void set_super(char *rest)
{
	if (rest && !strcmp(rest, "none")) {
		no_super = true;
		return;
	}
	other_count = true;
	count = number(&rest, "a count");
}

static void set_sector(char *rest)
{
	if (l.buf)
		wrong("the sector size comes first");
	sectorsize = number(&rest, "a size");
}

static void read_line(char *rest)
{
	static const struct {
		const char	*name;
		void		(*act)(char *rest);
	} words[] = {
		{ "write", add_write }, { "fua", add_fua }, { "flush", add_flush },
		{ "discard", add_discard }, { "mark", add_mark },
		{ "header", add_header }, { "zero", add_zeros },
		{ "raw", add_raw }, { "poke", poke }, { "cut", cut },
		{ "super", set_super }, { "sector", set_sector },
	};
	const char *w = word(&rest);

	if (!w || *w == '#')
		return;
	if (!l.buf && strcmp(w, "sector"))
		mklog_init(&l, NULL, sectorsize);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(w, words[i].name))
			continue;
		words[i].act(rest);
		return;
	}
	wrong("unknown word '%s'", w);
}

static void save(const char *path)
{
	size_t super = l.len < sectorsize ? l.len : sectorsize;
	CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (other_count && l.len >= sizeof(struct lw_disk_super))
		mklog_count(&l, count);
	if (no_super)
		memset(l.buf, 0, super);
	if (fd < 0 || pwrite_all(fd, l.buf + super, l.len - super, super) ||
	    pwrite_all(fd, l.buf, super, 0) || ftruncate(fd, l.len))
		die(EXIT_CANNOT, "%s: cannot write: %m", path);
}

int main(int argc, char **argv)
{
	CLEANUP_FREE char *line = NULL;
	size_t max = 0;
	ssize_t n;

	if (argc != 2)
		die(EXIT_USAGE, "expected LOG");
	while ((n = getline(&line, &max, stdin)) >= 0) {
		line_nr++;
		if (n && line[n - 1] == '\n')
			line[n - 1] = '\0';
		read_line(line + strspn(line, " \t"));
	}
	if (!l.buf)
		mklog_init(&l, NULL, sectorsize);
	save(argv[1]);
	mklog_free(&l);
	return EXIT_OK;
}
