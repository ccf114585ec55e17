// SPDX-License-Identifier: GPL-2.0-only
/* lwexplain: tell why a block of a capture is lost. */

#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwexplain.h"
#include "util.h"

enum { OPT_JSON = OPT_BASE, OPT_GNUPLOT, OPT_LOST, OPT_MINIMAL };

static void __attribute__((noreturn)) usage(void)
{
	puts("Usage: lwexplain [OPTION]... CAPTURE [ACK|POINT]\n"
	     "\n"
	     "Tell why an acknowledged block is lost: which flush should have covered its\n"
	     "write, and why it did not. ACK is WRITER/OPERATION, or the entry of an ack;\n"
	     "POINT is an entry at which the block is lost. Without either, the first loss.\n"
	     "\n"
	     "      --lost FILE     explain the loss that crashcheck has found at a point, and\n"
	     "                      that the audit does not know\n"
	     "      --minimal FILE  add what crashcheck --minimal found\n"
	     "      --json          print one JSON object\n"
	     "      --gnuplot       print a plot's commands for gnuplot\n"
	     "  -h, --help          show this help\n"
	     "\n"
	     "Exit status: 0 explained, 1 a log or a trace at fault, 2 usage, or no such loss.");
	close_stdout();
	exit(EXIT_OK);
}

/* Is loss @l there in the state at entry @point? */
static bool lost_at(const struct audit_loss *l, uint64_t point)
{
	return l->from_entry <= point && point < l->until_entry;
}

/*
 * The first loss that @what names: an ack by its writer and number, an ack's
 * entry, or an entry at which it is lost.
 */
static const struct audit_loss *
find_loss(const struct audit *a, const char *capture, const char *what)
{
	CLEANUP_FREE char *writer_text = xstrdup(what ? what : "");
	char *op_text = strchr(writer_text, '/');
	uint64_t writer, op = 0, entry = 0;
	size_t i;

	if (!a->nr_losses && (!what || op_text))
		die(EXIT_USAGE, "%s: nothing is lost, by the audit", capture);
	if (!what)
		return a->loss;
	if (op_text)
		*op_text++ = '\0';
	if (op_text ? parse_u64(writer_text, 0, UINT32_MAX, &writer) ||
		      parse_u64(op_text, 0, UINT32_MAX, &op) :
		      parse_u64(what, 0, UINT64_MAX - 1, &entry))
		die(EXIT_USAGE,
		    "'%s': expected WRITER/OPERATION or an entry's number", what);
	for (i = 0; i < a->nr_losses; i++) {
		const struct audit_loss *l = &a->loss[i];

		if (op_text ? l->writer == writer && l->op == op :
			      l->ack_entry == entry)
			return l;
	}
	for (i = 0; !op_text && i < a->nr_losses; i++)
		if (lost_at(&a->loss[i], entry))
			return &a->loss[i];
	die(EXIT_USAGE,
	    op_text ? "operation %s: its blocks are not lost" :
		      "entry %s: the audit knows of no loss there", what);
}

static json_t *load_line(const char *path)
{
	json_error_t je;
	json_t *j = json_load_file(path, 0, &je);

	if (!j)
		die(EXIT_USAGE, "%s: line %d: %s", path, je.line, je.text);
	return j;
}

static enum loss_kind parse_kind(const char *name)
{
	int kind = 0;

	while (kind < NR_LOSS_KINDS && strcmp(name, loss_kind_name(kind)))
		kind++;
	return kind;
}

static bool audit_knows(const struct audit *a, const struct verify_loss *v,
			uint64_t point)
{
	for (size_t i = 0; i < a->nr_losses; i++) {
		const struct audit_loss *l = &a->loss[i];

		if (l->writer == v->writer && l->file == v->file &&
		    l->block == v->block && lost_at(l, point))
			return true;
	}
	return false;
}

/* The first loss in the line of crashcheck that the audit does not know */
static void load_lost(struct explain *x, const char *path, struct audit_loss *l,
		      int64_t *got)
{
	json_t *line = load_line(path), *list, *j;
	json_int_t point, file, block, op, found;
	const char *kind;
	int writer;
	size_t i;

	if (json_unpack(line, "{s:I, s:o}", "point", &point, "losses", &list))
		die(EXIT_USAGE, "%s: expected a line of crashcheck", path);
	json_array_foreach(list, i, j) {
		struct verify_loss v;

		if (json_unpack(j, "{s:s, s:i, s:I, s:I, s:I, s:I}", "kind", &kind,
				"writer", &writer, "file", &file,
				"block", &block, "op", &op,
				"got", &found))
			die(EXIT_USAGE, "%s: loss %zu: expected one of crashcheck's",
			    path, i);
		v = (struct verify_loss){
			.kind = parse_kind(kind), .writer = writer,
			.file = file, .block = block, .op = op,
		};
		if (!audit_knows(&x->audit, &v, point) &&
		    !explain_mounted(x, &v, point, l)) {
			*got = found;
			json_decref(line);
			return;
		}
	}
	die(EXIT_USAGE, "%s: no acknowledged block is lost that the audit does not know",
	    path);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, OPT_JSON },
		{ "gnuplot", no_argument, NULL, OPT_GNUPLOT },
		{ "lost", required_argument, NULL, OPT_LOST },
		{ "minimal", required_argument, NULL, OPT_MINIMAL },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	void (*print)(const struct report *r) = print_text;
	const char *lost_path = NULL;
	struct audit_loss mounted;
	const struct audit_loss *loss;
	struct report r = {};
	struct explanation e;
	struct explain x;
	CLEANUP_FREE char *token = NULL;
	char error[1200], hash[LW_HASH_SIZE];
	int64_t got = -1;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case OPT_JSON:
			print = print_json;
			break;
		case OPT_GNUPLOT:
			print = print_gnuplot;
			break;
		case OPT_LOST:
			lost_path = optarg;
			break;
		case OPT_MINIMAL:
			r.minimal = load_line(optarg);
			break;
		case 'h':
			usage();
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind + 1 != argc && optind + 2 != argc)
		die(EXIT_USAGE,
		    "expected a capture, and maybe an ack or a point; see lwexplain --help");
	if (explain_open(&x, argv[optind], error, sizeof(error)))
		die(EXIT_LOSS, "%s", error);
	if (lost_path) {
		load_lost(&x, lost_path, &mounted, &got);
		loss = &mounted;
	} else {
		loss = find_loss(&x.audit, argv[optind], argv[optind + 1]);
	}
	explain_loss(&x, loss, &e);
	if (lw_hash(&x.log, hash))
		die(EXIT_LOSS, "%s", x.log.error);
	token = audit_token(loss, hash);
	r.token = lost_path ? xasprintf("%s:got%lld", token, (long long)got) :
			      xstrdup(token);
	r.x = &x;
	r.e = &e;
	r.capture = argv[optind];
	print(&r);
	explain_free(&e);
	explain_close(&x);
	json_decref(r.minimal);
	free(r.token);
	close_stdout();
	return EXIT_OK;
}
