// SPDX-License-Identifier: GPL-2.0-only
/* Reading a capture's trace; see trace.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "util.h"

enum {
	MAX_ID		= 1 << 28,	/* no capture has as many bios */
};

/* Where in the file the reader is */
struct reader {
	struct trace	*t;
	const char	*path;
	uint64_t	line, off;
	uint64_t	max, max_entries;	/* allocated */
	unsigned int	major, minor;		/* of the target's device */
	char		*error;
	size_t		size;
};

static int bad_line(const struct reader *r, const char *expected)
{
	snprintf(r->error, r->size, "%s: line %llu at byte %llu: expected %s",
		 r->path, (unsigned long long)r->line,
		 (unsigned long long)r->off, expected);
	return -EINVAL;
}

static struct trace_bio *get_bio(struct reader *r, uint64_t id)
{
	struct trace *t = r->t;

	if (id >= r->max) {
		r->max = 2 * id + 1024;
		t->bio = xrealloc(t->bio, r->max, sizeof(*t->bio));
	}
	for (; t->nr <= id; t->nr++)
		t->bio[t->nr] = (struct trace_bio){
			.submitted = TRACE_NEVER, .completed = TRACE_NEVER,
			.logged = TRACE_NEVER, .entry = TRACE_NEVER,
		};
	return &t->bio[id];
}

static void set_entry(struct reader *r, uint64_t entry, uint64_t id)
{
	struct trace *t = r->t;

	if (entry >= r->max_entries) {
		r->max_entries = 2 * entry + 1024;
		t->by_entry = xrealloc(t->by_entry, r->max_entries,
				       sizeof(*t->by_entry));
	}
	while (t->nr_entries <= entry)
		t->by_entry[t->nr_entries++] = TRACE_NEVER;
	t->by_entry[entry] = id;
}

/*
 * What precedes an event's name: "comm-pid [cpu] flags seconds.micros: ". The
 * comm may have spaces, brackets and dashes in it.
 */
static int read_context(const struct reader *r, char *text, char comm[16],
			int32_t *pid, uint64_t *us)
{
	unsigned long long sec;
	unsigned int usec;
	char *cpu = NULL, *p, *dash;
	int n = 0;

	for (p = text; (p = strstr(p, " [")); p++)
		cpu = p;
	if (!cpu)
		return bad_line(r, "'comm-pid [cpu] flags time:'");
	p = strchr(cpu + 2, ']');
	if (!p || sscanf(p, "] %*s %llu.%6u%n", &sec, &usec, &n) != 2 || !n)
		return bad_line(r, "'[cpu] flags seconds.micros:'");
	*us = sec * 1000000 + usec;
	*cpu = '\0';
	dash = strrchr(text, '-');
	if (!dash || sscanf(dash, "-%d", pid) != 1)
		return bad_line(r, "'comm-pid' before the cpu");
	*dash = '\0';
	text += strspn(text, " ");
	snprintf(comm, 16, "%.15s", text);
	return 0;
}

static int read_event(struct reader *r, char *text)
{
	static const char prefix[] = ": dm_log_writes_";
	unsigned int major, minor;
	unsigned long long id, flags, entry, sector;
	struct trace_bio *b;
	char comm[16], *event;
	uint64_t us;
	int32_t pid;
	int error, n = 0, ret;

	event = strstr(text, prefix);
	if (!event)
		return bad_line(r, "an event of dm_log_writes");
	*event = '\0';
	event += sizeof(prefix) - 1;
	ret = read_context(r, text, comm, &pid, &us);
	if (ret)
		return ret;
	if (sscanf(event, "%*[a-z]: dev %u:%u id %llu %n", &major, &minor, &id,
		   &n) != 3 || !n || id > MAX_ID)
		return bad_line(r, "'dev MAJOR:MINOR id NUMBER'");
	if (!r->t->lines) {
		r->major = major;
		r->minor = minor;
	} else if (major != r->major || minor != r->minor) {
		return bad_line(r, "events of one device only");
	}
	r->t->lines++;
	b = get_bio(r, id);
	if (!strncmp(event, "submit:", 7)) {
		if (sscanf(event + n, "flags %llx sector %llu", &flags,
			   &sector) != 2)
			return bad_line(r, "'flags 0xN sector N'");
		b->submitted = r->line;
		b->submit_us = us;
		b->flags = flags;
		b->sector = sector;
		b->pid = pid;
		memcpy(b->comm, comm, sizeof(comm));
	} else if (!strncmp(event, "complete:", 9)) {
		if (sscanf(event + n, "error %d", &error) != 1)
			return bad_line(r, "'error N'");
		b->completed = r->line;
		b->complete_us = us;
		b->error = error;
	} else if (!strncmp(event, "log:", 4)) {
		if (sscanf(event + n, "entry %llu", &entry) != 1 ||
		    entry > MAX_ID)
			return bad_line(r, "'entry N'");
		b->logged = r->line;
		b->entry = entry;
		set_entry(r, entry, id);
	} else {
		return bad_line(r, "submit, complete or log");
	}
	return 0;
}

/* "# entries-in-buffer/entries-written: N/M": fewer than were written? */
static int read_comment(struct reader *r, const char *text)
{
	unsigned long long in_buffer, written, dropped;

	if (sscanf(text, "# entries-in-buffer/entries-written: %llu/%llu",
		   &in_buffer, &written) == 2 && in_buffer != written)
		return bad_line(r, "all of the entries that were written");
	/* harness/guest/capture adds this one */
	if (sscanf(text, "# dropped: %llu", &dropped) == 1)
		r->t->dropped = dropped;
	return 0;
}

int trace_load(struct trace *t, const char *path, char *error, size_t size)
{
	struct reader r = {
		.t = t, .path = path, .error = error, .size = size,
	};
	CLEANUP_FREE char *text = NULL;
	size_t max = 0;
	ssize_t n;
	FILE *f;
	int ret = 0;

	memset(t, 0, sizeof(*t));
	f = fopen(path, "re");
	if (!f) {
		ret = -errno;
		snprintf(error, size, "%s: %m", path);
		return ret;
	}
	while (!ret && (n = getline(&text, &max, f)) > 0) {
		r.line++;
		if (text[n - 1] != '\n')
			ret = bad_line(&r, "the end of the line");
		else if (strlen(text) != (size_t)n)
			ret = bad_line(&r, "text");
		else if (text[0] == '#' || text[0] == '\n')
			ret = read_comment(&r, text);
		else
			ret = read_event(&r, text);
		r.off += n;
	}
	if (!ret && ferror(f)) {
		snprintf(error, size, "%s: cannot read: %m", path);
		ret = -EIO;
	}
	fclose(f);
	return ret;
}

void trace_free(struct trace *t)
{
	free(t->bio);
	free(t->by_entry);
	memset(t, 0, sizeof(*t));
}
