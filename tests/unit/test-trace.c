// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/trace.c: what tracefs writes is read as it is, whatever a
 * process's name; and what is not such a trace is refused with its line and byte.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "../../replay/trace.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

#define HEAD "# tracer: nop\n# entries-in-buffer/entries-written: 4/4   #P:1\n"
#define SUBMIT(who, id) who "  [000] ..... 12.345678: dm_log_writes_submit: dev 254:1 id " id " flags 0x13 sector 327730 nr_sectors 0\n"
#define COMPLETE(id, error) "  <idle>-0  [001] d.h.. 12.345999: dm_log_writes_complete: dev 254:1 id " id " error " error "\n"
#define LOG(id, entry) "  log-write-32  [000] d.... 12.4: dm_log_writes_log: dev 254:1 id " id " entry " entry "\n"

static char *path;

static int load(struct trace *t, const char *text, char error[600])
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		die(EXIT_CANNOT, "%s: %m", path);
	error[0] = '\0';
	return trace_load(t, path, error, 600);
}

static void good(void)
{
	const struct trace_bio *b;
	struct trace t;
	char error[600];

	ok_int(load(&t, HEAD SUBMIT("  my [odd]-name x-41", "7")
		    COMPLETE("7", "-5") SUBMIT(" fsync-writers-42", "9")
		    LOG("9", "3") COMPLETE("2", "0") "# dropped: 17\n", error),
	       0, "a trace%s", error);
	b = &t.bio[7];
	ok_str(b->comm, "my [odd]-name x", "a name with all in it");
	ok_int(b->pid, 41, "its process");
	ok_int(b->submitted, 3, "the line of its submission");
	ok_int(b->submit_us, 12345678, "the time of it");
	ok_int(b->flags, 0x13, "its flags");
	ok_int(b->sector, 327730, "its sector");
	ok_int(b->completed, 4, "the line of its completion");
	ok_int(b->complete_us, 12345999, "the time of that");
	ok_int(b->error, -5, "its error");
	ok(trace_entry(&t, 3) == &t.bio[9], "the bio of an entry");
	ok(!trace_entry(&t, 2), "an entry that was not traced");
	ok(!trace_entry(&t, 4), "an entry behind the last");
	ok_int(t.bio[9].completed, TRACE_NEVER, "one that did not complete");
	ok_int(t.bio[2].submitted, TRACE_NEVER, "one submitted before the trace");
	ok_int(t.bio[8].submitted, TRACE_NEVER, "one that nothing is known of");
	ok_int(t.dropped, 17, "events for which there was no room");
	trace_free(&t);
}

static void bad(void)
{
	static const struct {
		const char *what, *text, *error;
	} tests[] = {
		{ "another event", HEAD " a-1 [000] ..... 1.0: sched_switch: x\n",
		  "line 3 at byte 62: expected an event of dm_log_writes" },
		{ "lost events", HEAD "CPU:0 [LOST 12 EVENTS]\n",
		  "line 3 at byte 62: expected an event" },
		{ "overwritten events",
		  "# entries-in-buffer/entries-written: 10/12   #P:1\n",
		  "line 1 at byte 0: expected all of the entries" },
		{ "a cut line", HEAD SUBMIT("a-1", "1") " a-1 [000] ...",
		  "expected the end of the line" },
		{ "no pid", SUBMIT("idle", "1"), "expected 'comm-pid'" },
		{ "no time", " a-1 [000] ..: dm_log_writes_log: dev 1:1 id 1 entry 1\n",
		  "expected '[cpu] flags seconds" },
		{ "no id", " a-1 [000] ... 1.0: dm_log_writes_log: dev 1:1 entry 1\n",
		  "expected 'dev MAJOR:MINOR id" },
		{ "an id beyond all captures", SUBMIT("a-1", "999999999999"),
		  "expected 'dev MAJOR:MINOR id" },
		{ "an entry beyond all logs", LOG("1", "999999999999"),
		  "expected 'entry N'" },
		{ "two targets", SUBMIT("a-1", "1") " a-1 [000] ... 1.0: dm_log_writes_log: dev 254:2 id 1 entry 1\n",
		  "line 2 at byte 103: expected events of one device" },
		{ "an event of a later version", " a-1 [000] ... 1.0: dm_log_writes_drop: dev 254:2 id 1\n",
		  "expected submit, complete or log" },
	};
	struct trace t;
	char error[600];

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		ok_int(load(&t, tests[i].text, error), -EINVAL, "%s",
		       tests[i].what);
		if (!ok(strstr(error, tests[i].error) != NULL, "%s: said so",
			tests[i].what))
			printf("# got '%s', expected '%s' in it\n", error,
			       tests[i].error);
		trace_free(&t);
	}
	ok_int(trace_load(&t, "/nowhere", error, sizeof(error)), -ENOENT,
	       "no trace");
	trace_free(&t);
}

int main(void)
{
	path = xasprintf("%s/trace", scratch());
	good();
	bad();
	free(path);
	return tap_end();
}
