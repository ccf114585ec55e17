// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guards replay/where.c: what is saved is read back, and what cannot be true is
 * refused.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../replay/util.h"
#include "../../replay/where.h"
#include "mklog.h"
#include "tap.h"

static char *path;

static void refused(const char *text, const char *want)
{
	FILE *f = fopen(path, "w");
	char error[512] = "";
	struct where w;

	if (!f || fputs(text, f) < 0 || fclose(f))
		die(EXIT_CANNOT, "%s: %m", path);
	ok_int(where_load(&w, path, error, sizeof(error)), -EINVAL,
	       "refused: %s", text);
	ok(!strncmp(error, path, strlen(path)) && strstr(error, want),
	   "it says: %s", error);
}

int main(void)
{
	static const struct where all[] = {
		{ 0, 0, 0, 0, UINT64_MAX },
		{ UINT64_MAX, 1, 1ULL << 60, 4096, 1ULL << 63 },
		{ 0x0123456789abcdef, 5, 4, 512, 1024 },
	};
	CLEANUP_FREE char *none = xasprintf("%s/no/such", scratch());
	char error[512] = "";
	struct where w;

	path = xasprintf("%s/image.lwstate", scratch());
	ok_int(where_load(&w, path, error, sizeof(error)), 0, "there is none");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		memset(&w, 0xaa, sizeof(w));
		ok(!where_save(&all[i], path, error, sizeof(error)) &&
		   where_load(&w, path, error, sizeof(error)) == 1 &&
		   !memcmp(&w, &all[i], sizeof(w)), "number %zu reads back", i);
	}
	ok_int(where_save(&all[0], none, error, sizeof(error)), -ENOENT,
	       "no such folder");
	ok(strstr(error, none) != NULL, "it says: %s", error);

	refused("", "line");
	refused("[]", "xpected");
	refused("{\"format\": 1}", "log");
	refused("{\"format\": 2, \"log\": \"0000000000000000\", \"at\": 0, \"to\": 0, \"from\": \"0000000000000000\", \"until\": \"0000000000000000\"}",
		"format 2, expected 1");
	refused("{\"format\": 1, \"log\": \"000000000000000\", \"at\": 0, \"to\": 0, \"from\": \"0000000000000000\", \"until\": \"0000000000000000\"}",
		"a number in it is none");
	refused("{\"format\": 1, \"log\": \"000000000000000g\", \"at\": 0, \"to\": 0, \"from\": \"0000000000000000\", \"until\": \"0000000000000000\"}",
		"a number in it is none");
	refused("{\"format\": 1, \"log\": \"0000000000000000\", \"at\": -1, \"to\": 0, \"from\": \"0000000000000000\", \"until\": \"0000000000000000\"}",
		"a number in it is none");
	refused("{\"format\": 1, \"log\": \"0000000000000000\", \"at\": \"1\", \"to\": 0, \"from\": \"0000000000000000\", \"until\": \"0000000000000000\"}",
		"xpected integer");
	free(path);
	return tap_end();
}
