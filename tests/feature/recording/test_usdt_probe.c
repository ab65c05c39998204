/*
 * usdt_probe.c with the real kernel, by links of many uprobes and by perf events: the values of registers, numbers and
 * memory, strings, an address that cannot be read, and a place that is refused.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/diag.h"
#include "code/usdt_arguments.h"
#include "perf/perf_record.h"
#include "perf/recorder.h"
#include "perf/ring.h"
#include "perf/usdt_probe.h"

#define SKIPPED 77
#define NUMBER  4711u
#define CALLS   20u
#ifdef __aarch64__
#define MACHINE USDT_ARM64
/* the first three arguments of a function */
#define OPERANDS "-4@w0 8@x1 8@[x2, 8] -2@-300 1@w0 8@[x2] 8@d0"
#else
#define MACHINE  USDT_X86_64
#define OPERANDS "-4@%edi 8@%rsi 8@8(%rdx) -2@$-300 1@%dil 8@(%rdx) 8@%xmm0"
#endif
#define OPERAND_COUNT 7u

struct pair {
	uint64_t unmapped;
	uint64_t second;
};

/* Every call executes the function's first instruction, with the arguments where the ABI has them. */
#if __has_attribute(noipa)
#define ALONE __attribute__((noipa))
#else
#define ALONE __attribute__((noinline))
#endif
int probed(int number, const char *text, const struct pair *pair) ALONE;
int probed(int number, const char *text, const struct pair *pair)
{
	__asm__ volatile("" : : "r"(text), "r"(pair) : "memory");
	return number + 1;
}

/* The file and the offset in it of a function of this program. */
static int open_self(uint64_t *ret_offset)
{
	uint64_t address = (uintptr_t)probed;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	unsigned long long begin, end, offset;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%llx-%llx %*s %llx", &begin, &end, &offset) == 3 &&
			address >= begin && address < end)
			*ret_offset = offset + (address - begin);
	(void)fclose(maps);
	assert_true(*ret_offset);
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static uint32_t describe(struct usdt_probe *probe)
{
	struct usdt_argument arguments[USDT_ARGUMENTS_MAX];
	struct usdt_operand operands[OPERAND_COUNT];
	uint32_t number = 99;
	uint32_t again;

	assert_int_equal(usdt_arguments_parse(MACHINE, OPERANDS, arguments), OPERAND_COUNT);
	for (unsigned i = 0; i < OPERAND_COUNT; i++)
		operands[i] = (struct usdt_operand){ .value = arguments[i].value,
			.base = arguments[i].base,
			.index = arguments[i].index,
			.scale = arguments[i].scale,
			.shift = arguments[i].shift,
			.size = arguments[i].size,
			.is_signed = arguments[i].is_signed,
			.is_text = arguments[i].size == 8,
			.kind = arguments[i].place == USDT_CONSTANT   ? USDT_OPERAND_CONSTANT
				: arguments[i].place == USDT_REGISTER ? USDT_OPERAND_REGISTER
				: arguments[i].place == USDT_MEMORY   ? USDT_OPERAND_MEMORY
								      : USDT_OPERAND_NONE };
	assert_int_equal(usdt_probe_describe(probe, operands, OPERAND_COUNT, &number), 0);
	assert_int_equal(usdt_probe_describe(probe, operands, OPERAND_COUNT, &again), 0);
	assert_int_equal(again, number);
	return number;
}

static void check_hit(const struct usdt_hit *hit, unsigned call, const char *text,
	const struct pair *pair)
{
	assert_int_equal(hit->number, NUMBER);
	assert_int_equal(hit->count, OPERAND_COUNT);
	assert_int_equal((int64_t)usdt_hit_value(hit, 0), -(int64_t)call);
	assert_int_equal(usdt_hit_value(hit, 1), (uintptr_t)text);
	assert_int_equal(usdt_hit_value(hit, 2), pair->second);
	assert_int_equal((int64_t)usdt_hit_value(hit, 3), -300);
	assert_int_equal(usdt_hit_value(hit, 4), (uint8_t) - (int)call);
	assert_int_equal(usdt_hit_value(hit, 5), pair->unmapped);
	assert_int_equal(usdt_hit_value(hit, 6), 0);
	/* the vector register; the string at `unmapped` is none */
	assert_int_equal(hit->unreadable, 1u << 6);
	assert_int_equal(hit->texts, 1u << 1 | 1u << 2);
	assert_int_equal(hit->text_size, strlen(text) + 1 + sizeof("second"));
	assert_string_equal(hit->text, text);
	assert_string_equal(hit->text + strlen(text) + 1, "second");
}

static unsigned drain(struct recorder *recorder, const char *text, const struct pair *pair)
{
	const struct recorder_info *info = recorder_info(recorder);
	struct perf_layout layout = { .sample_type = info->sample_type, .sample_id_all = true };
	unsigned count = 0;

	for (uint32_t i = 0; i < info->ring_count; i++) {
		struct ring *ring = recorder_ring(recorder, i);
		const uint8_t *data;
		uint32_t size;
		struct perf_record record;
		struct usdt_hit hit;
		ring_begin(ring);
		while (ring_next(ring, &data, &size)) {
			assert_int_equal(perf_record_decode(&layout, data, size, &record), 0);
			if (record.type != PERF_TYPE_SAMPLE ||
				!usdt_hit_read(record.raw, record.raw_size, &hit))
				continue;
			assert_int_equal(record.pid, getpid());
			assert_true(record.callchain_count > 1);
			check_hit(&hit, (unsigned)-(int)usdt_hit_value(&hit, 0), text, pair);
			count++;
		}
		ring_end(ring);
	}
	return count;
}

static int open_recorder(bool by_events, struct recorder **ret_recorder, struct diag *diag)
{
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options options = { .scope = RECORD_PIDS,
		.frequency_hz = 1,
		.pids = &pid,
		.pid_count = 1,
		.usdt = true,
		.usdt_by_events = by_events };

	return recorder_open(&options, ret_recorder, diag);
}

static void check(bool by_events)
{
	void *unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct pair pair = { .unmapped = (uintptr_t)unmapped,
		.second = (uintptr_t) "second" };
	static const char text[] = "first, and as long as it takes";
	struct usdt_site sites[2] = { { .number = NUMBER }, { .offset = UINT64_C(1) << 40 } };
	struct recorder *recorder = NULL;
	struct diag diag = { 0 };
	int error = 0;

	assert_int_equal(open_recorder(by_events, &recorder, &diag), 0);
	struct usdt_probe *probe = recorder_usdt(recorder);
	if (by_events)
		assert_true(usdt_probe_needs_admin(probe));
	int fd = open_self(&sites[0].offset);
	assert_true(fd >= 0);
	sites[0].operands = sites[1].operands = describe(probe);
	assert_int_equal(recorder_start(recorder, &diag), 0);
	/* The second place is not in the file; the first is probed nevertheless. */
	size_t attached = usdt_probe_attach(probe, fd, sites, 2, &error);
	assert_int_equal(attached, 1);
	assert_true(error < 0);
	for (unsigned i = 1; i <= CALLS; i++)
		(void)probed(-(int)i, text, &pair);
	assert_int_equal(drain(recorder, text, &pair), CALLS);
	assert_int_equal(usdt_probe_lost(probe), 0);
	recorder_stop(recorder);
	recorder_close(recorder);
	(void)close(fd);
	(void)munmap(unmapped, 4096);
	/* Without the probe the function runs as before. */
	assert_int_equal(probed(1, text, &pair), 2);
}

static void test_links(void **state)
{
	(void)state;
	check(false);
}

static void test_events(void **state)
{
	(void)state;
	check(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_events),
	};
	struct recorder *recorder = NULL;
	struct diag diag = { 0 };

	if (open_recorder(false, &recorder, &diag) < 0 && geteuid() != 0) {
		print_message("skipped: %s\n", diag.text);
		return SKIPPED;
	}
	if (!recorder) {
		print_message("%s\n", diag.text);
		return strstr(diag.text, "kernel refuses") || strstr(diag.text, "right") ? SKIPPED
											 : 1;
	}
	recorder_close(recorder);
	return cmocka_run_group_tests_name("usdt_probe", tests, NULL, NULL);
}
