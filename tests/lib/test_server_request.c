/* server_request.c and server_reply.c: every layout byte by byte, every refusal, every prefix. */
#include "unit/test.h"

#include "lib/server/server_reply.h"
#include "lib/server/server_request.h"

/* "0a ff 'Ab'": hexadecimal bytes, and text as UTF-16. Returns how many bytes. */
static size_t bytes_of(const char *text, uint8_t *out)
{
	size_t size = 0;

	while (*text) {
		if (*text == ' ') {
			text++;
		} else if (*text == '\'') {
			for (text++; *text != '\''; text++) {
				out[size++] = (uint8_t)*text;
				out[size++] = 0;
			}
			text++;
		} else {
			char two[3] = { text[0], text[1], 0 };
			out[size++] = (uint8_t)strtoul(two, NULL, 16);
			text += 2;
		}
	}
	return size;
}

static uint32_t read_exact(enum server_command command, const uint8_t *bytes, size_t size,
	struct server_request *request)
{
	/* a sanitizer reports the first byte read too far */
	uint8_t *exact = malloc(size ? size : 1);

	memcpy(exact, bytes, size);
	uint32_t error = server_request_read(command, exact, size, request);
	free(exact);
	return error;
}

static uint32_t read_text(enum server_command command, const char *text,
	struct server_request *request)
{
	uint8_t bytes[1024];

	return read_exact(command, bytes, bytes_of(text, bytes), request);
}

#define PROVIDER_AB "3800000000000000 05000000 03000000 'Ab' 0000 00000000"

static const struct {
	enum server_command command;
	const char *payload;
	uint64_t rundown;
	bool stacks;
} collects[] = {
	{ SERVER_COLLECT_TRACING, "10000000 01000000 01000000 " PROVIDER_AB, SERVER_RUNDOWN_DEFAULT,
		true },
	{ SERVER_COLLECT_TRACING_2, "10000000 01000000 00 01000000 " PROVIDER_AB, 0, true },
	{ SERVER_COLLECT_TRACING_2, "10000000 01000000 07 01000000 " PROVIDER_AB,
		SERVER_RUNDOWN_DEFAULT, true },
	{ SERVER_COLLECT_TRACING_3, "10000000 01000000 01 00 01000000 " PROVIDER_AB,
		SERVER_RUNDOWN_DEFAULT, false },
	{ SERVER_COLLECT_TRACING_4, "10000000 01000000 1800000000000000 01 01000000 " PROVIDER_AB,
		0x18, true },
	{ SERVER_COLLECT_TRACING_5,
		"00000000 10000000 01000000 1800000000000000 00 01000000 " PROVIDER_AB
		" 00 00000000",
		0x18, false },
};

static void test_collect(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(collects) / sizeof(collects[0]); i++) {
		struct server_request request;
		uint8_t bytes[1024];
		assert_int_equal(read_text(collects[i].command, collects[i].payload, &request), 0);
		assert_int_equal(request.buffer_mb, 16);
		assert_int_equal(request.rundown_keywords, collects[i].rundown);
		assert_int_equal(request.stacks, collects[i].stacks);
		assert_int_equal(request.provider_count, 1);
		assert_string_equal(request.providers[0].name, "Ab");
		assert_null(request.providers[0].arguments);
		assert_int_equal(request.providers[0].keywords, 0x38);
		assert_int_equal(request.providers[0].level, 5);
		server_request_done(&request);
		/*
		 * Every prefix is refused, the empty one too; bytes after the message are ignored.
		 */
		size_t size = bytes_of(collects[i].payload, bytes);
		for (size_t cut = 0; cut < size; cut++)
			assert_int_equal(read_exact(collects[i].command, bytes, cut, &request),
				SERVER_BAD_ENCODING);
		bytes[size] = 0xee;
		assert_int_equal(read_exact(collects[i].command, bytes, size + 1, &request), 0);
		server_request_done(&request);
	}
}

static void test_texts(void **state)
{
	struct server_request request;

	(void)state;
	/* Arguments, a character beyond 16 bits, half of one, and a text of the NUL alone. */
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING_2,
			"01000000 01000000 00 02000000"
			"ffffffffffffffff 00000000 05000000 'a' 3dd800de 3dd8 0000 01000000 0000"
			"0000000000000000 04000000 02000000 'B' 0000 04000000 'k=1' 0000",
			&request),
		0);
	assert_int_equal(request.provider_count, 2);
	assert_string_equal(request.providers[0].name, "a\xf0\x9f\x98\x80\xef\xbf\xbd");
	assert_string_equal(request.providers[0].arguments, "");
	assert_string_equal(request.providers[1].arguments, "k=1");
	server_request_done(&request);
	/* The last unit is no NUL; more units than bytes; an empty name; an absent one. */
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING,
			"01000000 01000000 01000000 0000000000000000 00000000 02000000 'Ab' 00000000",
			&request),
		SERVER_BAD_ENCODING);
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING,
			"01000000 01000000 01000000 0000000000000000 00000000 ffffff7f 'Ab' 0000 00000000",
			&request),
		SERVER_BAD_ENCODING);
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING,
			"01000000 01000000 01000000 0000000000000000 00000000 ffffffff 'Ab' 0000 00000000",
			&request),
		SERVER_BAD_ENCODING);
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING,
			"01000000 01000000 01000000 0000000000000000 00000000 01000000 0000 00000000",
			&request),
		SERVER_BAD_ENCODING);
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING,
			"01000000 01000000 01000000 0000000000000000 00000000 00000000 00000000",
			&request),
		SERVER_BAD_ENCODING);
}

static void test_values(void **state)
{
	struct server_request request;

	(void)state;
	/*
	 * No provider, more than there are bytes for, level 6, buffer 0, format 2; format 0 is
	 * known and not supported.
	 */
	assert_int_equal(read_text(SERVER_COLLECT_TRACING, "01000000 01000000 00000000", &request),
		SERVER_BAD_ENCODING);
	assert_int_equal(read_text(SERVER_COLLECT_TRACING,
				 "01000000 01000000 ffffffff " PROVIDER_AB, &request),
		SERVER_BAD_ENCODING);
	assert_int_equal(read_text(SERVER_COLLECT_TRACING,
				 "01000000 01000000 e9030000 " PROVIDER_AB, &request),
		SERVER_BAD_ENCODING);
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING,
			"01000000 01000000 01000000 0000000000000000 06000000 02000000 'A' 0000 00000000",
			&request),
		SERVER_BAD_ENCODING);
	assert_int_equal(read_text(SERVER_COLLECT_TRACING,
				 "00000000 01000000 01000000 " PROVIDER_AB, &request),
		SERVER_BAD_ENCODING);
	assert_int_equal(read_text(SERVER_COLLECT_TRACING,
				 "01000000 02000000 01000000 " PROVIDER_AB, &request),
		SERVER_BAD_ENCODING);
	assert_int_equal(read_text(SERVER_COLLECT_TRACING,
				 "01000000 00000000 01000000 " PROVIDER_AB, &request),
		SERVER_NOT_SUPPORTED);
	/* user_events; another kind; single events. */
	assert_int_equal(read_text(SERVER_COLLECT_TRACING_5, "01000000 0000000000000000 01000000",
				 &request),
		SERVER_NOT_SUPPORTED);
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING_5,
			"02000000 10000000 01000000 0000000000000000 00 01000000 " PROVIDER_AB
			" 00 00000000",
			&request),
		SERVER_BAD_ENCODING);
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING_5,
			"00000000 10000000 01000000 0000000000000000 00 01000000 " PROVIDER_AB
			" 01 02000000 07000000 09000000",
			&request),
		0);
	assert_true(request.providers[0].ids_only);
	assert_int_equal(request.providers[0].id_count, 2);
	assert_int_equal(request.providers[0].ids[1], 9);
	server_request_done(&request);
	assert_int_equal(
		read_text(SERVER_COLLECT_TRACING_5,
			"00000000 10000000 01000000 0000000000000000 00 01000000 " PROVIDER_AB
			" 01 ffffff3f 07000000",
			&request),
		SERVER_BAD_ENCODING);
	/* Stop; commands without a payload; unknown commands. */
	assert_int_equal(read_text(SERVER_STOP_TRACING, "8877665544332211", &request), 0);
	assert_int_equal(request.session_id, 0x1122334455667788);
	assert_int_equal(read_text(SERVER_STOP_TRACING, "88776655443322", &request),
		SERVER_BAD_ENCODING);
	assert_int_equal(read_text(SERVER_PROCESS_INFO, "", &request), 0);
	assert_int_equal(read_text(SERVER_ENVIRONMENT, "aabbccdd", &request), 0);
	for (unsigned command = 0; command < 0x10000; command++) {
		bool known = command == SERVER_STOP_TRACING ||
			     (command >= SERVER_COLLECT_TRACING &&
				     command <= SERVER_COLLECT_TRACING_5) ||
			     (command >= SERVER_PROCESS_INFO && command <= SERVER_ENVIRONMENT) ||
			     command == SERVER_PROCESS_INFO_2 || command == SERVER_PROCESS_INFO_3;
		uint32_t error = read_text((enum server_command)command, "", &request);
		assert_int_equal(error == SERVER_UNKNOWN_COMMAND, !known);
	}
}

static void test_header(void **state)
{
	uint8_t header[SERVER_HEADER_SIZE + 1];
	enum server_command command;
	size_t size;

	(void)state;
	memcpy(header, SERVER_MAGIC, 14);
	assert_int_equal(bytes_of("1c00 0201 0000", header + 14), 6);
	assert_int_equal(server_request_header(header, &command, &size), 0);
	assert_int_equal(command, SERVER_STOP_TRACING);
	assert_int_equal(size, 8);
	header[14] = 19;
	assert_int_equal(server_request_header(header, &command, &size), SERVER_BAD_ENCODING);
	header[14] = header[15] = 0xff;
	assert_int_equal(server_request_header(header, &command, &size), 0);
	assert_int_equal(size, SERVER_MESSAGE_MAX - SERVER_HEADER_SIZE);
	header[12] = '2';
	assert_int_equal(server_request_header(header, &command, &size), SERVER_UNKNOWN_MAGIC);
}

static void check_reply(const struct server_reply *reply, const char *payload, uint16_t command)
{
	uint8_t wanted[2048];
	size_t size = bytes_of(payload, wanted);

	assert_false(reply->failed);
	assert_memory_equal(reply->bytes, SERVER_MAGIC, 14);
	assert_int_equal(reply->bytes[14] | reply->bytes[15] << 8, 20 + size);
	assert_int_equal(reply->bytes[16] << 8 | reply->bytes[17], command);
	assert_int_equal(reply->bytes[18] | reply->bytes[19], 0);
	assert_int_equal(reply->size, 20 + size);
	assert_memory_equal(reply->bytes + 20, wanted, size);
}

static void test_replies(void **state)
{
	struct server_reply reply = { 0 };
	struct server_identity identity = { .pid = 0x1234,
		.cookie = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
		.command_line = "a \xc3\xa9\xff",
		.system = "Linux",
		.architecture = "x64",
		.entry = "a",
		.version = "9",
		.rid = "r" };
	uint8_t advertise[SERVER_ADVERTISE_SIZE], wanted[64];

	(void)state;
	server_reply_error(&reply, SERVER_BAD_ENCODING);
	check_reply(&reply, "84131380", 0xffff);
	server_reply_u32(&reply, 0);
	check_reply(&reply, "00000000", 0xff00);
	server_reply_session(&reply, 7);
	check_reply(&reply, "0700000000000000", 0xff00);
#define INFO \
	"3412000000000000 0102030405060708090a0b0c0d0e0f10 05000000 'a ' e900 fdff 0000 06000000 'Linux' 0000 04000000 'x64' 0000"
	server_reply_info(&reply, SERVER_PROCESS_INFO, &identity);
	check_reply(&reply, INFO, 0xff00);
	server_reply_info(&reply, SERVER_PROCESS_INFO_2, &identity);
	check_reply(&reply, INFO "02000000 'a' 0000 02000000 '9' 0000", 0xff00);
	server_reply_info(&reply, SERVER_PROCESS_INFO_3, &identity);
	check_reply(&reply, "01000000" INFO "02000000 'a' 0000 02000000 '9' 0000 02000000 'r' 0000",
		0xff00);
	/*
	 * Two variables, one text without '=' between them; the message's own size leaves them out.
	 */
	server_reply_environment(&reply, "A=1\0x\0BC=", 10);
	assert_int_equal(reply.bytes[14] | reply.bytes[15] << 8, 26);
	assert_int_equal(reply.size,
		26 + bytes_of("02000000 04000000 'A=1' 0000 04000000 'BC=' 0000", wanted));
	assert_memory_equal(reply.bytes + 26, wanted, reply.size - 26);
	assert_int_equal(reply.bytes[20], reply.size - 26);
	server_reply_done(&reply);

	server_advertise(advertise, &identity);
	assert_int_equal(
		bytes_of("414456525f56310001 02030405060708090a0b0c0d0e0f10 3412000000000000 0000",
			wanted),
		sizeof(advertise));
	assert_memory_equal(advertise, wanted, sizeof(advertise));

	/* The longest command line still makes one message. */
	char *line = malloc(200001);
	memset(line, 'x', 200000);
	line[200000] = 0;
	identity.command_line = line;
	server_reply_info(&reply, SERVER_PROCESS_INFO_3, &identity);
	assert_true(reply.size <= SERVER_MESSAGE_MAX);
	assert_int_equal(reply.bytes[14] | reply.bytes[15] << 8, reply.size);
	server_reply_done(&reply);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collect),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
