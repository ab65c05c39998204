/* The contents of a nettrace stream's head. Zero until it has arrived. */
#ifndef SPOOR_NETTRACE_NETTRACE_HEAD_H
#define SPOOR_NETTRACE_NETTRACE_HEAD_H

#include <stdint.h>

struct nettrace_head {
	uint32_t version; /* 4 or 6 */
	uint32_t process_id;
	uint32_t cpu_count;
	uint64_t sync_ns; /* ticks at utc_ns, as nanoseconds */
	uint64_t utc_ns;
	uint64_t ticks_per_second;
};

#endif
