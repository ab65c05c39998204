/*
 * target_root.c: opens only regular files of limited size, never outside the root, and never
 * blocks.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/target_root.h"

struct place {
	char folder[64];
	struct target_root root;
};

static int open_in(const struct place *place, const char *name, uint64_t size_max, uint64_t *size)
{
	char path[256];
	int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", place->folder, name);
	int r = target_root_open_file(&place->root, path, size_max, &fd, size, NULL);
	if (r == 0)
		close(fd);
	return r;
}

static void at(const struct place *place, const char *name, char path[256])
{
	snprintf(path, 256, "%s/%s", place->folder, name);
}

static void test_kinds_of_files(void **state)
{
	struct place place = { .folder = "/tmp/spoor-test-XXXXXX" };
	char path[256], other[256];
	uint64_t size = 0;

	(void)state;
	assert_non_null(mkdtemp(place.folder));
	assert_int_equal(target_root_open(&place.root, (uint32_t)getpid(), NULL), 0);
	assert_true(target_root_is_ours(&place.root));
	at(&place, "file", path);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "hello", 5), 5);
	close(fd);
	at(&place, "pipe", other);
	assert_int_equal(mkfifo(other, 0600), 0);
	at(&place, "link", other);
	assert_int_equal(symlink("file", other), 0);
	at(&place, "magic", other);
	assert_int_equal(symlink("/proc/self/exe", other), 0);
	at(&place, "up", other);
	assert_int_equal(symlink("../../../../../../etc/passwd", other), 0);

	assert_int_equal(open_in(&place, "file", 5, &size), 0);
	assert_int_equal(size, 5);
	assert_int_equal(open_in(&place, "link", 5, &size), 0);
	assert_int_equal(open_in(&place, "file", 4, &size), -EFBIG);
	assert_int_equal(open_in(&place, "pipe", 5, &size), -EINVAL);
	assert_int_equal(open_in(&place, ".", 5, &size), -EINVAL);
	assert_int_equal(open_in(&place, "none", 5, &size), -ENOENT);
	assert_int_equal(open_in(&place, "magic", UINT64_MAX, &size), -ELOOP);
	/* the path as seen inside its root */
	assert_int_equal(open_in(&place, "up", UINT64_MAX, &size), 0);
	target_root_close(&place.root);

	static const char *const names[] = { "file", "pipe", "link", "magic", "up" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		at(&place, names[i], path);
		unlink(path);
	}
	rmdir(place.folder);
}

static void test_gone(void **state)
{
	struct target_root root;
	struct diag diag = { 0 };
	int fd;

	(void)state;
	assert_int_equal(target_root_open(&root, 4194300, &diag), -ESRCH);
	assert_non_null(strstr(diag.text, "4194300"));
	target_root_close(&root);
	assert_int_equal(target_memory_open(4194300, &fd), -ESRCH);
}

static void test_memory(void **state)
{
	static const char secret[] = "read me from outside";
	char buffer[sizeof(secret)] = "";
	int fd;

	(void)state;
	assert_int_equal(target_memory_open((uint32_t)getpid(), &fd), 0);
	assert_int_equal(target_memory_read(fd, (uint64_t)(uintptr_t)secret, buffer,
				 sizeof(buffer)),
		sizeof(buffer));
	assert_string_equal(buffer, secret);
	assert_int_equal(target_memory_read(fd, 8, buffer, sizeof(buffer)), -EIO);
	assert_int_equal(target_memory_read(fd, UINT64_MAX - 100, buffer, sizeof(buffer)), -EIO);
	close(fd);
}

/* Creates a file with a text. */
static void put(const char *folder, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
	int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void remove_folder(const char *folder)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	assert_int_equal(system(command), 0);
}

static char read_letter(int fd)
{
	char letter = 0;

	assert_int_equal(pread(fd, &letter, 1, 0), 1);
	return letter;
}

/* A process whose root is `folder`. It sleeps until it is killed. */
static pid_t run_inside(const char *folder)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (chroot(folder) < 0 || chdir("/") < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	bool good = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	if (good)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

/* A link inside another root is resolved in that root and never leads to a file of this root. */
static void test_links_stay_inside(void **state)
{
	static const char *const links[][2] = {
		{ "absolute", "/secret" },
		{ "up", "../../../../../secret" },
		{ "deep/link", "/deep/../secret" },
		{ "by_folder", "/folder_link/secret" },
	};
	char folder[] = "/tmp/spoor-test-XXXXXX";
	char outside[] = "/tmp/spoor-secret-XXXXXX";
	char path[256], secret[300];
	struct target_root root;
	uint64_t size;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(folder));
	assert_non_null(mkdtemp(outside));
	put(folder, "secret", "i");
	put(outside, "secret", "o");
	snprintf(path, sizeof(path), "%s/deep", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/folder_link", folder);
	assert_int_equal(symlink("/", path), 0);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, links[i][0]);
		assert_int_equal(symlink(links[i][1], path), 0);
	}
	/* A link to a file that exists only in our root. */
	snprintf(path, sizeof(path), "%s/ours", folder);
	snprintf(secret, sizeof(secret), "%s/secret", outside);
	assert_int_equal(symlink(secret, path), 0);

	pid_t pid = run_inside(folder);
	assert_true(pid > 0);
	assert_int_equal(target_root_open(&root, (uint32_t)pid, NULL), 0);
	assert_false(target_root_is_ours(&root));
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(path, sizeof(path), "/%s", links[i][0]);
		assert_int_equal(target_root_open_file(&root, path, 100, &fd, &size, NULL), 0);
		assert_int_equal(read_letter(fd), 'i');
		close(fd);
	}
	assert_int_equal(target_root_open_file(&root, "/ours", 100, &fd, &size, NULL), -ENOENT);
	/* A plain open leads to this root's file: the module must not do that. */
	snprintf(path, sizeof(path), "/proc/%d/root/ours", pid);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(read_letter(fd), 'o');
	close(fd);
	target_root_close(&root);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	remove_folder(folder);
	remove_folder(outside);
}

static void test_devices_and_sizes(void **state)
{
	struct place place = { .folder = "/tmp/spoor-test-XXXXXX" };
	char path[256];
	uint64_t size;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(place.folder));
	assert_int_equal(target_root_open(&place.root, (uint32_t)getpid(), NULL), 0);
	assert_int_equal(target_root_open_file(&place.root, "/dev/zero", UINT64_MAX, &fd, &size,
				 NULL),
		-EINVAL);
	assert_int_equal(target_root_open_file(&place.root, "/proc/self/environ", UINT64_MAX, &fd,
				 &size, NULL),
		-EINVAL);
	assert_int_equal(target_root_open_file(&place.root,
				 "/sys/kernel/mm/transparent_hugepage/enabled", UINT64_MAX, &fd,
				 &size, NULL) == 0,
		0);
	at(&place, "sparse", path);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(ftruncate(fd, (off_t)100 << 30), 0);
	close(fd);
	assert_int_equal(open_in(&place, "sparse", UINT64_C(4) << 30, &size), -EFBIG);
	/* A pipe with a writer and one without: the open does not block, and no byte is read. */
	at(&place, "pipe", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(open_in(&place, "pipe", UINT64_MAX, &size), -EINVAL);
	int ends = open(path, O_RDWR | O_NONBLOCK);
	assert_int_equal(write(ends, "x", 1), 1);
	assert_int_equal(open_in(&place, "pipe", UINT64_MAX, &size), -EINVAL);
	assert_int_equal(read(ends, &size, 1), 1);
	close(ends);
	/*
	 * A file with a lease: its holder gets the signal, and the open does not wait the 45 s that
	 * the holder has.
	 */
	at(&place, "leased", path);
	put(place.folder, "leased", "l");
	int held = open(path, O_RDWR);
	(void)signal(SIGIO, SIG_IGN);
	if (fcntl(held, F_SETLEASE, F_WRLCK) == 0)
		assert_int_equal(open_in(&place, "leased", UINT64_MAX, &size), -EAGAIN);
	close(held);
	target_root_close(&place.root);
	remove_folder(place.folder);
}

struct swapper {
	const struct place *place;
	atomic_bool stop;
};

/*
 * One name that is a file, a link to a secret file and a pipe in turn, changed as fast as possible.
 */
static void *swap(void *context)
{
	struct swapper *s = context;
	char name[256], file[256], other[256];

	at(s->place, "name", name);
	at(s->place, "file", file);
	for (unsigned i = 0; !atomic_load(&s->stop); i++) {
		at(s->place, "new", other);
		(void)unlink(other);
		if (i % 3 == 0)
			(void)!link(file, other);
		else if (i % 3 == 1)
			(void)!symlink("/proc/self/environ", other);
		else
			(void)!mkfifo(other, 0600);
		(void)rename(other, name);
	}
	return NULL;
}

static void test_swapped_under_us(void **state)
{
	struct place place = { .folder = "/tmp/spoor-test-XXXXXX" };
	struct swapper swapper = { .place = &place };
	char path[256];
	pthread_t thread;
	uint64_t size;
	unsigned good = 0, refused = 0;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(place.folder));
	assert_int_equal(target_root_open(&place.root, (uint32_t)getpid(), NULL), 0);
	put(place.folder, "file", "good");
	put(place.folder, "name", "good");
	at(&place, "name", path);
	assert_int_equal(pthread_create(&thread, NULL, swap, &swapper), 0);
	for (unsigned i = 0; i < 20000 || ((!good || !refused) && i < 2000000); i++) {
		int r = target_root_open_file(&place.root, path, 100, &fd, &size, NULL);
		if (r == 0) {
			assert_int_equal(size, 4);
			assert_int_equal(read_letter(fd), 'g');
			close(fd);
			good++;
		} else {
			assert_true(r == -ELOOP || r == -EINVAL || r == -ENOENT || r == -EAGAIN);
			refused++;
		}
	}
	atomic_store(&swapper.stop, true);
	pthread_join(thread, NULL);
	assert_true(good > 0);
	assert_true(refused > 0);
	target_root_close(&place.root);
	remove_folder(place.folder);
}

/* A child with this root, or with this program if `root` is NULL. */
static pid_t start_child(const char *root, const char *program)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (root && (chroot(root) < 0 || write(ready[1], "r", 1) != 1))
			_exit(1);
		if (program)
			execl(program, "sleep", "1000", NULL);
		else
			pause();
		_exit(1);
	}
	close(ready[1]);
	/* The end of the pipe: the child is running the program, or has failed. */
	ssize_t n = read(ready[0], &byte, 1);
	close(ready[0]);
	assert_int_equal(n, root ? 1 : 0);
	return pid;
}

static void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int open_of(pid_t pid, const char *path, uint64_t *size)
{
	int fd = -1;
	int result = target_file_open((uint32_t)pid, path, UINT64_MAX, &fd, size, NULL);

	if (result == 0)
		close(fd);
	return result;
}

/* Paths of /proc/PID/maps are those of our root, paths of perf events those of the target's. */
static void test_other_root(void **state)
{
	struct place place = { .folder = "/tmp/spoor-test-XXXXXX" };
	char path[256], other[256];
	uint64_t size = 0;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(place.folder));
	put(place.folder, "file", "12345");
	at(&place, "file", path);
	pid_t pid = start_child(place.folder, NULL);
	assert_int_equal(open_of(pid, path, &size), 0);
	assert_int_equal(size, 5);
	assert_int_equal(open_of(pid, "/file", &size), 0);
	assert_string_equal(target_path_in_root((uint32_t)pid, path), "/file");
	assert_string_equal(target_path_in_root((uint32_t)pid, "/file"), "/file");
	/* A folder whose name only begins like that of the root. */
	snprintf(other, sizeof(other), "%s2/file", place.folder);
	assert_string_equal(target_path_in_root((uint32_t)pid, other), other);
	assert_int_equal(open_of(pid, other, &size), -ENOENT);
	at(&place, "none", path);
	assert_int_equal(open_of(pid, path, &size), -ENOENT);
	stop_child(pid);
	remove_folder(place.folder);
}

/* Also without the right to use /proc/PID/map_files. */
static void test_unlinked_program(void **state)
{
	struct place place = { .folder = "/tmp/spoor-test-XXXXXX" };
	char path[256], command[600];
	uint64_t size = 0;
	struct stat status;

	(void)state;
	assert_non_null(mkdtemp(place.folder));
	at(&place, "program", path);
	snprintf(command, sizeof(command), "cp \"$(command -v sleep)\" %s", path);
	assert_int_equal(system(command), 0);
	assert_int_equal(stat(path, &status), 0);
	pid_t pid = start_child(NULL, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(open_of(pid, path, &size), 0);
	assert_int_equal(size, status.st_size);
	at(&place, "another", path);
	assert_int_equal(open_of(pid, path, &size), -ENOENT);
	stop_child(pid);
	remove_folder(place.folder);
}

static void test_own_word(void **state)
{
	struct place place = { .folder = "/tmp/spoor-test-XXXXXX" };
	struct diag diag = { 0 };
	char path[256], link[256];
	uint64_t size;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(place.folder));
	assert_int_equal(chmod(place.folder, 0755), 0);
	assert_int_equal(target_root_open(&place.root, (uint32_t)getpid(), NULL), 0);
	put(place.folder, "map", "1000 10 f\n");
	at(&place, "map", path);
	assert_int_equal(target_root_open_word(&place.root, path, 100, &fd, &size, NULL), 0);
	close(fd);
	assert_int_equal(target_root_open_word(&place.root, path, 3, &fd, &size, NULL), -EFBIG);
	at(&place, "link", link);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(target_root_open_word(&place.root, link, 100, &fd, &size, NULL), -EINVAL);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(target_root_open_word(&place.root, path, 100, &fd, &size, &diag),
			-EPERM);
		assert_non_null(strstr(diag.text, "belongs to user 65534"));
		/* A file of root is accepted for a process of any user. */
		assert_int_equal(chown(path, 0, 0), 0);
		int ready[2];
		char byte;
		assert_int_equal(pipe(ready), 0);
		pid_t pid = fork();
		if (pid == 0) {
			if (setresuid(65534, 65534, 65534) < 0 || write(ready[1], "r", 1) != 1)
				_exit(1);
			pause();
			_exit(0);
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		struct target_root root;
		assert_int_equal(target_root_open(&root, (uint32_t)pid, NULL), 0);
		assert_int_equal(target_root_open_word(&root, path, 100, &fd, &size, NULL), 0);
		close(fd);
		assert_int_equal(chown(path, 65533, 65533), 0);
		assert_int_equal(target_root_open_word(&root, path, 100, &fd, &size, NULL), -EPERM);
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(target_root_open_word(&root, path, 100, &fd, &size, NULL), 0);
		close(fd);
		target_root_close(&root);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[0]);
		close(ready[1]);
	}
	target_root_close(&place.root);
	remove_folder(place.folder);
}

/* As on Linux before 5.6 (ENOSYS), or with a seccomp filter that does not know the call (EPERM). */
static void forbid_openat2(unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(77);
}

static void test_without_openat2(void **state)
{
	static const unsigned errors[] = { ENOSYS, EPERM };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			struct target_root root;
			struct diag diag = { 0 };
			uint64_t size;
			int fd;
			forbid_openat2(errors[i]);
			bool good = target_root_open(&root, (uint32_t)getpid(), NULL) == 0 &&
				    target_root_open_file(&root, "/etc/passwd", UINT64_MAX, &fd,
					    &size, &diag) == -ENOSYS &&
				    strstr(diag.text, "openat2") &&
				    target_root_open_word(&root, "/etc/passwd", UINT64_MAX, &fd,
					    &size, NULL) == -ENOSYS;
			_exit(good ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 77)
			skip(); /* no seccomp filter can be set here */
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

/* The file of a mapping: the mapped one, although another file is at its path. Never a device. */
static void test_file_of_a_mapping(void **state)
{
	struct place place = { .folder = "/tmp/spoor-test-XXXXXX" };
	char path[256];
	uint64_t size;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(place.folder));
	put(place.folder, "mapped", "old");
	at(&place, "mapped", path);
	fd = open(path, O_RDONLY);
	void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(memory != MAP_FAILED);
	close(fd);
	put(place.folder, "mapped", "new");
	uint64_t begin = (uint64_t)(uintptr_t)memory;
	int r = target_map_file_open((uint32_t)getpid(), begin, begin + 4096, 100, &fd, &size,
		NULL);
	if (r == -EPERM || r == -EACCES) { /* neither CAP_CHECKPOINT_RESTORE nor CAP_SYS_ADMIN */
		remove_folder(place.folder);
		skip();
	}
	assert_int_equal(r, 0);
	assert_int_equal(read_letter(fd), 'o');
	close(fd);
	munmap(memory, 4096);
	int memfd = (int)syscall(SYS_memfd_create, "x", 0);
	assert_int_equal(ftruncate(memfd, 4096), 0);
	memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd, 0);
	begin = (uint64_t)(uintptr_t)memory;
	assert_int_equal(target_map_file_open((uint32_t)getpid(), begin, begin + 4096, 10000, &fd,
				 &size, NULL),
		-EINVAL);
	munmap(memory, 4096);
	close(memfd);
	memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, memfd = open("/dev/zero", O_RDONLY), 0);
	begin = (uint64_t)(uintptr_t)memory;
	r = target_map_file_open((uint32_t)getpid(), begin, begin + 4096, 10000, &fd, &size, NULL);
	assert_true(r == -EINVAL || r == -ENOENT); /* the kernel makes it anonymous memory */
	munmap(memory, 4096);
	close(memfd);
	remove_folder(place.folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_of_files),
		cmocka_unit_test(test_links_stay_inside),
		cmocka_unit_test(test_devices_and_sizes),
		cmocka_unit_test(test_swapped_under_us),
		cmocka_unit_test(test_other_root),
		cmocka_unit_test(test_unlinked_program),
		cmocka_unit_test(test_own_word),
		cmocka_unit_test(test_without_openat2),
		cmocka_unit_test(test_file_of_a_mapping),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests_name("target_root", tests, NULL, NULL);
}
