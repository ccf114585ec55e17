// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/capture.c: a capture that is damaged, of another format or not
 * complete is refused with a message that names the file and what is wrong.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../replay/capture.h"
#include "../../replay/util.h"
#include "mklog.h"
#include "tap.h"

#define WORKLOAD \
	"\"mode\": \"mixed\", \"sync\": \"fsync\", \"seed\": 9, \"writers\": 2, \"fsyncs\": 7, \"files\": 3, \"blocks\": 4"
#define REST(state, workload) \
	"\"state\": \"" state "\", \"data_size\": 4096, \"mount_options\": \"logbsize=32k\", \"workload\": {" workload "}"
#define WHOLE(workload)	"{\"format\": 1, " REST("complete", workload) "}"

static char *path;

static void save(const char *json)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(json, f) < 0 || fclose(f))
		die(EXIT_CANNOT, "%s: %m", path);
}

static int load(struct capture *c, bool recording, char error[600])
{
	error[0] = '\0';
	return capture_load(c, scratch(), recording, error, 600);
}

static void good(void)
{
	CLEANUP_FREE char *log = xasprintf("%s/log", scratch());
	struct capture c;
	char error[600];

	save(WHOLE(WORKLOAD));
	ok_int(load(&c, false, error), 0, "a complete capture%s", error);
	ok_str(c.log, log, "its log");
	ok_str(c.mount_options, "logbsize=32k", "its mount options");
	ok_int(c.data_size, 4096, "its data size");
	ok(c.model.p.mode == MODE_MIXED && !c.model.p.datasync &&
	   c.model.p.seed == 9 && c.model.p.writers == 2 &&
	   c.model.p.ops == 7 && c.model.p.files == 3 &&
	   c.model.p.blocks == 4, "its workload");
	capture_free(&c);

	save("{\"format\": 1, " REST("recording", WORKLOAD) "}");
	ok_int(load(&c, true, error), 0, "for the writers, one that is being recorded%s",
	       error);
	capture_free(&c);
}

/* What the synthetic logs of the other tests come with */
static void synthetic(void)
{
	struct model_params p = {
		.seed = 3, .writers = 1, .ops = 2, .files = 1, .blocks = 2,
		.mode = MODE_APPEND, .datasync = true,
	};
	struct capture c;
	struct mklog l;
	struct model m;
	char error[600];

	if (model_init(&m, &p, error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	mklog_init(&l, &m, 512);
	mklog_save(&l);
	ok_int(load(&c, false, error), 0, "a synthetic capture%s", error);
	ok(c.model.run == m.run, "is the same run");
	capture_free(&c);
	mklog_free(&l);
	model_free(&m);
}

/* -EINVAL and "PATH: @want" must come back, and nothing to free. */
static void refused(const char *json, const char *want)
{
	CLEANUP_FREE char *message = xasprintf("%s: %s", path, want);
	struct capture c;
	char error[600];

	if (json)
		save(json);
	else
		unlink(path);
	ok_int(load(&c, false, error), -EINVAL, "refused: %s", want);
	ok_str(error, message, "with that message");
	ok(!c.log && !c.mount_options && !c.model.op, "and nothing to free");
}

static void not_captures(void)
{
	CLEANUP_FREE char *none =
		xasprintf("not a capture: unable to open %s: No such file or directory",
			  path);

	refused(NULL, none);
	refused("", "line 1: '[' or '{' expected near end of file");
	refused("{\n\"format\": 1,\n", "line 3: string or '}' expected near end of file");
	refused("[]", "not a capture: Expected object, got array");
	refused("{}", "not a capture: Object item not found: format");
	refused("{\"format\": \"1\"}", "not a capture: Expected integer, got string");
	refused("{\"format\": 2}", "capture format 2, this ackproof reads 1");
	refused("{\"format\": 0}", "capture format 0, this ackproof reads 1");
	refused("{\"format\": 1}", "Object item not found: state");
}

static void incomplete(void)
{
	refused("{\"format\": 1, " REST("recording", WORKLOAD) "}",
		"the capture is 'recording', expected 'complete'");
	refused("{\"format\": 1, \"state\": \"complete\", \"data_size\": 0, \"mount_options\": \"\", \"workload\": {}}",
		"data_size 0");
	refused("{\"format\": 1, \"state\": \"complete\", \"data_size\": -512, \"mount_options\": \"\", \"workload\": {}}",
		"data_size -512");
	refused(WHOLE(""), "workload: Object item not found: mode");
}

static void bad_workloads(void)
{
#define NUMBERS(seed, writers, fsyncs, files, blocks) \
	WHOLE("\"mode\": \"append\", \"sync\": \"fdatasync\", \"seed\": " seed \
	      ", \"writers\": " writers ", \"fsyncs\": " fsyncs \
	      ", \"files\": " files ", \"blocks\": " blocks)
	static const char range[] = "a number of the workload is out of range";

	refused(WHOLE("\"sync\": \"fsync\", \"seed\": 9, \"writers\": 2, \"fsyncs\": 7, \"files\": 3, \"blocks\": 4, \"mode\": \"random\""),
		"workload mode 'random', expected overwrite, append or mixed");
	refused(WHOLE("\"mode\": \"mixed\", \"seed\": 9, \"writers\": 2, \"fsyncs\": 7, \"files\": 3, \"blocks\": 4, \"sync\": \"sync\""),
		"workload sync 'sync', expected fsync or fdatasync");
	refused(NUMBERS("-1", "1", "1", "1", "1"), range);
	refused(NUMBERS("1", "-1", "1", "1", "1"), range);
	refused(NUMBERS("1", "4294967297", "1", "1", "1"), range);
	refused(NUMBERS("1", "1", "-1", "1", "1"), range);
	refused(NUMBERS("1", "1", "4294967297", "1", "1"), range);
	refused(NUMBERS("1", "1", "1", "-1", "1"), range);
	refused(NUMBERS("1", "1", "1", "4294967297", "1"), range);
	refused(NUMBERS("1", "1", "1", "1", "-1"), range);
	refused(NUMBERS("1", "1", "1", "1", "4294967297"), range);
	refused(NUMBERS("1", "0", "1", "1", "1"),
		"workload writers: 0, expected 1 to 1024");
	refused(NUMBERS("1", "1", "1", "1", "1.5"),
		"workload: Expected integer, got real");
	refused(NUMBERS("1", "1", "1", "1", "99999999999999999999"),
		"line 1: too big integer near '99999999999999999999'");
}

int main(void)
{
	path = xasprintf("%s/capture.json", scratch());
	good();
	synthetic();
	not_captures();
	incomplete();
	bad_workloads();
	free(path);
	return tap_end();
}
