/* See gen.h. */
#include "gen/gen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/c_code.h"

const char *const gen_output_names[GEN_OUTPUT_COUNT] = {
#define GEN_OUTPUT(identifier, name, summary) [GEN_##identifier] = name,
#include "gen/outputs.def"
};

struct bytes *gen_file_add(struct gen_files *files, const char *stem, const char *ending)
{
	struct bytes name = { 0 };

	bytes_printf(&name, "%s%s", stem, ending);
	char *copy = name.failed ? NULL : strdup(bytes_z(&name));
	bytes_done(&name);
	struct gen_file *file = copy ? vec_push(&files->list) : NULL;
	if (!file) {
		free(copy);
		files->failed = true;
		return NULL;
	}
	file->name = copy;
	return &file->content;
}

void gen_add_head(struct bytes *out, const struct manifest *manifest)
{
	bytes_text(out, "/* " GEN_MARK " from ");
	c_add_comment_text(out, manifest->name);
	bytes_text(out, ". Do not edit. */\n");
}

const char *gen_level_name(uint8_t level)
{
	static const char *const names[] = { "LogAlways", "Critical", "Error", "Warning",
		"Informational", "Verbose" };

	return level < sizeof(names) / sizeof(names[0]) ? names[level] : "";
}

const char *gen_put_guid(char *out, const uint8_t g[16])
{
	snprintf(out, GEN_GUID_ROOM,
		"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", g[3], g[2],
		g[1], g[0], g[5], g[4], g[7], g[6], g[8], g[9], g[10], g[11], g[12], g[13], g[14],
		g[15]);
	return out;
}

void gen_add_field_type(struct bytes *out, const struct man_field *field)
{
	bytes_text(out, field->type == IN_NONE ? "struct" : in_types[field->type].name);
	if (field->length.kind)
		bytes_printf(out, "(%s)", field->length.name);
	if (field->count.kind)
		bytes_printf(out, "[%s]", field->count.name);
}

int gen_files(const struct manifest *manifest, unsigned wanted, struct gen_files *ret_files)
{
	bool failed;

	*ret_files = (struct gen_files){ 0 };
	vec_each(p, &manifest->providers) {
		if (wanted & 1u << GEN_LIBSPOOR)
			gen_write_libspoor(manifest, p, ret_files);
		if (wanted & 1u << GEN_LTTNG)
			gen_write_lttng(manifest, p, ret_files);
		if (wanted & 1u << GEN_USDT)
			gen_write_usdt(manifest, p, ret_files);
		if (wanted & 1u << GEN_USER_EVENTS)
			gen_write_user_events(manifest, p, ret_files);
		if (wanted & 1u << GEN_ETW)
			gen_write_etw(manifest, p, ret_files);
	}
	if (wanted & 1u << GEN_MARKDOWN)
		gen_write_markdown(manifest, ret_files);
	if (wanted & 1u << GEN_JSON)
		gen_write_json(manifest, ret_files);
	failed = ret_files->failed;
	vec_each(file, &ret_files->list)
		failed |= file->content.failed || !file->content.len;
	if (!failed)
		return 0;
	gen_files_done(ret_files);
	return -ENOMEM;
}

void gen_files_done(struct gen_files *files)
{
	vec_each(file, &files->list) {
		free(file->name);
		bytes_done(&file->content);
	}
	vec_done(&files->list);
}
