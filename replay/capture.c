// SPDX-License-Identifier: GPL-2.0-only
/* Reading a capture's metadata; see capture.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "capture.h"
#include "util.h"

static void cleanup_json(json_t **j)
{
	json_decref(*j);
}

static int load_workload(json_t *j, struct model_params *p, const char *path,
			 char *error, size_t size)
{
	json_int_t seed, writers, fsyncs, files, blocks;
	const char *mode, *sync;
	json_error_t je;

	if (json_unpack_ex(j, &je, 0, "{s:s, s:s, s:I, s:I, s:I, s:I, s:I}",
			   "mode", &mode, "sync", &sync, "seed", &seed,
			   "writers", &writers, "fsyncs", &fsyncs,
			   "files", &files, "blocks", &blocks)) {
		snprintf(error, size, "%s: workload: %s", path, je.text);
		return -EINVAL;
	}
	if (model_mode_parse(mode, &p->mode)) {
		snprintf(error, size,
			 "%s: workload mode '%s', expected overwrite, append or mixed",
			 path, mode);
		return -EINVAL;
	}
	if (strcmp(sync, "fsync") && strcmp(sync, "fdatasync")) {
		snprintf(error, size,
			 "%s: workload sync '%s', expected fsync or fdatasync",
			 path, sync);
		return -EINVAL;
	}
	if (seed < 0 || writers < 0 || writers > UINT32_MAX || fsyncs < 0 ||
	    fsyncs > UINT32_MAX || files < 0 || files > UINT32_MAX ||
	    blocks < 0 || blocks > UINT32_MAX) {
		snprintf(error, size,
			 "%s: a number of the workload is out of range", path);
		return -EINVAL;
	}
	p->datasync = !strcmp(sync, "fdatasync");
	p->seed = seed;
	p->writers = writers;
	p->ops = fsyncs;
	p->files = files;
	p->blocks = blocks;
	return 0;
}

int capture_load(struct capture *c, const char *dir, bool recording,
		 char *error, size_t size)
{
	CLEANUP_FREE char *path = xasprintf("%s/capture.json", dir);
	__attribute__((cleanup(cleanup_json))) json_t *j = NULL;
	const char *state, *mount_options;
	char why[256];
	struct model_params p;
	json_int_t format, data_size;
	json_t *workload;
	json_error_t je;
	int ret;

	memset(c, 0, sizeof(*c));
	j = json_load_file(path, 0, &je);
	if (!j) {
		if (je.line < 0)
			snprintf(error, size, "%s: not a capture: %s", path,
				 je.text);
		else
			snprintf(error, size, "%s: line %d: %s", path,
				 je.line, je.text);
		return -EINVAL;
	}
	if (json_unpack_ex(j, &je, 0, "{s:I}", "format", &format)) {
		snprintf(error, size, "%s: not a capture: %s", path, je.text);
		return -EINVAL;
	}
	if (format != CAPTURE_FORMAT) {
		snprintf(error, size,
			 "%s: capture format %lld, this ackproof reads %d",
			 path, (long long)format, CAPTURE_FORMAT);
		return -EINVAL;
	}
	if (json_unpack_ex(j, &je, 0, "{s:s, s:I, s:s, s:o}",
			   "state", &state, "data_size", &data_size,
			   "mount_options", &mount_options,
			   "workload", &workload)) {
		snprintf(error, size, "%s: %s", path, je.text);
		return -EINVAL;
	}
	if (!recording && strcmp(state, "complete")) {
		snprintf(error, size,
			 "%s: the capture is '%s', expected 'complete'",
			 path, state);
		return -EINVAL;
	}
	if (data_size <= 0) {
		snprintf(error, size, "%s: data_size %lld", path,
			 (long long)data_size);
		return -EINVAL;
	}
	ret = load_workload(workload, &p, path, error, size);
	if (ret)
		return ret;
	if (model_init(&c->model, &p, why, sizeof(why))) {
		snprintf(error, size, "%s: workload %s", path, why);
		return -EINVAL;
	}
	c->log = xasprintf("%s/log", dir);
	c->data_size = data_size;
	c->mount_options = xstrdup(mount_options);
	return 0;
}

void capture_free(struct capture *c)
{
	free(c->log);
	free(c->mount_options);
	model_free(&c->model);
	memset(c, 0, sizeof(*c));
}
