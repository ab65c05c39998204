/*
 * The last events of a killed program, from a file of rings, and of a hanging program, from its
 * memory. And rings with damaged bytes.
 */
#include "lib/read_back.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <spoor/recover.h>

#include "lib/all_types.h"

SPOOR_PROVIDER(lost, "Lost")
SPOOR_EVENT(lost, number, 1, SPOOR_INFO, 0x1, (u64, value), (text, text))

#define FIRED 300000u

/*
 * A child that fires FIRED events and all types, writes that it is ready, and waits to be killed.
 */
static pid_t victim(const char *rings, uint32_t clock, int *ret_ready)
{
	int ready[2];

	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct spoor_options options = { .size = sizeof(options),
			.flags = SPOOR_START_RECOVERABLE,
			.clock = clock,
			.ring_bytes = 1 << 20,
			.recover_path = rings };
		struct spoor_want want = { .size = sizeof(want),
			.name = "*",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE };
		struct spoor_session_options session_options = {
			.size = sizeof(session_options), .wants = &want, .want_count = 1
		};
		struct spoor_session *session = NULL;
		if (spoor_start(&options) || spoor_provider_register(&lost) ||
			spoor_provider_register(&types) ||
			spoor_session_start_rings(&session_options, &session))
			_exit(1);
		for (uint64_t i = 0; i < FIRED; i++) {
			lost_number(i, "on the way");
			/* So that the ring is read and given back. */
			if (i % 5000 == 0 && spoor_session_flush(session, 60000))
				_exit(2);
		}
		types_fire_all();
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	*ret_ready = ready[0];
	return child;
}

static void check(const char *path, uint64_t now_ns)
{
	struct read_file file;
	uint64_t expected = 0;

	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Types", NULL), 4);
	/* 1 MiB of records of 48 bytes: the newest ones without a gap. */
	assert_in_range(read_count(&file, "Lost", NULL), 21000, 21900);
	for (size_t i = 0; i < file.count; i++) {
		uint64_t value;
		if (strcmp(file.events[i].provider, "Lost") != 0)
			continue;
		memcpy(&value, file.events[i].payload, 8);
		if (expected)
			assert_int_equal(value, expected);
		expected = value + 1;
		assert_true(file.events[i].time_ns < now_ns &&
			    file.events[i].time_ns > now_ns - 60000000000u);
	}
	assert_int_equal(expected, FIRED);
	read_free(&file);
}

static void killed_program(void **state)
{
	const char *rings = test_path("rings");
	const char *out = test_path("recovered.nettrace");
	struct spoor_recovered recovered = { .size = sizeof(recovered) };
	int ready;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	pid_t child = victim(rings, SPOOR_CLOCK_AUTO, &ready);
	uint64_t now = spoor_now_ns();
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready);
	int fd = open(rings, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(spoor_recover(fd, out, &recovered), 0);
	close(fd);
	assert_int_equal(recovered.process_id, child);
	assert_int_equal(recovered.broken, 0);
	assert_true(strstr(recovered.command_line, "test_recover") != NULL);
	check(out, now + 1000000);
}

/* Killed before the library's thread made its first pass: the times are still correct. */
static void killed_at_once(void **state)
{
	const char *rings = test_path("rings");
	const char *out = test_path("recovered.nettrace");
	struct read_file file;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	uint64_t before = spoor_now_ns();
	pid_t child = fork();
	if (child == 0) {
		struct spoor_options options = { .size = sizeof(options),
			.flags = SPOOR_START_RECOVERABLE,
			.recover_path = rings };
		struct spoor_want want = { .size = sizeof(want),
			.name = "*",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE };
		struct spoor_session_options session_options = {
			.size = sizeof(session_options), .wants = &want, .want_count = 1
		};
		struct spoor_session *session = NULL;
		if (spoor_start(&options) || spoor_provider_register(&lost) ||
			spoor_session_start_rings(&session_options, &session))
			_exit(1);
		lost_number(1, "at once");
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	uint64_t after = spoor_now_ns();
	int fd = open(rings, O_RDONLY);
	assert_int_equal(spoor_recover(fd, out, NULL), 0);
	close(fd);
	read_back(out, &file);
	assert_int_equal(read_count(&file, "Lost", NULL), 1);
	for (size_t i = 0; i < file.count; i++)
		if (strcmp(file.events[i].provider, "Lost") == 0)
			assert_in_range(file.events[i].time_ns, before, after);
	read_free(&file);
}

static void hanging_program(void **state)
{
	const char *out = test_path("hanging.nettrace");
	struct spoor_recovered recovered = { .size = sizeof(recovered) };
	char name[64];
	char target[128];
	int fd = -1;
	int ready;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	pid_t child = victim(NULL, SPOOR_CLOCK_MONOTONIC, &ready);
	uint64_t now = spoor_now_ns();
	kill(child, SIGSTOP);
	for (int i = 0; i < 64 && fd < 0; i++) {
		snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)child, i);
		ssize_t n = readlink(name, target, sizeof(target) - 1);
		if (n > 0) {
			target[n] = 0;
			if (strncmp(target, "/memfd:spoor-rings", 18) == 0)
				fd = open(name, O_RDONLY);
		}
	}
	assert_true(fd >= 0);
	assert_int_equal(spoor_recover(fd, out, &recovered), 0);
	close(fd);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready);
	check(out, now + 1000000);
}

/* Flips bytes in the head, the tables and the rings: the result is an error or a readable file. */
static void tampered_rings(void **state)
{
	const char *rings = test_path("tampered");
	const char *out = test_path("tampered.nettrace");
	struct read_file file;
	uint64_t seed = 7;
	int ready;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	pid_t child = victim(rings, SPOOR_CLOCK_AUTO, &ready);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready);
	int fd = open(rings, O_RDWR);
	assert_true(fd >= 0);
	for (int round = 0; round < 60; round++) {
		static const off_t places[] = { 0, 4096, 0x2000000 + 4096,
			0x2000000 + 4096 + 8192 * 32, 0x2000000 + 4096 + 8192 * 96 };
		uint8_t before[64];
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		off_t at = places[(seed >> 40) % 5] + (off_t)((seed >> 33) % 96);
		assert_int_equal(pread(fd, before, sizeof(before), at), sizeof(before));
		uint8_t after[64];
		for (size_t i = 0; i < sizeof(after); i++)
			after[i] =
				(uint8_t)((seed >> 20) % 3 ? before[i] ^ (seed >> (i % 8)) : 0xff);
		size_t size = 1 + (seed >> 50) % 64;
		assert_int_equal(pwrite(fd, after, size, at), size);
		if (spoor_recover(fd, out, NULL) == 0) {
			read_back(out, &file);
			read_free(&file);
		}
		assert_int_equal(pwrite(fd, before, sizeof(before), at), sizeof(before));
	}
	assert_int_equal(ftruncate(fd, 50000), 0);
	assert_true(spoor_recover(fd, out, NULL) < 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(spoor_recover(fd, out, NULL), -EBADMSG);
	close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	test_paths_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_program),
		cmocka_unit_test(killed_at_once),
		cmocka_unit_test(hanging_program),
		cmocka_unit_test(tampered_rings),
	};

	return cmocka_run_group_tests_name("recover", tests, NULL, tear_down);
}
