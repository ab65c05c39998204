/* See clr_layout.h. */
#include "code/clr_layout.h"

#include <string.h>

#include "code/clr_contract.h"
#include "code/clr_memory.h"

#define OFFSET_MAX        65536u
#define EXECUTION_MANAGER 2u
#define TOKEN_BITS_MAX    16u
#define METHOD_ALIGN_MAX  64u
#define HASH_MASK         "globals.HashMapValueMask"
#define UNWIND_BYTES_MAX  64u

static uint64_t offset_of(const struct clr_contract *contract, const char *path, uint64_t listed)
{
	uint64_t number;

	if (!contract || !clr_contract_number(contract, path, &number))
		return listed;
	return number < OFFSET_MAX || !strcmp(path, HASH_MASK) ? number : CLR_NO;
}

static uint64_t listed_of(enum clr_version version, uint64_t nine, uint64_t eight)
{
	return version == CLR_VERSION_9 ? nine : version == CLR_VERSION_8 ? eight : CLR_NO;
}

static uint64_t variable(const struct clr_contract *contract, const char *name,
	struct clr_memory *memory)
{
	uint64_t address;

	memory->failed = false;
	if (!contract || !clr_contract_global(contract, memory, name, &address))
		return 0;
	uint64_t value = clr_memory_pointer(memory, address);
	return memory->failed ? 0 : value;
}

static enum clr_version version_of(const struct clr_contract *contract, enum clr_version guess)
{
	uint64_t number;

	if (!contract)
		return guess;
	if (!clr_contract_number(contract, "contracts.ExecutionManager", &number))
		return CLR_VERSION_9;
	return number == EXECUTION_MANAGER ? CLR_VERSION_10 : CLR_VERSION_UNKNOWN;
}

bool clr_layout_read(struct clr_layout *layout, const struct clr_contract *contract,
	uint64_t dac_table, enum clr_version guess, struct clr_memory *memory)
{
	bool complete = true;

	*layout = (struct clr_layout){ .version = version_of(contract, guess) };
	if (layout->version == CLR_VERSION_UNKNOWN)
		return false;
#define CLR_FIELD(member, path, nine, eight)                                                 \
	layout->member = offset_of(contract, path, listed_of(layout->version, nine, eight)); \
	complete = complete && layout->member != CLR_NO;
#define CLR_OPTIONAL(member, path, nine, eight) \
	layout->member = offset_of(contract, path, listed_of(layout->version, nine, eight));
#include "code/clr_layout.def"
#undef CLR_FIELD
#undef CLR_OPTIONAL
	if (!complete || !layout->token_bits || layout->token_bits > TOKEN_BITS_MAX ||
		!layout->method_align || layout->method_align > METHOD_ALIGN_MAX ||
		!layout->unwind_bytes || layout->unwind_bytes > UNWIND_BYTES_MAX)
		return false;
	memory->failed = false;
	if (layout->version == CLR_VERSION_10) {
		/* the slot holds the map itself, not a pointer to it */
		if (!clr_contract_global(contract, memory, "ExecutionManagerCodeRangeMapAddress",
			    &layout->code_map))
			return false;
	} else {
		layout->code_map = dac_table ? clr_memory_pointer(memory, dac_table) : 0;
	}
	if (memory->failed || !layout->code_map)
		return false;
	layout->thread_store = variable(contract, "ThreadStore", memory);
	layout->sync_table = variable(contract, "SyncTableEntries", memory);
	layout->object_type = variable(contract, "ObjectMethodTable", memory);
	layout->string_type = variable(contract, "StringMethodTable", memory);
	memory->failed = false;
	return true;
}
