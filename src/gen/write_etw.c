/*
 * Events of ETW for programs on Windows, as a header and a source file for each provider. The payload
 * is one block in ETW's layout, so a consumer reads it by the registered manifest as if Windows' own
 * message compiler had made the code.
 *
 * ETW asks for a level and keywords; its callback keeps one flag an event, which is all that a disabled
 * event reads.
 */
#include "gen/gen.h"

#include <string.h>

#include "gen/c_code.h"

static void write_header(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out,
		"#ifndef %s_etw_h_\n#define %s_etw_h_\n\n"
		"#include <spoor/generated.h>\n\n"
		"#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
		"/* 0, or an error of Windows. Events that are fired before it, or after the end, are off. */\n"
		"uint32_t %s_etw_register(void);\n"
		"void %s_etw_unregister(void);\n\n"
		"/*\n"
		" * Called by ETW when a session begins, changes or ends, after the tests of the events have changed.\n"
		" * NULL: not called. To be set before the provider is registered.\n"
		" */\n"
		"extern void (*%s_etw_changed)(bool enabled, uint8_t level, uint64_t keywords);\n\n"
		"/* Of each event: whether a session enables it. Set by ETW. */\n"
		"extern uint8_t %s_etw_on_[%u];\n",
		p->prefix, p->prefix, p->prefix, p->prefix, p->prefix, p->prefix, p->events.count);
	c_add_structs(out, p);
	for (uint32_t i = 0; i < p->events.count; i++) {
		const struct man_event *event = &p->events.items[i];
		bytes_text(out, "\n");
		c_add_function(out, p, event, "etw", "_write_");
		bytes_printf(out,
			";\n"
			"static inline bool %s_etw_%s_enabled(void)\n{\n"
			"\treturn __builtin_expect(__atomic_load_n(&%s_etw_on_[%u], __ATOMIC_RELAXED) != 0, 0);\n}\n"
			"static inline ",
			p->prefix, event->symbol, p->prefix, i);
		c_add_fire(out, p, event, "etw");
	}
	bytes_text(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

static void add_writer(struct bytes *out, const struct man_provider *p, uint32_t index)
{
	const struct man_event *event = &p->events.items[index];
	const struct man_template *tmpl = manifest_template(p, event);

	bytes_text(out, "\n");
	c_add_function(out, p, event, "etw", "_write_");
	if (!tmpl) {
		bytes_printf(out,
			"\n{\n\t(void)EventWrite(handle_, &descriptors_[%u], 0, NULL);\n}\n",
			index);
		return;
	}
	bytes_text(out, "\n{\n");
	c_add_payload_begin(out, p, tmpl, C_LAYOUT_ETW, "\tEVENT_DATA_DESCRIPTOR spoor_data_;\n");
	bytes_printf(out,
		"\t\tEventDataDescCreate(&spoor_data_, spoor_bytes_, (ULONG)spoor_size_);\n"
		"\t\t(void)EventWrite(handle_, &descriptors_[%u], 1, &spoor_data_);\n",
		index);
	c_add_payload_end(out);
	bytes_text(out, "}\n");
}

/* "0x0f1e2d3c, 0x4b5a, 0x6978, { 0x87, ... }" */
static void add_guid(struct bytes *out, const uint8_t g[16])
{
	bytes_printf(out, "{ 0x%02x%02x%02x%02x, 0x%02x%02x, 0x%02x%02x, {", g[3], g[2], g[1], g[0],
		g[5], g[4], g[7], g[6]);
	for (unsigned i = 8; i < 16; i++)
		bytes_printf(out, "%s 0x%02x", i == 8 ? "" : ",", g[i]);
	bytes_text(out, " } }");
}

static void write_source(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out,
		"#include <windows.h>\n\n"
		"#include <evntprov.h>\n"
		"#include <stdlib.h>\n\n"
		"#include \"%s_etw.h\"\n\n"
		"/* A win:Pointer has 8 bytes here. */\n"
		"_Static_assert(sizeof(void *) == 8, \"only for 64-bit programs\");\n\n"
		"void (*%s_etw_changed)(bool enabled, uint8_t level, uint64_t keywords);\n"
		"uint8_t %s_etw_on_[%u];\n"
		"static REGHANDLE handle_;\n"
		"static const GUID provider_ = ",
		p->prefix, p->prefix, p->prefix, p->events.count);
	add_guid(out, p->guid);
	bytes_text(out, ";\n\n"
			"/* Id, version, channel, level, opcode, task, keywords. */\n"
			"static const EVENT_DESCRIPTOR descriptors_[] = {\n");
	vec_each(event, &p->events)
		bytes_printf(out, "\t{ %u, %u, 0, %u, %u, %u, UINT64_C(0x%llx) },\n", event->id,
			event->version, event->level, event->opcode,
			event->task == MANIFEST_NONE ? 0u : p->tasks.items[event->task].value,
			(unsigned long long)event->keywords);
	bytes_printf(out,
		"};\n\n"
		"static void look_(void)\n"
		"{\n"
		"\tfor (size_t i = 0; i < sizeof(descriptors_) / sizeof(descriptors_[0]); i++)\n"
		"\t\t__atomic_store_n(&%s_etw_on_[i], EventEnabled(handle_, &descriptors_[i]) ? 1 : 0, __ATOMIC_RELAXED);\n"
		"}\n\n"
		"/* Called by ETW whenever a session begins, changes or ends. */\n"
		"static void NTAPI enable_(LPCGUID source, ULONG enabled, UCHAR level, ULONGLONG any, ULONGLONG all,\n"
		"\tPEVENT_FILTER_DESCRIPTOR filter, PVOID context)\n"
		"{\n"
		"\t(void)source, (void)all, (void)filter, (void)context;\n"
		"\tlook_();\n"
		"\tif (%s_etw_changed)\n"
		"\t\t%s_etw_changed(enabled != 0, level, any);\n"
		"}\n\n"
		"uint32_t %s_etw_register(void)\n"
		"{\n"
		"\tconst ULONG result = EventRegister(&provider_, enable_, NULL, &handle_);\n\n"
		"\t/* A session that waits for the provider was announced before the handle was known. */\n"
		"\tif (result == 0)\n"
		"\t\tlook_();\n"
		"\treturn result;\n"
		"}\n\n"
		"void %s_etw_unregister(void)\n"
		"{\n"
		"\tmemset(%s_etw_on_, 0, sizeof(%s_etw_on_));\n"
		"\t(void)EventUnregister(handle_);\n"
		"\thandle_ = 0;\n"
		"}\n",
		p->prefix, p->prefix, p->prefix, p->prefix, p->prefix, p->prefix, p->prefix);
	vec_each(tmpl, &p->templates)
		if (tmpl->fields.count && manifest_template_is_used(p, tmpl))
			c_add_struct_writers(out, p, tmpl, C_LAYOUT_ETW);
	for (uint32_t i = 0; i < p->events.count; i++)
		add_writer(out, p, i);
}

void gen_write_etw(const struct manifest *manifest, const struct man_provider *p,
	struct gen_files *files)
{
	if (!p->events.count)
		return;
	struct bytes *out = gen_file_add(files, p->prefix, "_etw.h");
	if (out)
		write_header(manifest, p, out);
	out = gen_file_add(files, p->prefix, "_etw.c");
	if (out)
		write_source(manifest, p, out);
}
