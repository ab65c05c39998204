/*
 * A program whose names are all terminal commands: thread, provider, event, field, value, meter,
 * instrument, unit, description, tag, method and module. The caller chooses its path, its arguments
 * and its environment. Ends after five minutes, or at the end of its standard input.
 */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <spoor/code.h>
#include <spoor/counter.h>
#include <spoor/spoor.h>

/*
 * ESC c resets a terminal; U+009B is CSI; U+202E changes the direction of writing. They are the end
 * of each name.
 */
#define POISON "\033c\302\233\342\200\256"

static void spin(void)
{
#ifdef __x86_64__
	/* mov ecx, 2000000; 1: dec ecx; jnz 1b; ret */
	static const uint8_t code[] = { 0xb9, 0x80, 0x84, 0x1e, 0x00, 0xff, 0xc9, 0x75, 0xfc,
		0xc3 };
	static void *memory;

	if (!memory) {
		const struct spoor_code_options options = { .size = sizeof(options),
			.module = "Module" POISON,
			.signature = "(System.Int" POISON ")" };
		memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			_exit(1);
		memcpy(memory, code, sizeof(code));
		(void)spoor_code_files(SPOOR_CODE_PERF_MAP, NULL); /* a name less */
		/* likewise */
		(void)spoor_code_add(memory, sizeof(code), "Method" POISON, &options);
	}
	((void (*)(void))(uintptr_t)memory)();
#else
	for (volatile unsigned i = 0; i < 2000000; i++)
		;
#endif
}

static void *work(void *ended)
{
	prctl(PR_SET_NAME, "th" POISON);
	while (!__atomic_load_n((int *)ended, __ATOMIC_RELAXED))
		spin();
	return NULL;
}

int main(void)
{
	const struct spoor_tag tag = { .name = "tag" POISON, .value = "value" POISON };
	const struct spoor_counter_options options = { .size = sizeof(options),
		.unit = "unit" POISON,
		.description = "description" POISON,
		.tags = &tag,
		.tag_count = 1 };
	struct pollfd end = { .fd = STDIN_FILENO, .events = POLLIN };
	int ended = 0;
	pthread_t worker;
	struct spoor_writer writer;

	prctl(PR_SET_NAME, "comm" POISON);
	if (spoor_start(NULL) != 0)
		return 1;
	struct spoor_event_source *source = spoor_source_new("Source" POISON);
	struct spoor_meter *meter = spoor_meter_open("Meter" POISON, "version" POISON);
	if (!source || !meter)
		return 1;
	struct spoor_counter *counter =
		spoor_counter_open(meter, SPOOR_COUNTER, "counter" POISON, &options);
	struct spoor_counter *gauge =
		spoor_counter_open(meter, SPOOR_GAUGE, "gauge" POISON, &options);
	struct spoor_counter *histogram =
		spoor_counter_open(meter, SPOOR_HISTOGRAM, "histogram" POISON, &options);
	if (!counter || !gauge || !histogram || pthread_create(&worker, NULL, work, &ended) != 0)
		return 1;
	for (unsigned i = 0; i < 30000 && poll(&end, 1, 10) == 0; i++) {
		spoor_counter_add(counter, 3);
		spoor_gauge_set(gauge, i);
		spoor_histogram_record(histogram, i);
		if (!spoor_source_begin(source, "Event" POISON, SPOOR_INFO, 0, &writer))
			continue;
		spoor_write_text(&writer, "field" POISON, "text" POISON "\n");
		spoor_write_char16(&writer, "letter", 0x9b);
		spoor_write_f64(&writer, "number", 12345678900);
		(void)spoor_source_end(&writer); /* an event less */
	}
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
	pthread_join(worker, NULL);
	return 0;
}
