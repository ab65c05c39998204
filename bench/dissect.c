/*
 * Prints the parts of a recording: bytes by kind of block and event, and the frames without a name
 * by kind, module and address.
 *
 *   dissect FILE [PID]
 *
 * Prints "NAME VALUE" lines for scripts, then a line for each Runtime event ("runtime
 * SECONDS_SINCE_BEGIN reachable|refused PID"). The frames without a name follow ("unnamed KIND FRAMES
 * MODULE PID ADDRESS NAME"), managed ones first, sorted by their number. PID selects a process of
 * the recording that still runs: the code around its unnamed managed addresses is printed in
 * hexadecimal ("code ADDRESS BYTES", with a bar before the address). The patterns of code/arch.c are
 * derived from it. Managed frames are in JIT memory or in ReadyToRun images.
 */
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/profile.h"
#include "base/diag.h"
#include "pipeline/saved.h"
#include "render/frame_label.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/spoor_payload.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define KIND_COUNT  16u
#define LIST_MAX    200u
#define CODE_AROUND 64u
#define HEAD_BYTES  20u /* "Nettrace", a reserved word, the two halves of the version */
#define BLOCK_COUNT 9u

struct dissection {
	struct profile profile;
	uint64_t events[KIND_COUNT];
	uint64_t payload_bytes[KIND_COUNT];
};

struct unnamed {
	uint64_t address;
	uint64_t frames;
	uint32_t process;
	uint32_t function;
	bool managed;
};

static const char *const event_kinds[KIND_COUNT] = { [EVENT_OTHER] = "other",
	[EVENT_SAMPLE] = "sample",
	[EVENT_SWITCH] = "switch",
	[EVENT_SYSCALL] = "syscall",
	[EVENT_PROCESS] = "process",
	[EVENT_MAPPING] = "mapping",
	[EVENT_SYMBOL] = "symbol",
	[EVENT_CODE] = "code",
	[EVENT_LOSS] = "loss",
	[EVENT_COUNTER] = "counter",
	[EVENT_SESSION] = "session",
	[EVENT_METHOD] = "method" };
static const char *const block_kinds[BLOCK_COUNT] = { "end", "trace", "event", "metadata",
	"sequence_point", "stack", "thread", "remove_thread", "label_list" };

static int on_event(void *context, const struct event *event)
{
	struct dissection *d = context;
	uint8_t kind = event->kind < KIND_COUNT ? event->kind : EVENT_OTHER;
	struct trace *trace = d->profile.trace;
	const struct schema *schema = &trace->schemas.items[event->schema_index];
	struct payload_runtime runtime;

	/* Such events are rare, so they are printed here. */
	if (schema->provider_kind == PROVIDER_SPOOR && schema->event_id == 17 &&
		payload_read_runtime(event->payload, event->payload_size, &trace->strings,
			&runtime) >= 0)
		printf("runtime %.3f %s %u\n",
			(double)(event->time_ns - trace->recording.sync_ns) / 1e9,
			runtime.reachable ? "reachable" : "refused",
			trace->processes.items[trace->threads.items[event->thread_index].process]
				.pid);

	d->events[kind]++;
	d->payload_bytes[kind] += event->payload_size;
	return profile_event(&d->profile, event);
}

/* Each block is a 32-bit word, its size in the low 24 bits and its kind above, then its bytes. */
static void print_blocks(const char *path)
{
	uint64_t bytes[BLOCK_COUNT] = { 0 };
	uint64_t count[BLOCK_COUNT] = { 0 };
	uint8_t word[4];
	FILE *file = fopen(path, "re");

	if (!file || fseek(file, HEAD_BYTES, SEEK_SET) != 0) {
		fprintf(stderr, "cannot read '%s': %s\n", path, strerror(errno));
		exit(1);
	}
	while (fread(word, 1, sizeof(word), file) == sizeof(word)) {
		uint32_t size = word[0] | (uint32_t)word[1] << 8 | (uint32_t)word[2] << 16;
		uint8_t kind = word[3];
		if (kind >= BLOCK_COUNT || fseek(file, (long)size, SEEK_CUR) != 0)
			break;
		bytes[kind] += size + sizeof(word);
		count[kind]++;
	}
	(void)fseek(file, 0, SEEK_END); /* cannot fail: the file has been read before */
	printf("bytes_all %ld\n", ftell(file));
	for (unsigned i = 0; i < BLOCK_COUNT; i++)
		if (count[i])
			printf("bytes_%s_blocks %" PRIu64 "\nblocks_%s %" PRIu64 "\n",
				block_kinds[i], bytes[i], block_kinds[i], count[i]);
	(void)fclose(file); /* only read */
}

static int by_place(const void *a, const void *b)
{
	const struct unnamed *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* Managed frames first, because only these can be improved. */
static int by_frames(const void *a, const void *b)
{
	const struct unnamed *x = a, *y = b;

	if (x->managed != y->managed)
		return x->managed ? -1 : 1;
	return x->frames > y->frames ? -1 : x->frames < y->frames ? 1 : by_place(a, b);
}

/* "(JIT stub)" counts as no name: the code could not be read. */
static bool is_named(const struct trace *trace, const struct function *function)
{
	return function->named && strcmp(trace_text(trace, function->name), "(JIT stub)") != 0;
}

static void print_code(const struct trace *trace, const struct unnamed *list, uint32_t count,
	uint32_t pid)
{
	char path[64];
	uint8_t code[2 * CODE_AROUND];

	(void)snprintf(path, sizeof(path), "/proc/%u/mem", pid); /* fits */
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "cannot read '%s': %s\n", path, strerror(errno));
		return;
	}
	for (uint32_t i = 0; i < count && i < LIST_MAX; i++) {
		if (trace->processes.items[list[i].process].pid != pid ||
			pread(fd, code, sizeof(code), (off_t)(list[i].address - CODE_AROUND)) !=
				sizeof(code))
			continue;
		printf("code %" PRIx64 " ", list[i].address);
		for (unsigned b = 0; b < sizeof(code); b++)
			printf("%s%02x", b == CODE_AROUND ? "|" : "", code[b]);
		printf("\n");
	}
	(void)close(fd); /* only read */
}

static void print_frames(struct dissection *d, struct symbolmap *names, uint32_t pid)
{
	struct trace *trace = d->profile.trace;
	uint64_t frames[8] = { 0 };
	uint64_t named[8] = { 0 };
	VEC(struct unnamed) list = { 0 };
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->profile.stacks.count; i++) {
		const struct profile_stack *stack = &d->profile.stacks.items[i];
		uint32_t count;
		const uint64_t *addresses = stack_table_get(&trace->stacks, stack->stack, &count);
		for (uint32_t f = 0; f < stack->frame_count && f < count; f++) {
			uint32_t index = d->profile.functions.items[stack->at + f];
			const struct function *function = &names->functions.items[index];
			uint8_t kind = function->kind < 8 ? function->kind : 0;
			frames[kind] += stack->count;
			if (is_named(trace, function)) {
				named[kind] += stack->count;
				continue;
			}
			struct unnamed *unnamed = vec_push(&list);
			if (!unnamed)
				exit(1);
			*unnamed = (struct unnamed){ .address = addresses[f],
				.frames = stack->count,
				.process = stack->process,
				.function = index,
				.managed = kind == FUNCTION_JIT || kind == FUNCTION_READYTORUN };
		}
	}
	if (list.count)
		qsort(list.items, list.count, sizeof(list.items[0]), by_place);
	for (uint32_t i = 0; i < list.count; i++) {
		if (kept && by_place(&list.items[kept - 1], &list.items[i]) == 0)
			list.items[kept - 1].frames += list.items[i].frames;
		else
			list.items[kept++] = list.items[i];
	}
	if (kept)
		qsort(list.items, kept, sizeof(list.items[0]), by_frames);
	for (uint8_t kind = 0; kind <= FUNCTION_STUB; kind++)
		printf("frames_%s %" PRIu64 "\nnamed_%s %" PRIu64 "\n", label_kind(kind),
			frames[kind], label_kind(kind), named[kind]);
	uint64_t managed =
		frames[FUNCTION_JIT] + frames[FUNCTION_READYTORUN] + frames[FUNCTION_STUB];
	uint64_t managed_named =
		named[FUNCTION_JIT] + named[FUNCTION_READYTORUN] + named[FUNCTION_STUB];

	printf("frames_managed %" PRIu64 "\nnamed_managed %" PRIu64 "\n", managed, managed_named);
	for (uint32_t i = 0; i < kept && i < LIST_MAX; i++) {
		const struct unnamed *u = &list.items[i];
		const struct function *function = &names->functions.items[u->function];
		printf("unnamed %s %" PRIu64 " %s %u %" PRIx64 " %s\n", label_kind(function->kind),
			u->frames, function->module ? trace_text(trace, function->module) : "-",
			trace->processes.items[u->process].pid, u->address,
			trace_text(trace, function->name));
	}
	if (pid)
		print_code(trace, list.items, kept, pid);
	vec_done(&list);
}

int main(int argc, char **argv)
{
	struct trace trace = { 0 };
	struct symbolmap names;
	struct dissection d = { .profile = { .trace = &trace } };
	struct diag diag = { 0 };

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "dissect FILE [PID]\n");
		return 2;
	}
	if (trace_init(&trace) < 0 || saved_read(argv[1], &trace, on_event, &d, &diag) < 0 ||
		symbolmap_init(&names, &trace, METHOD_NAME_LONG) < 0 ||
		profile_name(&d.profile, &names) < 0) {
		fprintf(stderr, "%s\n", diag.error ? diag.text : "out of memory");
		return 1;
	}
	print_blocks(argv[1]);
	for (unsigned i = 0; i < KIND_COUNT; i++)
		if (d.events[i])
			printf("events_%s %" PRIu64 "\npayload_bytes_%s %" PRIu64 "\n",
				event_kinds[i], d.events[i], event_kinds[i], d.payload_bytes[i]);
	for (unsigned i = SESSION_COUNT_UNKNOWN + 1; i < SESSION_COUNTS; i++)
		printf("count_%s %" PRIu64 "\n", session_count_name((enum session_count_id)i),
			trace.recording.counts[i]);
	printf("samples %" PRIu64 "\nframes %" PRIu64 "\nstacks %u\n", d.profile.count,
		d.profile.frame_count, trace.stacks.stacks.count);
	print_frames(&d, &names, argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0);
	symbolmap_done(&names);
	profile_done(&d.profile);
	trace_done(&trace);
	return 0;
}
