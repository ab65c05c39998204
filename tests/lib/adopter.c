/*
 * A program outside of this repository, built in every way in which libspoor is delivered: fires,
 * listens, counts, and prints the result.
 */
#include <stdio.h>
#include <string.h>

#include <spoor/spoor.h>
#include <spoor/activity.h>
#include <spoor/counter.h>

SPOOR_PROVIDER(shop, "Shop")
SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, id), (text, name))

/* The library has static functions of these names too: there is no clash. */
int loop_start(void);
int loop_start(void)
{
	return 42;
}

static int orders;

static void listen(const struct spoor_event_view *event, void *context)
{
	struct spoor_value id, name;

	(void)context;
	if (strcmp(event->info->name, "order") || spoor_event_field(event, "id", &id) ||
		spoor_event_field(event, "name", &name))
		return;
	orders += id.u64 == 7 && !strcmp((const char *)name.bytes, "tea");
}

int main(void)
{
	struct spoor_options start = { .size = sizeof(start), .flags = SPOOR_START_NO_SERVER };
	struct spoor_want want = {
		.size = sizeof(want), .name = "Shop", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session;
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	struct spoor_counter *served =
		spoor_counter_open(spoor_meter_open("Shop", NULL), SPOOR_COUNTER, "served", NULL);
	struct spoor_activity activity;

	if (spoor_start(&start) || spoor_provider_register(&shop) ||
		spoor_session_start_callback(&options, listen, NULL, &session))
		return 1;
	(void)spoor_activity_start(&activity, "order", NULL);
	for (int i = 0; i < 1000; i++) {
		shop_order(7, "tea");
		spoor_counter_add(served, 1);
	}
	spoor_activity_stop(&activity);
	(void)spoor_session_stop(session);
	spoor_session_count(session, &counts);
	spoor_session_free(session);
	spoor_stop();
	printf("%d orders, %llu lost, %d\n", orders, (unsigned long long)counts.lost, loop_start());
	return orders == 1000 && !counts.lost && loop_start() == 42 ? 0 : 1;
}
