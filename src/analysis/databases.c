/*
 * See databases.h.
 *
 * Payloads (texts are UTF-16 with a NUL, numbers little-endian):
 *
 *   DiagnosticSource, all events   source, name, u16 count, then so many keys and values
 *   SqlClient BeginExecute         i32 object, data source, database, statement
 *   SqlClient EndExecute           i32 object, i32 state (bit 0: success), i32 error
 */
#include "analysis/databases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_stacks.h"
#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "base/bytes.h"
#include "base/text.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/source_event.h"
#include "trace/trace.h"

#define TEXT_UNITS_MAX   1024u
#define TAGS_UNITS_MAX   8192u
#define PAIRS_MAX        64u
#define ACTIVITY_ID_SIZE 16u
#define NS_PER_TICK      100u
#define STATE_SUCCESS    1u

enum command_step { COMMAND_NONE, COMMAND_BEGINS, COMMAND_ENDS, COMMAND_FAILS };

/* What an event says about a command. Texts that it does not have are empty. */
struct command {
	enum command_step step;
	enum database_source source;
	uint64_t id;
	bool lasts; /* it is the end of a whole command: `lasts_ns` is its duration */
	uint64_t lasts_ns;
	struct bytes system;
	struct bytes host;
	struct bytes port;
	struct bytes name; /* of the database */
	struct bytes statement;
};

/* By the end of an event's name. */
static const struct {
	const char *end;
	enum command_step step;
	enum database_source source;
} listener_events[] = {
	{ "Database.Command.CommandExecuting", COMMAND_BEGINS, DATABASE_ENTITY_FRAMEWORK },
	{ "Database.Command.CommandExecuted", COMMAND_ENDS, DATABASE_ENTITY_FRAMEWORK },
	{ "Database.Command.CommandError", COMMAND_FAILS, DATABASE_ENTITY_FRAMEWORK },
	{ "SqlClient.WriteCommandBefore", COMMAND_BEGINS, DATABASE_SQL_CLIENT },
	{ "SqlClient.WriteCommandAfter", COMMAND_ENDS, DATABASE_SQL_CLIENT },
	{ "SqlClient.WriteCommandError", COMMAND_FAILS, DATABASE_SQL_CLIENT },
};

static void command_done(struct command *command)
{
	bytes_done(&command->system);
	bytes_done(&command->host);
	bytes_done(&command->port);
	bytes_done(&command->name);
	bytes_done(&command->statement);
}

static bool command_failed(const struct command *command)
{
	return command->system.failed || command->host.failed || command->port.failed ||
	       command->name.failed || command->statement.failed;
}

/* ---- payloads ---- */

static void add_utf16(struct cursor *c, struct bytes *out, size_t units_max)
{
	size_t units;
	const uint8_t *text = cursor_utf16z(c, &units);

	if (!c->short_read)
		text_add_utf16(out, text, units < units_max ? units : units_max);
}

static void set_text(struct bytes *to, const char *text, size_t len)
{
	if (to->len || !len)
		return; /* the first of several names for one thing */
	bytes_add(to, text, len);
}

/* One tag of a span, by the names of the semantic conventions, present and earlier. */
static void take_tag(struct command *command, const char *key, size_t key_len, const char *value,
	size_t len, bool *is_command)
{
	static const struct {
		const char *key;
		size_t member;
	} tags[] = {
		{ "db.system.name", offsetof(struct command, system) },
		{ "db.system", offsetof(struct command, system) },
		{ "server.address", offsetof(struct command, host) },
		{ "net.peer.name", offsetof(struct command, host) },
		{ "server.port", offsetof(struct command, port) },
		{ "net.peer.port", offsetof(struct command, port) },
		{ "db.namespace", offsetof(struct command, name) },
		{ "db.name", offsetof(struct command, name) },
		{ "db.query.text", offsetof(struct command, statement) },
		{ "db.statement", offsetof(struct command, statement) },
		{ "db.query.summary", offsetof(struct command, statement) },
	};

	*is_command |= key_len > 3 && strncmp(key, "db.", 3) == 0;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (strlen(tags[i].key) == key_len && strncmp(tags[i].key, key, key_len) == 0)
			set_text((struct bytes *)((char *)command + tags[i].member), value, len);
}

/*
 * "[db.system.name, postgresql],[server.port, 5432]". A value may have brackets and commas: it ends
 * before the "],[" that begins the next tag. True: one of them is a database's.
 */
static bool take_tags(struct command *command, const char *text)
{
	bool is_command = false;

	while (*text == '[') {
		const char *key = text + 1;
		const char *comma = strstr(key, ", ");
		if (!comma)
			break;
		const char *value = comma + 2;
		const char *end = strstr(value, "],[");
		size_t len = end ? (size_t)(end - value) : strlen(value);
		if (!end && len && value[len - 1] == ']')
			len--;
		take_tag(command, key, (size_t)(comma - key), value, len, &is_command);
		text = end ? end + 2 : "";
	}
	return is_command;
}

/* Arguments of a command of a DiagnosticListener. */
static void take_argument(struct command *command, const char *key, const struct bytes *value)
{
	const char *text = (const char *)value->data;

	if (strcmp(key, "CommandText") == 0)
		set_text(&command->statement, text, value->len);
	else if (strcmp(key, "Database") == 0)
		set_text(&command->name, text, value->len);
	else if (strcmp(key, "DataSource") == 0)
		set_text(&command->host, text, value->len);
}

/* Members of a span: what the driver has set, and how it ended. True: it is a command. */
static bool take_member(struct command *command, const char *key, struct bytes *value)
{
	if (strcmp(key, "Tags") == 0)
		return take_tags(command, bytes_z(value));
	if (strcmp(key, "Duration") == 0) {
		command->lasts = true;
		command->lasts_ns = strtoull(bytes_z(value), NULL, 10) * NS_PER_TICK;
	} else if (strcmp(key, "Status") == 0 && strcmp(bytes_z(value), "Error") == 0) {
		command->step = COMMAND_FAILS;
	}
	return false;
}

/* Keys and values; of a span, whether it is a command. */
static bool read_arguments(struct command *command, struct cursor *c, bool is_span)
{
	uint32_t count = cursor_u16(c);
	bool is_command = false;
	struct bytes display = { 0 };

	for (uint32_t i = 0; i < count && i < PAIRS_MAX && !c->short_read; i++) {
		struct bytes key = { 0 };
		struct bytes value = { 0 };
		add_utf16(c, &key, TEXT_UNITS_MAX);
		add_utf16(c, &value, TAGS_UNITS_MAX);
		bool failed = key.failed || value.failed;
		if (!failed && !c->short_read && is_span &&
			strcmp(bytes_z(&key), "DisplayName") == 0)
			bytes_add(&display, value.data, value.len);
		else if (!failed && !c->short_read && is_span)
			is_command |= take_member(command, bytes_z(&key), &value);
		else if (!failed && !c->short_read)
			take_argument(command, bytes_z(&key), &value);
		command->system.failed |= failed;
		bytes_done(&key);
		bytes_done(&value);
	}
	set_text(&command->statement, (const char *)display.data, display.len);
	command->system.failed |= display.failed;
	bytes_done(&display);
	return is_command;
}

/* Without ids of activities, commands of one thread follow one another. */
static uint64_t id_of(const struct runtime_event *event, enum database_source source)
{
	uint64_t id = event->event->activity ? hash_bytes(event->event->activity, ACTIVITY_ID_SIZE)
					     : hash_u64(event->event->thread_index);

	id += event->process + ((uint64_t)source << 32);
	return id ? id : 1;
}

static void read_listener(struct command *command, const struct runtime_event *event, bool is_span)
{
	struct cursor c = event->payload;
	struct bytes source = { 0 };
	struct bytes name = { 0 };

	add_utf16(&c, &source, TEXT_UNITS_MAX);
	add_utf16(&c, &name, TEXT_UNITS_MAX);
	if (is_span && !c.short_read) {
		command->step = COMMAND_ENDS;
		command->source = DATABASE_SPANS;
		if (!read_arguments(command, &c, true) || !command->lasts)
			command->step = COMMAND_NONE;
	}
	for (size_t i = 0; i < sizeof(listener_events) / sizeof(listener_events[0]) && !is_span;
		i++) {
		if (c.short_read || !text_ends_with(bytes_z(&name), listener_events[i].end))
			continue;
		command->step = listener_events[i].step;
		command->source = listener_events[i].source;
		command->id = id_of(event, command->source);
		if (command->step == COMMAND_BEGINS)
			(void)read_arguments(command, &c, false); /* it is one */
	}
	if (c.short_read)
		command->step = COMMAND_NONE;
	command->system.failed |= source.failed || name.failed;
	bytes_done(&source);
	bytes_done(&name);
}

static void read_sql_client(struct command *command, const struct runtime_event *event, bool begins)
{
	struct cursor c = event->payload;

	command->source = DATABASE_SQL_CLIENT;
	command->id = hash_u64((uint64_t)event->process << 32 | cursor_u32(&c));
	command->id += !command->id;
	if (begins) {
		add_utf16(&c, &command->host, TEXT_UNITS_MAX);
		add_utf16(&c, &command->name, TEXT_UNITS_MAX);
		add_utf16(&c, &command->statement, TEXT_UNITS_MAX);
		command->step = COMMAND_BEGINS;
	} else {
		command->step = cursor_u32(&c) & STATE_SUCCESS ? COMMAND_ENDS : COMMAND_FAILS;
	}
	if (c.short_read)
		command->step = COMMAND_NONE;
}

/* ---- rows ---- */

/* On one line, runs of spaces as one, and not longer than DATABASE_STATEMENT_MAX. */
static void squeeze(const struct bytes *in, struct bytes *out)
{
	bool space = false;

	for (size_t i = 0; i < in->len && out->len < DATABASE_STATEMENT_MAX;) {
		size_t at = i;
		uint32_t c = text_next_char((const char *)in->data, in->len, &at);
		if (c <= ' ') {
			space = out->len != 0;
		} else {
			bytes_text(out, space ? " " : "");
			bytes_add(out, in->data + i, at - i);
			space = false;
		}
		i = at;
	}
}

/* "ledger.example:5432/books (postgresql)" */
static void add_target(const struct command *command, struct bytes *out)
{
	bytes_add(out, command->host.data, command->host.len);
	if (command->port.len)
		bytes_text(out, ":");
	bytes_add(out, command->port.data, command->port.len);
	if (command->name.len && out->len)
		bytes_text(out, "/");
	bytes_add(out, command->name.data, command->name.len);
	if (!command->system.len)
		return;
	bytes_text(out, out->len ? " (" : "(");
	bytes_add(out, command->system.data, command->system.len);
	bytes_text(out, ")");
}

static struct databases_process *process_of(struct databases *databases, uint32_t process)
{
	for (uint32_t i = 0; i < databases->processes.count; i++)
		if (databases->processes.items[i].process == process)
			return &databases->processes.items[i];
	struct databases_process *fresh = vec_push(&databases->processes);
	if (fresh)
		fresh->process = process;
	return fresh;
}

/* False: no memory. *ret_text is 0 for an empty text, and for new ones beyond the limit. */
static bool add_text(struct databases *databases, const struct bytes *text, uint32_t *ret_text)
{
	databases->texts.full = databases->texts.entries.count >= DATABASE_TEXTS_MAX;
	*ret_text =
		text->len ? strtab_add(&databases->texts, (const char *)text->data, text->len) : 0;
	return *ret_text || databases->texts.full || !text->len;
}

/* The row, as an index + 1; 0: no memory. */
static uint32_t row_of(struct databases *databases, uint32_t process, const struct command *command)
{
	struct bytes target = { 0 };
	struct bytes statement = { 0 };
	struct database_row row = { .process = process, .source = command->source };

	add_target(command, &target);
	squeeze(&command->statement, &statement);
	bool is_known = !target.failed && !statement.failed &&
			add_text(databases, &target, &row.target) &&
			add_text(databases, &statement, &row.statement);
	bytes_done(&target);
	bytes_done(&statement);
	if (!is_known)
		return 0;
	uint64_t key = hash_u64(hash_u64((uint64_t)process << 32 | row.target) + row.statement) +
		       row.source;
	for (struct map_walk w = map_find(&databases->row_index, key); w.value; map_next(&w)) {
		const struct database_row *known = &databases->rows.items[w.value - 1];
		if (known->process == process && known->target == row.target &&
			known->statement == row.statement && known->source == row.source)
			return w.value;
	}
	return vec_add(&databases->rows, row) &&
			       map_add(&databases->row_index, key, databases->rows.count)
		       ? databases->rows.count
		       : 0;
}

/* ---- events ---- */

static int add(struct databases *databases, const struct database_begun *begun, uint64_t lasts_ns)
{
	const struct database_row *row = &databases->rows.items[begun->row];
	const struct tally_key key = { .process = row->process,
		.kind = row->source,
		.text = row->target,
		.detail = row->statement,
		.stack = begun->stack };
	const struct tally_amount amount = {
		.amount = lasts_ns, .at_ns = begun->at_ns, .from_ns = begun->from_ns, .lasts = true
	};

	return tally_add(&databases->tally, &key, &amount);
}

static int begin(struct databases *databases, const struct runtime_event *event,
	const struct command *command, struct database_begun *ret_begun)
{
	struct databases_process *process = process_of(databases, event->process);
	uint32_t row = row_of(databases, event->process, command);

	if (!row || !process)
		return -ENOMEM;
	process->count++;
	*ret_begun = (struct database_begun){
		.id = command->id, .at_ns = event->at_ns, .from_ns = event->from_ns, .row = row - 1
	};
	return event_stacks_add(event->stacks, event->process, event->event, &ret_begun->stack);
}

static int keep(struct databases *databases, const struct database_begun *begun)
{
	uint32_t place = databases->free;

	if (place)
		databases->free = databases->begun.items[place - 1].next_free;
	else if (vec_push(&databases->begun))
		place = databases->begun.count;
	else
		return -ENOMEM;
	databases->begun.items[place - 1] = *begun;
	return map_put(&databases->open, begun->id, place) ? 0 : -ENOMEM;
}

static int finish(struct databases *databases, const struct database_begun *begun,
	uint64_t lasts_ns, bool has_failed)
{
	struct database_row *row = &databases->rows.items[begun->row];

	durations_add(&row->durations, begun->at_ns, lasts_ns);
	row->failed += has_failed;
	return add(databases, begun, lasts_ns);
}

static int end(struct databases *databases, const struct runtime_event *event,
	const struct command *command)
{
	uint32_t place = map_get(&databases->open, command->id);

	if (!place) /* it began before the selected time */
		return 0;
	struct database_begun *begun = &databases->begun.items[place - 1];
	int error = finish(databases, begun,
		event->at_ns > begun->at_ns ? event->at_ns - begun->at_ns : 0,
		command->step == COMMAND_FAILS);
	map_remove(&databases->open, command->id, place);
	*begun = (struct database_begun){ .next_free = databases->free };
	databases->free = place;
	return error;
}

/* A span is known at its end, with its duration. */
static int add_whole(struct databases *databases, const struct runtime_event *event,
	const struct command *command)
{
	struct database_begun begun;
	int error = begin(databases, event, command, &begun);
	uint64_t lasts_ns = command->lasts_ns < event->at_ns ? command->lasts_ns : event->at_ns;

	begun.at_ns = event->at_ns - lasts_ns;
	return error ? error : finish(databases, &begun, lasts_ns, command->step == COMMAND_FAILS);
}

static int take(struct databases *databases, const struct runtime_event *event,
	const struct command *command)
{
	struct database_begun begun;
	int error;

	if (command->step == COMMAND_NONE)
		return 0;
	if (command->lasts)
		return event->is_selected ? add_whole(databases, event, command) : 0;
	if (command->step != COMMAND_BEGINS)
		return end(databases, event, command);
	if (!event->is_selected)
		return 0;
	error = begin(databases, event, command, &begun);
	return error ? error : keep(databases, &begun);
}

int databases_event(struct databases *databases, const struct runtime_event *event,
	const struct trace *trace)
{
	struct command command = { 0 };
	enum source_event source = source_event_of(trace_text(trace, event->schema->provider),
		event->schema->event_id, trace_text(trace, event->schema->name));

	if (source == SOURCE_LISTENER || source == SOURCE_SPAN_STOP)
		read_listener(&command, event, source == SOURCE_SPAN_STOP);
	else
		read_sql_client(&command, event,
			source == SOURCE_SQL_CLIENT_BEGIN || source == SOURCE_ADO_NET_BEGIN);
	int error = command_failed(&command) ? -ENOMEM : take(databases, event, &command);
	command_done(&command);
	return error;
}

/* ---- results ---- */

int databases_settle(struct databases *databases, uint64_t end_ns)
{
	int error = 0;

	for (uint32_t i = 0; i < databases->begun.count && !error; i++) {
		const struct database_begun *begun = &databases->begun.items[i];
		if (!begun->id)
			continue;
		struct database_row *row = &databases->rows.items[begun->row];
		uint64_t lasts_ns = end_ns > begun->at_ns ? end_ns - begun->at_ns : 0;
		row->unfinished++;
		row->unfinished_ns += lasts_ns;
		error = add(databases, begun, lasts_ns);
	}
	vec_done(&databases->begun);
	map_done(&databases->open);
	map_done(&databases->row_index);
	return error;
}

static int compare_rows(const void *a, const void *b)
{
	const struct database_row *x = a;
	const struct database_row *y = b;
	uint64_t x_ns = x->durations.total_ns + x->unfinished_ns;
	uint64_t y_ns = y->durations.total_ns + y->unfinished_ns;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	return x->statement < y->statement ? -1 : x->statement > y->statement;
}

static int compare_processes(const void *a, const void *b)
{
	const struct databases_process *x = a;
	const struct databases_process *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

void databases_finish(struct databases *databases, const struct profile *profile)
{
	uint32_t kept = 0;

	if (databases->rows.count > 1)
		qsort(databases->rows.items, databases->rows.count,
			sizeof(databases->rows.items[0]), compare_rows);
	for (uint32_t i = 0; i < databases->processes.count; i++) {
		struct databases_process process = databases->processes.items[i];
		if (!process.count || !profile_wants_process(profile, process.process))
			continue;
		for (uint32_t r = 0; r < databases->rows.count; r++)
			if (databases->rows.items[r].process == process.process &&
				!process.row_count++)
				process.row_at = r;
		databases->processes.items[kept++] = process;
	}
	databases->processes.count = kept;
	if (kept > 1)
		qsort(databases->processes.items, kept, sizeof(databases->processes.items[0]),
			compare_processes);
}

const char *database_source_words(enum database_source source)
{
	static const char *const words[DATABASE_SOURCES] = { "spans of the driver",
		"Entity Framework", "SqlClient" };

	return words[source];
}

void databases_done(struct databases *databases)
{
	strtab_done(&databases->texts);
	vec_done(&databases->rows);
	vec_done(&databases->processes);
	vec_done(&databases->begun);
	tally_done(&databases->tally);
	map_done(&databases->row_index);
	map_done(&databases->open);
}
