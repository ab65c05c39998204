/*
 * sched_probe.c with the real kernel: a process that is muted has no entries in the rings of switches, the copy of a
 * known stack is as long as the stack, and a known block has no sample. All threads here sleep for a fixed number of
 * times.
 */
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "code/arch.h"
#include "perf/known_block.h"
#include "perf/perf_record.h"
#include "perf/recorder.h"
#include "perf/ring.h"
#include "perf/sched_probe.h"
#include "perf/switch_ring.h"

#define SKIPPED     77
#define SLEEPS      50u
#define COPY_BYTES  8192u
#define SMALL_BYTES 512u
#define ROOM_BYTES \
	65536u /* of the stack above the thread's first frame, so that no copy ends earlier */
#define SIZED_BYTES 1024u

static struct recorder *recorder;

/* What the rings had of the switches of one thread. */
struct switches {
	uint32_t tid;
	uint64_t count;    /* it left a CPU */
	uint64_t returned; /* it came back */
	uint64_t samples;
	uint64_t joined;    /* of them, for which an entry has the same time */
	uint64_t sample_ns; /* of the last one */
	uint64_t by_bytes
		[4]; /* copies of at most SMALL_BYTES, SIZED_BYTES, less than COPY_BYTES, COPY_BYTES */
	uint64_t stack_pointer; /* of the last */
	uint64_t
		learn_bytes; /* not 0: the stack is said to end so many bytes above its stack pointer */
	bool short_copies; /* every copy is said to have been too short */
	bool learn_block;  /* the place where the thread is most often */
	struct known_block block;
	uint64_t stack[64]; /* there: the words that are always the same; 0: others */
	uint32_t votes;
	uint32_t row; /* of the known blocks, of which there are so many */
	uint32_t version;
	uint64_t known;
};

static const struct arch_unwind *arch(void)
{
	return arch_here()->unwind;
}

static uint64_t register_of(const struct perf_record *record, uint8_t number)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < arch()->kernel_count; i++)
		if (arch()->kernel_order[i] == number)
			memcpy(&value, record->user_registers + i * sizeof(value), sizeof(value));
	return value;
}

/* The place that has more than half of the blocks remains. */
static void learn_block(struct switches *seen, const struct perf_record *record)
{
	uint64_t pc = register_of(record, arch()->block_registers[0]);
	uint64_t stack_pointer = register_of(record, arch()->block_registers[1]);
	uint64_t now[64];

	if (record->user_stack_size < sizeof(now))
		return;
	memcpy(now, record->user_stack, sizeof(now));
	bool same = seen->block.registers[0] == pc && seen->block.registers[1] == stack_pointer;
	if (!seen->votes) {
		seen->block.registers[0] = pc;
		seen->block.registers[1] = stack_pointer;
		memcpy(seen->stack, now, sizeof(now));
		same = true;
	}
	seen->votes += same ? 1 : -1u;
	for (uint32_t i = 0; same && i < 64; i++)
		if (seen->stack[i] != now[i])
			seen->stack[i] = 0;
}

static void note(struct switches *seen, const struct perf_record *record)
{
	struct sched_probe_sample sample;

	if (record->tid != seen->tid || !sched_probe_sample(record->raw, record->raw_size, &sample))
		return;
	assert_true(sample.kernel_count > 8);
	seen->samples++;
	seen->sample_ns = sample.time_ns;
	if (seen->learn_block && record->user_registers)
		learn_block(seen, record);
	seen->by_bytes[record->user_stack_size <= SMALL_BYTES   ? 0
		       : record->user_stack_size <= SIZED_BYTES ? 1
		       : record->user_stack_size < COPY_BYTES   ? 2
								: 3]++;
	if (!record->user_registers || (!seen->learn_bytes && !seen->short_copies))
		return;
	seen->stack_pointer = register_of(record, arch()->stack_register);
	recorder_learn_stack(recorder, sample.sized, record->tid,
		seen->short_copies ? 0 : seen->stack_pointer + seen->learn_bytes);
}

static void note_entry(struct switches *seen, const struct switch_entry *entry)
{
	seen->returned += entry->flags & SWITCH_ENTRY_IN && entry->next_tid == seen->tid &&
			  entry->next_pid != 0;
	if (!(entry->flags & SWITCH_ENTRY_OUT) || entry->tid != seen->tid)
		return;
	/* without either the ring of perf was full */
	assert_false(entry->flags & SWITCH_ENTRY_KNOWN && entry->flags & SWITCH_ENTRY_SAMPLE);
	seen->count++;
	seen->joined += entry->time_ns == seen->sample_ns;
	if (!(entry->flags & SWITCH_ENTRY_KNOWN))
		return;
	seen->known++;
	seen->row = entry->row;
	seen->version = entry->version;
}

static void drain(struct switches *seen)
{
	const struct recorder_info *info = recorder_info(recorder);
	struct perf_layout layout = { .sample_type = info->sample_type,
		.user_registers = arch_here()->unwind->kernel_mask,
		.sample_id_all = true };

	for (uint32_t i = 0; i < info->ring_count; i++) {
		struct ring *ring = recorder_ring(recorder, i);
		struct switch_ring *switches = recorder_switches(recorder, i);
		struct switch_entry entry;
		const uint8_t *data;
		uint32_t size;
		struct perf_record record;
		assert_non_null(switches);
		switch_ring_begin(switches);
		seen->sample_ns = 0;
		ring_begin(ring);
		while (ring_next(ring, &data, &size)) {
			assert_int_equal(perf_record_decode(&layout, data, size, &record), 0);
			if (record.type == PERF_TYPE_SAMPLE && record.raw_size &&
				sched_events_which(&info->sched, &record) == SCHED_EVENT_SWITCH)
				note(seen, &record);
		}
		ring_end(ring);
		while (switch_ring_next(switches, &entry))
			note_entry(seen, &entry);
		assert_int_equal(switch_ring_lost(switches), 0);
	}
}

static void mute(uint32_t pid, bool muted)
{
	uint64_t *words = recorder_muted(recorder);

	if (muted)
		words[pid / 64] |= UINT64_C(1) << pid % 64;
	else
		words[pid / 64] &= ~(UINT64_C(1) << pid % 64);
}

static void open_recorder(uint32_t pid, uint32_t small_bytes)
{
	struct recorder_options options = {
		.scope = RECORD_PIDS,
		.frequency_hz = 1,
		.pids = &pid,
		.pid_count = 1,
		.switches = true,
		.user_stack_bytes = COPY_BYTES,
		.switch_stack_bytes = COPY_BYTES,
		.user_stack_small_bytes = small_bytes,
		.waking_stack_bytes = SMALL_BYTES,
		.user_registers = arch_here()->unwind->kernel_mask,
		.kernel_registers = arch_here()->unwind->block_offsets,
		.kernel_register_count = arch_here()->unwind->block_count,
	};
	struct diag diag = { 0 };

	assert_int_equal(recorder_open(&options, &recorder, &diag), 0);
	assert_true(recorder_info(recorder)->sched.of[SCHED_EVENT_SWITCH].by_probe);
	/* Other processes are muted: on a busy machine they would fill the rings. */
	memset(recorder_muted(recorder), 0xff, SCHED_PROBE_PIDS_MAX / 8);
	mute((uint32_t)getpid(), false);
	assert_int_equal(recorder_start(recorder, &diag), 0);
}

static void sleep_often(void)
{
	for (uint32_t i = 0; i < SLEEPS; i++)
		(void)usleep(100);
}

static void reap(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The switches of a child process that may be muted. */
static uint64_t count_of_child(bool muted)
{
	int gate[2];

	assert_int_equal(pipe(gate), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		if (read(gate[0], &byte, 1) != 1)
			_exit(1);
		sleep_often();
		_exit(0);
	}
	struct switches seen = { .tid = (uint32_t)pid };
	mute((uint32_t)pid, muted);
	drain(&seen); /* it may have been switched before */
	seen.count = 0;
	assert_int_equal(write(gate[1], "x", 1), 1);
	reap(pid);
	drain(&seen);
	(void)close(gate[0]);
	(void)close(gate[1]);
	return seen.count;
}

static void test_muted(void **state)
{
	(void)state;
	open_recorder((uint32_t)getpid(), 0);
	assert_true(count_of_child(false) >= SLEEPS);
	/* one may have been on its way when the bit was set */
	assert_true(count_of_child(true) <= 1);
	assert_true(count_of_child(false) >= SLEEPS);
	recorder_close(recorder);
}

/* A thread that sleeps SLEEPS times at each request. Below its first frame there is room for any copy. */
struct sleeper {
	pthread_t thread;
	atomic_uint tid;
	atomic_uint rounds; /* requested */
	atomic_uint done;
	unsigned round_count;
};

static void *run_sleeper(void *context)
{
	struct sleeper *sleeper = context;
	volatile char room[ROOM_BYTES];

	/* a page that was never touched would end the copy */
	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
	sleeper->tid = (unsigned)gettid();
	for (unsigned round = 1; round <= sleeper->round_count; round++) {
		while (sleeper->rounds < round)
			(void)usleep(1000);
		sleep_often();
		sleeper->done = round;
	}
	return NULL;
}

static void sleep_round(struct sleeper *sleeper)
{
	unsigned round = ++sleeper->rounds;

	while (sleeper->done < round)
		(void)usleep(1000);
}

static void test_sizes(void **state)
{
	struct sleeper sleeper = { .round_count = 5 };

	(void)state;
	open_recorder((uint32_t)getpid(), SMALL_BYTES);
	assert_int_equal(pthread_create(&sleeper.thread, NULL, run_sleeper, &sleeper), 0);
	while (!sleeper.tid)
		(void)usleep(1000);
	struct switches seen = { .tid = sleeper.tid };

	/* not known yet */
	sleep_round(&sleeper);
	drain(&seen);
	assert_true(seen.count >= SLEEPS);
	assert_true(seen.returned >= SLEEPS);
	assert_in_range(seen.samples, SLEEPS, seen.count);
	/* the last one of each CPU it was on: others have passed when the entries are read */
	assert_true(seen.joined >= 1);
	assert_int_equal(seen.by_bytes[3], seen.samples);

	/* It ends 600 bytes above the stack pointer; the records in the rings are still large ones. */
	seen.learn_bytes = 600;
	drain(&seen);
	sleep_round(&sleeper);
	drain(&seen);
	struct switches known = { .tid = sleeper.tid, .learn_bytes = 600 };
	sleep_round(&sleeper);
	drain(&known);
	assert_true(known.count >= SLEEPS);
	assert_true(known.by_bytes[1] >= SLEEPS);

	/* The copies are said to be too short: from then on they have the size for unknown stacks, a small one. */
	struct switches forgotten = { .tid = sleeper.tid, .short_copies = true };
	recorder_copy_small(recorder, true);
	sleep_round(&sleeper);
	drain(&forgotten);
	assert_true(forgotten.by_bytes[1] >= SLEEPS);
	struct switches small = { .tid = sleeper.tid };
	sleep_round(&sleeper);
	assert_int_equal(pthread_join(sleeper.thread, NULL), 0);
	drain(&small);
	assert_true(small.by_bytes[0] >= SLEEPS);
	recorder_close(recorder);
}

/* How many blocks of a round are in the row. */
static uint64_t known_in_round(struct sleeper *sleeper)
{
	struct switches seen = { .tid = sleeper->tid };

	drain(&seen);
	seen.known = 0;
	sleep_round(sleeper);
	drain(&seen);
	assert_true(seen.count >= SLEEPS);
	return seen.known;
}

/* A block is in a row if the thread, its registers, and the words of its stack are as there. */
static void test_known(void **state)
{
	struct sleeper sleeper = { .round_count = 12 };
	struct switches seen = { .learn_block = true };

	(void)state;
	open_recorder((uint32_t)getpid(), SMALL_BYTES);
	struct known_block *rows = recorder_known_blocks(recorder);
	if (!rows) {
		recorder_close(recorder);
		print_message("skipped: this kernel cannot recognize blocks\n");
		skip();
	}
	assert_int_equal(pthread_create(&sleeper.thread, NULL, run_sleeper, &sleeper), 0);
	while (!sleeper.tid)
		(void)usleep(1000);
	seen.tid = sleeper.tid;
	drain(&seen);
	seen.votes = 0;
	sleep_round(&sleeper);
	drain(&seen);
	assert_int_equal(seen.known, 0);
	assert_true(seen.votes >= SLEEPS / 2);
	struct known_block block = seen.block;
	for (uint16_t i = 0; i < 64 && block.word_count < 3; i++)
		if (seen.stack[i]) {
			block.values[block.word_count] = seen.stack[i];
			block.offsets[block.word_count++] = i;
			block.span_bytes = (i + 1u) * 8u;
		}
	assert_int_equal(block.word_count, 3);
	block.owner = (uint64_t)getpid() << 32 | sleeper.tid;
	block.masks[0] = block.masks[1] = UINT64_MAX;
	block.registers[2] = 1; /* wrong, and it does not matter */
	block.version = 6;
	/* the third of its four places */
	uint32_t number = 2 + known_block_set(block.owner, block.registers[0], block.registers[1]);
	rows[number] = block;
	struct switches known = { .tid = sleeper.tid };
	sleep_round(&sleeper);
	drain(&known);
	assert_true(known.known >= SLEEPS / 2);
	assert_int_equal(known.row, number);
	assert_int_equal(known.version, 6);
	assert_true(known.samples <= known.count - known.known);
	/* the return addresses in the kernel are compared too */
	rows[number].return_count = 1;
	rows[number].kernel_bytes = 16;
	rows[number].return_offsets[0] = 1;
	rows[number].returns[0] = 1;
	assert_int_equal(known_in_round(&sleeper), 0);
	rows[number] = block;
	rows[number].kernel_bytes = KNOWN_BLOCK_KERNEL + 1;
	assert_int_equal(known_in_round(&sleeper), 0);
	rows[number] = block;
	rows[number].return_count = KNOWN_BLOCK_RETURNS + 1;
	assert_int_equal(known_in_round(&sleeper), 0);

	rows[number].values[2] ^= 1;
	assert_int_equal(known_in_round(&sleeper), 0);
	rows[number] = block;
	rows[number].version = 7; /* it is being written */
	assert_int_equal(known_in_round(&sleeper), 0);
	rows[number] = block;
	rows[number].owner++;
	assert_int_equal(known_in_round(&sleeper), 0);
	rows[number] = block;
	rows[number].masks[2] = UINT64_MAX;
	assert_int_equal(known_in_round(&sleeper), 0);
	rows[number] = block;
	rows[number].span_bytes = KNOWN_BLOCK_SPAN + 1;
	assert_int_equal(known_in_round(&sleeper), 0);
	rows[number] = block;
	rows[number].word_count = KNOWN_BLOCK_WORDS + 1;
	assert_int_equal(known_in_round(&sleeper), 0);
	rows[number] = block;
	assert_true(known_in_round(&sleeper) >= SLEEPS / 2);
	assert_int_equal(pthread_join(sleeper.thread, NULL), 0);
	recorder_close(recorder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_muted),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_known),
	};
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 1,
		.pids = &(uint32_t){ (uint32_t)getpid() },
		.pid_count = 1,
		.switches = true };
	struct diag diag = { 0 };

	if (!arch_here()->unwind || recorder_open(&options, &recorder, &diag) < 0) {
		print_message("skipped: %s\n", diag.text);
		return SKIPPED;
	}
	bool by_probe = recorder_info(recorder)->sched.of[SCHED_EVENT_SWITCH].by_probe;
	recorder_close(recorder);
	if (!by_probe) {
		print_message("skipped: no right to use BPF\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests_name("sched_probe", tests, NULL, NULL);
}
