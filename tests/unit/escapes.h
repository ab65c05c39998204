/*
 * Texts that a terminal would interpret as commands. A test poisons the texts of a table in place,
 * with the same indexes and lengths, and checks all output made from them.
 */
#ifndef SPOOR_TESTS_UNIT_ESCAPES_H
#define SPOOR_TESTS_UNIT_ESCAPES_H

#include "base/bytes.h"
#include "base/strtab.h"
#include "base/text.h"

/*
 * ESC, CSI as a C1 character, a line end, a change of the writing direction, and a byte of invalid
 * UTF-8.
 */
static inline void poison_text(char *text, size_t len)
{
	static const char *const poisons[] = { "\x1b[2J", "\xc2\x9b", "\n\r", "\xe2\x80\xae",
		"\x9b", "\x7f" };
	size_t at = 1; /* the first character decides what a text is: "/", "[", "(" */

	for (size_t i = 0; i < sizeof(poisons) / sizeof(poisons[0]); i++) {
		size_t size = strlen(poisons[i]);
		if (at + size > len)
			continue;
		memcpy(text + at, poisons[i], size);
		at += size;
	}
}

static inline void poison_table(struct strtab *table)
{
	for (uint32_t i = 0; i < table->entries.count; i++)
		poison_text((char *)(uintptr_t)table->entries.items[i].text,
			table->entries.items[i].len);
}

/* Requires that the output is valid UTF-8 of printable characters and line ends. */
static inline void assert_harmless(struct bytes *out, const char *what)
{
	size_t at = 0;

	assert_false(out->failed);
	if (!out->len)
		fail_msg("%s: nothing was written", what);
	while (at < out->len) {
		size_t before = at;
		uint32_t c = text_next_char((const char *)out->data, out->len, &at);
		if ((c == 0xfffd && at - before == 1) || (text_is_control(c) && c != '\n'))
			fail_msg("%s: U+%04X at %zu: %.*s", what, (unsigned)c, before,
				(int)(before < 40 ? before : 40),
				(const char *)out->data + before - (before < 40 ? before : 40));
	}
	bytes_reset(out);
}

#endif
