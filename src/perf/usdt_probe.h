/*
 * USDT probes: an uprobe at each site; a BPF program reads the arguments in the probed thread and writes them, as
 * a sample with the thread's call chain, into the ring of its CPU.
 *
 *   usdt_probe_open(false, &probe, &diag);
 *   for each CPU: event_open(usdt_probe_attribute()); usdt_probe_connect(probe, cpu, fd);
 *   usdt_probe_describe(probe, operands, count, &sites[i].operands);
 *   usdt_probe_attach(probe, fd, sites, count, &error);    at any time; a sample has its site's number
 *   for each sample: if (usdt_hit_read(record->raw, record->raw_size, &hit)) ...
 *   usdt_probe_close(probe);
 *
 * A site is probed in all processes that map the file; the kernel raises its semaphore in each of them. Strings
 * are read where an argument could be an address: it is unsigned and has 8 bytes.
 */
#ifndef SPOOR_PERF_USDT_PROBE_H
#define SPOOR_PERF_USDT_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct perf_event_attr;
struct usdt_probe;

#define USDT_TEXT_MAX       255u /* bytes of a string that are read */
#define USDT_HIT_VALUES_MAX 48u

enum usdt_operand_kind {
	USDT_OPERAND_NONE, /* it cannot be read */
	USDT_OPERAND_CONSTANT,
	USDT_OPERAND_REGISTER,
	USDT_OPERAND_MEMORY,
};

/* An operand as usdt_arguments.h describes it, in the layout that the program reads. */
struct usdt_operand {
	int64_t value; /* constant; displacement; of a symbol: its distance from the probe's code */
	uint16_t base; /* offset in struct pt_regs; UINT16_MAX: none */
	uint16_t index; /* offset in struct pt_regs; UINT16_MAX: none */
	uint8_t scale;  /* of the index, as a shift */
	uint8_t shift;  /* of a register's value */
	uint8_t size;   /* 1, 2, 4 or 8 bytes */
	uint8_t kind;   /* enum usdt_operand_kind */
	uint8_t is_signed;
	uint8_t is_text; /* it may be the address of a string, which is read */
	uint8_t unused[6];
};

struct usdt_site {
	uint64_t offset;    /* of the probe's code, in the file */
	uint64_t semaphore; /* of its semaphore, in the file; 0: none */
	uint32_t number;    /* the caller's */
	uint32_t operands;  /* usdt_probe_describe() */
};

/* The sample of one event of a probe, decoded in place. Values and texts are borrowed. */
struct usdt_hit {
	uint32_t number;     /* of the site */
	unsigned count;      /* of values */
	uint64_t unreadable; /* bit i: value i could not be read, and is 0 */
	uint64_t texts;      /* bit i: value i is the address of a string */
	const uint8_t *values;
	const char *text; /* the strings in order, each with a NUL */
	size_t text_size;
};

/*
 * -EPERM, -EACCES: the right to use BPF is missing. Other errors: the kernel is too old. The diag has a sentence.
 * `events`: attach by perf events, as with a kernel before 6.6, which takes a descriptor for each site and
 * CAP_SYS_ADMIN.
 */
int usdt_probe_open(bool events, struct usdt_probe **ret_probe, struct diag *diag);

/* Whether CAP_SYS_ADMIN is needed to attach; else CAP_PERFMON and CAP_BPF suffice. */
bool usdt_probe_needs_admin(const struct usdt_probe *probe);

/*
 * The attributes of the event of a CPU that takes the samples: in the layout and on the clock of `sampling`, with
 * copies of at most `stack_bytes` of the user stack.
 */
void usdt_probe_attribute(const struct perf_event_attr *sampling, uint32_t stack_bytes,
	bool user_only, bool kernel_only, struct perf_event_attr *ret_attr);

/* The event takes the samples of its CPU from now on. -ERANGE: no CPU has this number. */
int usdt_probe_connect(struct usdt_probe *probe, int32_t cpu, int fd);

/* The operands of one or more sites, at most USDT_HIT_VALUES_MAX; equal ones get one number. 0 or a negative errno. */
int usdt_probe_describe(struct usdt_probe *probe, const struct usdt_operand *operands,
	unsigned count, uint32_t *ret_operands);

/*
 * Probes sites of a file until usdt_probe_close(). Returns how many are probed; if not all are, *ret_error is the
 * last reason: -EMFILE, too many files are open; another negative errno, the kernel refuses the place.
 */
size_t usdt_probe_attach(struct usdt_probe *probe, int fd, const struct usdt_site *sites,
	size_t count, int *ret_error);

/* The perf events are about to be disabled: from now on, probes count neither as samples nor as lost. */
void usdt_probe_end(struct usdt_probe *probe);

/* Events of probes without a sample: too many at the same time on one CPU. Without those that a full ring lost. */
uint64_t usdt_probe_lost(const struct usdt_probe *probe);

/* False: the raw data is not of a USDT probe, or damaged. */
bool usdt_hit_read(const uint8_t *raw, size_t size, struct usdt_hit *ret_hit);

/* Value i, sign-extended if it is signed. */
uint64_t usdt_hit_value(const struct usdt_hit *hit, unsigned i);

/* Removes all probes. The kernel may still be removing them after the call: see closing.h. */
void usdt_probe_close(struct usdt_probe *probe);

#endif
