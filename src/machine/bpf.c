/* See bpf.h. */
#include "machine/bpf.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* the inode of /proc/self/ns/pid outside of all namespaces (PROC_PID_INIT_INO) */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

int bpf_call(int command, union bpf_attr *attr)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : (int)result;
}

int bpf_map_new(enum bpf_map_type type, uint32_t value_bytes, uint32_t count, uint32_t flags)
{
	return bpf_map_new_keyed(type, sizeof(uint32_t), value_bytes, count, flags);
}

int bpf_map_new_keyed(enum bpf_map_type type, uint32_t key_bytes, uint32_t value_bytes,
	uint32_t count, uint32_t flags)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key_bytes;
	attr.value_size = value_bytes;
	attr.max_entries = count;
	attr.map_flags = flags;
	return bpf_call(BPF_MAP_CREATE, &attr);
}

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

void *bpf_map_shared(size_t bytes, int *ret_fd)
{
	*ret_fd = bytes > UINT32_MAX
			  ? -E2BIG
			  : bpf_map_new(BPF_MAP_TYPE_ARRAY, (uint32_t)bytes, 1, BPF_F_MMAPABLE);
	if (*ret_fd < 0)
		return NULL;
	void *memory =
		mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	int error = -errno;

	(void)close(*ret_fd); /* an empty map */
	*ret_fd = error;
	return NULL;
}

void bpf_map_unshare(void *memory, size_t bytes)
{
	if (memory)
		(void)munmap(memory, whole_pages(bytes)); /* mapped by this module */
}

int bpf_map_get(int map_fd, const void *key, void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uint64_t)(uintptr_t)key;
	attr.value = (uint64_t)(uintptr_t)value;
	return bpf_call(BPF_MAP_LOOKUP_ELEM, &attr);
}

bool bpf_sees_our_pids(void)
{
	struct stat own;

	return stat("/proc/self/ns/pid", &own) == 0 && own.st_ino == INITIAL_PID_NAMESPACE;
}

static int load(enum bpf_prog_type type, uint32_t flags, uint32_t attach_type,
	const struct bpf_insn *program, uint32_t insn_count)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.prog_flags = flags;
	attr.expected_attach_type = attach_type;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = insn_count;
	/* some helpers are available only to programs with such a license */
	attr.license = (uint64_t)(uintptr_t) "Dual MIT/GPL";
	return bpf_call(BPF_PROG_LOAD, &attr);
}

int bpf_load(enum bpf_prog_type type, uint32_t flags, const struct bpf_insn *program,
	uint32_t insn_count)
{
	return load(type, flags, 0, program, insn_count);
}

int bpf_load_for(enum bpf_prog_type type, uint32_t attach_type, const struct bpf_insn *program,
	uint32_t insn_count)
{
	return load(type, 0, attach_type, program, insn_count);
}

int bpf_map_set(int map_fd, const void *key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uint64_t)(uintptr_t)key;
	attr.value = (uint64_t)(uintptr_t)value;
	return bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
}

/* The attributes of BPF_LINK_CREATE, which this system's headers may lack. */
struct link_attr {
	uint32_t program_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t words[4]; /* path, offsets, semaphores, cookies; of a perf event: the cookie */
	uint32_t count;
	uint32_t more_flags;
	uint32_t pid;
	uint32_t unused;
};

static int link_create(const struct link_attr *attr)
{
	long result = syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return result < 0 ? -errno : (int)result;
}

int bpf_link_uprobes(int program_fd, const char *path, const uint64_t *offsets,
	const uint64_t *semaphores, const uint64_t *cookies, uint32_t count)
{
	struct link_attr attr = { .program_fd = (uint32_t)program_fd,
		.attach_type = BPF_ATTACH_UPROBE_MULTI,
		.words = { (uint64_t)(uintptr_t)path, (uint64_t)(uintptr_t)offsets,
			(uint64_t)(uintptr_t)semaphores, (uint64_t)(uintptr_t)cookies },
		.count = count };

	return link_create(&attr);
}

int bpf_link_event(int program_fd, int event_fd, uint64_t cookie)
{
	struct link_attr attr = { .program_fd = (uint32_t)program_fd,
		.target_fd = (uint32_t)event_fd,
		.attach_type = BPF_PERF_EVENT,
		.words = { cookie } };

	return link_create(&attr);
}

int bpf_link_tracepoint(int program_fd, const char *name)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uint64_t)(uintptr_t)name;
	attr.raw_tracepoint.prog_fd = (uint32_t)program_fd;
	return bpf_call(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

struct bpf_insn bpf_insn(unsigned code, unsigned to, unsigned from, int offset, int immediate)
{
	return (struct bpf_insn){
		.code = (uint8_t)code,
		.dst_reg = (uint8_t)(to & 15),
		.src_reg = (uint8_t)(from & 15),
		.off = (int16_t)offset,
		.imm = immediate,
	};
}
