/*
 * Events of counters: {id, version, size low, size high, payload}...; id 0 is an EventCounters
 * event whose layout the version selects. Then all outputs of the resulting table.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/strtab.h"
#include "counters/counter_choice.h"
#include "counters/counter_feed.h"
#include "counters/counters.h"
#include "counters/counters_list.h"
#include "counters/counters_metrics.h"
#include "counters/counters_rows.h"
#include "counters/counters_table.h"
#include "trace/provider_kind.h"
#include "trace/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_fields(struct strtab *strings, uint8_t layout, struct schema *schema)
{
	static const struct {
		const char *name;
		enum field_type type;
	} fields[] = {
		{ "", FIELD_OBJECT },
		{ "Name", FIELD_TEXT16 },
		{ "CounterType", FIELD_TEXT16 },
		{ "Mean", FIELD_F64 },
		{ "Increment", FIELD_F64 },
		{ "IntervalSec", FIELD_F32 },
		{ "Metadata", FIELD_TEXT16 },
		{ "Count", FIELD_I32 },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct field *field = layout & (1u << i) ? NULL : vec_push(&schema->fields);
		if (field)
			*field = (struct field){ .name = strtab_add_z(strings, fields[i].name),
				.type = (uint8_t)fields[i].type };
	}
}

static void show(const struct counters *counters, const struct counter_feed *events)
{
	const struct counters_view view = { .process = "p",
		.pid = 1,
		.runtime = "",
		.trouble = "",
		.counters = counters,
		.interval_s = 1 };
	const struct counters_view two[2] = { view, view };
	const struct counters_offer offer = { "p", 1, "", counters, events->instruments.items,
		events->instruments.count };
	struct bytes out = { 0 };
	bool first = true;

	counters_csv(&view, &(struct counters_csv_options){ .several = true, .terminal = true },
		&out);
	counters_json(&view, ",", &first, &out);
	counters_lines(&view, &out);
	counters_list_text(&offer, &out);
	counters_list_json(&offer, &out);
	counters_prometheus(two, 2, &out);
	counters_graphite(&view, "h", true, &out);
	counters_statsd(&view, "h", false, &out);
	for (unsigned columns = 0; columns < 90; columns += 29) {
		struct counters_table table = {
			.columns = columns, .lines = columns / 8, .notice = ""
		};
		counters_table_draw(&table, two, 1 + columns % 2, &out);
	}
	bytes_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strtab strings = { 0 };
	struct counters counters;
	struct counter_choice choice = { 0 };
	struct counter_feed events = {
		.counters = &counters, .choice = &choice, .session_id = "S", .client_id = "C"
	};
	struct diag diag;

	if (counters_init(&counters) < 0)
		return 0;
	if (counter_choice_add(&choice, "*,E,System.Runtime", &diag) < 0)
		size = 0;
	while (size >= 4) {
		size_t payload = (size_t)data[2] | (size_t)data[3] << 8;
		struct schema schema = {
			.provider = strtab_add_z(&strings, data[0] ? PROVIDER_METRICS_NAME : "E"),
			.name = strtab_add_z(&strings, data[0] ? "" : "EventCounters"),
			.event_id = data[0],
			.version = data[1],
		};
		if (payload > size - 4)
			payload = size - 4;
		if (!data[0])
			add_fields(&strings, data[1], &schema);
		int result = counter_feed_take(&events, &strings, &schema, data + 4, payload);
		schema_done(&schema);
		if (result == -ENOMEM)
			break;
		if (data[0] == 3)
			(void)counters_close(&counters); /* any number */
		data += 4 + payload;
		size -= 4 + payload;
	}
	(void)counters_close(&counters); /* any number */
	show(&counters, &events);
	counter_feed_done(&events);
	counters_done(&counters);
	counter_choice_done(&choice);
	strtab_done(&strings);
	return 0;
}
