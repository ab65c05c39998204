/*
 * A shop that sends its events and counters to Graphite.
 *
 *   graphite HOST PORT [EVENTS [CLOSE-SECONDS]]
 *
 * Fires EVENTS orders (1000) as fast as possible and prints "fired". Then it sends the remaining
 * lines for up to CLOSE-SECONDS (5), and prints how many events and lines were sent and lost.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spoor/sink.h>

SPOOR_PROVIDER(shop, "Shop")
SPOOR_EVENT(shop, Order, 1, SPOOR_INFO, 0x1, (u32, Number), (f64, Price), (text, Item))

int main(int count, char **arguments)
{
	if (count < 3) {
		fprintf(stderr, "graphite HOST PORT [EVENTS [CLOSE-SECONDS]]\n");
		return 2;
	}
	unsigned long events = count > 3 ? strtoul(arguments[3], NULL, 10) : 1000;
	struct spoor_options start = { .size = sizeof(start), .flags = SPOOR_START_NO_SERVER };
	struct spoor_want want = {
		.size = sizeof(want), .name = "Shop", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	struct spoor_sink_options options = { .size = sizeof(options),
		.host = arguments[1],
		.port = arguments[2],
		.prefix = "example",
		.wants = &want,
		.want_count = 1,
		.meters = "Shop.*",
		.interval_ms = 200,
		.buffer_bytes = 1 << 20,
		.close_ms = count > 4 ? (uint32_t)strtoul(arguments[4], NULL, 10) * 1000 : 0 };
	struct spoor_sink_counts counts = { .size = sizeof(counts) };
	struct spoor_sink *sink;

	int error = spoor_start(&start);
	if (!error)
		error = spoor_provider_register(&shop);
	if (!error)
		error = spoor_sink_graphite(&options, &sink);
	if (error) {
		fprintf(stderr, "graphite: cannot listen to this program's events: %s\n",
			strerror(-error));
		return 1;
	}
	struct spoor_meter *meter = spoor_meter_open("Shop.Orders", NULL);
	struct spoor_counter *orders = spoor_counter_open(meter, SPOOR_COUNTER, "orders", NULL);
	struct spoor_counter *price = spoor_counter_open(meter, SPOOR_HISTOGRAM, "price", NULL);

	for (uint32_t i = 1; i <= events; i++) {
		shop_Order(i, i * 0.5, "tea");
		spoor_counter_add(orders, 1);
		spoor_histogram_record(price, i % 100);
	}
	printf("fired %lu\n", events);
	fflush(stdout);
	/*
	 * Record values during several more intervals. The listener's first collection only starts
	 * the first interval.
	 */
	for (unsigned i = 0; i < 10; i++) {
		spoor_histogram_record(price, i);
		(void)poll(NULL, 0, 100);
	}
	spoor_sink_close(sink, &counts);
	printf("events %llu\nevents lost %llu\nlines %llu\nlines lost %llu\nconnections %llu\n",
		(unsigned long long)counts.events, (unsigned long long)counts.events_lost,
		(unsigned long long)counts.sent, (unsigned long long)counts.lost,
		(unsigned long long)counts.connections);
	spoor_meter_close(meter);
	spoor_stop();
	return 0;
}
