/* Timers of a thread's CPU time that signal that thread: timer_create() with SIGEV_THREAD_ID. */
#include "lib/sampler/sampler.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/*
 * The kernel's id of a thread's CPU clock: the complement of the thread id, with the bits for "a
 * thread" and "scheduled time".
 */
#define THREAD_CLOCK(thread_id) ((clockid_t)(~(unsigned)(thread_id) << 3 | 6u))

#define LEAF_BYTES_MAX 4096u /* how far a function without a frame is searched */

static void (*sampler_function)(void *context, const struct sampler_registers *registers);
static int sampler_signal;

static void sampler_handle(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *at = context;
	struct sampler_registers registers = { 0 };
	int before = errno;

	(void)signal;
#if defined(__x86_64__)
	registers.instruction = (uint64_t)at->uc_mcontext.gregs[REG_RIP];
	registers.frame = (uint64_t)at->uc_mcontext.gregs[REG_RBP];
	registers.stack = (uint64_t)at->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	registers.instruction = at->uc_mcontext.pc;
	registers.frame = at->uc_mcontext.regs[29];
	registers.stack = at->uc_mcontext.sp;
#else
	(void)at;
#endif
	/*
	 * Any process of the user may send this signal. Only that of a timer carries the timer's
	 * context.
	 */
	if (info->si_code == SI_TIMER && info->si_value.sival_ptr)
		sampler_function(info->si_value.sival_ptr, &registers);
	errno = before;
}

int sampler_system_prepare(void (*sample)(void *context, const struct sampler_registers *registers))
{
	if (sampler_signal)
		return 0;
	for (int signal = SIGRTMAX - 2; signal > SIGRTMIN + 2; signal--) {
		struct sigaction before, ours = { .sa_sigaction = sampler_handle,
			.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
		if (sigaction(signal, NULL, &before) < 0 || before.sa_handler != SIG_DFL)
			continue;
		sampler_function = sample;
		(void)sigemptyset(&ours.sa_mask);
		if (sigaction(signal, &ours, NULL) < 0)
			continue;
		sampler_signal = signal;
		return 0;
	}
	return -EBUSY;
}

int sampler_system_start(uint64_t thread_id, uint64_t period_ns, void *context, void **ret_timer)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = sampler_signal,
		.sigev_value = { .sival_ptr = context } };
	struct timespec period = { .tv_sec = (time_t)(period_ns / 1000000000u),
		.tv_nsec = (long)(period_ns % 1000000000u) };
	struct itimerspec spec = { .it_interval = period, .it_value = period };
	timer_t *timer = malloc(sizeof(*timer));
	int error = 0;

	if (!timer)
		return -ENOMEM;
	event.sigev_notify_thread_id = (pid_t)thread_id;
	if (timer_create(THREAD_CLOCK(thread_id), &event, timer) < 0) {
		error = -errno;
		free(timer);
		return error;
	}
	if (timer_settime(*timer, 0, &spec, NULL) < 0) {
		error = -errno;
		(void)timer_delete(*timer);
		free(timer);
		return error;
	}
	*ret_timer = timer;
	return 0;
}

void sampler_system_stop(void *timer)
{
	(void)timer_delete(*(timer_t *)timer);
	free(timer);
}

#if defined(__x86_64__)
/*
 * Copies bytes of this process that may be unmapped or unreadable. False also if the system lacks
 * or forbids the call.
 */
static bool code_read(uint64_t address, void *to, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)(uintptr_t)address, size };

	return syscall(SYS_process_vm_readv, getpid(), &here, 1ul, &there, 1ul, 0ul) == (long)size;
}

/*
 * Is `instruction` in a function that begins at `begin` and has no frame, or has not made it yet?
 */
static bool code_frameless(uint64_t begin, uint64_t instruction)
{
	static const uint8_t landing[4] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* endbr64 */
	static const uint8_t frame[4] = { 0x55, 0x48, 0x89, 0xe5 };   /* push rbp; mov rbp, rsp */
	uint8_t code[8];

	if (instruction < begin || instruction - begin >= LEAF_BYTES_MAX ||
		!code_read(begin, code, sizeof(code)))
		return false;
	unsigned at = memcmp(code, landing, 4) == 0 ? 4 : 0;
	return memcmp(code + at, frame, 4) != 0 || instruction <= begin + at;
}

bool sampler_system_called_from(uint64_t word, uint64_t instruction)
{
	uint8_t code[16];
	uint64_t target;
	int32_t distance;

	/* call rel32 */
	if (word < 4096 || !code_read(word - 5, code, 5) || code[0] != 0xe8)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	target = word + (uint64_t)(int64_t)distance;
	if (code_frameless(target, instruction))
		return true;
	/* A call through the procedure linkage table: [endbr64] [bnd] jmp [rip + disp32]. */
	if (!code_read(target, code, sizeof(code)))
		return false;
	unsigned at = code[0] == 0xf3 ? 4 : 0;
	at += code[at] == 0xf2;
	if (code[at] != 0xff || code[at + 1] != 0x25)
		return false;
	memcpy(&distance, code + at + 2, sizeof(distance));
	return code_read(target + at + 6 + (uint64_t)(int64_t)distance, &target, sizeof(target)) &&
	       code_frameless(target, instruction);
}
#else
bool sampler_system_called_from(uint64_t word, uint64_t instruction)
{
	(void)word;
	(void)instruction;
	return false;
}
#endif

bool sampler_system_cpu(uint64_t thread_id, uint64_t *ret_ns)
{
	struct timespec used;

	if (clock_gettime(THREAD_CLOCK(thread_id), &used) < 0)
		return false;
	*ret_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	return true;
}

void sampler_system_threads(void (*thread)(uint64_t thread_id, void *context), void *context)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	if (!tasks)
		return;
	while ((entry = readdir(tasks))) {
		char *end;
		unsigned long id = strtoul(entry->d_name, &end, 10);
		if (id && *end == '\0')
			thread(id, context);
	}
	(void)closedir(tasks);
}
