/*
 * nettrace files, read with the reader of src/: every type, names, losses, rotation; files of
 * killed programs; full disks.
 */
#include "lib/read_back.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/all_types.h"

SPOOR_PROVIDER(disk, "Disk")
SPOOR_EVENT(disk, number, 1, SPOOR_INFO, 0x1, (u64, value), (text, text))
SPOOR_STRUCT(disk_texts, (text, inner))
SPOOR_EVENT(disk, two, 2, SPOOR_INFO, 0x1, (text, a), (text, b))
SPOOR_EVENT(disk, wide, 3, SPOOR_INFO, 0x1, (text16, a), (object, o, disk_texts), (u8, end))

static struct spoor_session *record(const char *path, struct spoor_session_options *options,
	uint64_t rotate_bytes, uint32_t keep)
{
	struct spoor_want wants[2] = {
		{ .size = sizeof(wants[0]),
			.name = "Types",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE },
		{ .size = sizeof(wants[0]),
			.name = "Disk",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE },
	};
	struct spoor_session_options some = { .size = sizeof(some) };
	struct spoor_file_options file = {
		.size = sizeof(file), .path = path, .rotate_bytes = rotate_bytes, .keep = keep
	};
	struct spoor_session *session = NULL;

	if (!options)
		options = &some;
	options->wants = wants;
	options->want_count = 2;
	assert_int_equal(spoor_session_start_file(options, &file, &session), 0);
	return session;
}

static void every_type_is_written(void **state)
{
	const char *path = test_path("types.nettrace");
	struct read_file file;

	(void)state;
	struct spoor_session *session = record(path, NULL, 0, 0);
	types_fire_all();
	assert_int_equal(spoor_session_stop(session), 0);
	spoor_session_free(session);
	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(file.lost, 0);
	assert_int_equal(read_count(&file, "Microsoft-DotNETCore-EventPipe", "ProcessInfo"), 1);
	assert_int_equal(read_count(&file, "Types", NULL), 4);
	for (size_t i = 0; i < file.count; i++) {
		const struct read_event *event = &file.events[i];
		if (strcmp(event->name, "Plain") == 0) {
			/*
			 * 4+1+1+2+2+4+4+8+8+4+8+2+16+8+8 = 80, then "grüß 🐟" = 7 units and a zero,
			 * "wä€" and a zero
			 */
			assert_int_equal(event->payload_size, 80 + 16 + 8);
			static const uint16_t text[] = { 'g', 'r', 0xfc, 0xdf, ' ', 0xd83d, 0xdc1f,
				0, 'w', 0xe4, 0x20ac, 0 };
			assert_memory_equal(event->payload + 80, text, sizeof(text));
		} else if (strcmp(event->name, "Arrays") == 0) {
			/* 2+3, 2+12, 2+16, 2+8+2+10, 12+4, 2+2*12+4+4, 2 */
			assert_int_equal(event->payload_size, 5 + 14 + 18 + 22 + 16 + 34 + 2);
		} else if (strcmp(event->name, "Nested") == 0) {
			static const uint8_t end[] = { 0xac, 0x20, 0, 0, 77, 0, 0, 0 };
			assert_int_equal(event->payload_size, 1 + 4 + 8 + 4 + 4);
			assert_memory_equal(event->payload + 13, end, sizeof(end));
		}
	}
	read_free(&file);
}

static void texts_that_are_no_utf8(void **state)
{
	const char *path = test_path("bad.nettrace");
	struct read_file file;

	(void)state;
	struct spoor_session *session = record(path, NULL, 0, 0);
	disk_number(1, "a\xff\xc3z\xed\xa0\x80\xf4\x90\x80\x80");
	disk_number(2, NULL);
	char *long_text = malloc(100000);
	memset(long_text, 'x', 99999);
	long_text[99999] = 0;
	disk_number(3, long_text);
	spoor_session_stop(session);
	spoor_session_free(session);
	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Disk", NULL), 3);
	for (size_t i = 0; i < file.count; i++) {
		if (strcmp(file.events[i].provider, "Disk") != 0)
			continue;
		const uint8_t *payload = file.events[i].payload;
		static const uint16_t first[] = { 'a', 0xfffd, 0xfffd, 'z', 0xfffd, 0xfffd, 0xfffd,
			0xfffd, 0xfffd, 0xfffd, 0xfffd, 0 };
		if (payload[0] == 1)
			assert_memory_equal(payload + 8, first, sizeof(first));
		if (payload[0] == 2)
			assert_int_equal(file.events[i].payload_size, 10);
		if (payload[0] == 3)
			assert_int_equal(file.events[i].payload_size, 8 + 2 * SPOOR_TEXT_MAX + 2);
	}
	free(long_text);
	read_free(&file);
}

#define FISH "\xf0\x9f\x90\x9f"

/* `first`, then `pattern` again and again, `size` bytes in all and a zero. */
static char *text_of(const char *first, const char *pattern, size_t size)
{
	char *text = malloc(size + 1);
	size_t length = strlen(first);

	assert_non_null(text);
	memcpy(text, first, length);
	for (size_t i = length; i < size; i++)
		text[i] = pattern[(i - length) % strlen(pattern)];
	text[size] = 0;
	return text;
}

static struct spoor_session_options disk_options(void)
{
	static struct spoor_want want = {
		.size = sizeof(want), .name = "Disk", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};

	return (struct spoor_session_options){
		.size = sizeof(struct spoor_session_options), .wants = &want, .want_count = 1
	};
}

static void texts_are_cut_between_characters(void **state)
{
	struct spoor_session_options options = disk_options();
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_session *session;
	struct spoor_value value;
	char *fish = text_of("x", FISH, 1 + 4 * 10000);
	char *no_text = text_of("x", "\x80", 40000);
	spoor_char16 *wide = calloc(50001, sizeof(*wide));

	(void)state;
	wide[0] = 'x';
	for (int i = 1; i < 50000; i++)
		wide[i] = i % 2 ? 0xd83d : 0xdc1f;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	disk_two(fish, no_text);
	disk_wide(wide, NULL, 7);
	disk_wide(wide + 1, NULL, 7);
	disk_wide(NULL, &(struct disk_texts){ fish }, 7);
	assert_int_equal(spoor_session_stop(session), 0);
	assert_int_equal(spoor_listener_read(session, &view, 0), 1);
	assert_int_equal(spoor_event_field(&view, "a", &value), 0);
	assert_int_equal(value.byte_count, 1 + 4 * 7999);
	/* What is not UTF-8 is cut anywhere. */
	assert_int_equal(spoor_event_field(&view, "b", &value), 0);
	assert_int_equal(value.byte_count, SPOOR_TEXT_MAX);
	assert_int_equal(spoor_listener_read(session, &view, 0), 1);
	assert_int_equal(spoor_event_field(&view, "a", &value), 0);
	assert_int_equal(value.byte_count, 2 * (SPOOR_TEXT_MAX - 1));
	assert_int_equal(spoor_listener_read(session, &view, 0), 1);
	assert_int_equal(spoor_event_field(&view, "a", &value), 0);
	assert_int_equal(value.byte_count, 2 * SPOOR_TEXT_MAX);
	assert_int_equal(spoor_listener_read(session, &view, 0), 1);
	assert_int_equal(spoor_event_field(&view, "o.inner", &value), 0);
	assert_int_equal(value.byte_count, 1 + 4 * 7999);
	spoor_session_free(session);
	free(fish);
	free(no_text);
	free(wide);
}

static unsigned long_heard;

static void listen_long(const struct spoor_event_view *event, void *context)
{
	(void)context;
	long_heard += event->payload_size == 2 * (SPOOR_TEXT_MAX + 3);
}

/* Both texts end between two characters, and are as long as the payload allows. */
static void check_two_texts(const char *path)
{
	struct read_file file;
	const struct read_event *event = NULL;
	size_t units = 0, ends = 0;
	uint16_t last = 0, unit;

	read_back(path, &file);
	assert_int_equal(file.result, 0);
	for (size_t i = 0; i < file.count; i++)
		if (strcmp(file.events[i].provider, "Disk") == 0)
			event = &file.events[i];
	assert_non_null(event);
	assert_true(event->payload_size <= SPOOR_PAYLOAD_MAX);
	assert_true(event->payload_size >= SPOOR_PAYLOAD_MAX - 40);
	for (; 2 * units < event->payload_size; units++, last = unit) {
		memcpy(&unit, event->payload + 2 * units, 2);
		assert_int_not_equal(unit, 0xfffd);
		if (unit)
			continue;
		assert_int_equal(last & 0xfc00, last == 'x' ? 0 : 0xdc00);
		ends++;
	}
	assert_int_equal(ends, 2);
	read_free(&file);
}

/* The documented limit of a payload, 65,000 bytes, is one of UTF-8: in UTF-16 these texts need 96,004. */
static void two_long_texts_are_in_every_sink(void **state)
{
	const char *path = test_path("two.nettrace");
	const char *kept_path = test_path("two_kept.nettrace");
	struct spoor_session_options options = disk_options();
	struct spoor_file_options file = { .size = sizeof(file), .path = path };
	struct spoor_file_options kept_file = { .size = sizeof(file), .path = kept_path };
	struct spoor_session *sessions[5];
	struct spoor_event_view view = { .size = sizeof(view) };
	char *text = text_of("", "xxxx" FISH, SPOOR_TEXT_MAX);

	(void)state;
	assert_int_equal(spoor_session_start_file(&options, &file, &sessions[0]), 0);
	assert_int_equal(spoor_session_start_listener(&options, &sessions[1]), 0);
	assert_int_equal(spoor_session_start_callback(&options, listen_long, NULL, &sessions[2]),
		0);
	options.stacks = true;
	assert_int_equal(spoor_session_start_listener(&options, &sessions[3]), 0);
	options.policy = SPOOR_OVERWRITE_OLDEST;
	assert_int_equal(spoor_session_start_file(&options, &kept_file, &sessions[4]), 0);
	disk_two(text, text);
	for (int i = 0; i < 5; i++) {
		struct spoor_session_counts counts = { .size = sizeof(counts) };
		assert_int_equal(spoor_session_stop(sessions[i]), 0);
		spoor_session_count(sessions[i], &counts);
		assert_int_equal(counts.written, 1);
		assert_int_equal(counts.lost, 0);
	}
	check_two_texts(path);
	check_two_texts(kept_path);
	assert_int_equal(long_heard, 1);
	assert_int_equal(spoor_listener_read(sessions[1], &view, 0), 1);
	assert_int_equal(view.payload_size, 2 * (SPOOR_TEXT_MAX + 3));
	for (int i = 0; i < 5; i++)
		spoor_session_free(sessions[i]);
	free(text);
}

static void too_large_is_lost(void **state)
{
	const char *path = test_path("large.nettrace");
	static uint8_t bytes[65535];
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	struct read_file file;

	(void)state;
	struct spoor_session *session = record(path, NULL, 0, 0);
	types_arrays(bytes, 60000, NULL, 0, NULL, 0, NULL, 0, &(struct types_point){ 0 }, NULL, 0,
		1);
	types_arrays(bytes, 65535, NULL, 0, NULL, 0, NULL, 0, &(struct types_point){ 0 }, NULL, 0,
		1);
	types_nothing();
	spoor_session_stop(session);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written, 2);
	assert_int_equal(counts.lost, 1);
	spoor_session_free(session);
	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(file.lost, 1);
	assert_int_equal(read_count(&file, "Types", NULL), 2);
	assert_int_equal(read_count(&file, "Spoor-Library", "Loss"), 1);
	read_free(&file);
}

static __attribute__((noinline)) void leaf(uint64_t value)
{
	disk_number(value, "leaf");
	__asm__ volatile("");
}

static __attribute__((noinline)) void caller(uint64_t value)
{
	leaf(value);
	__asm__ volatile("");
}

static void stacks_are_captured(void **state)
{
	const char *path = test_path("stacks.nettrace");
	struct spoor_session_options options = { .size = sizeof(options), .stacks = true };
	struct read_file file;
	unsigned found = 0;

	(void)state;
	struct spoor_session *session = record(path, &options, 0, 0);
	caller(1);
	caller(2);
	spoor_session_stop(session);
	spoor_session_free(session);
	read_back(path, &file);
	for (size_t i = 0; i < file.count; i++) {
		const struct read_event *event = &file.events[i];
		if (strcmp(event->provider, "Disk") != 0)
			continue;
		bool has_leaf = false;
		bool has_caller = false;
		for (uint32_t f = 0; f < event->stack_depth; f++) {
			has_leaf = has_leaf || (event->stack[f] > (uintptr_t)leaf &&
						       event->stack[f] < (uintptr_t)leaf + 200);
			has_caller =
				has_caller || (event->stack[f] > (uintptr_t)caller &&
						      event->stack[f] < (uintptr_t)caller + 200);
		}
		assert_true(has_leaf && has_caller);
		found++;
	}
	assert_int_equal(found, 2);
	read_free(&file);
}

static void files_rotate(void **state)
{
	const char *path = test_path("turn.nettrace");
	char name[160];
	struct read_file file;
	struct stat facts;
	uint64_t next = 0;
	unsigned files = 0;

	(void)state;
	struct spoor_session_options options = {
		.size = sizeof(options), .policy = SPOOR_BLOCK, .block_ms = 10000
	};
	struct spoor_session *session = record(path, &options, 200000, 0);
	for (uint64_t i = 0; i < 40000; i++) {
		disk_number(i, "rotating");
		if (i % 2000 == 0)
			assert_int_equal(spoor_session_flush(session, 10000), 0);
	}
	spoor_session_stop(session);
	spoor_session_free(session);
	for (; files < 100; files++) {
		if (files)
			snprintf(name, sizeof(name), "%.*s.%u.nettrace", (int)(strlen(path) - 9),
				path, files);
		else
			snprintf(name, sizeof(name), "%s", path);
		if (stat(name, &facts))
			break;
		read_back(name, &file);
		assert_int_equal(file.result, 0);
		assert_int_equal(file.lost, 0);
		for (size_t i = 0; i < file.count; i++) {
			if (strcmp(file.events[i].provider, "Disk") != 0)
				continue;
			uint64_t value;
			memcpy(&value, file.events[i].payload, 8);
			assert_int_equal(value, next);
			next++;
		}
		read_free(&file);
	}
	assert_int_equal(next, 40000);
	assert_in_range(files, 4, 40);

	/* Only the newest two stay. */
	path = test_path("kept.nettrace");
	session = record(path, &options, 200000, 2);
	for (uint64_t i = 0; i < 40000; i++) {
		disk_number(i, "rotating");
		if (i % 2000 == 0)
			assert_int_equal(spoor_session_flush(session, 10000), 0);
	}
	spoor_session_stop(session);
	spoor_session_free(session);
	unsigned left = 0;
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%.*s%s%.0u.nettrace", (int)(strlen(path) - 9), path,
			i ? "." : "", i);
		left += stat(name, &facts) == 0;
	}
	assert_int_equal(left, 2);
}

/* A child that fires without pause is killed at various times: its file always opens. */
static void killed_files_open(void **state)
{
	const char *path = test_path("killed.nettrace");
	unsigned with_events = 0;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	for (unsigned round = 0; round < 40; round++) {
		struct read_file file;
		int go[2];
		assert_int_equal(pipe(go), 0);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct spoor_session_options options = { .size = sizeof(options),
				.flush_ms = 1 };
			if (spoor_start(NULL))
				_exit(1);
			(void)record(path, &options, round % 4 == 3 ? 300000 : 0, 1);
			(void)!write(go[1], "x", 1);
			for (uint64_t i = 0;; i++)
				disk_number(i, "until the end");
		}
		char byte;
		assert_int_equal(read(go[0], &byte, 1), 1);
		usleep(1000 + round * 1500);
		kill(child, SIGKILL);
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		close(go[0]);
		close(go[1]);
		if (round % 4 != 3) {
			read_back(path, &file);
			assert_int_equal(file.result, 0);
			assert_true(file.count >= 1);
			with_events += file.count > 100;
			read_free(&file);
		}
	}
	assert_in_range(with_events, 1, 40);
}

struct notified {
	int error;
	uint64_t lost;
	unsigned failed, ended;
};

static void note(const struct spoor_notice *notice, void *context)
{
	struct notified *notified = context;

	if (notice->kind == SPOOR_NOTICE_FAILED) {
		notified->failed++;
		notified->error = notice->error;
	}
	if (notice->kind == SPOOR_NOTICE_LOST)
		notified->lost += notice->count;
	notified->ended += notice->kind == SPOOR_NOTICE_ENDED;
}

/*
 * The disk is full for one session (emulated by a limit on file sizes): only this session stops,
 * and reports it in a callback, an event and its own file.
 */
static void a_full_disk_stops_one_session(void **state)
{
	const char *small = test_path("small.nettrace");
	const char *other = test_path("other.nettrace");
	struct notified notified = { 0 };
	struct read_file file;
	struct spoor_event_view view = { .size = sizeof(view) };
	unsigned failures_seen = 0;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct rlimit limit = { 300000, 300000 };
		struct spoor_session_options options = {
			.size = sizeof(options), .notice = note, .notice_context = &notified
		};
		struct spoor_want want = { .size = sizeof(want),
			.name = "Spoor-Library",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE };
		struct spoor_session_options watch_options = {
			.size = sizeof(watch_options), .wants = &want, .want_count = 1
		};
		struct spoor_session *watch = NULL;
		if (spoor_start(NULL) || setrlimit(RLIMIT_FSIZE, &limit))
			_exit(1);
		if (spoor_session_start_listener(&watch_options, &watch))
			_exit(2);
		struct spoor_session *session = record(small, &options, 0, 0);
		struct spoor_session *rotating = record(other, NULL, 100000, 0);
		for (uint64_t i = 0; i < 20000; i++) {
			disk_number(i, "filling up");
			if (i % 1000 == 0)
				spoor_session_flush(rotating, 1000);
		}
		struct spoor_session_counts counts = { .size = sizeof(counts) };
		spoor_session_stop(session);
		spoor_session_count(session, &counts);
		if (notified.failed != 1 || notified.error != -EFBIG || notified.ended != 1)
			_exit(3);
		if (counts.lost == 0 || notified.lost != counts.lost)
			_exit(4);
		if (spoor_session_stop(rotating))
			_exit(5);
		struct spoor_session_counts all = { .size = sizeof(all) };
		spoor_session_count(rotating, &all);
		if (all.written != 20000 || all.lost)
			_exit(6);
		while (spoor_listener_read(watch, &view, 100) == 1)
			failures_seen += strcmp(view.info->name, "SessionFailed") == 0;
		if (failures_seen != 1)
			_exit(7);
		/* `written` is the number of events in the file; the child passes it in a file. */
		FILE *out = fopen(test_path("counts"), "w");
		fprintf(out, "%lu\n", (unsigned long)counts.written);
		fclose(out);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status))
		fail_msg("ended by signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	read_back(small, &file);
	assert_int_equal(file.result, 0);
	unsigned long written = 0;
	FILE *in = fopen(test_path("counts"), "r");
	assert_int_equal(fscanf(in, "%lu", &written), 1);
	fclose(in);
	assert_int_equal(read_count(&file, "Disk", NULL), written);
	read_free(&file);
}

/* A flight recorder keeps the newest events, and its counts are correct. */
static void the_recorder_keeps_the_newest(void **state)
{
	const char *path = test_path("newest.nettrace");
	const char *end = test_path("end.nettrace");
	struct spoor_session_options options = {
		.size = sizeof(options), .policy = SPOOR_OVERWRITE_OLDEST, .buffer_bytes = 1 << 20
	};
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	struct read_file file;

	(void)state;
	struct spoor_session *session = record(end, &options, 0, 0);
	for (uint64_t i = 0; i < 100000; i++) {
		disk_number(i, "flying");
		if (i % 10000 == 0)
			assert_int_equal(spoor_session_flush(session, 10000), 0);
	}
	assert_int_equal(spoor_session_snapshot(session, path), 0);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written + counts.lost, 100000);
	assert_in_range(counts.written, 1000, (1 << 20) / 48); /* a record takes 48 bytes */
	assert_int_equal(spoor_session_stop(session), 0);
	spoor_session_free(session);
	for (int i = 0; i < 2; i++) {
		read_back(i ? end : path, &file);
		assert_int_equal(file.result, 0);
		assert_int_equal(read_count(&file, "Disk", NULL), counts.written);
		uint64_t value = 0;
		for (size_t k = 0; k < file.count; k++)
			if (strcmp(file.events[k].provider, "Disk") == 0)
				memcpy(&value, file.events[k].payload, 8);
		assert_int_equal(value, 99999);
		assert_int_equal(read_count(&file, "Spoor-Library", "Loss"), 1);
		read_free(&file);
	}
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&types) ||
	       spoor_provider_register(&disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_written),
		cmocka_unit_test(texts_that_are_no_utf8),
		cmocka_unit_test(texts_are_cut_between_characters),
		cmocka_unit_test(two_long_texts_are_in_every_sink),
		cmocka_unit_test(too_large_is_lost),
		cmocka_unit_test(stacks_are_captured),
		cmocka_unit_test(files_rotate),
		cmocka_unit_test(killed_files_open),
		cmocka_unit_test(a_full_disk_stops_one_session),
		cmocka_unit_test(the_recorder_keeps_the_newest),
	};

	return cmocka_run_group_tests_name("sink_file", tests, set_up, test_paths_tear_down);
}
