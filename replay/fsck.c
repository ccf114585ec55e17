// SPDX-License-Identifier: GPL-2.0-only
/* Users' commands; see fsck.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "fsck.h"
#include "places.h"
#include "util.h"

int fsck_run(struct state *s, const char *command, char *what, size_t size)
{
	char name[32];
	CLEANUP_FREE char *point = xasprintf("LWREPLAY_POINT=%s",
					     places_name(s->done, name));
	CLEANUP_FREE char *target = xasprintf("LWREPLAY_TARGET=%s", s->path);
	char *const env[] = { point, target, NULL };
	enum check_verdict verdict;
	uint64_t stamp;
	int ret;

	ret = state_sync(s);
	if (ret)
		return ret;
	stamp = state_stamp(s);
	verdict = check_ask_shell(command, env, STDERR_FILENO, what, size);
	if (state_stamp(s) == stamp)
		return verdict;
	/* what comes next would be built on what is not there any more */
	snprintf(s->error, sizeof(s->error),
		 "'%s' has written to %s, which holds no state any more: let it work on a snapshot or a copy",
		 command, s->path);
	return -EBUSY;
}
