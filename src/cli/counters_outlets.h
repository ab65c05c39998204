/*
 * The outputs of `spoor counters`: a screen or lines on stdout, a file, a page that is fetched,
 * collectors.
 *
 *   counters_outlets_open(&outlets, &options, &diag);
 *   each interval of a process:  counters_outlets_interval(&outlets, views, count, index, &diag)
 *   each turn:  counters_outlets_await(&outlets, &set); poll_set_wait(&set);
 *               counters_outlets_advance(&outlets, views, count)
 *   counters_outlets_close(&outlets);
 */
#ifndef SPOOR_CLI_COUNTERS_OUTLETS_H
#define SPOOR_CLI_COUNTERS_OUTLETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "cli/message.h"
#include "cli/output_queue.h"
#include "cli/terminal.h"
#include "counters/counters_table.h"
#include "counters/counting_http.h"
#include "machine/output_file.h"

struct counters_view;
struct counting_push;
struct diag;
struct poll_set;

enum counters_form {
	COUNTERS_NOTHING, /* on stdout: the values go to other outputs */
	COUNTERS_TABLE,
	COUNTERS_LINES,
	COUNTERS_CSV,
	COUNTERS_JSON,
};

struct counters_outlet_options {
	enum counters_form form;
	const char *file;       /* CSV and JSON go there; NULL: to stdout */
	const char *prometheus; /* addresses; NULL: not requested */
	const char *graphite;
	const char *statsd;
	const char *host; /* this machine's name for collectors */
	bool several;     /* processes */
	bool quiet;
};

struct counters_outlets {
	struct counters_outlet_options options;
	struct output_queue out;
	struct output_file file;
	/* where the next row is written: at JSON's tail, which then moves */
	uint64_t file_end;
	bool begun; /* the head is written */
	bool first; /* no row has been */
	struct counting_http *http;
	struct counting_push *graphite;
	struct counting_push *statsd;
	bool graphite_reported;
	bool statsd_reported;
	struct terminal terminal;
	struct screen screen;
	struct counters_table table;
	bool drawn;     /* the alternate screen is open */
	bool dirty;     /* it is to be drawn again */
	bool wants_end; /* the key q was pressed, or the output pipe was closed */
	char notice[512];
	struct bytes scratch;
	const struct counters_view *views; /* while a page is made */
	size_t view_count;
};

int counters_outlets_open(struct counters_outlets *outlets,
	const struct counters_outlet_options *options, struct diag *diag);

/* Negative: the file cannot be written any more. */
int counters_outlets_interval(struct counters_outlets *outlets, const struct counters_view *views,
	size_t count, size_t index, struct diag *diag);

void counters_outlets_await(const struct counters_outlets *outlets, struct poll_set *set);
void counters_outlets_advance(struct counters_outlets *outlets, const struct counters_view *views,
	size_t count);

/* The size of the terminal has changed. */
void counters_outlets_resized(struct counters_outlets *outlets);

/* A sentence for the person: below the table's heading, else on stderr. */
void counters_outlets_say(struct counters_outlets *outlets, const char *sentence);

void counters_outlets_close(struct counters_outlets *outlets);

#endif
