/* The source of a function with the CPU time of each line: text and JSON of `spoor annotate`. */
#ifndef SPOOR_REPORT_ANNOTATION_REPORT_H
#define SPOOR_REPORT_ANNOTATION_REPORT_H

#include <stdint.h>

struct annotation;
struct bytes;
struct report;

struct annotation_options {
	const char *const *folders; /* where sources are searched first */
	uint32_t folder_count;
	uint32_t context; /* lines shown before and after one with time */
};

/* Text: each file, its lines with time and those around them. 0 or -ENOMEM. */
int annotation_text(const struct annotation *annotation, const struct report *report,
	const struct annotation_options *options, struct bytes *out);

/* One object: the lines with time. */
int annotation_json(const struct annotation *annotation, const struct report *report,
	const struct annotation_options *options, struct bytes *out);

#endif
