/* Selects real processes: children of this test, with a name that only they have. */
#include "unit/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "target/targets.h"

static char unique[12]; /* comm of the children */

struct family {
	pid_t child;
	pid_t grandchild;
};

/*
 * A child named `unique`, whose child is named `unique` and "x". Both sleep until they are killed.
 */
static void family_begin(struct family *family)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	family->child = fork();
	if (family->child == 0) {
		char name[16];
		/* No child outlives a failed test: a reader of the test's output would wait for it. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(name, sizeof(name), "%sx", unique);
		pid_t grandchild = fork();
		if (grandchild == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)prctl(PR_SET_NAME, name);
			pid_t self = getpid();
			_exit(write(pipes[1], &self, sizeof(self)) == sizeof(self) ? (pause(), 0)
										   : 1);
		}
		(void)prctl(PR_SET_NAME, unique);
		pid_t none = 0;
		_exit(write(pipes[1], &none, sizeof(none)) == sizeof(none) ? (pause(), 0) : 1);
	}
	for (int i = 0; i < 2; i++) {
		pid_t reported;
		assert_int_equal(read(pipes[0], &reported, sizeof(reported)), sizeof(reported));
		if (reported)
			family->grandchild = reported;
	}
	close(pipes[0]);
	close(pipes[1]);
}

static void family_end(const struct family *family)
{
	kill(family->grandchild, SIGKILL);
	kill(family->child, SIGKILL);
	waitpid(family->child, NULL, 0);
}

static void expect_pids(const struct target_query *query, const pid_t *pids, size_t count)
{
	struct targets targets;
	struct diag diag = { 0 };

	assert_int_equal(targets_choose(query, &targets, &diag), 0);
	assert_int_equal(targets.list.count, count);
	for (size_t i = 0; i < count; i++) {
		bool found = false;
		for (uint32_t k = 0; k < targets.list.count; k++)
			found |= targets.list.items[k].pid == (uint32_t)pids[i];
		assert_true(found);
	}
	targets_done(&targets);
}

static void expect_none(const struct target_query *query, const char *text)
{
	struct targets targets;
	struct diag diag = { 0 };

	assert_int_equal(targets_choose(query, &targets, &diag), -ESRCH);
	assert_string_equal(diag.text, text);
	assert_int_equal(targets.list.count, 0);
	targets_done(&targets);
}

static void test_by_name(void **state)
{
	struct family family;
	char pattern[32];
	const char *names[] = { unique, pattern };

	(void)state;
	family_begin(&family);
	snprintf(pattern, sizeof(pattern), "%s*", unique);
	expect_pids(&(struct target_query){ .names = names, .name_count = 1 }, &family.child, 1);
	expect_pids(&(struct target_query){ .names = names, .name_count = 2 },
		(pid_t[]){ family.child, family.grandchild }, 2);
	/* A process that several options select is returned once. */
	expect_pids(&(struct target_query){ .names = names,
			    .name_count = 1,
			    .pids = (uint32_t[]){ (uint32_t)family.child, (uint32_t)family.child },
			    .pid_count = 2 },
		&family.child, 1);
	family_end(&family);
	char text[64];

	snprintf(text, sizeof(text), "no process is named '%s'", unique);
	expect_none(&(struct target_query){ .names = names, .name_count = 1 }, text);
}

static void test_by_tree(void **state)
{
	struct family family;

	(void)state;
	family_begin(&family);
	expect_pids(&(struct target_query){ .trees = (uint32_t[]){ (uint32_t)family.child },
			    .tree_count = 1 },
		(pid_t[]){ family.child, family.grandchild }, 2);
	expect_pids(&(struct target_query){ .trees = (uint32_t[]){ (uint32_t)family.grandchild },
			    .tree_count = 1 },
		&family.grandchild, 1);
	family_end(&family);
	expect_none(&(struct target_query){ .trees = (uint32_t[]){ 4194305 }, .tree_count = 1 },
		"no process is 4194305 or descends from it");
}

static void test_by_pid(void **state)
{
	struct targets targets;
	struct diag diag = { 0 };
	struct family family;

	(void)state;
	expect_none(&(struct target_query){ .pids = (uint32_t[]){ 4194305 }, .pid_count = 1 },
		"no process has the id 4194305");
	family_begin(&family);
	const struct target_query query = {
		.pids = (uint32_t[]){ (uint32_t)family.child },
		.pid_count = 1,
		.details = TARGET_REACH | TARGET_PLACE,
	};
	assert_int_equal(targets_choose(&query, &targets, &diag), 0);
	const struct target *target = &targets.list.items[0];

	assert_string_equal(target->name, unique);
	assert_string_equal(target->program, unique);
	assert_int_equal(target->parent_pid, getpid());
	assert_int_equal(target->uid, geteuid());
	assert_int_equal(target->kind, DOTNET_NOT);
	assert_false(target->reachable);
	assert_true(target->start_ticks > 0 && target->machine);
	/* A sanitizer starts a thread in every process. */
	assert_in_range(target->thread_count, 1, 2);
	assert_non_null(strstr(target->command_line, "test_targets"));
	struct bytes out = { 0 };
	char subject[64];

	snprintf(subject, sizeof(subject), "%s (%d)", unique, family.child);
	targets_add_subject(&targets, &out);
	assert_string_equal(bytes_z(&out), subject);
	bytes_done(&out);
	targets_done(&targets);
	family_end(&family);
}

static void test_dotnet_only(void **state)
{
	const char *names[] = { unique };
	struct family family;
	char text[64];

	(void)state;
	family_begin(&family);
	snprintf(text, sizeof(text), "no .NET process is named '%s'", unique);
	expect_none(&(struct target_query){ .names = names, .name_count = 1, .dotnet_only = true },
		text);
	/* A process that is selected by id needs no other property. */
	expect_pids(&(struct target_query){ .pids = (uint32_t[]){ (uint32_t)family.child },
			    .pid_count = 1,
			    .dotnet_only = true },
		&family.child, 1);
	family_end(&family);
}

static void test_places_without_such(void **state)
{
	const char *none[] = { "no-such-place-anywhere" };

	(void)state;
	expect_none(&(struct target_query){ .containers = none, .container_count = 1 },
		"no process runs in a container 'no-such-place-anywhere'");
	expect_none(&(struct target_query){ .pods = none, .pod_count = 1 },
		"no process runs in a pod 'no-such-place-anywhere'");
	expect_none(&(struct target_query){ .cgroups = none, .cgroup_count = 1 },
		"no process runs in a control group 'no-such-place-anywhere'");
}

static void test_empty_query(void **state)
{
	const struct target_query query = { 0 };

	(void)state;
	assert_false(target_query_chooses(&query));
	expect_pids(&query, NULL, 0);
}

static void test_stems(void **state)
{
	char out[8];

	(void)state;
	target_file_stem("a b/c", out, sizeof(out));
	assert_string_equal(out, "abc");
	target_file_stem(".hidden", out, sizeof(out));
	assert_string_equal(out, "hidden");
	target_file_stem("../../x.y-z_", out, sizeof(out));
	assert_string_equal(out, "x.y-z_");
	target_file_stem("abcdefghij", out, sizeof(out));
	assert_string_equal(out, "abcdefg");
	target_file_stem("\xc3\xa9", out, sizeof(out));
	assert_string_equal(out, "recordi");
}

int main(void)
{
	snprintf(unique, sizeof(unique), "kin%d", getpid());
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_name),
		cmocka_unit_test(test_by_tree),
		cmocka_unit_test(test_by_pid),
		cmocka_unit_test(test_dotnet_only),
		cmocka_unit_test(test_places_without_such),
		cmocka_unit_test(test_empty_query),
		cmocka_unit_test(test_stems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
