/*
 * The description that a .NET runtime exports of its own data structures
 * (DotNetRuntimeContractDescriptor): offsets of fields and addresses of variables, by name.
 *
 * The text is JSON, here of foreign memory: any bytes are accepted. Its numbers are found by path,
 * "types.Module.Path" or "globals.ThreadStore". A field is its offset, or a list of offset and type;
 * a global is a number, or a list whose first item is a number or the list of a slot. Slots hold the
 * addresses of variables.
 */
#ifndef SPOOR_CODE_CLR_CONTRACT_H
#define SPOOR_CODE_CLR_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strtab.h"
#include "base/vec.h"

struct clr_memory;

#define CLR_CONTRACT_SYMBOL    "DotNetRuntimeContractDescriptor"
#define CLR_CONTRACT_JSON_MAX  (1u << 20)
#define CLR_CONTRACT_SLOTS_MAX 4096u

struct clr_contract {
	struct strtab paths;
	VEC(uint64_t) numbers; /* parallel to `paths`, from index 1 on */
	uint64_t slots;        /* address of the array */
	uint32_t slot_count;
};

/* False: no descriptor of a 64-bit runtime is at this address. clr_contract_done() in any case. */
bool clr_contract_read(struct clr_contract *contract, struct clr_memory *memory, uint64_t address);

/* The JSON part. Malformed text ends it: the numbers before are kept, and false is returned. */
bool clr_contract_parse(struct clr_contract *contract, const char *json, size_t size);

bool clr_contract_number(const struct clr_contract *contract, const char *path,
	uint64_t *ret_number);

/* The address of a global variable, or what it describes (a map). */
bool clr_contract_global(const struct clr_contract *contract, struct clr_memory *memory,
	const char *name, uint64_t *ret_address);

void clr_contract_done(struct clr_contract *contract);

#endif
