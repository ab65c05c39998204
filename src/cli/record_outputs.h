/*
 * The files that `spoor record` writes: the recording, and the reports and pictures that are made
 * from it at its end.
 *
 *   record_outputs_choose(&outputs, &wish, &diag)       which files, by their suffixes, or the folder's fixed set
 *   record_outputs_open(&outputs, &out, &diag)          the recording, to write into and to keep once it has begun
 *   ... the recording ...
 *   record_outputs_make(&outputs)                       pictures and reports, by the verbs that make them
 *   record_outputs_done(&outputs)
 *
 * Without a recording among the files one is written beside the first of them, and removed when all
 * have been made.
 */
#ifndef SPOOR_CLI_RECORD_OUTPUTS_H
#define SPOOR_CLI_RECORD_OUTPUTS_H

#include <stdbool.h>

#include "base/vec.h"
#include "cli/options.h"

struct diag;
struct output_file;

enum record_output_kind {
	/* .nettrace, .nettrace.zst, - and whatever has no suffix of those below */
	RECORD_OUTPUT_RECORDING,
	RECORD_OUTPUT_FLAME,  /* .svg */
	RECORD_OUTPUT_FOLDED, /* .folded */
	RECORD_OUTPUT_REPORT, /* .txt */
	RECORD_OUTPUT_JSON,   /* .json */
};

struct record_output {
	char *path;
	enum record_output_kind kind;
};

struct record_outputs {
	char path[4096];                /* of the recording; "-" is standard output */
	bool packed;                    /* it is to be packed with zstd */
	bool temporary;                 /* no -o names the recording itself */
	VEC(struct record_output) made; /* from the recording, in the order given */
};

struct record_outputs_wish {
	const struct texts *files; /* of -o; may be empty */
	const char *folder;        /* of -d; NULL none */
	const char *name;          /* what the recording is called: "shop" */
	bool packed;               /* -z */
};

/* The mistake in the files named by -o, as a sentence for options_misused(); NULL: none. */
const char *record_outputs_problem(const struct texts *files);

/* Whether one of the files is standard output. */
bool record_outputs_have_stdout(const struct texts *files);

/* -d makes DIR/<date_time>/. record_outputs_done() follows in any case. */
int record_outputs_choose(struct record_outputs *outputs, const struct record_outputs_wish *wish,
	struct diag *diag);

/* Ended with output_file_close(). */
int record_outputs_open(const struct record_outputs *outputs, struct output_file *ret_out,
	struct diag *diag);

/* Makes the other files; prints each failure. The first failure's exit code. */
int record_outputs_make(const struct record_outputs *outputs, bool quiet);

void record_outputs_done(struct record_outputs *outputs);

#endif
