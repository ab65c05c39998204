/* See unwind_label.h. */
#include "render/unwind_label.h"

#include "base/bytes.h"
#include "base/text.h"
#include "code/unwind.h"

static const char *const words[UNWIND_END_COUNT] = {
#define UNWIND_END(name, text, word) [UNWIND_##name] = (word),
#include "code/unwind_ends.def"
#undef UNWIND_END
};

void label_names(struct bytes *out, uint64_t named, uint64_t frames, const char *of)
{
	uint64_t tenths = (named * 2000 + frames) / (2 * frames);

	/* A share below 100 % is not rounded up to 100 %. */
	if (tenths == 1000 && named < frames)
		tenths = 999;
	if (tenths == 1000)
		bytes_text(out, "100 % of ");
	else
		bytes_printf(out, "%u.%u %% of ", (unsigned)(tenths / 10), (unsigned)(tenths % 10));
	text_add_things(out, frames, "frame", "frames");
	bytes_text(out, of);
}

void label_unwinding(struct bytes *out, uint64_t stacks, const uint64_t *ends)
{
	const char *separator = "; ";

	if (!stacks)
		return;
	/* A share below 100 % is not rounded up to 100 %. */
	uint64_t tenths = ends[UNWIND_START] * 1000 / stacks;
	bytes_printf(out, "%u.%u %% of ", (unsigned)(tenths / 10), (unsigned)(tenths % 10));
	text_add_things(out, stacks, "stack ", "stacks ");
	bytes_text(out, words[UNWIND_START]);
	for (int i = UNWIND_START + 1; i < UNWIND_END_COUNT; i++) {
		double percent = 100.0 * (double)ends[i] / (double)stacks;
		if (!ends[i])
			continue;
		bytes_printf(out, "%s%.*f %% %s", separator, percent < 0.1 ? 2 : 1, percent,
			words[i]);
		separator = ", ";
	}
}
