/*
 * Servers of symbol files, and the addresses of a file at each.
 *
 *   symbol_servers_add(&servers, "microsoft https://debuginfod.example.org")
 *   symbol_servers_read_settings(&servers, &diag)       or from the environment, else the user's file
 *   for (uint32_t i = 0; symbol_server_url(server, "libcoreclr.so", build_id, i, &url); i++) ...
 *
 * Known layouts: Microsoft's symbol server ("_.debug/elf-buildid-sym-ID/_.debug" and
 * "FILE/elf-buildid-ID/FILE"; "NAME.pdb/GUIDFFFFFFFF/NAME.pdb") and debuginfod ("buildid/ID/debuginfo" and "buildid/ID/executable").
 */
#ifndef SPOOR_SYMBOLS_SYMBOL_SERVERS_H
#define SPOOR_SYMBOLS_SYMBOL_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct bytes;
struct diag;

#define SYMBOL_SERVERS_MAX 32u

/* The layouts that a server may have, as bits. */
enum symbol_layout {
	SYMBOL_LAYOUT_MICROSOFT = 1 << 0,
	SYMBOL_LAYOUT_DEBUGINFOD = 1 << 1,
};

/* After so many failures in a row a server gets no further requests. */
#define SYMBOL_SERVER_FAILURES_MAX 2u

struct symbol_server {
	char *url; /* owned; without a slash at its end */
	unsigned layouts;
	unsigned failures; /* since its last answer */
};

struct symbol_servers {
	VEC(struct symbol_server) list;
};

/*
 * Adds servers from a text with blanks between them: URLs, "microsoft", "debuginfod" (those of
 * DEBUGINFOD_URLS). -EINVAL: no http or https URL, or too many.
 */
int symbol_servers_add(struct symbol_servers *servers, const char *text, struct diag *diag);

/*
 * Adds the servers of SPOOR_SYMBOLS; without it those of $XDG_CONFIG_HOME/spoor/symbols.conf
 * (~/.config/...), else of /etc/spoor/symbols.conf: one text for symbol_servers_add() a line, "#"
 * begins a comment. 1: there are such settings, which may name no server; 0: there are none. A file
 * that others may write is refused: -EPERM.
 */
int symbol_servers_read_settings(struct symbol_servers *servers, struct diag *diag);

/* The server's address number `i`, the most likely first; false: no more. Replaces *url. */
bool symbol_server_url(const struct symbol_server *server, const char *image, const char *build_id,
	uint32_t i, struct bytes *url);

void symbol_servers_done(struct symbol_servers *servers);

#endif
