/* exchange.c with a peer behind socket pairs: whole, cut, refusing, foreign, and stopped. */
#include "unit/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/diag.h"
#include "dotnet/exchange.h"
#include "dotnet/guard.h"
#include "dotnet/reason.h"

struct peer {
	int fd; /* the other end; -1: not connected yet */
	char state;
};

static int peer_connect(void *context, struct diag *diag)
{
	struct peer *peer = context;
	int pair[2];

	(void)diag;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
		0);
	peer->fd = pair[1];
	return pair[0];
}

static char peer_state(void *context)
{
	return ((struct peer *)context)->state;
}

static void begin(struct exchange *exchange, struct peer *peer)
{
	const struct dotnet_endpoint endpoint = {
		.connect = peer_connect, .state = peer_state, .context = peer
	};
	const struct ipc_request request = { .command = IPC_RESUME_RUNTIME };
	struct diag diag = { 0 };

	assert_int_equal(exchange_begin(exchange, &endpoint, &request, 1, 0, &diag), 0);
	(void)exchange_advance(exchange, 1);
}

static void end(struct exchange *exchange, struct peer *peer)
{
	exchange_done(exchange);
	if (peer->fd >= 0)
		close(peer->fd);
}

/* Sends the reply in pieces of `piece` bytes; 0: nothing of it. */
static enum exchange_state answer(struct exchange *exchange, struct peer *peer, uint8_t id,
	size_t size, size_t piece)
{
	uint8_t message[64] = "DOTNET_IPC_V1";

	message[14] = (uint8_t)(20 + size);
	message[16] = 0xff;
	message[17] = id;
	message[20] = 0x85;
	message[21] = 0x13;
	message[22] = 0x13;
	message[23] = 0x80;
	for (size_t at = 0; at < 20 + size && piece; at += piece) {
		size_t left = 20 + size - at;
		assert_false(exchange_is_over(exchange));
		assert_true(send(peer->fd, message + at, left < piece ? left : piece, 0) > 0);
		(void)exchange_advance(exchange, 2);
	}
	return exchange_advance(exchange, 2);
}

static int refused_connect(void *context, void (*made)(void *made_context, int fd),
	void *made_context, struct diag *diag)
{
	const struct exchange *exchange = context;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)diag;
	assert_int_equal(exchange->guard_key, 0);
	made(made_context, fd);
	assert_int_not_equal(exchange->guard_key, 0);
	close(fd);
	return -ECONNREFUSED;
}

static char any_state(void *context)
{
	(void)context;
	return 'S';
}

/*
 * The guard has the socket before the runtime can wait for a request on it, and no more when there
 * was no connection.
 */
static void test_guarded_socket(void **state)
{
	struct exchange exchange = { 0 };
	const struct dotnet_endpoint endpoint = {
		.connect_announced = refused_connect, .state = any_state, .context = &exchange
	};
	const struct ipc_request request = { .command = IPC_PROCESS_INFO };
	struct guard *guard;

	(void)state;
	assert_int_equal(guard_start(&guard, NULL), 0);
	assert_int_equal(exchange_begin(&exchange, &endpoint, &request, 1, 0, NULL), 0);
	exchange.guard = guard;
	assert_int_equal(exchange_advance(&exchange, 1), EXCHANGE_FAILED);
	assert_int_equal(exchange.failure, -ECONNREFUSED);
	assert_int_equal(exchange.guard_key, 0);
	exchange_done(&exchange);
	guard_free(guard);
}

static void test_answers(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < 30; piece += 7) {
		struct exchange exchange = { 0 };
		struct peer peer = { .fd = -1, .state = 'S' };
		begin(&exchange, &peer);
		assert_true(exchange_is_sent(&exchange));
		assert_int_equal(answer(&exchange, &peer, 0, 4, piece), EXCHANGE_ANSWERED);
		assert_true(exchange.ok);
		assert_int_equal(exchange.payload_size, 4);
		end(&exchange, &peer);

		begin(&exchange, &peer);
		assert_int_equal(answer(&exchange, &peer, 0xff, 4, piece), EXCHANGE_ANSWERED);
		assert_false(exchange.ok);
		assert_int_equal(exchange.error, IPC_ERROR_UNKNOWN_COMMAND);
		end(&exchange, &peer);
	}
}

/* A descriptor follows the request, with one byte. */
static void test_descriptor(void **state)
{
	const struct dotnet_endpoint endpoint = {
		.connect = peer_connect, .state = peer_state, .context = NULL
	};
	const struct ipc_request request = { .command = IPC_RESUME_RUNTIME };
	struct peer peer = { .fd = -1, .state = 'S' };
	struct dotnet_endpoint own = endpoint;
	struct exchange exchange = { .fd = -1 };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char bytes[64];
	struct iovec part = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.room) };
	int ends[2];
	int got;

	(void)state;
	own.context = &peer;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(exchange_begin(&exchange, &own, &request, 1, 0, NULL), 0);
	exchange.pass_fd = ends[1];
	assert_int_equal(exchange_advance(&exchange, 1), EXCHANGE_HEADER);
	assert_int_equal(recv(peer.fd, bytes, IPC_HEADER_SIZE, 0), IPC_HEADER_SIZE);
	assert_int_equal(recvmsg(peer.fd, &message, 0), 1);
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	assert_non_null(header);
	assert_int_equal(header->cmsg_type, SCM_RIGHTS);
	memcpy(&got, CMSG_DATA(header), sizeof(got));
	assert_int_equal(write(got, "x", 1), 1);
	assert_int_equal(read(ends[0], bytes, 1), 1);
	close(got);
	assert_int_equal(answer(&exchange, &peer, 0, 4, 64), EXCHANGE_ANSWERED);
	end(&exchange, &peer);
	close(ends[0]);
	close(ends[1]);
}

static void test_hang_up(void **state)
{
	(void)state;
	for (int answered = 0; answered < 2; answered++) {
		struct exchange exchange = { 0 };
		struct peer peer = { .fd = -1, .state = 'S' };
		begin(&exchange, &peer);
		if (answered)
			assert_int_equal(send(peer.fd, "DOTNET_IPC_V1\0\x18", 15, 0), 15);
		close(peer.fd);
		peer.fd = -1;
		assert_int_equal(exchange_advance(&exchange, 2), EXCHANGE_FAILED);
		assert_string_equal(exchange.text, reason_text(REASON_CLOSED_ANSWERING));
		assert_true(exchange.failure < 0);
		end(&exchange, &peer);
	}
}

static void test_foreign_peer(void **state)
{
	struct exchange exchange = { 0 };
	struct peer peer = { .fd = -1, .state = 'S' };

	(void)state;
	begin(&exchange, &peer);
	assert_int_equal(send(peer.fd, "HTTP/1.1 400 Bad Request\r\n", 26, 0), 26);
	assert_int_equal(exchange_advance(&exchange, 2), EXCHANGE_FAILED);
	assert_true(*exchange.text);
	end(&exchange, &peer);
}

/* The runtime would execute the request when it continues: nothing is sent. */
static void test_stopped_process(void **state)
{
	struct exchange exchange = { 0 };
	struct peer peer = { .fd = -1, .state = 'T' };

	(void)state;
	begin(&exchange, &peer);
	assert_false(exchange_is_sent(&exchange));
	end(&exchange, &peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_descriptor),
		cmocka_unit_test(test_hang_up),
		cmocka_unit_test(test_foreign_peer),
		cmocka_unit_test(test_guarded_socket),
		cmocka_unit_test(test_stopped_process),
	};

	return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
