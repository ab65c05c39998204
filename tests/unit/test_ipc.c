/* ipc.c: requests to the byte, and replies of peers that lie. */
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
	/* Behind the 14 bytes of magic. */
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
	const struct ipc_provider argued = { .name = "A", .arguments = "", .keywords = UINT64_MAX, .level = 0 };
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
	check_request(&request, "1c0002010000" "8877665544332211");
	/* size, set, id, reserved; buffer, format, rundown, count; keywords, level, name with its NUL, no arguments. */
	request.command = IPC_COLLECT_TRACING_2;
	check_request(&request, "3b0002030000" "1000000001000000" "01" "01000000"
		"3800000000000000" "05000000" "03000000" "410062000000" "00000000");
	request.command = IPC_COLLECT_TRACING_3;
	check_request(&request, "3c0002040000" "1000000001000000" "01" "00" "01000000"
		"3800000000000000" "05000000" "03000000" "410062000000" "00000000");
	request.command = IPC_COLLECT_TRACING_4;
	check_request(&request, "430002050000" "1000000001000000" "1800000000000000" "00" "01000000"
		"3800000000000000" "05000000" "03000000" "410062000000" "00000000");
	request.providers = &argued;
	request.rundown_keywords = 0;
	request.stacks = true;
	check_request(&request, "430002050000" "1000000001000000" "0000000000000000" "01" "01000000"
		"ffffffffffffffff" "00000000" "02000000" "41000000" "01000000" "0000");
}

/* Every request of any shape has the size that its own header tells, and none goes out that could hurt. */
static void test_sizes(void **state)
{
	static const enum ipc_command commands[] = { IPC_COLLECT_TRACING_2, IPC_COLLECT_TRACING_3,
		IPC_COLLECT_TRACING_4 };
	static const char *const names[] = { "x", "Microsoft-Windows-DotNETRuntime", "caf\xc3\xa9",
		"\xf0\x9f\x8d\xb0\xf0\x9f\x8d\xb0", "broken\xff\xfe\xc3" };
	struct ipc_provider providers[64];

	(void)state;
	for (unsigned c = 0; c < 3; c++) {
		for (uint32_t count = 1; count <= 64; count++) {
			struct bytes out = { 0 };
			for (unsigned i = 0; i < count; i++)
				providers[i] = (struct ipc_provider){
					.name = names[(i + count) % 5],
					.arguments = i % 3 ? names[i % 5] : NULL,
					.keywords = i,
					.level = i % 6,
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
	static struct ipc_provider many[IPC_PROVIDERS_MAX + 1];
	const struct ipc_provider good = { .name = "A", .level = 5 };
	const struct ipc_provider unnamed = { .name = "" };
	const struct ipc_provider nameless = { .name = NULL };
	const struct ipc_provider loud = { .name = "A", .level = 6 };
	const struct ipc_provider endless = { .name = longest };
	const struct ipc_request bad[] = {
		{ .command = IPC_COLLECT_TRACING_4, .buffer_mb = 0, .providers = &good, .provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_4, .buffer_mb = 1, .providers = &good, .provider_count = 0 },
		{ .command = IPC_COLLECT_TRACING_4, .buffer_mb = 1, .providers = &unnamed, .provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_4, .buffer_mb = 1, .providers = &nameless, .provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_2, .buffer_mb = 1, .providers = &loud, .provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_3, .buffer_mb = 1, .providers = &endless, .provider_count = 1 },
		{ .command = IPC_COLLECT_TRACING_3, .buffer_mb = 1, .providers = many, .provider_count = IPC_PROVIDERS_MAX + 1 },
		{ .command = IPC_COLLECT_TRACING_3, .buffer_mb = 1, .providers = many, .provider_count = IPC_PROVIDERS_MAX },
		{ .command = (enum ipc_command)0x0101 },
		{ .command = (enum ipc_command)0 },
	};

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	/* A thousand providers of this name pass the count, not the size of a message. */
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

static void put_text(struct bytes *out, const char *text)
{
	bytes_u32(out, (uint32_t)strlen(text) + 1);
	bytes_utf16z(out, text, strlen(text), SIZE_MAX);
}

static void test_info(void **state)
{
	static const enum ipc_command commands[] = { IPC_PROCESS_INFO, IPC_PROCESS_INFO_2, IPC_PROCESS_INFO_3 };

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
		assert_int_equal(ipc_decode_process_info(commands[v], payload.data, payload.len, &info, NULL), 0);
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
			assert_int_equal(ipc_decode_process_info(commands[v], exact, cut, &info, NULL), -EPROTO);
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
	/* Absent, empty, without a NUL, with one in the middle, broken UTF-16. */
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
	assert_int_equal(ipc_decode_process_info(IPC_PROCESS_INFO_2, payload.data, payload.len, &info, NULL), 0);
	assert_string_equal(info.command_line, "");
	assert_string_equal(info.system, "");
	assert_string_equal(info.architecture, "ab");
	assert_string_equal(info.entry_assembly, "a");
	assert_string_equal(info.runtime_version, "\xef\xbf\xbd");
	ipc_process_info_done(&info);

	/* A count that would be four gigabytes and more. */
	bytes_reset(&payload);
	bytes_u64(&payload, 1);
	bytes_add(&payload, "0123456789abcdef", 16);
	bytes_u32(&payload, 0xffffffff);
	bytes_u32(&payload, 0x80000000);
	assert_int_equal(ipc_decode_process_info(IPC_PROCESS_INFO, payload.data, payload.len, &info, NULL), -EPROTO);
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
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_odd_texts),
		cmocka_unit_test(test_session_and_error),
	};

	return cmocka_run_group_tests_name("ipc", tests, NULL, NULL);
}
