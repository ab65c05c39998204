/*
 * See clr_tier.h. MethodDesc -> MethodDescCodeData -> MethodDescVersioningState -> a list of nodes:
 *
 *   offset  size  field of a NativeCodeVersionNode
 *   0       8     address of the code
 *   8       8     MethodDesc
 *   16      8     number of its IL version: 0, or one that a profiler has made
 *   24      8     next node
 *   32      4     number
 *   36      4     tier
 *   40      8     patchpoints
 *   48      4     IL offset
 *   52      4     flags
 *
 * The runtime describes all but four members between `next` and `flags`; their sizes leave one order. In other
 * distances the tier is not read.
 */
#include "code/clr_tier.h"

#include "base/cursor.h"
#include "code/clr_code.h"
#include "code/clr_layout.h"
#include "code/clr_memory.h"

#define NODES_MAX         32u /* a method has at most some four */
#define NEXT_TO_TIER      12u
#define NEXT_TO_FLAGS     28u
#define KIND_MASK         7u
#define KIND_IL           0u
#define METHOD_HAS_SLOT   0x08u
#define METHOD_HAS_IMPL   0x10u
#define METHOD_HAS_NATIVE 0x20u
#define METHOD_TIERED     0x8000u /* with the remainder of the token */

/* NativeCodeVersion::OptimizationTier, whose values never change. */
enum version_tier {
	VERSION_TIER_0,
	VERSION_TIER_1,
	VERSION_TIER_1_OSR,
	VERSION_OPTIMIZED,
	VERSION_TIER_0_INSTRUMENTED,
	VERSION_TIER_1_INSTRUMENTED,
};

struct version {
	uint64_t code;
	uint64_t method;
	uint64_t il_version;
	uint64_t next;
	uint32_t tier;
};

static enum code_tier tier_of(uint32_t tier)
{
	switch (tier) {
	case VERSION_TIER_0:
		return TIER_0;
	case VERSION_TIER_1:
		return TIER_1;
	case VERSION_TIER_1_OSR:
		return TIER_1_OSR;
	case VERSION_OPTIMIZED:
		return TIER_OPTIMIZED;
	case VERSION_TIER_0_INSTRUMENTED:
		return TIER_0_INSTRUMENTED;
	case VERSION_TIER_1_INSTRUMENTED:
		return TIER_1_INSTRUMENTED;
	default:
		return TIER_UNKNOWN;
	}
}

/* A tier that a method gets only after code of tier 0, or after precompiled code. */
static bool is_later(uint32_t tier)
{
	return tier == VERSION_TIER_1 || tier == VERSION_TIER_1_OSR ||
	       tier == VERSION_TIER_0_INSTRUMENTED || tier == VERSION_TIER_1_INSTRUMENTED;
}

static bool is_described(const struct clr_layout *l)
{
	return l->method_data != CLR_NO && l->data_state != CLR_NO && l->state_node != CLR_NO &&
	       l->node_code != CLR_NO && l->node_method != CLR_NO && l->node_il_version != CLR_NO &&
	       l->node_next != CLR_NO && l->node_flags == l->node_next + NEXT_TO_FLAGS;
}

static bool read_version(struct clr_memory *memory, const struct clr_layout *l, uint64_t node,
	struct version *ret_version)
{
	ret_version->code = clr_memory_u64(memory, node + l->node_code);
	ret_version->method = clr_memory_u64(memory, node + l->node_method);
	ret_version->il_version = clr_memory_u64(memory, node + l->node_il_version);
	ret_version->next = clr_memory_u64(memory, node + l->node_next);
	ret_version->tier = clr_memory_u32(memory, node + l->node_next + NEXT_TO_TIER);
	return !memory->failed;
}

/* Whether this is the first code of an ordinary method that the runtime may compile again. */
static bool is_first_code(struct clr_memory *memory, const struct clr_layout *l,
	const struct clr_body *body)
{
	uint32_t flags = clr_memory_u16(memory, body->method + l->method_flags);
	uint64_t slot = body->method + l->method_bytes;

	if ((flags & KIND_MASK) != KIND_IL || !(flags & METHOD_HAS_NATIVE) ||
		!(clr_memory_u16(memory, body->method + l->method_token) & METHOD_TIERED))
		return false;
	slot += flags & METHOD_HAS_SLOT ? l->slot_bytes : 0;
	slot += flags & METHOD_HAS_IMPL ? l->impl_bytes : 0;
	return clr_memory_u64(memory, slot) == body->begin && !memory->failed;
}

enum code_tier clr_tier_read(struct clr_memory *memory, const struct clr_layout *layout,
	const struct clr_body *body)
{
	const struct clr_layout *l = layout;
	struct version version;
	enum code_tier tier = TIER_UNKNOWN;
	bool replaced = false;

	if (!is_described(l))
		return TIER_UNKNOWN;
	memory->failed = false;
	uint64_t data = clr_memory_pointer(memory, body->method + l->method_data);
	uint64_t state = clr_memory_pointer(memory, data + l->data_state);
	uint64_t node = clr_memory_pointer(memory, state + l->state_node);
	for (uint32_t i = 0; i < NODES_MAX && node && !memory->failed && tier == TIER_UNKNOWN;
		i++) {
		/* A node of another method: this is no list of versions. */
		if (!read_version(memory, l, node, &version) || version.method != body->method)
			break;
		if (version.code == body->begin)
			tier = tier_of(version.tier);
		replaced |= !version.il_version && is_later(version.tier);
		node = version.next;
	}
	if (tier == TIER_UNKNOWN && replaced && is_first_code(memory, l, body))
		tier = TIER_0;
	memory->failed = false;
	return tier;
}
