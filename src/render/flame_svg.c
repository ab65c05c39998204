/*
 * See flame_svg.h.
 *
 * The file has the picture twice: drawn, for viewers and printers that run no scripts, and as
 * numbers, from which the script (flame_script.h) draws it again at every zoom. Both follow the
 * same rules of layout: rows of ROW pixels, monospaced labels of at most CHAR pixels a column, and
 * a nested <svg> around each label, which cuts off what a wider font might make of it.
 */
#include "render/flame_svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "render/flame_script.h"
#include "render/frame_label.h"
#include "trace/call_tree.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define ROW    17u
#define MARGIN 10u
/* where the frames begin: title, facts, one line of legend, two lines about a frame */
#define TOP                116u
#define KEY_Y              60u /* of the legend's first line, */
#define KEY_ROW            19u /* and from one line to the next */
#define BOTTOM             34u
#define CHAR               7.3  /* widest column of the usual monospaced fonts at 12 px */
#define LABEL_MIN          22.0 /* pixels: a narrower frame has no label */
#define WIDTH_LEAST        0.1  /* pixels */
#define LABEL_PARTS        4u   /* whole name, without arguments, Type.Method, Method */
#define PROCESSES_IN_TITLE 1u

/* A name as it is shown: made safe, and where its shorter forms begin and end. */
struct svg_label {
	uint32_t at; /* in names_text */
	uint32_t len;
	uint32_t head_len; /* without arguments */
	uint32_t type_at;  /* of Type.Method */
	uint32_t method_at;
	uint32_t module; /* strtab */
	uint8_t kind;    /* enum function_kind, or KIND_PROCESS, KIND_ALL */
	uint8_t shade;
};

enum { KIND_PROCESS = FUNCTION_BLOCKED + 1, KIND_ALL, KIND_COUNT };

struct drawn {
	uint32_t node;
	uint32_t label;
	uint64_t begin_ns;
};

struct picture {
	const struct report *report;
	struct call_tree *tree;
	struct bytes *out;
	struct bytes names_text;
	VEC(struct svg_label) labels; /* item 0 unused */
	struct map label_index;       /* function, or process with the top bit -> label */
	VEC(struct drawn) frames;     /* in preorder */
	unsigned width;
	/* where the frames begin, with all lines of the legend */
	unsigned top;
	uint32_t depth;   /* of the deepest drawn frame */
	uint32_t dropped; /* frames too narrow */
	uint64_t dropped_ns;
	bool has_kind[KIND_COUNT];
};

static const struct {
	const char *letter; /* begins the CSS class */
	const char *words;  /* in the legend; NULL: not there */
	const char *fill[3];
	const char *dark[3]; /* where the reader prefers a dark page */
} kinds[KIND_COUNT] = {
	[FUNCTION_UNKNOWN] = { "u", "no name", { "#d9d9d6", "#d0d0cd", "#e0e0de" },
		{ "#4a4b4d", "#525355", "#434446" } },
	[FUNCTION_KERNEL] = { "k", "kernel", { "#eeaba2", "#f2b8b0", "#e89d94" },
		{ "#7d3b34", "#87433b", "#73342d" } },
	[FUNCTION_NATIVE] = { "n", "native", { "#f2d19c", "#f5dab0", "#ecc78c" },
		{ "#6e5424", "#785d2b", "#644b1e" } },
	[FUNCTION_JIT] = { "j", "JIT", { "#a5d6b0", "#b5deb9", "#96cca4" },
		{ "#2d6240", "#346d48", "#275938" } },
	[FUNCTION_READYTORUN] = { "r", "ReadyToRun", { "#a3cfe3", "#b4d9ea", "#93c3da" },
		{ "#285b78", "#306686", "#22506b" } },
	[FUNCTION_STUB] = { "s", "stub", { "#ccb8e2", "#d6c6e9", "#c1abda" },
		{ "#58437c", "#624c88", "#4e3a70" } },
	[FUNCTION_BLOCKED] = { "w", "blocked", { "#c9c4ee", "#d3cff2", "#bdb7e8" },
		{ "#454080", "#4e498c", "#3c3773" } },
	[KIND_PROCESS] = { "p", NULL, { "#dfe3e8", "#dfe3e8", "#dfe3e8" },
		{ "#373d45", "#373d45", "#373d45" } },
	[KIND_ALL] = { "a", NULL, { "#e9ecef", "#e9ecef", "#e9ecef" },
		{ "#2c3138", "#2c3138", "#2c3138" } },
};

/* The shorter forms of a name; those of processes and of the kernel have none. */
static void split_label(struct svg_label *label, const char *text)
{
	struct name_parts parts;

	label->head_len = label->len;
	if (label->kind == KIND_PROCESS)
		return;
	label_split(text, label->len, label->kind, &parts);
	label->head_len = (uint32_t)parts.head_len;
	label->type_at = (uint32_t)parts.type_at;
	label->method_at = (uint32_t)parts.method_at;
}

static uint32_t add_label(struct picture *p, const struct call_node *node)
{
	bool is_process = p->tree->by_process && node->depth == 1;
	uint64_t key = (uint64_t)(node->depth ? is_process ? 1 : 0 : 2) << 32 | node->what;
	uint32_t index = map_get(&p->label_index, key);

	if (index)
		return index;
	const struct trace *trace = p->report->trace;
	struct svg_label label = { .at = (uint32_t)p->names_text.len };
	if (!node->depth) {
		label.kind = KIND_ALL;
		bytes_text(&p->names_text, "all");
	} else if (is_process) {
		label.kind = KIND_PROCESS;
		label_process(&p->names_text, trace, node->what);
	} else {
		const struct function *function = &p->report->names->functions.items[node->what];
		label.kind = function->named ? function->kind : (uint8_t)FUNCTION_UNKNOWN;
		label.module = function->module;
		label.shade = (uint8_t)(hash_u64(function->module * 31u + function->name) % 3);
		text_add_safe(&p->names_text, trace_text(trace, function->name),
			strtab_len(&trace->strings, function->name));
	}
	label.len = (uint32_t)(p->names_text.len - label.at);
	if (p->names_text.failed)
		return 0;
	split_label(&label, (const char *)p->names_text.data + label.at);
	p->has_kind[label.kind] = true;
	index = p->labels.count;
	return vec_add(&p->labels, label) && map_add(&p->label_index, key, index) ? index : 0;
}

static const char *node_name(const struct picture *p, const struct call_node *node)
{
	const struct trace *trace = p->report->trace;

	if (p->tree->by_process && node->depth == 1)
		return trace_text(trace, trace->processes.items[node->what].name);
	return trace_text(trace, p->report->names->functions.items[node->what].name);
}

static int compare_names(const struct call_tree *tree, uint32_t a, uint32_t b, void *context)
{
	const struct picture *p = context;
	const struct call_node *x = &tree->nodes.items[a];
	const struct call_node *y = &tree->nodes.items[b];
	int order = strcmp(node_name(p, x), node_name(p, y));

	return order ? order : x->what < y->what ? -1 : x->what > y->what;
}

/* Frames in preorder, each with where it begins; too narrow ones fall out with all they carry. */
static bool place_frames(struct picture *p)
{
	const struct call_node *nodes = p->tree->nodes.items;
	uint64_t whole_ns = nodes[CALL_TREE_ROOT].total_ns;
	double scale = whole_ns ? (double)(p->width - 2 * MARGIN) / (double)whole_ns : 0;
	VEC(uint64_t) next_ns = { 0 }; /* where the next child begins, by depth */
	uint32_t at = CALL_TREE_ROOT;
	bool complete = vec_add(&next_ns, 0);

	while (at && complete) {
		const struct call_node *node = &nodes[at];
		uint64_t begin_ns = next_ns.items[node->depth];
		bool wide = (double)node->total_ns * scale >= WIDTH_LEAST;

		next_ns.items[node->depth] += node->total_ns;
		if (wide || at == CALL_TREE_ROOT) {
			uint32_t label = add_label(p, node);
			complete = label && vec_add(&p->frames, ((struct drawn){ .node = at,
									.label = label,
									.begin_ns = begin_ns }));
			if (node->depth > p->depth)
				p->depth = node->depth;
			if (node->child && complete) {
				next_ns.count = node->depth + 1;
				complete = vec_add(&next_ns, begin_ns);
				at = node->child;
				continue;
			}
		} else {
			p->dropped_ns += node->total_ns;
		}
		while (at && !nodes[at].sibling)
			at = nodes[at].parent;
		if (at)
			at = nodes[at].sibling;
	}
	p->dropped = p->tree->nodes.count - CALL_TREE_ROOT - p->frames.count;
	vec_done(&next_ns);
	return complete;
}

/* A number with one decimal, quicker than printf: there are several a frame. */
static void add_tenths(struct bytes *out, double value)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t tenths = (uint64_t)(value * 10 + 0.5);

	digits[--at] = (char)('0' + tenths % 10);
	digits[--at] = '.';
	tenths /= 10;
	do {
		digits[--at] = (char)('0' + tenths % 10);
		tenths /= 10;
	} while (tenths && at);
	bytes_add(out, digits + at, sizeof(digits) - at);
}

static void add_number(struct bytes *out, uint64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	bytes_add(out, digits + at, sizeof(digits) - at);
}

static void add_xml(struct bytes *out, const struct bytes *text)
{
	text_add_xml(out, (const char *)text->data, text->len);
}

/* Columns of a text in a monospaced font, wide characters counted twice, and how many bytes fit. */
static size_t fitting(const char *text, size_t len, double columns, bool *ret_whole)
{
	size_t at = 0;
	size_t cut = 0;
	double used = 0;

	while (at < len) {
		uint32_t c = text_next_char(text, len, &at);
		used += c < 0x1100 || c == 0x2026 ? 1 : 2;
		if (used <= columns - 1)
			cut = at;
		if (used > columns) {
			*ret_whole = false;
			return cut;
		}
	}
	*ret_whole = true;
	return len;
}

/* The longest form of the name that fits, else the shortest with its end cut off. */
static void add_fitted(struct bytes *out, const struct svg_label *label, const char *text,
	double columns)
{
	const uint32_t begins[LABEL_PARTS] = { 0, 0, label->type_at, label->method_at };
	const uint32_t ends[LABEL_PARTS] = { label->len, label->head_len, label->head_len,
		label->head_len };
	bool whole = false;
	size_t cut = 0;

	for (unsigned i = 0; i < LABEL_PARTS && !whole; i++) {
		cut = fitting(text + begins[i], ends[i] - begins[i], columns, &whole);
		if (whole)
			text_add_xml(out, text + begins[i], cut);
	}
	if (whole || columns < 3)
		return;
	text_add_xml(out, text + label->method_at, cut);
	bytes_text(out, "\xe2\x80\xa6");
}

/*
 * The root is at the top of the picture: wide frames near the root are visible without scrolling,
 * however deep the stacks are.
 */
static uint64_t row_y(const struct picture *p, uint32_t depth)
{
	return p->top + (uint64_t)depth * ROW;
}

static void draw_frame(struct picture *p, const struct drawn *drawn, double scale)
{
	const struct call_node *node = &p->tree->nodes.items[drawn->node];
	const struct svg_label *label = &p->labels.items[drawn->label];
	const char *text = (const char *)p->names_text.data + label->at;
	double x = MARGIN + (double)drawn->begin_ns * scale;
	double width = (double)node->total_ns * scale;
	bool labelled = width >= LABEL_MIN;
	struct bytes *out = p->out;

	bytes_text(out, labelled ? "<svg x=\"" : "<rect x=\"");
	add_tenths(out, x);
	bytes_text(out, "\" y=\"");
	add_number(out, row_y(p, node->depth));
	bytes_text(out, "\" width=\"");
	/* A hair of white between neighbours, where there is room for it. */
	add_tenths(out, width > 4 ? width - 0.5 : width < 0.2 ? 0.2 : width);
	bytes_text(out, "\" height=\"16\"");
	if (labelled)
		bytes_text(out, "><rect width=\"100%\" height=\"100%\"");
	bytes_text(out, " class=\"");
	bytes_text(out, kinds[label->kind].letter);
	bytes_u8(out, (uint8_t)('0' + label->shade));
	bytes_text(out, "\"/>");
	if (labelled) {
		bytes_text(out, "<text x=\"4\" y=\"12\">");
		add_fitted(out, label, text, (width - 7) / CHAR);
		bytes_text(out, "</text></svg>");
	}
	bytes_text(out, "\n");
}

/* JSON text in a script in XML: no markup characters, and nothing that XML forbids. */
static void add_script_text(struct bytes *out, struct bytes *scratch, const char *text, size_t len)
{
	struct json json = { .out = scratch };
	size_t at = 0;

	bytes_reset(scratch);
	json_text(&json, NULL, text, len);
	while (at < scratch->len) {
		size_t from = at;
		uint32_t c = text_next_char((const char *)scratch->data, scratch->len, &at);
		if (c == '<' || c == '>' || c == '&' || c == 0xfffe || c == 0xffff)
			bytes_printf(out, "\\u%04x", (unsigned)c);
		else
			bytes_add(out, scratch->data + from, at - from);
	}
}

/* A line of the header, whole: the script cuts it to the width of the window. */
static void add_text_member(struct picture *p, struct bytes *scratch, const char *name,
	const struct bytes *text)
{
	bytes_printf(p->out, "%s:", name);
	add_script_text(p->out, scratch, (const char *)text->data, text->len);
	bytes_text(p->out, ",\n");
}

/* For the script: units of the picture's amounts, and their sizes. */
static void add_units(struct bytes *out, const struct report *report)
{
	const char *word = label_weight(report);

	if (report->weighing == REPORT_EVENTS)
		bytes_text(out, "units:[['events',1]],");
	else if (report->weighing == REPORT_ALLOCATIONS)
		bytes_text(out, "units:[['GB',1e6],['MB',1e3],['kB',1]],");
	else
		bytes_printf(out, "units:[['%s s',1e6],['%s ms',1e3]],", word, word);
}

/* A weight in the numbers of the script: in thousands, events one by one. */
static uint64_t script_amount(const struct report *report, uint64_t weight)
{
	return report->weighing == REPORT_EVENTS ? weight : weight / 1000;
}

static void add_data(struct picture *p, const struct flame_options *options,
	const struct bytes *title, const struct bytes *facts)
{
	struct bytes scratch = { 0 };
	struct bytes *out = p->out;

	bytes_printf(out,
		"<script>//<![CDATA[\nconst D={width:%u,fixed:%s,top:%u,row:%u,"
		"margin:%u,char:%.1f,least:%u,height:%" PRIu64 ",total:%" PRIu64
		",keys:%u,key:%u,\n",
		p->width, options->width ? "true" : "false", TOP, ROW, MARGIN, CHAR,
		FLAME_WIDTH_MIN, TOP + (uint64_t)(p->depth + 1) * ROW + BOTTOM,
		script_amount(p->report, p->tree->nodes.items[CALL_TREE_ROOT].total_ns), KEY_Y,
		KEY_ROW);
	add_units(out, p->report);
	bytes_text(out, "\n");
	add_text_member(p, &scratch, "title", title);
	add_text_member(p, &scratch, "facts", facts);
	bytes_text(out, "names:[\n");
	for (uint32_t i = 1; i < p->labels.count; i++) {
		const struct svg_label *label = &p->labels.items[i];
		const char *text = (const char *)p->names_text.data + label->at;
		const uint32_t begins[LABEL_PARTS] = { 0, 0, label->type_at, label->method_at };
		bytes_text(out, i > 1 ? ",\n[" : "[");
		add_script_text(out, &scratch, text, label->len);
		for (unsigned part = 1; part < LABEL_PARTS; part++) {
			bytes_text(out, ",");
			/* "": the same as the one before it. */
			if (part == 1 ? label->head_len == label->len
				      : begins[part] == begins[part - 1])
				bytes_text(out, "''");
			else
				add_script_text(out, &scratch, text + begins[part],
					label->head_len - begins[part]);
		}
		bytes_printf(out, ",'%s%u',", kinds[label->kind].letter, label->shade);
		add_script_text(out, &scratch, trace_text(p->report->trace, label->module),
			strtab_len(&p->report->trace->strings, label->module));
		bytes_text(out, "]");
	}
	/* Name, depth, begin and width in microseconds, samples, self time. */
	bytes_text(out, "],\nframes:[\n");
	for (uint32_t i = 0; i < p->frames.count; i++) {
		const struct drawn *drawn = &p->frames.items[i];
		const struct call_node *node = &p->tree->nodes.items[drawn->node];
		const uint64_t numbers[] = { drawn->label - 1, node->depth,
			script_amount(p->report, drawn->begin_ns),
			script_amount(p->report, node->total_ns), node->total_count,
			script_amount(p->report, node->self_ns) };
		for (unsigned n = 0; n < 6; n++) {
			add_number(out, numbers[n]);
			bytes_text(out, n < 5 ? "," : i % 8 == 7 ? ",\n" : ",");
		}
	}
	bytes_text(out, "]};\n");
	for (size_t i = 0; i < sizeof(flame_script) / sizeof(flame_script[0]); i++) {
		bytes_text(out, flame_script[i]);
		bytes_text(out, "\n");
	}
	bytes_text(out, "//]]></script>\n");
	bytes_done(&scratch);
}

/* A kind that only pictures of waits have, and this one has not. */
static bool is_unused(const struct picture *p, unsigned kind)
{
	return kind == FUNCTION_BLOCKED && !p->has_kind[kind];
}

static void add_style(struct picture *p)
{
	struct bytes *out = p->out;

	bytes_text(out,
		"<style>\n"
		"svg{background:#fff;color-scheme:light dark}\n"
		"text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1c1e21;"
		"white-space:pre}\n"
		".page{fill:#fff}\n"
		".t{font:600 19px system-ui,'DejaVu Sans',sans-serif}\n"
		".s,.l{font:13px system-ui,'DejaVu Sans',sans-serif;fill:#5b6168}\n"
		"#what{font-weight:600}#path{fill:#5b6168}\n"
		".ui{visibility:hidden}.live .ui{visibility:visible}\n"
		"#frames svg,#frames rect{shape-rendering:crispEdges}\n"
		"#frames svg{background:none;pointer-events:none}\n"
		".f{cursor:pointer;outline:none}.f.above rect{opacity:.55}.f.miss rect{opacity:.35}\n"
		".f.hit rect{fill:#ff6ad5}\n"
		".f:hover rect,.f:focus rect{stroke:#1c1e21;stroke-width:1px}\n"
		".f:focus-visible rect{stroke-width:2px}\n"
		"input{font:13px system-ui,sans-serif;box-sizing:border-box;width:100%;height:26px;"
		"padding:2px 8px;border:1px solid #b9bec4;border-radius:5px;background:#fff;color:#1c1e21}\n"
		"#reset{cursor:pointer}#reset rect{fill:#f3f4f6;stroke:#b9bec4}"
		"#reset:focus{outline:none}#reset:focus rect{stroke:#1c1e21;stroke-width:2px}\n");
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		if (is_unused(p, kind))
			continue;
		for (unsigned shade = 0; shade < 3; shade++)
			bytes_printf(out, ".%s%u{fill:%s}", kinds[kind].letter, shade,
				kinds[kind].fill[shade]);
		bytes_text(out, "\n");
	}
	/* Paper stays white. */
	bytes_text(out,
		"@media screen and (prefers-color-scheme:dark){\n"
		"svg{background:#17191c}.page{fill:#17191c}text{fill:#e8eaed}\n"
		".s,.l,#path{fill:#a4abb3}\n"
		".f.hit rect{fill:#b0308c}\n"
		".f:hover rect,.f:focus rect{stroke:#e8eaed}\n"
		"input{border-color:#565c63;background:#22252a;color:#e8eaed}\n"
		"#reset rect{fill:#2b2f35;stroke:#565c63}#reset:focus rect{stroke:#e8eaed}\n");
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		for (unsigned shade = 0; shade < 3 && !is_unused(p, kind); shade++)
			bytes_printf(out, ".%s%u{fill:%s}", kinds[kind].letter, shade,
				kinds[kind].dark[shade]);
	bytes_text(out, "}\n@media print{.live .ui,.note{visibility:hidden}"
			"*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}\n"
			"</style>\n");
}

/* The process, when there is one; else the machine. */
static void add_default_title(struct bytes *out, const struct report *report)
{
	const struct trace *trace = report->trace;

	if (report->processes.count == PROCESSES_IN_TITLE) {
		label_process(out, trace, report->processes.items[0].process);
	} else if (trace->recording.host) {
		bytes_text(out, "all of ");
		text_add_safe(out, trace_text(trace, trace->recording.host),
			strtab_len(&trace->strings, trace->recording.host));
	} else {
		bytes_text(out, "all processes");
	}
}

static void add_facts(struct bytes *out, const struct report *report)
{
	static const char dot[] = "  \xc2\xb7  ";
	const struct trace *trace = report->trace;

	if (report->processes.count == PROCESSES_IN_TITLE && trace->recording.host) {
		text_add_safe(out, trace_text(trace, trace->recording.host),
			strtab_len(&trace->strings, trace->recording.host));
		bytes_text(out, dot);
	}
	if (trace->recording.utc_ns) {
		label_utc(out, report);
		bytes_text(out, dot);
	}
	text_add_duration(out, (double)report->duration_ns / 1e9);
	if (report->rate_hz > 0)
		bytes_printf(out, " at %.0f Hz", report->rate_hz);
	bytes_text(out, dot);
	if (report->weighing != REPORT_EVENTS)
		text_add_things(out, report->samples, "sample, ", "samples, ");
	label_amount(out, report, report->cpu_ns);
	bytes_text(out, report->weighing == REPORT_ALLOCATIONS ? " allocated" : "");
	bytes_text(out, dot);
	label_loss(out, report);
	if (report->selection) {
		bytes_text(out, dot);
		text_add_safe(out, report->selection, strlen(report->selection));
	}
}

/* A line that ends within the picture. */
static void add_line(struct picture *p, const char *class_name, const char *id, unsigned y,
	double column_pixels, const struct bytes *text)
{
	bool whole;
	size_t cut = fitting((const char *)text->data, text->len,
		(p->width - 2 * MARGIN) / column_pixels, &whole);

	bytes_printf(p->out, "<text class=\"%s\" id=\"%s\" x=\"%u\" y=\"%u\">", class_name, id,
		MARGIN, y);
	text_add_xml(p->out, (const char *)text->data, cut);
	bytes_text(p->out, whole ? "" : "\xe2\x80\xa6");
	bytes_text(p->out, "</text>\n");
}

/* The share of CPU time that was spent in code of this kind itself, without callees. */
static double key_percent(const struct report *report, unsigned kind)
{
	return report->cpu_ns ? 100.0 * (double)report->kind_ns[kind] / (double)report->cpu_ns
			      : 0.0;
}

/*
 * The legend in as many lines as the width needs. With `draw` false only the number of lines
 * counts. The script places the keys again, with the widths computed here.
 */
static unsigned add_legend(struct picture *p, bool draw)
{
	bool in_bytes = p->report->weighing == REPORT_ALLOCATIONS;
	bool in_events = p->report->weighing == REPORT_EVENTS;
	struct bytes words = { 0 };
	unsigned lines = 1;
	double x = MARGIN;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		/* Frames without a name come last. */
		unsigned shown = kind < FUNCTION_BLOCKED    ? kind + 1
				 : kind == FUNCTION_BLOCKED ? 0
							    : kind;
		if (!p->has_kind[shown] || !kinds[shown].words)
			continue;
		bytes_reset(&words);
		bytes_printf(&words, "%s %.1f %%", kinds[shown].words,
			key_percent(p->report, shown));
		double room = 20 + 8.0 * (double)words.len;
		if (x > MARGIN && x + room > p->width - MARGIN) {
			x = MARGIN;
			lines++;
		}
		if (draw)
			bytes_printf(p->out,
				"<g class=\"key\" data-w=\"%.0f\" transform=\"translate(%.0f,%u)\">"
				"<title>%.1f %% of the %s%s in this code itself</title>"
				"<rect class=\"%s0\" width=\"14\" height=\"14\" rx=\"2\"/>"
				"<text class=\"l\" x=\"20\" y=\"12\">%s</text></g>\n",
				room, x, KEY_Y + (lines - 1) * KEY_ROW,
				key_percent(p->report, shown),
				in_bytes    ? "bytes"
				: in_events ? "events"
					    : label_weight(p->report),
				in_bytes    ? " were allocated"
				: in_events ? " were"
					    : " time was spent",
				kinds[shown].letter, bytes_z(&words));
		x += room + 18;
	}
	bytes_done(&words);
	return lines;
}

static void add_header(struct picture *p, const struct bytes *title, const struct bytes *facts)
{
	struct bytes *out = p->out;

	bytes_printf(out, "<g id=\"head\"><rect class=\"wide page\" width=\"%u\" height=\"%u\"/>\n",
		p->width, p->top - 4);
	add_line(p, "t", "title", 29, 12, title);
	add_line(p, "s", "facts", 49, 7.4, facts);
	(void)add_legend(p, true);
	bytes_printf(out,
		"<g id=\"controls\" class=\"ui\" transform=\"translate(%u,-44)\">"
		"<text id=\"found\" class=\"s\" x=\"-330\" y=\"73\" text-anchor=\"end\"></text>"
		"<g id=\"reset\" role=\"button\" tabindex=\"0\" aria-label=\"Reset zoom and search\" transform=\"translate(-318,56)\">"
		"<rect width=\"70\" height=\"25\" rx=\"5\"/>"
		"<text class=\"s\" x=\"35\" y=\"17\" text-anchor=\"middle\">Reset</text></g>"
		"<foreignObject id=\"box\" x=\"-240\" y=\"55\" width=\"240\" height=\"28\">"
		"<input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" type=\"search\" "
		"placeholder=\"Search  /\" aria-label=\"Search frames\" autocomplete=\"off\" "
		"spellcheck=\"false\"/></foreignObject></g>\n"
		"<text id=\"what\" class=\"ui\" x=\"%u\" y=\"%u\" aria-live=\"polite\"></text>"
		"<text id=\"path\" class=\"ui\" x=\"%u\" y=\"%u\"></text></g>\n",
		p->width - MARGIN, MARGIN, p->top - 21, MARGIN, p->top - 6);
}

static void add_note(struct picture *p)
{
	uint64_t y = row_y(p, p->depth + 1) + 20;

	if (!p->dropped)
		return;
	bytes_printf(p->out, "<text class=\"s note\" id=\"note\" x=\"%u\" y=\"%" PRIu64 "\">",
		MARGIN, y);
	text_add_things(p->out, p->dropped, "frame narrower than 0.1 pixel is left out",
		"frames narrower than 0.1 pixel are left out");
	bytes_printf(p->out, ", %.1f %% of the time at their level</text>\n",
		100.0 * (double)p->dropped_ns /
			(double)p->tree->nodes.items[CALL_TREE_ROOT].total_ns);
}

void flame_svg(struct call_tree *tree, const struct report *report,
	const struct flame_options *options, struct bytes *out)
{
	struct picture p = { .report = report, .tree = tree, .out = out };
	struct bytes title = { 0 };
	struct bytes facts = { 0 };
	uint64_t whole_ns = tree->nodes.items[CALL_TREE_ROOT].total_ns;

	p.width = options->width ? options->width : FLAME_WIDTH_DEFAULT;
	if (p.width < FLAME_WIDTH_MIN)
		p.width = FLAME_WIDTH_MIN;
	if (p.width > FLAME_WIDTH_MAX)
		p.width = FLAME_WIDTH_MAX;
	(void)call_tree_sort(tree, compare_names, &p); /* without memory only the order suffers */
	if (!vec_push(&p.labels) || !place_frames(&p))
		out->failed = true;
	if (options->title)
		text_add_safe(&title, options->title, strlen(options->title));
	else
		add_default_title(&title, report);
	add_facts(&facts, report);
	p.top = TOP + (add_legend(&p, false) - 1) * KEY_ROW;

	uint64_t height = row_y(&p, p.depth + 1) + BOTTOM;
	bytes_printf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%" PRIu64
		"\" viewBox=\"0 0 %u %" PRIu64 "\">\n<title>",
		p.width, height, p.width, height);
	add_xml(out, &title);
	bytes_text(out, " - flame graph by spoor</title>\n");
	add_style(&p);
	bytes_text(out, "<g id=\"frames\" role=\"tree\" aria-label=\"Flame graph\">\n");
	double scale = whole_ns ? (double)(p.width - 2 * MARGIN) / (double)whole_ns : 0;
	for (uint32_t i = 0; whole_ns && i < p.frames.count; i++)
		draw_frame(&p, &p.frames.items[i], scale);
	bytes_text(out, "</g>\n");
	if (!whole_ns)
		bytes_printf(out,
			"<text class=\"s\" x=\"%u\" y=\"%u\">There is no sample to draw.</text>\n",
			MARGIN, p.top + 12);
	add_note(&p);
	add_header(&p, &title, &facts);
	if (whole_ns)
		add_data(&p, options, &title, &facts);
	bytes_text(out, "</svg>\n");

	bytes_done(&title);
	bytes_done(&facts);
	bytes_done(&p.names_text);
	vec_done(&p.labels);
	map_done(&p.label_index);
	vec_done(&p.frames);
}
