/*
 * The cost of a method's name from the memory of a .NET process (code/clr_names.h).
 *
 *   memory_read PID < methods      one a line: a time, and an address in hexadecimal, each of another method
 *
 * Prints "NAME VALUE" lines: the methods that have a name, the CPU time of opening the process, and that of a name: with
 * the assembly's metadata ("first"), with those of the same time in one pass ("as_found"), each in a separate pass
 * ("cold"), and all in one pass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/diag.h"
#include "code/clr_image.h"
#include "code/clr_names.h"
#include "dotnet/runtime_memory.h"
#include "machine/proc.h"

#define ADDRESSES_MAX 65536u
#define TIME_SIZE     32u

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	static uint64_t addresses[ADDRESSES_MAX];
	static char times[ADDRESSES_MAX][TIME_SIZE];
	static struct clr_pages pages;
	struct clr_images images = { .size_bytes = 0 };
	struct runtime_memory *memory;
	struct proc_reader proc;
	struct diag diag = { 0 };
	struct clr_found found;
	uint32_t count = 0;
	uint32_t named = 0;

	while (argc == 2 && count < ADDRESSES_MAX &&
		scanf("%31s %lx", times[count], &addresses[count]) == 2)
		count++;
	if (!count || proc_open(&proc, &diag) < 0)
		return 2;
	double begin = cpu_us();
	if (runtime_memory_open(&proc, (uint32_t)atoi(argv[1]), &images, &pages, &memory) < 0)
		return 1;
	printf("open_us %.1f\n", cpu_us() - begin);
	/* The modules: their metadata is read with the first method of each. */
	begin = cpu_us();
	for (uint32_t i = 0; i < count; i++)
		named += clr_names_find(memory->names, addresses[i], &found);
	printf("methods %u\nnamed %u\nfirst_us %.2f\n", count, named, (cpu_us() - begin) / count);
	begin = cpu_us();
	for (uint32_t i = 0; i < count; i++) {
		if (!i || strcmp(times[i], times[i - 1]) != 0)
			clr_pages_pass(&pages);
		(void)clr_names_find(memory->names, addresses[i], &found);
	}
	printf("as_found_us %.2f\n", (cpu_us() - begin) / count);
	begin = cpu_us();
	for (uint32_t i = 0; i < count; i++) {
		clr_pages_pass(&pages);
		(void)clr_names_find(memory->names, addresses[i], &found);
	}
	printf("cold_us %.2f\n", (cpu_us() - begin) / count);
	clr_pages_pass(&pages);
	begin = cpu_us();
	for (uint32_t i = 0; i < count; i++)
		(void)clr_names_find(memory->names, addresses[i], &found);
	printf("pass_us %.2f\n", (cpu_us() - begin) / count);
	printf("metadata_bytes %zu\n", images.size_bytes);
	runtime_memory_close(memory);
	clr_images_done(&images);
	proc_close(&proc);
	return 0;
}
