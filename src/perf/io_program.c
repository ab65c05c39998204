/*
 * See io_program.h. The programs:
 *
 *   sys_enter     if such calls are counted, and the process is not muted: running[tid] = now, call
 *   sys_exit      if running[tid]: what the call did to descriptors goes to files[pid, descriptor],
 *                 and what it did otherwise is added to sums[pid, call, descriptor, name]
 *   process_exit  forgets running[tid], and with the main thread the entries of the process's descriptors
 *
 * They are raw tracepoints: those of perf events are left out while any other program runs on their CPU, so that
 * their counts would not be exact. A path is read at the exit, when the kernel has read it too, so that its memory
 * is present.
 */
#include "perf/io_program.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "code/arch.h"
#include "machine/bpf_labels.h"
#include "trace/io_call.h"

/* ---- system calls ---- */

enum io_flag {
	FLAG_CALL = 0xff, /* enum io_call; 0: the call only changes descriptors */
	FLAG_BYTES = 1 << 8,
	FLAG_FD0 = 1 << 9, /* the first argument is the descriptor; or the third */
	FLAG_FD2 = 1 << 10,
	FLAG_PATH0 = 1 << 11,
	FLAG_PATH1 = 1 << 12,
	FLAG_CONNECT = 1 << 13,
	FLAG_MAKES = 1 << 14,  /* the result is a descriptor, of FLAG_CLASS */
	FLAG_PIPES0 = 1 << 15, /* the argument points to two new descriptors */
	FLAG_PIPES3 = 1 << 16,
	FLAG_CLOSE = 1 << 17,
	FLAG_DUP = 1 << 18,
	FLAG_FCNTL = 1 << 19, /* FLAG_DUP, if it is F_DUPFD */
	FLAG_EXEC = 1 << 20,
	FLAG_CLASS_SHIFT = 24,
};

#define CLASS(name) (IO_CLASS_##name << FLAG_CLASS_SHIFT)
#define READS       (FLAG_FD0 | FLAG_BYTES)
#define MAKES(name) (FLAG_MAKES | CLASS(name))

#define F_DUPFD_NUMBER         0
#define F_DUPFD_CLOEXEC_NUMBER 1030
#define EAGAIN_NUMBER          11
#define EINPROGRESS_NUMBER     115

struct call_flags {
	int number;
	uint32_t flags;
};

#define COUNTED(name, flags)                         \
	{                                            \
		SYS_##name, IO_CALL_##name | (flags) \
	}

static const struct call_flags known_calls[] = {
	COUNTED(read, READS),
	COUNTED(pread64, READS),
	COUNTED(readv, READS),
	COUNTED(preadv, READS),
	COUNTED(preadv2, READS),
	COUNTED(recvfrom, READS),
	COUNTED(recvmsg, READS),
	COUNTED(recvmmsg, FLAG_FD0),
	COUNTED(write, READS),
	COUNTED(pwrite64, READS),
	COUNTED(writev, READS),
	COUNTED(pwritev, READS),
	COUNTED(pwritev2, READS),
	COUNTED(sendto, READS),
	COUNTED(sendmsg, READS),
	COUNTED(sendmmsg, FLAG_FD0),
	COUNTED(sendfile, READS),
	COUNTED(splice, FLAG_FD2 | FLAG_BYTES),
	COUNTED(copy_file_range, FLAG_FD2 | FLAG_BYTES),
#ifdef SYS_open
	COUNTED(open, FLAG_PATH0),
	COUNTED(creat, FLAG_PATH0),
#endif
	COUNTED(openat, FLAG_PATH1),
	COUNTED(connect, FLAG_CONNECT),
	COUNTED(accept, FLAG_FD0 | MAKES(ACCEPTED)),
	COUNTED(accept4, FLAG_FD0 | MAKES(ACCEPTED)),
	COUNTED(fsync, FLAG_FD0),
	COUNTED(fdatasync, FLAG_FD0),
	COUNTED(sync_file_range, FLAG_FD0),
	COUNTED(syncfs, FLAG_FD0),
	COUNTED(sync, 0),
#ifdef SYS_openat2
	COUNTED(openat2, FLAG_PATH1),
#endif
	{ SYS_close, FLAG_CLOSE },
	{ SYS_dup, FLAG_DUP },
	{ SYS_dup3, FLAG_DUP },
	{ SYS_fcntl, FLAG_FCNTL },
	{ SYS_socket, MAKES(SOCKET) },
	{ SYS_socketpair, FLAG_PIPES3 | CLASS(SOCKET) },
	{ SYS_pipe2, FLAG_PIPES0 | CLASS(PIPE) },
	{ SYS_eventfd2, MAKES(OTHER) },
	{ SYS_epoll_create1, MAKES(OTHER) },
	{ SYS_timerfd_create, MAKES(OTHER) },
	{ SYS_signalfd4, MAKES(OTHER) },
	{ SYS_inotify_init1, MAKES(OTHER) },
	{ SYS_memfd_create, MAKES(OTHER) },
	{ SYS_perf_event_open, MAKES(OTHER) },
	{ SYS_bpf, MAKES(OTHER) },
	{ SYS_open_by_handle_at, MAKES(FILE) },
#ifdef SYS_pidfd_open
	{ SYS_pidfd_open, MAKES(OTHER) },
#endif
#ifdef SYS_dup2
	{ SYS_dup2, FLAG_DUP },
	{ SYS_pipe, FLAG_PIPES0 | CLASS(PIPE) },
	{ SYS_eventfd, MAKES(OTHER) },
	{ SYS_epoll_create, MAKES(OTHER) },
	{ SYS_signalfd, MAKES(OTHER) },
	{ SYS_inotify_init, MAKES(OTHER) },
#endif
	{ SYS_execve, FLAG_EXEC },
	{ SYS_execveat, FLAG_EXEC },
};

int io_program_fill_calls(struct io_state *state)
{
	if (!arch_here()->system_call)
		return -ENOTSUP;
	for (size_t i = 0; i < sizeof(known_calls) / sizeof(known_calls[0]); i++)
		if (known_calls[i].number < (int)IO_NUMBERS)
			state->calls[known_calls[i].number] = known_calls[i].flags;
	return 0;
}

/* ---- parts of programs ---- */

/* The stack of sys_exit, by offset from its frame: what each place holds. */
enum stack_place {
	AT_TID = -8,
	AT_NS = -16,
	AT_KEY = -32, /* of sums */
	AT_KEY_CALL = AT_KEY + 4,
	AT_KEY_FD = AT_KEY + 8,
	AT_KEY_NAME = AT_KEY + 12,
	AT_FILE = -48, /* key of files */
	AT_FILE_FD = AT_FILE + 4,
	AT_FILE_EPOCH = AT_FILE + 8,
	AT_FILE_REST = AT_FILE + 12,
	AT_VALUE = -56, /* of files and names */
	AT_INSTANCE = -64,
	AT_NAME = -72, /* number of the name that the call passed; 0: none */
	AT_ACTIVE = -80,
	AT_REGS = AT_ACTIVE - (int)ARCH_CALL_BYTES,
	AT_TEXT = AT_REGS - (int)sizeof(struct io_name_key),
	AT_FRESH = AT_TEXT, /* a new sum, when AT_TEXT is used no more */
	AT_PIPES = AT_TEXT,
};

#define VALUE_OFFSET(member) ((int)(offsetof(struct io_sum, member) - IO_SUM_KEY_BYTES))
#define VALUE_BYTES          ((int)(sizeof(struct io_sum) - IO_SUM_KEY_BYTES))
#define PID_SHIFT            32
#define LONGEST_TRIES        4

_Static_assert(sizeof(struct io_name_key) == 256 && AT_TEXT >= -512, "a program's stack");
_Static_assert(offsetof(struct io_sum, count) == IO_SUM_KEY_BYTES, "the key is the first members");

enum io_label {
	LABEL_OUT,
	LABEL_OUT_EARLY,
	LABEL_NO_NAME,
	LABEL_PATH,
	LABEL_FIND_NAME,
	LABEL_KNOWN_NAME,
	LABEL_NOT_OPEN,
	LABEL_NOT_CONNECT,
	LABEL_NOT_CLOSE,
	LABEL_NOT_PIPES,
	LABEL_NOT_DUP,
	LABEL_DUP,
	LABEL_COPY,
	LABEL_NOT_MAKES,
	LABEL_NO_FD,
	LABEL_THIRD,
	LABEL_NOT_FOUND,
	LABEL_CLASS,
	LABEL_SUM,
	LABEL_MAP,
	LABEL_ADD,
	LABEL_SAME,
	LABEL_NO_ERROR,
	LABEL_AGAIN,
	LABEL_TIMES,
	LABEL_LONGEST,
	LABEL_NOT_EXEC,
	LABEL_ANY,
	LABEL_FRESH,
};

static void stack_address(struct bpf_labels *p, unsigned to, int at)
{
	bpf_move(&p->program, to, BPF_REG_10);
	bpf_compute(&p->program, BPF_ADD, to, at);
}

static void state_address(struct bpf_labels *p, unsigned to, const struct io_maps *maps, size_t at)
{
	bpf_load_value(&p->program, to, maps->state_fd, at);
}

static void look_up(struct bpf_labels *p, int map_fd, int key_at)
{
	bpf_load_map(&p->program, BPF_REG_1, map_fd);
	stack_address(p, BPF_REG_2, key_at);
	bpf_call_helper(&p->program, BPF_FUNC_map_lookup_elem);
}

static void update(struct bpf_labels *p, int map_fd, int key_at, int value_at, int flags)
{
	bpf_load_map(&p->program, BPF_REG_1, map_fd);
	stack_address(p, BPF_REG_2, key_at);
	stack_address(p, BPF_REG_3, value_at);
	bpf_set(&p->program, BPF_REG_4, flags);
	bpf_call_helper(&p->program, BPF_FUNC_map_update_elem);
}

static void forget(struct bpf_labels *p, int map_fd, int key_at)
{
	bpf_load_map(&p->program, BPF_REG_1, map_fd);
	stack_address(p, BPF_REG_2, key_at);
	bpf_call_helper(&p->program, BPF_FUNC_map_delete_elem);
}

static void argument(struct bpf_labels *p, unsigned to, unsigned which)
{
	bpf_read(p, BPF_DW, to, BPF_REG_10, AT_REGS + arch_here()->system_call->arguments[which]);
}

/* Leaves if the process is muted. `pid_tid` holds its pid in the upper half. Uses registers 1 to 3. */
static void leave_if_muted(struct bpf_labels *p, const struct io_maps *maps, unsigned pid_tid)
{
	bpf_jump_if_bit(p, pid_tid, maps->state_fd, offsetof(struct io_state, muted), IO_PIDS_MAX,
		LABEL_OUT_EARLY);
}

/* At AT_TID, the thread as a key. */
static void store_tid(struct bpf_labels *p, unsigned pid_tid)
{
	bpf_move(&p->program, BPF_REG_1, pid_tid);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_1, PID_SHIFT);
	bpf_compute(&p->program, BPF_RSH, BPF_REG_1, PID_SHIFT);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_TID, BPF_REG_1);
}

/* `to` = the address of the epoch of the process whose pid is in register 8. Uses register 2. */
static void epoch_address(struct bpf_labels *p, unsigned to, const struct io_maps *maps)
{
	state_address(p, to, maps, offsetof(struct io_state, epochs));
	bpf_move(&p->program, BPF_REG_2, BPF_REG_8);
	bpf_compute(&p->program, BPF_AND, BPF_REG_2, IO_EPOCHS - 1);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_2, 3);
	bpf_combine(&p->program, BPF_ADD, to, BPF_REG_2);
}

/* The new descriptor in `fd` (of register 1 to 9) refers to the file of the name or class in `name`. */
static void set_file(struct bpf_labels *p, const struct io_maps *maps, unsigned fd, unsigned name)
{
	bpf_write(p, BPF_W, BPF_REG_10, AT_FILE_FD, fd);
	bpf_write(p, BPF_W, BPF_REG_10, AT_VALUE, name);
	bpf_set(&p->program, BPF_REG_1, 1);
	state_address(p, BPF_REG_2, maps, offsetof(struct io_state, instances));
	bpf_atomic(p, BPF_ADD | BPF_FETCH, BPF_REG_2, 0, BPF_REG_1);
	bpf_write(p, BPF_W, BPF_REG_10, AT_VALUE + 4, BPF_REG_1);
	update(p, maps->files_fd, AT_FILE, AT_VALUE, BPF_ANY);
}

/* `to` = the class in the flags of register 7. */
static void load_class(struct bpf_labels *p, unsigned to)
{
	bpf_move(&p->program, to, BPF_REG_7);
	bpf_compute(&p->program, BPF_RSH, to, FLAG_CLASS_SHIFT);
}

/* Jumps if the flags in register 7 have none of these. */
static void unless(struct bpf_labels *p, int flags, unsigned label)
{
	bpf_jump_if(p, BPF_REG_7, BPF_JSET, flags, LABEL_ANY);
	bpf_jump_to(p, label);
	bpf_label(p, LABEL_ANY);
}

/* ---- sys_enter ---- */

int io_program_load_enter(const struct io_maps *maps)
{
	cleanup(freep) struct bpf_labels *p = bpf_labels_new();

	if (!p)
		return -ENOMEM;
	/* the arguments: registers, number */
	bpf_read(p, BPF_DW, BPF_REG_7, BPF_REG_1, 8);
	bpf_jump_if(p, BPF_REG_7, BPF_JGT, IO_NUMBERS - 1, LABEL_OUT);
	state_address(p, BPF_REG_1, maps, offsetof(struct io_state, calls));
	bpf_move(&p->program, BPF_REG_2, BPF_REG_7);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_2, 3);
	bpf_combine(&p->program, BPF_ADD, BPF_REG_1, BPF_REG_2);
	bpf_read(p, BPF_DW, BPF_REG_9, BPF_REG_1, 0);
	bpf_jump_if(p, BPF_REG_9, BPF_JEQ, 0, LABEL_OUT);
	bpf_call_helper(&p->program, BPF_FUNC_get_current_pid_tgid);
	bpf_move(&p->program, BPF_REG_8, BPF_REG_0);
	leave_if_muted(p, maps, BPF_REG_8);

	/* the child that waits: its exec only; other processes: all but the exec */
	state_address(p, BPF_REG_1, maps, offsetof(struct io_state, waiting));
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_1, 0);
	bpf_move(&p->program, BPF_REG_2, BPF_REG_8);
	bpf_compute(&p->program, BPF_RSH, BPF_REG_2, PID_SHIFT);
	bpf_move(&p->program, BPF_REG_3, BPF_REG_9);
	bpf_compute(&p->program, BPF_AND, BPF_REG_3, FLAG_EXEC);
	bpf_jump_if_register(p, BPF_REG_1, BPF_JNE, BPF_REG_2, LABEL_NOT_EXEC);
	bpf_compute(&p->program, BPF_XOR, BPF_REG_3, FLAG_EXEC);
	bpf_label(p, LABEL_NOT_EXEC);
	bpf_jump_if(p, BPF_REG_3, BPF_JNE, 0, LABEL_OUT);

	store_tid(p, BPF_REG_8);
	bpf_call_helper(&p->program, BPF_FUNC_ktime_get_ns);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_KEY, BPF_REG_0);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_7, 32);
	bpf_combine(&p->program, BPF_OR, BPF_REG_7, BPF_REG_9);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_KEY + 8, BPF_REG_7);
	update(p, maps->calls_fd, AT_TID, AT_KEY, BPF_ANY);
	bpf_jump_if(p, BPF_REG_0, BPF_JEQ, 0, LABEL_OUT);
	bpf_set(&p->program, BPF_REG_1, 1);
	state_address(p, BPF_REG_2, maps, offsetof(struct io_state, lost));
	bpf_atomic(p, BPF_ADD, BPF_REG_2, 0, BPF_REG_1);
	bpf_label(p, LABEL_OUT);
	bpf_label(p, LABEL_OUT_EARLY);
	bpf_exit(&p->program, 0);
	return bpf_labels_load(p, BPF_PROG_TYPE_RAW_TRACEPOINT);
}

/* ---- sys_exit ---- */

/*
 * Registers from here on: 6 the context, 7 the flags of the call, 8 the pid, 9 the result; AT_NS: how long it
 * took; AT_REGS: its arguments.
 */
static void begin_exit(struct bpf_labels *p, const struct io_maps *maps)
{
	const struct arch_system_call *registers = arch_here()->system_call;
	int to = AT_REGS;

	bpf_move(&p->program, BPF_REG_6, BPF_REG_1);
	bpf_call_helper(&p->program, BPF_FUNC_get_current_pid_tgid);
	bpf_move(&p->program, BPF_REG_8, BPF_REG_0);
	leave_if_muted(p, maps, BPF_REG_8);
	store_tid(p, BPF_REG_8);
	look_up(p, maps->calls_fd, AT_TID);
	bpf_jump_if(p, BPF_REG_0, BPF_JEQ, 0, LABEL_OUT_EARLY);
	bpf_read(p, BPF_DW, BPF_REG_9, BPF_REG_0, 0);
	bpf_read(p, BPF_DW, BPF_REG_7, BPF_REG_0, 8);
	bpf_call_helper(&p->program, BPF_FUNC_ktime_get_ns);
	bpf_combine(&p->program, BPF_SUB, BPF_REG_0, BPF_REG_9);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_NS, BPF_REG_0);
	forget(p, maps->calls_fd, AT_TID);

	for (size_t i = 0; i < ARCH_CALL_PARTS && registers->parts[i].size; i++) {
		stack_address(p, BPF_REG_1, to);
		bpf_set(&p->program, BPF_REG_2, registers->parts[i].size);
		bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_6, 0);
		bpf_compute(&p->program, BPF_ADD, BPF_REG_3, registers->parts[i].from);
		bpf_call_helper(&p->program, BPF_FUNC_probe_read_kernel);
		bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_OUT_EARLY);
		to += registers->parts[i].size;
	}
	/* 32-bit programs have other numbers */
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_10, AT_REGS + registers->mode);
	bpf_compute(&p->program, BPF_AND, BPF_REG_1, registers->mode_mask);
	bpf_jump_if(p, BPF_REG_1, BPF_JNE, registers->mode_64, LABEL_OUT_EARLY);
	bpf_read(p, BPF_W, BPF_REG_1, BPF_REG_10, AT_REGS + registers->number);
	bpf_move(&p->program, BPF_REG_2, BPF_REG_7);
	bpf_compute(&p->program, BPF_RSH, BPF_REG_2, 32);
	bpf_jump_if_register(p, BPF_REG_1, BPF_JNE, BPF_REG_2, LABEL_OUT_EARLY);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_7, 32);
	bpf_compute(&p->program, BPF_RSH, BPF_REG_7, 32);
	bpf_read(p, BPF_DW, BPF_REG_9, BPF_REG_6, 8);
	bpf_compute(&p->program, BPF_RSH, BPF_REG_8, PID_SHIFT);

	/* key.fd = -1, key.name = 0; files' key with the pid and its epoch */
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY, BPF_REG_8);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_7);
	bpf_compute(&p->program, BPF_AND, BPF_REG_1, FLAG_CALL);
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY_CALL, BPF_REG_1);
	bpf_set(&p->program, BPF_REG_1, -1);
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY_FD, BPF_REG_1);
	bpf_set(&p->program, BPF_REG_1, 0);
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY_NAME, BPF_REG_1);
	bpf_write(p, BPF_W, BPF_REG_10, AT_FILE_REST, BPF_REG_1);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_INSTANCE, BPF_REG_1);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_NAME, BPF_REG_1);
	bpf_write(p, BPF_W, BPF_REG_10, AT_FILE, BPF_REG_8);
	epoch_address(p, BPF_REG_1, maps);
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_1, 0);
	bpf_write(p, BPF_W, BPF_REG_10, AT_FILE_EPOCH, BPF_REG_1);
}

/* AT_NAME: the number of the path or address that the call passed. */
static void read_name(struct bpf_labels *p, const struct io_maps *maps)
{
	unless(p, FLAG_PATH0 | FLAG_PATH1 | FLAG_CONNECT, LABEL_NO_NAME);
	for (int at = 0; at < (int)sizeof(struct io_name_key); at += 8)
		bpf_write_number(p, BPF_REG_10, AT_TEXT + at, 0);
	argument(p, BPF_REG_3, 1);
	bpf_jump_if(p, BPF_REG_7, BPF_JSET, FLAG_PATH1, LABEL_PATH);
	argument(p, BPF_REG_3, 0);
	bpf_jump_if(p, BPF_REG_7, BPF_JSET, FLAG_PATH0, LABEL_PATH);

	argument(p, BPF_REG_3, 1);
	argument(p, BPF_REG_2, 2);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_2, 32);
	bpf_compute(&p->program, BPF_RSH, BPF_REG_2, 32);
	bpf_jump_if(p, BPF_REG_2, BPF_JGT, 128, LABEL_NO_NAME);
	bpf_jump_if(p, BPF_REG_2, BPF_JLT, 2, LABEL_NO_NAME);
	bpf_move(&p->program, BPF_REG_1, BPF_REG_2);
	bpf_compute(&p->program, BPF_LSH, BPF_REG_1, IO_KIND_LEN_SHIFT);
	bpf_compute(&p->program, BPF_OR, BPF_REG_1, IO_KIND_ADDRESS);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_TEXT, BPF_REG_1);
	stack_address(p, BPF_REG_1, AT_TEXT + (int)offsetof(struct io_name_key, text));
	bpf_call_helper(&p->program, BPF_FUNC_probe_read_user);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_NO_NAME);
	bpf_jump_to(p, LABEL_FIND_NAME);

	bpf_label(p, LABEL_PATH);
	stack_address(p, BPF_REG_1, AT_TEXT + (int)offsetof(struct io_name_key, text));
	bpf_set(&p->program, BPF_REG_2, IO_TEXT_BYTES);
	bpf_call_helper(&p->program, BPF_FUNC_probe_read_user_str);
	bpf_jump_if(p, BPF_REG_0, BPF_JSLE, 0, LABEL_NO_NAME);

	bpf_label(p, LABEL_FIND_NAME);
	look_up(p, maps->names_fd, AT_TEXT);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_KNOWN_NAME);
	bpf_set(&p->program, BPF_REG_1, 1);
	state_address(p, BPF_REG_2, maps, offsetof(struct io_state, next_name));
	bpf_atomic(p, BPF_ADD | BPF_FETCH, BPF_REG_2, 0, BPF_REG_1);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_VALUE, BPF_REG_1);
	/* another CPU may have added it meanwhile */
	update(p, maps->names_fd, AT_TEXT, AT_VALUE, BPF_NOEXIST);
	look_up(p, maps->names_fd, AT_TEXT);
	bpf_jump_if(p, BPF_REG_0, BPF_JEQ, 0, LABEL_NO_NAME);
	bpf_label(p, LABEL_KNOWN_NAME);
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_0, 0);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_NAME, BPF_REG_1);
	bpf_label(p, LABEL_NO_NAME);
}

/* A call that opens a file: its descriptor gets the name, or the class, in register 3. */
static void follow_open(struct bpf_labels *p, const struct io_maps *maps)
{
	unless(p, FLAG_PATH0 | FLAG_PATH1, LABEL_NOT_OPEN);
	bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_10, AT_NAME);
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY_NAME, BPF_REG_3);
	bpf_jump_if(p, BPF_REG_9, BPF_JSLT, 0, LABEL_SUM);
	bpf_jump_if(p, BPF_REG_3, BPF_JNE, 0, LABEL_CLASS);
	bpf_set(&p->program, BPF_REG_3, IO_CLASS_FILE);
	bpf_label(p, LABEL_CLASS);
	set_file(p, maps, BPF_REG_9, BPF_REG_3);
	bpf_jump_to(p, LABEL_SUM);
	bpf_label(p, LABEL_NOT_OPEN);
}

/* A call that connects a socket: its descriptor gets the name of the address. */
static void follow_connect(struct bpf_labels *p, const struct io_maps *maps)
{
	unless(p, FLAG_CONNECT, LABEL_NOT_CONNECT);
	bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_10, AT_NAME);
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY_NAME, BPF_REG_3);
	bpf_jump_if(p, BPF_REG_3, BPF_JEQ, 0, LABEL_SUM);
	bpf_jump_if(p, BPF_REG_9, BPF_JEQ, 0, LABEL_CLASS);
	bpf_jump_if(p, BPF_REG_9, BPF_JNE, -EINPROGRESS_NUMBER, LABEL_SUM);
	bpf_label(p, LABEL_CLASS);
	argument(p, BPF_REG_4, 0);
	set_file(p, maps, BPF_REG_4, BPF_REG_3);
	bpf_jump_to(p, LABEL_SUM);
	bpf_label(p, LABEL_NOT_CONNECT);
}

/* A call that closes a descriptor. */
static void follow_close(struct bpf_labels *p, const struct io_maps *maps)
{
	unless(p, FLAG_CLOSE, LABEL_NOT_CLOSE);
	argument(p, BPF_REG_1, 0);
	bpf_write(p, BPF_W, BPF_REG_10, AT_FILE_FD, BPF_REG_1);
	forget(p, maps->files_fd, AT_FILE);
	bpf_jump_to(p, LABEL_OUT);
	bpf_label(p, LABEL_NOT_CLOSE);
}

/* A call that writes two new descriptors into memory. */
static void follow_pipes(struct bpf_labels *p, const struct io_maps *maps)
{
	unless(p, FLAG_PIPES0 | FLAG_PIPES3, LABEL_NOT_PIPES);
	bpf_jump_if(p, BPF_REG_9, BPF_JNE, 0, LABEL_OUT);
	argument(p, BPF_REG_3, 0);
	bpf_jump_if(p, BPF_REG_7, BPF_JSET, FLAG_PIPES0, LABEL_FRESH);
	argument(p, BPF_REG_3, 3);
	bpf_label(p, LABEL_FRESH);
	stack_address(p, BPF_REG_1, AT_PIPES);
	bpf_set(&p->program, BPF_REG_2, 2 * (int)sizeof(int32_t));
	bpf_call_helper(&p->program, BPF_FUNC_probe_read_user);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_OUT);
	for (int i = 0; i < 2; i++) {
		bpf_read(p, BPF_W, BPF_REG_4, BPF_REG_10, AT_PIPES + 4 * i);
		load_class(p, BPF_REG_3);
		set_file(p, maps, BPF_REG_4, BPF_REG_3);
	}
	bpf_jump_to(p, LABEL_OUT);
	bpf_label(p, LABEL_NOT_PIPES);
}

/* A call that copies a descriptor: the copy gets the same name. */
static void follow_copy(struct bpf_labels *p, const struct io_maps *maps)
{
	bpf_jump_if(p, BPF_REG_7, BPF_JSET, FLAG_DUP, LABEL_DUP);
	unless(p, FLAG_FCNTL, LABEL_NOT_DUP);
	argument(p, BPF_REG_1, 1);
	bpf_jump_if(p, BPF_REG_1, BPF_JEQ, F_DUPFD_NUMBER, LABEL_DUP);
	bpf_jump_if(p, BPF_REG_1, BPF_JNE, F_DUPFD_CLOEXEC_NUMBER, LABEL_OUT);
	bpf_label(p, LABEL_DUP);
	bpf_jump_if(p, BPF_REG_9, BPF_JSLT, 0, LABEL_OUT);
	argument(p, BPF_REG_1, 0);
	bpf_write(p, BPF_W, BPF_REG_10, AT_FILE_FD, BPF_REG_1);
	look_up(p, maps->files_fd, AT_FILE);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_COPY);
	bpf_set(&p->program, BPF_REG_3, IO_CLASS_COPIED);
	set_file(p, maps, BPF_REG_9, BPF_REG_3);
	bpf_jump_to(p, LABEL_OUT);
	bpf_label(p, LABEL_COPY);
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_0, 0);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_VALUE, BPF_REG_1);
	bpf_write(p, BPF_W, BPF_REG_10, AT_FILE_FD, BPF_REG_9);
	update(p, maps->files_fd, AT_FILE, AT_VALUE, BPF_ANY);
	bpf_jump_to(p, LABEL_OUT);
	bpf_label(p, LABEL_NOT_DUP);
}

/* Any other call that makes a descriptor: it gets the class of the call. */
static void follow_new(struct bpf_labels *p, const struct io_maps *maps)
{
	unless(p, FLAG_MAKES, LABEL_NOT_MAKES);
	bpf_jump_if(p, BPF_REG_9, BPF_JSLT, 0, LABEL_NOT_MAKES);
	load_class(p, BPF_REG_3);
	set_file(p, maps, BPF_REG_9, BPF_REG_3);
	bpf_label(p, LABEL_NOT_MAKES);
}

/* Of a counted call that takes a descriptor: the descriptor and its name, for the sum. */
static void find_descriptor(struct bpf_labels *p, const struct io_maps *maps)
{
	unless(p, FLAG_FD0 | FLAG_FD2, LABEL_NO_FD);
	argument(p, BPF_REG_1, 2);
	bpf_jump_if(p, BPF_REG_7, BPF_JSET, FLAG_FD2, LABEL_THIRD);
	argument(p, BPF_REG_1, 0);
	bpf_label(p, LABEL_THIRD);
	bpf_write(p, BPF_W, BPF_REG_10, AT_FILE_FD, BPF_REG_1);
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY_FD, BPF_REG_1);
	look_up(p, maps->files_fd, AT_FILE);
	bpf_jump_if(p, BPF_REG_0, BPF_JEQ, 0, LABEL_NOT_FOUND);
	bpf_read(p, BPF_W, BPF_REG_1, BPF_REG_0, 0);
	bpf_read(p, BPF_W, BPF_REG_2, BPF_REG_0, 4);
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY_NAME, BPF_REG_1);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_INSTANCE, BPF_REG_2);
	bpf_jump_if(p, BPF_REG_1, BPF_JLT, IO_NAME_FIRST, LABEL_NOT_FOUND);
	bpf_set(&p->program, BPF_REG_1, -1);
	bpf_write(p, BPF_W, BPF_REG_10, AT_KEY_FD, BPF_REG_1);
	bpf_set(&p->program, BPF_REG_1, 0);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_INSTANCE, BPF_REG_1);
	bpf_label(p, LABEL_NOT_FOUND);
	bpf_label(p, LABEL_NO_FD);
}

/* What the call does to descriptors, and of a counted one the descriptor and its name. */
static void follow_descriptors(struct bpf_labels *p, const struct io_maps *maps)
{
	follow_open(p, maps);
	follow_connect(p, maps);
	follow_close(p, maps);
	follow_pipes(p, maps);
	follow_copy(p, maps);
	follow_new(p, maps);
	find_descriptor(p, maps);
	bpf_label(p, LABEL_SUM);
}

/* Register 1 = the map of sums that AT_ACTIVE names. */
static void choose_sums(struct bpf_labels *p, const struct io_maps *maps)
{
	bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_10, AT_ACTIVE);
	bpf_load_map(&p->program, BPF_REG_1, maps->sums_fd[0]);
	bpf_jump_if(p, BPF_REG_3, BPF_JEQ, 0, LABEL_MAP);
	bpf_load_map(&p->program, BPF_REG_1, maps->sums_fd[1]);
	bpf_label(p, LABEL_MAP);
	stack_address(p, BPF_REG_2, AT_KEY);
}

/* Register 5 = the sum of the key; a new one if there is none. */
static void find_sum(struct bpf_labels *p, const struct io_maps *maps)
{
	bpf_move(&p->program, BPF_REG_1, BPF_REG_7);
	bpf_compute(&p->program, BPF_AND, BPF_REG_1, FLAG_CALL);
	bpf_jump_if(p, BPF_REG_1, BPF_JEQ, 0, LABEL_OUT);
	state_address(p, BPF_REG_1, maps, offsetof(struct io_state, active));
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_1, 0);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_ACTIVE, BPF_REG_1);
	choose_sums(p, maps);
	bpf_call_helper(&p->program, BPF_FUNC_map_lookup_elem);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_ADD);

	for (int at = 0; at < VALUE_BYTES; at += 8)
		bpf_write_number(p, BPF_REG_10, AT_FRESH + at, 0);
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_10, AT_INSTANCE);
	bpf_write(p, BPF_DW, BPF_REG_10, AT_FRESH + VALUE_OFFSET(instance), BPF_REG_1);
	choose_sums(p, maps);
	stack_address(p, BPF_REG_3, AT_FRESH);
	bpf_set(&p->program, BPF_REG_4, BPF_NOEXIST); /* another CPU may have added it meanwhile */
	bpf_call_helper(&p->program, BPF_FUNC_map_update_elem);
	choose_sums(p, maps);
	bpf_call_helper(&p->program, BPF_FUNC_map_lookup_elem);
	bpf_jump_if(p, BPF_REG_0, BPF_JNE, 0, LABEL_ADD);
	bpf_set(&p->program, BPF_REG_1, 1);
	state_address(p, BPF_REG_2, maps, offsetof(struct io_state, lost));
	bpf_atomic(p, BPF_ADD, BPF_REG_2, 0, BPF_REG_1);
	bpf_jump_to(p, LABEL_OUT);
	bpf_label(p, LABEL_ADD);
	bpf_move(&p->program, BPF_REG_5, BPF_REG_0);
}

static void add_one(struct bpf_labels *p, int at)
{
	bpf_set(&p->program, BPF_REG_1, 1);
	bpf_atomic(p, BPF_ADD, BPF_REG_5, at, BPF_REG_1);
}

/* Adds the call to the sum in register 5. */
static void add_call(struct bpf_labels *p)
{
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_10, AT_INSTANCE);
	bpf_read(p, BPF_DW, BPF_REG_2, BPF_REG_5, VALUE_OFFSET(instance));
	bpf_jump_if_register(p, BPF_REG_1, BPF_JEQ, BPF_REG_2, LABEL_SAME);
	bpf_set(&p->program, BPF_REG_1, -1);
	bpf_write(p, BPF_DW, BPF_REG_5, VALUE_OFFSET(instance), BPF_REG_1);
	bpf_label(p, LABEL_SAME);
	add_one(p, VALUE_OFFSET(count));

	bpf_jump_if(p, BPF_REG_9, BPF_JSGE, 0, LABEL_NO_ERROR);
	add_one(p, VALUE_OFFSET(errors));
	bpf_jump_if(p, BPF_REG_9, BPF_JEQ, -EAGAIN_NUMBER, LABEL_AGAIN);
	bpf_jump_if(p, BPF_REG_9, BPF_JEQ, -EINPROGRESS_NUMBER, LABEL_AGAIN);
	bpf_set(&p->program, BPF_REG_1, 0);
	bpf_combine(&p->program, BPF_SUB, BPF_REG_1, BPF_REG_9);
	bpf_write(p, BPF_DW, BPF_REG_5, VALUE_OFFSET(last_error), BPF_REG_1);
	bpf_jump_to(p, LABEL_TIMES);
	bpf_label(p, LABEL_AGAIN);
	add_one(p, VALUE_OFFSET(again));
	bpf_jump_to(p, LABEL_TIMES);

	bpf_label(p, LABEL_NO_ERROR);
	unless(p, FLAG_BYTES, LABEL_TIMES);
	bpf_jump_if(p, BPF_REG_9, BPF_JEQ, 0, LABEL_TIMES);
	bpf_atomic(p, BPF_ADD, BPF_REG_5, VALUE_OFFSET(bytes), BPF_REG_9);
	bpf_jump_if(p, BPF_REG_9, BPF_JGT, IO_PROBE_SMALL_MAX, LABEL_TIMES);
	add_one(p, VALUE_OFFSET(small));

	bpf_label(p, LABEL_TIMES);
	bpf_read(p, BPF_DW, BPF_REG_3, BPF_REG_10, AT_NS);
	bpf_atomic(p, BPF_ADD, BPF_REG_5, VALUE_OFFSET(time_ns), BPF_REG_3);
	bpf_read(p, BPF_DW, BPF_REG_0, BPF_REG_5, VALUE_OFFSET(longest_ns));
	/* register 0 becomes the stored value; a try fails if another CPU has just stored one */
	for (unsigned i = 0; i < LONGEST_TRIES; i++) {
		bpf_jump_if_register(p, BPF_REG_3, BPF_JLE, BPF_REG_0, LABEL_LONGEST);
		bpf_move(&p->program, BPF_REG_4, BPF_REG_3);
		bpf_atomic(p, BPF_CMPXCHG, BPF_REG_5, VALUE_OFFSET(longest_ns), BPF_REG_4);
	}
	bpf_label(p, LABEL_LONGEST);
}

int io_program_load_exit(const struct io_maps *maps)
{
	cleanup(freep) struct bpf_labels *p = bpf_labels_new();

	if (!p)
		return -ENOMEM;
	begin_exit(p, maps);
	unless(p, FLAG_EXEC, LABEL_NOT_EXEC);
	bpf_jump_if(p, BPF_REG_9, BPF_JNE, 0, LABEL_OUT);
	state_address(p, BPF_REG_2, maps, offsetof(struct io_state, waiting));
	bpf_set(&p->program, BPF_REG_1, 0);
	bpf_write(p, BPF_DW, BPF_REG_2, 0, BPF_REG_1);
	bpf_jump_to(p, LABEL_OUT);
	bpf_label(p, LABEL_NOT_EXEC);
	read_name(p, maps);
	follow_descriptors(p, maps);
	find_sum(p, maps);
	add_call(p);
	bpf_label(p, LABEL_OUT);
	bpf_label(p, LABEL_OUT_EARLY);
	bpf_exit(&p->program, 0);
	return bpf_labels_load(p, BPF_PROG_TYPE_RAW_TRACEPOINT);
}

/* ---- sched_process_exit ---- */

int io_program_load_end(const struct io_maps *maps)
{
	cleanup(freep) struct bpf_labels *p = bpf_labels_new();

	if (!p)
		return -ENOMEM;
	bpf_call_helper(&p->program, BPF_FUNC_get_current_pid_tgid);
	bpf_move(&p->program, BPF_REG_8, BPF_REG_0);
	store_tid(p, BPF_REG_8);
	forget(p, maps->calls_fd, AT_TID);
	bpf_read(p, BPF_DW, BPF_REG_1, BPF_REG_10, AT_TID);
	bpf_compute(&p->program, BPF_RSH, BPF_REG_8, PID_SHIFT);
	bpf_jump_if_register(p, BPF_REG_1, BPF_JNE, BPF_REG_8, LABEL_OUT);
	epoch_address(p, BPF_REG_3, maps);
	bpf_set(&p->program, BPF_REG_1, 1);
	bpf_atomic(p, BPF_ADD, BPF_REG_3, 0, BPF_REG_1);
	bpf_label(p, LABEL_OUT);
	bpf_exit(&p->program, 0);
	return bpf_labels_load(p, BPF_PROG_TYPE_RAW_TRACEPOINT);
}
