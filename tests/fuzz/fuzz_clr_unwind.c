/*
 * Unwind information and code of managed functions, from a process that may be hostile. The input: a byte
 * for the offset, then the information; the same bytes are also the begin, and the end, of a function's code.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "code/clr_unwind.h"

#define FRAME_MOST (1 << 29)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Found from the stack or frame pointer, within the limits. */
static void check(const struct unwind_rules *rules)
{
	if (rules->cfa.kind != RULE_VALUE_OFFSET || rules->cfa.value > FRAME_MOST ||
		rules->cfa.value < -FRAME_MOST || rules->cfa_register < 6 ||
		rules->cfa_register > 7 || rules->registers[7].kind != RULE_SAME)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct clr_range function = { 0x10000, 0x10100 };
	struct clr_prolog prolog;
	struct unwind_rules rules;

	if (!size)
		return 0;
	if (clr_unwind_rules(data + 1, size - 1, data[0], &rules))
		check(&rules);
	if (clr_unwind_epilog(data + 1, size - 1, 0x10000 + data[0], &function, &rules))
		check(&rules);
	if (clr_unwind_prolog(data + 1, size - 1, &prolog) && prolog.set_end > size - 1)
		abort();
	return 0;
}
