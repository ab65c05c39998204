/* See clr_names.h. */
#include "code/clr_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "code/clr_code.h"
#include "code/clr_contract.h"
#include "code/clr_export.h"
#include "code/clr_image.h"
#include "code/clr_method.h"
#include "code/clr_module.h"
#include "code/clr_tier.h"
#include "code/codemap.h"

#define DAC_SYMBOL "g_dacTable"

struct clr_names {
	struct clr_memory memory;
	struct clr_layout layout;
	struct clr_code code;
	struct clr_modules modules;
	struct clr_namer namer;
	uint64_t dac_table;
	bool guessed;       /* the version is not described, and no name has confirmed it so far */
	bool types_checked; /* System.Object and System.String have their names */
	bool distrusted;
};

static int read_layout(struct clr_names *names, const struct clr_source *source)
{
	struct clr_memory *memory = &names->memory;
	struct clr_contract contract = { .slots = 0 };
	uint64_t base;
	uint64_t descriptor = 0;
	uint64_t dac_table = 0;

	if (!clr_export_image(memory, source->mapping_begin, source->file_offset, &base))
		return -ENODATA;
	bool described = clr_export_find(memory, base, CLR_CONTRACT_SYMBOL, &descriptor);
	if (!clr_export_find(memory, base, DAC_SYMBOL, &dac_table))
		dac_table = 0;
	bool read = true;
	if (described)
		read = clr_contract_read(&contract, memory, descriptor);
	names->guessed = !described;
	names->dac_table = dac_table;
	read = read && (described || dac_table) &&
	       clr_layout_read(&names->layout, described ? &contract : NULL, dac_table,
		       CLR_VERSION_9, memory);
	clr_contract_done(&contract);
	return read ? 0 : -ENODATA;
}

int clr_names_open(clr_memory_read_fn *read, void *context, const struct clr_source *source,
	struct clr_images *images, struct clr_pages *pages, struct clr_names **ret_names)
{
	struct clr_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	clr_memory_init(&names->memory, read, context, pages);
	int result = read_layout(names, source);
	if (result < 0) {
		free(names);
		return result;
	}
	names->code = (struct clr_code){ .memory = &names->memory, .layout = &names->layout };
	names->modules = (struct clr_modules){
		.memory = &names->memory, .layout = &names->layout, .images = images
	};
	names->namer = (struct clr_namer){
		.memory = &names->memory, .layout = &names->layout, .modules = &names->modules
	};
	*ret_names = names;
	return 0;
}

static bool has_name(struct clr_names *names, uint64_t type, const char *name)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	return !type ||
	       (clr_method_add_type(&names->namer, type, &text) && !strcmp(bytes_z(&text), name));
}

/* Before the first name: the layout leads to the names of two types that are known. */
static bool types_agree(struct clr_names *names)
{
	if (names->types_checked)
		return true;
	if (!has_name(names, names->layout.object_type, "System.Object") ||
		!has_name(names, names->layout.string_type, "System.String"))
		return false;
	names->types_checked = true;
	return true;
}

static enum code_kind kind_of(const struct clr_body *body, const struct clr_method_text *text,
	enum code_tier tier)
{
	if (text->dynamic)
		return CODE_DYNAMIC;
	if (body->precompiled)
		return CODE_READYTORUN;
	return tier == TIER_1_OSR ? CODE_OSR : CODE_JIT;
}

static bool find(struct clr_names *names, uint64_t address, struct clr_found *ret_found)
{
	struct clr_method_text text;
	struct clr_body body;

	if (!clr_code_find(&names->code, address, &body))
		return false;
	if (!clr_method_read(&names->namer, body.method, !body.collectible, &text))
		return false;
	/* A freed dynamic method, whose memory another one uses, does not know this code. */
	if (text.native_code && text.native_code != body.begin)
		return false;
	if (!clr_code_stands(&names->code, &body, !body.collectible && !text.freed))
		return false;
	const struct clr_module *module =
		text.module ? clr_modules_get(&names->modules, text.module, !body.collectible)
			    : NULL;
	enum code_tier tier = text.dynamic || body.precompiled
				      ? TIER_UNKNOWN
				      : clr_tier_read(&names->memory, &names->layout, &body);
	*ret_found = (struct clr_found){ .begin = body.begin,
		.end = body.end,
		.method_id = body.method,
		.module_id = text.module,
		.name_space = text.name_space,
		.name = text.name,
		.signature = text.signature,
		.module_path = module ? module->path : "",
		.kind = (uint8_t)kind_of(&body, &text, tier),
		.tier = (uint8_t)tier,
		.lasts = !text.freed && !body.collectible };
	return true;
}

/* Only the name of an ordinary method confirms a guess: its token and its type agree. */
static bool confirm(struct clr_names *names, const struct clr_found *found)
{
	if (names->guessed && found->kind == CODE_DYNAMIC)
		return false;
	names->guessed = false;
	return true;
}

/* Reads the process as one of the other version. */
static bool guess_again(struct clr_names *names)
{
	enum clr_version other =
		names->layout.version == CLR_VERSION_9 ? CLR_VERSION_8 : CLR_VERSION_9;

	clr_modules_done(&names->modules);
	names->modules = (struct clr_modules){
		.memory = &names->memory, .layout = &names->layout, .images = names->modules.images
	};
	names->namer.disagreed_count = 0;
	return clr_layout_read(&names->layout, NULL, names->dac_table, other, &names->memory);
}

static bool find_agreed(struct clr_names *names, uint64_t address, struct clr_found *ret_found)
{
	return find(names, address, ret_found) && confirm(names, ret_found) && types_agree(names);
}

bool clr_names_find(struct clr_names *names, uint64_t address, struct clr_found *ret_found)
{
	struct clr_body body;

	if (names->distrusted)
		return false;
	if (find_agreed(names, address, ret_found))
		return true;
	if (!clr_code_find(&names->code, address, &body))
		return false;
	if (names->guessed)
		return guess_again(names) && find_agreed(names, address, ret_found);
	if (names->namer.disagreed_count && names->layout.version != CLR_VERSION_10) {
		names->distrusted = true;
		return false;
	}
	/* A page that was read before the code was written: once more, as of now. */
	clr_memory_refresh(&names->memory);
	return find_agreed(names, address, ret_found);
}

bool clr_names_may_come(struct clr_names *names, uint64_t address)
{
	return clr_code_in_heap(&names->code, address);
}

void clr_names_pass(struct clr_names *names)
{
	clr_modules_pass(&names->modules);
}

const struct clr_layout *clr_names_layout(const struct clr_names *names)
{
	return &names->layout;
}

struct clr_memory *clr_names_memory(struct clr_names *names)
{
	return &names->memory;
}

struct clr_code *clr_names_code(struct clr_names *names)
{
	return &names->code;
}

bool clr_names_distrusts(const struct clr_names *names)
{
	return names->distrusted;
}

void clr_names_close(struct clr_names *names)
{
	if (!names)
		return;
	clr_method_done(&names->namer);
	clr_modules_done(&names->modules);
	clr_code_done(&names->code);
	free(names);
}
