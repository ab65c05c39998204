/* See exceptions.h. */
#include "analysis/exceptions.h"

#include "analysis/event_stacks.h"
#include "analysis/runtime_event.h"

static enum exception_kind kind_of(const struct runtime_event *event)
{
	if (!event->is_counted)
		return EXCEPTION_WRITTEN;
	if (!event->is_unseen)
		return EXCEPTION_ONLY_COUNTED;
	return event->is_estimated ? EXCEPTION_ESTIMATED : EXCEPTION_UNSEEN;
}

/*
 * ExceptionThrown: type and message in UTF-16 with a NUL, u64 instruction pointer, u32 HRESULT, u16
 * flags, u16 instance.
 */
int exceptions_event(struct exceptions *exceptions, const struct runtime_event *event)
{
	struct cursor c = event->payload;
	struct tally_key key = { .process = event->process, .kind = kind_of(event) };
	size_t type_units;
	size_t message_units;
	const uint8_t *type = cursor_utf16z(&c, &type_units);
	const uint8_t *message = cursor_utf16z(&c, &message_units);

	if (!event->is_selected || (c.short_read && (!event->is_counted || !type)))
		return 0;
	exceptions->messages.most = EXCEPTIONS_MESSAGES_MAX;
	int error = event_texts_add(&exceptions->types, type, type_units, &key.text);
	if (!error && !c.short_read)
		error = event_texts_add(&exceptions->messages, message, message_units, &key.detail);
	if (!error)
		error = event_stacks_add(event->stacks, event->process, event->event, &key.stack);
	if (error)
		return error;
	const struct tally_amount amount = { .amount = event->count,
		.count = event->count,
		.sum_ns = event->count_ns,
		.at_ns = event->at_ns,
		.from_ns = event->from_ns };
	return tally_add(&exceptions->tally, &key, &amount);
}

uint64_t exceptions_of_kind(const struct exceptions *exceptions,
	const struct tally_process *process, enum exception_kind kind)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < process->row_count; i++) {
		const struct tally_row *row =
			&exceptions->tally.rows.list.items[process->row_at + i];
		sum += row->key.kind == kind ? row->count : 0;
	}
	return sum;
}

void exceptions_done(struct exceptions *exceptions)
{
	tally_done(&exceptions->tally);
	event_texts_done(&exceptions->types);
	event_texts_done(&exceptions->messages);
}
