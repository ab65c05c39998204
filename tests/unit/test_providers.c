/* providers.c: the provider list that the user types, and the providers of the session. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "dotnet/ipc.h"
#include "dotnet/providers.h"

static void expect(const struct provider_list *list, const char *expected)
{
	struct bytes out = { 0 };

	for (uint32_t i = 0; i < list->items.count; i++) {
		const struct provider_choice *choice = &list->items.items[i];
		bytes_printf(&out, "%s:%llx:%u:%s (%s)\n", choice->name,
			(unsigned long long)choice->keywords, choice->level,
			choice->arguments ? choice->arguments : "", choice->from);
	}
	assert_string_equal(bytes_z(&out), expected);
	bytes_done(&out);
}

static void test_texts(void **state)
{
	struct provider_list list = { 0 };

	(void)state;
	assert_int_equal(provider_list_add_text(&list, "A,B:0x10:5:k=v;q=w,C::verbose,D:F00",
				 "--providers", NULL),
		0);
	expect(&list, "A:ffffffffffffffff:4: (--providers)\nB:10:5:k=v;q=w (--providers)\n"
		      "C:ffffffffffffffff:5: (--providers)\nD:f00:4: (--providers)\n");
	provider_list_done(&list);
	/* A comma or a colon inside quotes belongs to the arguments. */
	assert_int_equal(
		provider_list_add_text(&list, "A:1:4:Specs=\"x,y:z\",B:2", "--providers", NULL), 0);
	expect(&list, "A:1:4:Specs=\"x,y:z\" (--providers)\nB:2:4: (--providers)\n");
	provider_list_done(&list);
	/* A provider that is given twice gets the union of both. */
	assert_int_equal(provider_list_add_text(&list, "A:1:2,A:4:5", "--providers", NULL), 0);
	expect(&list, "A:5:5: (--providers)\n");
	provider_list_done(&list);
	/*
	 * A name without keywords never enables all keywords of the runtime's provider: some of
	 * them start a collection of the heap.
	 */
	assert_int_equal(provider_list_add_text(&list, PROVIDER_CLR_NAME, "--providers", NULL), 0);
	expect(&list, PROVIDER_CLR_NAME ":100003801d:4: (--providers)\n");
	provider_list_done(&list);
}

static void test_ways(void **state)
{
	struct provider_list list = { 0 };
	bool ignored = false;

	(void)state;
	assert_int_equal(
		provider_list_add_text(&list, PROVIDER_CLR_NAME ":1:5", "--providers", NULL), 0);
	assert_int_equal(provider_list_add_profiles(&list,
				 "dotnet-common,dotnet-sampled-thread-time", NULL),
		0);
	assert_int_equal(provider_list_add_clr_events(&list, "gc", NULL, &ignored, NULL), 0);
	assert_true(ignored);
	expect(&list, PROVIDER_CLR_NAME ":1:5: (--providers)\n" PROVIDER_SAMPLE_NAME
					":f00000000000:4: (--profile)\n");
	assert_true(list.rundown_keywords == 0);
	provider_list_done(&list);

	assert_int_equal(provider_list_add_clr_events(&list, "GC+jit+waithandle", "Verbose",
				 &ignored, NULL),
		0);
	assert_false(ignored);
	expect(&list, PROVIDER_CLR_NAME ":40000000011:5: (--clrevents)\n");
	provider_list_done(&list);

	assert_int_equal(provider_list_add_profiles(&list, "dotnet-common,gc-verbose", NULL), 0);
	expect(&list, PROVIDER_CLR_NAME ":100003801f:5: (--profile)\n");
	provider_list_done(&list);
	assert_int_equal(provider_list_add_profiles(&list, "gc-collect", NULL), 0);
	expect(&list, PROVIDER_CLR_NAME ":1:4: (--profile)\n" PROVIDER_CLR_NAME
					"Private:1:4: (--profile)\n");
	assert_true(list.rundown_keywords == 1);
	provider_list_done(&list);
	/* With a provider that needs the whole rundown, the rundown is not limited. */
	assert_int_equal(provider_list_add_profiles(&list, "gc-collect,dotnet-common", NULL), 0);
	assert_true(list.rundown_keywords == 0);
	provider_list_done(&list);
}

/* The encoder accepts the request of each profile. */
static void test_profiles(void **state)
{
	(void)state;
	for (const struct provider_profile *profile = provider_profiles; profile->name; profile++) {
		struct provider_list list = { 0 };
		struct bytes out = { 0 };
		assert_int_equal(provider_list_add_profiles(&list, profile->name, NULL), 0);
		struct ipc_provider *providers = provider_list_request(&list);
		const struct ipc_request request = {
			.command = IPC_COLLECT_TRACING_2,
			.buffer_mb = 256,
			.providers = providers,
			.provider_count = list.items.count,
		};
		assert_int_equal(ipc_encode(&request, &out, NULL), 0);
		free(providers);
		bytes_done(&out);
		provider_list_done(&list);
	}
}

static void test_event_ids(void **state)
{
	struct provider_list list = { 0 };
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(provider_list_add_text(&list, "A:1:4,B:1:4", "--providers", NULL), 0);
	/* .NET 10 sends no event of a provider whose filter contains an id twice. */
	assert_int_equal(provider_list_add_event_ids(&list, "A:1,2,1,300", NULL), 0);
	assert_int_equal(provider_list_add_event_ids(&list, "A:300", NULL), 0);
	assert_int_equal(provider_list_add_event_ids(&list, "B:-7", NULL), 0);
	assert_int_equal(provider_list_add_event_ids(&list, "B:-8,-7", NULL), 0);
	struct ipc_provider *providers = provider_list_request(&list);

	assert_int_equal(providers[0].event_id_count, 3);
	assert_int_equal(providers[0].event_ids[2], 300);
	assert_true(providers[0].only_event_ids);
	assert_int_equal(providers[1].event_id_count, 2);
	assert_false(providers[1].only_event_ids);
	free(providers);
	assert_int_equal(provider_list_add_event_ids(&list, "B:9", &diag), -EINVAL);
	assert_int_equal(provider_list_add_event_ids(&list, "C:9", NULL), -EINVAL);
	assert_int_equal(provider_list_add_event_ids(&list, "A:", NULL), -EINVAL);
	assert_int_equal(provider_list_add_event_ids(&list, "A:x", NULL), -EINVAL);
	assert_int_equal(provider_list_add_event_ids(&list, "A:70000", NULL), -EINVAL);
	assert_int_equal(provider_list_add_event_ids(&list, "A", NULL), -EINVAL);
	provider_list_done(&list);
}

static void test_refused(void **state)
{
	static const char *const bad[] = { "", ":1", "A:xyz", "A:1:9", "A:1:loud", "A,,B", "A:0x",
		"A:11112222333344445" };
	struct provider_list list = { 0 };
	struct diag diag = { 0 };
	bool ignored;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		diag = (struct diag){ 0 };
		assert_int_equal(provider_list_add_text(&list, bad[i], "--providers", &diag),
			-EINVAL);
		assert_true(diag.text[0]);
	}
	assert_int_equal(provider_list_add_profiles(&list, "cpu-sampling", NULL), -EINVAL);
	assert_int_equal(provider_list_add_profiles(&list, "", NULL), -EINVAL);
	assert_int_equal(provider_list_add_clr_events(&list, "gc+nothing", NULL, &ignored, NULL),
		-EINVAL);
	assert_int_equal(provider_list_add_clr_events(&list, "gc", "9", &ignored, NULL), -EINVAL);
	provider_list_done(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_profiles),
		cmocka_unit_test(test_event_ids),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("providers", tests, NULL, NULL);
}
