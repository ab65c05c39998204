/* See kernel_event.h. */
#include "perf/kernel_event.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int event_open(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int event_enable(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

int event_disable(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

int event_read_id(int fd, uint64_t *ret_id)
{
	return ioctl(fd, PERF_EVENT_IOC_ID, ret_id) < 0 ? -errno : 0;
}

int event_redirect(int fd, int owner)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, owner) < 0 ? -errno : 0;
}

int event_filter(int fd, const char *filter)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0 ? -errno : 0;
}

int event_run_program(int fd, int program_fd)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd) < 0 ? -errno : 0;
}
