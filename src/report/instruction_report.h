/* The machine code of a function with the CPU time of each instruction, between its source lines: `spoor annotate --asm`. */
#ifndef SPOOR_REPORT_INSTRUCTION_REPORT_H
#define SPOOR_REPORT_INSTRUCTION_REPORT_H

#include <stdint.h>

struct annotation_options;
struct bytes;
struct disassembler;
struct instructions;
struct report;
struct symbolmap;

/* The code of one body. */
struct instruction_code {
	const uint8_t *code; /* NULL: `why_not` */
	uint32_t size;
	const char *why_not;
};

struct instruction_listing {
	const struct instructions *instructions;
	const struct instruction_code *codes; /* of each body */
	struct disassembler *disassembler;
	struct symbolmap *names;
};

/* Text. options->context is in instructions. 0 or -ENOMEM. */
int instruction_report_text(const struct instruction_listing *listing, const struct report *report,
	const struct annotation_options *options, struct bytes *out);

/* One object, with all instructions of the bodies. */
int instruction_report_json(const struct instruction_listing *listing, const struct report *report,
	struct bytes *out);

#endif
