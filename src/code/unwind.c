/*
 * See unwind.h. A row holds rules of the usual kind: the CFA is a register plus an offset, and each
 * register that a function must preserve is either unchanged or saved near the CFA. Others (PLT
 * stubs, signal frames, realigned stacks) are evaluated anew each time.
 */
#include "code/unwind.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "code/arch.h"
#include "code/unwind_expression.h"
#include "code/unwind_table.h"
#include "code/unwind_trace.h"
#include "code/walk_memo.h"

#define CACHE_ENTRIES 16384u /* a power of two */
#define ADDRESS_BITS  48u    /* of user addresses; the number of the space is above */
#define WORD          8
#define LINE_BYTES    64u
#define FETCH_BYTES   2048u

/* Farther from the copy than any stack is large: another stack. */
#define OTHER_STACK_BYTES (UINT64_C(64) << 20)

enum row_kind {
	ROW_RULES,
	ROW_START,   /* the function has no caller */
	ROW_COMPLEX, /* rules that do not fit a row */
	ROW_MALFORMED,
};

struct unwind_row {
	int32_t cfa_offset;
	uint16_t saved; /* bit i: register slots[i] is at CFA + offsets[i] words */
	uint8_t kind;   /* enum row_kind */
	uint8_t cfa_register;
	int16_t offsets[ARCH_UNWIND_SLOTS_MAX];
};

struct unwind_cache_entry {
	uint64_t key; /* address and space; 0: empty */
	struct unwind_row row;
	bool by_frame_pointer;
	bool gap; /* of an image that has a table, but not for this address; or a stub */
};

int unwind_init(struct unwind *unwind, const struct arch_unwind *arch, unwind_locate_fn *locate,
	void *context)
{
	*unwind = (struct unwind){ .arch = arch, .locate = locate, .context = context };
	unwind->cache = calloc(CACHE_ENTRIES, sizeof(*unwind->cache));
	unwind->memos = calloc(WALK_MEMOS, sizeof(*unwind->memos));
	if (unwind->cache && unwind->memos)
		return 0;
	unwind_done(unwind);
	return -ENOMEM;
}

void unwind_done(struct unwind *unwind)
{
	free(unwind->cache);
	free(unwind->memos);
	unwind->cache = NULL;
	unwind->memos = NULL;
}

void unwind_forget(struct unwind *unwind)
{
	for (uint32_t i = 0; i < CACHE_ENTRIES; i++)
		unwind->cache[i].key = 0;
	walk_memo_forget(unwind->memos);
}

void unwind_forget_range(struct unwind *unwind, uint16_t space, uint64_t begin, uint64_t end)
{
	const uint64_t address_mask = (UINT64_C(1) << ADDRESS_BITS) - 1;

	for (uint32_t i = 0; i < CACHE_ENTRIES; i++) {
		uint64_t key = unwind->cache[i].key;
		uint64_t address = key & address_mask;
		if (key >> ADDRESS_BITS == space && address >= begin && address < end)
			unwind->cache[i].key = 0;
	}
	walk_memo_forget(unwind->memos);
}

/* ---- rows ---- */

static bool fits_slot(const struct unwind_rule *rule)
{
	return rule->kind == RULE_OFFSET && rule->value % WORD == 0 &&
	       rule->value / WORD >= INT16_MIN && rule->value / WORD <= INT16_MAX;
}

static bool is_slot(const struct arch_unwind *arch, uint32_t number)
{
	for (uint32_t i = 0; i < arch->slot_count; i++)
		if (arch->slots[i] == number)
			return true;
	return false;
}

static struct unwind_row pack(const struct arch_unwind *arch, const struct unwind_rules *rules)
{
	struct unwind_row row = { .kind = ROW_COMPLEX };

	if (rules->registers[rules->return_register].kind == RULE_UNDEFINED)
		return (struct unwind_row){ .kind = ROW_START };
	if (rules->signal || rules->return_register != arch->slots[0] ||
		rules->cfa.kind != RULE_VALUE_OFFSET || rules->cfa.value < INT32_MIN ||
		rules->cfa.value > INT32_MAX)
		return row;
	for (uint32_t i = 0; i < UNWIND_REGISTERS; i++)
		if (rules->registers[i].kind != RULE_SAME && !is_slot(arch, i) &&
			arch->preserved >> i & 1)
			return row;
	for (uint32_t i = 0; i < arch->slot_count; i++) {
		const struct unwind_rule *rule = &rules->registers[arch->slots[i]];
		if (rule->kind == RULE_SAME)
			continue;
		if (!fits_slot(rule))
			return row;
		row.saved |= (uint16_t)(1u << i);
		row.offsets[i] = (int16_t)(rule->value / WORD);
	}
	row.kind = ROW_RULES;
	row.cfa_offset = (int32_t)rules->cfa.value;
	row.cfa_register = (uint8_t)rules->cfa_register;
	return row;
}

/* The frame record: the caller's frame pointer, and above it the return address. */
static struct unwind_row frame_pointer_row(const struct arch_unwind *arch)
{
	struct unwind_row row = {
		.kind = ROW_RULES,
		.cfa_register = arch->frame_register,
		.cfa_offset = 2 * WORD,
		.saved = 1,
		.offsets = { -1 },
	};

	for (uint32_t i = 1; i < arch->slot_count; i++) {
		if (arch->slots[i] != arch->frame_register)
			continue;
		row.saved |= (uint16_t)(1u << i);
		row.offsets[i] = -2;
	}
	return row;
}

static void make_row(const struct unwind *unwind, const struct unwind_place *place,
	struct unwind_cache_entry *ret_entry)
{
	struct unwind_rules rules;
	int result = -ENOENT;

	if (place->table)
		result = unwind_table_find(place->table, place->vaddr, &rules);
	ret_entry->gap = (place->table || place->stub) && result == -ENOENT;
	if (result == 0)
		ret_entry->row = pack(unwind->arch, &rules);
	else if (result != -ENOENT)
		ret_entry->row = (struct unwind_row){ .kind = ROW_MALFORMED };
	else if (place->rules)
		ret_entry->row = pack(unwind->arch, place->rules);
	/* Rules that do not fit a row are evaluated with a table only. */
	ret_entry->by_frame_pointer =
		result == -ENOENT && (!place->rules || ret_entry->row.kind != ROW_RULES);
	if (ret_entry->by_frame_pointer)
		ret_entry->row = frame_pointer_row(unwind->arch);
}

/* The row of an address; NULL: it is in no known mapping. */
static const struct unwind_cache_entry *find_row(struct unwind *unwind, uint16_t space,
	uint64_t address, bool exact)
{
	uint64_t key = address | (uint64_t)space << ADDRESS_BITS;
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
	struct unwind_cache_entry *entry = &unwind->cache[hash >> 40 & (CACHE_ENTRIES - 1)];
	struct unwind_place place = { .table = NULL };

	if (__builtin_expect(entry->key == key, 1))
		return entry;
	if (address >> ADDRESS_BITS || !unwind->locate(unwind->context, address, exact, &place))
		return NULL;
	unwind->rows_made++;
	make_row(unwind, &place, entry);
	entry->key = place.transient ? 0 : key;
	return entry;
}

/* ---- steps from a frame to its caller ---- */

/* Why the word at `address` is not in the copy. */
static enum unwind_end outside(const struct unwind_stack *stack, uint64_t address)
{
	return address < stack->begin || address - stack->begin > OTHER_STACK_BYTES
		       ? UNWIND_SWITCHED
		       : UNWIND_COPY;
}

/* ---- traces ---- */

static void trace_word(struct unwind_trace *trace, const struct unwind_stack *stack, uint64_t at)
{
	uint32_t offset = (uint32_t)(at - stack->begin);

	for (uint32_t i = 0; i < trace->word_count; i++)
		if (trace->offsets[i] == offset)
			return;
	if (trace->word_count == UNWIND_TRACE_WORDS ||
		!unwind_stack_read(stack, at, &trace->values[trace->word_count])) {
		trace->failed = true;
		return;
	}
	trace->offsets[trace->word_count++] = offset;
}

/* The walk uses the value of a register. */
static void trace_register(struct unwind_trace *trace, const struct unwind_stack *stack,
	uint32_t number)
{
	int64_t source = trace->sources[number];

	if (source == UNWIND_FROM_THREAD)
		trace->registers |= 1u << number;
	else if (source >= 0)
		trace_word(trace, stack, stack->begin + (uint64_t)source);
	else if (source == UNWIND_FROM_NOWHERE)
		trace->failed = true;
	trace->sources[number] = UNWIND_FROM_TRACED;
}

static void trace_begin(struct unwind_trace *trace, const struct arch_unwind *arch)
{
	trace->failed = false;
	trace->registers = trace->word_count = 0;
	for (uint32_t i = 0; i < UNWIND_REGISTERS; i++)
		trace->sources[i] = UNWIND_FROM_THREAD;
	trace->sources[arch->stack_register] = UNWIND_FROM_TRACED;
	if (arch->pc_register < UNWIND_REGISTERS)
		trace->sources[arch->pc_register] = UNWIND_FROM_TRACED;
}

/*
 * UNWIND_END_COUNT: the registers are now the caller's. `trace`: NULL, or what the step uses is added to it. `kept`: NULL,
 * or where the step has read is put into it.
 */
static inline __attribute__((always_inline)) enum unwind_end
step_row(const struct arch_unwind *arch, const struct unwind_cache_entry *entry,
	struct unwind_registers *registers, const struct unwind_stack *stack, bool leaf,
	struct unwind_trace *trace, struct walk_frame *kept)
{
	const struct unwind_row *row = &entry->row;
	uint64_t stack_pointer = registers->values[arch->stack_register];
	uint64_t caller_pc;

	if (kept)
		kept->base = row->cfa_register;
	if (!unwind_register_known(registers, row->cfa_register))
		return UNWIND_LOST_REGISTER;
	if (trace)
		trace_register(trace, stack, row->cfa_register);
	uint64_t base = registers->values[row->cfa_register];
	uint64_t cfa = base + (uint64_t)(int64_t)row->cfa_offset;
	if (entry->by_frame_pointer) {
		if (!base)
			return UNWIND_START;
		if (base < stack_pointer || base % WORD)
			return UNWIND_FRAME_POINTER;
	}
	/* A caller's frame is above; only a leaf may have no frame. */
	if (cfa < stack_pointer || (cfa == stack_pointer && !leaf))
		return UNWIND_SWITCHED;
	if (row->saved & 1) {
		uint64_t at = cfa + (uint64_t)(int64_t)row->offsets[0] * WORD;
		if (!unwind_stack_read(stack, at, &caller_pc))
			return outside(stack, at);
		if (trace)
			trace_word(trace, stack, at);
		if (kept)
			kept->return_at = at;
	} else if (unwind_register_known(registers, arch->slots[0]) &&
		   arch->slots[0] != arch->pc_register) {
		caller_pc = registers->values[arch->slots[0]];
		if (trace)
			trace_register(trace, stack, arch->slots[0]);
	} else {
		return UNWIND_TABLE;
	}
	uint32_t known = registers->known & arch->preserved;
	/* The function may have saved them anywhere. */
	if (entry->by_frame_pointer)
		known = 0;
	for (uint32_t rest = row->saved & ~1u; rest; rest &= rest - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(rest);
		uint64_t at = cfa + (uint64_t)(int64_t)row->offsets[slot] * WORD;
		/* An epilogue has popped it already: tables do not say so, as the memory is intact. */
		if (at < stack_pointer)
			continue;
		if (!unwind_stack_read(stack, at, &registers->values[arch->slots[slot]]))
			return outside(stack, at);
		known |= 1u << arch->slots[slot];
		if (trace)
			trace->sources[arch->slots[slot]] = (int64_t)(at - stack->begin);
		if (kept && arch->slots[slot] == arch->frame_register)
			kept->frame_at = at;
	}
	registers->known = known | 1u << arch->stack_register;
	registers->values[arch->stack_register] = cfa;
	registers->pc = caller_pc & arch->code_mask;
	return UNWIND_END_COUNT;
}

static enum unwind_end expression_end(const struct unwind_stack *stack, int error, uint64_t address)
{
	return error == -EFAULT    ? outside(stack, address)
	       : error == -ENODATA ? UNWIND_LOST_REGISTER
				   : UNWIND_TABLE;
}

/* The value of one register in the caller; UNWIND_END_COUNT: *ret_value is set if *ret_known. */
static enum unwind_end apply(const struct arch_unwind *arch, const struct unwind_rule *rule,
	uint32_t number, uint64_t cfa, const struct unwind_registers *registers,
	const struct unwind_stack *stack, uint64_t *ret_value, bool *ret_known)
{
	uint64_t at = cfa + (uint64_t)rule->value;
	int result;

	*ret_known = true;
	switch ((enum unwind_rule_kind)rule->kind) {
	case RULE_SAME:
		*ret_known =
			unwind_register_known(registers, number) && arch->preserved >> number & 1;
		*ret_value = registers->values[number];
		return UNWIND_END_COUNT;
	case RULE_UNDEFINED:
		*ret_known = false;
		return UNWIND_END_COUNT;
	case RULE_VALUE_OFFSET:
		*ret_value = at;
		return UNWIND_END_COUNT;
	case RULE_REGISTER:
		*ret_known = unwind_register_known(registers, (uint32_t)rule->value);
		*ret_value = *ret_known ? registers->values[rule->value] : 0;
		return UNWIND_END_COUNT;
	case RULE_OFFSET:
		break;
	case RULE_EXPRESSION:
	case RULE_VALUE_EXPRESSION:
		result = unwind_expression_value(rule->expression, rule->size, registers, stack,
			&cfa, &at);
		if (result < 0)
			return expression_end(stack, result, at);
		if (rule->kind == RULE_VALUE_EXPRESSION) {
			*ret_value = at;
			return UNWIND_END_COUNT;
		}
		break;
	}
	/* as in step_row() */
	if (at < registers->values[arch->stack_register] &&
		unwind_register_known(registers, number)) {
		*ret_value = registers->values[number];
		return UNWIND_END_COUNT;
	}
	return unwind_stack_read(stack, at, ret_value) ? UNWIND_END_COUNT : outside(stack, at);
}

static enum unwind_end step_rules(const struct arch_unwind *arch, const struct unwind_rules *rules,
	struct unwind_registers *registers, const struct unwind_stack *stack)
{
	struct unwind_registers caller = { .known = 0 };
	uint64_t cfa;

	if (rules->cfa.kind == RULE_VALUE_OFFSET) {
		if (!unwind_register_known(registers, rules->cfa_register))
			return UNWIND_LOST_REGISTER;
		cfa = registers->values[rules->cfa_register] + (uint64_t)rules->cfa.value;
	} else {
		int result = unwind_expression_value(rules->cfa.expression, rules->cfa.size,
			registers, stack, NULL, &cfa);
		if (result < 0)
			return expression_end(stack, result, cfa);
	}
	for (uint32_t i = 0; i < UNWIND_REGISTERS; i++) {
		bool known;
		enum unwind_end end = apply(arch, &rules->registers[i], i, cfa, registers, stack,
			&caller.values[i], &known);
		/* A register that was not preserved is missing only if it is needed. */
		if (end != UNWIND_END_COUNT &&
			(i == rules->return_register || arch->preserved >> i & 1))
			return end;
		if (end == UNWIND_END_COUNT && known)
			caller.known |= 1u << i;
	}
	if (!unwind_register_known(&caller, rules->return_register))
		return UNWIND_TABLE;
	caller.pc = caller.values[rules->return_register] & arch->code_mask;
	if (rules->registers[arch->stack_register].kind == RULE_SAME)
		caller.values[arch->stack_register] = cfa;
	caller.known |= 1u << arch->stack_register;
	*registers = caller;
	return UNWIND_END_COUNT;
}

static enum unwind_end step_complex(struct unwind *unwind, uint64_t address, bool exact,
	struct unwind_registers *registers, const struct unwind_stack *stack, bool *ret_signal)
{
	uint64_t before = registers->values[unwind->arch->stack_register];
	struct unwind_place place = { .table = NULL };
	struct unwind_rules rules;

	if (!unwind->locate(unwind->context, address, exact, &place) || !place.table)
		return UNWIND_UNMAPPED;
	if (unwind_table_find(place.table, place.vaddr, &rules) < 0)
		return UNWIND_TABLE;
	enum unwind_end end = step_rules(unwind->arch, &rules, registers, stack);
	*ret_signal = rules.signal;
	/* A signal handler may run on another stack; the copy has only one of them. */
	if (end == UNWIND_END_COUNT && registers->values[unwind->arch->stack_register] <= before)
		return UNWIND_SWITCHED;
	return end;
}

/*
 * Fetches the copy ahead of the walk, from *fetched on: it was written by another CPU, and each line that
 * the walk had to wait for would cost more than a frame.
 */
static inline void fetch_ahead(const struct unwind_stack *stack, uint64_t stack_pointer,
	size_t *fetched)
{
	uint64_t until = stack_pointer - stack->begin + FETCH_BYTES;

	for (; *fetched < until && *fetched < stack->size; *fetched += LINE_BYTES)
		__builtin_prefetch(stack->bytes + *fetched);
}

/*
 * A leaf that an image's table leaves out is most often a PLT stub of a static program, or a small function
 * in assembly: it has no frame. Then the last word of the stack is an address in a function with a table.
 */
static bool step_gap(struct unwind *unwind, uint16_t space, struct unwind_registers *registers,
	const struct unwind_stack *stack)
{
	uint32_t number = unwind->arch->stack_register;
	uint64_t address;

	if (unwind->arch->pc_register == ARCH_NO_REGISTER || /* a call pushes nothing there */
		!unwind_stack_read(stack, registers->values[number], &address))
		return false;
	const struct unwind_cache_entry *caller = find_row(unwind, space, address - 1, false);
	if (!caller || caller->by_frame_pointer || caller->row.kind == ROW_MALFORMED)
		return false;
	registers->values[number] += WORD;
	registers->known &= unwind->arch->preserved;
	registers->pc = address;
	return true;
}

/* The frames that are left are the first `met` of the memo. */
static void take_memo(const struct walk_memo *memo, uint32_t met, const struct arch_unwind *arch,
	struct unwind_registers *registers, uint64_t *frames, uint32_t *count)
{
	for (uint32_t i = met; i-- > 0;)
		frames[(*count)++] = memo->frames[i].pc;
	registers->values[arch->stack_register] = memo->end;
	registers->known = 1u << arch->stack_register;
	registers->pc = memo->frames[0].pc;
}

/* `memo`: NULL with a trace, which is to have all steps. */
static inline __attribute__((always_inline)) enum unwind_end walk(struct unwind *unwind,
	uint16_t space, struct unwind_registers *registers, const struct unwind_stack *stack,
	uint64_t *frames, uint32_t room, uint32_t *ret_count, struct unwind_trace *trace,
	struct walk_memo *memo)
{
	const struct arch_unwind *arch = unwind->arch;
	bool exact = true; /* the pc is that of an instruction to come, not behind a call */
	uint32_t count = 0;
	uint32_t next = memo ? memo->count : 0;
	uint32_t met = 0;
	enum unwind_end end = UNWIND_FRAMES;
	size_t fetched = 0;
	struct walk_steps steps;

	steps.count = 0;
	steps.overflow = false;
	while (count < room) {
		fetch_ahead(stack, registers->values[arch->stack_register], &fetched);
		if (memo && next && !exact &&
			walk_memo_meets(memo, arch, registers, stack, &next)) {
			met = next <= room - count ? next : 0;
			next = 0;
		}
		if (met) {
			take_memo(memo, met, arch, registers, frames, &count);
			end = UNWIND_START;
			break;
		}
		uint64_t address = exact ? registers->pc : registers->pc - 1;
		const struct unwind_cache_entry *entry = find_row(unwind, space, address, exact);
		bool signal = false;
		if (!entry) {
			end = UNWIND_UNMAPPED;
			break;
		}
		/* Not traced: rows that may change, and rules that are evaluated anew each time. */
		if (trace &&
			(!entry->key || (entry->gap && !count) || entry->row.kind == ROW_COMPLEX)) {
			trace->failed = true;
			break;
		}
		/* Likewise kept for the next walk, which can meet this one only above such a frame. */
		struct walk_frame *kept = NULL;
		if (memo && (exact || !entry->key || entry->row.kind == ROW_COMPLEX)) {
			steps.count = 0;
		} else if (memo) {
			kept = walk_steps_add(&steps, registers->pc,
				registers->values[arch->stack_register],
				registers->values[arch->frame_register]);
			kept->base = arch->stack_register;
		}
		frames[count++] = registers->pc;
		if (arch->pc_register < UNWIND_REGISTERS) {
			registers->values[arch->pc_register] = registers->pc;
			registers->known |= 1u << arch->pc_register;
		}
		if (entry->gap && count == 1) {
			if (step_gap(unwind, space, registers, stack)) {
				exact = false;
				continue;
			}
			/* it may have taken the place of the entry in the cache */
			entry = find_row(unwind, space, address, exact);
			if (!entry)
				break;
		}
		if (__builtin_expect(entry->row.kind == ROW_RULES, 1))
			end = step_row(arch, entry, registers, stack, count == 1, trace, kept);
		else if (entry->row.kind == ROW_COMPLEX)
			end = step_complex(unwind, address, exact, registers, stack, &signal);
		else
			end = entry->row.kind == ROW_START ? UNWIND_START : UNWIND_TABLE;
		/* The return address was in a register. */
		if (kept && end == UNWIND_END_COUNT && !kept->return_at)
			steps.count = 0;
		if (end == UNWIND_END_COUNT && !registers->pc)
			end = UNWIND_START;
		if (end != UNWIND_END_COUNT)
			break;
		exact = signal;
		end = UNWIND_FRAMES;
	}
	if (memo && end == UNWIND_START)
		walk_memo_keep(memo, arch, &steps, met, registers->values[arch->stack_register]);
	*ret_count = count;
	return end;
}

enum unwind_end unwind_walk(struct unwind *unwind, uint16_t space,
	struct unwind_registers *registers, const struct unwind_stack *stack, uint64_t *frames,
	uint32_t room, uint32_t *ret_count)
{
	return walk(unwind, space, registers, stack, frames, room, ret_count, NULL,
		walk_memo_of(unwind->memos, space, stack->begin));
}

enum unwind_end unwind_walk_traced(struct unwind *unwind, uint16_t space,
	struct unwind_registers *registers, const struct unwind_stack *stack, uint64_t *frames,
	uint32_t room, uint32_t *ret_count, struct unwind_trace *ret_trace)
{
	trace_begin(ret_trace, unwind->arch);
	return walk(unwind, space, registers, stack, frames, room, ret_count, ret_trace, NULL);
}

bool unwind_is_start(struct unwind *unwind, uint16_t space, uint64_t return_address)
{
	const struct unwind_cache_entry *entry = find_row(unwind, space, return_address - 1, false);

	return entry && entry->row.kind == ROW_START;
}
