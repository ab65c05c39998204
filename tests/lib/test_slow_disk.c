/*
 * A disk or pipe that hangs delays only its own session, and the counts stay exact: what is not in
 * the file is lost, each event once.
 */
#include "lib/read_back.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <spoor/spoor.h>

SPOOR_PROVIDER(slow, "Slow")
SPOOR_EVENT(slow, number, 1, SPOOR_INFO, 0x1, (u64, value), (text, text))

#define OTHER_EVENTS 30000u

/* ---- A disk that hangs: the library's pwrite() is this one ---- */

static pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t disk_changed = PTHREAD_COND_INITIALIZER;
static ino_t hung_inode; /* 0: no file hangs */
static unsigned hanging; /* calls that hang */

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	struct stat facts = { 0 };

	(void)fstat(fd, &facts);
	pthread_mutex_lock(&disk_lock);
	hanging++;
	while (hung_inode && facts.st_ino == hung_inode)
		pthread_cond_wait(&disk_changed, &disk_lock);
	hanging--;
	pthread_mutex_unlock(&disk_lock);
	return syscall(SYS_pwrite64, fd, data, size, at);
}

static void disk_hang(const char *path)
{
	struct stat facts;

	assert_int_equal(stat(path, &facts), 0);
	pthread_mutex_lock(&disk_lock);
	hung_inode = facts.st_ino;
	pthread_mutex_unlock(&disk_lock);
}

static void disk_release(void)
{
	pthread_mutex_lock(&disk_lock);
	hung_inode = 0;
	pthread_cond_broadcast(&disk_changed);
	pthread_mutex_unlock(&disk_lock);
}

static void wait_until_a_write_hangs(void)
{
	bool hangs = false;

	for (int i = 0; i < 60000 && !hangs; i++) {
		pthread_mutex_lock(&disk_lock);
		hangs = hanging > 0;
		pthread_mutex_unlock(&disk_lock);
		usleep(1000);
	}
	assert_true(hangs);
}

/* ---- Sessions ---- */

static struct spoor_session *record(const char *path, uint32_t policy, uint64_t buffer_bytes)
{
	struct spoor_want want = {
		.size = sizeof(want), .name = "Slow", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = { .size = sizeof(options),
		.wants = &want,
		.want_count = 1,
		.policy = policy,
		.buffer_bytes = buffer_bytes,
		.block_ms = 600000 };
	struct spoor_file_options file = { .size = sizeof(file), .path = path };
	struct spoor_session *session = NULL;

	assert_int_equal(spoor_session_start_file(&options, &file, &session), 0);
	return session;
}

static struct spoor_session_counts counts_of(const struct spoor_session *session)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	spoor_session_count(session, &counts);
	return counts;
}

/* Fires OTHER_EVENTS, all of which reach the file of `other` while something else hangs. */
static void other_session_is_complete(struct spoor_session *other, const char *path)
{
	struct read_file file;

	for (uint64_t i = 1; i <= OTHER_EVENTS; i++) {
		slow_number(i, "while it hangs");
		if (i % 10000 == 0)
			assert_int_equal(spoor_session_flush(other, 600000), 0);
	}
	assert_int_equal(spoor_session_stop(other), 0);
	assert_int_equal(counts_of(other).written, OTHER_EVENTS);
	assert_int_equal(counts_of(other).lost, 0);
	spoor_session_free(other);
	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(file.lost, 0);
	assert_int_equal(read_count(&file, "Slow", NULL), OTHER_EVENTS);
	read_free(&file);
}

static void a_pipe_that_is_not_read(void **state)
{
	const char *fifo = test_path("fifo");
	const char *path = test_path("other.nettrace");

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	int reader = open(fifo, O_RDWR);
	assert_true(reader >= 0);
	struct spoor_session *stuck = record(fifo, SPOOR_DROP_NEWEST, 256 << 10);
	other_session_is_complete(record(path, SPOOR_BLOCK, 0), path);

	/* What the pipe and 256 KiB hold is taken; the rest was lost, without waiting for a reader. */
	struct spoor_session_counts counts = counts_of(stuck);
	assert_int_equal(counts.written + counts.lost, OTHER_EVENTS);
	assert_in_range(counts.written, 1, OTHER_EVENTS * 3 / 4);
	assert_int_equal(spoor_session_flush(stuck, 50), -ETIMEDOUT);
	assert_int_equal(spoor_session_stop(stuck), -ETIMEDOUT);
	counts = counts_of(stuck);
	assert_int_equal(counts.written + counts.lost, OTHER_EVENTS);
	spoor_session_free(stuck);
	close(reader);
}

static void a_slow_reader_of_a_pipe_gets_all(void **state)
{
	const char *fifo = test_path("slow_fifo");
	const char *copy = test_path("copy.nettrace");
	char command[400];
	struct read_file file;

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	int first = open(fifo, O_RDONLY | O_NONBLOCK);
	struct spoor_session *session = record(fifo, SPOOR_DROP_NEWEST, 0);
	for (uint64_t i = 0; i < 20000; i++) {
		slow_number(i, "slowly read");
		if (i % 5000 == 4999) { /* with the library's thread, not with the pipe */
			int flushed = spoor_session_flush(session, 20);
			assert_true(flushed == 0 || flushed == -ETIMEDOUT);
		}
	}
	snprintf(command, sizeof(command), "cat %s >%s &", fifo, copy);
	assert_int_equal(system(command), 0);
	assert_int_equal(spoor_session_stop(session), 0);
	assert_int_equal(counts_of(session).written, 20000);
	spoor_session_free(session);
	close(first);
	for (int i = 0;; i++) {
		assert_true(i < 60000);
		read_back(copy, &file);
		if (file.result == 0 && read_count(&file, "Slow", NULL) == 20000)
			break;
		read_free(&file);
		usleep(1000);
	}
	assert_int_equal(file.lost, 0);
	read_free(&file);
}

static void a_disk_that_hangs_for_a_time(void **state)
{
	const char *path = test_path("hung.nettrace");
	const char *other = test_path("other2.nettrace");
	struct read_file file;

	(void)state;
	struct spoor_session *session = record(path, SPOOR_DROP_NEWEST, 0);
	disk_hang(path);
	other_session_is_complete(record(other, SPOOR_BLOCK, 0), other);
	wait_until_a_write_hangs();
	disk_release();
	assert_int_equal(spoor_session_stop(session), 0);
	struct spoor_session_counts counts = counts_of(session);
	assert_int_equal(counts.written, OTHER_EVENTS);
	assert_int_equal(counts.lost, 0);
	spoor_session_free(session);
	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Slow", NULL), OTHER_EVENTS);
	read_free(&file);
}

/*
 * The session ends while a write hangs. The write succeeds later: the events that were counted as
 * lost are not in the file.
 */
static void a_disk_that_hangs_at_the_end(void **state)
{
	const char *path = test_path("end.nettrace");
	struct read_file file;

	(void)state;
	struct spoor_session *session = record(path, SPOOR_DROP_NEWEST, 0);
	for (uint64_t i = 0; i < 100; i++)
		slow_number(i, "written");
	assert_int_equal(spoor_session_flush(session, 600000), 0);
	disk_hang(path);
	for (uint64_t i = 0; i < 5000; i++)
		slow_number(i, "lost");
	assert_int_equal(spoor_session_flush(session, 50), -ETIMEDOUT);
	assert_int_equal(spoor_session_stop(session), -ETIMEDOUT);
	struct spoor_session_counts counts = counts_of(session);
	assert_int_equal(counts.written, 100);
	assert_int_equal(counts.lost, 5000);
	spoor_session_free(session);
	wait_until_a_write_hangs();
	disk_release();
	for (int i = 0;; i++) {
		assert_true(i < 60000);
		read_back(path, &file);
		if (file.result == 0)
			break;
		read_free(&file);
		usleep(1000);
	}
	assert_int_equal(read_count(&file, "Slow", NULL), 100);
	read_free(&file);
}

struct snapshot {
	struct spoor_session *session;
	const char *path;
	int result;
};

static void *snapshot_main(void *context)
{
	struct snapshot *snapshot = context;

	snapshot->result = spoor_session_snapshot(snapshot->session, snapshot->path);
	return NULL;
}

static void a_snapshot_on_a_disk_that_hangs(void **state)
{
	const char *path = test_path("recorder.nettrace");
	const char *other = test_path("other3.nettrace");
	struct snapshot snapshot = { .path = test_path("snapshot.nettrace") };
	struct read_file file;
	pthread_t thread;

	(void)state;
	fclose(fopen(snapshot.path, "w"));
	snapshot.session = record(path, SPOOR_OVERWRITE_OLDEST, 0);
	assert_int_equal(spoor_session_snapshot(snapshot.session, "/dev/full/none"), -ENOTDIR);
	for (uint64_t i = 0; i < 100; i++)
		slow_number(i, "snapshot");
	disk_hang(snapshot.path);
	assert_int_equal(pthread_create(&thread, NULL, snapshot_main, &snapshot), 0);
	wait_until_a_write_hangs();
	other_session_is_complete(record(other, SPOOR_BLOCK, 0), other);
	disk_release();
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* It gives up after 5 s, which a busy machine may have needed. */
	assert_true(snapshot.result == 0 || snapshot.result == -ETIMEDOUT);
	if (snapshot.result == 0) {
		read_back(snapshot.path, &file);
		assert_int_equal(file.result, 0);
		assert_int_equal(read_count(&file, "Slow", NULL), 100);
		read_free(&file);
	}
	assert_int_equal(spoor_session_stop(snapshot.session), 0);
	struct spoor_session_counts counts = counts_of(snapshot.session);
	assert_int_equal(counts.written, 100 + OTHER_EVENTS);
	assert_int_equal(counts.lost, 0);
	spoor_session_free(snapshot.session);
	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Slow", NULL), counts.written);
	read_free(&file);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&slow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pipe_that_is_not_read),
		cmocka_unit_test(a_slow_reader_of_a_pipe_gets_all),
		cmocka_unit_test(a_disk_that_hangs_for_a_time),
		cmocka_unit_test(a_disk_that_hangs_at_the_end),
		cmocka_unit_test(a_snapshot_on_a_disk_that_hangs),
	};

	return cmocka_run_group_tests_name("slow_disk", tests, set_up, test_paths_tear_down);
}
