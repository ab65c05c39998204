/*
 * A thread that blocks in known call chains, for the recognition of blocks (feature/recording/known_blocks.sh).
 *
 *   block_chains alternate COUNT            COUNT short sleeps, in four chains that differ only in one return address
 *   block_chains replace COUNT FILE FILE    COUNT short sleeps in code of each file, six times, at the same address
 *
 * For each chain it prints how often the kernel says that the thread has waited in it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE    __attribute__((noinline))
#define SLEEP_NS    300000L
#define PHASES      6
#define CODE_BYTES  16384u
#define CODE_BEGIN  ((char *)UINT64_C(0x7e0000000000))
#define FRAME_BYTES 512 /* so that the chain is longer than a cache line */

static long waits(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage) < 0)
		exit(1);
	return usage.ru_nvcsw;
}

NOINLINE static void block(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
}

NOINLINE static void middle(volatile char *room)
{
	char own[FRAME_BYTES];

	memset(own, room[0], sizeof(own));
	room[0] = own[1];
	block();
	__asm__ volatile("" : : "r"(own) : "memory");
}

/* The same frame in each, so registers and stack pointer are the same below it. */
#define CHAIN(name)                                          \
	NOINLINE static void name(void)                      \
	{                                                    \
		volatile char room[64] = { 0 };              \
		middle(room);                                \
		__asm__ volatile("# " #name : : : "memory"); \
	}

CHAIN(chain_a)
CHAIN(chain_b)
CHAIN(chain_c)
CHAIN(chain_d)

static void alternate(unsigned count)
{
	static void (*const chains[])(void) = { chain_a, chain_b, chain_c, chain_d };
	static const char *const names[] = { "chain_a", "chain_b", "chain_c", "chain_d" };
	long sums[4] = { 0 };
	uint32_t random = 1;

	for (unsigned i = 0; i < count; i++) {
		random = random * 1664525u + 1013904223u;
		unsigned which = random >> 30;
		long before = waits();
		chains[which]();
		sums[which] += waits() - before;
	}
	for (unsigned i = 0; i < 4; i++)
		printf("%s %ld\n", names[i], sums[i]);
}

#ifdef __x86_64__
/*
 * first() calls a step with 24 bytes of room, second() one with 8. While those block, the stack pointer, the registers
 * and the words at which the table of the first one looks are the same: second() leaves first()'s return address where
 * the wider frame has its own.
 */
void first(void (*step)(void (*)(void)));
void second(void (*step)(void (*)(void)));
void block_here(void);

__asm__(".text\n"
	".type first, @function\n"
	"first:\n"
	"	.cfi_startproc\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	movq %rdi, %rax\n"
	"	leaq block_here(%rip), %rdi\n"
	"	call *%rax\n"
	"after_first:\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size first, . - first\n"
	".type second, @function\n"
	"second:\n"
	"	.cfi_startproc\n"
	"	subq $24, %rsp\n"
	"	.cfi_adjust_cfa_offset 24\n"
	"	leaq after_first(%rip), %rax\n"
	"	movq %rax, 8(%rsp)\n"
	"	movq %rdi, %rax\n"
	"	leaq block_here(%rip), %rdi\n"
	"	call *%rax\n"
	"	addq $24, %rsp\n"
	"	.cfi_adjust_cfa_offset -24\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size second, . - second\n");

__attribute__((used)) NOINLINE void block_here(void)
{
	block();
	__asm__ volatile("" : : : "memory");
}

/* Where `step` is in the file, whose only executable segment has equal offsets and addresses. */
static uint64_t offset_of_step(const char *path)
{
	void *file = dlopen(path, RTLD_NOW);
	void *step = file ? dlsym(file, "step") : NULL;
	Dl_info info;

	if (!step || !dladdr(step, &info)) {
		fprintf(stderr, "%s: %s\n", path, dlerror());
		exit(1);
	}
	uint64_t offset = (uint64_t)((char *)step - (char *)info.dli_fbase);
	(void)dlclose(file);
	return offset;
}

static void map_code(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || mmap(CODE_BEGIN, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			      fd, 0) != CODE_BEGIN) {
		perror(path);
		exit(1);
	}
	(void)close(fd);
}

static void replace(unsigned count, char **paths)
{
	/* volatile: both are called from the same place */
	void (*volatile chains[])(void (*)(void (*)(void))) = { first, second };
	long sums[2] = { 0 };

	for (unsigned phase = 0; phase < PHASES; phase++) {
		unsigned which = phase % 2;
		uint64_t offset = offset_of_step(paths[which]);
		void (*step)(void (*)(void)) = (void (*)(void (*)(void)))(CODE_BEGIN + offset);
		map_code(paths[which]);
		for (unsigned i = 0; i < count; i++) {
			long before = waits();
			chains[which](step);
			sums[which] += waits() - before;
		}
	}
	printf("first %ld\nsecond %ld\n", sums[0], sums[1]);
}
#endif

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "alternate") == 0) {
		alternate((unsigned)atoi(argv[2]));
		return 0;
	}
#ifdef __x86_64__
	if (argc == 5 && strcmp(argv[1], "replace") == 0) {
		replace((unsigned)atoi(argv[2]), argv + 3);
		return 0;
	}
#endif
	return 2;
}
