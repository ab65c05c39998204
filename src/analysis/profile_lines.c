/* See profile_lines.h. The same addresses are in many stacks, so their frames are made once. */
#include "analysis/profile_lines.h"

#include <errno.h>
#include <string.h>

#include "analysis/profile.h"
#include "base/map.h"
#include "base/vec.h"
#include "trace/line_table.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* The frames that take the place of one. */
struct replaced {
	uint64_t address;
	uint32_t process;
	uint32_t epoch;
	uint32_t function;
	bool caller;
	uint32_t at; /* in functions and bodies of the adding */
	uint32_t count;
};

struct adding {
	struct profile *profile;
	struct symbolmap *names;
	VEC(struct replaced) replaced;
	struct map index;
	VEC(uint32_t) functions;
	VEC(uint32_t) bodies;
};

static bool add_pair(struct adding *adding, uint32_t function, uint32_t body)
{
	return function && body && vec_add(&adding->functions, function) &&
	       vec_add(&adding->bodies, body);
}

/* Makes the frames of one; false: no memory. */
static bool make(struct adding *adding, struct replaced *replaced, uint32_t body)
{
	const struct trace *trace = adding->profile->trace;
	struct line_place place;
	uint32_t mapping;
	uint32_t code;
	uint32_t count = 0;
	const struct line_frame *frames = NULL;

	replaced->at = adding->functions.count;
	/* Marks are no code. */
	uint8_t kind = adding->names->functions.items[replaced->function].kind;
	if (kind != FUNCTION_UNKNOWN && kind != FUNCTION_BLOCKED &&
		symbolmap_place(adding->names, replaced->process, replaced->address,
			replaced->epoch, replaced->caller, &place, &mapping, &code))
		frames = line_table_find(&trace->lines, &place, &count);
	for (uint32_t i = 0; i < count; i++) {
		/* Inlined code has no tier of its own. */
		uint32_t function = symbolmap_line(adding->names, replaced->function, &frames[i]);
		uint32_t of_body = frames[i].function ? function : body;
		if (!add_pair(adding, function, of_body))
			return false;
	}
	replaced->count = count;
	if (!count && !add_pair(adding, replaced->function, body))
		return false;
	replaced->count = count ? count : 1;
	return true;
}

/* The frames of one: an item of `replaced`, or NULL without memory. */
static const struct replaced *find(struct adding *adding, const struct replaced *wanted,
	uint32_t body)
{
	uint64_t hash =
		hash_u64(wanted->address ^ hash_u64((uint64_t)wanted->process << 33 ^
						    (uint64_t)wanted->epoch << 1 ^ wanted->caller));

	for (struct map_walk w = map_find(&adding->index, hash); w.value; map_next(&w)) {
		const struct replaced *known = &adding->replaced.items[w.value - 1];
		if (known->address == wanted->address && known->process == wanted->process &&
			known->epoch == wanted->epoch && known->function == wanted->function &&
			known->caller == wanted->caller)
			return known;
	}
	struct replaced fresh = *wanted;
	if (!make(adding, &fresh, body) || !vec_add(&adding->replaced, fresh) ||
		!map_add(&adding->index, hash, adding->replaced.count))
		return NULL;
	return vec_last(&adding->replaced);
}

static bool add_stack(struct adding *adding, struct profile_stack *stack,
	struct profile *ret_profile)
{
	struct profile *profile = adding->profile;
	uint32_t count;
	const uint64_t *addresses = stack_table_get(&profile->trace->stacks, stack->stack, &count);
	uint32_t at = ret_profile->functions.count;

	/* A mark may have taken the place of the innermost frames (blocked_profile_mark()). */
	uint32_t dropped = count > stack->frame_count ? count - stack->frame_count : 0;
	bool recorded = count >= stack->frame_count;
	for (uint32_t f = 0; f < stack->frame_count && !recorded; f++)
		if (!vec_add(&ret_profile->functions, profile->functions.items[stack->at + f]) ||
			!vec_add(&ret_profile->bodies, profile->bodies.items[stack->at + f]))
			return false;
	for (uint32_t f = 0; f < stack->frame_count && recorded; f++) {
		const struct replaced wanted = { .address = addresses[f + dropped],
			.process = stack->process,
			.epoch = stack->epoch,
			.function = profile->functions.items[stack->at + f],
			.caller = f + dropped > 0 };
		const struct replaced *frames =
			find(adding, &wanted, profile->bodies.items[stack->at + f]);
		for (uint32_t i = 0; frames && i < frames->count; i++)
			if (!vec_add(&ret_profile->functions,
				    adding->functions.items[frames->at + i]) ||
				!vec_add(&ret_profile->bodies,
					adding->bodies.items[frames->at + i]))
				return false;
		if (!frames)
			return false;
	}
	stack->at = at;
	stack->frame_count = ret_profile->functions.count - at;
	return true;
}

int profile_add_lines(struct profile *profile, struct symbolmap *names)
{
	struct adding adding = { .profile = profile, .names = names };
	struct profile grown = { 0 };
	bool done = true;

	for (uint32_t i = 0; i < profile->stacks.count && done; i++)
		done = add_stack(&adding, &profile->stacks.items[i], &grown);
	int error = profile_take_frames(profile, &grown, done);
	vec_done(&adding.replaced);
	map_done(&adding.index);
	vec_done(&adding.functions);
	vec_done(&adding.bodies);
	return error;
}
