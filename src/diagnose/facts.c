/* See facts.h. */
#include "diagnose/facts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define FRAMES_MAX 64u /* of the stack that a finding shows */

enum fact_unit { UNIT_SHARE, UNIT_NUMBER, UNIT_COUNT, UNIT_RATE, UNIT_SECONDS, UNIT_BYTES };

static const struct {
	const char *name;
	enum fact_unit unit;
} fact_rows[] = {
#define FACT(name, unit) { #name, UNIT_##unit },
#define WORD(name)
#include "diagnose/facts.def"
#undef FACT
#undef WORD
};

static const char *const word_names[] = {
#define FACT(name, unit)
#define WORD(name) #name,
#include "diagnose/facts.def"
#undef FACT
#undef WORD
};

static const char *const place_names[] = {
#define PLACE(name) #name,
#include "diagnose/places.def"
#undef PLACE
};

struct process_facts *facts_process(struct facts *facts, uint32_t pid)
{
	struct process_facts *process = facts_find(facts, pid);

	if (!process && (process = vec_push(&facts->processes))) {
		process->pid = pid;
		if (!map_put(&facts->by_pid, pid, facts->processes.count)) {
			facts->processes.count--;
			return NULL;
		}
	}
	return process;
}

struct process_facts *facts_find(const struct facts *facts, uint32_t pid)
{
	uint32_t at = map_get(&facts->by_pid, pid);

	return at ? &facts->processes.items[at - 1] : NULL;
}

const char *fact_name(enum fact fact)
{
	return fact_rows[fact].name;
}

void facts_set(struct process_facts *process, enum fact fact, double value)
{
	process->numbers[fact] = value;
	process->known[fact] = true;
}

void facts_add(struct process_facts *process, enum fact fact, double value)
{
	facts_set(process, fact, value + (process->known[fact] ? process->numbers[fact] : 0));
}

static uint32_t copy_name(struct facts *facts, const struct symbolmap *names, uint32_t function)
{
	return strtab_add_z(&facts->texts,
		trace_text(names->trace, names->functions.items[function].name));
}

uint32_t facts_add_method(struct facts *facts, const char *name)
{
	static const char *const parts[] = { " (async)", " (state machine)" };
	size_t len = strcspn(name, "(");

	/* "Get (async)" is the method's own code, "(interface dispatch stub)" is no method. */
	if (!len || name[len - 1] == ' ')
		len = strlen(name);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (text_ends_with(name, parts[i]))
			len = strlen(name) - strlen(parts[i]);
	return strtab_add(&facts->texts, name, len);
}

static uint32_t copy_head(struct facts *facts, const struct symbolmap *names, uint32_t function)
{
	return facts_add_method(facts,
		trace_text(names->trace, names->functions.items[function].name));
}

int facts_set_place(struct facts *facts, struct place *place, const struct symbolmap *names,
	const struct place_stack *stack)
{
	*place = (struct place){ .method = copy_head(facts, names, stack->method),
		.frame_at = facts->frames.count };
	if (stack->callee != stack->method)
		place->callee = copy_head(facts, names, stack->callee);
	for (uint32_t i = 0; i < stack->count && i < FRAMES_MAX; i++, place->frame_count++)
		if (!vec_add(&facts->frames, copy_name(facts, names, stack->functions[i])))
			return -ENOMEM;
	return 0;
}

/* Three significant digits, as everywhere: "41.2", "9.81", "1,204". */
static void add_number(struct bytes *out, double value)
{
	if (value >= 999.5)
		text_add_count(out, (uint64_t)(value + 0.5));
	else
		bytes_printf(out, "%.*f", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value);
}

static void add_fact(struct bytes *out, enum fact_unit unit, double value)
{
	switch (unit) {
	case UNIT_SHARE:
		bytes_printf(out, "%.*f %%", value >= 0.0995 ? 0 : 1, 100 * value);
		break;
	case UNIT_NUMBER:
	case UNIT_RATE:
		add_number(out, value);
		break;
	case UNIT_COUNT:
		text_add_count(out, (uint64_t)value);
		break;
	case UNIT_SECONDS:
		text_add_duration(out, value);
		break;
	case UNIT_BYTES:
		text_add_size(out, (uint64_t)value);
		break;
	}
}

static bool is_name(const char *name, size_t len, const char *of)
{
	return strlen(of) == len && memcmp(name, of, len) == 0;
}

static bool add_text(const struct facts *facts, uint32_t text, struct bytes *out)
{
	text_add_safe(out, strtab_get(&facts->texts, text), strtab_len(&facts->texts, text));
	return text != 0;
}

static bool add_place(const struct facts *facts, const struct process_facts *process,
	const char *name, size_t len, struct bytes *out)
{
	static const char callee[] = ".callee";
	size_t tail = sizeof(callee) - 1;
	bool of_callee = len > tail && memcmp(name + len - tail, callee, tail) == 0;

	if (of_callee)
		len -= tail;
	for (uint32_t i = 0; i < PLACE_KINDS; i++) {
		const struct place *place = &process->places[i];
		if (is_name(name, len, place_names[i]))
			return add_text(facts, of_callee ? place->callee : place->method, out);
	}
	assert(false && "a text refers to a fact that does not exist");
	return false;
}

static bool add_named(const struct facts *facts, const struct process_facts *process,
	const char *name, size_t len, struct bytes *out)
{
	if (is_name(name, len, "pid")) {
		bytes_printf(out, "%" PRIu32, process->pid);
		return true;
	}
	for (uint32_t i = 0; i < FACT_KINDS; i++) {
		if (!is_name(name, len, fact_rows[i].name))
			continue;
		if (process->known[i])
			add_fact(out, fact_rows[i].unit, process->numbers[i]);
		return process->known[i];
	}
	for (uint32_t i = 0; i < WORD_KINDS; i++)
		if (is_name(name, len, word_names[i]))
			return add_text(facts, process->words[i], out);
	return add_place(facts, process, name, len, out);
}

bool facts_expand(const struct facts *facts, const struct process_facts *process, const char *text,
	struct bytes *out)
{
	size_t before = out->len;

	while (*text) {
		size_t plain = strcspn(text, "{");
		bytes_add(out, text, plain);
		text += plain;
		if (!*text)
			break;
		size_t len = strcspn(text + 1, "}");
		if (!add_named(facts, process, text + 1, len, out)) {
			out->len = before;
			return false;
		}
		text += len + 2;
	}
	return true;
}

void facts_done(struct facts *facts)
{
	strtab_done(&facts->texts);
	vec_done(&facts->frames);
	map_done(&facts->by_pid);
	vec_done(&facts->processes);
}
