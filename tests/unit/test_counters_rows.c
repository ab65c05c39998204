/* Formats a table of series as rows, metrics and screens. */
#include "unit/test.h"

#include <math.h>

#include "base/bytes.h"
#include "base/text.h"
#include "counters/counters.h"
#include "counters/counters_metrics.h"
#include "counters/counters_rows.h"
#include "counters/counters_table.h"

#define UTC_NS (UINT64_C(1795250400) * 1000000000u + 250000000u) /* 2026-11-21 08:40:00.25 */

static uint32_t add(struct counters *counters, enum counter_source source, const char *provider,
	const char *name, const char *unit, const char *tags, enum counter_kind kind)
{
	const struct counter_id id = {
		.source = source,
		.provider = counters_text(counters, provider, strlen(provider)),
		.name = counters_text(counters, name, strlen(name)),
		.tags = counters_text(counters, tags, strlen(tags)),
	};
	uint32_t index = counters_series(counters, &id, kind);

	assert_true(index);
	counters->series.items[index].unit = counters_text(counters, unit, strlen(unit));
	return index;
}

static struct counters_view fill(struct counters *counters)
{
	const struct counter_quantile quantiles[] = { { 0.5, 0.001 }, { 0.99, 0.184 } };

	assert_int_equal(counters_init(counters), 0);
	uint32_t orders = add(counters, COUNTER_METER, "Shop", "shop.orders", "{order}",
		"kind=a,b,c=\"d\"", COUNTER_SUM);
	uint32_t level = add(counters, COUNTER_METER, "Shop", "9.level", "By", "", COUNTER_GAUGE);
	uint32_t wait =
		add(counters, COUNTER_METER, "Shop", "wait", "s", "pid=1", COUNTER_HISTOGRAM);
	uint32_t old =
		add(counters, COUNTER_EVENT_SOURCE, "Old-Source", "load", "%", "", COUNTER_GAUGE);
	counters_take_interval(counters, 0.5);
	counters_take_interval(counters, 0.5);
	counters_take_delta(counters, orders, 50, 0);
	counters_take_value(counters, orders, 1234567);
	counters_take_value(counters, level, -2350000);
	counters_take_quantiles(counters, wait, quantiles, 2);
	counters_take_count(counters, wait, 1204, 20.5);
	counters_take_value(counters, old, 41.25);
	counters_take_cpu(counters, 1000, 1000000000);
	counters_take_cpu(counters, 500001000, 2000000000);
	assert_int_equal(counters_close(counters), 4);
	return (struct counters_view){
		.process = "shop",
		.pid = 4711,
		.runtime = "10.0.12",
		.trouble = "",
		.counters = counters,
		.utc_ns = UTC_NS,
		.interval_s = 1,
	};
}

static void expect(struct bytes *out, const char *expected)
{
	assert_string_equal(bytes_z(out), expected);
	bytes_reset(out);
}

static void test_rows(void **state)
{
	struct counters counters;
	struct bytes out = { 0 };
	bool first = true;
	struct counters_view view = fill(&counters);

	(void)state;
	counters_csv_head(&(struct counters_csv_options){ 0 }, &out);
	counters_csv(&view, &(struct counters_csv_options){ 0 }, &out);
	expect(&out,
		"Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n"
		"11/21/2026 08:40:00,Spoor,CPU (of one) (%),Metric,50\n"
		"11/21/2026 08:40:00,Shop,\"shop.orders ({order} / 1 sec)[kind=a;b;c=\"\"d\"\"]\",Rate,50\n"
		"11/21/2026 08:40:00,Shop,9.level (By),Metric,-2350000\n"
		"11/21/2026 08:40:00,Shop,wait (s)[pid=1;Percentile=50],Metric,0.001\n"
		"11/21/2026 08:40:00,Shop,wait (s)[pid=1;Percentile=99],Metric,0.184\n"
		"11/21/2026 08:40:00,Shop,wait.count (Count / 1 sec)[pid=1],Rate,1204\n"
		"11/21/2026 08:40:00,Old-Source,load (%),Metric,41.25\n");
	counters_lines(&view, &out);
	expect(&out,
		"08:40:00 shop (4711)              CPU (of one)                    50 %\n"
		"08:40:00 shop (4711)  Shop        shop.orders kind=a,b,c=\"d\"     50 /s  1,234,567 in all\n"
		"08:40:00 shop (4711)  Shop        9.level                     -2.35 MB\n"
		"08:40:00 shop (4711)  Shop        wait pid=1 p99                184 ms  p50 1.00 ms  1,204 /s\n"
		"08:40:00 shop (4711)  Old-Source  load                          41.2 %\n");
	counters.series.items[DERIVED_COUNT].since = COUNTER_SINCE_PROCESS;
	counters_lines(&view, &out);
	assert_non_null(strstr(bytes_z(&out), "50 /s  1,234,567 since process start\n"));
	bytes_reset(&out);
	counters_json(&view, "\n", &first, &out);
	assert_non_null(strstr(bytes_z(&out),
		"\"since_start\":1234567,\"since\":\"process start\""));
	assert_null(strstr(bytes_z(&out), "\"since_start\":-2350000")); /* a level */
	bytes_reset(&out);
	first = true;
	view.interval_s = 0.1;
	counters_json(&view, ",", &first, &out);
	assert_false(first);
	assert_non_null(strstr(bytes_z(&out),
		"{\"timestamp\":\"2026-11-21 08:40:00.250Z\",\"provider\":\"Shop\","
		"\"name\":\"shop.orders ({order} / 0.1 sec)\",\"tags\":\"kind=a,b,c=\\\"d\\\"\",\"counterType\":\"Rate\",\"value\":5,"));
	bytes_done(&out);
	counters_done(&counters);
}

static void test_metrics(void **state)
{
	struct counters counters;
	struct bytes out = { 0 };
	struct counters_view view = fill(&counters);

	(void)state;
	counters_prometheus(&view, 1, &out);
	expect(&out,
		"# TYPE _9_level_bytes gauge\n"
		"_9_level_bytes{process=\"shop\",pid=\"4711\",meter=\"Shop\"} -2350000\n"
		"# TYPE old_source_load_percent gauge\n"
		"old_source_load_percent{process=\"shop\",pid=\"4711\"} 41.25\n"
		"# TYPE shop_orders_total counter\n"
		"shop_orders_total{process=\"shop\",pid=\"4711\",meter=\"Shop\",kind=\"a,b\",c=\"\\\"d\\\"\"} 1234567\n"
		"# HELP spoor_cpu_percent CPU (of one)\n"
		"# TYPE spoor_cpu_percent gauge\n"
		"spoor_cpu_percent{process=\"shop\",pid=\"4711\"} 50\n"
		"# TYPE wait_seconds summary\n"
		"wait_seconds{process=\"shop\",pid=\"4711\",meter=\"Shop\",quantile=\"0.5\",pid_=\"1\"} 0.001\n"
		"wait_seconds{process=\"shop\",pid=\"4711\",meter=\"Shop\",quantile=\"0.99\",pid_=\"1\"} 0.184\n"
		"wait_seconds_sum{process=\"shop\",pid=\"4711\",meter=\"Shop\",pid_=\"1\"} 20.5\n"
		"wait_seconds_count{process=\"shop\",pid=\"4711\",meter=\"Shop\",pid_=\"1\"} 1204\n");
	counters_graphite(&view, "web.3", true, &out);
	expect(&out, "spoor.web_3.shop-4711.cpu 50 1795250400\n"
		     "spoor.web_3.shop-4711.Shop.shop.orders.a_b._d_ 50 1795250400\n"
		     "spoor.web_3.shop-4711.Shop.9.level -2350000 1795250400\n"
		     "spoor.web_3.shop-4711.Shop.wait.1.p50 0.001 1795250400\n"
		     "spoor.web_3.shop-4711.Shop.wait.1.p99 0.184 1795250400\n"
		     "spoor.web_3.shop-4711.Shop.wait.1.count 1204 1795250400\n"
		     "spoor.web_3.shop-4711.Old-Source.load 41.25 1795250400\n");
	counters_statsd(&view, "web", false, &out);
	expect(&out, "spoor.web.shop.cpu:50|g\n"
		     "spoor.web.shop.Shop.shop.orders.a_b._d_:50|c\n"
		     "spoor.web.shop.Shop.9.level:0|g\n"
		     "spoor.web.shop.Shop.9.level:-2350000|g\n"
		     "spoor.web.shop.Shop.wait.1.p50:0.001|g\n"
		     "spoor.web.shop.Shop.wait.1.p99:0.184|g\n"
		     "spoor.web.shop.Shop.wait.1.count:1204|c\n"
		     "spoor.web.shop.Old-Source.load:41.25|g\n");
	bytes_done(&out);
	counters_done(&counters);
}

/* No screen gets more lines than it has, or wider ones. */
static void test_screens(void **state)
{
	struct counters counters;
	struct bytes out = { 0 };
	struct counters_view view = fill(&counters);
	const struct counters_view views[] = { view, view, view };

	(void)state;
	for (unsigned columns = 1; columns < 130; columns += 3) {
		for (unsigned lines = 1; lines < 20; lines++) {
			for (size_t count = 1; count <= 3; count += 2) {
				struct counters_table table = { .columns = columns,
					.lines = lines,
					.utc_ns = UTC_NS,
					.notice = lines % 2 ? "" : "a notice",
					.first_row = lines % 3 ? 0 : 1000,
					.first_process = columns % 2 ? 0 : 7 };
				unsigned drawn = 1;
				bytes_reset(&out);
				counters_table_draw(&table, views, count, &out);
				const char *line = bytes_z(&out);
				for (const char *end; (end = strstr(line, "\x1b[K\r\n"));
					line = end + 5, drawn++)
					assert_true(text_columns(line, (size_t)(end - line)) <=
						    columns);
				assert_true(text_columns(line, strlen(line) - 3) <= columns);
				assert_true(drawn <= lines);
			}
		}
	}
	/* At 80 columns the last minute is still shown, and the middle of a name is left out. */
	const char name[] = "a.counter.of.a.long.name.that.goes.on.and.on.until.its.end";
	uint32_t level = add(&counters, COUNTER_METER, "Shop", name, "By", "", COUNTER_GAUGE);
	counters_take_value(&counters, level, 5);
	(void)counters_close(&counters);
	struct counters_table narrow = {
		.columns = 80, .lines = 20, .utc_ns = UTC_NS, .notice = ""
	};
	bytes_reset(&out);
	counters_table_draw(&narrow, &view, 1, &out);
	assert_non_null(strstr(bytes_z(&out),
		" a.counter.of.a.long.n\u2026on.and.on.until.its.end         5 B"));
	assert_non_null(strstr(bytes_z(&out), "         now                 1 min"));
	assert_non_null(strstr(bytes_z(&out), "5 B                     \u2588"));
	counters.series.count--;
	struct counters_table wide = {
		.columns = 100, .lines = 20, .utc_ns = UTC_NS, .notice = ""
	};
	bytes_reset(&out);
	counters_table_draw(&wide, &view, 1, &out);
	assert_non_null(strstr(bytes_z(&out),
		"shop (4711)  .NET 10.0.12  08:40:00 UTC  refresh 1 s  p pause"));
	assert_non_null(strstr(bytes_z(&out), "50 %                     \u2588"));
	assert_non_null(strstr(bytes_z(&out),
		"184 ms                     \u2588  p50 1.00 ms  1,204 /s"));
	bytes_done(&out);
	counters_done(&counters);
}

static void test_bounded(void **state)
{
	struct counters counters;
	char name[32];

	(void)state;
	assert_int_equal(counters_init(&counters), 0);
	for (uint32_t i = 0; i < COUNTERS_SERIES_MAX + 100; i++) {
		snprintf(name, sizeof(name), "counter.%u", i);
		const struct counter_id id = { .source = COUNTER_METER,
			.name = counters_text(&counters, name, strlen(name)) };
		uint32_t index = counters_series(&counters, &id, COUNTER_GAUGE);
		assert_true(i + DERIVED_COUNT < COUNTERS_SERIES_MAX ? index == i + DERIVED_COUNT
								    : index == 0);
	}
	assert_int_equal(counters.series.count, COUNTERS_SERIES_MAX);
	assert_int_equal(counters.refused, 100 + DERIVED_COUNT);
	counters_done(&counters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_screens),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
