/*
 * USDT: each event is a probe with the values of its fields as typed arguments, in their order:
 *
 *   numbers, boolean, char16, time, pointer   one argument of that size and sign
 *   f32, f64                                  the bits, as u32 and u64
 *   text, text16                              address of a UTF-8 string that ends with a zero byte
 *   guid                                      address of its 16 bytes
 *   object                                    its members
 *   arrays                                    the count (u32), then the address of the elements;
 *                                             of text arrays: of addresses of strings
 *
 * Converted strings are on the stack of the firing thread: of all text16 of an event CONVERTED_BYTES
 * are kept, of a text array the first TEXTS_MAX elements.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/field_size.h"
#include "lib/logger/logger.h"
#include "lib/logger/usdt_image.h"
#include "lib/logger/utf8_of_utf16.h"

#define ARGUMENTS_MAX   48u
#define CONVERTED_BYTES 4096u
#define TEXTS_MAX       64u

/* ---- Making probes ---- */

struct usdt_part {
	struct usdt_image_probe usdt;
	unsigned argument_count;
	struct usdt_part *next;
};

/* Parts are never freed, because a thread may be inside fire(); the list is for leak checkers. */
static struct usdt_part *first_part;

struct usdt_operand_list {
	char text[USDT_ARGUMENTS_MAX + 1];
	size_t length;
	unsigned count;
};

static void operand_add(struct usdt_operand_list *to, int size)
{
	if (to->count == ARGUMENTS_MAX)
		return;
	if (to->count)
		to->text[to->length++] = ' ';
	to->length += (size_t)usdt_operand(to->text + to->length, sizeof(to->text) - to->length,
		size, to->count);
	to->count++;
}
_Static_assert(USDT_ARGUMENTS_MAX >= ARGUMENTS_MAX * 24, "room for all operands");

static void operands_add(struct usdt_operand_list *to, const struct spoor_field *fields,
	uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = fields[i].type;
		if (type & SPOOR_TYPE_ARRAY) {
			operand_add(to, 4);
			operand_add(to, 8);
			continue;
		}
		switch (type) {
		case SPOOR_TYPE_STRUCT:
			operands_add(to, fields[i].fields, fields[i].field_count);
			break;
		case SPOOR_TYPE_GUID:
		case SPOOR_TYPE_TEXT:
		case SPOOR_TYPE_TEXT16:
			operand_add(to, 8);
			break;
		case SPOOR_TYPE_I8:
		case SPOOR_TYPE_I16:
		case SPOOR_TYPE_I32:
		case SPOOR_TYPE_I64:
			operand_add(to, -(int)field_fixed_size(type));
			break;
		default:
			operand_add(to, (int)field_fixed_size(type));
			break;
		}
	}
}

static void *usdt_add(const struct event_entry *entry, const struct logger_names *names)
{
	struct usdt_operand_list operands = { .length = 0 };
	struct usdt_part *own = malloc(sizeof(*own));
	char provider[USDT_NAME_MAX + 1];
	size_t length = strlen(names->provider);

	if (!own || length > USDT_NAME_MAX) {
		free(own);
		return NULL;
	}
	/* Lower case, as the providers of DTrace and SystemTap are. */
	for (size_t i = 0; i <= length; i++) {
		char c = names->provider[i];
		provider[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	operands_add(&operands, entry->info.fields, entry->info.field_count);
	operands.text[operands.length] = '\0';
	if (usdt_probe_make(provider, names->event, operands.text, &own->usdt)) {
		free(own);
		return NULL;
	}
	own->argument_count = operands.count;
	own->next = first_part;
	first_part = own;
	return own;
}

static bool usdt_is_on(const void *part)
{
	const struct usdt_part *own = part;

	return __atomic_load_n(own->usdt.semaphore, __ATOMIC_RELAXED) != 0;
}

/* ---- Firing ---- */

struct usdt_argument_list {
	uint64_t values[ARGUMENTS_MAX];
	unsigned count;
	unsigned text_count;
	size_t converted_size;
	const char *texts[TEXTS_MAX];
	char converted[CONVERTED_BYTES];
};

static void argument_add(struct usdt_argument_list *to, uint64_t value)
{
	if (to->count < ARGUMENTS_MAX)
		to->values[to->count++] = value;
}

static const char *converted(struct usdt_argument_list *to, const void *text, size_t size)
{
	size_t room = CONVERTED_BYTES - to->converted_size;
	char *at = to->converted + to->converted_size;

	if (room < 2)
		return "";
	to->converted_size += utf8z_put(at, room, text, size);
	return at;
}

static void texts_add(struct usdt_argument_list *to, const struct spoor_value *array)
{
	struct spoor_value value;
	size_t position = 0;
	size_t offset = 0;
	unsigned first = to->text_count;

	while (to->text_count < TEXTS_MAX &&
		spoor_value_next(array, &position, &offset, &value) == 1)
		to->texts[to->text_count++] =
			array->type == SPOOR_TYPE_TEXT
				? value.bytes
				: converted(to, value.bytes, value.byte_count);
	argument_add(to, to->text_count - first);
	argument_add(to, (uintptr_t)&to->texts[first < TEXTS_MAX ? first : 0]);
}

static void value_add(struct usdt_argument_list *to, const struct spoor_value *value)
{
	struct spoor_value member;
	size_t position = 0;
	size_t offset = 0;

	if (value->is_array) {
		if (value->type == SPOOR_TYPE_TEXT || value->type == SPOOR_TYPE_TEXT16) {
			texts_add(to, value);
			return;
		}
		argument_add(to, value->count);
		argument_add(to, (uintptr_t)value->bytes);
		return;
	}
	switch (value->type) {
	case SPOOR_TYPE_STRUCT:
		while (spoor_value_next(value, &position, &offset, &member) == 1)
			value_add(to, &member);
		break;
	case SPOOR_TYPE_GUID:
	case SPOOR_TYPE_TEXT:
		argument_add(to, (uintptr_t)value->bytes);
		break;
	case SPOOR_TYPE_TEXT16:
		argument_add(to, (uintptr_t)converted(to, value->bytes, value->byte_count));
		break;
	case SPOOR_TYPE_F32:
	case SPOOR_TYPE_F64: {
		uint64_t bits = 0;
		memcpy(&bits, value->bytes, value->byte_count);
		argument_add(to, bits);
		break;
	}
	case SPOOR_TYPE_I8:
	case SPOOR_TYPE_I16:
	case SPOOR_TYPE_I32:
	case SPOOR_TYPE_I64:
		argument_add(to, (uint64_t)value->i64);
		break;
	default:
		argument_add(to, value->u64);
		break;
	}
}

static void usdt_fire(void *part, const struct event_entry *entry, const uint8_t *payload,
	size_t payload_size)
{
	const struct usdt_part *own = part;
	struct usdt_argument_list arguments;
	struct spoor_event_view event = { .size = sizeof(event),
		.info = &entry->info,
		.payload = payload,
		.payload_size = payload_size };
	struct spoor_value value;
	size_t position = 0;

	if (!usdt_is_on(own))
		return;
	arguments.count = arguments.text_count = 0;
	arguments.converted_size = 0;
	while (spoor_event_next_field(&event, &position, &value) == 1)
		value_add(&arguments, &value);
	/* spoor_fire() was called with fewer bytes than the fields have: no stale values. */
	while (arguments.count < own->argument_count)
		arguments.values[arguments.count++] = 0;
	own->usdt.hit(arguments.values);
}

const struct logger_ops logger_usdt = {
	.name = "usdt",
	.remakes_parts = true,
	.open = usdt_images_open,
	.add = usdt_add,
	.is_on = usdt_is_on,
	.fire = usdt_fire,
	.close = usdt_images_close,
	.fork_child = usdt_images_child,
};
