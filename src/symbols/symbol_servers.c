/* See symbol_servers.h. */
#include "symbols/symbol_servers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/text.h"

#define MICROSOFT_URL "https://msdl.microsoft.com/download/symbols"
#define SETTINGS_MAX  (64u << 10)
#define BLANKS        " \t\r\n"

static int refuse_server(const char *url, size_t len, struct diag *diag)
{
	cleanup(bytes_done) struct bytes shown = { 0 };

	text_add_url(&shown, url, len);
	return diag_set(diag, -EINVAL,
		"'%s' is no symbol server: a URL with http or https is needed, 'microsoft' or 'debuginfod'",
		bytes_z(&shown));
}

static int add_server(struct symbol_servers *servers, const char *url, size_t len, unsigned layouts,
	struct diag *diag)
{
	if (servers->list.count >= SYMBOL_SERVERS_MAX)
		return diag_set(diag, -EINVAL, "more than %u symbol servers", SYMBOL_SERVERS_MAX);
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return refuse_server(url, len < 200 ? len : 200, diag);
	while (len && url[len - 1] == '/')
		len--;
	char *copy = strndup(url, len);
	if (copy && vec_add(&servers->list,
			    ((struct symbol_server){ .url = copy, .layouts = layouts })))
		return 0;
	free(copy);
	return diag_set(diag, -ENOMEM, "no memory for symbol servers");
}

static int add_word(struct symbol_servers *servers, const char *word, size_t len,
	struct diag *diag);

static int add_words(struct symbol_servers *servers, const char *text, unsigned layouts,
	struct diag *diag)
{
	int result = 0;

	for (const char *at = text + strspn(text, BLANKS); *at && result == 0;
		at += strspn(at, BLANKS)) {
		size_t len = strcspn(at, BLANKS);
		result = layouts ? add_server(servers, at, len, layouts, diag)
				 : add_word(servers, at, len, diag);
		at += len;
	}
	return result;
}

static int add_word(struct symbol_servers *servers, const char *word, size_t len, struct diag *diag)
{
	static const char microsoft[] = "microsoft";
	static const char debuginfod[] = "debuginfod";
	const char *urls = secure_getenv("DEBUGINFOD_URLS");

	if (len == strlen(microsoft) && memcmp(word, microsoft, len) == 0)
		return add_server(servers, MICROSOFT_URL, strlen(MICROSOFT_URL),
			SYMBOL_LAYOUT_MICROSOFT, diag);
	if (len == strlen(debuginfod) && memcmp(word, debuginfod, len) == 0)
		return urls ? add_words(servers, urls, SYMBOL_LAYOUT_DEBUGINFOD, diag) : 0;
	return add_server(servers, word, len, SYMBOL_LAYOUT_MICROSOFT | SYMBOL_LAYOUT_DEBUGINFOD,
		diag);
}

int symbol_servers_add(struct symbol_servers *servers, const char *text, struct diag *diag)
{
	return add_words(servers, text, 0, diag);
}

/* 0 also if there is no such file. *ret_found: there is one. */
static int read_file(struct symbol_servers *servers, const char *path, bool *ret_found,
	struct diag *diag)
{
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	cleanup(freep) uint8_t *data = NULL;
	struct input in;
	struct stat st;
	size_t size;

	*ret_found = fd >= 0;
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : diag_set(diag, -errno, "cannot read '%s': %m", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & 022) ||
		(st.st_uid != geteuid() && st.st_uid != 0))
		return diag_set(diag, -EPERM,
			"'%s' is not used: another user owns it or may write it", path);
	int result = input_from_fd(&in, TAKE_FD(fd), path);
	if (result < 0)
		return diag_set(diag, result, "cannot read '%s': %m", path);
	result = input_read_all(&in, SETTINGS_MAX, &data, &size, diag);
	input_close(&in);
	char *rest = (char *)data;
	for (char *line; result == 0 && (line = strsep(&rest, "\n"));) {
		line[strcspn(line, "#")] = 0;
		result = symbol_servers_add(servers, line, diag);
	}
	if (result < 0)
		diag_context(diag, "in '%s'", path);
	return result;
}

int symbol_servers_read_settings(struct symbol_servers *servers, struct diag *diag)
{
	const char *chosen = secure_getenv("SPOOR_SYMBOLS");
	const char *xdg = secure_getenv("XDG_CONFIG_HOME");
	const char *home = secure_getenv("HOME");
	bool found = false;
	char path[4096];
	int result = 0;
	int len = 0;

	if (chosen) {
		result = symbol_servers_add(servers, chosen, diag);
		return result < 0 ? result : 1;
	}
	if (xdg && *xdg == '/')
		len = snprintf(path, sizeof(path), "%s/spoor/symbols.conf", xdg);
	else if (home && *home == '/')
		len = snprintf(path, sizeof(path), "%s/.config/spoor/symbols.conf", home);
	if (len > 0 && (size_t)len < sizeof(path))
		result = read_file(servers, path, &found, diag);
	if (!found && result == 0)
		result = read_file(servers, "/etc/spoor/symbols.conf", &found, diag);
	return result < 0 ? result : found;
}

/* A name from a recording may have any bytes. */
static void add_escaped(struct bytes *url, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr("-._~+", c);
		bytes_printf(url, plain ? "%c" : "%%%02X", c);
	}
}

/*
 * A portable PDB: "NAME/GUID" "FFFFFFFF/NAME". The GUID's first three numbers are little-endian in the
 * file, and so in `key`. The name is in lower case, as servers must expect it; then as it is.
 */
static bool pdb_url(const struct symbol_server *server, const char *name, const char *key,
	uint32_t i, struct bytes *url)
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	cleanup(bytes_done) struct bytes shown = { 0 };
	bool has_upper = false;

	for (const char *c = name; *c; c++) {
		bool upper = *c >= 'A' && *c <= 'Z';
		has_upper |= upper;
		bytes_u8(&shown, (uint8_t)(upper && i == 0 ? *c + 32 : *c));
	}
	if (!(server->layouts & SYMBOL_LAYOUT_MICROSOFT) || i > has_upper || strlen(key) != 32)
		return false;
	bytes_reset(url);
	bytes_printf(url, "%s/", server->url);
	add_escaped(url, bytes_z(&shown));
	bytes_text(url, "/");
	for (size_t b = 0; b < sizeof(order); b++)
		bytes_add(url, key + 2 * (size_t)order[b], 2);
	bytes_text(url, "FFFFFFFF/");
	add_escaped(url, bytes_z(&shown));
	return !url->failed;
}

bool symbol_server_url(const struct symbol_server *server, const char *image, const char *build_id,
	uint32_t i, struct bytes *url)
{
	static const struct {
		unsigned layout;
		bool has_image; /* the name of the image before and after the build id */
		const char *before;
		const char *after;
	} forms[] = {
		{ SYMBOL_LAYOUT_MICROSOFT, false, "_.debug/elf-buildid-sym-", "/_.debug" },
		{ SYMBOL_LAYOUT_DEBUGINFOD, false, "buildid/", "/debuginfo" },
		{ SYMBOL_LAYOUT_MICROSOFT, true, "/elf-buildid-", "/" },
		{ SYMBOL_LAYOUT_DEBUGINFOD, false, "buildid/", "/executable" },
	};

	if (text_ends_with(image, ".pdb"))
		return pdb_url(server, image, build_id, i, url);
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		if (!(server->layouts & forms[f].layout) || i-- > 0)
			continue;
		bytes_reset(url);
		bytes_printf(url, "%s/", server->url);
		if (forms[f].has_image)
			add_escaped(url, image);
		bytes_printf(url, "%s%s%s", forms[f].before, build_id, forms[f].after);
		if (forms[f].has_image)
			add_escaped(url, image);
		return !url->failed;
	}
	return false;
}

void symbol_servers_done(struct symbol_servers *servers)
{
	for (uint32_t i = 0; i < servers->list.count; i++)
		free(servers->list.items[i].url);
	vec_done(&servers->list);
}
