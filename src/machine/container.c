/* See container.h. */
#include "machine/container.h"

#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/input.h"
#include "base/text.h"

#define FILE_MAX  (4u << 20)
#define PATH_ROOM 512u

bool container_has_host_name(uint32_t pid)
{
	char path[64];
	struct stat its, ours;

	text_set(path, "/proc/%u/ns/uts", pid);
	return stat(path, &its) == 0 && stat("/proc/self/ns/uts", &ours) == 0 &&
	       (its.st_ino != ours.st_ino || its.st_dev != ours.st_dev);
}

struct host_name {
	int namespace_fd;
	char *name;
	bool found;
};

static void *read_host_name(void *context)
{
	struct host_name *host = context;
	struct utsname facts;

	if (setns(host->namespace_fd, CLONE_NEWUTS) == 0 && uname(&facts) == 0) {
		/* 64 characters at most */
		(void)snprintf(host->name, CONTAINER_NAME_ROOM, "%s", facts.nodename);
		host->found = true;
	}
	return NULL;
}

bool container_host_name(uint32_t pid, char ret_name[CONTAINER_NAME_ROOM])
{
	char path[64];
	struct host_name host = { .name = ret_name };
	pthread_t thread;

	text_set(path, "/proc/%u/ns/uts", pid);
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	host.namespace_fd = fd;
	if (fd < 0 || pthread_create(&thread, NULL, read_host_name, &host) != 0)
		return false;
	return pthread_join(thread, NULL) == 0 && host.found;
}

static bool find(const char *text, size_t len, size_t *at, const char *wanted, size_t wanted_len)
{
	const char *found = *at < len ? memmem(text + *at, len - *at, wanted, wanted_len) : NULL;

	if (!found)
		return false;
	*at = (size_t)(found - text) + wanted_len;
	return true;
}

static void skip_blanks(const char *text, size_t len, size_t *at)
{
	while (*at < len &&
		(text[*at] == ' ' || text[*at] == '\t' || text[*at] == '\n' || text[*at] == '\r'))
		(*at)++;
}

bool container_find_text(const char *json, size_t len, size_t *at, const char *key,
	char ret_text[CONTAINER_NAME_ROOM])
{
	char quoted[128];
	int quoted_len = snprintf(quoted, sizeof(quoted), "\"%s\"", key);
	size_t used = 0;

	for (;;) {
		if (!find(json, len, at, quoted, (size_t)quoted_len))
			return false;
		skip_blanks(json, len, at);
		if (*at >= len || json[*at] != ':')
			continue; /* this is a value with the same text as the key */
		(*at)++;
		skip_blanks(json, len, at);
		if (*at < len && json[*at] == '[') {
			(*at)++;
			skip_blanks(json, len, at);
		}
		if (*at < len && json[*at] == '"')
			break;
	}
	for ((*at)++; *at < len && json[*at] != '"'; (*at)++) {
		if (json[*at] == '\\' && *at + 1 < len && strchr("\"/\\", json[*at + 1]))
			(*at)++;
		if (used + 1 < CONTAINER_NAME_ROOM)
			ret_text[used++] = json[*at];
	}
	ret_text[used] = '\0';
	return *at < len;
}

/* A small file, NUL-terminated; NULL if it does not exist or may not be read. */
static char *read_file(const char *path, size_t *ret_len)
{
	struct input in;
	uint8_t *data;

	if (input_open(&in, path, NULL) < 0)
		return NULL;
	int r = input_read_all(&in, FILE_MAX, &data, ret_len, NULL);
	input_close(&in);
	return r < 0 ? NULL : (char *)data;
}

/* docker: {"Name":"/web", ...} */
static bool docker_name(const char *root, const char *id, bool (*each)(void *, const char *),
	void *user)
{
	char path[PATH_ROOM];
	char name[CONTAINER_NAME_ROOM];
	size_t len;
	size_t at = 0;

	text_set(path, "%s/var/lib/docker/containers/%s/config.v2.json", root,
		id); /* a truncated path does not exist */
	cleanup(freep) char *json = read_file(path, &len);

	/* Volumes and networks have a Name too; only the container's begins with a slash. */
	while (json && container_find_text(json, len, &at, "Name", name))
		if (name[0] == '/' && each(user, name + 1))
			return true;
	return false;
}

/* containerd: the annotations of the bundle. */
static bool containerd_name(const char *root, const char *id, bool (*each)(void *, const char *),
	void *user)
{
	static const char *const keys[] = { "io.kubernetes.cri.container-name", "nerdctl/name",
		"io.kubernetes.container.name" };
	char pattern[PATH_ROOM];
	glob_t found = { 0 };
	bool done = false;

	text_set(pattern, "%s/run/containerd/io.containerd.runtime.v2.task/*/%s/config.json", root,
		id); /* likewise */
	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc && !done; i++) {
			size_t len;
			cleanup(freep) char *json = read_file(found.gl_pathv[i], &len);
			for (size_t k = 0; json && k < sizeof(keys) / sizeof(keys[0]) && !done;
				k++) {
				char name[CONTAINER_NAME_ROOM];
				size_t at = 0;
				done = container_find_text(json, len, &at, keys[k], name) &&
				       each(user, name);
			}
		}
	}
	globfree(&found);
	return done;
}

/* podman and cri-o: [{"id":"...","names":["web", "web_default_0"], ...}] */
static bool podman_name(const char *root, const char *id, bool (*each)(void *, const char *),
	void *user)
{
	char path[PATH_ROOM];
	char text[CONTAINER_NAME_ROOM];
	size_t len;
	size_t at = 0;

	text_set(path, "%s/var/lib/containers/storage/overlay-containers/containers.json", root);
	cleanup(freep) char *json = read_file(path, &len);

	while (json && container_find_text(json, len, &at, "id", text)) {
		char next[CONTAINER_NAME_ROOM];
		size_t end_at = at;
		/* This container has no names: the names that follow belong to the next one. */
		if (!container_find_text(json, len, &end_at, "id", next))
			end_at = len;
		if (strcmp(text, id) != 0 || !container_find_text(json, end_at, &at, "names", text))
			continue;
		for (;;) {
			if (each(user, text))
				return true;
			/* The next element of the list. */
			at++;
			skip_blanks(json, len, &at);
			if (at >= len || json[at] != ',')
				break;
			at++;
			skip_blanks(json, len, &at);
			size_t end = at + 1;
			while (end < len && json[end] != '"')
				end++;
			if (at >= len || json[at] != '"' || end >= len || end - at > sizeof(text))
				break;
			memcpy(text, json + at + 1, end - at - 1);
			text[end - at - 1] = '\0';
			at = end;
		}
	}
	return false;
}

bool container_names(const char *root, const char *id, bool (*each)(void *user, const char *name),
	void *user)
{
	return docker_name(root, id, each, user) || containerd_name(root, id, each, user) ||
	       podman_name(root, id, each, user);
}
