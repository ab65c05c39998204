/*
 * What the reports of several analyses have in common: cells of tables, the line of a process, its
 * rate over time, stacks; as text and as JSON. Foreign names are made safe for a terminal.
 */
#ifndef SPOOR_REPORT_ANSWER_PARTS_H
#define SPOOR_REPORT_ANSWER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct answers;
struct bytes;
struct durations;
struct json;
struct report;
struct tally_process;
struct timeline;

/* Rows of a table, if the user gives no number. */
#define ANSWER_ROWS_DEFAULT 10u
/* Processes in the text of a recording of all of them. */
#define ANSWER_PROCESSES_MAX 10u

/* What the report of one analysis adds to what all have in common. */
struct answer_report {
	const char *option; /* of `spoor report`, without the dashes */
	/* rows a process, if the user gives no number; 0: all */
	uint32_t row_count;
	uint32_t (*process_count)(const struct answers *answers);
	/* the text shows at most so many, or as many as it has rows; 0: all */
	uint32_t process_max;
	/* of them, the first ones, which are worth a text; NULL: all */
	uint32_t (*shown_count)(const struct answers *answers);
	/* process `at`, with at most `row_count` rows; 0, or -ENOMEM */
	int (*add_process)(struct bytes *out, const struct answers *answers,
		const struct report *report, uint32_t at, uint32_t row_count);
	/* in place of processes, if there are none; then "spoor trace -p PID " and `trace`, if set */
	const char *none;
	const char *trace;
	/* of context switches: whether wakings are missing; NULL for other events */
	bool (*lacks_wakings)(const struct answers *answers);
	/* process `at`, an object; 0, or -ENOMEM */
	int (*add_json)(struct json *j, const struct answers *answers, const struct report *report,
		uint32_t at);
	/* members after the processes; NULL: none */
	void (*add_json_end)(struct json *j, const struct answers *answers,
		const struct report *report);
};

void answer_duration_cell(struct bytes *out, size_t width, uint64_t time_ns);
void answer_size_cell(struct bytes *out, size_t width, uint64_t size_bytes);
void answer_count_cell(struct bytes *out, size_t width, uint64_t count);
/* Four cells of 8 columns: the sum, with `unfinished_ns`, the median, 99 %, and the longest. */
void answer_durations_cells(struct bytes *out, const struct durations *durations,
	uint64_t unfinished_ns);
/* "12.1 %" in 7 columns after two spaces. */
void answer_share_cell(struct bytes *out, uint64_t part, uint64_t whole);

/* "shop (4711), .NET 10.0.12: " */
void answer_head(struct bytes *out, const struct report *report, uint32_t process);

/* An amount for a second of `span_ns`: "120". */
void answer_rate(struct bytes *out, uint64_t amount, uint64_t span_ns);

/* The time in which requests, calls and awaits of the process were observed. */
uint64_t answer_observed_ns(const struct answers *answers, uint32_t process);

/* A time for each second: "993 ms". */
void answer_time_rate(struct bytes *out, uint64_t amount, uint64_t span_ns);

void answer_bars(struct bytes *out, const struct answers *answers, const struct timeline *line);

/*
 * The line "  over time    .. bars ..  most 120/s at 3.2 s". `add_rate` prints an amount for a
 * second of the given time; NULL: answer_rate().
 */
void answer_timeline(struct bytes *out, const struct answers *answers, const struct timeline *line,
	void (*add_rate)(struct bytes *out, uint64_t amount, uint64_t span_ns));

/* "Shop.Parse.Number(string)  Shop.dll"; nothing for function 0. */
void answer_function(struct bytes *out, const struct report *report, uint32_t function);

/* "worker (4711)"; a main thread has the name of its process. */
void answer_thread(struct bytes *out, const struct report *report, uint32_t row);

/* The line about rows that are not shown: "  …  12 more types". */
void answer_more(struct bytes *out, size_t width, uint32_t count, const char *one,
	const char *many);

/*
 * The last lines of a report of context switches: what it cannot say (there are none, `any` false;
 * they have no stacks; some waits have no waking), and losses, which say nothing where no switches
 * were recorded.
 */
void answer_switch_end(struct bytes *out, const struct report *report, bool any,
	bool wakings_missing);

/* "spoor trace -p 4711 "; process 0: of the selection, preferably a .NET process. */
void answer_trace_command(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t process);

/* Whether one of the process's rows has a stack. */
bool answer_has_stacks(const struct answers *answers, const struct tally_process *process);

/* The object of a process, with pid and name; the caller ends it. */
void answer_json_process(struct json *j, const struct report *report, uint32_t process);
void answer_json_timeline(struct json *j, const struct answers *answers,
	const struct timeline *line);

/* Members "total_ns", "p50_ns", "p99_ns", "longest_ns", "longest_at_ns". */
void answer_json_durations(struct json *j, const struct durations *durations);

/* Members "method", "module" (of the stack's own function) and "stack", a list of names. */
void answer_json_stack(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t stack);

#endif
