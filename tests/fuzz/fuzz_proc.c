/*
 * Text of /proc that processes can choose in part: comm, arguments, paths. The first byte selects
 * the parser.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "machine/command_line.h"
#include "machine/box.h"
#include "machine/cpu_clock.h"
#include "machine/kernel_symbol.h"
#include "machine/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proc_process process = { 0 };
	struct proc_mapping mapping;
	struct cpu_list cpus = { 0 };
	char id[CONTAINER_ID_ROOM];
	size_t len;

	if (!size)
		return 0;
	unsigned what = data[0] % 8;
	data++;
	size--;
	/*
	 * One byte more than the text: the parsers may write the NUL of a path there, as in the
	 * reader's buffer.
	 */
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	switch (what) {
	case 0:
		if (proc_parse_stat(text, size, &process) && strlen(process.comm) >= PROC_COMM_MAX)
			abort();
		break;
	case 1:
		proc_parse_status(text, size, &process);
		break;
	case 2:
		if (proc_parse_mapping(text, size, &mapping) &&
			(mapping.begin >= mapping.end || mapping.path[mapping.path_len]))
			abort();
		break;
	case 3: {
		const char *path = proc_parse_cgroup(text, size, &len);
		if (path && container_id_from_cgroup(path, len, id) && strlen(id) != 64)
			abort();
		break;
	}
	case 5: {
		uint64_t ns;
		(void)cpu_clock_parse_stat(text, size, 10000000, &ns, &ns); /* any result */
		(void)cpu_clock_parse_schedstat(text, size, &ns);
		break;
	}
	case 6: {
		const char *name;
		if (command_line_application(text, size, &name, &len) &&
			(name < text || len > size || name + len > text + size))
			abort();
		break;
	}
	case 7: {
		struct kernel_symbol symbol;
		text[size] = '\0';
		(void)kernel_symbol_parse(text, 0x1000, &symbol); /* any result */
		break;
	}
	default:
		(void)box_parse_cpu_list(text, size, &cpus); /* any result */
		for (uint32_t i = 1; i < cpus.cpus.count; i++)
			if (cpus.cpus.items[i - 1] >= cpus.cpus.items[i])
				abort();
		vec_done(&cpus.cpus);
		break;
	}
	free(text);
	return 0;
}
