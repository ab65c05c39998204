/* The C++ half of cpp.sh: every kind of argument of <spoor/spoor.hpp>, compared with what C fires. */
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <spoor/spoor.hpp>

#include "both_events.h"

namespace
{

int failures;

void check(bool good, const char *what)
{
	if (good)
		return;
	std::printf("FAILED: %s\n", what);
	failures++;
}

enum class kind : unsigned { tea, coffee };

/* The payload of each event, in order. */
struct payloads {
	std::vector<std::string> all;
	void add(const spoor_event_view &event)
	{
		all.emplace_back(std::to_string(event.info->id) + ":" +
				 std::string(static_cast<const char *>(event.payload),
					 event.payload_size));
	}
};

std::vector<std::string_view> words_of_views()
{
	return { std::string_view("one and", 3), "two" };
}

void fire_in_cpp()
{
	using namespace std::chrono_literals;
	const std::string line = "anna,bert";
	const std::vector<std::uint32_t> items = { 3, 5, 8 };
	const std::array<both_point, 2> points = { { { 1, "a", 1 }, { 2, "bcd", 2 } } };
	const both_point point = { -4, "left of it", 4 };
	const std::vector<std::string_view> words = words_of_views();

	both_order(kind::coffee, std::string_view(line).substr(0, 4), true);
	both_part(std::string_view("tea\0zero", 8), items, items,
		std::chrono::system_clock::time_point(1s), 2.5F, kind(255));
	both_wide(std::u16string(u"t\u00e9a and more").substr(0, 3), &point, points, words);
	both_tick();
	both_plain(kind(9));
}

void events()
{
	payloads in_c;
	payloads in_cpp;
	payloads *now = &in_c;
	std::atomic<std::uint64_t> delivered{ 0 };
	spoor::session session;

	check(session.start_callback(
		      [&now, &delivered](const spoor_event_view &event) {
			      now->add(event);
			      delivered++;
		      },
		      { { "Both" } }) == 0,
		"a session starts");
	check(session.start_callback([](const spoor_event_view &) {}, { { "Both" } }) == -EBUSY,
		"a second session in the object");
	both_fire_in_c();
	check(session.flush(std::chrono::seconds(60)) == 0, "flush");
	while (session.counts().written > delivered)
		std::this_thread::yield();
	now = &in_cpp;
	fire_in_cpp();
	spoor::session moved = std::move(session);
	check(moved && !session, "a session moves");
	check(moved.stop() == 0, "stop");
	check(moved.counts().written == 10 && moved.counts().lost == 0, "ten events");
	check(in_c.all.size() == 5, "five events of C");
	check(in_c.all == in_cpp.all, "C and C++ write the same payloads");
	for (std::size_t i = 0; i < in_c.all.size() && i < in_cpp.all.size(); i++)
		if (in_c.all[i] != in_cpp.all[i])
			std::printf("event %zu differs\n", i);
	/* All forms of a list of texts. */
	const std::vector<std::string> strings = { "one", "two" };
	const std::vector<const char *> pointers = { "one", "two" };
	const char *const plain[] = { "one", "two" };
	std::vector<std::string> lists;
	check(session.start_callback(
		      [&lists](const spoor_event_view &event) {
			      lists.emplace_back(static_cast<const char *>(event.payload),
				      event.payload_size);
		      },
		      { { "Both" } }) == 0,
		"another session");
	const spoor::span<both_point> no_points;
	both_wide(u"", nullptr, no_points, strings);
	both_wide(u"", nullptr, no_points, pointers);
	both_wide(u"", nullptr, no_points, plain);
	both_wide(u"", nullptr, no_points, words_of_views());
	both_wide(u"", nullptr, no_points, std::vector<std::string>(70000, "x"));
	check(session.stop() == 0 && lists.size() == 4 && session.counts().lost == 1,
		"four lists, and one that exceeds a payload");
	for (const std::string &list : lists)
		check(list == lists[0], "lists of texts are the same");
	/* An event that is off does not look at its arguments. */
	both_order(0, spoor::text(reinterpret_cast<const char *>(8), 100), false);
}

void activities()
{
	check(!spoor_activity_current(), "no activity before");
	{
		spoor::activity outer("outer");
		check(outer.result() == 0 && spoor_activity_current() == &outer.get(),
			"an activity");
		{
			spoor::activity_scope none(nullptr);
			check(!spoor_activity_current(), "a scope without activity");
		}
		check(spoor_activity_current() == &outer.get(), "the scope has ended");
		spoor::activity bad("bad", "no header");
		check(bad.result() == -EINVAL, "a malformed header");
	}
	check(!spoor_activity_current(), "no activity after");
}

void counters()
{
	static double sum[4];
	static std::uint64_t values;
	spoor::meter meter("Both.Meter", "1");
	spoor::counter orders(meter, "orders", "{order}", { { "kind", "tea" } });
	spoor::up_down_counter busy(meter, "busy");
	spoor::gauge level(meter, "level");
	spoor::histogram taken(meter, "taken", "s");
	spoor_counter_listener_options options{};

	options.size = sizeof(options);
	options.interval_ns = 10000000;
	options.meters = "Both.Meter";
	options.value = [](void *, const spoor_counter_value *value) {
		sum[0] += std::strcmp(value->name, "orders") == 0 ? value->delta : 0;
		sum[1] = std::strcmp(value->name, "busy") == 0 ? value->value : sum[1];
		sum[2] = std::strcmp(value->name, "level") == 0 ? value->value : sum[2];
		sum[3] += std::strcmp(value->name, "taken") == 0 ? static_cast<double>(value->count)
								 : 0;
	};
	options.interval_end = [](void *, std::uint64_t, std::uint64_t) {
		__atomic_fetch_add(&values, 1, __ATOMIC_RELEASE);
	};
	spoor_counter_listener *listener = spoor_counter_listener_open(&options);
	check(listener != nullptr, "a counter listener");
	{
		spoor::timed timed(taken);
		orders.add();
		orders.add(2);
		busy.add(5);
		spoor::in_progress one(busy);
		level.set(1.5);
	}
	const std::uint64_t from = __atomic_load_n(&values, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&values, __ATOMIC_ACQUIRE) < from + 2)
		;
	spoor_counter_listener_close(listener);
	check(sum[0] == 3 && sum[1] == 5 && sum[2] == 1.5 && sum[3] == 1, "values of counters");
}

} // namespace

int main()
{
	spoor_options options{};
	options.size = sizeof(options);
	options.flags = SPOOR_START_NO_SERVER;
	spoor::library library(&options);
	check(library.result() == 0, "the library starts");
	spoor::registration registration(both);
	check(registration.result() == 0, "the provider is registered");
	events();
	activities();
	counters();
	std::puts(failures ? "FAILED" : "passed");
	return failures != 0;
}
