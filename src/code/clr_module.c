/* See clr_module.h. */
#include "code/clr_module.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/text.h"
#include "code/clr_image.h"
#include "code/clr_layout.h"
#include "code/clr_memory.h"

#define MODULES_MAX    4096u
#define PATH_UNITS_MAX 2048u
#define PATH_PIECE     128u
#define NAME_MAX_BYTES 512u
#define DYNAMIC_DATA   4u /* offset of the bytes in the block of an emitted module's metadata */

static void add_path(struct clr_memory *memory, uint64_t address, struct bytes *path)
{
	uint8_t units[2 * PATH_PIECE];

	for (unsigned count = 0; count < PATH_UNITS_MAX; count += PATH_PIECE) {
		unsigned len = 0;
		/* by units: the text may end just before an unmapped page */
		for (; len < PATH_PIECE; len++) {
			uint16_t unit = clr_memory_u16(memory, address + 2 * (count + len));
			if (!unit || memory->failed)
				break;
			units[2 * len] = (uint8_t)unit;
			units[2 * len + 1] = (uint8_t)(unit >> 8);
		}
		text_add_utf16(path, units, len);
		if (len < PATH_PIECE)
			return;
	}
}

static struct clr_image *read_image(struct clr_modules *modules, uint64_t address,
	bool *ret_emitted)
{
	struct clr_memory *memory = modules->memory;
	const struct clr_layout *l = modules->layout;

	*ret_emitted = false;
	if (l->module_base == CLR_NO) {
		uint64_t name = l->module_name == CLR_NO
					? 0
					: clr_memory_pointer(memory, address + l->module_name);
		return memory->failed || !name ? NULL
					       : clr_images_around(modules->images, memory, name);
	}
	uint64_t dynamic = l->module_dynamic == CLR_NO
				   ? 0
				   : clr_memory_u64(memory, address + l->module_dynamic);
	if (dynamic) {
		*ret_emitted = true;
		uint32_t size = clr_memory_u32(memory, dynamic);
		return memory->failed ? NULL
				      : clr_images_of_block(modules->images, memory,
						dynamic + DYNAMIC_DATA, size);
	}
	uint64_t base = clr_memory_pointer(memory, address + l->module_base);
	return memory->failed ? NULL : clr_images_of_pe(modules->images, memory, base);
}

/* Path of its file, or a name like one: of an emitted assembly, or in a single-file program. */
static char *read_path(struct clr_modules *modules, uint64_t address, const struct clr_image *image)
{
	struct clr_memory *memory = modules->memory;
	const struct clr_layout *l = modules->layout;
	cleanup(bytes_done) struct bytes path = { 0 };
	char name[NAME_MAX_BYTES];

	memory->failed = false;
	if (l->module_path != CLR_NO) {
		uint64_t text = clr_memory_u64(memory, address + l->module_path);
		if (text)
			add_path(memory, text, &path);
	} else if (l->module_name != CLR_NO &&
		   clr_memory_text(memory, clr_memory_pointer(memory, address + l->module_name),
			   name, sizeof(name))) {
		bytes_printf(&path, "%s.dll", name);
	}
	memory->failed = false;
	if (!path.len && image && metadata_add_assembly(&image->metadata, &path))
		bytes_text(&path, ".dll");
	return path.failed ? NULL : strdup(bytes_z(&path));
}

static void forget(struct clr_modules *modules, uint32_t index)
{
	struct clr_module *module = &modules->list.items[index];
	struct clr_module *last = vec_last(&modules->list);

	map_remove(&modules->index, module->address, index + 1);
	clr_images_release(modules->images, module->image);
	free(module->path);
	if (module != last) {
		map_remove(&modules->index, last->address, modules->list.count);
		*module = *last;
		/* there is room: two entries were removed */
		(void)map_add(&modules->index, module->address, index + 1);
	}
	modules->list.count--;
}

const struct clr_module *clr_modules_get(struct clr_modules *modules, uint64_t address, bool lasts)
{
	uint32_t at = map_get(&modules->index, address);

	if (at) {
		modules->list.items[at - 1].lasts |= lasts;
		return &modules->list.items[at - 1];
	}
	if (modules->list.count >= MODULES_MAX)
		return NULL;
	struct clr_module module = { .address = address, .lasts = lasts };
	module.image = read_image(modules, address, &module.emitted);
	module.path = read_path(modules, address, module.image);
	if (!module.image && !module.emitted && !module.path)
		return NULL;
	if (!module.path || !vec_add(&modules->list, module)) {
		clr_images_release(modules->images, module.image);
		free(module.path);
		return NULL;
	}
	if (!map_add(&modules->index, address, modules->list.count)) {
		forget(modules, modules->list.count - 1);
		return NULL;
	}
	return vec_last(&modules->list);
}

const struct clr_module *clr_modules_again(struct clr_modules *modules, uint64_t address)
{
	uint32_t at = map_get(&modules->index, address);
	struct clr_module *module = at ? &modules->list.items[at - 1] : NULL;

	if (!module || !module->emitted)
		return NULL;
	clr_memory_refresh(modules->memory);
	modules->memory->failed = false;
	struct clr_image *image = read_image(modules, address, &module->emitted);
	if (!image)
		return NULL;
	clr_images_release(modules->images, module->image);
	module->image = image;
	return module;
}

void clr_modules_pass(struct clr_modules *modules)
{
	for (uint32_t i = modules->list.count; i-- > 0;)
		if (!modules->list.items[i].lasts)
			forget(modules, i);
}

void clr_modules_done(struct clr_modules *modules)
{
	while (modules->list.count)
		forget(modules, modules->list.count - 1);
	vec_done(&modules->list);
	map_done(&modules->index);
}
