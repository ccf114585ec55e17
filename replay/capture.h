/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A capture's folder: "log" is the dm-log-writes log, "capture.json" holds
 * everything that the result depends on. The shell side writes it; here only
 * the parts that the tools need are read.
 */
#ifndef ACKPROOF_CAPTURE_H
#define ACKPROOF_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "../workloads/model.h"

enum { CAPTURE_FORMAT = 1 };

struct capture {
	char		*log;		/* path */
	uint64_t	data_size;	/* bytes */
	char		*mount_options;	/* for mount(2), may be empty */
	struct model	model;
};

/*
 * Load the capture in folder @dir. Unless @recording, one that was not
 * completed is refused. Returns 0, or -errno with a message in @error that
 * names the file. Ends with capture_free().
 */
int capture_load(struct capture *c, const char *dir, bool recording,
		 char *error, size_t size);
void capture_free(struct capture *c);

#endif
