/*
 * The walk, compared with what really ran: a child is executed instruction by instruction, a list of
 * its return addresses is kept from its calls and returns, and the walk must find that list at each
 * instruction: in prologues and epilogues, PLT stubs, leaf functions and those of libc.
 *
 * test_unwind PROGRAM [ARGUMENT...] does that to a program from where it stops itself with SIGSTOP, and
 * prints how many instructions there were, and how many had a wrong chain or one that does not reach the
 * start of the thread.
 */
#include "code/unwind.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "code/arch.h"
#include "code/unwind_table.h"
#include "code/unwind_trace.h"
#include "image/image_file.h"
#include "machine/proc.h"
#include "unit/test.h"

#define STACK_BYTES 16384u
#define DEPTH_MAX   256u
#define VDSO_BYTES  8192u

#ifdef __x86_64__
struct place {
	uint64_t begin;
	uint64_t end;
	uint64_t offset;
	struct unwind_table *table;
};

struct places {
	VEC(struct place) items;
};

static int add_place(void *user, const struct proc_mapping *mapping)
{
	struct places *places = user;
	struct place place = { mapping->begin, mapping->end, mapping->file_offset, NULL };
	struct image_file file;
	int fd = open(mapping->path, O_RDONLY | O_CLOEXEC);

	if (strcmp(mapping->path, "[vdso]") == 0)
		image_file_from_memory(&file, (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR),
			VDSO_BYTES);
	if (fd >= 0)
		assert_int_equal(image_file_from_fd(&file, fd, NULL), 0);
	if (fd >= 0 || strcmp(mapping->path, "[vdso]") == 0)
		(void)unwind_table_open(&file, &place.table); /* else its code has frame pointers */
	if (fd >= 0)
		close(fd);
	return vec_add(&places->items, place) ? 0 : -1;
}

static bool locate(void *context, uint64_t address, bool exact, struct unwind_place *ret_place)
{
	const struct places *places = context;

	(void)exact; /* tables need no more than the address */
	for (uint32_t i = 0; i < places->items.count; i++) {
		const struct place *place = &places->items.items[i];
		if (address < place->begin || address >= place->end)
			continue;
		ret_place->table = place->table;
		return !place->table ||
		       unwind_table_vaddr(place->table, address - place->begin + place->offset,
			       &ret_place->vaddr);
	}
	return false;
}

static void places_read(struct places *places, pid_t pid)
{
	struct proc_reader proc;

	*places = (struct places){ 0 };
	assert_int_equal(proc_open(&proc, NULL), 0);
	assert_int_equal(proc_read_maps(&proc, (uint32_t)pid, add_place, places), 0);
	proc_close(&proc);
}

static void places_done(struct places *places)
{
	for (uint32_t i = 0; i < places->items.count; i++)
		unwind_table_free(places->items.items[i].table);
	vec_done(&places->items);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Code of libc that has no frame pointers, calls back, and has many leaves. */
static void work(void)
{
	static const int unsorted[] = { 5, 2, 9, 1, 7, 3, 8, 6, 4, 0 };
	double sum = 0;
	int numbers[10];
	char text[200];

	for (int i = 0; i < 4; i++) {
		memcpy(numbers, unsorted, sizeof(numbers));
		qsort(numbers, 10, sizeof(numbers[0]), compare);
		(void)snprintf(text, sizeof(text), "%d %s %.3f %lx", numbers[3], "text",
			(double)numbers[4] / 3, 0x123456789abcdefUL);
		sum += strtod(text, NULL);
		free(malloc((size_t)i * 3000 + 20));
	}
	assert_true(sum > 0);
	(void)getenv(text);
}

struct call {
	uint64_t at; /* of the return address on the stack */
	uint64_t address;
};

struct calls {
	struct call items[DEPTH_MAX];
	uint32_t count;
};

/* One instruction was executed: `before` are the registers before it. */
static void follow(struct calls *calls, const struct user_regs_struct *before,
	const struct user_regs_struct *now, const struct unwind_stack *stack)
{
	uint64_t top = 0;

	while (calls->count && calls->items[calls->count - 1].at < now->rsp)
		calls->count--;
	if (now->rsp != before->rsp - 8 || !unwind_stack_read(stack, now->rsp, &top))
		return;
	/* A push of an address that happens to be behind it does not jump elsewhere. */
	if (top > before->rip && top <= before->rip + 7 && now->rip != top) {
		assert_true(calls->count < DEPTH_MAX);
		calls->items[calls->count++] = (struct call){ now->rsp, top };
	}
}

static void registers_from(const struct user_regs_struct *regs, struct unwind_registers *ret)
{
	const unsigned long long values[] = { regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi,
		regs->rdi, regs->rbp, regs->rsp, regs->r8, regs->r9, regs->r10, regs->r11,
		regs->r12, regs->r13, regs->r14, regs->r15 };

	*ret = (struct unwind_registers){ .pc = regs->rip, .known = 0xffff };
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		ret->values[i] = values[i];
}

struct score {
	uint64_t steps;
	uint64_t compared;
	uint64_t wrong;
	uint64_t ends[UNWIND_END_COUNT];
};

static void judge(struct unwind *unwind, const struct calls *calls,
	const struct user_regs_struct *regs, const struct unwind_stack *stack, struct score *score)
{
	struct unwind_registers registers;
	uint64_t frames[DEPTH_MAX + 32];
	uint32_t count;
	bool equal = true;

	registers_from(regs, &registers);
	score->steps++;
	score->ends[unwind_walk(unwind, 1, &registers, stack, frames, DEPTH_MAX + 32, &count)]++;
	for (uint32_t i = 0; i < calls->count && equal; i++)
		equal = i + 1 < count &&
			frames[i + 1] == calls->items[calls->count - 1 - i].address;
	if (equal)
		return;
	score->wrong++;
	if (score->wrong <= 5)
		print_error("wrong at %llx, which has %u callers: %u frames\n", regs->rip,
			calls->count, count);
}

/* A walk of a changed stack is the same whether or not the walker knows the last walk of that stack. */
static void compare_changed(struct unwind *unwind, struct unwind *fresh,
	const struct user_regs_struct *regs, const struct unwind_stack *stack, struct score *score)
{
	static uint8_t bytes[STACK_BYTES];
	static uint64_t frames[2][DEPTH_MAX + 32];
	struct unwind_stack changed = { bytes, stack->size, stack->begin };
	enum unwind_end ends[2];
	uint32_t counts[2];

	if (!fresh || score->steps % 8 || stack->size < 4096)
		return;
	/* A word becomes what another one is, so that the chain may well lead to code. */
	uint64_t number = score->steps * UINT64_C(0x9e3779b97f4a7c15);
	memcpy(bytes, stack->bytes, stack->size);
	memcpy(bytes + 8 * (number >> 32 & 127), bytes + 8 * (number >> 48 & 255), 8);
	unwind_forget(fresh);
	for (int i = 0; i < 2; i++) {
		struct unwind_registers registers;
		registers_from(regs, &registers);
		ends[i] = unwind_walk(i ? fresh : unwind, 1, &registers, &changed, frames[i],
			DEPTH_MAX + 32, &counts[i]);
	}
	assert_int_equal(ends[0], ends[1]);
	assert_int_equal(counts[0], counts[1]);
	assert_memory_equal(frames[0], frames[1], counts[0] * sizeof(frames[0][0]));
	score->compared++;
}

/* The kernel has begun a handler: it returns to a stub of libc, which returns to what was interrupted. */
static void follow_signal(struct calls *calls, const struct user_regs_struct *before,
	const struct user_regs_struct *now, const struct unwind_stack *stack)
{
	uint64_t stub = 0;

	assert_true(calls->count + 2 <= DEPTH_MAX && unwind_stack_read(stack, now->rsp, &stub));
	calls->items[calls->count++] = (struct call){ now->rsp + 8, before->rip };
	calls->items[calls->count++] = (struct call){ now->rsp, stub };
}

static struct unwind_stack copy_stack(pid_t child, uint64_t stack_pointer)
{
	static uint8_t bytes[STACK_BYTES];
	struct iovec here = { bytes, sizeof(bytes) };
	struct iovec there = { (void *)(uintptr_t)stack_pointer, sizeof(bytes) };
	ssize_t got = process_vm_readv(child, &here, 1, &there, 1, 0);

	if (got < 0) {
		/* nearer to the end of the stack than that */
		there.iov_len = here.iov_len = 4096 - stack_pointer % 4096;
		got = process_vm_readv(child, &here, 1, &there, 1, 0);
	}
	assert_true(got > 0);
	return (struct unwind_stack){ bytes, (size_t)got, stack_pointer };
}

/* Executes the rest of a stopped child. Returns its status. */
static int trace(pid_t child, struct unwind *unwind, struct unwind *fresh, struct score *score)
{
	struct user_regs_struct before;
	struct user_regs_struct now;
	struct calls calls = { .count = 0 };
	uintptr_t signal_number = 0;
	int status = 0;

	assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &before), 0);
	while (ptrace(PTRACE_SINGLESTEP, child, NULL, signal_number) == 0 &&
		waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &now), 0);
		struct unwind_stack stack = copy_stack(child, now.rsp);
		if (signal_number)
			follow_signal(&calls, &before, &now, &stack);
		else
			follow(&calls, &before, &now, &stack);
		judge(unwind, &calls, &now, &stack, score);
		compare_changed(unwind, fresh, &now, &stack, score);
		before = now;
		signal_number = WSTOPSIG(status) == SIGTRAP ? 0 : (uintptr_t)WSTOPSIG(status);
	}
	return status;
}

static void run_child(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	work();
	_exit(0);
}

static void test_each_instruction(void **state)
{
	struct score score = { 0 };
	struct places places;
	struct unwind unwind;
	struct unwind fresh;
	int status;

	(void)state;
	places_read(&places, getpid());
	assert_int_equal(unwind_init(&unwind, arch_here()->unwind, locate, &places), 0);
	assert_int_equal(unwind_init(&fresh, arch_here()->unwind, locate, &places), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		run_child();
	assert_int_equal(waitpid(child, &status, 0), child);
	status = trace(child, &unwind, &fresh, &score);
	assert_true(WIFEXITED(status));
	assert_true(score.compared > 500);
	assert_true(score.steps > 5000);
	assert_int_equal(score.wrong, 0);
	assert_int_equal(score.ends[UNWIND_START], score.steps);
	unwind_done(&fresh);
	unwind_done(&unwind);
	places_done(&places);
}

#define STACK_BEGIN UINT64_C(0x7000)

/* Code by address: each begins a page. */
enum given {
	GIVEN_SMALL = 0x1000, /* a frame of 16 bytes */
	GIVEN_SAVES = 0x2000, /* of 32 bytes; the frame pointer is saved below the return address */
	GIVEN_STUB = 0x3000,
	GIVEN_FRAMED = 0x4000, /* found by the frame pointer */
	GIVEN_FREED = 0x5000,  /* as GIVEN_SMALL, but it may be replaced */
};

static bool locate_given(void *context, uint64_t address, bool exact,
	struct unwind_place *ret_place)
{
	static struct unwind_rules rules;
	uint64_t page = address & ~UINT64_C(0xfff);

	(void)context;
	(void)exact;
	if (page < GIVEN_SMALL || page > GIVEN_FREED)
		return false;
	*ret_place = (struct unwind_place){ .stub = page == GIVEN_STUB,
		.transient = page == GIVEN_FREED };
	rules = (struct unwind_rules){ .cfa = { .value = page == GIVEN_SAVES ? 32 : 16,
					       .kind = RULE_VALUE_OFFSET },
		.cfa_register = 7,
		.return_register = 16 };
	rules.registers[16] = (struct unwind_rule){ .value = -8, .kind = RULE_OFFSET };
	if (page == GIVEN_SAVES)
		rules.registers[6] = (struct unwind_rule){ .value = -16, .kind = RULE_OFFSET };
	if (page != GIVEN_STUB && page != GIVEN_FRAMED)
		ret_place->rules = &rules;
	return true;
}

/* Walks from `pc`; the frame pointer is that of words[5]. */
static enum unwind_end walk_given(const uint64_t *words, size_t count, uint64_t pc,
	uint64_t *frames, uint32_t *ret_count, struct unwind_trace *trace)
{
	struct unwind_registers registers = { .pc = pc, .known = 1u << 6 | 1u << 7 };
	struct unwind_stack stack = { (const uint8_t *)words, count * sizeof(*words), STACK_BEGIN };
	struct unwind unwind;

	registers.values[6] = STACK_BEGIN + 40;
	registers.values[7] = STACK_BEGIN;
	assert_int_equal(unwind_init(&unwind, arch_here()->unwind, locate_given, NULL), 0);
	enum unwind_end end =
		trace ? unwind_walk_traced(&unwind, 1, &registers, &stack, frames, 8, ret_count,
				trace)
		      : unwind_walk(&unwind, 1, &registers, &stack, frames, 8, ret_count);
	unwind_done(&unwind);
	return end;
}

/* Code with rules of the caller's: a frame without a frame pointer does not hide its caller. */
static void test_given_rules(void **state)
{
	uint64_t words[] = { 1, GIVEN_SAVES + 8, 2, 3, STACK_BEGIN + 64, GIVEN_SMALL + 8, 4,
		GIVEN_FRAMED + 8, 0, 0 };
	uint64_t frames[8];
	struct unwind_trace trace;
	uint32_t count;

	(void)state;
	assert_int_equal(walk_given(words, 10, GIVEN_SMALL + 4, frames, &count, NULL),
		UNWIND_START);
	assert_int_equal(count, 4);
	assert_int_equal(frames[1], GIVEN_SAVES + 8);
	assert_int_equal(frames[2], GIVEN_SMALL + 8);
	assert_int_equal(frames[3], GIVEN_FRAMED + 8);
	/* A chain is recognized by the words that led from frame to frame. */
	assert_int_equal(walk_given(words, 10, GIVEN_SMALL + 4, frames, &count, &trace),
		UNWIND_START);
	assert_false(trace.failed);
	bool used[10] = { false };
	for (uint32_t i = 0; i < trace.word_count; i++)
		used[trace.offsets[i] / 8] = true;
	assert_true(used[1] && used[4] && used[5] && used[7] && used[9]);
	assert_false(used[0] || used[2] || used[3] || used[6]);
	/* Code that may be replaced says nothing about another stack. */
	words[1] = GIVEN_FREED + 8;
	(void)walk_given(words, 10, GIVEN_SMALL + 4, frames, &count, &trace);
	assert_true(trace.failed);
}

/* The walk of a stack that was walked before, with one word changed or the other way round. */
static void test_repeated(void **state)
{
	const uint64_t whole[] = { 1, GIVEN_SMALL + 8, 0, GIVEN_SAVES + 8, 2, 3, STACK_BEGIN + 80,
		GIVEN_SMALL + 8, 4, GIVEN_FRAMED + 8, 0, 0 };
	const uint64_t others[] = { GIVEN_FREED + 8, GIVEN_SMALL + 16, STACK_BEGIN + 64, 0 };
	uint64_t frames[2][8];
	uint32_t counts[2];
	struct unwind unwind;

	(void)state;
	assert_int_equal(unwind_init(&unwind, arch_here()->unwind, locate_given, NULL), 0);
	for (uint32_t i = 0; i < 2 * 12 * 4; i++) {
		struct unwind_registers registers = { .pc = GIVEN_SMALL + 4,
			.known = 1u << 6 | 1u << 7 };
		uint64_t words[12];
		memcpy(words, whole, sizeof(words));
		if (i % 2)
			words[i / 2 % 12] = others[i / 24];
		struct unwind_stack stack = { (const uint8_t *)words, sizeof(words), STACK_BEGIN };
		registers.values[6] = STACK_BEGIN + 40;
		registers.values[7] = STACK_BEGIN;
		enum unwind_end end =
			unwind_walk(&unwind, 1, &registers, &stack, frames[0], 8, &counts[0]);
		assert_int_equal(end,
			walk_given(words, 12, GIVEN_SMALL + 4, frames[1], &counts[1], NULL));
		assert_int_equal(counts[0], counts[1]);
		assert_memory_equal(frames[0], frames[1], counts[0] * sizeof(frames[0][0]));
		assert_true(i % 2 || (end == UNWIND_START && counts[0] == 5));
	}
	unwind_done(&unwind);
}

/* A stub has no frame if a return address is on top of the stack; else it is passed by the frame pointer. */
static void test_stub(void **state)
{
	uint64_t words[] = { GIVEN_SMALL + 8, 1, GIVEN_SMALL + 16, 2, 3, 0, GIVEN_FRAMED + 8, 0 };
	uint64_t frames[8];
	uint32_t count;

	(void)state;
	(void)walk_given(words, 8, GIVEN_STUB, frames, &count, NULL);
	assert_true(count >= 3);
	assert_int_equal(frames[1], GIVEN_SMALL + 8);
	assert_int_equal(frames[2], GIVEN_SMALL + 16);
	words[0] = 17;
	(void)walk_given(words, 8, GIVEN_STUB, frames, &count, NULL);
	assert_true(count >= 2);
	assert_int_equal(frames[1], GIVEN_FRAMED + 8);
}

static int trace_program(char **argv)
{
	struct score score = { 0 };
	struct places places;
	struct unwind unwind;
	int status;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[0], argv);
		_exit(127);
	}
	/* the exec, then whatever comes until it stops itself */
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
		WSTOPSIG(status) != SIGSTOP)
		ptrace(PTRACE_CONT, child, NULL, NULL);
	if (!WIFSTOPPED(status))
		return 1;
	places_read(&places, child);
	if (unwind_init(&unwind, arch_here()->unwind, locate, &places) < 0)
		return 1;
	status = trace(child, &unwind, NULL, &score);
	printf("%llu instructions, %llu wrong, %llu not to the start\n",
		(unsigned long long)score.steps, (unsigned long long)score.wrong,
		(unsigned long long)(score.steps - score.ends[UNWIND_START]));
	unwind_done(&unwind);
	places_done(&places);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
#endif

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(test_each_instruction),
		cmocka_unit_test(test_given_rules),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_stub),
#endif
	};

#ifdef __x86_64__
	if (argc > 1)
		return trace_program(argv + 1);
#endif
	(void)argc;
	(void)argv;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
