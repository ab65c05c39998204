/* See diagnosis.h. */
#include "diagnose/diagnosis.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "diagnose/facts.h"
#include "diagnose/findings.h"

/* With fewer, a line for each word or two would be no help. */
#define COLUMNS_LEAST 20u
#define INDENT        9u /* of the texts of a finding */

/* Parts of a verdict's first line; those whose facts are unknown are left out. */
static const char *const summary_parts[] = { "CPU {cpu_share} of {cpu_count} CPUs|CPU {cpus} CPUs",
	"GC {pause_share}", "memory {private} without files", "over {span}" };

/* In the order of the process's findings. */
static uint32_t count_findings(const struct diagnosis *diagnosis, uint32_t process,
	uint32_t *ret_first)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < diagnosis->findings->items.count; i++) {
		if (diagnosis->findings->items.items[i].process != process)
			continue;
		if (!count++)
			*ret_first = i;
	}
	return count;
}

static void add_process(const struct diagnosis *diagnosis, const struct process_facts *process,
	struct bytes *out)
{
	const struct strtab *texts = &diagnosis->facts->texts;

	text_add_safe(out, strtab_get(texts, process->name), strtab_len(texts, process->name));
	bytes_printf(out, process->name ? " (%" PRIu32 ")" : "pid %" PRIu32, process->pid);
}

static void add_verdict(const struct diagnosis *diagnosis, const struct process_facts *process,
	uint32_t count, struct bytes *out)
{
	const struct rule *not_judged = NULL;
	const char *separator = count                                        ? ": "
				: kind_next_not_judged(process, &not_judged) ? "no finding: "
									     : "healthy: ";

	if (!findings_are_possible(process)) {
		bytes_text(out, "no verdict: it was not observed for long enough");
		return;
	}
	if (!count && !process->known[FACT_cpus] && !process->known[FACT_pause_share]) {
		bytes_text(out, "no verdict: neither CPU time nor collections of it were recorded");
		return;
	}
	if (count)
		text_add_things(out, count, "finding", "findings");
	for (size_t i = 0; i < sizeof(summary_parts) / sizeof(summary_parts[0]); i++) {
		struct bytes part = { 0 };
		const char *at = summary_parts[i];
		if (rule_line(diagnosis->facts, process, &at, &part)) {
			bytes_text(out, separator);
			bytes_add(out, part.data, part.len);
			separator = ", ";
		}
		bytes_done(&part);
	}
}

/* Words, broken into lines; the first line has `used` columns already. */
static void add_wrapped(struct bytes *out, const char *text, size_t used, unsigned columns)
{
	bool begins = true;

	while (*text) {
		size_t len = strcspn(text, " ");
		size_t width = text_columns(text, len);
		if (used > INDENT && used + !begins + width > columns) {
			bytes_printf(out, "\n%*s", INDENT, "");
			used = INDENT;
		} else if (!begins) {
			bytes_text(out, " ");
			used++;
		}
		bytes_add(out, text, len);
		used += width;
		text += len + strspn(text + len, " ");
		begins = false;
	}
	bytes_text(out, "\n");
}

/* No finding of such a kind says nothing about the process. */
static void add_not_judged(const struct process_facts *process, unsigned columns, struct bytes *out)
{
	const struct rule *rule = NULL;
	const char *separator =
		process->observed ? "not judged: " : "not judged from a recording: ";
	struct bytes line = { 0 };

	while (findings_are_possible(process) && kind_next_not_judged(process, &rule)) {
		bytes_printf(&line, "%s%s", separator, rule->kind);
		separator = ", ";
	}
	if (line.len) {
		if (process->observed)
			bytes_text(&line,
				": its stacks, memory and requests could not be read often enough");
		else
			bytes_printf(&line,
				": spoor diagnose -p %" PRIu32
				" looks at the stacks, memory and requests",
				process->pid);
		bytes_printf(out, "%*s", INDENT, "");
		add_wrapped(out, bytes_z(&line), INDENT, columns);
	}
	bytes_done(&line);
}

static void add_lines(const struct diagnosis *diagnosis, const struct process_facts *process,
	const char *label, const char *text, unsigned columns, struct bytes *out)
{
	const char *at = text;
	struct bytes line = { 0 };

	while (rule_line(diagnosis->facts, process, &at, &line)) {
		bytes_printf(out, "   %-6s", label);
		add_wrapped(out, bytes_z(&line), INDENT, columns);
		bytes_reset(&line);
		label = "";
	}
	bytes_done(&line);
}

/* `separator` is before the options. */
static void add_command(const struct diagnosis *diagnosis, const struct finding *finding,
	const char *separator, struct bytes *out)
{
	bytes_printf(out, "spoor %s", finding->rule->see[0]);
	if (strcmp(finding->rule->see[0], "report") == 0) {
		bytes_text(out, " ");
		text_add_shell_word(out, diagnosis->file);
	}
	bytes_printf(out, "%s-p %" PRIu32 "%s", separator,
		diagnosis->facts->processes.items[finding->process].pid, finding->rule->see[1]);
}

/* "3.1 % of its CPU time, ", "growth of 30 %, ". */
static void add_cost(struct bytes *out, const struct finding *finding)
{
	bool grows = finding->rule->cost_of == COST_GROWTH;

	bytes_printf(out, "%s%.*f %%%s%s, ", grows ? "growth of " : "",
		finding->cost >= 0.0995 ? 0 : 1, 100 * finding->cost, grows ? "" : " of ",
		grows ? "" : cost_words(finding->rule->cost_of));
}

static void add_finding(const struct diagnosis *diagnosis, const struct finding *finding,
	uint32_t number, unsigned columns, struct bytes *out)
{
	const struct rule *rule = finding->rule;
	const struct process_facts *process = &diagnosis->facts->processes.items[finding->process];
	struct bytes head = { 0 };
	struct bytes tail = { 0 };
	struct bytes command = { 0 };

	bytes_printf(&head, "%s: %s", rule->kind, rule->title);
	if (finding->cost > 0)
		add_cost(&tail, finding);
	bytes_printf(&tail, "confidence %.2f", finding->confidence);
	char mark[16];
	size_t used = (size_t)snprintf(mark, sizeof(mark), "%" PRIu32 "  ", number); /* fits */
	bytes_printf(out, "\n%s", mark);
	if (used + head.len + 3 + tail.len > columns) {
		add_wrapped(out, bytes_z(&head), used, columns);
		bytes_text(out, "   ");
		used = 3;
	} else {
		bytes_printf(out, "%s   ", bytes_z(&head));
		used += head.len + 3;
	}
	add_wrapped(out, bytes_z(&tail), used, columns);
	add_lines(diagnosis, process, "", rule->evidence, columns, out);
	add_lines(diagnosis, process, "do", rule->advice, columns, out);
	add_command(diagnosis, finding, " ", &command);
	if (INDENT + text_columns(bytes_z(&command), command.len) > columns) {
		/* a shell takes it with its end on the next line */
		bytes_reset(&command);
		add_command(diagnosis, finding, " \\\n           ", &command);
	}
	bytes_printf(out, "   %-6s%s\n", "see", bytes_z(&command));
	bytes_done(&head);
	bytes_done(&tail);
	bytes_done(&command);
}

void diagnosis_text(const struct diagnosis *diagnosis, unsigned columns, struct bytes *out)
{
	const struct facts *facts = diagnosis->facts;
	struct bytes line = { 0 };

	if (columns < COLUMNS_LEAST)
		columns = UINT_MAX; /* no line is broken */
	for (uint32_t p = 0; p < facts->processes.count; p++) {
		uint32_t first = 0;
		uint32_t count = count_findings(diagnosis, p, &first);
		bytes_text(out, p ? "\n" : "");
		size_t before = out->len;
		add_process(diagnosis, &facts->processes.items[p], out);
		bytes_text(out, "  ");
		add_verdict(diagnosis, &facts->processes.items[p], count, &line);
		add_wrapped(out, bytes_z(&line),
			text_columns((const char *)out->data + before, out->len - before), columns);
		bytes_reset(&line);
		add_not_judged(&facts->processes.items[p], columns, out);
		for (uint32_t i = 0; i < count; i++)
			add_finding(diagnosis, &diagnosis->findings->items.items[first + i], i + 1,
				columns, out);
	}
	bytes_done(&line);
}

static void json_line(struct json *j, const char *name, struct bytes *line)
{
	json_text(j, name, (const char *)line->data, line->len);
	bytes_reset(line);
}

static void json_finding(const struct diagnosis *diagnosis, const struct finding *finding,
	struct json *j)
{
	const struct facts *facts = diagnosis->facts;
	const struct rule *rule = finding->rule;
	const struct process_facts *process = &facts->processes.items[finding->process];
	const struct place *place = finding_place(facts, finding);
	struct bytes line = { 0 };
	const char *at = rule->evidence;

	json_object(j, NULL);
	json_z(j, "kind", rule->kind);
	json_z(j, "title", rule->title);
	json_f64(j, "confidence", finding->confidence);
	json_object(j, "cost");
	json_f64(j, "share", finding->cost);
	json_z(j, "of", cost_words(rule->cost_of));
	json_end(j);
	json_z(j, "method", strtab_get(&facts->texts, place->method));
	json_array(j, "conditions");
	for (size_t i = 0; i < RULE_CONDITIONS_MAX && rule->when[i].reason; i++) {
		json_object(j, NULL);
		json_z(j, "fact", fact_name(rule->when[i].fact));
		json_f64(j, "value", process->numbers[rule->when[i].fact]);
		json_f64(j, "least", rule->when[i].least);
		json_z(j, "reason", rule->when[i].reason);
		json_end(j);
	}
	json_end(j);
	json_array(j, "evidence");
	while (rule_line(facts, process, &at, &line))
		json_line(j, NULL, &line);
	json_end(j);
	at = rule->advice;
	(void)rule_line(facts, process, &at, &line); /* without the facts it is empty */
	json_line(j, "advice", &line);
	add_command(diagnosis, finding, " ", &line);
	json_line(j, "see", &line);
	json_array(j, "stacks");
	if (place->frame_count) {
		json_array(j, NULL);
		for (uint32_t i = 0; i < place->frame_count; i++)
			json_z(j, NULL,
				strtab_get(&facts->texts,
					facts->frames.items[place->frame_at + i]));
		json_end(j);
	}
	json_end(j);
	json_end(j);
	bytes_done(&line);
}

static void json_facts(const struct process_facts *process, struct json *j)
{
	json_object(j, "facts");
	for (uint32_t i = 0; i < FACT_KINDS; i++)
		if (process->known[i])
			json_f64(j, fact_name((enum fact)i), process->numbers[i]);
	json_end(j);
}

void diagnosis_json(const struct diagnosis *diagnosis, struct bytes *out)
{
	const struct facts *facts = diagnosis->facts;
	struct json j = { .out = out };
	struct bytes line = { 0 };

	json_object(&j, NULL);
	json_array(&j, "processes");
	for (uint32_t p = 0; p < facts->processes.count; p++) {
		const struct process_facts *process = &facts->processes.items[p];
		uint32_t first = 0;
		uint32_t count = count_findings(diagnosis, p, &first);
		json_object(&j, NULL);
		json_u64(&j, "pid", process->pid);
		json_z(&j, "name", strtab_get(&facts->texts, process->name));
		json_z(&j, "runtime_version", strtab_get(&facts->texts, process->runtime_version));
		add_verdict(diagnosis, process, count, &line);
		json_line(&j, "verdict", &line);
		json_array(&j, "findings");
		for (uint32_t i = 0; i < count; i++)
			json_finding(diagnosis, &diagnosis->findings->items.items[first + i], &j);
		json_end(&j);
		json_array(&j, "not_judged");
		for (const struct rule *rule = NULL; kind_next_not_judged(process, &rule);)
			json_z(&j, NULL, rule->kind);
		json_end(&j);
		json_facts(process, &j);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	bytes_text(out, "\n");
	bytes_done(&line);
}
