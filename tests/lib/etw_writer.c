/*
 * etw_writer: libspoor without sessions fires every kind of event to the stand-in of ETW, which
 * prints them. Prints "# ..." for each call of the enable callback and each step.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <spoor/activity.h>
#include <spoor/logger.h>

#include "etw.h"
#include "lib/all_types.h"
#include "lib/logger/etw_guid.h"

static void enabled(const struct spoor_enable *what, void *context)
{
	(void)context;
	printf("# enable %s %s level %u keywords 0x%llx any %d\n", what->provider->name,
		what->enabled ? "on" : "off", what->level, (unsigned long long)what->keywords,
		what->any_enabled);
}

SPOOR_PROVIDER_WITH(shop, "Test-Shop", enabled, NULL)
SPOOR_EVENT(shop, order, 1, SPOOR_WARNING, 0x8000000000000001, (u32, id), (text, name))
SPOOR_EVENT(shop, refund, 2, SPOOR_VERBOSE, 0x2, (i64, amount))

static void at_run_time(struct spoor_event_source *source)
{
	struct spoor_writer w;

	if (spoor_source_begin(source, "Made", SPOOR_ERROR, 0x4, &w)) {
		spoor_write_u32(&w, "Number", 4711);
		spoor_write_text(&w, "Text", "made at run time");
		(void)spoor_source_end(&w);
	}
}

/* Waits, as the loop thread looks which events are enabled. */
static void wait_for(bool (*is_enabled)(void), bool wanted, const char *what)
{
	for (int i = 0; i < 15000 && is_enabled() != wanted; i++)
		usleep(10000);
	if (is_enabled() != wanted) {
		fprintf(stderr, "etw_writer: not %s\n", what);
		exit(1);
	}
}

static void step(const char *name)
{
	printf("# step %s\n", name);
}

static void handler(int number)
{
	(void)number;
	shop_refund(8);
}

static bool ends;
static bool stays_enabled;  /* no session ends any more */
static unsigned fired_then; /* threads that have fired since */

static void *fire_always(void *context)
{
	bool fired = false;

	(void)context;
	while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
		bool counts = !fired && __atomic_load_n(&stays_enabled, __ATOMIC_ACQUIRE);
		shop_refund(9);
		if (counts)
			__atomic_fetch_add(&fired_then, 1, __ATOMIC_RELEASE);
		fired = fired || counts;
	}
	return NULL;
}

static void print_guid(const char *name)
{
	uint8_t guid[16];

	etw_guid_of_name(name, guid);
	printf("# guid %s ", name);
	for (int i = 0; i < 16; i++)
		printf("%02x", guid[i]);
	printf("\n");
}

int main(void)
{
	struct spoor_event_source *source;
	struct spoor_activity outer, inner;
	struct spoor_options options = { .size = sizeof(options) };
	char text[6001];
	pthread_t threads[3];

	print_guid("System.Runtime");
	print_guid("microsoft-dotnetRuntimeMonoProfiler");
	if (spoor_logger_start(SPOOR_LOGGER_ETW) == 0 || spoor_start(&options) ||
		spoor_provider_register(&types) || spoor_logger_start(SPOOR_LOGGER_USDT) == 0 ||
		spoor_logger_start(SPOOR_LOGGER_ETW) || spoor_provider_register(&shop))
		return 1;
	source = spoor_source_new("Run-Time");
	types_fire_all();
	at_run_time(source);
	step("all");
	etw_session(1, 5, UINT64_MAX);
	wait_for(shop_refund_enabled, true, "enabled");
	types_fire_all();
	shop_order(7, "tea");
	shop_refund(-5);
	at_run_time(source);

	step("activities");
	(void)spoor_activity_start(&outer, "outer", NULL);
	shop_refund(2);
	(void)spoor_activity_start(&inner, "inner", NULL);
	spoor_activity_stop(&inner);
	spoor_activity_stop(&outer);
	shop_refund(4);

	step("long");
	memset(text, 'x', sizeof(text));
	text[6000] = '\0';
	shop_order(1, text);

	step("handler");
	(void)signal(SIGALRM, handler);
	(void)raise(SIGALRM);

	step("warnings");
	etw_session(1, 3, 1);
	wait_for(shop_refund_enabled, false, "disabled");
	shop_order(3, "warning");
	shop_refund(3);

	step("none");
	etw_session(0, 0, 0);
	wait_for(shop_order_enabled, false, "off");
	types_fire_all();
	shop_order(4, "none");

	step("again");
	spoor_logger_stop(SPOOR_LOGGER_ETW);
	etw_session(1, 5, UINT64_MAX);
	shop_order(5, "stopped");
	if (spoor_logger_start(SPOOR_LOGGER_ETW))
		return 1;
	wait_for(shop_order_enabled, true, "enabled again");
	shop_order(6, "again");

	step("threads");
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, fire_always, NULL);
	for (int i = 0; i < 5; i++) {
		etw_session(0, 0, 0);
		spoor_logger_stop(SPOOR_LOGGER_ETW);
		etw_session(1, 5, UINT64_MAX);
		if (spoor_logger_start(SPOOR_LOGGER_ETW))
			return 1;
		wait_for(shop_refund_enabled, true, "enabled for threads");
		usleep(1000);
	}
	/* A busy machine may have given a thread no CPU time while a session was open. */
	__atomic_store_n(&stays_enabled, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&fired_then, __ATOMIC_ACQUIRE) < 3)
		usleep(1000);
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);

	step("end");
	spoor_source_free(source);
	spoor_stop();
	shop_order(9, "after the end");
	return 0;
}
