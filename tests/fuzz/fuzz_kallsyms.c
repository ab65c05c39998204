/*
 * The text of /proc/kallsyms, whose table must be equal after it was stored and read. And the
 * stored form, which may have any content on disk.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/input.h"
#include "code/kallsyms.h"

static void ask(const struct kallsyms *k)
{
	struct kallsyms_range range;
	struct kallsyms_hit hit;

	for (uint32_t i = 0; kallsyms_range(k, i, &range); i++) {
		(void)strlen(range.module);
		if (kallsyms_find(k, range.begin, &hit) &&
			(hit.begin > range.begin || hit.end <= range.begin || !*hit.name))
			__builtin_trap();
	}
	(void)kallsyms_find(k, 0, &hit);
	(void)kallsyms_find(k, UINT64_MAX, &hit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kallsyms *k;
	struct kallsyms *loaded;
	struct bytes form = { 0 };
	struct input in;

	input_from_memory(&in, data, size);
	if (kallsyms_read(&in, &k, NULL) == 0) {
		ask(k);
		kallsyms_save(k, &form);
		if (kallsyms_load(form.data, form.len, &loaded) < 0)
			__builtin_trap();
		ask(loaded);
		kallsyms_free(loaded);
		kallsyms_free(k);
		bytes_done(&form);
	}
	input_close(&in);

	uint64_t *aligned = malloc(size + 8);
	if (aligned && size) {
		memcpy(aligned, data, size);
		if (kallsyms_load(aligned, size, &loaded) == 0) {
			ask(loaded);
			kallsyms_free(loaded);
		}
	}
	free(aligned);
	return 0;
}
