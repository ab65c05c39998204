/*
 * The tracepoints of user_events that a session records, and the layouts of their events: turns raw data of samples
 * into payloads with a schema.
 *
 *   user_event_table_init(&table, trace);
 *   user_event_table_add(&table, name, NULL, &format);         for each tracepoint
 *   user_event_table_decode(&table, pid, raw, size, &event);   for each sample
 *   user_event_table_done(&table);
 *
 * Three kinds of events: EventHeader (formats/header_event.h), of .NET 10 (formats/dotnet_user_event.h), and those
 * whose fields the kernel describes. Events of the last kind have the provider "user_events" and the tracepoint's
 * name; their fields are numbers, texts and arrays in the order of the description.
 *
 * An event of .NET has the same schema as the event of an EventPipe session: its metadata comes with the first event
 * of each kind of a process; events of the runtime itself may have none, and are known from the runtime's manifest.
 */
#ifndef SPOOR_RECORDING_USER_EVENT_TABLE_H
#define SPOOR_RECORDING_USER_EVENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"
#include "formats/header_event.h"
#include "formats/tracepoint_format.h"
#include "trace/event.h"

struct trace;

#define USER_TRACEPOINTS_MAX   4096u
#define USER_EVENT_LAYOUTS_MAX 16384u

enum user_tracepoint_kind { USER_TRACEPOINT_PLAIN, USER_TRACEPOINT_HEADER, USER_TRACEPOINT_DOTNET };

struct user_event_tracepoint {
	uint32_t name;         /* in the trace's texts */
	uint32_t provider;     /* in the trace's texts */
	uint32_t schema_index; /* of USER_TRACEPOINT_PLAIN */
	uint64_t keywords;     /* of USER_TRACEPOINT_HEADER */
	uint32_t field_first;  /* in `fields` */
	uint32_t field_count;
	uint16_t id;
	uint8_t kind; /* enum user_tracepoint_kind */
	bool is_own;  /* user_event_table_add() had its provider */
};

/* A description of EventHeader that was met. */
struct user_event_layout {
	uint32_t tracepoint;
	uint32_t key_first; /* in `keys` */
	uint32_t key_size;
	struct header_layout layout;
};

struct user_event_table {
	struct trace *trace; /* borrowed */
	VEC(struct user_event_tracepoint) tracepoints;
	VEC(struct format_field) fields; /* without names */
	VEC(struct user_event_layout) layouts;
	struct bytes keys; /* what tells layouts apart: part of the header, and the description */
	struct bytes key;  /* scratch */
	struct bytes payload;
	struct map by_id;      /* tracepoint's id -> index + 1 */
	struct map by_layout;  /* hash of the key -> index + 1 */
	struct map by_process; /* of .NET: hash of tracepoint, process and event -> schema */
	uint8_t activity[EVENT_ACTIVITY_SIZE];
	uint64_t malformed;      /* events that could not be decoded */
	uint64_t without_layout; /* events dropped since there were USER_EVENT_LAYOUTS_MAX */
	uint64_t undescribed;    /* events of .NET whose metadata was not met: they have no names */
};

/* A decoded event; the pointers are valid until the next call. */
struct user_event {
	uint32_t schema_index;
	uint32_t tracepoint; /* its name, in the trace's texts */
	bool is_own;         /* as of the tracepoint */
	const uint8_t *payload;
	uint32_t payload_size;
	const uint8_t *activity; /* EVENT_ACTIVITY_SIZE bytes; NULL: none */
};

void user_event_table_init(struct user_event_table *table, struct trace *trace);

/*
 * Adds a tracepoint by its name and description. `provider`: of the .NET events in it; NULL: the tracepoint's name
 * has it. -EEXIST: a tracepoint has this id already. -ENOSPC: there are USER_TRACEPOINTS_MAX. -ENOMEM.
 */
int user_event_table_add(struct user_event_table *table, const char *name, const char *provider,
	const struct tracepoint_format *format);

/* Whether raw data is of one of the tracepoints. Cheap. */
bool user_event_table_has(const struct user_event_table *table, const uint8_t *raw, size_t size);

/* Decodes raw data of a process. False: it is not of these tracepoints, or it is counted as above. */
bool user_event_table_decode(struct user_event_table *table, uint32_t pid, const uint8_t *raw,
	size_t size, struct user_event *ret_event);

void user_event_table_done(struct user_event_table *table);

#endif
