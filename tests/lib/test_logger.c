/*
 * Loggers without a tracer: the probes of USDT are found by their notes in the image, a semaphore is
 * raised as the kernel does, and a breakpoint in the probe's code shows its arguments.
 */
#include "unit/test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <spoor/logger.h>

static pthread_mutex_t notified_lock = PTHREAD_MUTEX_INITIALIZER;
static struct spoor_enable notified;
static unsigned notified_count;

static void enabled(const struct spoor_enable *what, void *context)
{
	(void)context;
	pthread_mutex_lock(&notified_lock);
	notified = *what;
	notified_count++;
	pthread_mutex_unlock(&notified_lock);
}

SPOOR_PROVIDER_WITH(probes, "Test-Probes", enabled, NULL)
SPOOR_EVENT(probes, mixed, 1, SPOOR_WARNING, 0x8000000000000000, (i8, small), (text, name),
	(f64, price), (u32_array, numbers), (text16, wide))
SPOOR_EVENT(probes, other, 2, SPOOR_ERROR, 0x1, (u32, number))
SPOOR_EVENT_NAMED(probes, later, "other", 3, 2, SPOOR_ERROR, SPOOR_OPCODE_INFO, 0x1, (u64, number))

/* ---- A reader of images ---- */

struct probe {
	uint64_t code;
	uint16_t *semaphore;
	char arguments[256];
};

/* The mappings of images that were closed stay: the file says which is meant. */
static uintptr_t mapping_of(int fd, uint64_t offset, const char *rights)
{
	char line[512], found[8];
	unsigned long begin, end, at, file;
	struct stat status;
	uintptr_t address = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	assert_int_equal(fstat(fd, &status), 0);
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:spoor-usdt") &&
			sscanf(line, "%lx-%lx %7s %lx %*s %lu", &begin, &end, found, &at, &file) ==
				5 &&
			file == status.st_ino && strcmp(found, rights) == 0 && offset >= at &&
			offset < at + (end - begin))
			address = begin + (offset - at);
	if (maps)
		fclose(maps);
	return address;
}

/* The probe PROVIDER:NAME of the image at `fd`; false: it has none. */
static bool probe_find(int fd, const char *provider, const char *name, struct probe *ret_probe)
{
	Elf64_Ehdr elf;
	Elf64_Shdr sections[16];
	char names[256];
	uint8_t *notes;
	bool found = false;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) || elf.e_shnum > 16 ||
		pread(fd, sections, elf.e_shnum * sizeof(*sections), (off_t)elf.e_shoff) < 0 ||
		pread(fd, names, sizeof(names), (off_t)sections[elf.e_shstrndx].sh_offset) < 0)
		return false;
	for (unsigned i = 0; i < elf.e_shnum; i++) {
		size_t size = sections[i].sh_size, at = 0;
		if (strcmp(names + sections[i].sh_name, ".note.stapsdt") != 0)
			continue;
		notes = malloc(size + 1);
		assert_int_equal(pread(fd, notes, size, (off_t)sections[i].sh_offset), size);
		while (at + sizeof(Elf64_Nhdr) < size) {
			Elf64_Nhdr header;
			uint64_t addresses[3];
			memcpy(&header, notes + at, sizeof(header));
			const uint8_t *text = notes + at + sizeof(header) + 8;
			memcpy(addresses, text, sizeof(addresses));
			const char *own = (const char *)text + sizeof(addresses);
			const char *event = own + strlen(own) + 1;
			if (strcmp(own, provider) == 0 && strcmp(event, name) == 0) {
				assert_false(found); /* a name occurs one time */
				found = true;
				ret_probe->code = mapping_of(fd, addresses[0], "r-xp");
				ret_probe->semaphore =
					(uint16_t *)mapping_of(fd, addresses[2], "rw-p");
				snprintf(ret_probe->arguments, sizeof(ret_probe->arguments), "%s",
					event + strlen(event) + 1);
			}
			at += sizeof(header) + 8 + (header.n_descsz + 3u) / 4 * 4;
		}
		assert_int_equal(at, size);
		free(notes);
	}
	return found;
}

static bool probe_in_process(const char *provider, const char *name, struct probe *ret_probe)
{
	char path[64], target[64];

	for (int fd = 3; fd < 200; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && strncmp(target, "/memfd:spoor-usdt", 17) == 0 &&
			probe_find(fd, provider, name, ret_probe))
			return true;
	}
	return false;
}

static void until(bool (*is_true)(void))
{
	for (int i = 0; i < 30000 && !is_true(); i++)
		usleep(1000);
	assert_true(is_true());
}

static bool mixed_is_on(void)
{
	return probes_mixed_enabled();
}

static bool mixed_is_off(void)
{
	return !probes_mixed_enabled();
}

static bool other_is_on(void)
{
	return probes_other_enabled();
}

static bool is_notified(void)
{
	pthread_mutex_lock(&notified_lock);
	bool is = notified_count != 0;
	pthread_mutex_unlock(&notified_lock);
	return is;
}

static struct spoor_enable notification(void)
{
	until(is_notified);
	pthread_mutex_lock(&notified_lock);
	struct spoor_enable what = notified;
	notified_count = 0;
	pthread_mutex_unlock(&notified_lock);
	return what;
}

static int start(void **state)
{
	struct spoor_options options = { .size = sizeof(options), .flags = SPOOR_START_NO_SERVER };

	(void)state;
	pthread_mutex_lock(&notified_lock);
	notified_count = 0;
	pthread_mutex_unlock(&notified_lock);
	if (spoor_start(&options) || spoor_provider_register(&probes))
		return -1;
	int r = spoor_logger_start(SPOOR_LOGGER_USDT);
	if (r == -ENOTSUP || r == -EPERM || r == -EACCES) {
		print_message("skipped: no probes here: %s\n", strerror(-r));
		exit(77);
	}
	return r;
}

static int stop(void **state)
{
	(void)state;
	spoor_provider_unregister(&probes);
	spoor_stop();
	return 0;
}

/* ---- Tests ---- */

static void a_semaphore_enables_one_event(void **state)
{
	struct probe probe;

	(void)state;
	assert_true(probe_in_process("test_probes", "other", &probe));
	assert_true(probe_in_process("test_probes", "other_V2", &probe));
	assert_true(probe_in_process("test_probes", "mixed", &probe));
	assert_false(probes_mixed_enabled());
	assert_int_equal(__atomic_add_fetch(probe.semaphore, 1, __ATOMIC_RELAXED), 1);
	until(mixed_is_on);
	assert_false(probes_other_enabled());
	struct spoor_enable what = notification();
	assert_true(what.enabled);
	assert_int_equal(what.level, SPOOR_WARNING);
	assert_true(what.keywords == 0x8000000000000000);
	assert_true(what.session_id == SPOOR_LOGGER_SESSION + SPOOR_LOGGER_USDT);
	__atomic_sub_fetch(probe.semaphore, 1, __ATOMIC_RELAXED);
	until(mixed_is_off);
	what = notification();
	assert_false(what.enabled);
	assert_false(what.any_enabled);
}

static void events_made_at_run_time_have_probes(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Made-Here");
	struct spoor_writer w;
	struct probe probe;

	(void)state;
	for (int i = 0; i < 3; i++) {
		/* The first one is written so that tools see the event; the next ones are off. */
		assert_int_equal(spoor_source_begin(source, "first", SPOOR_INFO, 0, &w), i == 0);
		if (i == 0) {
			spoor_write_i16(&w, "number", -3);
			assert_int_equal(spoor_source_end(&w), SPOOR_NOT_ENABLED);
		}
	}
	assert_true(probe_in_process("made_here", "first", &probe));
	assert_string_equal(probe.arguments,
#if defined(__aarch64__)
		"-2@[x0, 0]"
#else
		"-2@0(%rdi)"
#endif
	);
	spoor_source_free(source);
}

static void too_long_a_name_is_reported(void **state)
{
	char name[400] = "";
	struct spoor_writer w;

	(void)state;
	memset(name, 'p', sizeof(name) - 1);
	struct spoor_event_source *source = spoor_source_new(name);
	assert_non_null(source);
	assert_true(spoor_source_begin(source, "first", SPOOR_INFO, 0, &w));
	spoor_write_i16(&w, "number", -3);
	assert_int_equal(spoor_source_end(&w), -ENOTSUP);
	spoor_source_free(source);
}

static void a_logger_ends_and_starts_again(void **state)
{
	struct probe probe;

	(void)state;
	assert_true(probe_in_process("test_probes", "mixed", &probe));
	__atomic_add_fetch(probe.semaphore, 1, __ATOMIC_RELAXED);
	until(mixed_is_on);
	spoor_logger_stop(SPOOR_LOGGER_USDT);
	assert_false(probes_mixed_enabled());
	assert_false(probe_in_process("test_probes", "mixed", &probe));
	assert_int_equal(spoor_logger_start(SPOOR_LOGGER_USDT), 0);
	assert_int_equal(spoor_logger_start(SPOOR_LOGGER_USDT), 0);
	assert_true(probe_in_process("test_probes", "mixed", &probe));
	assert_false(probes_mixed_enabled());
	assert_int_equal(spoor_logger_start((enum spoor_logger)99), -EINVAL);
}

/* GCC's thread sanitizer ends a child that starts threads. */
#if !defined(__SANITIZE_THREAD__)
static void a_child_has_its_own(void **state)
{
	struct probe probe;
	struct spoor_options options = { .size = sizeof(options), .flags = SPOOR_START_NO_SERVER };
	int status;

	(void)state;
	assert_true(probe_in_process("test_probes", "other", &probe));
	__atomic_add_fetch(probe.semaphore, 1, __ATOMIC_RELAXED);
	until(other_is_on);
	pid_t pid = fork();
	if (pid == 0) {
		if (probes_other_enabled() || spoor_start(&options) ||
			probe_in_process("test_probes", "other", &probe) ||
			spoor_logger_start(SPOOR_LOGGER_USDT) ||
			!probe_in_process("test_probes", "other", &probe))
			_exit(1);
		spoor_stop();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(probes_other_enabled());
}
#endif

#if defined(__x86_64__)
static struct {
	unsigned count;
	int8_t small;
	uint64_t price;
	uint32_t number_count;
	uint32_t last_number;
	char name[64];
	char wide[64];
} hit;

/* The breakpoint's byte has replaced the first one of a nop of five bytes. */
static void trap(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint64_t *values = (const uint64_t *)(uintptr_t)registers[REG_RDI];

	(void)number;
	(void)info;
	hit.small = (int8_t)values[0];
	hit.price = values[2];
	hit.number_count = (uint32_t)values[3];
	memcpy(&hit.last_number, (const uint8_t *)(uintptr_t)values[4] + 4, 4);
	snprintf(hit.name, sizeof(hit.name), "%s", (const char *)(uintptr_t)values[1]);
	snprintf(hit.wide, sizeof(hit.wide), "%s", (const char *)(uintptr_t)values[5]);
	registers[REG_RIP] += 4;
	hit.count++;
}

static void a_breakpoint_sees_the_values(void **state)
{
	static const spoor_char16 wide[] = { 'w', 0x20ac, 0xd83d, 0xdc1f, 0xd83d, 0 };
	static const uint32_t numbers[] = { 7, 4294967295u };
	struct sigaction action = { .sa_sigaction = trap, .sa_flags = SA_SIGINFO }, before;
	struct spoor_want want = {
		.size = sizeof(want), .name = "Test-Probes", .keywords = UINT64_MAX, .level = 5
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_session *session;
	struct spoor_value value;
	struct probe probe;
	double price = 2.5;
	static const uint8_t breakpoint = 0xcc;

	(void)state;
	assert_true(probe_in_process("test_probes", "mixed", &probe));
	assert_string_equal(probe.arguments,
		"-1@0(%rdi) 8@8(%rdi) 8@16(%rdi) 4@24(%rdi) 8@32(%rdi) 8@40(%rdi)");
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(memory, &breakpoint, 1, (off_t)probe.code), 1);
	close(memory);
	sigaction(SIGTRAP, &action, &before);
	__atomic_add_fetch(probe.semaphore, 1, __ATOMIC_RELAXED);
	until(mixed_is_on);
	/* For the logger alone, and then for a session as well. */
	for (int i = 0; i < 2; i++) {
		memset(&hit, 0, sizeof(hit));
		if (i)
			assert_int_equal(spoor_session_start_listener(&options, &session), 0);
		errno = 4711;
		probes_mixed(-5, "gr\xc3\xbc\xc3\x9f", price, numbers, 2, wide);
		assert_int_equal(errno, 4711);
		assert_int_equal(hit.count, 1);
		assert_int_equal(hit.small, -5);
		assert_memory_equal(&hit.price, &price, sizeof(price));
		assert_int_equal(hit.number_count, 2);
		assert_int_equal(hit.last_number, 4294967295u);
		assert_string_equal(hit.name, "gr\xc3\xbc\xc3\x9f");
		assert_string_equal(hit.wide, "w\xe2\x82\xac\xf0\x9f\x90\x9f\xef\xbf\xbd");
	}
	assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
	assert_int_equal(spoor_event_field(&view, "small", &value), 0);
	assert_int_equal(value.i64, -5);
	spoor_session_stop(session);
	spoor_session_free(session);
	sigaction(SIGTRAP, &before, NULL);
}
#endif

static bool threads_end;

static void *fire_always(void *context)
{
	(void)context;
	while (!__atomic_load_n(&threads_end, __ATOMIC_RELAXED)) {
		probes_other(7);
		probes_mixed(1, "text", 0.5, NULL, 0, NULL);
	}
	return NULL;
}

/* Under the thread sanitizer: threads fire while the logger, semaphores and sessions change. */
static void threads_fire_while_everything_changes(void **state)
{
	struct spoor_want want = {
		.size = sizeof(want), .name = "Test-Probes", .keywords = UINT64_MAX, .level = 5
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	pthread_t threads[3];
	struct probe probe;

	(void)state;
	__atomic_store_n(&threads_end, false, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, fire_always, NULL);
	for (int i = 0; i < 5; i++) {
		struct spoor_session *session;
		assert_int_equal(spoor_session_start_rings(&options, &session), 0);
		assert_true(probe_in_process("test_probes", "other", &probe));
		__atomic_add_fetch(probe.semaphore, 1, __ATOMIC_RELAXED);
		usleep(120000);
		spoor_session_stop(session);
		spoor_session_free(session);
		spoor_logger_stop(SPOOR_LOGGER_USDT);
		assert_int_equal(spoor_logger_start(SPOOR_LOGGER_USDT), 0);
	}
	__atomic_store_n(&threads_end, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_semaphore_enables_one_event, start, stop),
		cmocka_unit_test_setup_teardown(events_made_at_run_time_have_probes, start, stop),
		cmocka_unit_test_setup_teardown(too_long_a_name_is_reported, start, stop),
		cmocka_unit_test_setup_teardown(a_logger_ends_and_starts_again, start, stop),
#if !defined(__SANITIZE_THREAD__)
		cmocka_unit_test_setup_teardown(a_child_has_its_own, start, stop),
#endif
#if defined(__x86_64__)
		cmocka_unit_test_setup_teardown(a_breakpoint_sees_the_values, start, stop),
#endif
		cmocka_unit_test_setup_teardown(threads_fire_while_everything_changes, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
