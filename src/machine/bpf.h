/*
 * Programs that the kernel runs for us (BPF), written as instructions: no compiler and no library is needed
 * where Spoor runs. Needs CAP_BPF, or root; without it -EPERM.
 */
#ifndef SPOOR_MACHINE_BPF_H
#define SPOOR_MACHINE_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bpf(2): the result of the command, or a negative errno. */
int bpf_call(int command, union bpf_attr *attr);

/* A map of `count` values: its descriptor, or a negative errno. `flags`: BPF_F_*. */
int bpf_map_new(enum bpf_map_type type, uint32_t value_bytes, uint32_t count, uint32_t flags);

/*
 * A map of one value of `bytes` that the program and this process share. Returns the memory, zeroed and
 * mapped up to the end of its last page, for bpf_map_unshare(); the caller closes *ret_fd. NULL: *ret_fd
 * is a negative errno, and there is nothing to close.
 */
void *bpf_map_shared(size_t bytes, int *ret_fd);

/* `memory` of bpf_map_shared() with the same number of bytes; may be NULL. */
void bpf_map_unshare(void *memory, size_t bytes);

/* As bpf_map_new(), with keys of `key_bytes`. */
int bpf_map_new_keyed(enum bpf_map_type type, uint32_t key_bytes, uint32_t value_bytes,
	uint32_t count, uint32_t flags);

/* The value of a key; -ENOENT: there is none. */
int bpf_map_get(int map_fd, const void *key, void *value);

/* Whether the kernel knows processes by the ids that this process sees: outside of all pid namespaces. */
bool bpf_sees_our_pids(void);

/* A program that may use all helpers: its descriptor, or a negative errno. */
int bpf_load(enum bpf_prog_type type, uint32_t flags, const struct bpf_insn *program,
	uint32_t insn_count);

/* As bpf_load(), for one kind of attachment (enum bpf_attach_type; the headers may be older than the kernel). */
int bpf_load_for(enum bpf_prog_type type, uint32_t attach_type, const struct bpf_insn *program,
	uint32_t insn_count);

/* Sets an entry of a map. `key` and `value` have the sizes of the map. 0 or a negative errno. */
int bpf_map_set(int map_fd, const void *key, const void *value);

/* bpf_attach_type of a program that is attached to many uprobes by one link (Linux 6.6). */
#define BPF_ATTACH_UPROBE_MULTI 48u

/*
 * Runs a program of that kind at places of a file, in all processes: the link's descriptor, or a negative errno. Each
 * array has `count` elements: file offsets, offsets of semaphores (0: none), and what bpf_get_attach_cookie() returns.
 */
int bpf_link_uprobes(int program_fd, const char *path, const uint64_t *offsets,
	const uint64_t *semaphores, const uint64_t *cookies, uint32_t count);

/* Runs a program at a perf event, with a cookie (Linux 5.15): the link's descriptor, or a negative errno. */
int bpf_link_event(int program_fd, int event_fd, uint64_t cookie);

/* Runs a program at a raw tracepoint, such as "sched_switch": the link's descriptor, or a negative errno. */
int bpf_link_tracepoint(int program_fd, const char *name);

struct bpf_insn bpf_insn(unsigned code, unsigned to, unsigned from, int offset, int immediate);

#endif
