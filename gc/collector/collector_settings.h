/*
 * The settings of the collector: the runtime's (DOTNET_GC..., System.GC... of runtimeconfig.json),
 * and the memory of the machine and of the control group.
 *
 *   GCHeapHardLimit, GCHeapHardLimitPercent   limit of memory for the heap's regions; in a container with a limit 75 % of that by default
 *   GCgen0size                                collect when so much was allocated; not set: half of the live bytes, at least 32 MB
 *   GCgen0MaxBudget                           maximum of that
 *   GCRegionRange                             address space for the heap; not set: 256 GB, or less if the limit of address space is lower
 *   GCTotalPhysicalMemory                     replaces the memory size of the machine
 *   GCHighMemPercent                          memory load from which on the budget is at its minimum; 90
 *   GCConserveMemory                          0 to 9: reduces the budget above its minimum by so many tenths
 *   gcServer, gcConcurrent                    read and reported; there is one heap and one collecting thread in any case
 *   SPOOR_GC_MARK_STACK                       (environment) limit for the stack of marking, in bytes, decimal: for tests
 */
#ifndef SPOOR_GC_COLLECTOR_COLLECTOR_SETTINGS_H
#define SPOOR_GC_COLLECTOR_COLLECTOR_SETTINGS_H

#include "gc/interface.h"

enum setting_key {
	SETTING_HARD_LIMIT,
	SETTING_HARD_LIMIT_PERCENT,
	SETTING_GEN0_SIZE,
	SETTING_GEN0_MAX,
	SETTING_REGION_RANGE,
	SETTING_PHYSICAL_MEMORY,
	SETTING_HIGH_PERCENT,
	SETTING_CONSERVE,
	SETTING_SERVER,
	SETTING_CONCURRENT,
	SETTINGS,
};

struct setting_name {
	const char *name;       /* GCHeapHardLimit, after DOTNET_ */
	const char *public_key; /* System.GC.HeapHardLimit, or NULL */
	bool is_bool;
};
extern const struct setting_name setting_names[SETTINGS];

struct settings {
	int64_t values[SETTINGS];  /* as set; 0: not set */
	uint64_t physical_bytes;   /* of the machine, or the container's limit */
	uint64_t hard_limit_bytes; /* 0: none */
	bool is_limit_configured;  /* by a setting, not by the container */
	uint64_t range_bytes;
	bool is_range_configured;
	uint32_t high_percent;
	size_t mark_stack_bytes; /* 0: no limit */
};

/*
 * Reads the settings from the runtime and the machine. GC_OK, or GC_E_FAIL and the reason in
 * `text`.
 */
int32_t settings_read(struct settings *s, struct gc_to_clr *ee, char *text, size_t text_size);

/* Memory in use of the machine or the container, in percent of `physical_bytes`; 0: unknown. */
uint32_t settings_memory_load(const struct settings *s);

#endif
