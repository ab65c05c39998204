/*
 * Texts that a probe's program could not read, because their page was not in memory: it must not
 * wait for one. They are read again from the process, some 100 ms later, which makes the page present.
 *
 *   struct absent_texts texts = { .fd = -1 };
 *   absent_text_read(&texts, pid, address, time_ns, room);    for each argument without a text
 *   absent_texts_done(&texts);
 *
 * An argument may be a number. It is an address if the process has memory there.
 */
#ifndef SPOOR_RECORDING_ABSENT_TEXT_H
#define SPOOR_RECORDING_ABSENT_TEXT_H

#include <stdint.h>

#include "base/map.h"

#define ABSENT_TEXT_MAX 255u /* bytes of a text that are read */

struct absent_texts {
	int fd; /* the memory of process `pid`; -1: none */
	uint32_t pid;
	struct map nowhere; /* hash of a process and a page without memory, for a second */
	uint64_t nowhere_ns;
};

enum absent_text {
	ABSENT_TEXT_NONE, /* the number is no address */
	ABSENT_TEXT_READ,
	/* the process has ended or may not be inspected, and the number looks like an address */
	ABSENT_TEXT_UNREADABLE,
};

/* `ret_text` ends with a NUL; set if the text was read. `time_ns` is that of the event. */
enum absent_text absent_text_read(struct absent_texts *texts, uint32_t pid, uint64_t address,
	uint64_t time_ns, char ret_text[ABSENT_TEXT_MAX + 1]);

void absent_texts_done(struct absent_texts *texts);

#endif
