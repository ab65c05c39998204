/*
 * A listener that prints all events of this process, with the names and values of their fields,
 * whether they are declared or built at run time.
 *
 * Fires a few events of several kinds, and prints each as a line:
 *
 *   Shop/Order Number=7 Price=2.5 Item="tea" Where={ Host="localhost" Port=8080 } Codes=[ 1 2 3 ]
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <spoor/activity.h>
#include <spoor/spoor.h>

SPOOR_PROVIDER(shop, "Shop")
SPOOR_STRUCT(shop_place, (text, Host), (u16, Port))
SPOOR_EVENT(shop, Order, 1, SPOOR_INFO, 0x1, (u32, Number), (f64, Price), (text, Item),
	(object, Where, shop_place), (i32_array, Codes))
SPOOR_EVENT(shop, Refused, 2, SPOOR_WARNING, 0x1, (u32, Number), (boolean, Final), (text16, Reason),
	(blob, Card))
SPOOR_EVENT(shop, Closed, 3, SPOOR_INFO, 0x2)

/* Prints UTF-16, which may be unaligned, as UTF-8. An unpaired surrogate becomes a question mark. */
static void print_text16(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	putchar('"');
	for (size_t i = 0; i + 1 < size; i += 2) {
		uint32_t c = at[i] | (uint32_t)at[i + 1] << 8;

		if (c >= 0xd800 && c < 0xdc00 && i + 3 < size) {
			uint32_t low = at[i + 2] | (uint32_t)at[i + 3] << 8;
			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i += 2;
			}
		}
		if (c >= 0xd800 && c < 0xe000)
			c = '?';
		if (c < 0x80)
			putchar((int)c);
		else if (c < 0x800)
			printf("%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 0x3f)));
		else if (c < 0x10000)
			printf("%c%c%c", (int)(0xe0 | c >> 12), (int)(0x80 | (c >> 6 & 0x3f)),
				(int)(0x80 | (c & 0x3f)));
		else
			printf("%c%c%c%c", (int)(0xf0 | c >> 18), (int)(0x80 | (c >> 12 & 0x3f)),
				(int)(0x80 | (c >> 6 & 0x3f)), (int)(0x80 | (c & 0x3f)));
	}
	putchar('"');
}

static void print_value(const struct spoor_value *value)
{
	struct spoor_value inner;
	size_t position = 0, offset = 0;

	if (value->is_array || value->type == SPOOR_TYPE_STRUCT) {
		printf(value->is_array ? "[" : "{");
		while (spoor_value_next(value, &position, &offset, &inner) == 1) {
			putchar(' ');
			if (!value->is_array)
				printf("%s=", inner.field->name);
			print_value(&inner);
		}
		printf(value->is_array ? " ]" : " }");
		return;
	}
	switch (value->type) {
	case SPOOR_TYPE_BOOLEAN:
		printf(value->u64 ? "true" : "false");
		break;
	case SPOOR_TYPE_I8:
	case SPOOR_TYPE_I16:
	case SPOOR_TYPE_I32:
	case SPOOR_TYPE_I64:
		printf("%" PRId64, value->i64);
		break;
	case SPOOR_TYPE_F32:
	case SPOOR_TYPE_F64:
		printf("%.17g", value->f64);
		break;
	case SPOOR_TYPE_TEXT:
		printf("\"%s\"", (const char *)value->bytes);
		break;
	case SPOOR_TYPE_TEXT16:
		print_text16(value->bytes, value->byte_count);
		break;
	case SPOOR_TYPE_GUID:
		for (size_t i = 0; i < 16; i++)
			printf("%02x", ((const uint8_t *)value->bytes)[i]);
		break;
	case SPOOR_TYPE_POINTER:
		printf("0x%" PRIx64, value->u64);
		break;
	default:
		printf("%" PRIu64, value->u64);
	}
}

/*
 * Called on the session's thread, without a lock. A slow callback delays this session only, not the
 * threads that fire events.
 */
static void print_event(const struct spoor_event_view *event, void *context)
{
	struct spoor_value value;
	size_t position = 0;

	(void)context;
	if (event->lost_before)
		printf("(%" PRIu64 " events of this thread are lost here)\n", event->lost_before);
	printf("%s/%s", event->info->provider, event->info->name);
	while (spoor_event_next_field(event, &position, &value) == 1) {
		printf(" %s=", value.field->name);
		print_value(&value);
	}
	if (event->activity_id)
		printf(" (in an activity)");
	putchar('\n');
}

int main(void)
{
	static const spoor_char16 reason[] = { 'n', 'o', ' ', 0xd83d, 0xdcb0, 0 };
	static const uint8_t card[] = { 0xde, 0xad };
	static const int32_t codes[] = { 1, -2, 3 };
	const struct shop_place place = { "localhost", 8080 };
	struct spoor_options start = { .size = sizeof(start), .flags = SPOOR_START_NO_SERVER };
	const struct spoor_want wants[] = {
		{ .size = sizeof(wants[0]),
			.name = "Shop",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE },
		{ .size = sizeof(wants[0]),
			.name = "Shop-Live",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE },
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = wants, .want_count = 2
	};
	struct spoor_session *session;
	struct spoor_activity activity;
	struct spoor_writer w;

	int error = spoor_start(&start);
	if (!error)
		error = spoor_provider_register(&shop);
	if (!error)
		error = spoor_session_start_callback(&options, print_event, NULL, &session);
	if (error) {
		fprintf(stderr, "listener: cannot listen to this program's events: %s\n",
			strerror(-error));
		return 1;
	}

	shop_Order(7, 2.5, "tea", &place, codes, 3);
	(void)spoor_activity_start(&activity, "refund", NULL);
	shop_Refused(8, true, reason, card, sizeof(card));
	spoor_activity_stop(&activity);

	/* This provider and its event are built at run time. */
	struct spoor_event_source *source = spoor_source_new("Shop-Live");
	if (spoor_source_begin(source, "Weather", SPOOR_INFO, 0, &w)) {
		spoor_write_text(&w, "City", "Z\xc3\xbcrich");
		spoor_write_i8(&w, "Degrees", -3);
		(void)spoor_source_end(&w);
	}
	shop_Closed();

	(void)spoor_session_stop(session); /* returns after the last call of print_event */
	spoor_session_free(session);
	spoor_source_free(source);
	spoor_stop();
	return 0;
}
