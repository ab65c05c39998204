#include "gc/host/host_types.h"

#include <stdlib.h>
#include <string.h>

#define IS_ARRAY     0x80000000u
#define SIZE_MIN     24u
#define FIELDS_MAX   (1u << 30)
#define OBJECT_MAX   ((size_t)1 << 47)
#define ELEMENT_MAX  65535u
#define POINTER_SIZE 8u

/*
 * A run of references without gaps. A method table describes an object by its runs, and an array of
 * structs by the runs of one element and the gaps after them.
 */
struct reference_run {
	uint32_t at;
	uint32_t count;
};

static bool is_valid(const struct gc_host_type_info *info)
{
	uint32_t size = info->element_size ? info->element_size : info->size;

	if (!info->name || info->size > FIELDS_MAX || info->element_size > ELEMENT_MAX ||
		(info->element_size && (info->size || info->finalize)))
		return false;
	for (uint32_t i = 0; i < info->reference_count; i++)
		if (info->references[i] % POINTER_SIZE || size < POINTER_SIZE ||
			size % POINTER_SIZE || info->references[i] > size - POINTER_SIZE ||
			(i && info->references[i] <= info->references[i - 1]))
			return false;
	return true;
}

static uint32_t find_runs(const struct gc_host_type_info *info, struct reference_run *runs)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < info->reference_count; i++) {
		uint32_t at = info->references[i];
		if (count && runs[count - 1].at + runs[count - 1].count * POINTER_SIZE == at)
			runs[count - 1].count++;
		else
			runs[count++] = (struct reference_run){ .at = at, .count = 1 };
	}
	return count;
}

/* Writes the words that end at `end`: the number of runs, then, downward, the runs. */
static void describe_object(int64_t *end, const struct reference_run *runs, uint32_t count,
	uint32_t base_bytes)
{
	end[-1] = count;
	for (uint32_t i = 0; i < count; i++) {
		end[-2 - 2 * (int64_t)i] = runs[i].at + 8;
		end[-3 - 2 * (int64_t)i] = (int64_t)runs[i].count * 8 - base_bytes;
	}
}

static void describe_elements(int64_t *end, const struct reference_run *runs, uint32_t count,
	uint32_t element)
{
	end[-1] = -(int64_t)count;
	end[-2] = runs[0].at + 16;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t after = runs[i].at + runs[i].count * 8;
		uint32_t next = i + 1 < count ? runs[i + 1].at : element + runs[0].at;
		end[-3 - (int64_t)i] = (int64_t)((uint64_t)(next - after) << 32 | runs[i].count);
	}
}

struct gc_host_type *host_type_make(const struct gc_host_type_info *info)
{
	if (!is_valid(info))
		return NULL;
	struct reference_run *runs = calloc((size_t)info->reference_count + 1, sizeof(*runs));
	struct gc_host_type *type = calloc(1, sizeof(*type));
	size_t word_count = 2 * (size_t)info->reference_count + 2;
	int64_t *block =
		calloc(1, word_count * 8 + sizeof(struct host_method_table) + POINTER_SIZE);

	if (!runs || !type || !block || !(type->name = strdup(info->name))) {
		free(runs);
		free(type);
		free(block);
		return NULL;
	}
	int64_t *end = block + word_count;
	uint32_t base =
		info->element_size ? HOST_ARRAY_HEAD : (HOST_OBJECT_HEAD + info->size + 7) & ~7u;
	uint32_t count = find_runs(info, runs);

	/* The table is followed by a pointer to the type, see gc_host_type_of(). */
	type->table = (struct host_method_table *)end;
	type->block = block;
	type->is_array = info->element_size != 0;
	type->finalize = info->finalize;
	type->finalize_context = info->finalize_context;
	*type->table = (struct host_method_table){
		.flags = info->element_size | (info->element_size ? IS_ARRAY : 0) |
			 (count ? (uint32_t)HOST_TYPE_HAS_REFERENCES : 0) |
			 (info->finalize ? (uint32_t)HOST_TYPE_HAS_FINALIZER : 0),
		.base_bytes = base < SIZE_MIN ? SIZE_MIN : base,
	};
	memcpy(type->table + 1, &type, sizeof(type));
	if (count && !info->element_size)
		describe_object(end, runs, count, type->table->base_bytes);
	else if (count == 1 && runs[0].count * 8 == info->element_size)
		/* Only references: one run, from the first to the end of the array. */
		describe_object(end, &(struct reference_run){ .at = 8 }, 1, HOST_ARRAY_HEAD);
	else if (count)
		describe_elements(end, runs, count, info->element_size);
	free(runs);
	return type;
}

struct gc_host_type *host_type_free_space(void)
{
	return host_type_make(&(struct gc_host_type_info){ .name = "Free", .element_size = 1 });
}

void host_type_delete(struct gc_host_type *type)
{
	if (!type)
		return;
	free(type->name);
	free(type->block);
	free(type);
}

const struct gc_host_type *gc_host_type_of(const struct gc_object *object)
{
	const struct host_method_table *table;
	const struct gc_host_type *type;
	uintptr_t word;

	/* During a collection the lowest bits may be marks of the collector. */
	memcpy(&word, object, sizeof(word));
	word &= ~(uintptr_t)7;
	memcpy(&table, &word, sizeof(table));
	memcpy(&type, table + 1, sizeof(type));
	return type;
}

const char *gc_host_type_name(const struct gc_host_type *type)
{
	return type->name;
}

size_t host_type_bytes(const struct gc_host_type *type, uint32_t length)
{
	size_t element = type->is_array ? type->table->flags & ELEMENT_MAX : 0;
	size_t size = (type->table->base_bytes + element * length + 7) & ~(size_t)7;

	return size < OBJECT_MAX ? size : 0;
}

size_t host_object_size(const struct gc_object *object)
{
	return host_type_bytes(gc_host_type_of(object), gc_host_length(object));
}

void host_object_begin(struct gc_object *object, const struct gc_host_type *type, uint32_t length)
{
	memcpy(object, &type->table, sizeof(type->table));
	if (type->is_array)
		memcpy((uint8_t *)object + 8, &length, sizeof(length));
}

void *gc_host_fields(struct gc_object *object)
{
	return (uint8_t *)object + (gc_host_type_of(object)->is_array ? 16 : 8);
}

uint32_t gc_host_length(const struct gc_object *object)
{
	uint32_t length = 0;

	if (gc_host_type_of(object)->is_array)
		memcpy(&length, (const uint8_t *)object + 8, sizeof(length));
	return length;
}
