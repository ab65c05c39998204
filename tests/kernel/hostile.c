/*
 * What targets do to fool a recorder, and what kernels leave out.
 *
 *   hostile jit MS                    computes in memory that no file stands behind; prints its pid, and begin and size of the code as
 *                                     a perf map has them; begins when a line comes on standard input
 *   hostile old-kernel COMMAND...     runs it as a kernel before 5.6 would: without openat2
 *   hostile no-perf ERRNO COMMAND...  runs it as below a container's seccomp filter: perf_event_open fails with EPERM, EACCES or ENOSYS
 *   hostile look FILE                 a line of what it is: mode, user, group
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static int run_jit(uint64_t ms)
{
#ifdef __x86_64__
	/* mov ecx, 2000000; 1: dec ecx; jnz 1b; ret */
	static const uint8_t code[] = { 0xb9, 0x80, 0x84, 0x1e, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
	char line[16];
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return fail("mmap");
	memcpy(memory, code, sizeof(code));
	printf("%d %lx %zx\n", getpid(), (unsigned long)(uintptr_t)memory, sizeof(code));
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (uint64_t end = now_ms() + ms; now_ms() < end;)
		((void (*)(void))(uintptr_t)memory)();
	return 0;
#else
	(void)ms;
	return 77;
#endif
}

/* Runs the command with one system call failing. */
static int run_without(unsigned call, unsigned error, char **command)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return 77;
	execvp(command[0], command);
	return fail(command[0]);
}

static unsigned error_of(const char *name)
{
	return strcmp(name, "ENOSYS") == 0 ? ENOSYS : strcmp(name, "EACCES") == 0 ? EACCES : EPERM;
}

static int look_at(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return fail(path);
	printf("%o %u %u\n", st.st_mode & 07777, st.st_uid, st.st_gid);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "jit") == 0)
		return run_jit(strtoull(argv[2], NULL, 10));
	if (argc > 2 && strcmp(argv[1], "old-kernel") == 0)
		return run_without(SYS_openat2, ENOSYS, argv + 2);
	if (argc > 3 && strcmp(argv[1], "no-perf") == 0)
		return run_without(SYS_perf_event_open, error_of(argv[2]), argv + 3);
	if (argc == 3 && strcmp(argv[1], "look") == 0)
		return look_at(argv[2]);
	fprintf(stderr, "hostile jit|old-kernel|no-perf|look ...\n");
	return 2;
}
