/*
 * See recover_file.h: the writing side. Space in the file is allocated by atomic additions, so that
 * a ring can be made in a signal handler.
 */
#include "lib/recover/recover_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/event/provider.h"
#include "lib/event/thread_ring.h"
#include "lib/platform/platform.h"

static int file_fd = -1;
static uint8_t *file_memory; /* its first RECOVER_BYTES; mapped until the process ends */

static struct recover_head *head(void)
{
	return (struct recover_head *)(void *)file_memory;
}

int recover_file_make(const char *path)
{
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)
		      : platform_memory_file("spoor-rings");

	if (fd < 0)
		return path ? -errno : fd;
	int r = platform_file_grow(fd, RECOVER_BYTES);
	if (r) {
		close(fd);
		return r;
	}
	file_memory = platform_map_file(fd, 0, RECOVER_BYTES);
	if (!file_memory) {
		close(fd);
		return -ENOMEM;
	}
	head()->head_bytes = sizeof(struct recover_head);
	head()->pointer_bytes = sizeof(void *);
	head()->process_id = platform_process_id();
	head()->metadata_offset = RECOVER_METADATA;
	head()->rings_offset = RECOVER_RINGS;
	head()->fronts_offset = RECOVER_FRONTS;
	head()->bytes_used = RECOVER_BYTES;
	platform_command_line(head()->command_line, sizeof(head()->command_line));
	memcpy(head()->magic, RECOVER_MAGIC, sizeof(head()->magic));
	file_fd = fd;
	return 0;
}

void recover_file_done(void)
{
	/* The child has no mapping of it. */
	file_memory = NULL;
	platform_close(file_fd);
	file_fd = -1;
}

uint8_t *recover_file_ring(size_t size, uint64_t thread_id, struct ring_front **ret_front)
{
	if (!file_memory)
		return NULL;
	uint64_t index = __atomic_fetch_add(&head()->ring_count, 1, __ATOMIC_RELAXED);
	if (index >= RECOVER_RINGS_MAX)
		return NULL;
	uint64_t offset = __atomic_fetch_add(&head()->bytes_used, size, __ATOMIC_RELAXED);
	if (platform_file_grow(file_fd, offset + size))
		return NULL;
	uint8_t *base = platform_map_twice(file_fd, offset, size);
	if (!base)
		return NULL;
	struct ring_front *fronts = (struct ring_front *)(void *)(file_memory + RECOVER_FRONTS);
	struct recover_ring *rings = (struct recover_ring *)(void *)(file_memory + RECOVER_RINGS);
	fronts[index].thread_id = thread_id;
	rings[index].offset = offset;
	__atomic_store_n(&rings[index].size, size, __ATOMIC_RELEASE);
	*ret_front = &fronts[index];
	return base;
}

void recover_file_entry(const struct event_entry *entry)
{
	size_t plan_bytes = entry->plan_count * sizeof(struct plan_step);
	size_t metadata_bytes = (entry->metadata_size + 7u) & ~7u;
	size_t bytes = sizeof(struct recover_event) + metadata_bytes + plan_bytes;

	if (!file_memory)
		return;
	uint64_t used = head()->metadata_used;
	if (RECOVER_METADATA_BYTES - used < bytes)
		return; /* events of this kind cannot be decoded from the file */
	uint8_t *at = file_memory + RECOVER_METADATA + used;
	struct recover_event event = {
		.bytes = (uint32_t)bytes,
		.index = entry->index,
		.flags = entry->flags,
		.metadata_size = entry->metadata_size,
		.plan_count = entry->plan_count,
	};
	memcpy(at, &event, sizeof(event));
	memcpy(at + sizeof(event), entry->metadata, entry->metadata_size);
	memcpy(at + sizeof(event) + metadata_bytes, entry->plan, plan_bytes);
	__atomic_store_n(&head()->metadata_used, used + bytes, __ATOMIC_RELEASE);
}

void recover_file_clock(const struct clock_line *line, struct clock_pair newest)
{
	if (!file_memory)
		return;
	head()->counter = line->counter;
	if (!head()->pairs[0].ticks) {
		head()->utc_ns = platform_utc_ns() - (platform_now_ns() - line->pairs[0].ns);
		head()->pairs[0] = line->pairs[0];
	}
	head()->pairs[1] = newest;
}
