/*
 * logger_writer LOGGER: starts a logger and fires every kind of event, declared and made at run
 * time, every 10 ms, until its input ends. Prints "ready", and a line for each call of the enable
 * callback.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <spoor/logger.h>

#include "lib/all_types.h"

static void enabled(const struct spoor_enable *what, void *context)
{
	(void)context;
	printf("enable %s %s level %u keywords 0x%llx any %d\n", what->provider->name,
		what->enabled ? "on" : "off", what->level, (unsigned long long)what->keywords,
		what->any_enabled);
	fflush(stdout);
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

int main(int argc, char **argv)
{
	static const char *const names[] = { "usdt", "lttng", "user_events" };
	struct pollfd input = { .fd = 0, .events = POLLIN };
	struct spoor_options options = { .size = sizeof(options), .flags = SPOOR_START_NO_SERVER };
	int r = -1;

	if (spoor_start(&options) || spoor_provider_register(&types))
		return 1;
	for (unsigned i = 0; argc == 2 && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(argv[1], names[i]) == 0)
			r = spoor_logger_start((enum spoor_logger)i);
	if (r) {
		fprintf(stderr, "logger_writer: %s\n", strerror(-r));
		return 1;
	}
	/* One provider before the logger was started, the others after it. */
	if (spoor_provider_register(&shop))
		return 1;
	struct spoor_event_source *source = spoor_source_new("Run-Time");
	at_run_time(source);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (poll(&input, 1, 10) == 0) {
		types_fire_all();
		shop_order(7, "tea");
		shop_refund(-5);
		at_run_time(source);
	}
	char byte;
	(void)!read(0, &byte, 1);
	spoor_source_free(source);
	spoor_stop();
	return 0;
}
