/*
 * A kernel's perf events for tests: these functions replace src/perf/kernel_event.c. An event is a
 * memory file, large enough for every ring, so the recorder can map it and poll it.
 */
#ifndef SPOOR_TESTS_UNIT_FAKE_EVENTS_H
#define SPOOR_TESTS_UNIT_FAKE_EVENTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/kernel_event.h"
#include "unit/test.h"

#define FAKE_EVENTS_MAX 4096u
#define FAKE_FILE_BYTES (8u << 20)

struct fake_event {
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	int fd;
	int owner; /* the event into whose ring this one writes; -1: its own ring */
	unsigned enabled;
	unsigned disabled;
	unsigned asked_for_id;
	const char *filter; /* NULL: none */
};

/* Returns 0, or the error with which the simulated kernel refuses the event. */
typedef int fake_event_rule(const struct perf_event_attr *attr, pid_t pid, int cpu);

static struct {
	struct fake_event items[FAKE_EVENTS_MAX];
	unsigned count;
	unsigned probes;       /* events that were opened only to try the attributes */
	fake_event_rule *rule; /* NULL: everything is allowed */
	size_t ring_max;       /* mmap() fails with EPERM for longer rings; 0: never */
	int enable_error;      /* for the events of enable_error_cpu */
	int enable_error_cpu;  /* -1: all CPUs */
	void (*on_open)(pid_t pid);
} fake_events;

static void fake_events_reset(void)
{
	memset(&fake_events, 0, sizeof(fake_events));
	fake_events.enable_error_cpu = -1;
}

static struct fake_event *fake_event_of(int fd)
{
	for (unsigned i = fake_events.count; i-- > 0;)
		if (fake_events.items[i].fd == fd)
			return &fake_events.items[i];
	return NULL;
}

int event_open(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int r = fake_events.rule ? fake_events.rule(attr, pid, cpu) : 0;

	if (r < 0)
		return r;
	int fd = memfd_create("event", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0 && ftruncate(fd, FAKE_FILE_BYTES) == 0);
	if (pid == 0 && cpu == -1) {
		fake_events.probes++;
		return fd;
	}
	/* the recorder wants to be woken when a quarter of the ring is full */
	if (fake_events.ring_max && attr->wakeup_watermark * 4ul > fake_events.ring_max)
		assert_true(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0);
	assert_true(fake_events.count < FAKE_EVENTS_MAX);
	fake_events.items[fake_events.count++] =
		(struct fake_event){ .attr = *attr, .pid = pid, .cpu = cpu, .fd = fd, .owner = -1 };
	if (fake_events.on_open)
		fake_events.on_open(pid);
	return fd;
}

int event_enable(int fd)
{
	struct fake_event *event = fake_event_of(fd);

	if (!event)
		return -EBADF;
	if (fake_events.enable_error &&
		(fake_events.enable_error_cpu < 0 || fake_events.enable_error_cpu == event->cpu))
		return fake_events.enable_error;
	event->enabled++;
	return 0;
}

int event_disable(int fd)
{
	struct fake_event *event = fake_event_of(fd);

	if (!event)
		return -EBADF;
	event->disabled++;
	return 0;
}

int event_read_id(int fd, uint64_t *ret_id)
{
	struct fake_event *event = fake_event_of(fd);

	if (!event)
		return -EBADF;
	event->asked_for_id++;
	*ret_id = 1000u + (uint64_t)fd;
	return 0;
}

int event_filter(int fd, const char *filter)
{
	struct fake_event *event = fake_event_of(fd);

	if (!event)
		return -EBADF;
	event->filter = filter;
	return 0;
}

int event_redirect(int fd, int owner)
{
	struct fake_event *event = fake_event_of(fd);

	if (!event || !fake_event_of(owner))
		return -EBADF;
	event->owner = owner;
	return 0;
}

/* This kernel runs no programs; the event that was opened for one is not counted. */
int event_run_program(int fd, int program_fd)
{
	(void)program_fd;
	assert_true(fake_events.count && fake_events.items[fake_events.count - 1].fd == fd);
	fake_events.count--;
	return -EINVAL;
}

#endif
