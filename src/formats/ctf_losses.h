/*
 * The events that a tracer discarded, by the counters `events_discarded` of the packets. A counter
 * grows over a whole stream, whose packets may lie in several files and, after a rotation of LTTng,
 * in several folders.
 */
#ifndef SPOOR_FORMATS_CTF_LOSSES_H
#define SPOOR_FORMATS_CTF_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/strtab.h"
#include "base/vec.h"

#define CTF_NO_NUMBER UINT64_MAX

/* What tells streams apart. */
struct ctf_stream_key {
	const char *trace; /* the uuid of its trace; "": none */
	const char *path;  /* of the file */
	uint64_t stream_id;
	uint64_t instance_id; /* CTF_NO_NUMBER: none */
	uint64_t cpu;         /* CTF_NO_NUMBER: none */
};

/* All zero is empty. */
struct ctf_losses {
	struct strtab keys;
	VEC(uint64_t) highest; /* by stream: its index in `keys` */
	struct bytes key;
	uint64_t total;
};

/* Returns the growth of the stream's counter above its highest value so far; false: no memory. */
bool ctf_losses_add(struct ctf_losses *losses, const struct ctf_stream_key *stream,
	uint64_t counter, uint64_t *ret_more);

void ctf_losses_done(struct ctf_losses *losses);

#endif
