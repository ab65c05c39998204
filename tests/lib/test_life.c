/*
 * Events while threads end, handlers interrupt, processes fork, exec or exit, and objects are
 * unloaded: each rule has one test.
 */
#include "lib/read_back.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <spoor/spoor.h>

SPOOR_PROVIDER(life, "Life")
SPOOR_EVENT(life, number, 1, SPOOR_INFO, 0x1, (u64, value))
SPOOR_EVENT(life, handled, 2, SPOOR_INFO, 0x1, (u64, value))

static struct spoor_session *start(const char *path, const char *provider, uint32_t policy)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = provider,
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	struct spoor_session_options options = { .size = sizeof(options),
		.wants = &want,
		.want_count = 1,
		.policy = policy,
		.block_ms = 10000 };
	struct spoor_file_options file = { .size = sizeof(file), .path = path };
	struct spoor_session *session = NULL;

	assert_int_equal(path ? spoor_session_start_file(&options, &file, &session)
			      : spoor_session_start_listener(&options, &session),
		0);
	return session;
}

static struct spoor_session_counts counts_of(struct spoor_session *session)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	spoor_session_count(session, &counts);
	return counts;
}

/* Waits for a child and returns its exit status. */
static int child_result(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		fail_msg("the child was ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* ---- Threads ---- */

static void *fire_hundred(void *context)
{
	for (uint64_t i = 0; i < 100; i++)
		life_number((uintptr_t)context * 1000 + i);
	return NULL;
}

/*
 * Threads that end directly after firing lose no event, and a thousand of them do not need a
 * thousand rings.
 */
static void threads_that_end_lose_nothing(void **state)
{
	(void)state;
	struct spoor_session *session = start(NULL, "Life", SPOOR_DROP_NEWEST);
	for (uintptr_t round = 0; round < 250; round++) {
		pthread_t threads[4];
		for (uintptr_t i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, fire_hundred,
						 (void *)(round * 4 + i)),
				0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written, 100000);
	assert_int_equal(counts_of(session).lost, 0);

	/* Each thread's events came in order. */
	struct spoor_event_view view = { .size = sizeof(view) };
	static uint64_t next[1000];
	while (spoor_listener_read(session, &view, 0) == 1) {
		struct spoor_value value;
		assert_int_equal(spoor_event_field(&view, "value", &value), 0);
		assert_int_equal(value.u64 % 1000, next[value.u64 / 1000]++);
	}
	spoor_session_free(session);
}

static pthread_key_t late_key;

static void fires_late(void *context)
{
	life_number((uintptr_t)context);
}

static void *with_late_destructor(void *context)
{
	(void)pthread_setspecific(late_key, context);
	life_number(1);
	return NULL;
}

/* A destructor of the program that runs after the library's destructor fires into a new ring. */
static void destructors_may_fire(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_key_create(&late_key, fires_late), 0);
	struct spoor_session *session = start(NULL, "Life", SPOOR_DROP_NEWEST);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pthread_create(&thread, NULL, with_late_destructor, (void *)7), 0);
		pthread_join(thread, NULL);
	}
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written, 40);
	spoor_session_free(session);
	pthread_key_delete(late_key);
}

/* ---- Signal handlers ---- */

static uint64_t handled; /* atomic */

static void on_signal(int number)
{
	(void)number;
	life_handled(__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED));
}

static bool stop_firing; /* atomic */

static void *fire_until_ended(void *context)
{
	uint64_t *fired = context;

	while (!__atomic_load_n(&stop_firing, __ATOMIC_RELAXED)) {
		life_number(*fired);
		*fired += 1;
	}
	return NULL;
}

struct taken {
	uint64_t next_number;
	uint64_t next_handled;
	uint64_t missing; /* of the events of handlers */
};

/*
 * A handler that interrupts its thread inside a record never waits: if the session is full at that
 * time, its event is lost and counted.
 */
static void take(const struct spoor_event_view *view, struct taken *taken)
{
	struct spoor_value value;

	assert_int_equal(spoor_event_field(view, "value", &value), 0);
	if (view->info->id == 1) {
		assert_int_equal(value.u64, taken->next_number++);
		return;
	}
	assert_true(value.u64 >= taken->next_handled);
	taken->missing += value.u64 - taken->next_handled;
	taken->next_handled = value.u64 + 1;
}

/*
 * A signal interrupts a thread that fires without pause: the events of both arrive once and in
 * order, or are counted as lost.
 */
static void handlers_fire_into_what_they_interrupt(void **state)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction before;
	uint64_t fired = 0;
	struct taken taken = { 0 };
	pthread_t thread;

	(void)state;
	handled = 0;
	stop_firing = false;
	struct spoor_session *session = start(NULL, "Life", SPOOR_BLOCK);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(pthread_create(&thread, NULL, fire_until_ended, &fired), 0);
	struct spoor_event_view view = { .size = sizeof(view) };
	for (int i = 0; i < 3000; i++) {
		pthread_kill(thread, SIGUSR1);
		for (int k = 0; k < 2000 && spoor_listener_read(session, &view, 0) == 1; k++)
			take(&view, &taken);
	}
	__atomic_store_n(&stop_firing, true, __ATOMIC_RELAXED);
	while (spoor_listener_read(session, &view, 50) == 1)
		take(&view, &taken);
	pthread_join(thread, NULL);
	spoor_session_stop(session);
	while (spoor_listener_read(session, &view, 0) == 1)
		take(&view, &taken);
	assert_int_equal(taken.next_number, fired);
	assert_int_equal(counts_of(session).lost, taken.missing + handled - taken.next_handled);
	assert_true(handled > 0 && taken.next_handled > taken.missing);
	spoor_session_free(session);
	sigaction(SIGUSR1, &before, NULL);
}

static void *first_event_in_handler(void *context)
{
	(void)context;
	raise(SIGUSR1);
	return NULL;
}

/* The first event that a thread ever fires may be one of a handler. */
static void first_event_of_a_thread_in_a_handler(void **state)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct sigaction before;
	pthread_t thread;

	(void)state;
	struct spoor_session *session = start(NULL, "Life", SPOOR_DROP_NEWEST);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(pthread_create(&thread, NULL, first_event_in_handler, NULL), 0);
	pthread_join(thread, NULL);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written, 1);
	spoor_session_free(session);
	sigaction(SIGUSR1, &before, NULL);
}

/* ---- No system call on the way ---- */

/*
 * A filter that kills the process at any system call except write and exit: a thread can fire any
 * number of events under it.
 */
static bool only_write_and_exit(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(steps) / sizeof(steps[0]), steps };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *fire_under_seccomp(void *context)
{
	const int *fds = context;

	life_number(0); /* sets the thread's ring up */
	if (!only_write_and_exit()) {
		(void)!write(fds[1], "n", 1);
		return NULL;
	}
	for (uint64_t i = 1; i < 300000; i++)
		life_number(i);
	(void)!write(fds[1], "x", 1);
	syscall(SYS_exit, 0);
	return NULL;
}

static void firing_makes_no_system_call(void **state)
{
	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct spoor_session *session;
		pthread_t thread;
		int fds[2];
		char byte;
		if (spoor_start(NULL) || pipe(fds))
			_exit(1);
		session = start(NULL, "Life", SPOOR_DROP_NEWEST);
		if (pthread_create(&thread, NULL, fire_under_seccomp, fds) ||
			read(fds[0], &byte, 1) != 1)
			_exit(2);
		if (byte == 'n')
			_exit(77);
		spoor_session_stop(session);
		_exit(counts_of(session).written + counts_of(session).lost == 300000 ? 0 : 3);
	}
	int result = child_result(child);
	if (result == 77) {
		print_message("skipped: this kernel allows no filter of system calls\n");
		skip();
	}
	assert_int_equal(result, 0);
}

/* ---- fork(), exec(), exit() ---- */

/*
 * The child has no sessions and its events are off; it may call spoor_start(). The parent's stream
 * has no event of the child and continues.
 */
static void fork_leaves_the_child_clean(void **state)
{
	const char *path = test_path("parent.nettrace");
	const char *child_path = test_path("child.nettrace");
	struct read_file file;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	struct spoor_session *session = start(path, "Life", SPOOR_DROP_NEWEST);
	for (uint64_t round = 0; round < 20; round++) {
		life_number(round);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			if (life_number_enabled())
				_exit(1);
			life_number(1000);
			if (spoor_start(NULL))
				_exit(2);
			struct spoor_session *own = start(child_path, "Life", SPOOR_DROP_NEWEST);
			life_number(2000);
			if (spoor_session_stop(own) || counts_of(own).written != 1)
				_exit(3);
			/* The parent's handle reads as ended. */
			if (spoor_session_stop(session))
				_exit(4);
			exit(0);
		}
		assert_int_equal(child_result(child), 0);
	}
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written, 20);
	spoor_session_free(session);
	read_back(path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Life", NULL), 20);
	read_free(&file);
	read_back(child_path, &file);
	assert_int_equal(file.result, 0);
	assert_int_equal(read_count(&file, "Life", NULL), 1);
	read_free(&file);
}

/* fork() while other threads fire and sessions start and end: neither process hangs or crashes. */
static void fork_in_the_middle_of_things(void **state)
{
	uint64_t fired[2] = { 0, 0 };
	pthread_t threads[2];

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
#if defined(__SANITIZE_ADDRESS__)
	print_message(
		"skipped: malloc() of the address sanitizer may stay locked in a child, when another thread was inside it\n");
	skip();
#endif
	stop_firing = false;
	struct spoor_session *session = start(NULL, "Life", SPOOR_OVERWRITE_OLDEST);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire_until_ended, &fired[i]), 0);
	for (int round = 0; round < 30; round++) {
		struct spoor_session *other = start(NULL, "Life", SPOOR_DROP_NEWEST);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			life_number(1);
			if (spoor_start(NULL))
				_exit(1);
			struct spoor_session *own = start(NULL, "Life", SPOOR_DROP_NEWEST);
			life_number(2);
			spoor_session_stop(own);
			_exit(counts_of(own).written == 1 ? 0 : 2);
		}
		assert_int_equal(child_result(child), 0);
		spoor_session_free(other);
	}
	__atomic_store_n(&stop_firing, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written + counts_of(session).lost, fired[0] + fired[1]);
	spoor_session_free(session);
}

/*
 * A child in which no fork handler ran: its events are not recorded, and the parent's rings are
 * unchanged.
 */
static void raw_children_record_nothing(void **state)
{
	(void)state;
	SKIP_THREADS_IN_CHILDREN(); /* nor one that clone() made */
	struct spoor_session *session = start(NULL, "Life", SPOOR_DROP_NEWEST);
	life_number(1);
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	assert_true(child >= 0);
	if (child == 0) {
		for (uint64_t i = 0; i < 1000; i++)
			life_number(5000 + i);
		_exit(0);
	}
	assert_int_equal(child_result(child), 0);
	life_number(2);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written, 2);
	assert_int_equal(counts_of(session).lost, 0);
	spoor_session_free(session);
}

/* exit() completes the file; after _exit() and exec() it is valid up to the last flush. */
static void ways_to_end(void **state)
{
	const char *path = test_path("end.nettrace");
	struct read_file file;

	(void)state;
	SKIP_THREADS_IN_CHILDREN();
	for (int way = 0; way < 3; way++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			if (spoor_start(NULL))
				_exit(1);
			struct spoor_session *session = start(path, "Life", SPOOR_DROP_NEWEST);
			life_number(1);
			if (way && spoor_session_flush(session, 5000))
				_exit(2);
			life_number(2);
			if (way == 0)
				exit(0);
			if (way == 1)
				_exit(0);
			execl("/bin/true", "true", (char *)NULL);
			_exit(3);
		}
		assert_int_equal(child_result(child), 0);
		read_back(path, &file);
		assert_int_equal(file.result, 0);
		if (way == 0)
			assert_int_equal(read_count(&file, "Life", NULL), 2);
		else
			assert_in_range(read_count(&file, "Life", NULL), 1, 2);
		read_free(&file);
	}
}

/* ---- dlopen(), dlclose() ---- */

static void objects_come_and_go(void **state)
{
	struct spoor_event_view view = { .size = sizeof(view) };
	uint32_t expected = 0;

	(void)state;
	struct spoor_session *session = start(NULL, "Plugin", SPOOR_DROP_NEWEST);
	for (uint32_t round = 0; round < 50; round++) {
		void *object = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
		if (!object)
			fail_msg("%s", dlerror());
		void (*run)(uint32_t) = NULL;
		*(void **)&run = dlsym(object, "plugin_run");
		assert_non_null(run);
		run(round);
		/* Unloaded while its events are still in the ring. */
		dlclose(object);
	}
	spoor_session_stop(session);
	while (spoor_listener_read(session, &view, 0) == 1) {
		struct spoor_value value;
		assert_string_equal(view.info->provider, "Plugin");
		assert_string_equal(view.info->name, "work");
		assert_int_equal(spoor_event_field(&view, "text", &value), 0);
		assert_string_equal(value.bytes, "from the plugin");
		assert_int_equal(spoor_event_field(&view, "number", &value), 0);
		assert_int_equal(value.u64, expected++);
	}
	assert_int_equal(expected, 50);
	spoor_session_free(session);
}

/* ---- Stop and start ---- */

static void library_starts_again(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct spoor_options options = { .size = sizeof(options),
			.clock = i % 2 ? SPOOR_CLOCK_MONOTONIC : SPOOR_CLOCK_AUTO };
		struct spoor_session *session = NULL;
		struct spoor_session_options none = { .size = sizeof(none) };
		spoor_stop();
		life_number(1);
		assert_int_equal(spoor_session_start_listener(&none, &session), -ENOTCONN);
		assert_int_equal(spoor_start(&options), 0);
		session = start(NULL, "Life", SPOOR_DROP_NEWEST);
		life_number(2);
		spoor_stop();
		assert_int_equal(counts_of(session).written, 1);
		spoor_session_free(session);
		assert_int_equal(spoor_start(NULL), 0);
	}
}

static int start_with(uint32_t flags, size_t ring_bytes, size_t memory_bytes, const char *path)
{
	struct spoor_options options = { .size = sizeof(options),
		.flags = SPOOR_START_NO_SERVER | flags,
		.ring_bytes = ring_bytes,
		.memory_bytes = memory_bytes,
		.recover_path = path };
	int r = spoor_start(&options);

	spoor_stop();
	return r;
}

static void options_without_sense_are_refused(void **state)
{
	const size_t kib = 1024;

	(void)state;
	spoor_stop();
	assert_int_equal(start_with(0xff00, 0, 0, NULL), -EINVAL);
	assert_int_equal(start_with(0, 0, 0, "/tmp/no-flag.rings"), -EINVAL);
	assert_int_equal(start_with(0, 1000, 0, NULL), -EINVAL);
	assert_int_equal(start_with(0, 100000, 0, NULL), -EINVAL);
	assert_int_equal(start_with(0, kib * kib * 2 * kib, 0, NULL), -EINVAL);
	assert_int_equal(start_with(0, 0, 1000, NULL), -EINVAL);
	assert_int_equal(start_with(0, 0, 100000, NULL), -EINVAL);
	assert_int_equal(start_with(0, 64 * kib, 64 * kib, NULL), -EINVAL);
	assert_int_equal(start_with(0, 64 * kib, 128 * kib, NULL), 0);
	assert_int_equal(start_with(0, 0, 128 * kib, NULL), 0);
	/* The smallest memory has room for a thread's events. */
	struct spoor_options least = { .size = sizeof(least), .memory_bytes = 128 * kib };
	assert_int_equal(spoor_start(&least), 0);
	struct spoor_session *session = start(NULL, "Life", SPOOR_DROP_NEWEST);
	life_number(3);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written, 1);
	spoor_session_free(session);
	spoor_stop();
	assert_int_equal(spoor_start(NULL), 0);
}

/* The nice value of this process's thread of this name; 99: there is none. */
static int nice_of(const char *name)
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[300], comm[32];
	int found = 99;

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		FILE *file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file) && !strcmp(comm, name))
			found = getpriority(PRIO_PROCESS, (id_t)atoi(entry->d_name));
		fclose(file);
	}
	closedir(folder);
	return found;
}

static void own_nice(const struct spoor_event_view *event, void *context)
{
	(void)event;
	*(int *)context = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

static void *can_raise(void *context)
{
	*(bool *)context = setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -10) == 0;
	return NULL;
}

/* A thread raises itself once it has a CPU. */
static bool becomes_nice(const char *name, int expected)
{
	for (int i = 0; i < 10000 && nice_of(name) != expected; i++)
		usleep(1000);
	return nice_of(name) == expected;
}

static void threads_are_raised_on_request(void **state)
{
	int usual = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
	bool may = false;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, can_raise, &may), 0);
	pthread_join(thread, NULL);
	for (int raised = 0; raised < 2; raised++) {
		struct spoor_options options = { .size = sizeof(options),
			.flags = raised ? SPOOR_START_RAISED : 0u };
		struct spoor_want want = { .size = sizeof(want),
			.name = "Life",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE };
		struct spoor_session_options own = {
			.size = sizeof(own), .wants = &want, .want_count = 1
		};
		struct spoor_session *callback = NULL;
		int expected = raised && may ? -10 : usual, seen = 99;
		spoor_stop();
		assert_int_equal(spoor_start(&options), 0);
		struct spoor_session *file =
			start(test_path("raised.nettrace"), "Life", SPOOR_DROP_NEWEST);
		assert_int_equal(spoor_session_start_callback(&own, own_nice, &seen, &callback), 0);
		life_number(1);
		assert_true(becomes_nice("spoor\n", expected));
		assert_true(becomes_nice("spoor-file\n", expected));
		assert_int_equal(spoor_session_stop(callback), 0);
		/* Made by the library's thread: its negative value is not inherited. */
		assert_int_equal(seen, raised && may ? 0 : usual);
		spoor_session_free(callback);
		assert_int_equal(spoor_session_stop(file), 0);
		spoor_session_free(file);
	}
	spoor_stop();
	assert_int_equal(spoor_start(NULL), 0);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_end_lose_nothing),
		cmocka_unit_test(destructors_may_fire),
		cmocka_unit_test(handlers_fire_into_what_they_interrupt),
		cmocka_unit_test(first_event_of_a_thread_in_a_handler),
		cmocka_unit_test(firing_makes_no_system_call),
		cmocka_unit_test(fork_leaves_the_child_clean),
		cmocka_unit_test(fork_in_the_middle_of_things),
		cmocka_unit_test(raw_children_record_nothing),
		cmocka_unit_test(ways_to_end),
		cmocka_unit_test(objects_come_and_go),
		cmocka_unit_test(library_starts_again),
		cmocka_unit_test(options_without_sense_are_refused),
		cmocka_unit_test(threads_are_raised_on_request),
	};

	return cmocka_run_group_tests_name("life", tests, set_up, test_paths_tear_down);
}
