/*
 * Events that are described while they are written. Name, level, keywords, opcode and the names and
 * types of the fields determine the kind of event. The first event of a kind registers it (with a
 * lock and an allocation); later ones find it in a table that is read without a lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <spoor/spoor.h>

#include "lib/event/field_size.h"
#include "lib/event/provider.h"

#define KINDS_MAX  4096u
#define TABLE_ROOM (2u * KINDS_MAX)
#define TYPE_END   0xffffffffu /* end of a struct in a writer's list of fields */

_Static_assert(sizeof(struct spoor_writer) <= 4096, "WriterBytes of managed/Spoor.Inject");

struct source_kind {
	struct spoor_event event;
	uint64_t hash;
	char *name;
	uint32_t list_count;
	struct {
		char *name;
		uint32_t type;
	} * list; /* the list of fields from the writer */
};

struct spoor_event_source {
	struct spoor_provider provider;
	char *name;
	uint32_t kind_count;
	struct source_kind *table[TABLE_ROOM]; /* atomic; open addressing */
	/*
	 * While loggers are open: hashes of names, levels and keywords whose first event was
	 * registered; atomic, open addressing. NULL: none yet.
	 */
	uint64_t *announced;
	uint32_t announced_count;
};

/*
 * One lock for all sources, so that fork() has one lock to hold. Taken before the registry's lock.
 */
static pthread_mutex_t kinds_lock = PTHREAD_MUTEX_INITIALIZER;

void event_sources_lock(void)
{
	pthread_mutex_lock(&kinds_lock);
}

void event_sources_unlock(void)
{
	pthread_mutex_unlock(&kinds_lock);
}

void event_sources_lock_reset(void)
{
	pthread_mutex_init(&kinds_lock, NULL);
}

struct spoor_event_source *spoor_source_new(const char *provider_name)
{
	struct spoor_event_source *source =
		provider_name && provider_name[0] ? calloc(1, sizeof(*source)) : NULL;

	if (!source)
		return NULL;
	source->name = strdup(provider_name);
	source->provider.size = sizeof(source->provider);
	source->provider.name = source->name;
	if (!source->name || registry_add_provider(&source->provider)) {
		free(source->name);
		free(source);
		return NULL;
	}
	return source;
}

static void fields_free(const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; fields && i < count; i++)
		fields_free(fields[i].fields, fields[i].field_count);
	free((void *)(uintptr_t)fields);
}

static void kind_free(struct source_kind *kind)
{
	if (!kind)
		return;
	fields_free(kind->event.fields, kind->event.field_count);
	for (uint32_t i = 0; kind->list && i < kind->list_count; i++)
		free(kind->list[i].name);
	free(kind->list);
	free(kind->name);
	free(kind);
}

void spoor_source_free(struct spoor_event_source *source)
{
	if (!source)
		return;
	spoor_provider_unregister(&source->provider);
	for (uint32_t i = 0; i < TABLE_ROOM; i++)
		kind_free(source->table[i]);
	free(source->announced);
	free(source->name);
	free(source);
}

void spoor_source_set_enable(struct spoor_event_source *source, spoor_enable_function *function,
	void *context)
{
	/*
	 * Registered again, so that the provider's enable callback is called for running sessions.
	 */
	if (!source)
		return;
	spoor_provider_unregister(&source->provider);
	source->provider.enable = function;
	source->provider.enable_context = context;
	(void)registry_add_provider(&source->provider);
	pthread_mutex_lock(&kinds_lock);
	for (uint32_t i = 0; i < TABLE_ROOM; i++)
		if (source->table[i])
			(void)registry_add_event(&source->provider, &source->table[i]->event);
	pthread_mutex_unlock(&kinds_lock);
	registry_announce();
}

bool spoor_source_enabled(const struct spoor_event_source *source, enum spoor_level level,
	uint64_t keywords)
{
	return source && registry_provider_wanted(&source->provider, (uint32_t)level, keywords);
}

/* ---- Writing ---- */

static uint64_t mix(uint64_t hash, const char *text)
{
	while (*text)
		hash = (hash ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
	return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static uint64_t hash_of(const char *name, uint64_t keywords)
{
	return mix(UINT64_C(0xcbf29ce484222325) ^ keywords * UINT64_C(0x9e3779b97f4a7c15), name);
}

/*
 * Loggers show an event to their tools when it is registered, which is when its first event has
 * been written. So, while a logger is open, that first event is written though no tool enables it.
 */
static uint64_t announced_hash(const char *name, uint32_t level, uint64_t keywords)
{
	return hash_of(name, keywords) ^ (level + 1);
}

static bool is_announced(const struct spoor_event_source *source, uint64_t hash)
{
	const uint64_t *table = __atomic_load_n(&source->announced, __ATOMIC_ACQUIRE);

	for (uint32_t at = (uint32_t)(hash >> 20); table; at++) {
		uint64_t known = __atomic_load_n(&table[at & (TABLE_ROOM - 1)], __ATOMIC_RELAXED);
		if (known == hash)
			return true;
		if (!known)
			break;
	}
	/* A full table takes no more names. */
	return __atomic_load_n(&source->announced_count, __ATOMIC_RELAXED) == KINDS_MAX;
}

/* The lock is held. */
static void announced_add(struct spoor_event_source *source, uint64_t hash)
{
	uint32_t at = (uint32_t)(hash >> 20);

	if (is_announced(source, hash))
		return;
	if (!source->announced) {
		uint64_t *table = calloc(TABLE_ROOM, sizeof(*table));
		if (!table)
			return;
		__atomic_store_n(&source->announced, table, __ATOMIC_RELEASE);
	}
	while (source->announced[at & (TABLE_ROOM - 1)])
		at++;
	__atomic_store_n(&source->announced[at & (TABLE_ROOM - 1)], hash, __ATOMIC_RELAXED);
	__atomic_store_n(&source->announced_count, source->announced_count + 1, __ATOMIC_RELAXED);
}

bool spoor_source_begin(struct spoor_event_source *source, const char *name, enum spoor_level level,
	uint64_t keywords, struct spoor_writer *ret_writer)
{
	name = name ? name : "";
	if (!source || !ret_writer)
		return false;
	if (!spoor_source_enabled(source, level, keywords) &&
		(!registry_is_announcing() ||
			is_announced(source, announced_hash(name, (uint32_t)level, keywords))))
		return false;
	ret_writer->source = source;
	ret_writer->name = name;
	ret_writer->keywords = keywords;
	ret_writer->level = (uint8_t)level;
	ret_writer->opcode = 0;
	ret_writer->depth = 0;
	ret_writer->failed = 0;
	ret_writer->field_count = 0;
	ret_writer->hash = hash_of(name, keywords);
	ret_writer->payload = ret_writer->inline_payload;
	ret_writer->payload_size = 0;
	ret_writer->payload_room = sizeof(ret_writer->inline_payload);
	return true;
}

static void add_field(struct spoor_writer *writer, const char *name, uint32_t type)
{
	if (!writer)
		return;
	if (writer->field_count == SPOOR_WRITER_FIELDS) {
		writer->failed = 1;
		return;
	}
	name = name ? name : "";
	writer->fields[writer->field_count].name = name;
	writer->fields[writer->field_count].type = type;
	writer->field_count++;
	writer->hash = mix((writer->hash ^ type) * UINT64_C(0x9e3779b97f4a7c15), name);
}

/* Room for `size` more bytes of payload; NULL: the event has failed. */
static uint8_t *room_for(struct spoor_writer *writer, size_t size)
{
	if (!writer || writer->failed)
		return NULL;
	if (size > SPOOR_PAYLOAD_MAX || writer->payload_size + size > SPOOR_PAYLOAD_MAX) {
		writer->failed = 1;
		return NULL;
	}
	if (writer->payload_room - writer->payload_size < size) {
		/* Rare: an event that does not fit the writer gets the maximum size. */
		uint8_t *payload = malloc(SPOOR_PAYLOAD_MAX);
		if (!payload) {
			writer->failed = 1;
			return NULL;
		}
		memcpy(payload, writer->payload, writer->payload_size);
		writer->payload = payload;
		writer->payload_room = SPOOR_PAYLOAD_MAX;
	}
	uint8_t *at = writer->payload + writer->payload_size;
	writer->payload_size += size;
	return at;
}

static void add(struct spoor_writer *writer, const char *name, uint32_t type, const void *value,
	size_t size)
{
	uint8_t *at = room_for(writer, size);

	if (at && size)
		memcpy(at, value, size);
	add_field(writer, name, type);
}

void spoor_write_boolean(struct spoor_writer *writer, const char *name, bool value)
{
	uint32_t number = value;

	add(writer, name, SPOOR_TYPE_BOOLEAN, &number, sizeof(number));
}

#define NUMBER(suffix, c_type, code)                                                           \
	void spoor_write_##suffix(struct spoor_writer *writer, const char *name, c_type value) \
	{                                                                                      \
		add(writer, name, code, &value, sizeof(value));                                \
	}

NUMBER(i8, int8_t, SPOOR_TYPE_I8)
NUMBER(u8, uint8_t, SPOOR_TYPE_U8)
NUMBER(i16, int16_t, SPOOR_TYPE_I16)
NUMBER(u16, uint16_t, SPOOR_TYPE_U16)
NUMBER(i32, int32_t, SPOOR_TYPE_I32)
NUMBER(u32, uint32_t, SPOOR_TYPE_U32)
NUMBER(i64, int64_t, SPOOR_TYPE_I64)
NUMBER(u64, uint64_t, SPOOR_TYPE_U64)
NUMBER(f32, float, SPOOR_TYPE_F32)
NUMBER(f64, double, SPOOR_TYPE_F64)
NUMBER(char16, spoor_char16, SPOOR_TYPE_CHAR16)

void spoor_write_guid(struct spoor_writer *writer, const char *name, const struct spoor_guid *value)
{
	static const struct spoor_guid none;

	add(writer, name, SPOOR_TYPE_GUID, value ? value : &none, sizeof(none));
}

void spoor_write_time(struct spoor_writer *writer, const char *name, int64_t unix_ns)
{
	spoor_write_time_steps(writer, name, spoor_time_of(unix_ns));
}

void spoor_write_time_steps(struct spoor_writer *writer, const char *name, uint64_t steps)
{
	add(writer, name, SPOOR_TYPE_TIME, &steps, sizeof(steps));
}

void spoor_write_pointer(struct spoor_writer *writer, const char *name, const void *value)
{
	uint64_t address = (uintptr_t)value;

	add(writer, name, SPOOR_TYPE_POINTER, &address, sizeof(address));
}

void spoor_write_text(struct spoor_writer *writer, const char *name, const char *value)
{
	size_t length = spoor_text_length(value);
	uint8_t *at = room_for(writer, 3 + length);

	if (at)
		(void)spoor_put_text(at, value, length);
	add_field(writer, name, SPOOR_TYPE_TEXT);
}

void spoor_write_text16(struct spoor_writer *writer, const char *name, const spoor_char16 *value)
{
	size_t length = spoor_text16_length(value);
	uint8_t *at = room_for(writer, 2 + 2 * length);

	if (at)
		(void)spoor_put_text16(at, value, length);
	add_field(writer, name, SPOOR_TYPE_TEXT16);
}

void spoor_write_array(struct spoor_writer *writer, const char *name, enum spoor_type type,
	const void *elements, size_t count)
{
	size_t size = field_fixed_size(type);

	count = spoor_count_of(elements, count);
	uint8_t *at = size ? room_for(writer, 2 + size * count) : NULL;
	if (at)
		(void)spoor_put_array(at, elements, size, count);
	else if (writer)
		writer->failed = 1;
	add_field(writer, name, (uint32_t)type | SPOOR_TYPE_ARRAY);
}

void spoor_write_blob(struct spoor_writer *writer, const char *name, const void *bytes,
	size_t count)
{
	spoor_write_array(writer, name, SPOOR_TYPE_U8, bytes, count);
}

void spoor_write_text_array(struct spoor_writer *writer, const char *name, const char *const *texts,
	size_t count)
{
	count = spoor_count_of(texts, count);
	size_t size = spoor_text_array_size(texts, count);
	uint8_t *at = room_for(writer, size);
	if (at)
		(void)spoor_put_text_array(at, at + size, texts, count);
	add_field(writer, name, SPOOR_TYPE_TEXT | SPOOR_TYPE_ARRAY);
}

void spoor_write_struct_begin(struct spoor_writer *writer, const char *name)
{
	if (!writer)
		return;
	if (++writer->depth > SPOOR_WRITER_DEPTH)
		writer->failed = 1;
	add_field(writer, name, SPOOR_TYPE_STRUCT);
}

void spoor_write_struct_end(struct spoor_writer *writer)
{
	if (!writer)
		return;
	if (!writer->depth)
		writer->failed = 1;
	else
		writer->depth--;
	add_field(writer, "", TYPE_END);
}

/* ---- Kinds ---- */

static bool kind_is(const struct source_kind *kind, const struct spoor_writer *writer)
{
	if (kind->hash != writer->hash || kind->event.level != writer->level ||
		kind->event.opcode != writer->opcode || kind->event.keywords != writer->keywords ||
		kind->list_count != writer->field_count || strcmp(kind->name, writer->name) != 0)
		return false;
	for (uint32_t i = 0; i < kind->list_count; i++)
		if (kind->list[i].type != writer->fields[i].type ||
			strcmp(kind->list[i].name, writer->fields[i].name) != 0)
			return false;
	return true;
}

/* The place of the kind in the table, or the free place for it. */
static struct source_kind **kind_find(struct spoor_event_source *source,
	const struct spoor_writer *writer)
{
	uint32_t at = (uint32_t)(writer->hash >> 20) & (TABLE_ROOM - 1);

	for (;; at = (at + 1) & (TABLE_ROOM - 1)) {
		struct source_kind *kind = __atomic_load_n(&source->table[at], __ATOMIC_ACQUIRE);
		if (!kind || kind_is(kind, writer))
			return &source->table[at];
	}
}

/* Makes the fields of the list from *at to the end of the struct they are in. */
static int fields_make(const struct source_kind *kind, uint32_t *at,
	const struct spoor_field **ret_fields, uint32_t *ret_count)
{
	struct spoor_field *fields = calloc(kind->list_count + 1 - *at, sizeof(*fields));
	uint32_t count = 0;
	int r = 0;

	if (!fields)
		return -ENOMEM;
	while (r == 0 && *at < kind->list_count && kind->list[*at].type != TYPE_END) {
		struct spoor_field *field = &fields[count++];
		field->name = kind->list[*at].name;
		field->type = kind->list[*at].type;
		(*at)++;
		if (field->type == SPOOR_TYPE_STRUCT) {
			r = fields_make(kind, at, &field->fields, &field->field_count);
			(*at)++;
		}
	}
	*ret_fields = fields;
	*ret_count = count;
	return r;
}

static int kind_make(struct spoor_event_source *source, const struct spoor_writer *writer,
	struct source_kind **ret_kind)
{
	struct source_kind *kind = calloc(1, sizeof(*kind));
	uint32_t at = 0;
	int r = kind ? 0 : -ENOMEM;

	if (r)
		return r;
	kind->hash = writer->hash;
	kind->name = strdup(writer->name);
	kind->list = calloc(writer->field_count + 1, sizeof(*kind->list));
	if (!kind->name || !kind->list)
		r = -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < writer->field_count; i++) {
		kind->list[i].type = writer->fields[i].type;
		kind->list[i].name = strdup(writer->fields[i].name);
		kind->list_count++;
		if (!kind->list[i].name)
			r = -ENOMEM;
	}
	if (r == 0) {
		kind->event = (struct spoor_event){ .size = sizeof(kind->event),
			.provider = &source->provider,
			.name = kind->name,
			.keywords = writer->keywords,
			.level = writer->level,
			.opcode = writer->opcode };
		r = fields_make(kind, &at, &kind->event.fields, &kind->event.field_count);
	}
	if (r == 0)
		r = registry_add_event(&source->provider, &kind->event);
	if (r) {
		kind_free(kind);
		return r;
	}
	*ret_kind = kind;
	return 0;
}

int spoor_source_end(struct spoor_writer *writer)
{
	if (!writer)
		return -EINVAL;
	struct spoor_event_source *source = writer->source;
	int r = writer->failed || writer->depth ? -EINVAL : 0;
	bool is_new = false;

	if (r == 0) {
		struct source_kind **place = kind_find(source, writer);
		struct source_kind *kind = __atomic_load_n(place, __ATOMIC_ACQUIRE);
		bool announcing = registry_is_announcing();
		uint64_t hash =
			announcing ? announced_hash(writer->name, writer->level, writer->keywords)
				   : 0;
		if (!kind || (announcing && !is_announced(source, hash))) {
			pthread_mutex_lock(&kinds_lock);
			if (announcing)
				announced_add(source, hash);
			place = kind_find(source, writer);
			kind = *place;
			if (!kind && source->kind_count == KINDS_MAX)
				r = -ENOSPC;
			if (!kind && r == 0)
				r = kind_make(source, writer, &kind);
			if (r == 0 && !*place) {
				source->kind_count++;
				is_new = true;
				__atomic_store_n(place, kind, __ATOMIC_RELEASE);
			}
			pthread_mutex_unlock(&kinds_lock);
		}
		if (is_new)
			registry_announce();
		if (r == 0) {
			if (!__atomic_load_n(&kind->event.sessions, __ATOMIC_RELAXED))
				r = SPOOR_NOT_ENABLED;
			spoor_fire(&kind->event, writer->payload, writer->payload_size);
			if (announcing && registry_is_refused(&kind->event))
				r = -ENOTSUP;
		}
	}
	if (writer->payload != writer->inline_payload)
		free(writer->payload);
	/* A second end, or a cancel in a common cleanup, has no effect. */
	writer->payload = writer->inline_payload;
	writer->payload_size = 0;
	writer->payload_room = sizeof(writer->inline_payload);
	writer->failed = true;
	return r;
}

void spoor_source_cancel(struct spoor_writer *writer)
{
	if (writer)
		writer->failed = true;
	(void)spoor_source_end(writer); /* -EINVAL, as wanted */
}
