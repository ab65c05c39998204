/*
 * The memory of a .NET process that is damaged, or hostile: the process of unit/clr_process.h, changed
 * while it is read. Each 8 bytes of the input are one change: u32 place, u16 value, u8 size, u8 number of the read
 * before which it is made (0: before all).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/clr_frame.h"
#include "code/clr_image.h"
#include "code/unwind_rules.h"
#include "unit/clr_process.h"

#define CHANGE_BYTES 8u
#define TINY         TEST_DATA "/pe/tiny_r2r.dll"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes the changes that are due. */
static void change(struct clr_process *process)
{
	while (process->patches_left >= CHANGE_BYTES &&
		process->patches[7] <= process->read_count) {
		const uint8_t *p = process->patches;
		uint32_t place = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				 (uint32_t)p[3] << 24;
		uint64_t value = (uint64_t)p[4] | (uint64_t)p[5] << 8;
		/* so that pointers into the block are likely */
		if (p[6] & 0x80)
			value += CLR_BASE;
		if (p[6] & 0x40)
			value <<= 16;
		clr_process_put(process, place % (CLR_BYTES - 8), value, (p[6] & 7) + 1);
		process->patches += CHANGE_BYTES;
		process->patches_left -= CHANGE_BYTES;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum clr_version versions[] = { CLR_VERSION_8, CLR_VERSION_9, CLR_VERSION_10 };
	struct clr_images images = { .size_bytes = 0 };
	struct clr_process process;
	struct clr_names *names;
	struct unwind_rules rules;
	struct clr_found found;
	bool lasts;

	if (!size)
		return 0;
	clr_process_init(&process, versions[data[0] % 3], TINY);
	process.patches = data + 1;
	process.patches_left = size - 1;
	change(&process);
	process.before_read = change;
	if (clr_process_open(&process, &images, &names) == 0) {
		for (uint64_t place = CLR_CODE; place < CLR_CODE_END; place += 56) {
			if (clr_names_find(names, CLR_BASE + place, &found) &&
				(found.begin > CLR_BASE + place || found.end <= CLR_BASE + place ||
					!*found.name || !*found.name_space))
				abort();
			(void)clr_names_may_come(names, CLR_BASE + place);
			(void)clr_frame_find(clr_names_code(names), CLR_BASE + place, place & 8,
				&rules, &lasts);
			(void)clr_frame_misses_caller(clr_names_code(names), CLR_BASE + place,
				false, &lasts);
		}
		clr_names_pass(names);
		(void)clr_names_find(names, CLR_BASE + CLR_METHOD_CODE, &found);
		clr_names_close(names);
	}
	clr_images_done(&images);
	clr_process_done(&process);
	return 0;
}
