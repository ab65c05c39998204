/*
 * Method and module events of the CLR, then lookups. Each record of the input: 1 byte size, 1 byte
 * event (low two bits: kind, bit 2: rundown), 1 byte time, then the payload.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "code/codemap.h"
#include "trace/clr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t ids[] = { CLR_ID_MethodLoadVerbose, CLR_ID_MethodUnloadVerbose,
		CLR_ID_ModuleLoad, CLR_ID_ModuleDCEnd };
	struct codemap map = { .max_size_bytes = 1 << 20 };
	struct cursor c = cursor_of(data, size);
	struct bytes text = { 0 };

	while (cursor_left(&c)) {
		size_t len = cursor_u8(&c);
		unsigned what = cursor_u8(&c);
		uint64_t time_ns = cursor_u8(&c) * UINT64_C(100000000);
		if (len > cursor_left(&c))
			len = cursor_left(&c);
		const uint8_t *payload = cursor_take(&c, len);
		if (c.short_read)
			break;
		(void)clr_absorb_method(&map, what >> 2 & 1, ids[what & 3], 2, time_ns, payload,
			len);
		(void)clr_is_collectible(what >> 2 & 1,
			what & 4 ? CLR_ID_AssemblyDCEnd : CLR_ID_AssemblyLoad, payload, len);
		if (what & 0x80 && map.codes.count)
			(void)codemap_find(&map, vec_last(&map.codes)->begin, time_ns);
	}
	for (uint32_t i = 0; i < map.codes.count; i++) {
		uint64_t address = map.codes.items[i].begin;
		const struct code *code = codemap_find(&map, address, map.codes.items[i].from_ns);
		if (!code)
			continue;
		if (address < code->begin || address >= code->end)
			abort();
		bytes_reset(&text);
		codemap_symbol_text(&map, code, i & 1, &text);
		clr_method_unload_payload(code, &text);
	}
	bytes_done(&text);
	codemap_done(&map);
	return 0;
}
