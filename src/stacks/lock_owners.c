/* See lock_owners.h. */
#include "stacks/lock_owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "machine/proc.h"
#include "machine/target_root.h"
#include "machine/thread_state.h"
#include "stacks/thread_dump.h"

#define CONTRACT_SYMBOL    "DotNetRuntimeContractDescriptor"
#define CONTRACT_MAGIC     UINT64_C(0x0043414443434e44)
#define CONTRACT_BYTES     40u
#define CONTRACT_JSON_MAX  (1u << 20)
#define CONTRACT_SLOTS_MAX 4096u
#define SYMBOL_BYTES       24u /* of an entry of .dynsym, 64 bits */
#define SYMBOLS_BYTES_MAX  (8u << 20)
#define NAMES_BYTES_MAX    (8u << 20)
#define RUNTIME_BYTES_MAX  (UINT64_C(1) << 30)
#define STACK_BYTES        (16u << 10) /* of a waiting thread: down to the method that waits */
#define PAGE_BYTES_MAX     (64u << 10)
#define ADDRESS_LEAST      UINT64_C(0x10000)

/* The header of an object, the u32 before it. */
#define HEADER_IS_INDEX 0x08000000u
#define HEADER_IS_HASH  0x04000000u
#define HEADER_INDEX    0x03ffffffu

/* Entry of the table: u64 sync block, u64 object. */
#define ENTRY_BYTES 16u

/*
 * Sync block, the part that is read:
 *
 *   offset  size  field
 *   0       4     state of the monitor: bit 0 a thread holds it, from bit 6 on the number of waiters
 *   4       4     recursion
 *   8       8     holder, as the runtime has it
 *   16      8     thread id of the holder, as the process has it
 *   28      4     number of the block; the highest bit is not part of it
 */
#define MONITOR_IS_HELD 1u
#define MONITOR_WAITERS 6u

struct runtime_memory {
	int fd;
	uint64_t table; /* of sync blocks */
};

struct runtime_image {
	uint64_t begin;
	uint64_t file_offset;
	char path[4096];
};

bool lock_owners_parse_contract(const char *json, uint32_t *ret_slot)
{
	static const char table[] = "\"SyncTableEntries\":";
	const char *at = strstr(json, table);
	uint64_t slot = 0;

	/* The block's next field after the monitor: the layout is the known one. */
	if (!at || !strstr(json, "\"InteropInfo\":56"))
		return false;
	at += sizeof(table) - 1;
	at += strspn(at, "[ ");
	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9' && slot < CONTRACT_SLOTS_MAX; at++)
		slot = slot * 10 + (uint64_t)(*at - '0');
	*ret_slot = (uint32_t)slot;
	return slot < CONTRACT_SLOTS_MAX;
}

bool lock_owners_parse_block(const uint8_t block[SYNC_BLOCK_BYTES], uint32_t number,
	uint64_t *ret_tid)
{
	struct cursor c = cursor_of(block, SYNC_BLOCK_BYTES);
	uint32_t state = cursor_u32(&c);

	cursor_skip(&c, 4);
	uint64_t holder = cursor_u64(&c);
	*ret_tid = cursor_u64(&c);
	cursor_skip(&c, 4);
	uint32_t own = cursor_u32(&c) & INT32_MAX;
	return own == number && (state & MONITOR_IS_HELD) && state >> MONITOR_WAITERS && holder &&
	       *ret_tid;
}

static bool read_memory(const struct runtime_memory *memory, uint64_t address, void *out,
	size_t size)
{
	return target_memory_read(memory->fd, address, out, size) == (ssize_t)size;
}

static bool read_u64(const struct runtime_memory *memory, uint64_t address, uint64_t *ret_value)
{
	return read_memory(memory, address, ret_value, sizeof(*ret_value));
}

/* ---- the runtime ---- */

static int take_runtime(void *user, const struct proc_mapping *mapping)
{
	static const char name[] = "/libcoreclr.so";
	struct runtime_image *image = user;
	size_t len = sizeof(name) - 1;

	if (mapping->path_len < len || mapping->path_len >= sizeof(image->path) ||
		strcmp(mapping->path + mapping->path_len - len, name) != 0)
		return 0;
	image->begin = mapping->begin;
	image->file_offset = mapping->file_offset;
	memcpy(image->path, mapping->path, mapping->path_len + 1);
	return 1;
}

/* The value of a symbol in .dynsym. */
static bool find_symbol(const struct elf *elf, const struct image_file *file, const char *name,
	uint64_t *ret_value)
{
	uint8_t *symbols = NULL;
	uint8_t *names = NULL;
	bool found = false;
	uint32_t i = 0;

	while (i < elf->sections.count && elf->sections.items[i].type != ELF_SECTION_DYNSYM)
		i++;
	if (i == elf->sections.count || elf->sections.items[i].link >= elf->sections.count)
		return false;
	const struct elf_section *table = &elf->sections.items[i];
	const struct elf_section *texts = &elf->sections.items[table->link];
	if (image_file_load(file, table->offset, table->size, SYMBOLS_BYTES_MAX, &symbols) == 0 &&
		image_file_load(file, texts->offset, texts->size, NAMES_BYTES_MAX, &names) == 0) {
		struct cursor c = cursor_of(symbols, table->size);
		while (!found && cursor_left(&c) >= SYMBOL_BYTES) {
			uint32_t name_at = cursor_u32(&c);
			cursor_skip(&c, 4); /* info, other, section */
			*ret_value = cursor_u64(&c);
			cursor_skip(&c, 8); /* size */
			/* image_file_load() has added a NUL */
			found = name_at < texts->size &&
				strcmp((const char *)names + name_at, name) == 0;
		}
	}
	free(symbols);
	free(names);
	return found;
}

/* The address that was linked for the begin of an executable mapping, whose offset is rounded down. */
static bool find_vaddr(const struct elf *elf, uint64_t file_offset, uint64_t *ret_vaddr)
{
	for (uint32_t i = 0; i < elf->segments.count; i++) {
		const struct elf_segment *segment = &elf->segments.items[i];
		if (!segment->executable || file_offset >= segment->offset + segment->file_size ||
			file_offset + PAGE_BYTES_MAX <= segment->offset)
			continue;
		*ret_vaddr = segment->vaddr - segment->offset + file_offset;
		return true;
	}
	return false;
}

/* Where the runtime's description of itself is in memory. */
static bool find_contract(uint32_t pid, const struct runtime_image *image, uint64_t *ret_address)
{
	struct diag diag = { 0 };
	struct image_file file;
	struct elf elf = { 0 };
	uint64_t size_bytes;
	uint64_t vaddr;
	cleanup(closep) int fd = -1;

	if (target_file_open(pid, image->path, RUNTIME_BYTES_MAX, &fd, &size_bytes, &diag) < 0 ||
		image_file_from_fd(&file, fd, &diag) < 0)
		return false;
	bool found = elf_read(&elf, &file, &diag) == 0 && elf.is_64 &&
		     find_vaddr(&elf, image->file_offset, &vaddr) &&
		     find_symbol(&elf, &file, CONTRACT_SYMBOL, ret_address);
	if (found)
		*ret_address += image->begin - vaddr;
	elf_done(&elf);
	return found;
}

/* u64 magic, u32 flags, u32 bytes of the JSON, pointer to it, u32 slots, u32 unused, pointer. */
static bool read_contract(struct runtime_memory *memory, uint64_t address)
{
	uint8_t bytes[CONTRACT_BYTES];
	uint64_t variable;
	uint32_t slot;

	if (!read_memory(memory, address, bytes, sizeof(bytes)))
		return false;
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	uint64_t magic = cursor_u64(&c);
	cursor_skip(&c, 4);
	uint32_t json_size = cursor_u32(&c);
	uint64_t json_at = cursor_u64(&c);
	uint32_t slot_count = cursor_u32(&c);
	cursor_skip(&c, 4);
	uint64_t slots_at = cursor_u64(&c);
	if (magic != CONTRACT_MAGIC || json_size > CONTRACT_JSON_MAX)
		return false;
	char *json = calloc(1, (size_t)json_size + 1);
	bool known = json && read_memory(memory, json_at, json, json_size) &&
		     lock_owners_parse_contract(json, &slot) && slot < slot_count;
	free(json);
	return known && read_u64(memory, slots_at + 8 * (uint64_t)slot, &variable) &&
	       read_u64(memory, variable, &memory->table);
}

/* ---- the threads ---- */

/* Whether this is the object of a monitor that a thread holds while others wait. */
static bool read_owner(const struct runtime_memory *memory, uint64_t object, uint64_t *ret_tid)
{
	uint32_t header;
	uint64_t entry[2];
	uint8_t block[SYNC_BLOCK_BYTES];

	if (object < ADDRESS_LEAST || object % 8 ||
		!read_memory(memory, object - sizeof(header), &header, sizeof(header)) ||
		!(header & HEADER_IS_INDEX) || header & HEADER_IS_HASH)
		return false;
	uint32_t number = header & HEADER_INDEX;
	return read_memory(memory, memory->table + number * (uint64_t)ENTRY_BYTES, entry,
		       sizeof(entry)) &&
	       entry[1] == object && read_memory(memory, entry[0], block, sizeof(block)) &&
	       lock_owners_parse_block(block, number, ret_tid);
}

static void find_owner(const struct runtime_memory *memory, struct proc_reader *proc,
	struct thread_dump *dump, uint32_t index, uint64_t *stack)
{
	struct dump_thread *thread = &dump->threads.items[index];
	struct thread_state state;
	uint64_t tid;

	if (thread_state_read(proc, dump->pid, thread->tid, &state) < 0 || !state.sp ||
		state.sp % 8)
		return;
	ssize_t size = target_memory_read(memory->fd, state.sp, stack, STACK_BYTES);
	for (size_t i = 0; size > 0 && i < (size_t)size / 8; i++) {
		if ((i && stack[i] == stack[i - 1]) || !read_owner(memory, stack[i], &tid))
			continue;
		const struct dump_thread *owner = thread_dump_find(dump, tid);
		if (!owner || owner == thread)
			continue;
		thread->lock = stack[i];
		thread->lock_owner = owner->tid;
		return;
	}
}

void lock_owners_find(struct thread_dump *dump)
{
	struct runtime_memory memory = { .fd = -1 };
	struct runtime_image image = { .begin = 0 };
	struct proc_reader proc;
	struct diag diag = { 0 };
	uint64_t contract;
	uint32_t first = 0;

	while (first < dump->threads.count && (!dump->threads.items[first].waits_for_lock ||
						      dump->threads.items[first].lock_owner))
		first++;
	if (first == dump->threads.count || dump->values_withheld || proc_open(&proc, &diag) < 0)
		return;
	uint64_t *stack = malloc(STACK_BYTES);
	if (stack && proc_read_maps(&proc, dump->pid, take_runtime, &image) == 1 &&
		target_memory_open(dump->pid, &memory.fd) == 0) {
		if (find_contract(dump->pid, &image, &contract) && read_contract(&memory, contract))
			for (uint32_t i = first; i < dump->threads.count; i++)
				if (dump->threads.items[i].waits_for_lock &&
					!dump->threads.items[i].lock_owner)
					find_owner(&memory, &proc, dump, i, stack);
		(void)close(memory.fd); /* it was only read */
	}
	free(stack);
	proc_close(&proc);
}
