/*
 * A native library in a .NET process. Its threads are unknown to the runtime, and each fires a given
 * number of events, which Program.cs reads.
 *
 * A firing thread must never enter managed code: the garbage collector would suspend it, and the
 * thread could delay the collector. The runtime gives each thread that enters managed code an
 * alternate signal stack, which is how this file detects an entry. firing_control() proves the
 * method with a thread that does enter.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <time.h>

#include <spoor/counter.h>
#include <spoor/spoor.h>

#define API         __attribute__((visibility("default")))
#define THREADS_MAX 16

SPOOR_PROVIDER(firing, "Firing")
SPOOR_EVENT(firing, shot, 1, SPOOR_INFO, 0x1, (u32, Thread), (u64, Number), (f64, Half),
	(text, Text))
SPOOR_EVENT(firing, faulty, 2, SPOOR_VERBOSE, 0x2, (u32, Number))
SPOOR_STRUCT(firing_part, (u8, Number), (text, Text))
SPOOR_EVENT(firing, types, 3, SPOOR_VERBOSE, 0x2, (boolean, Boolean), (i8, I8), (u8, U8),
	(i16, I16), (u16, U16), (i32, I32), (u32, U32), (i64, I64), (u64, U64), (f32, F32),
	(f64, F64), (char16, Char), (guid, Guid), (time, Time), (pointer, Pointer), (text, Text),
	(blob, Blob), (text_array, Texts), (object, Part, firing_part),
	(object_array, Parts, firing_part))

static pthread_t threads[THREADS_MAX];
static unsigned thread_count;
static uint64_t per_thread;
static uint64_t per_second; /* of one thread; 0: as fast as it can */
static struct spoor_counter *shots;

API int firing_begin(unsigned wanted_threads, uint64_t events_per_thread,
	uint64_t events_per_second);
/* Waits for the threads. Returns how many of them have been in the runtime. */
API int firing_end(void);
/* Calls `managed` on a new thread. Returns 1 if the entry was detected, or -1 without a thread. */
API int firing_control(void (*managed)(void));

static bool has_been_in_runtime(void)
{
	stack_t stack = { 0 };

	return sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE);
}

static void wait_until(uint64_t time_ns)
{
	const struct timespec until = { (time_t)(time_ns / 1000000000u),
		(long)(time_ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		continue;
}

static void fire_all_types(void)
{
	static const struct spoor_guid guid = { { 0x3c, 0x2d, 0x1e, 0x0f, 0x5a, 0x4b, 0x78, 0x69,
		0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0 } };
	static const char *const texts[] = { "a", "b" };
	const struct firing_part part = { 7, "in" }, parts[] = { { 8, "x" }, { 9, "y" } };

	firing_faulty(1);
	firing_types(true, -8, 200, -16, 60000, -32, 4000000000u, -64, UINT64_MAX, 0.5f, 0.25, 'x',
		&guid, INT64_C(1000000000000000000), (void *)0x1234, "na\xc3\xafve", "\1\2", 2,
		texts, 2, &part, parts, 2);
}

static void *fire(void *argument)
{
	uint32_t thread = (uint32_t)(uintptr_t)argument;
	uint64_t begin_ns = spoor_now_ns();

	for (uint64_t i = 1; i <= per_thread; i++) {
		firing_shot(thread, i, (double)i / 2, "na\xc3\xafve");
		spoor_counter_add(shots, 1);
		if (per_second && i % 1000 == 0)
			wait_until(begin_ns + i * 1000000000u / per_second);
	}
	return (void *)(uintptr_t)has_been_in_runtime();
}

static void *go_in(void *argument)
{
	void (*managed)(void);
	bool before = has_been_in_runtime();

	memcpy(&managed, &argument, sizeof(managed));
	managed();
	return (void *)(uintptr_t)(!before && has_been_in_runtime());
}

int firing_control(void (*managed)(void))
{
	pthread_t thread;
	void *argument, *seen = NULL;

	memcpy(&argument, &managed, sizeof(argument));
	if (pthread_create(&thread, NULL, go_in, argument))
		return -1;
	(void)pthread_join(thread, &seen);
	return seen != NULL;
}

API int firing_begin(unsigned wanted_threads, uint64_t events_per_thread,
	uint64_t events_per_second)
{
	int error = spoor_provider_register(&firing);

	if (error)
		return error;
	shots = spoor_counter_open(spoor_meter_open("Firing", NULL), SPOOR_COUNTER, "shots", NULL);
	fire_all_types();
	per_thread = events_per_thread;
	per_second = wanted_threads ? events_per_second / wanted_threads : 0;
	for (thread_count = 0; thread_count < wanted_threads && thread_count < THREADS_MAX;
		thread_count++)
		if ((error = pthread_create(&threads[thread_count], NULL, fire,
			     (void *)(uintptr_t)thread_count)))
			return -error;
	return 0;
}

API int firing_end(void)
{
	int been = 0;

	for (unsigned i = 0; i < thread_count; i++) {
		void *in = NULL;

		(void)pthread_join(threads[i], &in);
		been += in != NULL;
	}
	thread_count = 0;
	spoor_provider_unregister(&firing);
	return been;
}
