/* ipc.c: the bytes of each request, and replies of lying peers. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "dotnet/ipc.h"

static void check_request(const struct ipc_request *request, const char *hex)
{
	struct bytes out = { 0 };
	struct bytes text = { 0 };
	struct diag diag = { 0 };

	assert_int_equal(ipc_encode(request, &out, &diag), 0);
	/* The part after the 14 bytes of magic. */
	assert_memory_equal(out.data, "DOTNET_IPC_V1", 14);
	for (size_t i = 14; i < out.len; i++)
		bytes_printf(&text, "%02x", out.data[i]);
	assert_string_equal(bytes_z(&text), hex);
	bytes_done(&out);
	bytes_done(&text);
}

static void test_requests(void **state)
{
	const struct ipc_provider provider = { .name = "Ab", .keywords = 0x38, .level = 5 };
	const struct ipc_provider argued = {
		.name = "A", .arguments = "", .keywords = UINT64_MAX, .level = 0
	};
	struct ipc_request request = {
		.buffer_mb = 16,
		.rundown_keywords = 0x18,
		.providers = &provider,
		.provider_count = 1,
		.session_id = 0x1122334455667788,
	};

	(void)state;
	request.command = IPC_PROCESS_INFO;
	check_request(&request, "140004000000");
	request.command = IPC_PROCESS_INFO_2;
	check_request(&request, "140004040000");
	request.command = IPC_PROCESS_INFO_3;
	check_request(&request, "140004080000");
	request.command = IPC_RESUME_RUNTIME;
	check_request(&request, "140004010000");
	request.command = IPC_STOP_TRACING;
	check_request(&request, "1c0002010000"
				"8877665544332211");
	/*
	 * size, set, id, reserved; buffer, format, rundown, count; then keywords, level, the name
	 * with its NUL, no arguments.
	 */
	request.command = IPC_COLLECT_TRACING_2;
	check_request(&request, "3b0002030000"
				"1000000001000000"
				"01"
				"01000000"
				"3800000000000000"
				"05000000"
				"03000000"
				"410062000000"
				"00000000");
	request.command = IPC_COLLECT_TRACING_3;
	check_request(&request, "3c0002040000"
				"1000000001000000"
				"01"
				"00"
				"01000000"
				"3800000000000000"
				"05000000"
				"03000000"
				"410062000000"
				"00000000");
	request.command = IPC_COLLECT_TRACING_4;
	check_request(&request, "430002050000"
				"1000000001000000"
				"1800000000000000"
				"00"
				"01000000"
				"3800000000000000"
				"05000000"
				"03000000"
				"410062000000"
				"00000000");
	request.providers = &argued;
	request.rundown_keywords = 0;
	request.stacks = true;
	check_request(&request, "430002050000"
				"1000000001000000"
				"0000000000000000"
				"01"
				"01000000"
				"ffffffffffffffff"
				"00000000"
				"02000000"
				"41000000"
				"01000000"
				"0000");
}

static void put_text(struct bytes *out, const char *text)
{
	bytes_u32(out, (uint32_t)strlen(text) + 1);
	bytes_utf16z(out, text, strlen(text), SIZE_MAX);
}

static void test_collect_5(void **state)
{
	static const uint32_t ids[] = { 1, 0x10203 };
	const struct ipc_provider providers[] = {
		{ .name = "A",
			.keywords = 1,
			.level = 4,
			.event_ids = ids,
			.event_id_count = 2,
			.only_event_ids = true },
		{ .name = "B", .keywords = 2, .level = 5 },
	};
	const struct ipc_request request = {
		.command = IPC_COLLECT_TRACING_5,
		.buffer_mb = 256,
		.rundown_keywords = IPC_RUNDOWN_WHOLE,
		.stacks = true,
		.providers = providers,
		.provider_count = 2,
	};

	(void)state;
	check_request(&request, "6f0002060000"
				"00000000"
				"0001000001000000"
				"3901028000000000"
				"01"
				"02000000"
				"0100000000000000"
				"04000000"
				"02000000"
				"41000000"
				"00000000"
				"01"
				"02000000"
				"01000000"
				"03020100"
				"0200000000000000"
				"05000000"
				"02000000"
				"42000000"
				"00000000"
				"00"
				"00000000");
}

static void test_choice_of_collect(void **state)
{
	const struct ipc_provider plain = { .name = "A" };
	const struct ipc_provider none = { .name = "A", .only_event_ids = true };
	struct ipc_request request = { .providers = &plain, .provider_count = 1, .stacks = true };

	(void)state;
	assert_int_equal(ipc_collect_command(&request), IPC_COLLECT_TRACING_2);
	request.rundown_keywords = IPC_RUNDOWN_WHOLE;
	assert_int_equal(ipc_collect_command(&request), IPC_COLLECT_TRACING_2);
	request.stacks = false;
	assert_int_equal(ipc_collect_command(&request), IPC_COLLECT_TRACING_3);
	request.rundown_keywords = 0x18;
	assert_int_equal(ipc_collect_command(&request), IPC_COLLECT_TRACING_4);
	request.providers = &none;
	assert_int_equal(ipc_collect_command(&request), IPC_COLLECT_TRACING_5);
	assert_int_equal(ipc_collect_fallback(IPC_COLLECT_TRACING_5), 0);
	assert_int_equal(ipc_collect_fallback(IPC_COLLECT_TRACING_4), IPC_COLLECT_TRACING_3);
	assert_int_equal(ipc_collect_fallback(IPC_COLLECT_TRACING_3), IPC_COLLECT_TRACING_2);
	assert_int_equal(ipc_collect_fallback(IPC_COLLECT_TRACING_2), 0);
}

/* The kind of session, the rundown and the providers; of each the tracepoint, and none of single events. */
static void test_user_events(void **state)
{
	static const uint32_t ids[] = { 7 };
	struct ipc_provider provider = { .name = "A",
		.keywords = 1,
		.level = 4,
		.event_ids = ids,
		.event_id_count = 1,
		.tracepoint = "t_1" };
	struct ipc_request request = { .command = IPC_COLLECT_TRACING_5,
		.user_events = true,
		.rundown_keywords = 2,
		.providers = &provider,
		.provider_count = 1 };
	static const char *const wrong[] = { NULL, "", "a b", "a;u8 x", "a-b", "a\n" };
	char longest[IPC_TRACEPOINT_MAX + 2];
	struct bytes out = { 0 };

	(void)state;
	check_request(&request, "550002060000"
				"01000000"
				"0200000000000000"
				"01000000"
				"0100000000000000"
				"04000000"
				"02000000"
				"41000000"
				"00000000"
				"00"
				"01000000"
				"07000000"
				"04000000"
				"74005f0031000000"
				"00000000");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		provider.tracepoint = wrong[i];
		assert_int_equal(ipc_encode(&request, &out, NULL), -EINVAL);
	}
	memset(longest, 'x', sizeof(longest));
	longest[IPC_TRACEPOINT_MAX + 1] = '\0';
	provider.tracepoint = longest;
	assert_int_equal(ipc_encode(&request, &out, NULL), -EINVAL);
	longest[IPC_TRACEPOINT_MAX] = '\0';
	assert_int_equal(ipc_encode(&request, &out, NULL), 0);
	request.command = IPC_COLLECT_TRACING_4;
	provider.event_id_count = 0;
	assert_int_equal(ipc_encode(&request, &out, NULL), -EINVAL);
	bytes_done(&out);
}

static void test_other_requests(void **state)
{
	struct ipc_request request = { .command = IPC_PROCESS_ENVIRONMENT };

	(void)state;
	check_request(&request, "140004020000");
	request.command = IPC_DISABLE_PERF_MAP;
	check_request(&request, "140004060000");
	request.command = IPC_ENABLE_PERF_MAP;
	request.perf_map = IPC_PERF_MAP_PERFMAP;
	check_request(&request, "180004050000"
				"03000000");
	request.command = IPC_SET_ENVIRONMENT;
	request.variable = "A";
	request.value = "b";
	check_request(&request, "240004030000"
				"02000000"
				"41000000"
				"02000000"
				"62000000");
	request.value = "";
	check_request(&request, "220004030000"
				"02000000"
				"41000000"
				"01000000"
				"0000");
	request.value = NULL;
	check_request(&request, "200004030000"
				"02000000"
				"41000000"
				"00000000");
	request.command = IPC_STARTUP_HOOK;
	request.hook = "/h";
	check_request(&request, "1e0004070000"
				"03000000"
				"2f0068000000");
	request.command = IPC_CORE_DUMP_3;
	request.path = "/x";
	request.dump_type = IPC_DUMP_FULL;
	request.dump_flags = IPC_DUMP_LOG | IPC_DUMP_CRASH_REPORT;
	check_request(&request, "260001030000"
				"03000000"
				"2f0078000000"
				"04000000"
				"05000000");
	request.command = IPC_CORE_DUMP_2;
	check_request(&request, "260001020000"
				"03000000"
				"2f0078000000"
				"04000000"
				"05000000");
	/* A missing path is sent as an empty text: a runtime that gets none at all dies. */
	request.path = NULL;
	request.command = IPC_CORE_DUMP;
	request.dump_flags = 0;
	request.dump_type = IPC_DUMP_MINI;
	check_request(&request, "220001010000"
				"01000000"
				"0000"
				"01000000"
				"00000000");
}

static int add_variable(void *user, const char *variable)
{
	bytes_printf(user, "[%s]", variable);
	return strcmp(variable, "STOP=1") == 0 ? 7 : 0;
}

static void test_environment(void **state)
{
	static const uint8_t reply[] = { 0x10, 0, 0, 0, 0, 0, 0 };
	static const uint8_t large[] = { 0, 0, 0, 0x10, 0, 0 };
	struct bytes data = { 0 };
	struct bytes decoded = { 0 };
	size_t size = 0;

	(void)state;
	assert_int_equal(ipc_decode_environment_size(reply, 6, &size, NULL), 0);
	assert_int_equal(size, 16);
	assert_int_equal(ipc_decode_environment_size(reply, 5, &size, NULL), -EPROTO);
	assert_int_equal(ipc_decode_environment_size(reply, 7, &size, NULL), -EPROTO);
	assert_int_equal(ipc_decode_environment_size(large, 6, &size, NULL), -EPROTO);

	bytes_u32(&data, 2);
	put_text(&data, "A=1");
	put_text(&data, "HOME=/root");
	assert_int_equal(ipc_decode_environment(data.data, data.len, add_variable, &decoded, NULL),
		0);
	assert_string_equal(bytes_z(&decoded), "[A=1][HOME=/root]");
	for (size_t cut = 0; cut < data.len; cut++) {
		uint8_t *exact = malloc(cut + 1);
		memcpy(exact, data.data, cut);
		assert_int_equal(ipc_decode_environment(exact, cut, add_variable, &decoded, NULL),
			-EPROTO);
		free(exact);
	}
	bytes_reset(&data);
	bytes_reset(&decoded);
	bytes_u32(&data, UINT32_MAX);
	put_text(&data, "STOP=1");
	assert_int_equal(ipc_decode_environment(data.data, data.len, add_variable, &decoded, NULL),
		7);
	assert_string_equal(bytes_z(&decoded), "[STOP=1]");
	bytes_done(&data);
	bytes_done(&decoded);
}

static void expect_error_text(const struct bytes *payload, size_t size, const char *expected)
{
	uint8_t *exact = malloc(size + 1);

	memcpy(exact, payload->data, size);
	char *text = ipc_decode_error_text(exact, size);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
	free(exact);
}

static void test_error_text(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	bytes_u32(&payload, IPC_ERROR_FAIL);
	put_text(&payload, "[createdump] no\nroom");
	expect_error_text(&payload, payload.len, "[createdump] no\nroom");
	for (size_t cut = 0; cut < payload.len; cut++)
		expect_error_text(&payload, cut, "");
	bytes_done(&payload);
}

/* Every request has the size in its header, and no request is sent that could end a runtime. */
static void test_sizes(void **state)
{
	static const enum ipc_command commands[] = { IPC_COLLECT_TRACING_2, IPC_COLLECT_TRACING_3,
		IPC_COLLECT_TRACING_4, IPC_COLLECT_TRACING_5 };
	static const uint32_t ids[] = { 1, 2, 3, 4, 5 };
	static const char *const names[] = { "x", "Microsoft-Windows-DotNETRuntime", "caf\xc3\xa9",
		"\xf0\x9f\x8d\xb0\xf0\x9f\x8d\xb0", "broken\xff\xfe\xc3" };
	struct ipc_provider providers[64];

	(void)state;
	for (unsigned c = 0; c < 4; c++) {
		for (uint32_t count = 1; count <= 64; count++) {
			struct bytes out = { 0 };
			for (unsigned i = 0; i < count; i++)
				providers[i] = (struct ipc_provider){
					.name = names[(i + count) % 5],
					.arguments = i % 3 ? names[i % 5] : NULL,
					.keywords = i,
					.level = i % 6,
					.event_ids = ids,
					.event_id_count =
						commands[c] == IPC_COLLECT_TRACING_5 ? i % 6 : 0,
					.only_event_ids =
						commands[c] == IPC_COLLECT_TRACING_5 && i % 2,
				};
			const struct ipc_request request = {
				.command = commands[c],
				.buffer_mb = 1,
				.providers = providers,
				.provider_count = count,
			};
			bytes_text(&out, "before");
			assert_int_equal(ipc_encode(&request, &out, NULL), 0);
			assert_int_equal(out.data[6 + 14] | out.data[6 + 15] << 8, out.len - 6);
			bytes_done(&out);
		}
	}
}

static void test_refused(void **state)
{
	static char longest[IPC_TEXT_MAX + 2];
	static char huge[IPC_VALUE_MAX + 2];
	static uint32_t ids[IPC_EVENT_IDS_MAX + 1];
	static struct ipc_provider many[IPC_PROVIDERS_MAX + 1];
	const struct ipc_provider good = { .name = "A", .level = 5 };
	const struct ipc_provider unnamed = { .name = "" };
	const struct ipc_provider nameless = { .name = NULL };
	const struct ipc_provider loud = { .name = "A", .level = 6 };
	const struct ipc_provider endless = { .name = longest };
	const struct ipc_provider chosen = { .name = "A", .event_ids = ids, .event_id_count = 1 };
	const struct ipc_provider only_none = { .name = "A", .only_event_ids = true };
	const struct ipc_provider picky = {
		.name = "A", .event_ids = ids, .event_id_count = IPC_EVENT_IDS_MAX + 1
	};
	const struct ipc_request bad[] = {
		{ .command = IPC_COLLECT_TRACING_4,
			.buffer_mb = 0,
			.providers = &good,
			.provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_4,
			.buffer_mb = 1,
			.providers = &good,
			.provider_count = 0 },
		{ .command = IPC_COLLECT_TRACING_4,
			.buffer_mb = 1,
			.providers = &unnamed,
			.provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_4,
			.buffer_mb = 1,
			.providers = &nameless,
			.provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_2,
			.buffer_mb = 1,
			.providers = &loud,
			.provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_3,
			.buffer_mb = 1,
			.providers = &endless,
			.provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_3,
			.buffer_mb = 1,
			.providers = many,
			.provider_count = IPC_PROVIDERS_MAX + 1 },
		{ .command = IPC_COLLECT_TRACING_3,
			.buffer_mb = 1,
			.providers = many,
			.provider_count = IPC_PROVIDERS_MAX },
		{ .command = IPC_COLLECT_TRACING_4,
			.buffer_mb = 1,
			.providers = &chosen,
			.provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_2,
			.buffer_mb = 1,
			.providers = &only_none,
			.provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_5,
			.buffer_mb = 1,
			.providers = &picky,
			.provider_count = 1 },
		{ .command = IPC_ENABLE_PERF_MAP },
		{ .command = IPC_ENABLE_PERF_MAP, .perf_map = (enum ipc_perf_map)4 },
		{ .command = IPC_SET_ENVIRONMENT, .value = "x" },
		{ .command = IPC_SET_ENVIRONMENT, .variable = "", .value = "x" },
		{ .command = IPC_SET_ENVIRONMENT, .variable = "A=", .value = "x" },
		{ .command = IPC_SET_ENVIRONMENT, .variable = longest, .value = "x" },
		{ .command = IPC_SET_ENVIRONMENT, .variable = "A", .value = huge },
		{ .command = IPC_CORE_DUMP_3, .path = "/x" },
		{ .command = IPC_CORE_DUMP_3, .path = "/x", .dump_type = (enum ipc_dump_type)5 },
		{ .command = IPC_CORE_DUMP_3, .path = longest, .dump_type = IPC_DUMP_FULL },
		{ .command = IPC_CORE_DUMP_3,
			.path = "/x",
			.dump_type = IPC_DUMP_FULL,
			.dump_flags = 8 },
		{ .command = IPC_CORE_DUMP,
			.path = "/x",
			.dump_type = IPC_DUMP_FULL,
			.dump_flags = IPC_DUMP_VERBOSE },
		{ .command = IPC_STARTUP_HOOK },
		{ .command = IPC_STARTUP_HOOK, .hook = "" },
		{ .command = IPC_STARTUP_HOOK, .hook = "hook.dll" },
		{ .command = IPC_STARTUP_HOOK, .hook = "/a:/b" },
		{ .command = (enum ipc_command)0x0409 },
		{ .command = (enum ipc_command)0x0301 },
		{ .command = (enum ipc_command)0x0202 },
		{ .command = (enum ipc_command)0 },
	};

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	memset(huge, 'x', sizeof(huge) - 1);
	/*
	 * A thousand providers of this name exceed the size of a message before the limit of their
	 * number.
	 */
	for (unsigned i = 0; i < IPC_PROVIDERS_MAX + 1; i++)
		many[i].name = "Microsoft-Windows-DotNETRuntime-With-A-Long-Name";
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct bytes out = { 0 };
		struct diag diag = { 0 };
		bytes_text(&out, "before");
		assert_int_equal(ipc_encode(&bad[i], &out, &diag), -EINVAL);
		assert_true(diag.text[0]);
		assert_int_equal(out.len, 6);
		bytes_done(&out);
	}
}

static void put_header(uint8_t header[20], unsigned size, unsigned set, unsigned command)
{
	memset(header, 0, 20);
	memcpy(header, "DOTNET_IPC_V1", 14);
	header[14] = (uint8_t)size;
	header[15] = (uint8_t)(size >> 8);
	header[16] = (uint8_t)set;
	header[17] = (uint8_t)command;
}

static void test_header(void **state)
{
	uint8_t header[20];
	size_t size = 999;
	bool ok = false;
	struct diag diag = { 0 };

	(void)state;
	put_header(header, 28, 0xff, 0);
	assert_int_equal(ipc_decode_header(header, &size, &ok, NULL), 0);
	assert_int_equal(size, 8);
	assert_true(ok);
	put_header(header, 65535, 0xff, 0xff);
	assert_int_equal(ipc_decode_header(header, &size, &ok, NULL), 0);
	assert_int_equal(size, 65515);
	assert_false(ok);
	put_header(header, 19, 0xff, 0);
	assert_int_equal(ipc_decode_header(header, &size, &ok, &diag), -EPROTO);
	assert_non_null(strstr(diag.text, "19"));
	put_header(header, 28, 4, 0);
	assert_int_equal(ipc_decode_header(header, &size, &ok, NULL), -EPROTO);
	put_header(header, 28, 0xff, 1);
	assert_int_equal(ipc_decode_header(header, &size, &ok, NULL), -EPROTO);
	for (unsigned i = 0; i < 14; i++) {
		put_header(header, 28, 0xff, 0);
		header[i] ^= 0x20;
		assert_int_equal(ipc_decode_header(header, &size, &ok, NULL), -EPROTO);
	}
}

static void test_info(void **state)
{
	static const enum ipc_command commands[] = { IPC_PROCESS_INFO, IPC_PROCESS_INFO_2,
		IPC_PROCESS_INFO_3 };

	(void)state;
	for (unsigned v = 0; v < 3; v++) {
		struct bytes payload = { 0 };
		struct ipc_process_info info;
		if (v == 2)
			bytes_u32(&payload, 1);
		bytes_u64(&payload, 4711);
		bytes_add(&payload, "0123456789abcdef", 16);
		put_text(&payload, "dotnet shop.dll");
		put_text(&payload, "Linux");
		put_text(&payload, "x64");
		if (v) {
			put_text(&payload, "shop");
			put_text(&payload, "10.0.12");
		}
		size_t whole = payload.len;
		if (v == 2)
			put_text(&payload, "linux-x64");
		assert_int_equal(ipc_decode_process_info(commands[v], payload.data, payload.len,
					 &info, NULL),
			0);
		assert_int_equal(info.pid, 4711);
		assert_memory_equal(info.cookie, "0123456789abcdef", 16);
		assert_string_equal(info.command_line, "dotnet shop.dll");
		assert_string_equal(info.system, "Linux");
		assert_string_equal(info.architecture, "x64");
		assert_string_equal(info.entry_assembly, v ? "shop" : "");
		assert_string_equal(info.runtime_version, v ? "10.0.12" : "");
		ipc_process_info_done(&info);
		for (size_t cut = 0; cut < whole; cut++) {
			uint8_t *exact = malloc(cut + 1);
			memcpy(exact, payload.data, cut);
			assert_int_equal(ipc_decode_process_info(commands[v], exact, cut, &info,
						 NULL),
				-EPROTO);
			free(exact);
		}
		bytes_done(&payload);
	}
}

static void test_odd_texts(void **state)
{
	struct bytes payload = { 0 };
	struct ipc_process_info info;

	(void)state;
	/* Texts that are absent, empty, without a NUL, with a NUL inside, or of invalid UTF-16. */
	bytes_u64(&payload, 1);
	bytes_add(&payload, "0123456789abcdef", 16);
	bytes_u32(&payload, 0);
	bytes_u32(&payload, 1);
	bytes_u16(&payload, 0);
	bytes_u32(&payload, 2);
	bytes_u16(&payload, 'a');
	bytes_u16(&payload, 'b');
	bytes_u32(&payload, 3);
	bytes_u16(&payload, 'a');
	bytes_u16(&payload, 0);
	bytes_u16(&payload, 'b');
	bytes_u32(&payload, 2);
	bytes_u16(&payload, 0xd800);
	bytes_u16(&payload, 0);
	assert_int_equal(ipc_decode_process_info(IPC_PROCESS_INFO_2, payload.data, payload.len,
				 &info, NULL),
		0);
	assert_string_equal(info.command_line, "");
	assert_string_equal(info.system, "");
	assert_string_equal(info.architecture, "ab");
	assert_string_equal(info.entry_assembly, "a");
	assert_string_equal(info.runtime_version, "\xef\xbf\xbd");
	ipc_process_info_done(&info);

	/* A count of four gigabytes and more. */
	bytes_reset(&payload);
	bytes_u64(&payload, 1);
	bytes_add(&payload, "0123456789abcdef", 16);
	bytes_u32(&payload, 0xffffffff);
	bytes_u32(&payload, 0x80000000);
	assert_int_equal(ipc_decode_process_info(IPC_PROCESS_INFO, payload.data, payload.len, &info,
				 NULL),
		-EPROTO);
	bytes_done(&payload);
}

static void test_session_and_error(void **state)
{
	uint8_t payload[9] = { 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00 };
	uint64_t id = 0;
	uint32_t error = 0;

	(void)state;
	assert_int_equal(ipc_decode_session(payload, 8, &id, NULL), 0);
	assert_true(id == 0x1122334455667788);
	assert_int_equal(ipc_decode_session(payload, 7, &id, NULL), -EPROTO);
	assert_int_equal(ipc_decode_session(payload, 9, &id, NULL), -EPROTO);
	assert_int_equal(ipc_decode_session(payload, 0, &id, NULL), -EPROTO);
	assert_int_equal(ipc_decode_error(payload, 4, &error, NULL), 0);
	assert_int_equal(error, 0x55667788);
	assert_int_equal(ipc_decode_error(payload, 3, &error, NULL), -EPROTO);
	assert_non_null(strstr(ipc_error_words(IPC_ERROR_FAIL), "64"));
	assert_non_null(ipc_error_words(12345));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_collect_5),
		cmocka_unit_test(test_choice_of_collect),
		cmocka_unit_test(test_user_events),
		cmocka_unit_test(test_other_requests),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_error_text),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_odd_texts),
		cmocka_unit_test(test_session_and_error),
	};

	return cmocka_run_group_tests_name("ipc", tests, NULL, NULL);
}
