/*
 * A terminal that is drawn on as a whole, and its keys.
 *
 *   terminal_open(&terminal, &out);          switches to the alternate screen; keys arrive one by one, without echo
 *   terminal_size(&columns, &lines);         as often as it may have changed (SIGWINCH)
 *   while ((key = terminal_key(&terminal))) ...
 *   terminal_close(&terminal, &out);         all as it was
 *
 * Keys are read from stdin if it is a terminal and this process is in its foreground; else there
 * are none.
 */
#ifndef SPOOR_CLI_TERMINAL_H
#define SPOOR_CLI_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

struct bytes;

/* Keys that are not characters. */
enum terminal_key {
	KEY_NONE = 0,
	KEY_UP = 0x100,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_ENDED, /* no more keys will follow */
};

struct terminal {
	struct termios saved;
	bool keys;
	unsigned char pending[32];
	unsigned pending_count;
};

/* The escape sequences to write to the screen are appended to `out`. */
void terminal_open(struct terminal *terminal, struct bytes *out);
void terminal_close(struct terminal *terminal, struct bytes *out);

/* Async-signal-safe: restores the terminal. An open terminal does not move in memory. */
void terminal_abandon(void);

void terminal_size(unsigned *ret_columns, unsigned *ret_lines);

/* Never waits. When stdin is readable, call it until it returns KEY_NONE. */
int terminal_key(struct terminal *terminal);

#endif
