/*
 * The list of the runtime's events is sorted and complete, and events are found by id and version.
 */
#include "unit/test.h"

#include "trace/clr_event.h"

struct row {
	enum provider_kind provider;
	uint32_t id;
	uint32_t version;
	const char *symbol;
	unsigned count;
};

static const struct row rows[] = {
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) \
	{ provider, id, version, #symbol, count },
#include "trace/universal_events.def"
#define CLR_EVENT(provider, id, version, level, keywords, symbol, name, layout, count) \
	{ provider, id, version, #symbol, count },
#include "trace/clr_events.def"
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static bool is_before(const struct row *a, const struct row *b)
{
	if (a->provider != b->provider)
		return a->provider < b->provider;
	return a->id != b->id ? a->id < b->id : a->version < b->version;
}

static void test_sorted(void **state)
{
	(void)state;
	for (size_t i = 1; i < ROW_COUNT; i++)
		assert_true(is_before(&rows[i - 1], &rows[i]));
}

/* Each row is found by its id and version, and its fields are valid. */
static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROW_COUNT; i++) {
		struct clr_event event;
		unsigned depth = 0;
		assert_true(clr_event_find(rows[i].provider, rows[i].id, rows[i].version, &event));
		assert_int_equal(event.version, rows[i].version);
		assert_int_equal(event.field_count, rows[i].count);
		if (clr_event_provider(rows[i].provider))
			assert_string_equal(event.symbol, rows[i].symbol);
		assert_true(*event.name);
		for (unsigned k = 0; k < event.field_count; k++) {
			const struct clr_field *field = &event.fields[k];
			assert_non_null(strchr("SA1248XILPBDGYVHU{}", field->type));
			depth += field->type == '{';
			assert_true(field->type != '}' || depth);
			depth -= field->type == '}';
			assert_true(depth <= 1);
			if (field->type != '}')
				assert_true(*clr_field_name(field));
			if (field->count & CLR_COUNT_BY_FIELD) {
				assert_true((field->count & CLR_COUNT_MASK) < k);
				assert_non_null(strchr("124",
					event.fields[field->count & CLR_COUNT_MASK].type));
			}
			assert_true(field->type != '{' || field->count & CLR_COUNT_BY_FIELD);
			assert_true(field->type != 'Y' || field->count & CLR_COUNT_BY_FIELD);
		}
		assert_int_equal(depth, 0);
	}
}

static void expect(enum provider_kind provider, uint32_t id, uint32_t version, const char *symbol,
	const char *name, unsigned count)
{
	struct clr_event event;

	assert_true(clr_event_find(provider, id, version, &event));
	assert_string_equal(event.symbol, symbol);
	assert_string_equal(event.name, name);
	assert_int_equal(event.field_count, count);
}

static void test_find(void **state)
{
	struct clr_event event;

	(void)state;
	expect(PROVIDER_CLR, 1, 0, "GCStart", "GC/Start", 2);
	expect(PROVIDER_CLR, 1, 2, "GCStart_V2", "GC/Start", 6);
	/* A version newer than the list begins with the fields of the newest known version. */
	expect(PROVIDER_CLR, 1, 3, "GCStart_V2", "GC/Start", 6);
	expect(PROVIDER_CLR, 1, UINT32_MAX, "GCStart_V2", "GC/Start", 6);
	expect(PROVIDER_CLR_RUNDOWN, CLR_ID_MethodDCEndVerbose, 2, "MethodDCEndVerbose_V2",
		"Method/DCStopVerbose", 11);
	expect(PROVIDER_CLR_PRIVATE, 4, 2, "GCPerHeapHistory", "GC/PerHeapHistory", 0);
	expect(PROVIDER_MONO_PROFILER, 63, 0, "MonoProfilerGCHeapDumpVTableClassReference",
		"MonoProfilerGCHeapDumpVTableClassReference", 4);
	assert_false(clr_event_find(PROVIDER_CLR, 0, 0, &event) && event.version == 0 &&
		     strcmp(event.symbol, "GCStart") == 0);
	assert_false(clr_event_find(PROVIDER_CLR, 65535, 0, &event));
	assert_false(clr_event_find(PROVIDER_CLR, UINT32_MAX, 0, &event));
	assert_false(clr_event_find(PROVIDER_OTHER, 0, 0, &event));
	assert_false(clr_event_find(PROVIDER_SPOOR, 1, 0, &event));
	assert_false(clr_event_find(PROVIDER_KIND_COUNT, 1, 0, &event));
	/* The first version may be above 0; the lookup of an older one finds nothing. */
	expect(PROVIDER_CLR, CLR_ID_GCJoin_V2, 2, "GCJoin_V2", "GC/Join", 5);
	assert_false(clr_event_find(PROVIDER_CLR, CLR_ID_GCJoin_V2, 1, &event));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorted),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
