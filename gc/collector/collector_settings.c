/*
 * Reads the settings. Sizes of the machine come from /proc/meminfo and from files of the control
 * group, which contain a number or "max".
 */
#include "gc/collector/collector_settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIB         ((uint64_t)1 << 30)
#define RANGE_BYTES (256 * GIB)

const struct setting_name setting_names[SETTINGS] = {
	[SETTING_HARD_LIMIT] = { "GCHeapHardLimit", "System.GC.HeapHardLimit", false },
	[SETTING_HARD_LIMIT_PERCENT] = { "GCHeapHardLimitPercent", "System.GC.HeapHardLimitPercent",
		false },
	[SETTING_GEN0_SIZE] = { "GCgen0size", "System.GC.Gen0Size", false },
	[SETTING_GEN0_MAX] = { "GCgen0MaxBudget", NULL, false },
	[SETTING_REGION_RANGE] = { "GCRegionRange", "System.GC.RegionRange", false },
	[SETTING_PHYSICAL_MEMORY] = { "GCTotalPhysicalMemory", NULL, false },
	[SETTING_HIGH_PERCENT] = { "GCHighMemPercent", "System.GC.HighMemoryPercent", false },
	[SETTING_CONSERVE] = { "GCConserveMemory", "System.GC.ConserveMemory", false },
	[SETTING_SERVER] = { "gcServer", "System.GC.Server", true },
	[SETTING_CONCURRENT] = { "gcConcurrent", "System.GC.Concurrent", true },
};

/* Reads the begin of a small file as text; false: it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t len = read(fd, text, size - 1);
	close(fd);
	if (len < 0)
		return false;
	text[len] = 0;
	return true;
}

/* "NAME:   123 kB" in bytes; 0: no such line. */
static uint64_t meminfo(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* A number in a file of a control group; 0: "max", or no such file. */
static uint64_t cgroup_number(const char *folder, const char *file)
{
	char path[600], text[64];

	if (snprintf(path, sizeof(path), "%s/%s", folder, file) >= (int)sizeof(path) ||
		!read_text(path, text, sizeof(text)))
		return 0;
	return strtoull(text, NULL, 10);
}

/*
 * The control group (version 2) of this process as a folder; false: none. The root of a namespace
 * is shown as "/".
 */
static bool cgroup_folder(char *folder, size_t size)
{
	char text[512];

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return false;
	char *at = strstr(text, "0::/");
	if (!at)
		return false;
	char *path = at + strlen("0::");
	path[strcspn(path, "\n")] = 0;
	return snprintf(folder, size, "/sys/fs/cgroup%s", path) < (int)size;
}

/* The lowest limit of the control group and of those above it; 0: none. */
static uint64_t container_limit(void)
{
	char folder[560];
	uint64_t least = 0;

	if (!cgroup_folder(folder, sizeof(folder)))
		return 0;
	for (;;) {
		uint64_t limit = cgroup_number(folder, "memory.max");
		if (limit && (!least || limit < least))
			least = limit;
		char *slash = strrchr(folder, '/');
		if (!slash || slash < folder + strlen("/sys/fs/cgroup"))
			return least;
		*slash = 0;
	}
}

static void ask(struct settings *s, struct gc_to_clr *ee)
{
	for (int key = 0; key < SETTINGS; key++) {
		const struct setting_name *n = &setting_names[key];
		bool on = false;
		int64_t value = 0;

		if (n->is_bool) {
			if (ee->table->GetBooleanConfigValue(ee, n->name, n->public_key, &on))
				value = on;
		} else if (!ee->table->GetIntConfigValue(ee, n->name, n->public_key, &value)) {
			value = 0;
		}
		s->values[key] = value;
	}
}

int32_t settings_read(struct settings *s, struct gc_to_clr *ee, char *text, size_t text_size)
{
	char info[4096];
	uint64_t machine = 0;
	const char *stack = getenv("SPOOR_GC_MARK_STACK");

	memset(s, 0, sizeof(*s));
	ask(s, ee);
	if (read_text("/proc/meminfo", info, sizeof(info)))
		machine = meminfo(info, "MemTotal:");
	if (machine == 0)
		machine = 8 * GIB; /* if the size is unknown: a guess, which only affects budgets */
	uint64_t container = container_limit();
	if (container >= machine)
		container = 0;
	s->physical_bytes = container ? container : machine;
	if (s->values[SETTING_PHYSICAL_MEMORY] > 0)
		s->physical_bytes = (uint64_t)s->values[SETTING_PHYSICAL_MEMORY];

	int64_t percent = s->values[SETTING_HARD_LIMIT_PERCENT];
	if (percent < 0 || percent > 100) {
		snprintf(text, text_size,
			"GCHeapHardLimitPercent is %lld. Set it to 1 to 100 (hexadecimal in the "
			"environment).",
			(long long)percent);
		return GC_E_FAIL;
	}
	if (s->values[SETTING_HARD_LIMIT] > 0) {
		s->hard_limit_bytes = (uint64_t)s->values[SETTING_HARD_LIMIT];
		s->is_limit_configured = true;
	} else if (percent > 0) {
		s->hard_limit_bytes = s->physical_bytes / 100 * (uint64_t)percent;
		s->is_limit_configured = true;
	} else if (container) {
		uint64_t least = (uint64_t)20 << 20;
		s->hard_limit_bytes = container / 4 * 3 > least ? container / 4 * 3 : least;
	}

	s->range_bytes = RANGE_BYTES;
	if (s->values[SETTING_REGION_RANGE] > 0) {
		s->range_bytes = (uint64_t)s->values[SETTING_REGION_RANGE];
		s->is_range_configured = true;
	} else if (s->hard_limit_bytes) {
		/* Twice the limit, because huge objects need consecutive regions. */
		s->range_bytes = 2 * s->hard_limit_bytes + (GIB >> 1);
	}
	s->high_percent =
		s->values[SETTING_HIGH_PERCENT] > 0 && s->values[SETTING_HIGH_PERCENT] < 100
			? (uint32_t)s->values[SETTING_HIGH_PERCENT]
			: 90;
	if (stack)
		s->mark_stack_bytes = strtoul(stack, NULL, 10);
	return GC_OK;
}

uint32_t settings_memory_load(const struct settings *s)
{
	char info[4096], folder[560];
	uint64_t used = 0;

	if (read_text("/proc/meminfo", info, sizeof(info))) {
		uint64_t total = meminfo(info, "MemTotal:"),
			 available = meminfo(info, "MemAvailable:");

		if (total > available && available)
			used = total - available;
		/*
		 * In a container with less memory than the machine, the container's usage is
		 * relevant.
		 */
		if (s->physical_bytes < total && cgroup_folder(folder, sizeof(folder))) {
			uint64_t current = cgroup_number(folder, "memory.current");
			if (current)
				used = current;
		}
	}
	uint64_t percent = used * 100 / s->physical_bytes;
	return percent > 100 ? 100 : (uint32_t)percent;
}
