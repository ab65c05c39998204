/* proc.c: the parsers with text that processes can choose, and the reader with this process. */
#include "unit/test.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "machine/command_line.h"
#include "machine/proc.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_stat(void **state)
{
	static const char line[] =
		"77 (a) S 1 (b c) S 42 77 77 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 "
		"12345 1000000 250 18446744073709551615\n";
	struct proc_process process;

	(void)state;
	assert_true(proc_parse_stat(line, strlen(line), &process));
	assert_int_equal(process.pid, 77);
	assert_string_equal(process.comm, "a) S 1 (b c");
	assert_int_equal(process.state, 'S');
	assert_int_equal(process.parent_pid, 42);
	assert_int_equal(process.thread_count, 3);
	assert_int_equal(process.start_ticks, 12345);
	assert_int_equal(process.resident_bytes, 250);
	assert_false(process.kernel_thread);
	/* Cut before the last required field: no process is returned, and no crash occurs. */
	for (size_t len = 0; len < (size_t)(strstr(line, "250") - line); len++)
		assert_false(proc_parse_stat(line, len, &process));
	assert_false(proc_parse_stat("77 a S 1", 8, &process));
	assert_false(proc_parse_stat("99999999999999999999 (a) S", 26, &process));
}

static void test_status(void **state)
{
	static const char text[] = "Name:\tx\nUid:\t1000\t1001\t0\t0\nGid:\t5\t6\t7\t8\n"
				   "NStgid:\t77\t1\nNSpid:\t77\t12\t3\nRest:\t1\n";
	struct proc_process process = { .inner_pid = 77 };

	(void)state;
	proc_parse_status(text, strlen(text), &process);
	assert_int_equal(process.uid, 1001);
	assert_int_equal(process.gid, 6);
	assert_int_equal(process.inner_pid, 3);
	process = (struct proc_process){ .inner_pid = 77, .uid = 9 };
	proc_parse_status("Uid:\nNSpid:\t", 12, &process);
	assert_int_equal(process.uid, 9);
	assert_int_equal(process.inner_pid, 77);
}

static bool mapping_of(const char *text, char *line, struct proc_mapping *mapping)
{
	size_t len = strlen(text);

	memcpy(line, text, len + 1);
	return proc_parse_mapping(line, len, mapping);
}

static void test_mapping(void **state)
{
	char line[512];
	struct proc_mapping mapping;

	(void)state;
	assert_true(mapping_of(
		"7f0000001000-7f0000003000 r-xp 00002000 fe:1f 1234                       "
		"/usr/lib/a b\\012c.so",
		line, &mapping));
	assert_int_equal(mapping.begin, 0x7f0000001000);
	assert_int_equal(mapping.end, 0x7f0000003000);
	assert_int_equal(mapping.file_offset, 0x2000);
	assert_int_equal(mapping.device_major, 0xfe);
	assert_int_equal(mapping.device_minor, 0x1f);
	assert_int_equal(mapping.inode, 1234);
	assert_true(mapping.executable && mapping.readable && !mapping.writable && !mapping.shared);
	assert_false(mapping.deleted);
	assert_string_equal(mapping.path, "/usr/lib/a b\nc.so");
	assert_int_equal(mapping.path_len, 17);

	assert_true(mapping_of("1000-2000 r-xs 00000000 00:01 7    /memfd:doublemapper (deleted)",
		line, &mapping));
	assert_string_equal(mapping.path, "/memfd:doublemapper");
	assert_true(mapping.deleted && mapping.shared);

	assert_true(mapping_of("1000-2000 rwxp 00000000 00:00 0 ", line, &mapping));
	assert_string_equal(mapping.path, "");
	assert_true(
		mapping_of("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]",
			line, &mapping));
	assert_string_equal(mapping.path, "[vsyscall]");
	assert_true(mapping_of("1000-2000 r-xp 00000000 00:00 1 /a\\b\\01", line, &mapping));
	assert_string_equal(mapping.path, "/a\\b\\01");

	static const char *const broken[] = { "", "1000", "1000-", "1000-2000", "1000-2000 r-x",
		"2000-1000 r-xp 0 00:00 0", "1000-2000 r-xp 0 00:00 ", "1000-2000 r-xp 0 0000 0",
		"11112222333344445-2 r-xp 0 00:00 0", "x-2 r-xp 0 00:00 0" };
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		assert_false(mapping_of(broken[i], line, &mapping));
}

static void expect_cgroup(const char *text, const char *path)
{
	size_t len;
	const char *found = proc_parse_cgroup(text, strlen(text), &len);

	if (!path) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_int_equal(len, strlen(path));
	assert_memory_equal(found, path, len);
}

static void expect_container(const char *path, const char *id)
{
	char found[CONTAINER_ID_ROOM];
	bool is = container_id_from_cgroup(path, strlen(path), found);

	assert_int_equal(is, id != NULL);
	if (id)
		assert_string_equal(found, id);
}

static void test_cgroup(void **state)
{
	(void)state;
	expect_cgroup("0::/user.slice/session-1.scope\n", "/user.slice/session-1.scope");
	expect_cgroup("12:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/\n0::/\n", "/docker/" ID);
	expect_cgroup("2:cpu:/a/longer/path\n0::/short\n", "/short");
	expect_cgroup("3:a:/x:y\n", "/x:y");
	expect_cgroup("0::/\n", "/");
	expect_cgroup("", NULL);
	expect_cgroup("nonsense", NULL);
	expect_container("/docker/" ID, ID);
	expect_container("/system.slice/docker-" ID ".scope", ID);
	expect_container("/machine.slice/libpod-" ID ".scope/container", ID);
	expect_container("/kubepods.slice/kubepods-podaa11.slice/cri-containerd-" ID ".scope", ID);
	expect_container("/kubepods/besteffort/pod1/crio-" ID, ID);
	expect_container("/user.slice", NULL);
	expect_container("/docker/" ID "0", NULL);
	expect_container("/docker/0123456789abcdef", NULL);
	expect_container("", NULL);
}

struct found {
	uint64_t address;
	struct proc_mapping mapping;
	char path[256];
	unsigned count;
};

static int find_address(void *user, const struct proc_mapping *mapping)
{
	struct found *found = user;

	assert_true(mapping->executable);
	found->count++;
	if (found->address >= mapping->begin && found->address < mapping->end) {
		found->mapping = *mapping;
		snprintf(found->path, sizeof(found->path), "%s", mapping->path);
	}
	return 0;
}

static int stop_at_first(void *user, const struct proc_mapping *mapping)
{
	(void)mapping;
	++*(unsigned *)user;
	return 33;
}

static void test_ourselves(void **state)
{
	struct proc_reader proc;
	struct proc_process process;
	struct proc_thread thread;
	struct id_list pids = { 0 };
	struct diag diag = { 0 };
	uint32_t self = (uint32_t)getpid();
	const char *text;
	char exe[4096];
	size_t len;
	struct timespec now;

	(void)state;
	assert_int_equal(proc_open(&proc, &diag), 0);
	assert_int_equal(prctl(PR_SET_NAME, "a)\n\\b (c", 0, 0, 0), 0);
	assert_int_equal(proc_read(&proc, self, &process), 0);
	assert_string_equal(process.comm, "a)\n\\b (c");
	assert_int_equal(process.parent_pid, getppid());
	assert_int_equal(process.uid, geteuid());
	assert_int_equal(process.thread_count, 1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	assert_true(process.start_ns <= now_ns && process.start_ns + 600000000000u > now_ns);
	assert_true(process.resident_bytes > 100000);
	assert_int_equal(proc_read_thread(&proc, self, self, &thread), 0);
	assert_string_equal(thread.comm, "a)\n\\b (c");
	assert_int_equal(thread.inner_tid, process.inner_pid);

	assert_int_equal(proc_list(&proc, &pids, &diag), 0);
	bool listed = false;
	for (uint32_t i = 0; i < pids.ids.count; i++)
		listed |= pids.ids.items[i] == self;
	assert_true(listed);
	vec_reset(&pids.ids);
	assert_int_equal(proc_list_threads(&proc, self, &pids), 0);
	assert_int_equal(pids.ids.count, 1);
	vec_done(&pids.ids);

	assert_int_equal(proc_read_exe(&proc, self, &text, &len), 0);
	snprintf(exe, sizeof(exe), "%s", text);
	assert_non_null(strstr(exe, "test_proc"));
	assert_int_equal(proc_read_arguments(&proc, self, &text, &len), 0);
	assert_non_null(strstr(text, "test_proc"));
	assert_int_equal(text[len - 1], 0);
	assert_int_equal(proc_alive(&proc, self), 1);

	struct found found = { .address = (uint64_t)(uintptr_t)&test_ourselves };
	assert_int_equal(proc_read_maps(&proc, self, find_address, &found), 0);
	assert_true(found.count >= 3);
	assert_string_equal(found.path, exe);
	unsigned count = 0;
	assert_int_equal(proc_read_maps(&proc, self, stop_at_first, &count), 33);
	assert_int_equal(count, 1);
	proc_close(&proc);
}

/* 10,000 mappings, and a name with all special characters: each is returned, in order. */
static int check_order(void *user, const struct proc_mapping *mapping)
{
	struct found *found = user;

	assert_true(mapping->begin >= found->address);
	found->address = mapping->end;
	if (!strcmp(mapping->path, "/memfd:a\nb \\ (x)"))
		found->count++;
	return 0;
}

#define MANY 10000u

static void test_many_mappings(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct proc_reader proc;
	struct found found = { 0 };

	(void)state;

	int fd = (int)syscall(SYS_memfd_create, "a\nb \\ (x)", 0);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(2 * page * MANY)), 0);
	uint8_t *area = mmap(NULL, 2 * page * MANY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(area, MAP_FAILED);
	for (size_t i = 0; i < MANY; i++)
		assert_ptr_not_equal(mmap(area + 2 * i * page, page, PROT_READ | PROT_EXEC,
					     MAP_SHARED | MAP_FIXED, fd, (off_t)(2 * i * page)),
			MAP_FAILED);
	assert_int_equal(proc_open(&proc, NULL), 0);
	assert_int_equal(proc_read_maps(&proc, (uint32_t)getpid(), check_order, &found), 0);
	proc_close(&proc);
	munmap(area, 2 * page * MANY);
	close(fd);
	assert_int_equal(found.count, MANY);
}

/* Adds the text of a mapping to a hash of all. */
static int digest_mapping(void *user, const struct proc_mapping *m)
{
	uint64_t *digest = user;
	char text[PATH_MAX + 256];

	if (!strcmp(m->path, "[vsyscall]")) /* a page that no process maps; only the text has it */
		return 0;
	snprintf(text, sizeof(text), "%lx %lx %lx %lu %x:%x %d%d%d%d%d %zu %s", m->begin, m->end,
		m->file_offset, m->inode, m->device_major, m->device_minor, m->readable,
		m->writable, m->executable, m->shared, m->deleted, m->path_len, m->path);
	for (const char *c = text; *c; c++)
		*digest = (*digest ^ (uint8_t)*c) * 1099511628211u;
	return 0;
}

/* A kernel that can be queried for single mappings returns the same as its text. */
static void test_maps_both_ways(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct proc_reader proc;
	uint64_t asked = 1, read = 1;

	(void)state;

	int fd = (int)syscall(SYS_memfd_create, "a\nb \\ (x)", 0);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	void *shared = mmap(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
	void *nameless =
		mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_ptr_not_equal(nameless, MAP_FAILED);
	assert_int_equal(proc_open(&proc, NULL), 0);
	assert_int_equal(proc_read_maps(&proc, (uint32_t)getpid(), digest_mapping, &asked), 0);
	bool could_ask = !proc.maps_as_text;
	proc.maps_as_text = true;
	assert_int_equal(proc_read_maps(&proc, (uint32_t)getpid(), digest_mapping, &read), 0);
	proc_close(&proc);
	munmap(shared, page);
	munmap(nameless, page);
	close(fd);
	assert_true(read != 1);
	if (!could_ask)
		print_message(
			"this kernel cannot be queried for single mappings: its text was read twice\n");
	assert_int_equal(asked, read);
}

/* A process that has ended but still has its entry, and one whose entry has been removed. */
static void test_gone(void **state)
{
	struct proc_reader proc;
	struct proc_process process;
	const char *text;
	size_t len;

	(void)state;
	assert_int_equal(proc_open(&proc, NULL), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_alive(&proc, (uint32_t)pid), 0);
	assert_int_equal(proc_read(&proc, (uint32_t)pid, &process), 0);
	assert_int_equal(process.state, 'Z');
	assert_int_equal(proc_read_arguments(&proc, (uint32_t)pid, &text, &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(proc_alive(&proc, (uint32_t)pid), 0);
	assert_int_equal(proc_read(&proc, (uint32_t)pid, &process), -ESRCH);
	assert_int_equal(proc_read_arguments(&proc, (uint32_t)pid, &text, &len), -ESRCH);
	proc_close(&proc);
}

static void test_environment(void **state)
{
	struct proc_reader proc;
	const char *text;
	size_t len;

	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		char *const argv[] = { "sleep", "100", NULL };
		char *const envp[] = { "XTMPDIR=no", "TMPDIR=/var/tmp/a b", "EMPTY=", NULL };
		execve("/bin/sleep", argv, envp);
		_exit(1);
	}
	assert_int_equal(proc_open(&proc, NULL), 0);
	for (unsigned i = 0; i < 6000; i++) {
		if (proc_read_variable(&proc, (uint32_t)pid, "XTMPDIR", &text, &len) == 0)
			break;
		usleep(10000);
	}
	assert_int_equal(proc_read_variable(&proc, (uint32_t)pid, "TMPDIR", &text, &len), 0);
	assert_string_equal(text, "/var/tmp/a b");
	assert_int_equal(len, 12);
	assert_int_equal(proc_read_variable(&proc, (uint32_t)pid, "EMPTY", &text, &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(proc_read_variable(&proc, (uint32_t)pid, "TMPDI", &text, &len), -ENOENT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	proc_close(&proc);
}

static void test_application(void **state)
{
	static const struct {
		const char *args;
		size_t len;
		const char *name; /* NULL: none */
	} cases[] = {
#define ARGS(text) text, sizeof(text)
		{ ARGS("dotnet\0/app/Shop.dll\0--urls\0x"), "Shop" },
		{ ARGS("dotnet\0exec\0--depsfile\0a.json\0Api.dll"), "Api" },
		{ ARGS("dotnet\0build"), NULL },
		{ ARGS("dotnet\0.dll"), NULL },
		{ ARGS("dotnet\0/a.dll/b"), NULL },
		{ "dotnet\0Cut.dll", 14, "Cut" }, /* no NUL after the last */
		{ "", 0, NULL },
#undef ARGS
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *name;
		size_t len;
		bool found = command_line_application(cases[i].args, cases[i].len, &name, &len);
		assert_int_equal(found, cases[i].name != NULL);
		if (found) {
			assert_int_equal(len, strlen(cases[i].name));
			assert_memory_equal(name, cases[i].name, len);
		}
	}
}

static void test_short_command(void **state)
{
	static const struct {
		const char *args;
		size_t len;
		const char *text;
	} cases[] = {
#define CASE(args, text) { args, sizeof(args), text }
		CASE("/usr/bin/dotnet\0/srv/shop/releases/20261121/Shop.dll\0--urls\0http://*:80",
			"dotnet Shop.dll --urls http://*:80"),
		CASE("dotnet\0Shop.dll", "dotnet Shop.dll"),
		CASE("dotnet\0exec\0--runtimeconfig\0/x/y.json\0/app/Shop.dll\0a",
			"dotnet \xe2\x80\xa6 Shop.dll a"),
		CASE("dotnet\0run\0/x/y", "dotnet run /x/y"),
		CASE("/opt/shop/Shop\0/data/Other.dll", "Shop /data/Other.dll"),
		CASE("bin/Shop", "Shop"), CASE("sshd: root@pts/0", "sshd: root@pts/0"),
		CASE("/usr/lib/x/daemon --log /var/log/x", "daemon --log /var/log/x"),
		CASE("/", "/"), CASE("", ""),
#undef CASE
		{ "dotnet\0Shop.dll!", 15, "dotnet Shop.dll" }, /* not ended by NUL */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes out = { 0 };
		command_line_shorten(cases[i].args, cases[i].len, &out);
		assert_string_equal(bytes_z(&out), cases[i].text);
		bytes_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_mapping),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_ourselves),
		cmocka_unit_test(test_many_mappings),
		cmocka_unit_test(test_maps_both_ways),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_application),
		cmocka_unit_test(test_short_command),
		cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
