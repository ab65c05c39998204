/*
 * The labels of processes, functions and the recording in every output. They contain no control
 * characters and no line ends.
 */
#ifndef SPOOR_RENDER_FRAME_LABEL_H
#define SPOOR_RENDER_FRAME_LABEL_H

#include <stddef.h>
#include <stdint.h>

struct bytes;
struct function;
struct report;
struct trace;

/* "shop (4711)", or "pid 4711" when it has no name. */
void label_process(struct bytes *out, const struct trace *trace, uint32_t process);

/* "12.1 CPU s", "3.20 thread s", "103 MB", "500 events": by what the weights are. */
void label_amount(struct bytes *out, const struct report *report, uint64_t weight);

/* "500 samples", "500 events". */
void label_samples(struct bytes *out, const struct report *report, uint64_t count);

/* "CPU", "thread", "waiting": seconds of what the weights are. */
const char *label_weight(const struct report *report);

/* "shop". */
void label_process_name(struct bytes *out, const struct trace *trace, uint32_t process);

/* "tier 0, tier 1", "R2R" or nothing, of 1 << enum function_tier: a table's last column. */
void label_tiers(struct bytes *out, uint32_t tiers);

/* "kernel", "native", "jit", "r2r", "stub", "unknown": words of JSON and picture classes. */
const char *label_kind(uint8_t function_kind);

/* "2026-11-21 08:30:12 UTC"; nothing when the time is not known. */
void label_utc(struct bytes *out, const struct report *report);

/* "nothing lost", or "1,204 of 96,332 samples lost (1.2 %, CPU 1, 8.2 to 8.9 s); ...". */
void label_loss(struct bytes *out, const struct report *report);

/*
 * Where the shorter forms of a function's name begin and end: Type.Method is
 * text[type_at..head_len), Method text[method_at..head_len).
 */
struct name_parts {
	size_t head_len; /* without arguments */
	size_t type_at;
	size_t method_at;
};

void label_split(const char *text, size_t len, uint8_t function_kind, struct name_parts *ret_parts);

/* The module of frames that have no name, as a person would call it. */
const char *label_unnamed(const struct trace *trace, uint32_t module, uint8_t function_kind);

#endif
