/*
 * unwind_rows FILE: for each address (hexadecimal) of standard input, prints the rules of the file's unwind table there, in the words of readelf
 * --debug-dump=frames-interp: "ADDRESS CFA NAME=RULE ...", for the registers that have a rule.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/unwind_rules.h"
#include "code/unwind_table.h"
#include "image/image_file.h"

static const char *const x86_64[UNWIND_REGISTERS] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
	"rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };

static const char *name_of(const struct unwind_rules *rules, bool arm, uint32_t number, char *room)
{
	if (number == rules->return_register)
		return "ra";
	if (!arm)
		return x86_64[number] ? x86_64[number] : "?";
	if (number == 31)
		return "sp";
	snprintf(room, 8, "x%" PRIu32, number);
	return room;
}

static void print_rules(uint64_t address, const struct unwind_rules *rules, bool arm)
{
	char room[8];

	printf("%016" PRIx64, address);
	if (rules->cfa.kind == RULE_VALUE_OFFSET)
		/* the register of the return address has its own name there */
		printf(" %s%+" PRId64, name_of(rules, arm, rules->cfa_register, room),
			rules->cfa.value);
	else
		printf(" exp");
	for (uint32_t i = 0; i < UNWIND_REGISTERS; i++) {
		const struct unwind_rule *rule = &rules->registers[i];
		if (rule->kind == RULE_SAME || rule->kind == RULE_UNDEFINED)
			continue;
		printf(" %s=", name_of(rules, arm, i, room));
		if (rule->kind == RULE_OFFSET)
			printf("c%+" PRId64, rule->value);
		else if (rule->kind == RULE_VALUE_OFFSET)
			printf("v%+" PRId64, rule->value);
		else if (rule->kind == RULE_REGISTER)
			printf("%s", name_of(rules, arm, (uint32_t)rule->value, room));
		else
			printf("%s", rule->kind == RULE_EXPRESSION ? "exp" : "vexp");
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct image_file file;
	struct unwind_table *table;
	struct unwind_rules rules;
	uint8_t head[20] = { 0 };
	char line[64];
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || pread(fd, head, sizeof(head), 0) != sizeof(head) ||
		image_file_from_fd(&file, fd, NULL) < 0 || unwind_table_open(&file, &table) < 0) {
		fprintf(stderr, "unwind_rows: no unwind table in %s\n", argc == 2 ? argv[1] : "?");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t address = strtoull(line, NULL, 16);
		int result = unwind_table_find(table, address, &rules);
		if (result < 0)
			printf("%016" PRIx64 " error %d\n", address, result);
		else
			print_rules(address, &rules, head[18] == 183); /* EM_AARCH64 */
	}
	unwind_table_free(table);
	close(fd);
	return 0;
}
