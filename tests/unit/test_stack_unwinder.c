/* Stacks of a stopped child, unwound from whole and from short copies, and joined with the kernel's chain. */
#include "recording/stack_unwinder.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strtab.h"
#include "code/arch.h"
#include "code/unwind_trace.h"
#include "machine/proc.h"
#include "perf/perf_record.h"
#include "unit/test.h"

#ifdef __x86_64__
#define DEPTH       20
#define FRAMES_MAX  256u
#define SHORT_BYTES 600u /* some of the frames */

static struct proc_reader proc;
static struct strtab strings;
static struct stack_unwinder *unwinder;
static pid_t child;
static uint64_t words[17];
static uint8_t stack[STACK_COPY_BYTES];
static struct perf_record sample;
static uint64_t whole[FRAMES_MAX];
static uint32_t whole_count;

__attribute__((noinline)) static int descend(int depth)
{
	volatile int room[8];

	room[depth % 8] = depth;
	if (depth)
		return descend(depth - 1) + room[depth % 8];
	return raise(SIGSTOP);
}

static void run_child(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	_exit(descend(DEPTH) == 0);
}

static uint64_t stack_end;

/* Unwinds `bytes` of the copy; the kernel's chain is in frames. */
static enum unwind_end unwind(uint32_t bytes, uint64_t *frames, uint32_t *count)
{
	struct perf_record record = sample;
	enum unwind_end end;

	if (record.user_stack_size > bytes)
		record.user_stack_size = bytes;
	assert_true(stack_unwinder_replace(unwinder, &record, frames, 0, count, FRAMES_MAX, &end,
		&stack_end));
	return end;
}

static int set_up(void **state)
{
	struct user_regs_struct regs;
	int status;

	(void)state;
	assert_int_equal(proc_open(&proc, NULL), 0);
	assert_int_equal(stack_unwinder_new(&strings, &proc, arch_here(), &unwinder), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		run_child();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &regs), 0);
	const uint64_t in_order[] = { regs.rax, regs.rbx, regs.rcx, regs.rdx, regs.rsi, regs.rdi,
		regs.rbp, regs.rsp, regs.rip, regs.r8, regs.r9, regs.r10, regs.r11, regs.r12,
		regs.r13, regs.r14, regs.r15 };
	memcpy(words, in_order, sizeof(words));
	struct iovec here = { stack, sizeof(stack) };
	struct iovec there = { (void *)(uintptr_t)regs.rsp, sizeof(stack) };
	ssize_t got = process_vm_readv(child, &here, 1, &there, 1, 0);
	while (got < 0 && there.iov_len > 4096) {
		there.iov_len = here.iov_len -= 1024; /* nearer to the end of the stack */
		got = process_vm_readv(child, &here, 1, &there, 1, 0);
	}
	assert_true(got > (ssize_t)SHORT_BYTES);
	sample = (struct perf_record){ .type = PERF_TYPE_SAMPLE,
		.pid = (uint32_t)child,
		.user_registers = (const uint8_t *)words,
		.user_is_64 = true,
		.user_stack = stack,
		.user_stack_size = (uint32_t)got };
	whole_count = 0;
	assert_int_equal(unwind(UINT32_MAX, whole, &whole_count), UNWIND_START);
	assert_true(whole_count > DEPTH + 4);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	stack_unwinder_free(unwinder);
	strtab_done(&strings);
	strings = (struct strtab){ 0 };
	proc_close(&proc);
	return 0;
}

static void expect_whole(const uint64_t *frames, uint32_t count)
{
	assert_int_equal(count, whole_count);
	assert_memory_equal(frames, whole, count * sizeof(*frames));
}

/* The frames that the copy has, in order, and no others. */
static void test_short(void **state)
{
	uint64_t frames[FRAMES_MAX];
	uint32_t count = 0;

	(void)state;
	assert_int_equal(unwind(SHORT_BYTES, frames, &count), UNWIND_COPY);
	assert_true(count > 2 && count < whole_count);
	assert_memory_equal(frames, whole, count * sizeof(*frames));
	/* without any word of the stack, the thread's own address is left */
	count = 0;
	assert_int_equal(unwind(0, frames, &count), UNWIND_COPY);
	assert_int_equal(count, 1);
}

/* A copy up to the address that the walk of a longer one needed is enough. */
static void test_stack_end(void **state)
{
	uint64_t frames[FRAMES_MAX];
	uint32_t count = 0;

	(void)state;
	assert_int_equal(unwind(SHORT_BYTES, frames, &count), UNWIND_COPY);
	assert_int_equal(stack_end, 0);
	count = 0;
	assert_int_equal(unwind(UINT32_MAX, frames, &count), UNWIND_START);
	assert_true(stack_end > words[7] + SHORT_BYTES);
	count = 0;
	assert_int_equal(unwind((uint32_t)(stack_end - words[7]), frames, &count), UNWIND_START);
	expect_whole(frames, count);
}

/* Many of these frames have the same address: the kernel's chain continues at the same depth. */
static void test_join(void **state)
{
	uint64_t frames[FRAMES_MAX];
	uint32_t count = whole_count;

	(void)state;
	memcpy(frames, whole, sizeof(whole));
	assert_int_equal(unwind(SHORT_BYTES, frames, &count), UNWIND_START);
	expect_whole(frames, count);
	/* a chain that shares nothing but the leaf */
	memcpy(frames, whole, sizeof(whole));
	for (uint32_t i = 1; i < whole_count; i++)
		frames[i] = 0x1234;
	count = whole_count;
	assert_int_equal(unwind(SHORT_BYTES, frames, &count), UNWIND_COPY);
	assert_true(count < whole_count);
	assert_memory_equal(frames, whole, count * sizeof(*frames));
}

/* A stack that has nothing but what the trace names, and registers likewise, has the same frames. */
static void test_trace(void **state)
{
	static struct unwind_trace trace;
	static uint8_t bare[sizeof(stack)];
	struct unwind_registers registers;
	struct perf_record record = sample;
	const struct arch_unwind *arch = arch_here()->unwind;
	const uint64_t *found;
	uint64_t bare_words[17];
	uint64_t frames[FRAMES_MAX];
	uint32_t count = 0;

	(void)state;
	assert_true(stack_unwinder_trace(unwinder, &sample, &registers, &trace, &found, &count));
	expect_whole(found, count);
	assert_true(trace.word_count >= count - 2 && trace.word_count < 2 * count);
	assert_int_equal(registers.pc, whole[0]);
	memset(bare, 0x5a, sizeof(bare));
	for (uint32_t i = 0; i < trace.word_count; i++) {
		memcpy(bare + trace.offsets[i], &trace.values[i], 8);
		assert_memory_equal(stack + trace.offsets[i], &trace.values[i], 8);
	}
	for (uint32_t i = 0; i < 17; i++) {
		uint8_t number = arch->kernel_order[i];
		bool kept = number == arch->pc_register || number == arch->stack_register ||
			    trace.registers >> number & 1;
		bare_words[i] = kept ? words[i] : UINT64_C(0x5a5a5a5a5a5a5a5a);
	}
	record.user_stack = bare;
	record.user_registers = (const uint8_t *)bare_words;
	count = 0;
	enum unwind_end end;
	assert_true(stack_unwinder_replace(unwinder, &record, frames, 0, &count, FRAMES_MAX, &end,
		&stack_end));
	assert_int_equal(end, UNWIND_START);
	expect_whole(frames, count);
	/* Each of the words matters. */
	const struct unwind_trace whole_trace = trace;

	for (uint32_t i = 0; i < whole_trace.word_count; i++) {
		memset(bare + whole_trace.offsets[i], 0x5a, 8);
		bool same = stack_unwinder_trace(unwinder, &record, &registers, &trace, &found,
				    &count) &&
			    count == whole_count &&
			    memcmp(found, whole, count * sizeof(*found)) == 0;
		assert_false(same);
		memcpy(bare + whole_trace.offsets[i], &whole_trace.values[i], 8);
	}
	/* A short copy, and a thread that is not traced. */
	record.user_stack_size = SHORT_BYTES;
	assert_false(stack_unwinder_trace(unwinder, &record, &registers, &trace, &found, &count));
	record.user_registers = NULL;
	assert_false(stack_unwinder_trace(unwinder, &record, &registers, &trace, &found, &count));
}

/* The mapping of the child that holds an address. */
struct held {
	uint64_t address;
	struct proc_mapping mapping;
};

static int on_mapping(void *user, const struct proc_mapping *mapping)
{
	struct held *held = user;

	if (held->address >= mapping->begin && held->address < mapping->end) {
		held->mapping = *mapping;
		held->mapping.path = strndup(mapping->path, mapping->path_len);
		assert_non_null(held->mapping.path);
	}
	return 0;
}

static void note(uint64_t begin, uint64_t end, uint64_t file_offset, uint64_t inode,
	const struct held *held)
{
	const struct perf_record record = { .type = PERF_TYPE_MMAP2,
		.pid = (uint32_t)child,
		.tid = (uint32_t)child,
		.time_ns = UINT64_MAX,
		.address = begin,
		.length = end - begin,
		.file_offset = file_offset,
		.protection = PERF_PROT_EXEC,
		.device_major = held->mapping.device_major,
		.device_minor = held->mapping.device_minor,
		.inode = inode,
		.text = held->mapping.path,
		.text_len = (uint32_t)held->mapping.path_len };

	stack_unwinder_note(unwinder, &record);
}

/* The rows of a mapping that is split, grows, or has a neighbour stay; those of another file do not. */
static void test_rows_stay(void **state)
{
	struct held held = { .address = whole[whole_count / 2] };
	uint64_t made = stack_unwinder_rows_made(unwinder);
	uint64_t frames[FRAMES_MAX];
	uint32_t count = 0;

	(void)state;
	assert_int_equal(proc_read_maps(&proc, (uint32_t)child, on_mapping, &held), 0);
	const struct proc_mapping *own = &held.mapping;
	uint64_t part = held.address & ~UINT64_C(4095);
	assert_true(own->begin && made > 4);
	note(part, part + 4096, own->file_offset + part - own->begin, own->inode, &held);
	note(own->begin, own->end + 4096, own->file_offset, own->inode, &held);
	assert_int_equal(unwind(UINT32_MAX, frames, &count), UNWIND_START);
	expect_whole(frames, count);
	assert_int_equal(stack_unwinder_rows_made(unwinder), made);
	/* Another file there: only its rows are made again. It cannot be found, so the walk may end there. */
	note(part, part + 4096, own->file_offset + part - own->begin, own->inode + 1, &held);
	count = 0;
	(void)unwind(UINT32_MAX, frames, &count);
	assert_true(stack_unwinder_rows_made(unwinder) > made);
	free((void *)(uintptr_t)own->path);
}

/* The kernel's chain ends where libc has no frame pointers: what comes then was seen before. */
static void test_outer(void **state)
{
	uint64_t frames[FRAMES_MAX];
	uint32_t count = whole_count - 2;

	(void)state;
	memcpy(frames, whole, sizeof(whole));
	assert_int_equal(unwind(SHORT_BYTES, frames, &count), UNWIND_START);
	expect_whole(frames, count);
}

static void test_no_registers(void **state)
{
	uint64_t frames[] = { 0x1000, 0x2000 };
	uint32_t count = 2;
	struct perf_record record = sample;
	enum unwind_end end;

	(void)state;
	record.user_is_64 = false;
	assert_true(stack_unwinder_replace(unwinder, &record, frames, 0, &count, 2, &end,
		&stack_end));
	assert_int_equal(end, UNWIND_NO_REGISTERS);
	assert_int_equal(count, 2);
	assert_int_equal(frames[1], 0x2000);
	record.user_registers = NULL;
	assert_false(stack_unwinder_replace(unwinder, &record, frames, 0, &count, 2, &end,
		&stack_end));
	/* there is room for few */
	count = 0;
	assert_true(stack_unwinder_replace(unwinder, &sample, frames, 0, &count, 2, &end,
		&stack_end));
	assert_int_equal(end, UNWIND_FRAMES);
	assert_int_equal(count, 2);
	assert_memory_equal(frames, whole, sizeof(frames));
}
#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(test_stack_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_short, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_join, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_outer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rows_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_registers, set_up, tear_down),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
