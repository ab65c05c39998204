/* See clr_memory.h. */
#include "code/clr_memory.h"

#include <string.h>

#include "base/cursor.h"
#include "base/map.h"
#include "base/text.h"
#include "base/utf8.h"

#define TEXT_PIECE 256u
#define MALFORMED  0xfffdu /* of one byte: text_next_char() */

void clr_memory_init(struct clr_memory *memory, clr_memory_read_fn *read, void *context,
	struct clr_pages *pages)
{
	*memory = (struct clr_memory){ .read = read, .context = context, .pages = pages };
	if (pages)
		memory->owner = ++pages->last_owner;
}

void clr_pages_pass(struct clr_pages *pages)
{
	memset(pages->owner, 0, sizeof(pages->owner));
}

void clr_memory_refresh(struct clr_memory *memory)
{
	for (unsigned i = 0; memory->pages && i < CLR_PAGES; i++)
		if (memory->pages->owner[i] == memory->owner)
			memory->pages->owner[i] = 0;
}

static bool is_readable(uint64_t address, size_t size)
{
	return address >= CLR_ADDRESS_MIN && address <= CLR_ADDRESS_MAX &&
	       size <= CLR_ADDRESS_MAX - address;
}

bool clr_memory_bytes_now(struct clr_memory *memory, uint64_t address, void *out, size_t size)
{
	if (!memory->failed && is_readable(address, size)) {
		memory->read_count++;
		if (memory->read(memory->context, address, out, size) == (int64_t)size)
			return true;
	}
	memory->failed = true;
	return false;
}

/* The kept page at this address, read if needed; NULL if it cannot be read. */
static const uint8_t *page_at(struct clr_memory *memory, uint64_t address)
{
	struct clr_pages *pages = memory->pages;
	unsigned slot = (unsigned)(hash_u64(address ^ memory->owner) % CLR_PAGES);

	if (pages->owner[slot] == memory->owner && pages->address[slot] == address)
		return pages->bytes[slot];
	pages->owner[slot] = 0;
	if (!clr_memory_bytes_now(memory, address, pages->bytes[slot], CLR_PAGE_BYTES))
		return NULL;
	pages->owner[slot] = memory->owner;
	pages->address[slot] = address;
	return pages->bytes[slot];
}

bool clr_memory_bytes(struct clr_memory *memory, uint64_t address, void *out, size_t size)
{
	uint8_t *to = out;

	if (!memory->pages || size > CLR_PAGE_BYTES)
		return clr_memory_bytes_now(memory, address, out, size);
	if (memory->failed || !is_readable(address, size)) {
		memory->failed = true;
		return false;
	}
	while (size) {
		uint64_t begin = address & ~(uint64_t)(CLR_PAGE_BYTES - 1);
		size_t at = (size_t)(address - begin);
		size_t piece = CLR_PAGE_BYTES - at < size ? CLR_PAGE_BYTES - at : size;
		const uint8_t *page = page_at(memory, begin);
		if (!page)
			return false;
		memcpy(to, page + at, piece);
		to += piece;
		address += piece;
		size -= piece;
	}
	return true;
}

static uint64_t number(struct clr_memory *memory, uint64_t address, size_t size)
{
	uint8_t bytes[8] = { 0 };

	if (!clr_memory_bytes(memory, address, bytes, size))
		return 0;
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	return cursor_u64(&c);
}

uint8_t clr_memory_u8(struct clr_memory *memory, uint64_t address)
{
	return (uint8_t)number(memory, address, 1);
}

uint16_t clr_memory_u16(struct clr_memory *memory, uint64_t address)
{
	return (uint16_t)number(memory, address, 2);
}

uint32_t clr_memory_u32(struct clr_memory *memory, uint64_t address)
{
	return (uint32_t)number(memory, address, 4);
}

uint64_t clr_memory_u64(struct clr_memory *memory, uint64_t address)
{
	return number(memory, address, 8);
}

uint64_t clr_memory_pointer(struct clr_memory *memory, uint64_t address)
{
	uint64_t value = number(memory, address, 8);

	if (is_readable(value, 0))
		return value;
	memory->failed = true;
	return 0;
}

/* Whether a text may be a name. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t before = at;
		uint32_t c = text_next_char(text, len, &at);
		if (text_is_control(c) || (c == MALFORMED && at == before + 1))
			return false;
	}
	return len != 0;
}

bool clr_memory_text(struct clr_memory *memory, uint64_t address, char *ret_text, size_t room)
{
	size_t len = 0;

	for (;;) {
		/* Never past the page: the next one may not be mapped. */
		size_t piece = CLR_PAGE_BYTES - (size_t)((address + len) % CLR_PAGE_BYTES);
		if (piece > TEXT_PIECE)
			piece = TEXT_PIECE;
		if (piece > room - len)
			piece = room - len;
		if (!piece || !clr_memory_bytes(memory, address + len, ret_text + len, piece))
			break;
		const char *nul = memchr(ret_text + len, 0, piece);
		len += nul ? (size_t)(nul - (ret_text + len)) : piece;
		if (!nul)
			continue;
		if (is_plain(ret_text, len))
			return true;
		break;
	}
	memory->failed = true;
	return false;
}
