/* See user_events_uprobes.h. */
#include "user_events_uprobes.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACEFS "/sys/kernel/tracing"
#define PART    64u
/* id, flags, count and pid, which all tracepoints have, and the address of the uprobe, which user_events do not */
#define FIRST_OFFSET 16u

#if defined(__x86_64__)
#define EVENT_REGISTER "%%di"
#else
#define EVENT_REGISTER "%%x0"
#endif

/* In the file, as the kernel wants it: it counts here who has enabled the uprobe. */
__attribute__((section(
	".user_events_counts"))) static volatile uint16_t counts[USER_EVENTS_UPROBES_MAX] = { 0 };

typedef void fire_fn(const uint8_t *event);

/* Functions that the compiler does not take for one. */
#define FIRE(number)                                                              \
	__attribute__((noinline)) static void fire_##number(const uint8_t *event) \
	{                                                                         \
		__asm__ volatile("" : : "r"(event), "i"(number) : "memory");      \
	}
#define EIGHT(each, n) \
	each(n##0) each(n##1) each(n##2) each(n##3) each(n##4) each(n##5) each(n##6) each(n##7)
#define SIXTY_FOUR(each, n) \
	EIGHT(each, n##0)   \
	EIGHT(each, n##1)   \
	EIGHT(each, n##2)   \
	EIGHT(each, n##3) EIGHT(each, n##4) EIGHT(each, n##5) EIGHT(each, n##6) EIGHT(each, n##7)
#define ALL(each)           \
	SIXTY_FOUR(each, 1) \
	SIXTY_FOUR(each, 2) \
	SIXTY_FOUR(each, 3) SIXTY_FOUR(each, 4) SIXTY_FOUR(each, 5) SIXTY_FOUR(each, 6)
ALL(FIRE)
#define ADDRESS(number) fire_##number,
static fire_fn *const functions[USER_EVENTS_UPROBES_MAX] = { ALL(ADDRESS) };

bool user_events_uprobes_exist(void)
{
	return getenv("USER_EVENTS_UPROBES") != NULL;
}

/* ---- the place of an address in the file ---- */

struct search {
	uintptr_t address;
	const char *path;
	uint64_t offset;
};

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + part->p_vaddr;
		if (part->p_type != PT_LOAD || search->address < begin ||
			search->address >= begin + part->p_filesz)
			continue;
		search->path = info->dlpi_name;
		search->offset = search->address - begin + part->p_offset;
		return 1;
	}
	return 0;
}

static bool place_of(uintptr_t address, struct search *ret_place)
{
	*ret_place = (struct search){ .address = address };
	return dl_iterate_phdr(look, ret_place) == 1;
}

/* ---- descriptions ---- */

static unsigned type_size(const char *type, size_t len)
{
	static const struct {
		const char *name;
		unsigned size;
	} types[] = { { "u8", 1 }, { "s8", 1 }, { "char", 1 }, { "bool", 1 }, { "u16", 2 },
		{ "s16", 2 }, { "u32", 4 }, { "s32", 4 }, { "int", 4 }, { "u64", 8 },
		{ "s64", 8 } };
	const char *bracket = memchr(type, '[', len);
	size_t plain = bracket ? (size_t)(bracket - type) : len;

	if (len > 10 && strncmp(type, "__rel_loc ", 10) == 0)
		return 4;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == plain && memcmp(types[i].name, type, plain) == 0)
			return types[i].size * (bracket ? (unsigned)atoi(bracket + 1) : 1);
	return 0;
}

/* "u8 a; char[20] b; __rel_loc u8[] c": as the kernel writes it. 0, or EINVAL. */
static int put_fields(FILE *file, const char *fields)
{
	unsigned offset = FIRST_OFFSET;

	while (*fields) {
		fields += strspn(fields, " ;");
		size_t len = strcspn(fields, ";");
		size_t type = len;
		while (type > 0 && fields[type - 1] != ' ')
			type--;
		unsigned size = type > 1 ? type_size(fields, type - 1) : 0;
		const char *bracket = memchr(fields, '[', len);
		if (!size)
			return EINVAL;
		if (bracket)
			fprintf(file, "\tfield:%.*s %.*s%.*s;", (int)(bracket - fields), fields,
				(int)(len - type), fields + type,
				(int)(fields + type - 1 - bracket), bracket);
		else
			fprintf(file, "\tfield:%.*s;", (int)len, fields);
		fprintf(file, "\toffset:%u;\tsize:%u;\tsigned:%d;\n", offset, size, *fields != 'u');
		offset += size;
		fields += len;
	}
	return 0;
}

static int describe(const char *name, int id, const char *fields)
{
	char path[512], final[512];

	snprintf(path, sizeof(path), TRACEFS "/events/user_events/.%s", name);
	snprintf(final, sizeof(final), TRACEFS "/events/user_events/%s", name);
	if (mkdir(path, 0755) < 0)
		return errno;
	size_t len = strlen(path);
	snprintf(path + len, sizeof(path) - len, "/format");
	FILE *file = fopen(path, "we");
	if (!file)
		return errno;
	fprintf(file,
		"name: %s\nID: %d\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		name, id);
	int error = put_fields(file, fields);
	fprintf(file, "\nprint fmt: \"\"\n");
	if (fclose(file) != 0 && !error)
		error = errno;
	path[len] = '\0';
	if (!error && rename(path, final) < 0)
		error = errno;
	return error;
}

/* ---- the uprobe ---- */

/* The path of the tracefs that has it, and the name of its group. */
static const char *group_of(char *folder, size_t size)
{
	const char *group = getenv("USER_EVENTS_GROUP");

	snprintf(folder, size, "%s", getenv("USER_EVENTS_UPROBES"));
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	return group ? group : "user_events_stand_in";
}

static int define(int number)
{
	char folder[256], line[4096];
	struct search code, count;
	const char *group = group_of(folder, sizeof(folder));

	if (!place_of((uintptr_t)functions[number], &code) ||
		!place_of((uintptr_t)&counts[number], &count))
		return EFAULT;
	int len = snprintf(line, sizeof(line), "p:%s/u%d %s:0x%llx(0x%llx)", group, number,
		code.path, (unsigned long long)code.offset, (unsigned long long)count.offset);
	for (unsigned i = 0; i < USER_EVENTS_UPROBE_SIZE / PART; i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len,
			" d%u=+%u(" EVENT_REGISTER "):x8[%u]", i, i * PART, PART);
	int fd = open(getenv("USER_EVENTS_UPROBES"), O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return errno;
	int error = write(fd, line, (size_t)len) == len ? 0 : errno;
	close(fd);
	return error;
}

static int read_id(int number)
{
	char folder[256], path[512];
	const char *group = group_of(folder, sizeof(folder));
	int id = -1;

	snprintf(path, sizeof(path), "%s/events/%s/u%d/id", folder, group, number);
	FILE *file = fopen(path, "re");
	if (!file || fscanf(file, "%d", &id) != 1)
		id = -1;
	if (file)
		fclose(file);
	return id;
}

/* The number of a name in the list, which grows by it. The list is locked. */
static int number_of(FILE *list, const char *name, bool *ret_is_new)
{
	char line[512];
	int number = 0;

	for (rewind(list); fgets(line, sizeof(line), list); number++) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, name) == 0) {
			*ret_is_new = false;
			return number;
		}
	}
	if (number == USER_EVENTS_UPROBES_MAX)
		return -1;
	fseek(list, 0, SEEK_END);
	fprintf(list, "%s\n", name);
	fflush(list);
	*ret_is_new = true;
	return number;
}

int user_events_uprobe_make(const char *description)
{
	const char *folder = getenv("USER_EVENTS_FOLDER");
	char path[512], name[256];
	bool is_new = false;
	int error = 0;

	snprintf(path, sizeof(path), "%s/names", folder ? folder : ".");
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(description, " "), description);
	FILE *list = fopen(path, "a+e");
	if (!list)
		return -1;
	flock(fileno(list), LOCK_EX);
	int number = number_of(list, name, &is_new);
	if (number < 0)
		error = EMFILE;
	else if (is_new)
		error = define(number);
	int id = is_new && !error ? read_id(number) : 0;
	if (!error && id < 0)
		error = ENOENT;
	if (!error && is_new)
		error = describe(name, id, description + strlen(name));
	fclose(list);
	if (!error)
		return number;
	fprintf(stderr, "stand-in: no uprobe for %s: %s\n", name, strerror(error));
	errno = error;
	return -1;
}

bool user_events_uprobe_is_enabled(int number)
{
	return counts[number] != 0;
}

void user_events_uprobe_fire(int number, const uint8_t *event, size_t size)
{
	/* Not on the stack, of which a recorder copies the part near its end. */
	static __thread uint8_t kept[USER_EVENTS_UPROBE_SIZE];
	static __thread bool is_busy;
	bool was_busy = is_busy; /* a signal handler fires meanwhile */
	uint8_t *bytes = was_busy ? __builtin_alloca(sizeof(kept)) : kept;

	is_busy = true;
	memset(bytes, 0, sizeof(kept));
	memcpy(bytes, event, size < sizeof(kept) ? size : sizeof(kept));
	functions[number](bytes);
	is_busy = was_busy;
}
