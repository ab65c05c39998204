/*
 * usdt_target: runs the USDT probes demo:step (behind a semaphore) and demo:plain with arguments of every kind, round
 * after round, until its input ends. Without <sys/sdt.h> it exits with 77. Argument: `early`, to print how often the
 * semaphore was raised in its first rounds; `absent`, to run demo:absent three times with the address of a text that is
 * not in its memory yet; or the milliseconds of a round.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

__extension__ unsigned short demo_step_semaphore __attribute__((section(".probes")));
#define demo_plain_semaphore  demo_step_semaphore
#define demo_absent_semaphore demo_step_semaphore
volatile uint16_t usdt_target_global = 60000;

static const char *const names[] = {
	"tea", "", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\x9f",
	"a name that is longer than what other tools read of it: sixty-four bytes are their limit"
};

__attribute__((noinline)) static void step(unsigned round)
{
	const char *name = names[round % 4];
	int64_t negative = -5000000000 - (int64_t)round;
	double half = round * 0.5;
	int8_t small = (int8_t) - (int)(round % 100);

	if (demo_step_semaphore)
		STAP_PROBE8(demo, step, round, negative, name, small, half, usdt_target_global,
			12345678901, (uint8_t)200);
	STAP_PROBE(demo, plain);
}

/* The text is the begin of this program's file: the kernel has read it, and this mapping has no page yet. */
static int run_absent(struct pollfd *input)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	for (int i = 0; i < 3; i++) {
		char *text = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
		if (text == MAP_FAILED)
			return 1;
		STAP_PROBE1(demo, absent, text);
	}
	printf("ready\n");
	(void)fflush(stdout);
	(void)poll(input, 1, -1);
	return 0;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned raised = 0;
	bool early = argc > 1 && strcmp(argv[1], "early") == 0;
	if (argc > 1 && strcmp(argv[1], "absent") == 0)
		return run_absent(&input);
	int pause_ms = argc > 1 && !early ? atoi(argv[1]) : 2;

	printf("ready\n");
	(void)fflush(stdout);
	for (unsigned round = 1; early ? round <= 10 : poll(&input, 1, pause_ms) == 0; round++) {
		raised += demo_step_semaphore != 0;
		step(round);
	}
	if (early)
		printf("%u\n", raised);
	return 0;
}
#else
int main(void)
{
	return 77;
}
#endif
