/* See findings.h. */
#include "diagnose/findings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"

/* At its thresholds a rule has this part of its confidence. */
#define CONFIDENCE_LEAST 0.6
#define SPAN_LEAST_S     0.5

const struct rule diagnose_rules[] = {
#define RULE(text, ...) { .kind = text, __VA_ARGS__ },
#include "diagnose/rules.def"
#undef RULE
	{ 0 },
};

/* How far the least clear condition is beyond its threshold, as a factor; below 1: not met. */
static double margin_of(const struct rule *rule, const struct process_facts *process)
{
	double least = 1e9;

	for (size_t i = 0; i < RULE_CONDITIONS_MAX && rule->when[i].reason; i++) {
		const struct condition *condition = &rule->when[i];
		double margin = process->known[condition->fact]
					? process->numbers[condition->fact] / condition->least
					: 0;
		least = margin < least ? margin : least;
	}
	return least;
}

/* It grows towards the rule's confidence: half of the way is done at twice the threshold. */
static double confidence_at(const struct rule *rule, double margin)
{
	return rule->confidence * (1 - (1 - CONFIDENCE_LEAST) / margin);
}

static bool has_finding(const struct findings *findings, const struct rule *rule, uint32_t process)
{
	for (uint32_t i = findings->items.count; i-- > 0;)
		if (findings->items.items[i].process == process &&
			strcmp(findings->items.items[i].rule->kind, rule->kind) == 0)
			return true;
	return false;
}

/* Whether a rule that says more names the same method. */
static bool is_explained(const struct findings *findings, const struct facts *facts,
	const struct finding *finding)
{
	uint32_t method = finding_place(facts, finding)->method;

	for (uint32_t i = 0; method && i < findings->items.count; i++) {
		const struct finding *other = &findings->items.items[i];
		if (other->rule->generality < finding->rule->generality &&
			other->process == finding->process &&
			finding_place(facts, other)->method == method)
			return true;
	}
	return false;
}

static int compare(const void *a, const void *b)
{
	const struct finding *x = a;
	const struct finding *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->rule->outside != y->rule->outside)
		return x->rule->outside ? 1 : -1;
	if (x->rule->symptom != y->rule->symptom)
		return x->rule->symptom ? 1 : -1;
	/* growth may be more than all */
	if (fmin(x->cost, 1) != fmin(y->cost, 1))
		return x->cost > y->cost ? -1 : 1;
	if (x->confidence != y->confidence)
		return x->confidence > y->confidence ? -1 : 1;
	return x->rule < y->rule ? -1 : x->rule > y->rule;
}

static double cost_of_rule(const struct rule *rule, const struct process_facts *process)
{
	return process->known[rule->cost] ? process->numbers[rule->cost] : 0;
}

bool findings_are_possible(const struct process_facts *process)
{
	return process->known[FACT_span] && process->numbers[FACT_span] >= SPAN_LEAST_S;
}

bool kind_is_judged(const struct process_facts *process, const char *kind)
{
	for (const struct rule *rule = diagnose_rules; rule->kind; rule++)
		if (strcmp(rule->kind, kind) == 0 &&
			(!rule->live || process->known[rule->when[0].fact]))
			return findings_are_possible(process);
	return false;
}

static bool is_first_of_kind(const struct rule *rule)
{
	for (const struct rule *before = diagnose_rules; before < rule; before++)
		if (strcmp(before->kind, rule->kind) == 0)
			return false;
	return true;
}

bool kind_next_not_judged(const struct process_facts *process, const struct rule **at)
{
	for (*at = *at ? *at + 1 : diagnose_rules; (*at)->kind; (*at)++)
		if (is_first_of_kind(*at) && !kind_is_judged(process, (*at)->kind))
			return true;
	return false;
}

int findings_make(struct findings *findings, const struct facts *facts)
{
	for (uint32_t p = 0; p < facts->processes.count; p++) {
		const struct process_facts *process = &facts->processes.items[p];
		if (!findings_are_possible(process))
			continue;
		for (const struct rule *rule = diagnose_rules; rule->kind; rule++) {
			double margin = margin_of(rule, process);
			const struct finding finding = { .rule = rule,
				.process = p,
				.confidence = confidence_at(rule, margin),
				.cost = cost_of_rule(rule, process) };
			if (margin >= 1 && !has_finding(findings, rule, p) &&
				!vec_add(&findings->items, finding))
				return -ENOMEM;
		}
	}
	uint32_t count = 0;
	for (uint32_t i = 0; i < findings->items.count; i++)
		if (!is_explained(findings, facts, &findings->items.items[i]))
			findings->items.items[count++] = findings->items.items[i];
	findings->items.count = count;
	if (count)
		qsort(findings->items.items, count, sizeof(struct finding), compare);
	return 0;
}

void findings_done(struct findings *findings)
{
	vec_done(&findings->items);
}

const struct place *finding_place(const struct facts *facts, const struct finding *finding)
{
	return &facts->processes.items[finding->process].places[finding->rule->place];
}

const char *cost_words(enum cost_of cost_of)
{
	static const char *const words[] = { "its CPU time", "the time", "the machine's CPU time",
		"the time of busy pool threads", "the time of busy threads", "a thread's time",
		"growth" };

	return words[cost_of];
}

static bool expand_alternative(const struct facts *facts, const struct process_facts *process,
	const char *text, size_t len, struct bytes *out)
{
	struct bytes copy = { 0 };

	bytes_add(&copy, text, len);
	bool known = facts_expand(facts, process, bytes_z(&copy), out);
	out->failed |= copy.failed;
	bytes_done(&copy);
	return known;
}

bool rule_line(const struct facts *facts, const struct process_facts *process, const char **at,
	struct bytes *out)
{
	bool found = false;

	while (**at && !found) {
		const char *end = *at + strcspn(*at, "\n");
		while (*at < end) {
			size_t len = strcspn(*at, "|\n");
			found = found || expand_alternative(facts, process, *at, len, out);
			*at += len + ((*at)[len] == '|');
		}
		*at += **at == '\n';
	}
	return found;
}

bool rule_kind_exists(const char *kind, struct nearest *near)
{
	for (const struct rule *rule = diagnose_rules; rule->kind; rule++) {
		if (strcmp(rule->kind, kind) == 0)
			return true;
		nearest_offer(near, rule->kind);
	}
	return false;
}
