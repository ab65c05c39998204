/*
 * Statistics without a session: SPOOR_GC_LOG=FILE, one line for each pause, one word for each
 * column; %p in the name is the process id.
 *
 * Each line is one write at the end of the file, so several processes may share it and a killed one
 * leaves whole lines. It is written after the threads run again. The last line has the sums; it is
 * missing if a process ends without running destructors.
 */
#include "gc/proxy/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gc/events.h"

static int log_fd = -1;
static uint64_t begin_ns;
/* Written when the threads run again, possibly while the next pause ends. */
static struct {
	uint64_t pauses;
	uint64_t pause_ns;
	uint64_t longest_ns;
	uint64_t suspend_ns;
	uint64_t longest_suspend_ns;
} sums;

static const char *const trigger_words[] = {
	[TRIGGER_UNKNOWN] = "unknown",
	[TRIGGER_ALLOCATION] = "allocation",
	[TRIGGER_LARGE_ALLOCATION] = "large",
	[TRIGGER_PINNED_ALLOCATION] = "pinned",
	[TRIGGER_INDUCED] = "induced",
	[TRIGGER_LOW_MEMORY] = "low-memory",
	[TRIGGER_BACKGROUND] = "background",
};

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* it cannot fail */
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void put_line(const char *text, int len, size_t size)
{
	if (len <= 0)
		return;
	ssize_t written = write(log_fd, text, (size_t)len < size ? (size_t)len : size - 1);
	(void)written; /* a full disk must not stop a collection */
}

bool proxy_log_on(void)
{
	return log_fd >= 0;
}

void proxy_log_open(void)
{
	const char *setting = getenv("SPOOR_GC_LOG");
	char path[1024];
	size_t len = 0;

	if (!setting || !*setting)
		return;
	for (const char *p = setting; *p && len < sizeof(path) - 16; p++) {
		if (p[0] == '%' && p[1] == 'p') {
			len += (size_t)snprintf(path + len, sizeof(path) - len, "%d",
				(int)getpid());
			p++;
		} else {
			path[len++] = *p;
		}
	}
	path[len] = '\0';
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		(void)fprintf(stderr,
			"libspoorgcproxy: cannot write SPOOR_GC_LOG '%s': %s. The program runs without it; "
			"name a file in a folder that exists.\n",
			path, strerror(errno));
		return;
	}
	char text[2048];
	begin_ns = now_ns();
	log_fd = fd;
	put_line(text,
		snprintf(text, sizeof(text),
			"# libspoorgcproxy %s, process %d, .NET %u, collector %s; times in us, "
			"sizes in bytes\n"
			"# at_ms process collection generation kind trigger trigger_bytes "
			"trigger_thread pause suspend prepare roots mark reclaim "
			"finish restart moved threads contexts context_bytes refills large "
			"large_bytes pinned pinned_bytes handles "
			"handles_pinned handles_created level keyword private_level "
			"private_keyword\n",
			SPOOR_VERSION, (int)getpid(), proxy.runtime->dotnet, proxy.collector),
		sizeof(text));
}

static int32_t status(const int32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

static void add(uint64_t *sum, uint64_t ns)
{
	__atomic_fetch_add(sum, ns, __ATOMIC_RELAXED);
}

static void keep_longest(uint64_t *longest, uint64_t ns)
{
	uint64_t before = __atomic_load_n(longest, __ATOMIC_RELAXED);

	while (before < ns && !__atomic_compare_exchange_n(longest, &before, ns, true,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void proxy_log_pause(const struct proxy_pause *pause)
{
	char text[1024];
	uint64_t live = 0, created = 0;

	for (size_t i = 0; i < GC_HANDLE_TYPES; i++) {
		live += pause->handles_live[i];
		created += pause->since.handles_created[i];
	}
	add(&sums.pauses, 1);
	add(&sums.pause_ns, pause->pause_ns);
	add(&sums.suspend_ns, pause->suspend_ns);
	keep_longest(&sums.longest_ns, pause->pause_ns);
	keep_longest(&sums.longest_suspend_ns, pause->suspend_ns);
	put_line(text,
		snprintf(text, sizeof(text),
			"%.3f %d %u %u %s %s %llu %u %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %d %u "
			"%u %llu %llu %llu %llu %llu %llu "
			"%llu %llu %llu %d 0x%x %d 0x%x\n",
			(double)(now_ns() - begin_ns) / 1e6, (int)getpid(), pause->collection,
			pause->generation, pause->background ? "background" : "blocking",
			trigger_words[pause->trigger], (unsigned long long)pause->trigger_bytes,
			pause->trigger_thread, us(pause->pause_ns), us(pause->suspend_ns),
			us(pause->prepare_ns), us(pause->roots_ns), us(pause->mark_ns),
			us(pause->reclaim_ns), us(pause->finish_ns), us(pause->restart_ns),
			pause->moved, pause->threads, pause->contexts,
			(unsigned long long)pause->context_bytes,
			(unsigned long long)pause->since.refills,
			(unsigned long long)pause->since.large_objects,
			(unsigned long long)pause->since.large_bytes,
			(unsigned long long)pause->since.pinned_objects,
			(unsigned long long)pause->since.pinned_bytes, (unsigned long long)live,
			(unsigned long long)(pause->handles_live[GC_HANDLE_PINNED] +
					     pause->handles_live[GC_HANDLE_ASYNC_PINNED]),
			(unsigned long long)created,
			status(&gc_event_status[GC_EVENT_DEFAULT].level),
			(unsigned)status(&gc_event_status[GC_EVENT_DEFAULT].keyword),
			status(&gc_event_status[GC_EVENT_PRIVATE].level),
			(unsigned)status(&gc_event_status[GC_EVENT_PRIVATE].keyword)),
		sizeof(text));
}

__attribute__((destructor)) static void log_end(void)
{
	char text[512];

	if (log_fd < 0)
		return;
	double all_ms = (double)(now_ns() - begin_ns) / 1e6;
	put_line(text,
		snprintf(text, sizeof(text),
			"# process %d end: %.0f ms, %llu pauses, %.3f ms paused (%.2f %%), longest "
			"%.3f ms, %.3f ms of it to suspend, longest %.3f ms\n",
			(int)getpid(), all_ms, (unsigned long long)sums.pauses,
			(double)sums.pause_ns / 1e6,
			all_ms > 0 ? 100 * (double)sums.pause_ns / 1e6 / all_ms : 0,
			(double)sums.longest_ns / 1e6, (double)sums.suspend_ns / 1e6,
			(double)sums.longest_suspend_ns / 1e6),
		sizeof(text));
}
