/*
 * kernel_symbol.c: parses the kernel's text for an address. If this user may query the kernel, it
 * returns the names of its own functions.
 */
#include "unit/test.h"

#include <errno.h>

#include "machine/kernel_symbol.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		uint64_t address;
		int found;
		const char *name;
		const char *module;
		uint64_t begin;
		uint64_t end;
	} cases[] = {
		{ "do_syscall_64+0x1a/0x40", 0x101a, 1, "do_syscall_64", "", 0x1000, 0x1040 },
		{ "nf_hook+0x0/0x8 [nf_tables]", 0x1000, 1, "nf_hook", "nf_tables", 0x1000,
			0x1008 },
		{ "nf_hook+0x4/0x8 [nf_tables 1a2b3c]", 0x1004, 1, "nf_hook", "nf_tables", 0x1000,
			0x1008 },
		{ "0xffffffff81000000", 0x1000, 0, NULL, NULL, 0, 0 },
		{ "name+0x40/0x40", 0x1040, 0, NULL, NULL, 0, 0 },
		{ "name+0x9/0x40", 0x1, 0, NULL, NULL, 0, 0 },
		{ "name+9/40", 0x1000, 0, NULL, NULL, 0, 0 },
		{ "name+0x1", 0x1000, 0, NULL, NULL, 0, 0 },
		{ "+0x1/0x2", 0x1000, 0, NULL, NULL, 0, 0 },
		{ "", 0x1000, 0, NULL, NULL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128];
		struct kernel_symbol symbol;
		snprintf(text, sizeof(text), "%s", cases[i].text);
		assert_int_equal(kernel_symbol_parse(text, cases[i].address, &symbol),
			cases[i].found);
		if (!cases[i].found)
			continue;
		assert_string_equal(symbol.name, cases[i].name);
		assert_string_equal(symbol.module, cases[i].module);
		assert_true(symbol.begin == cases[i].begin && symbol.end == cases[i].end);
	}
}

/* The kernel's answer for an address agrees with /proc/kallsyms. */
static void test_kernel(void **state)
{
	struct kernel_symbols *symbols;
	unsigned long address = 0;
	char line[600];
	int result = kernel_symbols_open(&symbols);
	FILE *file = fopen("/proc/kallsyms", "r");

	(void)state;
	while (file && fgets(line, sizeof(line), file)) {
		char type;
		char name[512];
		if (sscanf(line, "%lx %c %511s", &address, &type, name) == 3 &&
			strcmp(name, "schedule_timeout") == 0)
			break;
		address = 0;
	}
	if (file)
		fclose(file);
	if (result < 0 || !address) {
		if (result == 0)
			kernel_symbols_close(symbols);
		print_message(
			"skipped: no right to ask the kernel for names here, or no BPF (%s)\n",
			strerror(-result));
		skip();
	}
	struct kernel_symbol symbol;

	assert_int_equal(kernel_symbols_find(symbols, address + 1, &symbol), 1);
	assert_string_equal(symbol.name, "schedule_timeout");
	assert_true(symbol.begin == address);
	assert_true(symbol.end > address);
	assert_int_equal(kernel_symbols_find(symbols, 0x1000, &symbol), 0);
	kernel_symbols_close(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests_name("kernel_symbol", tests, NULL, NULL);
}
