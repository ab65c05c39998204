/* See code_reader.h. */
#include "symbolize/code_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "code/codemap.h"
#include "machine/target_root.h"
#include "symbolize/symbolizer_state.h"
#include "trace/code_bytes.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define MEMORIES_MAX 128u

/* -1: the process is not readable. */
static int memory_of(struct symbolizer *symbolizer, uint32_t index)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, index);
	const struct process *process = &symbolizer->options.trace->processes.items[index];
	int fd;

	if (!own || own->memory == CODE_MEMORY_UNREADABLE)
		return -1;
	if (own->memory == CODE_MEMORY_OPEN)
		return own->memory_fd;
	if (process->ended || symbolizer->memories_open >= MEMORIES_MAX ||
		target_memory_open(process->pid, &fd) < 0) {
		code_memory_enter(&own->memory, CODE_MEMORY_UNREADABLE);
		return -1;
	}
	code_memory_enter(&own->memory, CODE_MEMORY_OPEN);
	own->memory_fd = fd;
	symbolizer->memories_open++;
	return fd;
}

void code_reader_forget(struct symbolizer *symbolizer, struct symbolizer_process *process)
{
	if (process->memory == CODE_MEMORY_OPEN) {
		(void)close(process->memory_fd); /* read only */
		symbolizer->memories_open--;
	}
	if (process->memory != CODE_MEMORY_UNREADABLE)
		code_memory_enter(&process->memory, CODE_MEMORY_UNREADABLE);
}

/*
 * The runtime never frees it, so the bytes in memory now are those that were sampled. Of
 * the bodies that were found in memory, the exact ones can be freed.
 */
static bool stays(const struct symbolizer_process *own, const struct code *code)
{
	return code->until_ns == UINT64_MAX && !own->unloads_code && !code->exact &&
	       (code->kind == CODE_JIT || code->kind == CODE_OSR || code->kind == CODE_READYTORUN);
}

/* The bytes of a body, which the caller frees; NULL: they cannot be read. */
static uint8_t *read_body(struct symbolizer *symbolizer, uint32_t process, const struct code *code)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, process);
	uint64_t size = code->end - code->begin;

	if (!own || !stays(own, code) || !size || size > CODE_BODY_MAX ||
		symbolizer->code_size_bytes + size > CODE_TOTAL_MAX)
		return NULL;
	int fd = memory_of(symbolizer, process);
	cleanup(freep) uint8_t *body = fd < 0 ? NULL : malloc(size);
	if (!body)
		return NULL;
	for (uint64_t done = 0; done < size;) {
		ssize_t got = target_memory_read(fd, code->begin + done, body + done, size - done);
		if (got == 0) {
			own = symbolizer_process(symbolizer, process);
			code_reader_forget(symbolizer,
				own); /* it has ended, or runs another program */
		}
		if (got <= 0)
			return NULL;
		done += (uint64_t)got;
	}
	return TAKE(body);
}

int code_reader_write(struct symbolizer *symbolizer, uint32_t process, const struct code *code,
	uint64_t mapping_id)
{
	cleanup(freep) uint8_t *body = read_body(symbolizer, process, code);
	uint32_t size = (uint32_t)(code->end - code->begin);
	int result = 0;

	if (!body) {
		symbolizer->code_refused++;
		return 0;
	}
	for (uint32_t at = 0; at < size && result == 0; at += PAYLOAD_CODE_MAX) {
		struct payload_code_bytes payload = { .mapping_id = mapping_id,
			.begin = code->begin,
			.method_id = code->method_id,
			.offset = at,
			.bytes = body + at,
			.size = size - at < PAYLOAD_CODE_MAX ? size - at : PAYLOAD_CODE_MAX };
		bytes_reset(&symbolizer->payload);
		payload_code_bytes(&symbolizer->payload, &payload);
		result = symbolizer->payload.failed
				 ? -ENOMEM
				 : symbolizer->options.emit(symbolizer->options.context,
					   SPOOR_CODE_BYTES, process, &symbolizer->payload);
	}
	symbolizer->code_count++;
	symbolizer->code_size_bytes += size;
	return result;
}
