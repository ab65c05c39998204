/* The head of a nettrace file of version 6: clocks, the machine, and the writer's own keys. */
#ifndef SPOOR_NETTRACE_NETTRACE_HEAD_WRITE_H
#define SPOOR_NETTRACE_NETTRACE_HEAD_WRITE_H

#include <stddef.h>

struct bytes;
struct trace;

struct nettrace_key {
	const char *key;
	const char *value;
};

/* Its size is a multiple of 4. */
void nettrace_head_put(struct bytes *out, const struct trace *trace,
	const struct nettrace_key *keys, size_t key_count);

#endif
