/* See names.h. */
#include "session/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/text.h"
#include "image/elf.h"
#include "machine/box.h"
#include "machine/kernel_symbol.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "model/arch.h"
#include "model/clr.h"
#include "model/spoor_payload.h"
#include "model/trace.h"
#include "symbol/demangle.h"
#include "symbol/jitdump.h"
#include "symbol/kallsyms.h"
#include "symbol/perf_map.h"
#include "symbol/r2r.h"
#include "symbol/symbol_file.h"

#define MAPPED_SIZE_MAX    (UINT64_C(4) << 30)
#define MAP_FILE_SIZE_MAX  (64u << 20)
#define IMAGE_BYTES_MAX    (20u << 20)    /* symbol tables kept; beyond it the least recently used go */
#define STUB_AROUND_BYTES  0x60u          /* read before an address in JIT memory, and as much behind it */
#define STUB_SETTLE_NS     UINT64_C(750000000) /* by then a method would have told of itself */
#define KALLSYMS_CACHE     "kallsyms"
#define VDSO_PATH          "[vdso]"
#define VDSO_BYTES         8192u /* two pages: what every kernel maps at least */

/* struct names_hit_entry.state: below HIT_WAITING a cause. */
enum hit_state { HIT_WAITING = UNNAMED_CAUSE_COUNT, HIT_NAMED };

int names_init(struct names *names, const struct names_options *options)
{
	*names = (struct names){ .options = *options, .next_id = 1, .kernel_error = 1 };
	if (!vec_push(&names->hits) || !vec_push(&names->pairs) || !vec_push(&names->images))
		return -ENOMEM;
	return 0;
}

struct names_process *names_process(struct names *names, uint32_t process)
{
	while (names->processes.count <= process)
		if (!vec_push(&names->processes))
			return NULL;
	return &names->processes.items[process];
}

static const char *text_at(const struct names *names, uint32_t index)
{
	return strtab_get(&names->options.trace->strings, index);
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t len = strlen(text);
	size_t suffix_len = strlen(suffix);

	return len >= suffix_len && strcmp(text + len - suffix_len, suffix) == 0;
}

/* Memory without a file behind it, where compilers put their code. */
static bool is_jit_memory(const char *path)
{
	return !*path || starts_with(path, "/memfd:") || starts_with(path, "//anon") ||
		starts_with(path, "[anon") || strcmp(path, "[heap]") == 0 || starts_with(path, "/dev/zero");
}

static bool is_managed_image(const char *path)
{
	return ends_with(path, ".dll") || ends_with(path, ".exe");
}

static uint32_t hex_text(struct names *names, const uint8_t *bytes, size_t size)
{
	char text[2 * ELF_BUILD_ID_MAX];
	size_t len = text_put_hex(text, bytes, size < ELF_BUILD_ID_MAX ? size : ELF_BUILD_ID_MAX);

	return strtab_add(&names->options.trace->strings, text, len);
}

/* ---- what goes into the file ---- */

static int emit(struct names *names, enum known_event known, uint32_t process)
{
	if (names->payload.failed)
		return -ENOMEM;
	return names->options.emit(names->options.context, known, process, &names->payload);
}

static struct names_image *image_of(struct names *names, const struct mapping *mapping);

/* The mapping, and before it what identifies its image, at its first hit. */
static int write_mapping(struct names *names, uint32_t index)
{
	struct trace *trace = names->options.trace;
	struct mapping *mapping = &trace->mappings.items[index];
	const char *path = text_at(names, mapping->path);
	struct names_process *process = names_process(names, mapping->process);
	uint64_t metadata_id = 0;

	if (mapping->id)
		return 0;
	if (!is_jit_memory(path) && *path == '/') {
		const struct names_image *image = names->options.mappings_only ? NULL : image_of(names, mapping);
		const struct elf *elf = image && image->file ? symbol_file_elf(image->file) : NULL;
		if (elf && elf->build_id_len)
			mapping->build_id = hex_text(names, elf->build_id, elf->build_id_len);
		if (mapping->build_id) {
			bytes_reset(&names->text);
			payload_elf_metadata(&names->text, text_at(names, mapping->build_id),
				elf ? elf->debug_link : NULL, elf ? elf->text_vaddr : 0, elf ? elf->text_offset : 0);
			metadata_id = names->next_id++;
			bytes_reset(&names->payload);
			payload_mapping_metadata(&names->payload,
				&(struct payload_mapping_metadata){ .id = metadata_id,
					.symbols = bytes_z(&names->text) });
			int result = emit(names, SYSTEM_MAPPING_METADATA, mapping->process);
			if (result < 0)
				return result;
		}
	}
	/* Viewers know a runtime's code heap by this name only; without W^X it is anonymous. */
	if (process && process->managed != MANAGED_NONE && starts_with(path, "//anon"))
		path = "/memfd:doublemapper";
	mapping->id = names->next_id++;
	bytes_reset(&names->payload);
	payload_mapping(&names->payload,
		&(struct payload_mapping){ .id = mapping->id,
			.begin = mapping->begin,
			.end = mapping->end,
			.file_offset = mapping->file_offset,
			.path = path,
			.metadata_id = metadata_id });
	return emit(names, SYSTEM_PROCESS_MAPPING, mapping->process);
}

static bool first_time(struct names *names, uint64_t mapping_id, uint64_t begin)
{
	uint64_t key = hash_u64(mapping_id) ^ begin;

	if (map_get(&names->symbol_index, key))
		return false;
	return map_add(&names->symbol_index, key, 1);
}

static int write_symbol(struct names *names, uint32_t process, uint64_t mapping_id, uint64_t begin,
	uint64_t end, const char *name, size_t name_len)
{
	if (!first_time(names, mapping_id, begin))
		return 0;
	bytes_reset(&names->payload);
	payload_symbol(&names->payload,
		&(struct payload_symbol){ .id = names->next_id++,
			.mapping_id = mapping_id,
			.begin = begin,
			.end = end,
			.name = name,
			.name_len = name_len });
	return emit(names, SYSTEM_PROCESS_SYMBOL, process);
}

/* A managed body: its name as a symbol, and what a symbol cannot say (kind, tier, lifetime). */
static int write_code(struct names *names, const struct names_hit_entry *hit, struct code *code)
{
	struct trace *trace = names->options.trace;
	const struct mapping *mapping = &trace->mappings.items[hit->mapping];
	const char *path = text_at(names, mapping->path);
	bool in_image = !is_jit_memory(path);
	struct names_process *process = names_process(names, hit->process);
	size_t module_len = 0;
	cleanup(freep) char *module = NULL;
	int result = write_mapping(names, hit->mapping);

	if (result < 0 || code->written)
		return result;
	mapping = &trace->mappings.items[hit->mapping];
	bytes_reset(&names->text);
	/* What perf maps tell of other runtimes is a whole name, with no type and no assembly to it. */
	if (!*code->name_space && (code->kind == CODE_UNKNOWN || code->kind == CODE_STUB))
		bytes_text(&names->text, code->name);
	else
		codemap_symbol_text(&process->codemap, code, in_image, &names->text);
	code->reused = !first_time(names, mapping->id, code->begin);
	if (!code->reused) {
		bytes_reset(&names->payload);
		payload_symbol(&names->payload,
			&(struct payload_symbol){ .id = names->next_id++,
				.mapping_id = mapping->id,
				.begin = code->begin,
				.end = code->end,
				.name = bytes_z(&names->text),
				.name_len = names->text.len });
		result = emit(names, SYSTEM_PROCESS_SYMBOL, hit->process);
		if (result < 0)
			return result;
	}
	/* An image's name is its module; a single-file program's image holds many. */
	if (in_image && !is_managed_image(path)) {
		const char *assembly = codemap_assembly(&process->codemap, code->module_id, &module_len);
		module = malloc(module_len + 5);
		if (module)
			(void)snprintf(module, module_len + 5, "%.*s.dll", (int)module_len, assembly); /* fits */
	}
	code->written = true;
	bytes_reset(&names->payload);
	payload_code_added(&names->payload,
		&(struct payload_code){ .begin = code->begin,
			.end = code->end,
			.name = code->reused ? bytes_z(&names->text) : "",
			.module = module ? module : "",
			.kind = code->kind,
			.tier = code->tier,
			.method_id = code->method_id,
			.mapping_id = mapping->id });
	return emit(names, SPOOR_CODE_ADDED, hit->process);
}

/* ---- the kernel ---- */

static int load_kernel_cache(struct names *names)
{
	cleanup(closep) int folder = -1;
	struct diag quiet = { 0 };
	struct stat status;

	if (box_open_cache(names->options.box, &folder, &quiet) < 0)
		return -ENOENT;
	cleanup(closep) int fd = openat(folder, KALLSYMS_CACHE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size <= 0 || status.st_size > KALLSYMS_TEXT_MAX)
		return -EBADMSG;
	/* Our own file in our own folder, only ever replaced whole: it does not shrink under us. */
	void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (data == MAP_FAILED)
		return -errno;
	names->kernel_data = data;
	names->kernel_data_size = (size_t)status.st_size;
	return kallsyms_load(data, names->kernel_data_size, &names->kernel);
}

/* For the next recording of this boot. Failing costs that one 40 ms. */
static void save_kernel_cache(const struct names *names)
{
	cleanup(closep) int folder = -1;
	cleanup(bytes_done) struct bytes image = { 0 };
	struct diag quiet = { 0 };
	char name[64];

	kallsyms_save(names->kernel, &image);
	if (image.failed || box_open_cache(names->options.box, &folder, &quiet) < 0)
		return;
	(void)snprintf(name, sizeof(name), KALLSYMS_CACHE ".%d", (int)getpid()); /* fits */
	cleanup(closep) int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return;
	ssize_t written = write(fd, image.data, image.len);

	if (written != (ssize_t)image.len || renameat(folder, name, folder, KALLSYMS_CACHE) < 0)
		(void)unlinkat(folder, name, 0); /* what is left is a name in a cache */
}

static void load_kernel(struct names *names)
{
	struct diag quiet = { 0 };
	struct input in;

	names->kernel_error = kernel_symbols_open(&names->kernel_asked);
	if (names->kernel_error == 0)
		return;
	names->kernel_error = load_kernel_cache(names);
	if (names->kernel_error == 0)
		return;
	names->kernel_error = input_open(&in, "/proc/kallsyms", &quiet);
	if (names->kernel_error < 0)
		return;
	names->kernel_error = kallsyms_read(&in, &names->kernel, &quiet);
	input_close(&in);
	if (names->kernel_error == 0)
		save_kernel_cache(names);
}

void names_open_kernel(struct names *names)
{
	struct kernel_symbol symbol;

	if (names->kernel_error == 1)
		load_kernel(names);
	if (!names->kernel_asked)
		return;
	uint64_t before = rights_pause(RIGHT_BPF | RIGHT_SYS_ADMIN);
	names->kernel_needs_right = kernel_symbols_find(names->kernel_asked, arch_here()->kernel_begin, &symbol) == -EPERM;
	rights_restore(before);
}

/* The kernel's mapping: one id for all processes that have kernel frames, told to each. */
static int map_kernel(struct names *names, uint32_t process)
{
	struct names_process *own = names_process(names, process);

	if (!own || own->kernel_mapped)
		return own ? 0 : -ENOMEM;
	own->kernel_mapped = true;
	if (!names->kernel_mapping_id)
		names->kernel_mapping_id = names->next_id++;
	bytes_reset(&names->payload);
	payload_mapping(&names->payload,
		&(struct payload_mapping){ .id = names->kernel_mapping_id,
			.begin = arch_here()->kernel_begin,
			.end = UINT64_MAX,
			.path = "vmlinux" });
	return emit(names, SYSTEM_PROCESS_MAPPING, process);
}

static bool find_kernel_symbol(const struct names *names, uint64_t address, struct kernel_symbol *ret_symbol)
{
	struct kallsyms_hit hit;

	if (names->kernel_asked)
		return kernel_symbols_find(names->kernel_asked, address, ret_symbol) == 1;
	if (!kallsyms_find(names->kernel, address, &hit))
		return false;
	*ret_symbol = (struct kernel_symbol){ .begin = hit.begin, .end = hit.end, .name = hit.name, .module = hit.module };
	return true;
}

static uint8_t answer_kernel(struct names *names, const struct names_hit_entry *hit)
{
	struct kernel_symbol symbol;

	if (names->kernel_error == 1)
		load_kernel(names);
	if (names->kernel_error < 0)
		return UNNAMED_KERNEL_HIDDEN;
	if (!find_kernel_symbol(names, hit->address, &symbol))
		return UNNAMED_NO_SYMBOLS;
	bytes_reset(&names->text);
	bytes_text(&names->text, symbol.name);
	if (*symbol.module)
		bytes_printf(&names->text, " [%s]", symbol.module);
	if (write_symbol(names, 0, names->kernel_mapping_id, symbol.begin, symbol.end,
		    bytes_z(&names->text), names->text.len) < 0)
		return UNNAMED_NO_MEMORY;
	return HIT_NAMED;
}

/* ---- images ---- */

/*
 * Who shares tables. A build id is the target's own claim, and a forged one must not name the code of others; so files are taken to be the same for
 * processes of one user in one mount namespace, who could change each other's anyway. 0: not to be known, as for a process that has ended;
 * its files are looked for at their path on this machine, and that is what it shares.
 */
static uint64_t sharing_of(struct names *names, uint32_t index)
{
	const struct process *process = &names->options.trace->processes.items[index];
	struct names_process *own = names_process(names, index);

	if (!own || process->ended)
		return 0;
	if (!own->sharing_asked) {
		uint64_t space = target_mount_namespace(process->pid);
		own->sharing_asked = true;
		own->sharing = space ? hash_u64(space) ^ hash_u64(process->uid + UINT64_C(1)) : 0;
	}
	return own->sharing;
}

static uint64_t image_key(struct names *names, const struct mapping *mapping)
{
	const char *build_id = text_at(names, mapping->build_id);
	const char *path = text_at(names, mapping->path);
	uint64_t of_path = hash_bytes(path, strlen(path));

	if (strcmp(path, VDSO_PATH) == 0)
		return of_path;
	uint64_t whose = sharing_of(names, mapping->process);

	if (!whose)
		whose = of_path;
	if (*build_id)
		return hash_bytes(build_id, strlen(build_id)) ^ whose;
	if (mapping->inode)
		return hash_u64(mapping->inode) ^ hash_u64(mapping->device + 1) ^ whose;
	return of_path ^ hash_u64(mapping->process + 1);
}

/* How the tables of one image find their debug file: in the root of a process that maps it, then in ours. */
struct image_search {
	struct symbol_search search;
	struct symbol_root root;
	struct names *names;
	uint32_t pid;
};

/* Said once: without the call nothing that a target names is opened. */
static int take_note(struct names *names, int result)
{
	if (result == -ENOSYS)
		names->files_skipped = true;
	return result;
}

static int open_here(struct names *names, const char *path, int *ret_fd)
{
	struct target_root root = { .fd = -1 };
	struct diag quiet = { 0 };
	uint64_t size;

	if (target_root_open_here(&root, &quiet) < 0)
		return quiet.error;
	int result = target_root_open_file(&root, path, MAPPED_SIZE_MAX, ret_fd, &size, &quiet);
	target_root_close(&root);
	return take_note(names, result);
}

static int open_there(struct names *names, uint32_t pid, const char *path, int *ret_fd)
{
	struct target_root root = { .fd = -1 };
	struct diag quiet = { 0 };
	uint64_t size;

	if (target_root_open(&root, pid, &quiet) < 0)
		return quiet.error;
	int result = target_root_open_file(&root, path, MAPPED_SIZE_MAX, ret_fd, &size, &quiet);
	target_root_close(&root);
	return take_note(names, result);
}

/* In a folder that the user named, with the user's rights. Links there are the user's affair; the name may be the target's. */
static int open_for_user(void *context, const char *path)
{
	uint64_t before = rights_lower();
	cleanup(closep) int place = open(path, O_PATH | O_CLOEXEC);
	struct stat status;
	char again[40];
	int result = -EINVAL;

	(void)context;
	if (place < 0) {
		result = -errno;
	} else if (fstat(place, &status) == 0 && S_ISREG(status.st_mode)) {
		(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", place); /* fits */
		result = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		result = result < 0 ? -errno : result;
	}
	rights_restore(before);
	return result;
}

static int open_for_symbols(void *context, const char *path)
{
	const struct image_search *search = context;
	int fd = -1;
	int result = open_there(search->names, search->pid, path, &fd);

	if (result < 0)
		result = open_here(search->names, path, &fd);
	return result < 0 ? result : fd;
}

/* Is this file the one that was mapped? Where the kernel told a build id instead, is_same_image() compares that. */
static bool is_same_file(const struct mapping *mapping, int fd)
{
	struct stat status;

	if (!mapping->inode)
		return true;
	return fstat(fd, &status) == 0 && status.st_ino == mapping->inode;
}

static bool is_same_image(struct names *names, const struct mapping *mapping, const struct elf *elf)
{
	const char *expected = text_at(names, mapping->build_id);
	char text[2 * ELF_BUILD_ID_MAX + 1];

	if (!*expected || !elf->build_id_len)
		return true;
	elf_build_id_text(elf, text);
	return strcmp(text, expected) == 0;
}

/* Where a mapped file is looked for, in this order. */
enum file_place { FILE_IN_TARGET, FILE_BEHIND_MAPPING, FILE_HERE, FILE_PLACE_COUNT };

/* Ended, perhaps before we have heard of it, and a process that is not ours to look into have none. */
static bool has_root(uint32_t pid)
{
	struct target_root root = { .fd = -1 };
	struct diag quiet = { 0 };
	bool has = target_root_open(&root, pid, &quiet) == 0;

	target_root_close(&root);
	return has;
}

static int open_mapped_file(struct names *names, const struct mapping *mapping, enum file_place place)
{
	const struct process *process = &names->options.trace->processes.items[mapping->process];
	const char *path = text_at(names, mapping->path);
	struct diag quiet = { 0 };
	uint64_t size;
	int fd = -1;
	int result = -ENOENT;

	switch (place) {
	case FILE_IN_TARGET:
		if (!process->ended)
			result = open_there(names, process->pid, path, &fd);
		break;
	case FILE_BEHIND_MAPPING:
		if (!process->ended)
			result = target_map_file_open(process->pid, mapping->begin, mapping->end, MAPPED_SIZE_MAX, &fd, &size,
				&quiet);
		break;
	case FILE_HERE:
		if (process->ended || !has_root(process->pid))
			result = open_here(names, path, &fd);
		break;
	default:
		break;
	}
	if (result < 0)
		return result;
	/* What stands behind the mapping is what was mapped. */
	if (place == FILE_BEHIND_MAPPING || is_same_file(mapping, fd))
		return fd;
	closep(&fd);
	return -ENOENT;
}

static void drop_tables(struct names_image *image)
{
	symbol_file_close(image->file);
	image->file = NULL;
	free(image->search);
	image->search = NULL;
	r2r_close(image->r2r);
	image->r2r = NULL;
}

/* Symbol tables are a cache: the least recently used go when they are too many. */
static void bound_images(struct names *names)
{
	for (;;) {
		uint64_t total = 0;
		struct names_image *oldest = NULL;
		for (uint32_t i = 1; i < names->images.count; i++) {
			struct names_image *image = &names->images.items[i];
			if (!image->file && !image->r2r)
				continue;
			total += image->file ? symbol_file_size_bytes(image->file) : 0;
			total += image->r2r ? r2r_size_bytes(image->r2r) : 0;
			if (image->tick != names->image_tick && (!oldest || image->tick < oldest->tick))
				oldest = image;
		}
		if (total <= IMAGE_BYTES_MAX || !oldest)
			return;
		drop_tables(oldest);
		oldest->tried = oldest->r2r_tried = false;
	}
}

static void open_image(struct names *names, struct names_image *image, const struct mapping *mapping)
{
	const struct process *process = &names->options.trace->processes.items[mapping->process];
	struct image_search *search = calloc(1, sizeof(*search));
	struct diag quiet = { 0 };

	image->tried = true;
	if (!search)
		return;
	search->names = names;
	search->pid = process->pid;
	search->root = (struct symbol_root){ .open_file = open_for_symbols, .context = search };
	search->search = (struct symbol_search){ .roots = &search->root, .root_count = 1 };
	search->search.dirs = names->options.symbol_paths;
	search->search.dir_root = (struct symbol_root){ .open_file = open_for_user };
	while (search->search.dirs && search->search.dirs[search->search.dir_count])
		search->search.dir_count++;
	for (int place = 0; place < FILE_PLACE_COUNT && !image->file; place++) {
		int fd = open_mapped_file(names, mapping, (enum file_place)place);
		if (fd < 0 || symbol_file_open(fd, text_at(names, mapping->path), &search->search, &image->file, &quiet) < 0)
			continue; /* none: offsets are shown */
		/* Another file stands at that path since. */
		if (!is_same_image(names, mapping, symbol_file_elf(image->file))) {
			symbol_file_close(image->file);
			image->file = NULL;
		}
	}
	image->search = search;
	bound_images(names);
}

static struct names_image *image_entry(struct names *names, const struct mapping *mapping)
{
	uint64_t key = image_key(names, mapping);
	uint32_t index = map_get(&names->image_index, key);

	if (!index) {
		if (!vec_push(&names->images))
			return NULL;
		index = names->images.count - 1;
		if (!map_add(&names->image_index, key, index))
			return NULL;
	}
	names->images.items[index].tick = ++names->image_tick;
	return &names->images.items[index];
}

static struct names_image *image_of(struct names *names, const struct mapping *mapping)
{
	struct names_image *image = image_entry(names, mapping);

	if (image && !image->tried)
		open_image(names, image, mapping);
	return image;
}

static void open_r2r(struct names *names, struct names_image *image, const struct mapping *mapping)
{
	struct diag quiet = { 0 };

	image->r2r_tried = true;
	for (int place = 0; place < FILE_PLACE_COUNT && !image->r2r; place++) {
		int fd = open_mapped_file(names, mapping, (enum file_place)place);
		if (fd >= 0)
			(void)r2r_open(fd, &image->r2r, &quiet); /* none: offsets are shown */
	}
	bound_images(names);
}

/* An ELF symbol, readable, with the addresses it has in this mapping; `offset_of_mapping` is the file offset of its begin. */
static uint8_t write_native(struct names *names, const struct names_hit_entry *hit,
	const struct symbol_hit *symbol, uint64_t symbol_offset, uint64_t offset_of_mapping)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	uint64_t begin = mapping->begin;
	uint64_t size = symbol->end_vaddr - symbol->begin_vaddr;
	uint64_t end = mapping->begin + (symbol_offset + size - offset_of_mapping);

	if (symbol_offset > offset_of_mapping)
		begin += symbol_offset - offset_of_mapping;
	bytes_reset(&names->text);
	if (!demangle(symbol->name, symbol->name_len, &names->text))
		bytes_add(&names->text, symbol->name, symbol->name_len);
	if (end > mapping->end)
		end = mapping->end;
	if (write_symbol(names, hit->process, mapping->id, begin, end, bytes_z(&names->text), names->text.len) < 0)
		return UNNAMED_NO_MEMORY;
	return HIT_NAMED;
}

/* The vdso is the same in all processes of a kind: ours is read. */
static void open_vdso(struct names_image *image)
{
	const uint8_t *vdso = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct diag quiet = { 0 };

	image->tried = true;
	if (vdso)
		(void)symbol_file_open_memory(vdso, VDSO_BYTES, &image->file, &quiet); /* none: offsets are shown */
}

static uint8_t answer_vdso(struct names *names, const struct names_hit_entry *hit)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	struct names_image *image = image_entry(names, mapping);
	struct symbol_hit symbol;

	if (!image)
		return UNNAMED_NO_MEMORY;
	if (!image->tried)
		open_vdso(image);
	if (!image->file)
		return UNNAMED_NO_IMAGE;
	if (!symbol_file_find_vaddr(image->file, hit->address - mapping->begin, &symbol))
		return UNNAMED_NO_SYMBOLS;
	return write_native(names, hit, &symbol, symbol.begin_vaddr, 0);
}

static uint8_t answer_image(struct names *names, const struct names_hit_entry *hit)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	const struct names_image *image = image_of(names, mapping);
	struct symbol_hit symbol;

	if (!image)
		return UNNAMED_NO_MEMORY;
	if (!image->file)
		return UNNAMED_NO_IMAGE;
	if (!symbol_file_find_offset(image->file, hit->address - mapping->begin + mapping->file_offset, &symbol))
		return UNNAMED_NO_SYMBOLS;
	return write_native(names, hit, &symbol, symbol.begin_offset, mapping->file_offset);
}

/* A precompiled image of a process that cannot be asked: its own tables. */
static uint8_t answer_r2r(struct names *names, const struct names_hit_entry *hit)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	struct names_image *image = image_entry(names, mapping);
	struct r2r_hit method;

	if (!image)
		return UNNAMED_NO_MEMORY;
	if (!image->r2r_tried)
		open_r2r(names, image, mapping);
	if (!image->r2r)
		return UNNAMED_NO_IMAGE;
	if (!r2r_find_offset(image->r2r, hit->address - mapping->begin + mapping->file_offset, &method))
		return UNNAMED_NO_SYMBOLS;
	uint64_t begin = mapping->begin;
	uint64_t end = begin + (method.begin_offset + (method.end_rva - method.begin_rva) - mapping->file_offset);

	if (method.begin_offset > mapping->file_offset)
		begin += method.begin_offset - mapping->file_offset;
	if (end > mapping->end)
		end = mapping->end;
	if (write_symbol(names, hit->process, mapping->id, begin, end, method.name, method.name_len) < 0)
		return UNNAMED_NO_MEMORY;
	return HIT_NAMED;
}

/* ---- managed code ---- */

/* What other runtimes (and .NET, told so by its environment) leave behind for perf. */
static void read_map_files(struct names *names, uint32_t index)
{
	struct names_process *own = names_process(names, index);
	const struct process *process = &names->options.trace->processes.items[index];
	struct target_root root = { .fd = -1 };
	struct diag quiet = { 0 };
	char path[64];
	uint64_t size;
	int fd;

	own->fallback_tried = true;
	if (process->ended || target_root_open(&root, process->pid, &quiet) < 0)
		return;
	uint32_t inner_pid = process->inner_pid ? process->inner_pid : process->pid;

	for (size_t i = 0; i < 2; i++) {
		struct input in;
		quiet = (struct diag){ 0 };
		(void)snprintf(path, sizeof(path), i == 0 ? "/tmp/perf-%u.map" : "/tmp/jit-%u.dump", inner_pid); /* fits */
		if (take_note(names, target_root_open_word(&root, path, MAP_FILE_SIZE_MAX, &fd, &size, &quiet)) < 0)
			continue;
		if (input_from_fd(&in, fd, path) < 0)
			continue;
		if (i == 0)
			(void)perf_map_read(&in, &own->codemap, &quiet); /* what came before a fault counts */
		else
			(void)jitdump_read(&in, &own->codemap, NULL, &quiet); /* as above */
		input_close(&in);
	}
	target_root_close(&root);
}

/* The bytes around an address in JIT memory, while the process is there to be read. */
static void look_for_stub(struct names *names, struct names_hit_entry *hit)
{
	const struct process *process = &names->options.trace->processes.items[hit->process];
	uint8_t code[2 * STUB_AROUND_BYTES];
	size_t at;
	int fd;

	hit->stub_tried = 1;
	if (process->ended || target_memory_open(process->pid, &fd) < 0)
		return;
	uint64_t begin = hit->address - STUB_AROUND_BYTES;
	ssize_t got = target_memory_read(fd, begin, code, sizeof(code));

	if (got <= (ssize_t)STUB_AROUND_BYTES) { /* the page before may not be there */
		begin = hit->address & ~UINT64_C(0xfff);
		got = target_memory_read(fd, begin, code, sizeof(code));
	}
	closep(&fd);
	if (got <= 0 || hit->address - begin >= (uint64_t)got)
		return;
	hit->stub_tried = 2; /* read */
	hit->stub = arch_find_stub(arch_here(), code, (size_t)got, (size_t)(hit->address - begin), &at);
	if (hit->stub)
		hit->stub_offset = (uint8_t)(hit->address - begin - at);
}

static int write_stub(struct names *names, const struct names_hit_entry *hit)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	uint64_t begin = hit->address - (hit->stub ? hit->stub_offset : 0u);
	uint64_t end = hit->stub ? begin + hit->stub->size_bytes : begin + 1;

	if (end <= hit->address)
		end = hit->address + 1;
	if (end > mapping->end)
		end = mapping->end;
	bytes_reset(&names->text);
	bytes_printf(&names->text, "(%s)", hit->stub ? hit->stub->kind : "JIT stub");
	int result = write_symbol(names, hit->process, mapping->id, begin, end, bytes_z(&names->text),
		names->text.len);

	if (result < 0)
		return result;
	bytes_reset(&names->payload);
	payload_code_added(&names->payload,
		&(struct payload_code){ .begin = begin,
			.end = end,
			.name = "",
			.module = "",
			.kind = CODE_STUB,
			.mapping_id = mapping->id });
	return emit(names, SPOOR_CODE_ADDED, hit->process);
}

static uint8_t answer_jit(struct names *names, struct names_hit_entry *hit, uint64_t now_ns, bool last)
{
	struct names_process *own = names_process(names, hit->process);

	if (own->managed == MANAGED_NONE || own->managed == MANAGED_REFUSED) {
		if (!own->fallback_tried) {
			read_map_files(names, hit->process);
			struct code *code = codemap_find(&own->codemap, hit->address, hit->time_ns);
			if (code)
				return write_code(names, hit, code) < 0 ? UNNAMED_NO_MEMORY : HIT_NAMED;
		}
		if (own->managed == MANAGED_NONE)
			return UNNAMED_NO_SYMBOLS;
	}
	if (!hit->stub_tried)
		look_for_stub(names, hit);
	bool settled = own->managed == MANAGED_KNOWN && now_ns > hit->time_ns + STUB_SETTLE_NS;

	if (own->managed == MANAGED_ASKING && !last)
		return HIT_WAITING;
	if (hit->stub && (settled || last || own->managed == MANAGED_REFUSED))
		return write_stub(names, hit) < 0 ? UNNAMED_NO_MEMORY : HIT_NAMED;
	if (!last)
		return own->managed == MANAGED_REFUSED ? UNNAMED_NOT_ASKED : HIT_WAITING;
	if (own->managed != MANAGED_KNOWN)
		return UNNAMED_NOT_ASKED;
	/* All methods are known and none owns it: what the runtime made itself. Without the right to read it that is all there is to say. */
	if (hit->stub_tried == 1)
		(void)write_stub(names, hit); /* counted as unnamed all the same */
	return names->full ? UNNAMED_NO_MEMORY : UNNAMED_NO_METHOD; /* at the cap methods are taken no more */
}

/* One hit: named, not to be named (and why), or still waited for. */
static uint8_t answer(struct names *names, struct names_hit_entry *hit, uint64_t now_ns, bool last)
{
	struct trace *trace = names->options.trace;

	if (!hit->process)
		return names->options.mappings_only ? (uint8_t)UNNAMED_NO_SYMBOLS : answer_kernel(names, hit);
	struct names_process *own = names_process(names, hit->process);

	if (!own)
		return UNNAMED_NO_MEMORY;
	if (!hit->mapping)
		hit->mapping = trace_find_mapping(trace, hit->process, hit->address);
	if (!hit->mapping)
		return last ? UNNAMED_NO_MAPPING : HIT_WAITING;
	if (write_mapping(names, hit->mapping) < 0)
		return UNNAMED_NO_MEMORY;
	if (names->options.mappings_only)
		return UNNAMED_NO_SYMBOLS;
	const char *path = text_at(names, trace->mappings.items[hit->mapping].path);

	if (own->codemap.codes.count) {
		struct code *code = codemap_find(&own->codemap, hit->address, hit->time_ns);
		if (code)
			return write_code(names, hit, code) < 0 ? UNNAMED_NO_MEMORY : HIT_NAMED;
	}
	if (is_jit_memory(path))
		return answer_jit(names, hit, now_ns, last);
	if (strcmp(path, VDSO_PATH) == 0)
		return answer_vdso(names, hit);
	if (is_managed_image(path)) {
		if (!last && (own->managed == MANAGED_ASKING || own->managed == MANAGED_KNOWN))
			return HIT_WAITING;
		uint8_t state = answer_r2r(names, hit);
		return state == HIT_NAMED || own->managed == MANAGED_REFUSED ? state : UNNAMED_NO_METHOD;
	}
	if (*path != '/')
		return UNNAMED_NO_SYMBOLS;
	/* A single-file program's own image holds ReadyToRun code that only the runtime can name. */
	if (own->managed == MANAGED_ASKING && !last &&
		trace->mappings.items[hit->mapping].path == trace->processes.items[hit->process].executable)
		return HIT_WAITING;
	return answer_image(names, hit);
}

/* ---- hits ---- */

/* The standing hit; when there is none and `gone` will do, one whose code has ended. */
static uint32_t find_hit(const struct names *names, uint32_t process, uint64_t address, bool gone)
{
	uint64_t key = hash_u64(address) ^ process;
	uint32_t second = 0;

	for (struct map_walk w = map_find(&names->hit_index, key); w.value; map_next(&w)) {
		const struct names_hit_entry *hit = &names->hits.items[w.value];
		if (hit->address != address || hit->process != process)
			continue;
		if (!hit->gone)
			return w.value;
		second = w.value;
	}
	return gone ? second : 0;
}

static int add_hit(struct names *names, uint32_t process, uint32_t mapping, uint64_t address,
	uint64_t time_ns)
{
	if (names->full)
		return 0;
	struct names_hit_entry *hit = vec_push(&names->hits);

	if (!hit)
		return -ENOMEM;
	hit->address = address;
	hit->time_ns = time_ns;
	hit->process = process;
	hit->mapping = mapping;
	hit->state = HIT_WAITING;
	uint32_t index = names->hits.count - 1;

	if (!map_add(&names->hit_index, hash_u64(address) ^ process, index) ||
		!vec_add(&names->waiting, index))
		return -ENOMEM;
	return 0;
}

/* Frames at the root that this stack shares with the one before, which were looked at then: most of them, usually. */
static uint32_t common_root(const struct names *names, uint32_t process, const uint64_t *frames,
	uint32_t count)
{
	uint32_t most = count < names->previous.count ? count : names->previous.count;
	uint32_t same = 0;

	if (names->previous_process != process)
		return 0;
	while (same < most &&
		frames[count - 1 - same] == names->previous.items[names->previous.count - 1 - same])
		same++;
	return same;
}

/* Looks at each frame of a stack that is new to the process. *ret_sound: how many of them are code. */
static int hit_frames(struct names *names, uint32_t process, const uint64_t *frames, uint32_t count,
	uint64_t time_ns, uint32_t *ret_sound)
{
	struct trace *trace = names->options.trace;
	uint64_t kernel_begin = arch_here()->kernel_begin;
	bool mapped = trace->processes.items[process].mappings.count != 0 && !names->full;
	uint32_t fresh = count - common_root(names, process, frames, count);

	*ret_sound = count;
	for (uint32_t i = 0; i < fresh; i++) {
		bool kernel = frames[i] >= kernel_begin;
		uint32_t owner = kernel ? 0 : process;
		uint32_t mapping = 0;
		int result = kernel ? map_kernel(names, process) : 0;
		if (result < 0)
			return result;
		if (find_hit(names, owner, frames[i], false))
			continue;
		if (!kernel)
			mapping = trace_find_mapping(trace, process, frames[i]);
		if (!kernel && !mapping && mapped && i) {
			*ret_sound = i;
			return 0;
		}
		result = add_hit(names, owner, mapping, frames[i], time_ns);
		if (result < 0)
			return result;
	}
	vec_reset(&names->previous);
	names->previous_process = 0;
	if (vec_reserve(&names->previous, count)) {
		memcpy(names->previous.items, frames, count * sizeof(*frames));
		names->previous.count = count;
		names->previous_process = process;
	}
	return 0;
}

int names_hit(struct names *names, uint32_t process, uint32_t stack_index, uint64_t time_ns,
	uint32_t *ret_stack_index)
{
	struct trace *trace = names->options.trace;
	uint32_t epoch = trace->processes.items[process].code_epoch;
	uint64_t key = hash_u64((uint64_t)process << 32 | stack_index) ^ epoch;

	for (struct map_walk w = map_find(&names->pair_index, key); w.value; map_next(&w)) {
		struct names_pair *pair = &names->pairs.items[w.value];
		if (pair->process == process && pair->stack_index == stack_index && pair->epoch == epoch) {
			pair->count++;
			*ret_stack_index = pair->sound_index;
			return 0;
		}
	}
	struct names_pair *pair = vec_push(&names->pairs);

	if (!pair || !map_add(&names->pair_index, key, names->pairs.count - 1))
		return -ENOMEM;
	*pair = (struct names_pair){ .process = process,
		.stack_index = stack_index,
		.epoch = epoch,
		.count = 1,
		.sound_index = stack_index };
	uint32_t count;
	const uint64_t *frames = stack_table_get(&trace->stacks, stack_index, &count);
	uint32_t sound;
	int result = hit_frames(names, process, frames, count, time_ns, &sound);

	if (result < 0)
		return result;
	if (sound < count) {
		/* Interning may move the table, so not from its own memory. */
		vec_reset(&names->frames);
		if (!vec_reserve(&names->frames, sound))
			return -ENOMEM;
		memcpy(names->frames.items, frames, sound * sizeof(*frames));
		uint32_t index = stack_table_intern(&trace->stacks, names->frames.items, sound);
		if (!index)
			return -ENOMEM;
		pair->sound_index = index;
	}
	*ret_stack_index = pair->sound_index;
	return 0;
}

static void answer_waiting(struct names *names, uint64_t now_ns, bool last)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < names->waiting.count; i++) {
		uint32_t index = names->waiting.items[i];
		struct names_hit_entry *hit = &names->hits.items[index];
		if (hit->state == HIT_WAITING)
			hit->state = answer(names, hit, now_ns, last);
		if (hit->state == HIT_WAITING)
			names->waiting.items[kept++] = index;
	}
	names->waiting.count = kept;
}

int names_resolve(struct names *names, uint64_t now_ns)
{
	answer_waiting(names, now_ns, false);
	return 0;
}

/* Frames of the pairs so far, by whether they have a name. */
static void count_frames(struct names *names)
{
	const struct trace *trace = names->options.trace;
	uint64_t kernel_begin = arch_here()->kernel_begin;

	for (uint32_t p = 1; p < names->pairs.count && !names->options.mappings_only; p++) {
		const struct names_pair *pair = &names->pairs.items[p];
		uint32_t count;
		const uint64_t *frames = stack_table_get(&trace->stacks, pair->sound_index, &count);
		names->frames_total += (uint64_t)count * pair->count;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t hit = find_hit(names, frames[i] >= kernel_begin ? 0 : pair->process, frames[i],
				true);
			uint8_t state = hit ? names->hits.items[hit].state : (uint8_t)UNNAMED_NO_MEMORY;
			if (state < UNNAMED_CAUSE_COUNT)
				names->frames_unnamed[state] += pair->count;
		}
	}
	names->pairs.count = 1;
	map_reset(&names->pair_index);
}

/* Bodies on ranges that had another owner before need an end event, or viewers give them the first owner's name. */
static void end_reused_code(struct names *names)
{
	for (uint32_t p = 1; p < names->processes.count; p++) {
		const struct codemap *codemap = &names->processes.items[p].codemap;
		for (uint32_t i = 0; i < codemap->codes.count; i++) {
			const struct code *code = &codemap->codes.items[i];
			if (!code->written || !code->reused || code->removal_told)
				continue;
			bytes_reset(&names->payload);
			clr_method_unload_payload(code, &names->payload);
			(void)emit(names, CLR_METHOD_UNLOAD_VERBOSE, p); /* the sink keeps its own error */
		}
	}
}

int names_finish(struct names *names)
{
	answer_waiting(names, UINT64_MAX, true);
	end_reused_code(names);
	count_frames(names);
	return 0;
}

void names_removed_codes(struct names *names,
	void (*each)(void *context, uint32_t process, uint32_t code, const struct code *body), void *context)
{
	for (uint32_t p = 1; p < names->processes.count; p++) {
		struct names_process *own = &names->processes.items[p];
		if (own->codemap.changes == own->changes_seen)
			continue;
		codemap_settle(&own->codemap);
		own->changes_seen = own->codemap.changes;
		for (uint32_t i = 0; i < own->codemap.codes.count; i++) {
			struct code *code = &own->codemap.codes.items[i];
			if (code->removal_told || code->until_ns == UINT64_MAX)
				continue;
			code->removal_told = true;
			each(context, p, i, code);
		}
	}
}

/* Who asks for an address in the range from now on asks anew. Of what was there, the last is kept findable, to be counted by. */
static void forget_range(struct names *names, uint32_t process, uint64_t begin, uint64_t end)
{
	names->previous_process = 0;
	for (uint32_t i = 1; i < names->hits.count; i++) {
		struct names_hit_entry *hit = &names->hits.items[i];
		uint64_t key = hash_u64(hit->address) ^ process;
		if (hit->gone || hit->process != process || hit->address < begin || hit->address >= end)
			continue;
		map_remove(&names->hit_index, key, i);
		uint32_t before = find_hit(names, process, hit->address, true);
		if (before)
			map_remove(&names->hit_index, key, before);
		(void)map_add(&names->hit_index, key, i); /* there is room: one was taken out */
		hit->gone = true;
	}
}

const struct code *names_end_code(struct names *names, uint32_t process, uint32_t code, uint64_t begin)
{
	struct codemap *codemap = process < names->processes.count ? &names->processes.items[process].codemap : NULL;

	if (!codemap || code >= codemap->codes.count || codemap->codes.items[code].begin != begin)
		return NULL; /* another process has the place by now */
	uint64_t end = codemap->codes.items[code].end;

	for (uint32_t i = 0; i < names->waiting.count; i++) {
		struct names_hit_entry *hit = &names->hits.items[names->waiting.items[i]];
		if (hit->process == process && hit->address >= begin && hit->address < end &&
			hit->state == HIT_WAITING)
			hit->state = answer(names, hit, hit->time_ns, false);
	}
	if (!codemap->codes.items[code].written)
		return NULL;
	forget_range(names, process, begin, end);
	return &codemap->codes.items[code];
}

void names_forget_stacks(struct names *names)
{
	count_frames(names);
}

/* Symbols of mappings that are gone are never asked for again, but cannot be told from the others: all go, and a few are written twice. */
#define SYMBOLS_KEPT_MAX 200000u

void names_forget_processes(struct names *names, const bool *dead, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < names->waiting.count; i++) {
		uint32_t index = names->waiting.items[i];
		struct names_hit_entry *hit = &names->hits.items[index];
		if (hit->process < count && dead[hit->process] && hit->state == HIT_WAITING)
			hit->state = answer(names, hit, UINT64_MAX, true);
	}
	count_frames(names);
	names->previous_process = 0;
	/* The table without the dead; what waits finds its new place through its state. */
	vec_reset(&names->waiting);
	map_reset(&names->hit_index);
	for (uint32_t i = 1; i < names->hits.count; i++) {
		struct names_hit_entry hit = names->hits.items[i];
		if ((hit.process < count && dead[hit.process]) || (hit.gone && hit.state != HIT_WAITING))
			continue;
		names->hits.items[++kept] = hit;
		/* Both have held at least as many before: no memory is asked for. */
		(void)map_add(&names->hit_index, hash_u64(hit.address) ^ hit.process, kept);
		if (hit.state == HIT_WAITING)
			(void)vec_add(&names->waiting, kept);
	}
	names->hits.count = kept + 1;
	if (names->symbol_index.count > SYMBOLS_KEPT_MAX)
		map_reset(&names->symbol_index);
	for (uint32_t i = 0; i < count && i < names->processes.count; i++) {
		if (!dead[i])
			continue;
		codemap_done(&names->processes.items[i].codemap);
		names->processes.items[i] = (struct names_process){ 0 };
	}
}

uint64_t names_size_bytes(const struct names *names)
{
	uint64_t total = map_size_bytes(&names->hit_index) + map_size_bytes(&names->pair_index) +
		map_size_bytes(&names->symbol_index) + map_size_bytes(&names->image_index) +
		names->hits.capacity * sizeof(struct names_hit_entry) +
		names->pairs.capacity * sizeof(struct names_pair) +
		names->processes.capacity * sizeof(struct names_process);

	for (uint32_t i = 1; i < names->processes.count; i++)
		total += codemap_size_bytes(&names->processes.items[i].codemap);
	for (uint32_t i = 1; i < names->images.count; i++) {
		const struct names_image *image = &names->images.items[i];
		total += image->file ? symbol_file_size_bytes(image->file) : 0;
		total += image->r2r ? r2r_size_bytes(image->r2r) : 0;
	}
	return total + (names->kernel ? kallsyms_size_bytes(names->kernel) : 0);
}

void names_done(struct names *names)
{
	for (uint32_t i = 0; i < names->processes.count; i++)
		codemap_done(&names->processes.items[i].codemap);
	for (uint32_t i = 0; i < names->images.count; i++)
		drop_tables(&names->images.items[i]);
	kernel_symbols_close(names->kernel_asked);
	kallsyms_free(names->kernel);
	if (names->kernel_data)
		(void)munmap(names->kernel_data, names->kernel_data_size); /* cannot fail for what was mapped */
	vec_done(&names->processes);
	vec_done(&names->hits);
	vec_done(&names->pairs);
	vec_done(&names->images);
	vec_done(&names->waiting);
	vec_done(&names->frames);
	vec_done(&names->previous);
	map_done(&names->hit_index);
	map_done(&names->pair_index);
	map_done(&names->image_index);
	map_done(&names->symbol_index);
	bytes_done(&names->text);
	bytes_done(&names->payload);
}
