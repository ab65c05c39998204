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

#include <spoor/spoor.h>

#define API         __attribute__((visibility("default")))
#define THREADS_MAX 16

SPOOR_PROVIDER(firing, "Firing")
SPOOR_EVENT(firing, shot, 1, SPOOR_INFO, 0x1, (u32, Thread), (u64, Number), (f64, Half),
	(text, Text))

static pthread_t threads[THREADS_MAX];
static unsigned thread_count;
static uint64_t per_thread;

API int firing_begin(unsigned wanted_threads, uint64_t events_per_thread);
/* Waits for the threads. Returns how many of them have been in the runtime. */
API int firing_end(void);
/* Calls `managed` on a new thread. Returns 1 if the entry was detected, or -1 without a thread. */
API int firing_control(void (*managed)(void));

static bool has_been_in_runtime(void)
{
	stack_t stack = { 0 };

	return sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE);
}

static void *fire(void *argument)
{
	uint32_t thread = (uint32_t)(uintptr_t)argument;

	for (uint64_t i = 1; i <= per_thread; i++)
		firing_shot(thread, i, (double)i / 2, "na\xc3\xafve");
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

API int firing_begin(unsigned wanted_threads, uint64_t events_per_thread)
{
	int error = spoor_provider_register(&firing);

	if (error)
		return error;
	per_thread = events_per_thread;
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
