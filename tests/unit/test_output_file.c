/*
 * output_file.c: a new file is complete and private to its user; an earlier file stays or becomes
 * FILE.old; links are not followed.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/output_file.h"

static char folder[32];

static const char *at(const char *name)
{
	static char paths[4][400];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, 400, "%s/%s", folder, name);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/spoor-out-XXXXXX");
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void put(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void assert_holds(const char *name, const char *text)
{
	char buffer[64] = "";
	int fd = open(at(name), O_RDONLY | O_NOFOLLOW);

	assert_true(fd >= 0);
	assert_true(read(fd, buffer, sizeof(buffer) - 1) >= 0);
	close(fd);
	assert_string_equal(buffer, text);
}

/* Returns the number of names in the folder. */
static unsigned names(void)
{
	char command[80];
	unsigned count = 0;

	snprintf(command, sizeof(command), "ls -A '%s' | wc -l", folder);
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%u", &count), 1);
	pclose(pipe);
	return count;
}

static void write_new(const char *name, const char *text, bool keep)
{
	struct output_file out;

	assert_int_equal(output_file_open(&out, at(name), NULL), 0);
	assert_int_equal(write(out.fd, text, strlen(text)), strlen(text));
	if (keep)
		assert_int_equal(output_file_keep(&out, NULL), 0);
	output_file_close(&out);
}

static void test_new_and_old(void **state)
{
	struct stat st;

	(void)state;
	mode_t before = umask(0);
	write_new("x", "one", true);
	(void)umask(before);
	assert_holds("x", "one");
	assert_int_equal(lstat(at("x"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(names(), 1);

	write_new("x", "dropped", false);
	assert_holds("x", "one");
	assert_int_equal(names(), 1);

	write_new("x", "two", true);
	assert_holds("x", "two");
	assert_holds("x.old", "one");
	write_new("x", "three", true);
	assert_holds("x", "three");
	assert_holds("x.old", "two");
	assert_int_equal(names(), 2);

	/* The blocks of the earlier PATH.old are freed by the close, when the recording has ended. */
	struct output_file out;
	assert_int_equal(output_file_open(&out, at("x"), NULL), 0);
	assert_int_equal(lstat(at("x.old"), &st), 0);
	ino_t inode = st.st_ino;
	assert_int_equal(output_file_keep(&out, NULL), 0);
	assert_int_equal(fstat(out.dropped, &st), 0);
	assert_int_equal(st.st_ino, inode);
	assert_int_equal(st.st_nlink, 0);
	output_file_close(&out);
	assert_int_equal(out.dropped, -1);

	/* A file next to a folder of its name is not changed. */
	write_new("x", "three", true);
	assert_int_equal(unlink(at("x.old")), 0);
	assert_int_equal(mkdir(at("x.old"), 0700), 0);
	struct diag diag = { 0 };
	assert_int_equal(output_file_open(&out, at("x"), NULL), 0);
	assert_true(output_file_keep(&out, &diag) < 0);
	assert_non_null(strstr(diag.text, "cannot write 'x'"));
	output_file_close(&out);
	assert_holds("x", "three");
	assert_int_equal(names(), 2);

	/* A folder's name instead of a file's, and an empty name. */
	diag = (struct diag){ 0 };
	assert_int_equal(output_file_open(&out, folder, NULL), -EISDIR);
	assert_int_equal(output_file_open(&out, ".", &diag), -EISDIR);
	assert_string_equal(diag.text, "cannot write '.': Is a directory");
	assert_int_equal(output_file_open(&out, "", NULL), -ENOENT);
	assert_int_equal(output_file_open(&out, at("none/x"), NULL), -ENOENT);
	char name[300];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(output_file_open(&out, at(name), NULL), -ENAMETOOLONG);
}

/*
 * A program that is killed, or ended by a second signal, leaves no temporary file. A file of an
 * earlier program is removed after its writer has ended.
 */
static void test_nothing_left(void **state)
{
	struct output_file out;
	struct timespec old[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };

	(void)state;
	assert_int_equal(output_file_open(&out, at("x"), NULL), 0);
	if (out.unnamed)
		assert_int_equal(names(), 0);
	output_file_abandon();
	assert_int_equal(names(), 0);
	output_file_close(&out);

	/* An abandoned file: of our user, old, and not locked. */
	put(".spoor-0123456789abcdef.part", "left");
	put(".spoor-0123456789abcdee.part", "young");
	put(".spoor-0123456789abcdeF.part", "another name");
	put(".spoor-0123456789abcded.part", "in use");
	for (const char *const *name = (const char *const[]){ ".spoor-0123456789abcdef.part",
		     ".spoor-0123456789abcdeF.part", ".spoor-0123456789abcded.part", NULL };
		*name; name++)
		assert_int_equal(utimensat(AT_FDCWD, at(*name), old, 0), 0);
	int writer = open(at(".spoor-0123456789abcded.part"), O_WRONLY);
	assert_true(writer >= 0);
	assert_int_equal(flock(writer, LOCK_EX), 0);
	write_new("x", "new", true);
	assert_holds("x", "new");
	assert_int_equal(access(at(".spoor-0123456789abcdef.part"), F_OK), -1);
	assert_int_equal(names(), 4);
	close(writer);
	write_new("x", "newer", true);
	assert_holds("x", "newer");
	assert_holds("x.old", "new");
	assert_int_equal(names(), 4);
}

/*
 * Killed at any time while a file replaces another one: the path always names a complete file, and
 * at most one temporary name is left.
 */
static void test_killed(void **state)
{
	(void)state;
	put("x", "first");
	for (unsigned i = 0; i < 150; i++) {
		pid_t child = fork();
		if (child == 0) {
			for (;;) {
				struct output_file out;
				if (output_file_open(&out, at("x"), NULL) == 0 &&
					write(out.fd, "again", 5) == 5)
					(void)output_file_keep(&out, NULL);
				output_file_close(&out);
			}
		}
		assert_true(child > 0);
		usleep(500 + i * 37 % 3000);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		struct stat st;
		assert_int_equal(stat(at("x"), &st), 0);
		assert_int_equal(st.st_size, 5);
	}
	/*
	 * A temporary name that was left during the exchange: the next start removes it, whether or
	 * not the exchange was complete.
	 */
	char command[128];
	snprintf(command, sizeof(command),
		"find '%s' -name '.spoor-*.part' -exec touch -d @1000000000 {} +", folder);
	assert_int_equal(system(command), 0);
	write_new("y", "one", true);
	snprintf(command, sizeof(command), "test -z \"$(find '%s' -name '.spoor-*.part')\"",
		folder);
	assert_int_equal(system(command), 0);
}

static void test_links(void **state)
{
	struct output_file out;
	struct diag diag = { 0 };
	struct stat st;

	(void)state;
	put("mine", "mine");
	assert_int_equal(symlink("mine", at("link")), 0);
	assert_int_equal(symlink("nothing", at("loose")), 0);
	assert_int_equal(output_file_open(&out, at("link"), &diag), -ELOOP);
	assert_non_null(strstr(diag.text, "it is a link"));
	assert_int_equal(output_file_open(&out, at("loose"), NULL), -ELOOP);
	assert_int_equal(lstat(at("nothing"), &st), -1);

	/*
	 * A link that appears between the opening and the renaming is neither followed nor
	 * replaced.
	 */
	assert_int_equal(output_file_open(&out, at("x"), NULL), 0);
	assert_int_equal(symlink("mine", at("x")), 0);
	assert_int_equal(output_file_keep(&out, NULL), -ELOOP);
	output_file_close(&out);
	assert_holds("mine", "mine");
	assert_int_equal(unlink(at("x")), 0);

	/* If FILE.old is a link, the link itself is replaced. */
	put("x", "old");
	assert_int_equal(symlink("mine", at("x.old")), 0);
	write_new("x", "new", true);
	assert_holds("mine", "mine");
	assert_holds("x.old", "old");
}

static atomic_bool stop;

/* Puts links, files and nothing at the path, one after the other. */
static void *disturb(void *context)
{
	char target[400], name[400], new_name[400];

	(void)context;
	snprintf(target, sizeof(target), "%s/secret", folder);
	snprintf(name, sizeof(name), "%s/x", folder);
	snprintf(new_name, sizeof(new_name), "%s/n", folder);
	for (unsigned i = 0; !atomic_load(&stop); i++) {
		(void)unlink(new_name);
		if (i % 3 == 0)
			(void)!symlink(target, new_name);
		else if (i % 3 == 1)
			close(open(new_name, O_CREAT | O_WRONLY, 0600));
		if (i % 3 == 2)
			(void)unlink(name);
		else
			(void)rename(new_name, name);
	}
	return NULL;
}

static void test_race(void **state)
{
	struct output_file out;
	pthread_t thread;
	unsigned kept = 0, refused = 0;

	(void)state;
	put("secret", "secret");
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, disturb, NULL), 0);
	/* The other thread may get no CPU time. */
	for (unsigned i = 0; i < 3000 || ((!kept || !refused) && i < 2000000); i++) {
		if (output_file_open(&out, at("x"), NULL) < 0) {
			refused++;
			continue;
		}
		assert_int_equal(write(out.fd, "new", 3), 3);
		kept += output_file_keep(&out, NULL) == 0;
		output_file_close(&out);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_true(kept > 0);
	assert_true(refused > 0);
	assert_holds("secret", "secret");
	(void)unlink(at("n"));
	(void)unlink(at("x"));
	(void)unlink(at("x.old"));
	assert_int_equal(names(), 1); /* no temporary file is left */
}

static void test_special(void **state)
{
	struct output_file out;
	struct stat st;
	char text[8] = "";

	(void)state;
	assert_int_equal(output_file_open(&out, "/dev/null", NULL), 0);
	assert_int_equal(write(out.fd, "x", 1), 1);
	assert_int_equal(output_file_keep(&out, NULL), 0);
	output_file_close(&out);

	assert_int_equal(output_file_open_regular(&out, "/dev/null", NULL), -EEXIST);
	assert_int_equal(mkfifo(at("pipe"), 0600), 0);
	assert_int_equal(output_file_open_regular(&out, at("pipe"), NULL), -EEXIST);
	int reader = open(at("pipe"), O_RDONLY | O_NONBLOCK);
	write_new("pipe", "piped", true);
	assert_int_equal(read(reader, text, sizeof(text)), 5);
	assert_string_equal(text, "piped");
	close(reader);
	assert_int_equal(lstat(at("pipe"), &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(names(), 1);
	if (geteuid() != 0)
		return;
	/*
	 * Another user's pipe would receive our data; anybody can create one in a folder such as
	 * /tmp.
	 */
	struct diag diag = { 0 };
	assert_int_equal(chown(at("pipe"), 65534, 65534), 0);
	reader = open(at("pipe"), O_RDONLY | O_NONBLOCK);
	assert_int_equal(output_file_open(&out, at("pipe"), &diag), -EPERM);
	assert_non_null(strstr(diag.text, "it is another user's"));
	/* A pipe of the user who called sudo is accepted. */
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	assert_int_equal(output_file_open(&out, at("pipe"), NULL), 0);
	output_file_close(&out);
	close(reader);
}

static void test_sudo(void **state)
{
	static const char *const wrong[] = { "", "-1", "x", "4294967295", "99999999999999999999",
		"12x", " 12" };
	struct stat st;

	(void)state;
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "77", 1);
	write_new("x", "x", true);
	assert_int_equal(lstat(at("x"), &st), 0);
	if (geteuid() != 0) {
		assert_int_equal(st.st_uid, geteuid()); /* only root may use SUDO_UID */
		return;
	}
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 77);
	assert_int_equal(st.st_mode & 07777, 0600);
	write_new("x", "y", true);
	assert_int_equal(lstat(at("x"), &st), 0);
	assert_int_equal(st.st_uid, 1234);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("SUDO_UID", wrong[i], 1);
		write_new("y", "y", true);
		assert_int_equal(lstat(at("y"), &st), 0);
		assert_int_equal(st.st_uid, 0);
	}
}

/*
 * In a folder where all users may write, such as /tmp, another user's file is neither written nor
 * renamed.
 */
static void test_others_file(void **state)
{
	struct output_file out;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip(); /* only root can become another user and back */
	assert_int_equal(chmod(folder, 01777), 0);
	put("x", "root's");
	pid_t pid = fork();
	if (pid == 0) {
		struct diag diag = { 0 };
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		bool good = output_file_open(&out, at("x"), NULL) == 0 &&
			    output_file_keep(&out, &diag) == -EPERM;
		output_file_close(&out);
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_holds("x", "root's");
	assert_int_equal(names(), 1);
}

static int reserve(struct output_file *out, const char *name, uint32_t also_uid)
{
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return output_file_reserve(out, fd, at(name), also_uid, NULL);
}

/* A file that another process writes: its name is checked before, and it is renamed afterwards. */
static void test_reserve(void **state)
{
	struct output_file out;

	(void)state;
	assert_int_equal(reserve(&out, "x", UINT32_MAX), 0);
	assert_int_equal(names(), 0);
	put(out.temporary, "new");
	assert_int_equal(output_file_keep(&out, NULL), 0);
	output_file_close(&out);
	assert_holds("x", "new");

	assert_int_equal(reserve(&out, "x", UINT32_MAX), 0);
	put(out.temporary, "half");
	output_file_close(&out); /* not kept: the other process's file is removed */
	assert_holds("x", "new");
	assert_int_equal(names(), 1);

	assert_int_equal(symlink("x", at("link")), 0);
	assert_int_equal(reserve(&out, "link", UINT32_MAX), -ELOOP);
	assert_int_equal(mkfifo(at("pipe"), 0600), 0);
	assert_int_equal(reserve(&out, "pipe", UINT32_MAX), -EEXIST);
	assert_int_equal(mkdir(at("dir"), 0700), 0);
	assert_int_equal(reserve(&out, "dir", UINT32_MAX), -EISDIR);
	assert_int_equal(reserve(&out, "..", UINT32_MAX), -EISDIR);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(at("x"), 65534, 65534), 0);
	assert_int_equal(reserve(&out, "x", 65533), -EPERM);
	assert_int_equal(reserve(&out, "x", 65534), 0);
	output_file_close(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_new_and_old, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_race, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_special, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sudo, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_others_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reserve, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("output_file", tests, NULL, NULL);
}
