/* See absent_text.h. */
#include "recording/absent_text.h"

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "machine/target_root.h"

#define PAGE        UINT64_C(4096) /* the smallest one */
#define ADDRESS_MIN UINT64_C(65536)
#define ADDRESS_MAX (UINT64_C(1) << 56)
#define NOWHERE_MAX 4096u
#define NOWHERE_NS  UINT64_C(1000000000)
/* Where programs that can be placed anywhere, their libraries and stacks are: x86-64 and arm64. */
#define USUAL_BEGIN (UINT64_C(1) << 46)
#define USUAL_END   (UINT64_C(1) << 48)

static enum absent_text unknown(uint64_t address)
{
	return address >= USUAL_BEGIN && address < USUAL_END ? ABSENT_TEXT_UNREADABLE
							     : ABSENT_TEXT_NONE;
}

static void memory_close(struct absent_texts *texts)
{
	closep(&texts->fd);
	texts->fd = -1;
}

/* As target_memory_read(); 0: the process has ended, or it may not be inspected. */
static ssize_t memory_read(struct absent_texts *texts, uint32_t pid, uint64_t address, void *buffer,
	size_t size)
{
	/* A descriptor from before the process's exec reads nothing any more. */
	for (unsigned tries = 0; tries < 2; tries++) {
		bool is_fresh = texts->fd < 0 || texts->pid != pid;
		if (is_fresh) {
			memory_close(texts);
			texts->pid = pid;
			if (target_memory_open(pid, &texts->fd) < 0)
				return 0;
		}
		ssize_t n = target_memory_read(texts->fd, address, buffer, size);
		if (n != 0 || is_fresh)
			return n;
		memory_close(texts);
	}
	return 0;
}

enum absent_text absent_text_read(struct absent_texts *texts, uint32_t pid, uint64_t address,
	uint64_t time_ns, char ret_text[ABSENT_TEXT_MAX + 1])
{
	const uint64_t page = hash_u64((uint64_t)pid << 32 ^ hash_u64(address / PAGE));
	size_t first = PAGE - address % PAGE;

	if (address < ADDRESS_MIN || address >= ADDRESS_MAX)
		return ABSENT_TEXT_NONE;
	if (time_ns > texts->nowhere_ns + NOWHERE_NS || texts->nowhere.count >= NOWHERE_MAX) {
		map_reset(&texts->nowhere);
		texts->nowhere_ns = time_ns;
	}
	if (map_get(&texts->nowhere, page))
		return ABSENT_TEXT_NONE;
	/* The memory may end with the page. */
	if (first > ABSENT_TEXT_MAX)
		first = ABSENT_TEXT_MAX;
	ssize_t n = memory_read(texts, pid, address, ret_text, first);
	if (n == 0)
		return unknown(address);
	if (n < 0) {
		/* without memory it is read again */
		(void)map_put(&texts->nowhere, page, 1);
		return ABSENT_TEXT_NONE;
	}
	size_t len = (size_t)n;
	if (len == first && len < ABSENT_TEXT_MAX && !memchr(ret_text, '\0', len)) {
		n = memory_read(texts, pid, address + len, ret_text + len, ABSENT_TEXT_MAX - len);
		len += n > 0 ? (size_t)n : 0;
	}
	ret_text[len] = '\0';
	return ABSENT_TEXT_READ;
}

void absent_texts_done(struct absent_texts *texts)
{
	memory_close(texts);
	map_done(&texts->nowhere);
}
