/*
 * container.c: reads the configuration files of container runtimes: as they write them, truncated
 * and broken.
 */
#include "unit/test.h"

#include <sys/stat.h>

#include "machine/container.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char root[] = "/tmp/spoor-container-XXXXXX";

static void write_file(const char *path, const char *text)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(whole, 0700);
		*slash = '/';
	}
	FILE *file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool note(void *user, const char *name)
{
	char *names = user;

	snprintf(names + strlen(names), 256 - strlen(names), "[%s]", name);
	return strcmp(name, "stop") == 0;
}

static void expect(const char *expected)
{
	char names[256] = "";

	(void)container_names(root, ID, note, names);
	assert_string_equal(names, expected);
}

static void test_names(void **state)
{
	char names[256] = "";

	(void)state;
	expect("");
	write_file("/var/lib/docker/containers/" ID "/config.v2.json",
		"{\"StreamConfig\":{},\"ID\":\"" ID
		"\",\"MountPoints\":{\"/d\":{\"Name\":\"volume\"}},\"Name\":\"/web\"}");
	expect("[web]");
	write_file("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
		"{\"annotations\": { \"io.kubernetes.cri.container-name\" : \"shop\", \"x\": 1 }}");
	expect("[web][shop]");
	write_file("/var/lib/containers/storage/overlay-containers/containers.json",
		"[{\"id\":\"" ID "\"},{\"id\":\"ffff\",\"names\":[\"other\"]},{\"id\":\"" ID
		"\",\"names\":[\"a\\/b\", \"k8s_b\"],\"image\":\"x\"}]");
	expect("[web][shop][a/b][k8s_b]");
	write_file("/var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":\"/stop\"}");
	assert_true(container_names(root, ID, note, names));
	assert_string_equal(names, "[stop]");
}

/* Any prefix of such a file is read up to its end and no further. */
static void test_cut(void **state)
{
	static const char json[] =
		"{\"k\" : \"k\", \"k\":[ \"a\\\"b\\\\\"], \"k\":5, \"k\":\"last\"}";

	(void)state;
	for (size_t len = 0; len < sizeof(json); len++) {
		char text[CONTAINER_NAME_ROOM];
		char *exact = malloc(len + 1);
		size_t at = 0;
		unsigned found = 0;
		memcpy(exact, json, len);
		while (container_find_text(exact, len, &at, "k", text))
			found++;
		assert_true(found <= 3 && at <= len);
		assert_true(len < sizeof(json) - 1 || (found == 3 && strcmp(text, "last") == 0));
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_cut),
	};
	char remove[64];

	if (!mkdtemp(root))
		return 1;
	int failed = cmocka_run_group_tests_name("container", tests, NULL, NULL);

	snprintf(remove, sizeof(remove), "rm -rf %s", root);
	return system(remove) != 0 || failed;
}
