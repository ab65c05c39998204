/*
 * See clr_contract.h. The descriptor, 40 bytes:
 *
 *   offset  size  field
 *   0       8     magic
 *   8       4     flags       bit 0 is set, bit 1: of a 32-bit process
 *   12      4     bytes of the JSON
 *   16      8     address of the JSON
 *   24      4     number of slots
 *   32      8     address of the slots, a u64 each
 */
#include "code/clr_contract.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "code/clr_memory.h"

#define DESCRIPTOR_BYTES 40u
#define MAGIC            UINT64_C(0x0043414443434e44)
#define FLAG_VALID       1u
#define FLAG_32_BITS     2u
#define DEPTH_MAX        8u
#define PATH_MAX_BYTES   256u
#define SLOT_MARK        "#" /* ends the path of a slot's number */

/* Reads one JSON value; the text is consumed from `at`. */
struct json_scan {
	struct clr_contract *contract;
	const char *at;
	const char *end;
	char path[PATH_MAX_BYTES];
	size_t path_len;
};

static void skip_blanks(struct json_scan *scan)
{
	while (scan->at < scan->end && strchr(" \t\r\n", *scan->at) && *scan->at)
		scan->at++;
}

static bool take(struct json_scan *scan, char c)
{
	skip_blanks(scan);
	if (scan->at == scan->end || *scan->at != c)
		return false;
	scan->at++;
	return true;
}

/* A string without escapes, which the runtime's names do not need. */
static bool take_string(struct json_scan *scan, const char **ret_text, size_t *ret_len)
{
	if (!take(scan, '"'))
		return false;
	const char *begin = scan->at;
	while (scan->at < scan->end && *scan->at != '"' && *scan->at != '\\')
		scan->at++;
	*ret_text = begin;
	*ret_len = (size_t)(scan->at - begin);
	return take(scan, '"');
}

static bool parse_number(const char *text, size_t len, uint64_t *ret_number)
{
	bool hex = len > 2 && text[0] == '0' && text[1] == 'x';
	uint64_t number = 0;

	for (size_t i = hex ? 2 : 0; i < len; i++) {
		char c = text[i];
		unsigned digit = c >= '0' && c <= '9'          ? (unsigned)(c - '0')
				 : hex && c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
				 : hex && c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
							       : UINT32_MAX;
		if (digit == UINT32_MAX ||
			__builtin_mul_overflow(number, hex ? 16u : 10u, &number) ||
			__builtin_add_overflow(number, digit, &number))
			return false;
	}
	*ret_number = number;
	return len != 0;
}

static bool keep(struct json_scan *scan, uint64_t number)
{
	struct clr_contract *contract = scan->contract;
	uint32_t index = strtab_add(&contract->paths, scan->path, scan->path_len);

	if (!index)
		return false;
	/* the first number of a path counts */
	return index <= contract->numbers.count || vec_add(&contract->numbers, number);
}

static bool append(struct json_scan *scan, const char *text, size_t len)
{
	if (len >= sizeof(scan->path) - scan->path_len)
		return false;
	memcpy(scan->path + scan->path_len, text, len);
	scan->path_len += len;
	return true;
}

static bool scan_value(struct json_scan *scan, unsigned depth);

static bool scan_object(struct json_scan *scan, unsigned depth)
{
	size_t path_len = scan->path_len;
	const char *name;
	size_t len;

	if (take(scan, '}'))
		return true;
	do {
		if (!take_string(scan, &name, &len) || !take(scan, ':') ||
			(path_len && !append(scan, ".", 1)) || !append(scan, name, len) ||
			!scan_value(scan, depth + 1))
			return false;
		scan->path_len = path_len;
	} while (take(scan, ','));
	return take(scan, '}');
}

/* A list in a list holds a slot. */
static bool scan_list(struct json_scan *scan, unsigned depth)
{
	size_t path_len = scan->path_len;

	if (take(scan, ']'))
		return true;
	do {
		skip_blanks(scan);
		if ((scan->at < scan->end && *scan->at == '[' &&
			    !append(scan, SLOT_MARK, strlen(SLOT_MARK))) ||
			!scan_value(scan, depth + 1))
			return false;
		scan->path_len = path_len;
	} while (take(scan, ','));
	return take(scan, ']');
}

static bool scan_value(struct json_scan *scan, unsigned depth)
{
	const char *text;
	uint64_t number;
	size_t len = 0;

	if (depth > DEPTH_MAX)
		return false;
	if (take(scan, '{'))
		return scan_object(scan, depth);
	if (take(scan, '['))
		return scan_list(scan, depth);
	if (scan->at < scan->end && *scan->at == '"') {
		if (!take_string(scan, &text, &len))
			return false;
		/* other texts are names of types, and values that are not needed */
		return !parse_number(text, len, &number) || keep(scan, number);
	}
	text = scan->at;
	while (scan->at < scan->end && *scan->at && strchr("0123456789", *scan->at))
		scan->at++;
	return parse_number(text, (size_t)(scan->at - text), &number) && keep(scan, number);
}

bool clr_contract_parse(struct clr_contract *contract, const char *json, size_t size)
{
	struct json_scan scan = { .contract = contract, .at = json, .end = json + size };

	return scan_value(&scan, 0);
}

bool clr_contract_number(const struct clr_contract *contract, const char *path,
	uint64_t *ret_number)
{
	uint32_t index = strtab_find(&contract->paths, path, strlen(path));

	if (!index || index > contract->numbers.count)
		return false;
	*ret_number = contract->numbers.items[index - 1];
	return true;
}

bool clr_contract_global(const struct clr_contract *contract, struct clr_memory *memory,
	const char *name, uint64_t *ret_address)
{
	char path[PATH_MAX_BYTES] = "globals.";
	uint64_t slot;

	if (strlen(path) + strlen(name) + strlen(SLOT_MARK) >= sizeof(path))
		return false;
	strcat(path, name);
	strcat(path, SLOT_MARK);
	if (!clr_contract_number(contract, path, &slot) || slot >= contract->slot_count)
		return false;
	*ret_address = clr_memory_pointer(memory, contract->slots + 8 * slot);
	return !memory->failed;
}

bool clr_contract_read(struct clr_contract *contract, struct clr_memory *memory, uint64_t address)
{
	uint8_t bytes[DESCRIPTOR_BYTES];

	memory->failed = false;
	if (!clr_memory_bytes(memory, address, bytes, sizeof(bytes)))
		return false;
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	uint64_t magic = cursor_u64(&c);
	uint32_t flags = cursor_u32(&c);
	uint32_t size = cursor_u32(&c);
	uint64_t json_at = cursor_u64(&c);
	uint32_t slot_count = cursor_u32(&c);
	cursor_skip(&c, 4);
	contract->slots = cursor_u64(&c);
	contract->slot_count = slot_count;
	if (magic != MAGIC || !(flags & FLAG_VALID) || flags & FLAG_32_BITS || !size ||
		size > CLR_CONTRACT_JSON_MAX || slot_count > CLR_CONTRACT_SLOTS_MAX)
		return false;
	char *json = malloc(size);
	bool known = json && clr_memory_bytes_now(memory, json_at, json, size) &&
		     clr_contract_parse(contract, json, size);
	free(json);
	return known;
}

void clr_contract_done(struct clr_contract *contract)
{
	strtab_done(&contract->paths);
	vec_done(&contract->numbers);
	*contract = (struct clr_contract){ .slots = 0 };
}
