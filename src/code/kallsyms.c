/*
 * See kallsyms.h.
 *
 * The compact form and the form in memory are the same bytes, in this machine's byte order, so
 * loading is checking:
 *
 *   offset  size        field
 *   0       8           magic "SPKSYM1\0"
 *   8       4           layout: 0x01020304 as this machine writes it
 *   12      4           symbol count N
 *   16      4           range count M
 *   20      4           size of the texts T
 *   24      8           sum over all that follows
 *   32      T           texts, each with a NUL, the first one empty; T is a multiple of 8
 *   ..      24 x M      ranges: begin, end, module (offset in texts), u32 0
 *   ..      8 x N       addresses, strictly ascending
 *   ..      4 x N       names (offset in texts); 0 = "": a mark where code ends
 *   ..      2 x N       ranges they belong to
 *
 * Texts come first because they are two thirds of it: the parser writes them directly to their
 * final place.
 */
#include "code/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/partition_point.h"
#include "base/vec.h"

#define MAGIC          "SPKSYM1"
#define LAYOUT         0x01020304u
#define HEADER_SIZE    32u
#define RANGES_MAX     8192u
#define LINE_MAX_BYTES 4096u
#define CODE_PAGE      UINT64_C(4096)

struct range {
	uint64_t begin;
	uint64_t end;
	uint32_t module;
	uint32_t reserved;
};

_Static_assert(sizeof(struct range) == 24, "stored as it is");

struct kallsyms {
	uint32_t count;
	uint32_t range_count;
	const struct range *ranges;
	const uint64_t *addresses;
	const uint32_t *names;
	const uint16_t *owners;
	const char *texts;
	size_t texts_size;
	uint8_t *memory; /* the compact form, if this struct owns it */
	size_t memory_size;
};

/* A symbol as it was read. */
struct kallsyms_item {
	uint64_t address;
	uint32_t name;
	uint16_t module; /* 0 the kernel */
	uint8_t rank;
};

struct kernel_module {
	uint32_t name;
	uint32_t len;
};

struct kallsyms_reader {
	VEC(struct kallsyms_item) items;
	VEC(struct kernel_module) modules;
	struct bytes form; /* room for the header, then the texts */
	bool sorted;
	bool saw_symbol; /* of any kind, hidden ones too */
	bool saw_address;
};

/* Text */

/* A hexadecimal digit plus one, else 0: one load a character keeps the parsing of 5 MB cheap. */
static const uint8_t digits[256] = {
	['0'] = 1,
	2,
	3,
	4,
	5,
	6,
	7,
	8,
	9,
	10,
	['a'] = 11,
	12,
	13,
	14,
	15,
	16,
	['A'] = 11,
	12,
	13,
	14,
	15,
	16,
};

static bool ends_with(const char *name, size_t len, const char *end, size_t end_len)
{
	return len >= end_len && !memcmp(name + len - end_len, end, end_len);
}

/* Names that mark the begin or end of code instead of naming it: "_stext", "__sched_text_end". */
static bool is_mark(const char *name, size_t len)
{
	if (len < 5 || name[0] != '_')
		return false;
	if (name[1] != '_')
		return len <= 10 && ends_with(name, len, "text", 4);
	return ends_with(name, len, "text_end", 8) || ends_with(name, len, "text_start", 10);
}

static uint8_t rank_of(char type, const char *name, size_t len)
{
	unsigned underscores = 0;

	if (is_mark(name, len))
		return 0;
	while (underscores < 7 && underscores < len && name[underscores] == '_')
		underscores++;
	unsigned rank = 1 + (7 - underscores);
	return (uint8_t)(rank + (type == 'T' ? 32 : type == 't' ? 16 : 0));
}

/* Appends a text and returns its offset. A lack of memory is reported at the end. */
static uint32_t add_text(struct kallsyms_reader *r, const char *text, size_t len)
{
	uint32_t at = (uint32_t)(r->form.len - HEADER_SIZE);
	uint8_t *to = bytes_reserve(&r->form, len + 1);

	if (to) {
		memcpy(to, text, len);
		to[len] = 0;
		r->form.len += len + 1;
	}
	return at;
}

/* The number of a module. With too many modules it is 0, and the symbols count as the kernel's. */
static uint16_t module_number(struct kallsyms_reader *r, const char *name, size_t len)
{
	/* Lines of a module are consecutive, so it is nearly always the last one. */
	for (uint32_t i = r->modules.count; i-- > 0;) {
		const struct kernel_module *known = &r->modules.items[i];
		if (known->len == len &&
			!memcmp(r->form.data + HEADER_SIZE + known->name, name, len))
			return (uint16_t)(i + 1);
	}
	if (r->modules.count + 1 >= RANGES_MAX || r->form.failed)
		return 0;
	struct kernel_module module = { .name = add_text(r, name, len), .len = (uint32_t)len };
	return !r->form.failed && vec_add(&r->modules, module) ? (uint16_t)r->modules.count : 0;
}

/* "ffffffff81000000 T name\t[module]" without its newline. Lines of another form are skipped. */
static int take_line(struct kallsyms_reader *r, const char *line, size_t len)
{
	const char *end = line + len;
	const char *at = line;
	uint64_t address = 0;

	/* Of x86-64's kernel addresses: one comparison replaces half of the parsing. */
	if (len > 16 && !memcmp(line, "ffffffff", 8)) {
		address = UINT32_MAX;
		at += 8;
	}
	for (uint8_t digit; at < end && (digit = digits[(uint8_t)*at]); at++)
		address = address << 4 | (uint64_t)(digit - 1);
	if (at == line || at - line > 16 || end - at < 4 || at[0] != ' ' || at[2] != ' ')
		return 0;
	char type = at[1];
	r->saw_symbol = true;
	if (!address)
		return 0;
	r->saw_address = true;
	if (type != 't' && type != 'T' && type != 'w' && type != 'W')
		return 0;
	const char *name = at + 3;
	const char *name_end = memchr(name, '\t', (size_t)(end - name));
	uint16_t module = 0;
	if (!name_end)
		name_end = end;
	else if (end - name_end > 3 && name_end[1] == '[' && end[-1] == ']')
		module = module_number(r, name_end + 2, (size_t)(end - name_end) - 3);
	size_t name_len = (size_t)(name_end - name);
	if (!name_len || !*name)
		return 0;

	struct kallsyms_item item = { .address = address, .module = module };
	item.rank = rank_of(type, name, name_len);
	struct kallsyms_item *last = r->items.count ? vec_last(&r->items) : NULL;
	if (last && last->address == address && item.rank <= last->rank)
		return 0;
	if (last && address < last->address)
		r->sorted = false;
	if (r->items.count >= KALLSYMS_SYMBOLS_MAX || r->form.len > KALLSYMS_TEXT_MAX)
		return -EFBIG;
	if (item.rank)
		item.name = add_text(r, name, name_len);
	if (last && last->address == address)
		*last = item;
	else if (!vec_add(&r->items, item))
		return -ENOMEM;
	return 0;
}

static int read_text(struct kallsyms_reader *r, struct input *in, struct diag *diag)
{
	size_t room = INPUT_WINDOW + LINE_MAX_BYTES;
	cleanup(freep) char *window = malloc(room);
	size_t have = 0;
	uint64_t total = 0;
	bool skipping = false; /* the rest of a line that was too long */

	if (!window)
		return diag_set(diag, -ENOMEM, "no memory for the kernel's symbols");
	for (;;) {
		ssize_t got = input_read(in, window + have, room - have, diag);
		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		total += (uint64_t)got;
		if (total > KALLSYMS_TEXT_MAX)
			return diag_set(diag, -EFBIG,
				"cannot read the kernel's symbols: over %u MiB",
				KALLSYMS_TEXT_MAX >> 20);
		char *at = window;
		char *end = window + have + got;
		char *newline;
		/* The part before `have` was searched already and has no newline. */
		char *from = window + have;
		while ((newline = memchr(from, '\n', (size_t)(end - from)))) {
			int error = skipping ? 0 : take_line(r, at, (size_t)(newline - at));
			if (error)
				return diag_set(diag, error,
					"cannot keep the kernel's symbols: %m");
			skipping = false;
			at = from = newline + 1;
		}
		have = (size_t)(end - at);
		if (have > LINE_MAX_BYTES) {
			skipping = true;
			have = 0;
		} else if (have) {
			memmove(window, at, have);
		}
	}
	if (have && !skipping && take_line(r, window, have) < 0)
		return diag_set(diag, -ENOMEM, "no memory for the kernel's symbols");
	return r->form.failed ? diag_set(diag, -ENOMEM, "no memory for the kernel's symbols") : 0;
}

static int compare_items(const void *a, const void *b)
{
	const struct kallsyms_item *x = a;
	const struct kallsyms_item *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void sort_items(struct kallsyms_reader *r)
{
	struct kallsyms_item *items = r->items.items;
	uint32_t kept = 0;

	if (r->sorted || !r->items.count)
		return;
	qsort(items, r->items.count, sizeof(*items), compare_items);
	for (uint32_t i = 0; i < r->items.count; i++) {
		if (!kept || items[kept - 1].address != items[i].address)
			items[kept++] = items[i];
	}
	r->items.count = kept;
}

/* The compact form */

static uint64_t sum_of(const uint8_t *data, size_t size)
{
	uint64_t lanes[4] = { 1, 2, 3, 4 };
	size_t at = 0;

	/* Four lanes, so that 5 MB take well under a millisecond. */
	for (; size - at >= 32; at += 32) {
		uint64_t word[4];
		memcpy(word, data + at, 32);
		for (unsigned i = 0; i < 4; i++)
			lanes[i] = (lanes[i] ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
	}
	for (; at < size; at++)
		lanes[0] = (lanes[0] ^ data[at]) * UINT64_C(0x9e3779b97f4a7c15);
	return lanes[0] ^ lanes[1] >> 7 ^ lanes[2] >> 13 ^ lanes[3] >> 23;
}

static size_t form_size(uint64_t symbols, uint64_t ranges, uint64_t texts)
{
	return (size_t)(HEADER_SIZE + 24 * ranges + 14 * symbols + texts);
}

/* Sets the pointers; the size has been checked. */
static void lay_out(struct kallsyms *k, const uint8_t *data)
{
	const uint8_t *at = data + HEADER_SIZE;

	k->texts = (const char *)at;
	at += k->texts_size;
	k->ranges = (const void *)at;
	at += 24 * (size_t)k->range_count;
	k->addresses = (const void *)at;
	at += 8 * (size_t)k->count;
	k->names = (const void *)at;
	at += 4 * (size_t)k->count;
	k->owners = (const void *)at;
}

static void write_header(uint8_t *data, const struct kallsyms *k)
{
	uint32_t numbers[4] = { LAYOUT, k->count, k->range_count, (uint32_t)k->texts_size };
	uint64_t sum = sum_of(data + HEADER_SIZE,
		form_size(k->count, k->range_count, k->texts_size) - HEADER_SIZE);

	memcpy(data, MAGIC, 8);
	memcpy(data + 8, numbers, sizeof(numbers));
	memcpy(data + 24, &sum, sizeof(sum));
}

static uint64_t page_end(uint64_t address)
{
	uint64_t end = (address | (CODE_PAGE - 1)) + 1;

	return end ? end : UINT64_MAX;
}

/* Range 0 is the kernel's, the others are modules in order of their first address. */
static uint32_t make_ranges(const struct kallsyms_reader *r, struct range *ranges, uint16_t *owners,
	uint16_t *number_of)
{
	uint32_t count = 1;

	ranges[0] = (struct range){ 0 };
	for (uint32_t i = 0; i < r->items.count; i++) {
		const struct kallsyms_item *item = &r->items.items[i];
		uint16_t number = 0;
		if (item->module) {
			if (!number_of[item->module]) {
				ranges[count] = (struct range){
					.begin = item->address,
					.module = r->modules.items[item->module - 1].name,
				};
				number_of[item->module] = (uint16_t)count++;
			}
			number = number_of[item->module];
		}
		struct range *range = &ranges[number];
		if (!range->begin)
			range->begin = item->address;
		/*
		 * A mark ends the code before it; any other symbol reaches at least its page's end.
		 */
		range->end = item->rank ? page_end(item->address) : item->address;
		owners[i] = number;
	}
	return count;
}

/* Appends the tables to the texts; the reader's buffer becomes the memory of the table. */
static int compact(struct kallsyms_reader *r, struct kallsyms **ret_kallsyms)
{
	cleanup(freep) struct range *ranges = calloc(r->modules.count + 1, sizeof(*ranges));
	cleanup(freep) uint16_t *owners = calloc(r->items.count, sizeof(*owners));
	cleanup(freep) uint16_t *number_of = calloc(r->modules.count + 1, sizeof(*number_of));
	cleanup(freep) struct kallsyms *k = calloc(1, sizeof(*k));

	if (!ranges || !owners || !number_of || !k)
		return -ENOMEM;
	while (r->form.len % 8)
		bytes_u8(&r->form, 0);
	k->count = r->items.count;
	k->range_count = make_ranges(r, ranges, owners, number_of);
	k->texts_size = r->form.len - HEADER_SIZE;
	k->memory_size = form_size(k->count, k->range_count, k->texts_size);
	if (!bytes_reserve(&r->form, k->memory_size - r->form.len))
		return -ENOMEM;
	k->memory = TAKE(r->form.data);
	lay_out(k, k->memory);
	memcpy((void *)k->ranges, ranges, k->range_count * sizeof(*ranges));
	memcpy((void *)k->owners, owners, k->count * sizeof(*owners));
	uint64_t *addresses = (uint64_t *)k->addresses;
	uint32_t *names = (uint32_t *)k->names;
	for (uint32_t i = 0; i < k->count; i++) {
		addresses[i] = r->items.items[i].address;
		names[i] = r->items.items[i].name;
	}
	*ret_kallsyms = TAKE(k);
	return 0;
}

int kallsyms_read(struct input *in, struct kallsyms **ret_kallsyms, struct diag *diag)
{
	struct kallsyms_reader r = { .sorted = true };

	/* The header's room, and the empty text. */
	for (unsigned i = 0; i < HEADER_SIZE + 1; i++)
		bytes_u8(&r.form, 0);
	int error = read_text(&r, in, diag);
	if (!error && r.saw_symbol && !r.saw_address) {
		error = diag_set(diag, -EACCES, "the kernel hides the addresses of its symbols");
		diag_remedy(diag, "run it as root, or set kernel.kptr_restrict to 0");
	} else if (!error && !r.items.count) {
		error = diag_set(diag, -ENODATA, "no function among the kernel's symbols");
	}
	if (!error) {
		sort_items(&r);
		error = compact(&r, ret_kallsyms);
		if (error)
			diag_set(diag, error, "no memory for the kernel's symbols");
	}
	vec_done(&r.items);
	vec_done(&r.modules);
	bytes_done(&r.form);
	return error;
}

int kallsyms_load(const void *data, size_t size, struct kallsyms **ret_kallsyms)
{
	uint32_t numbers[4];
	uint64_t sum;

	if (size < HEADER_SIZE || (uintptr_t)data % 8 || memcmp(data, MAGIC, 8) != 0)
		return -EBADMSG;
	memcpy(numbers, (const uint8_t *)data + 8, sizeof(numbers));
	memcpy(&sum, (const uint8_t *)data + 24, sizeof(sum));
	if (numbers[0] != LAYOUT || !numbers[1] || numbers[1] > KALLSYMS_SYMBOLS_MAX ||
		!numbers[2] || numbers[2] > RANGES_MAX || !numbers[3] ||
		numbers[3] > 2 * KALLSYMS_TEXT_MAX || numbers[3] % 8 ||
		form_size(numbers[1], numbers[2], numbers[3]) != size ||
		sum_of((const uint8_t *)data + HEADER_SIZE, size - HEADER_SIZE) != sum)
		return -EBADMSG;
	/* The sum can be forged with the rest of the file, so every number is checked too. */
	struct kallsyms k = {
		.count = numbers[1], .range_count = numbers[2], .texts_size = numbers[3]
	};
	lay_out(&k, data);
	if (k.texts[0] || k.texts[k.texts_size - 1])
		return -EBADMSG;
	for (uint32_t i = 0; i < k.range_count; i++) {
		if (k.ranges[i].module >= k.texts_size)
			return -EBADMSG;
	}
	bool good = true;
	for (uint32_t i = 0; i < k.count; i++)
		good &= k.names[i] < k.texts_size && k.owners[i] < k.range_count;
	for (uint32_t i = 1; i < k.count; i++)
		good &= k.addresses[i - 1] < k.addresses[i];
	if (!good)
		return -EBADMSG;
	struct kallsyms *loaded = malloc(sizeof(*loaded));
	if (!loaded)
		return -ENOMEM;
	*loaded = k;
	*ret_kallsyms = loaded;
	return 0;
}

void kallsyms_save(const struct kallsyms *k, struct bytes *out)
{
	size_t size = form_size(k->count, k->range_count, k->texts_size);
	uint8_t *to = bytes_reserve(out, size);

	if (!to)
		return;
	memcpy(to + HEADER_SIZE, k->texts, size - HEADER_SIZE);
	write_header(to, k);
	out->len += size;
}

bool kallsyms_find(const struct kallsyms *k, uint64_t address, struct kallsyms_hit *ret_hit)
{
	uint32_t low = partition_point(k->count, i, k->addresses[i] <= address);

	if (!low || !k->names[low - 1])
		return false;
	uint32_t at = low - 1;
	uint64_t end = page_end(k->addresses[at]);
	/* The next symbol is the end, unless it is far away or of another module. */
	if (low < k->count && (k->owners[low] == k->owners[at] || k->addresses[low] < end))
		end = k->addresses[low];
	if (address >= end)
		return false;
	*ret_hit = (struct kallsyms_hit){
		.begin = k->addresses[at],
		.end = end,
		.name = k->texts + k->names[at],
		.module = k->texts + k->ranges[k->owners[at]].module,
	};
	return true;
}

bool kallsyms_range(const struct kallsyms *k, uint32_t number, struct kallsyms_range *ret_range)
{
	if (number >= k->range_count)
		return false;
	const struct range *range = &k->ranges[number];
	*ret_range = (struct kallsyms_range){
		.begin = range->begin,
		.end = range->end,
		.module = k->texts + range->module,
	};
	return true;
}

size_t kallsyms_size_bytes(const struct kallsyms *k)
{
	return sizeof(*k) + k->memory_size;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->memory);
	free(k);
}
