/* See terminal.h. */
#include "cli/terminal.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/poll_set.h"

#define SCREEN_OPEN  "\x1b[?1049h\x1b[?25l\x1b[H\x1b[J" /* another screen, no cursor, empty */
#define SCREEN_CLOSE "\x1b[?25h\x1b[?1049l"

/* Of terminal_abandon(): a signal handler reaches static data only. */
static struct terminal *volatile opened;

void terminal_abandon(void)
{
	if (!opened)
		return;
	if (poll_one(STDOUT_FILENO, POLLOUT,
		    0)) /* a terminal that was stopped with Ctrl-S would block */
		/* a failure means that the terminal was closed; so below */
		(void)!write(STDOUT_FILENO, SCREEN_CLOSE, sizeof(SCREEN_CLOSE) - 1);
	if (opened->keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &opened->saved);
}

void terminal_open(struct terminal *terminal, struct bytes *out)
{
	*terminal = (struct terminal){ .keys = false };
	opened = terminal;
	/* In the background a change of the terminal would stop us. */
	if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
		tcgetattr(STDIN_FILENO, &terminal->saved) == 0) {
		struct termios raw = terminal->saved;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		terminal->keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
	}
	bytes_text(out, SCREEN_OPEN);
}

void terminal_close(struct terminal *terminal, struct bytes *out)
{
	bytes_text(out, SCREEN_CLOSE);
	opened = NULL;
	if (terminal->keys)
		/* a failure means that the terminal was closed */
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal->saved);
	terminal->keys = false;
}

void terminal_size(unsigned *ret_columns, unsigned *ret_lines)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
		size = (struct winsize){ .ws_col = 80, .ws_row = 24 };
	*ret_columns = size.ws_col;
	*ret_lines = size.ws_row;
}

static void drop(struct terminal *terminal, unsigned count)
{
	terminal->pending_count -= count;
	memmove(terminal->pending, terminal->pending + count, terminal->pending_count);
}

int terminal_key(struct terminal *terminal)
{
	static const struct {
		const char *bytes;
		int key;
	} keys[] = {
		{ "\x1b[A", KEY_UP },
		{ "\x1b[B", KEY_DOWN },
		{ "\x1b[C", KEY_RIGHT },
		{ "\x1b[D", KEY_LEFT },
		{ "\x1bOA", KEY_UP },
		{ "\x1bOB", KEY_DOWN },
		{ "\x1bOC", KEY_RIGHT },
		{ "\x1bOD", KEY_LEFT },
		{ "\x1b[5~", KEY_PAGE_UP },
		{ "\x1b[6~", KEY_PAGE_DOWN },
		{ "\x1b[H", KEY_HOME },
		{ "\x1b[1~", KEY_HOME },
	};

	if (!terminal->keys)
		return KEY_NONE;
	if (terminal->pending_count < sizeof(terminal->pending) &&
		poll_one(STDIN_FILENO, POLLIN, 0)) {
		ssize_t n = read(STDIN_FILENO, terminal->pending + terminal->pending_count,
			sizeof(terminal->pending) - terminal->pending_count);
		if (n <= 0 && !terminal->pending_count)
			return KEY_ENDED;
		terminal->pending_count += n > 0 ? (unsigned)n : 0;
	}
	if (!terminal->pending_count)
		return KEY_NONE;
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		unsigned len = (unsigned)strlen(keys[i].bytes);
		if (terminal->pending_count >= len &&
			memcmp(terminal->pending, keys[i].bytes, len) == 0) {
			drop(terminal, len);
			return keys[i].key;
		}
	}
	int key = terminal->pending[0];

	drop(terminal, 1);
	return key;
}
