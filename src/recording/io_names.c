/* See io_names.h. */
#include "recording/io_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "machine/descriptor_link.h"
#include "perf/io_probe.h"

static const struct {
	enum io_thing thing;
	const char *several; /* the text if the descriptor referred to more than one */
} classes[IO_CLASSES] = {
	[IO_CLASS_NONE] = { IO_THING_UNKNOWN, "(several)" },
	[IO_CLASS_FILE] = { IO_THING_FILE, "(several files)" },
	[IO_CLASS_SOCKET] = { IO_THING_SOCKET, "(several sockets)" },
	[IO_CLASS_ACCEPTED] = { IO_THING_SOCKET, "(several accepted connections)" },
	[IO_CLASS_PIPE] = { IO_THING_PIPE, "(several pipes)" },
	[IO_CLASS_OTHER] = { IO_THING_OTHER, "(several)" },
	[IO_CLASS_COPIED] = { IO_THING_UNKNOWN, "(several)" },
};

/* ---- addresses ---- */

static void add_unix(struct bytes *out, const char *path, size_t len)
{
	bytes_text(out, "unix:");
	if (len && !path[0]) { /* an abstract one */
		bytes_text(out, "@");
		bytes_add(out, path + 1, len - 1);
	} else {
		bytes_add(out, path, strnlen(path, len));
	}
}

/* "127.0.0.1:5432"; nothing for an address of another family, or one that is cut. */
static void add_address(struct bytes *out, const char *data, size_t len)
{
	struct sockaddr_storage storage = { 0 };
	char text[INET6_ADDRSTRLEN];

	memcpy(&storage, data, len < sizeof(storage) ? len : sizeof(storage));
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&storage;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&storage;
	size_t path_at = offsetof(struct sockaddr_un, sun_path);

	if (storage.ss_family == AF_INET && len >= sizeof(*v4)) {
		bytes_printf(out, "%s:%u",
			inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)) ? text : "",
			ntohs(v4->sin_port));
	} else if (storage.ss_family == AF_INET6 &&
		   len >= offsetof(struct sockaddr_in6, sin6_scope_id)) {
		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
			bytes_printf(out, "%s:%u",
				inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, sizeof(text))
					? text
					: "",
				ntohs(v6->sin6_port));
		else
			bytes_printf(out, "[%s]:%u",
				inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)) ? text : "",
				ntohs(v6->sin6_port));
	} else if (storage.ss_family == AF_UNIX && len > path_at) {
		add_unix(out, data + path_at, len - path_at);
	}
}

void io_names_learn(struct io_names *names, uint32_t number, const struct io_name *name)
{
	struct bytes text = { 0 };

	if (!names->numbers)
		names->numbers = calloc(IO_NAMES_KEPT, sizeof(names->numbers[0]));
	if (!names->numbers)
		return;
	if (name->is_address)
		add_address(&text, name->text, name->len);
	else
		bytes_add(&text, name->text, name->len);
	struct io_known_name *slot = &names->numbers[number % IO_NAMES_KEPT];
	free(slot->text);
	slot->text =
		text.failed ? NULL : strndup(text.len ? (const char *)text.data : "", text.len);
	slot->number = slot->text ? number : 0;
	slot->is_address = name->is_address;
	bytes_done(&text);
}

static const struct io_known_name *find_number(const struct io_names *names, uint32_t number)
{
	const struct io_known_name *slot =
		names->numbers ? &names->numbers[number % IO_NAMES_KEPT] : NULL;

	return slot && number && slot->number == number ? slot : NULL;
}

/* ---- links ---- */

enum io_thing io_names_thing_of_link(const char *link)
{
	return link[0] == '/'                          ? IO_THING_FILE
	       : strncmp(link, "socket:", 7) == 0      ? IO_THING_SOCKET
	       : strncmp(link, "pipe:", 5) == 0        ? IO_THING_PIPE
	       : strncmp(link, "anon_inode:", 11) == 0 ? IO_THING_OTHER
						       : IO_THING_UNKNOWN;
}

static void forget_links(struct io_names *names)
{
	vec_each(link, &names->links)
		free(link->text);
	vec_reset(&names->links);
	map_reset(&names->link_index);
}

static struct io_known_link *find_link(struct io_names *names, uint64_t key)
{
	uint32_t at = map_get(&names->link_index, key);

	return at ? &names->links.items[at - 1] : NULL;
}

static void keep_link(struct io_names *names, uint64_t key, const char *text)
{
	struct io_known_link *known = find_link(names, key);
	char *copy = strdup(text);

	if (!copy)
		return;
	if (known) {
		free(known->text);
		known->text = copy;
		return;
	}
	if (names->links.count >= IO_LINKS_KEPT)
		forget_links(names);
	struct io_known_link fresh = { .key = key, .text = copy };
	if (!vec_add(&names->links, fresh))
		free(copy);
	else if (!map_put(&names->link_index, key, names->links.count))
		free(vec_last(&names->links)->text), names->links.count--;
}

/*
 * A descriptor that was open before the recording. What its link said before counts if it is closed now; if
 * the two differ, the calls may have been of either.
 */
static void read_old(struct io_names *names, const struct io_probe *probe, const struct io_sum *sum)
{
	uint64_t key = (uint64_t)sum->pid << 32 | (uint32_t)sum->descriptor;
	const struct io_known_link *before = find_link(names, key);
	const char *link;
	size_t len;
	bool now = sum->instance == 0 &&
		   descriptor_link_read(names->proc, sum->pid, sum->descriptor, &link, &len) == 0 &&
		   io_probe_is_current(probe, sum);

	if (now && before && strcmp(before->text, link) != 0)
		bytes_text(&names->text, classes[IO_CLASS_NONE].several);
	else if (now || before)
		bytes_text(&names->text, now ? link : before->text);
	if (now)
		keep_link(names, key, link);
}

enum io_thing io_names_of(struct io_names *names, const struct io_probe *probe,
	const struct io_sum *sum, const char **ret_text)
{
	const struct io_known_name *known = find_number(names, sum->name);
	enum io_thing thing = sum->name < IO_CLASSES ? classes[sum->name].thing : IO_THING_FILE;
	const char *link;
	size_t len;

	bytes_reset(&names->text);
	*ret_text = "";
	if (known) {
		*ret_text = known->text;
		return known->is_address ? IO_THING_SOCKET : IO_THING_FILE;
	}
	if (sum->descriptor < 0 || sum->name >= IO_CLASSES)
		return thing;
	if (sum->instance == IO_PROBE_MIXED)
		bytes_text(&names->text, classes[sum->name].several);
	else if (sum->name == IO_CLASS_NONE)
		read_old(names, probe, sum);
	else if (descriptor_link_read(names->proc, sum->pid, sum->descriptor, &link, &len) == 0 &&
		 io_probe_is_current(probe, sum))
		bytes_text(&names->text, link);
	if (names->text.failed || !names->text.len)
		return thing;
	*ret_text = bytes_z(&names->text);
	enum io_thing by_link = io_names_thing_of_link(*ret_text);
	return by_link == IO_THING_UNKNOWN ? thing : by_link;
}

size_t io_names_size_bytes(const struct io_names *names)
{
	return (names->numbers ? IO_NAMES_KEPT * sizeof(names->numbers[0]) : 0) +
	       names->links.capacity * sizeof(struct io_known_link) +
	       map_size_bytes(&names->link_index);
}

void io_names_done(struct io_names *names)
{
	for (uint32_t i = 0; names->numbers && i < IO_NAMES_KEPT; i++)
		free(names->numbers[i].text);
	free(names->numbers);
	forget_links(names);
	vec_done(&names->links);
	map_done(&names->link_index);
	bytes_done(&names->text);
}
