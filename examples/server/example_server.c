/*
 * A small server to try diagnostics tools on: it fires every kind of event and counter of libspoor.
 *
 *   server [SECONDS]          prints its process id, then "ready"; 0, the default: runs until it is killed
 *
 *   dotnet-trace ps
 *   dotnet-trace collect -p PID --providers Example:0xf:5 --duration 00:00:05
 *   dotnet-counters monitor -p PID --counters Example.Counters
 *
 * Thread "work" simulates requests. Each fires a declared event with a field of each type, an event
 * built at run time and two nested activities, and updates counters. Thread "burn" uses the CPU in
 * functions whose names appear in a flame graph; one of them is code generated at run time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <spoor/activity.h>
#include <spoor/code.h>
#include <spoor/counter.h>
#include <spoor/spoor.h>

SPOOR_PROVIDER(example, "Example")

SPOOR_STRUCT(example_address, (text, Host), (u16, Port))

/* Every field type. The values are the same each time, so that a test can compare them. */
SPOOR_EVENT(example, Everything, 1, SPOOR_INFO, 0x1, (boolean, Boolean), (i8, I8), (u8, U8),
	(i16, I16), (u16, U16), (i32, I32), (u32, U32), (i64, I64), (u64, U64), (f32, F32),
	(f64, F64), (char16, Char), (guid, Guid), (time, Time), (pointer, Pointer), (text, Text),
	(text16, Text16))
SPOOR_EVENT(example, Arrays, 2, SPOOR_INFO, 0x1, (blob, Blob), (i32_array, Integers),
	(f64_array, Doubles), (text_array, Texts), (object, Address, example_address), (u32, Last))
SPOOR_EVENT(example, Request, 3, SPOOR_INFO, 0x2, (u32, Number), (text, Path), (f64, Milliseconds))
SPOOR_EVENT(example, Detail, 4, SPOOR_VERBOSE, 0x4, (u32, Number))
SPOOR_EVENT_NAMED(example, work_start, "WorkStart", 5, 0, SPOOR_INFO, SPOOR_OPCODE_START, 0x8,
	(u32, Number))
SPOOR_EVENT_NAMED(example, work_stop, "WorkStop", 6, 0, SPOOR_INFO, SPOOR_OPCODE_STOP, 0x8,
	(u32, Number))
SPOOR_EVENT(example, Empty, 7, SPOOR_ALWAYS, 0x0)

static struct spoor_event_source *source;
static struct {
	struct spoor_counter *requests, *requests_post, *open, *temperature, *latency;
} counters;
static atomic_bool stopped;

static double observe_uptime(void *context)
{
	struct timespec now;

	(void)context;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec;
}

static double observe_half(void *context)
{
	(void)context;
	return 0.5;
}

static void fire_everything(void)
{
	static const struct spoor_guid guid = { { 0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
		0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff } };
	static const spoor_char16 wide[] = { 'w', 'i', 'd', 0xe9, 0xd83d, 0xde00, 0 };
	static const uint8_t blob[] = { 1, 2, 254, 255 };
	static const int32_t integers[] = { -1, 0, INT32_MAX };
	static const double doubles[] = { 0.5, -1e300 };
	static const char *const texts[] = { "one", "", "dr\xc3\xa9i" };
	const struct example_address address = { "localhost", 8080 };

	example_Everything(true, -8, 8, -16, 16, -32, 32, -64, UINT64_MAX, 0.25f, 1.0 / 3, 0x20ac,
		&guid, INT64_C(1700000000000000000), (const void *)0x1234,
		"na\xc3\xafve \xf0\x9f\x98\x80", wide);
	example_Arrays(blob, sizeof(blob), integers, 3, doubles, 2, texts, 3, &address, 42);
}

static void fire_dynamic(uint32_t number)
{
	struct spoor_writer w;

	if (!spoor_source_begin(source, "Checkout", SPOOR_INFO, 0x10, &w))
		return;
	spoor_write_u32(&w, "Number", number);
	spoor_write_text(&w, "Item", "tea");
	spoor_write_f64(&w, "Price", 2.5);
	spoor_write_struct_begin(&w, "Customer");
	spoor_write_text(&w, "Name", "Ada");
	spoor_write_boolean(&w, "Known", true);
	spoor_write_struct_end(&w);
	(void)spoor_source_end(&w);
}

__attribute__((noinline)) static void answer(uint32_t number)
{
	struct spoor_activity request, query;
	double milliseconds = 1.0 + number * 37 % 100; /* 1 to 100, evenly distributed */

	(void)spoor_activity_start(&request, "request", NULL);
	example_work_start(number);
	spoor_counter_add(counters.open, 1);
	spoor_counter_add(counters.requests, 1);
	if (number % 4 == 0)
		spoor_counter_add(counters.requests_post, 1);
	spoor_histogram_record(counters.latency, milliseconds);
	spoor_gauge_set(counters.temperature, 20 + number % 5);
	(void)spoor_activity_start(&query, "query", NULL);
	example_Request(number, "/orders", milliseconds);
	spoor_activity_stop(&query);
	example_Detail(number);
	example_Empty();
	fire_everything();
	fire_dynamic(number);
	spoor_counter_add(counters.open, -1);
	example_work_stop(number);
	spoor_activity_stop(&request);
}

static void *work(void *argument)
{
	(void)argument;
	for (uint32_t number = 1; !stopped; number++) {
		answer(number);
		(void)usleep(2000);
	}
	return NULL;
}

__attribute__((noinline)) static uint64_t burn_step(uint64_t value)
{
	for (int i = 0; i < 1000; i++)
		value = value * 6364136223846793005u + 1442695040888963407u;
	return value;
}

__attribute__((noinline)) static uint64_t burn_inner(uint64_t value)
{
	for (int i = 0; i < 200; i++)
		value += burn_step(value);
	return value;
}

typedef uint64_t made_function(uint64_t (*inner)(uint64_t), uint64_t value);

/*
 * A function generated at run time, which calls inner(value) with a frame pointer. NULL on
 * processors other than x86-64.
 */
static made_function *make_code(void)
{
#if defined(__x86_64__)
	static const uint8_t code[] = {
		0x55,             /* push rbp */
		0x48, 0x89, 0xe5, /* mov rbp, rsp */
		0x48, 0x89, 0xf8, /* mov rax, rdi */
		0x48, 0x89, 0xf7, /* mov rdi, rsi */
		0xff, 0xd0,       /* call rax */
		0x5d,             /* pop rbp */
		0xc3,             /* ret */
	};
	made_function *made;
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	memcpy(memory, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) < 0)
		return NULL;
	struct spoor_code_options options = { .size = sizeof(options), .module = "example-rules" };
	(void)spoor_code_add(memory, sizeof(code), "Rule::match", &options);
	memcpy(&made, &memory, sizeof(made));
	return made;
#else
	return NULL;
#endif
}

static uint64_t (*burn_call)(uint64_t) = burn_inner;

__attribute__((noinline)) static uint64_t burn_outer(made_function *made, uint64_t value)
{
	value = made ? made(burn_call, value) : burn_inner(value);
	return value + 1;
}

static void *burn(void *argument)
{
	made_function *made = argument;
	volatile uint64_t value = 1;

	/* Computes half of the time, so that a profile shows sleep as well. */
	while (!stopped) {
		for (int i = 0; i < 20; i++)
			value = burn_outer(made, value);
		(void)usleep(5000);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	unsigned long seconds = count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
	const struct spoor_tag post = { "http.method", "POST" };
	pthread_t worker, burner;

	int error = spoor_start(NULL);
	if (error < 0) {
		fprintf(stderr, "server: cannot start libspoor: %s\n", strerror(-error));
		return 1;
	}
	(void)spoor_provider_register(&example);
	source = spoor_source_new("Example-Dynamic");

	struct spoor_meter *meter = spoor_meter_open("Example.Counters", "1.0");
	struct spoor_counter_options options = {
		.size = sizeof(options), .unit = "{request}", .description = "Requests"
	};
	counters.requests = spoor_counter_open(meter, SPOOR_COUNTER, "requests", &options);
	counters.requests_post = spoor_counter_tagged(counters.requests, &post, 1);
	counters.open = spoor_counter_open(meter, SPOOR_UP_DOWN_COUNTER, "open", NULL);
	options = (struct spoor_counter_options){
		.size = sizeof(options), .unit = "Cel", .description = "Temperature"
	};
	counters.temperature = spoor_counter_open(meter, SPOOR_GAUGE, "temperature", &options);
	options = (struct spoor_counter_options){
		.size = sizeof(options), .unit = "ms", .description = "Latency"
	};
	counters.latency = spoor_counter_open(meter, SPOOR_HISTOGRAM, "latency", &options);
	options = (struct spoor_counter_options){ .size = sizeof(options),
		.unit = "s",
		.description = "Uptime",
		.observe = observe_uptime };
	(void)spoor_counter_open(meter, SPOOR_COUNTER, "uptime", &options);
	options = (struct spoor_counter_options){
		.size = sizeof(options), .unit = "1", .description = "Half", .observe = observe_half
	};
	(void)spoor_counter_open(meter, SPOOR_GAUGE, "half", &options);

	if (pthread_create(&worker, NULL, work, NULL) ||
		pthread_create(&burner, NULL, burn, make_code())) {
		fprintf(stderr, "server: cannot create a thread\n");
		return 1;
	}
	printf("%ld\nready\n", (long)getpid());
	fflush(stdout);
	if (seconds)
		(void)sleep((unsigned)seconds);
	else
		for (;;)
			(void)pause();
	stopped = true;
	(void)pthread_join(worker, NULL);
	(void)pthread_join(burner, NULL);
	spoor_source_free(source);
	spoor_stop();
	return 0;
}
