// SPDX-License-Identifier: GPL-2.0-only
/* lwaudit: audit a capture's log, and print what was lost. */

#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <libsmartcols/libsmartcols.h>

#include "audit.h"
#include "capture.h"
#include "util.h"

enum { OPT_JSON = OPT_BASE };

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: lwaudit [--json] [--losses N] CAPTURE\n"
	     "\n"
	     "Check every ack of a capture from its log alone.\n"
	     "\n"
	     "  -n, --losses N  list at most N losses (default 20; --json lists all)\n"
	     "      --json      print one JSON object\n"
	     "  -h, --help      show this help\n"
	     "\n"
	     "Exit status: 0 nothing lost, 1 losses or a log at fault, 2 usage.");
	close_stdout();
	exit(EXIT_OK);
}

static json_t *entry_or_null(uint64_t entry)
{
	return entry == AUDIT_NEVER ? json_null() : json_integer(entry);
}

static void print_json(const struct audit *a, const char *hash, double seconds,
		       uint64_t bytes)
{
	json_t *kinds = json_object(), *list = json_array(), *j;

	for (int k = 0; k < NR_LOSS_KINDS; k++)
		json_object_set_new(kinds, loss_kind_name(k),
				    json_integer(a->by_kind[k]));
	for (size_t i = 0; i < a->nr_losses; i++) {
		const struct audit_loss *l = &a->loss[i];
		CLEANUP_FREE char *name = audit_token(l, hash);

		json_array_append_new(list, json_pack(
			"{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:o, s:s}",
			"kind", loss_kind_name(l->kind), "writer", l->writer,
			"file", l->file, "block", l->block, "op", l->op,
			"ack_entry", (json_int_t)l->ack_entry,
			"from_entry", (json_int_t)l->from_entry,
			"until_entry", entry_or_null(l->until_entry),
			"token", name));
	}
	j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:I, s:s, s:o}",
		      "entries", (json_int_t)a->entries,
		      "acks", (json_int_t)a->acks,
		      "acks_lost", (json_int_t)a->acks_lost,
		      "blocks_lost", (json_int_t)a->nr_losses,
		      "flushes", (json_int_t)a->flushes,
		      "skipped_min", (json_int_t)audit_skipped_min(a),
		      "longest_window", (json_int_t)a->longest,
		      "end_entry", (json_int_t)a->end_entry,
		      "by_kind", kinds, "seconds", seconds,
		      "log_bytes", (json_int_t)bytes, "log_xxh128", hash,
		      "losses", list);
	if (!j || json_dumpf(j, stdout, JSON_INDENT(1)))
		die(EXIT_CANNOT, "cannot print the result as JSON");
	putchar('\n');
	json_decref(j);
}

static void add_cell(struct libscols_line *line, size_t col, uint64_t v)
{
	if (v == AUDIT_NEVER)
		scols_line_set_data(line, col, "never");
	else
		scols_line_refer_data(line, col, xasprintf("%llu",
					(unsigned long long)v));
}

static void print_losses(const struct audit *a, uint64_t max)
{
	static const char *const columns[] = {
		"KIND", "WRITER", "FILE", "BLOCK", "OP", "ACK", "LOST-FROM",
		"APPEARED"
	};
	struct libscols_table *t = scols_new_table();

	if (!t)
		die(EXIT_CANNOT, "out of memory");
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		scols_table_new_column(t, columns[i], 0,
				       i ? SCOLS_FL_RIGHT : 0);
	for (size_t i = 0; i < a->nr_losses && i < max; i++) {
		const struct audit_loss *l = &a->loss[i];
		struct libscols_line *line = scols_table_new_line(t, NULL);

		scols_line_set_data(line, 0, loss_kind_name(l->kind));
		add_cell(line, 1, l->writer);
		add_cell(line, 2, l->file);
		add_cell(line, 3, l->block);
		add_cell(line, 4, l->op);
		add_cell(line, 5, l->ack_entry);
		add_cell(line, 6, l->from_entry);
		add_cell(line, 7, l->until_entry);
	}
	scols_print_table(t);
	scols_unref_table(t);
	if (a->nr_losses > max)
		printf("and %llu more\n",
		       (unsigned long long)(a->nr_losses - max));
}

static void print_text(const struct audit *a, const char *hash,
		       const char *capture, uint64_t max)
{
	CLEANUP_FREE char *name = NULL;
	const char *sep = " (";

	printf("%llu entries, %llu acks, %llu lost",
	       (unsigned long long)a->entries, (unsigned long long)a->acks,
	       (unsigned long long)a->acks_lost);
	for (int k = 0; k < NR_LOSS_KINDS; k++) {
		if (!a->by_kind[k])
			continue;
		printf("%s%llu %s", sep, (unsigned long long)a->by_kind[k],
		       loss_kind_name(k));
		sep = ", ";
	}
	if (a->nr_losses)
		printf(" blocks)");
	printf("\n%llu flushes, skipped >= %llu\n",
	       (unsigned long long)a->flushes,
	       (unsigned long long)audit_skipped_min(a));
	if (!a->nr_losses)
		return;
	printf("longest window: %llu entries from entry %llu\n",
	       (unsigned long long)a->longest,
	       (unsigned long long)a->loss[a->longest_loss].from_entry);
	if (max)
		print_losses(a, max);
	name = audit_token(a->loss, hash);
	printf("reproduce: ackproof reproduce %s %s\n", name, capture);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "losses", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	char error[600], hash[LW_HASH_SIZE];
	bool json = false;
	struct capture cap;
	struct lw_log log;
	struct audit a;
	uint64_t max = 20, lost;
	double start, seconds;
	int c;

	while ((c = getopt_long(argc, argv, "n:h", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			max = arg_u64("--losses", optarg, 0, UINT64_MAX);
			break;
		case OPT_JSON:
			json = true;
			break;
		case 'h':
			usage();
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind + 1 != argc)
		die(EXIT_USAGE, "expected one capture; see lwaudit --help");
	if (capture_load(&cap, argv[optind], false, error, sizeof(error)))
		die(EXIT_USAGE, "%s", error);
	start = now();
	if (lw_open(&log, cap.log, 0))
		die(EXIT_USAGE, "%s", log.error);
	if (audit_run(&a, &log, &cap.model, error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	seconds = now() - start;
	if ((json || a.nr_losses) && lw_hash(&log, hash))
		die(EXIT_LOSS, "%s", log.error);
	if (json)
		print_json(&a, hash, seconds, log.next_off);
	else
		print_text(&a, hash, argv[optind], max);
	lost = a.acks_lost;
	audit_free(&a);
	lw_close(&log);
	capture_free(&cap);
	close_stdout();
	return lost ? EXIT_LOSS : EXIT_OK;
}
