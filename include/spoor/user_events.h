/*
 * The kernel's user_events (Linux 6.4 or later) and EventHeader, the self-describing format that
 * perf and other tools decode. Used by libspoor's logger and by the files that `spoor gen` writes.
 * Not for other code: names and meanings may change with them.
 *
 * A tracepoint is called Provider_L4K1: a provider, a level and keywords, both hexadecimal. All events
 * of that level and these keywords share it. The kernel sets a bit in a word of the process while a
 * tool has enabled the tracepoint. An event is
 *
 *   u32 index of the tracepoint, as the kernel wants it
 *   header, 8 bytes: u8 flags, u8 version, u16 id, u16 tag, u8 opcode, u8 level
 *   extension: u16 size, u16 kind, the activity id (16 bytes) and the related one (16 bytes or absent)
 *   extension: u16 size, u16 kind, the description: name and zero byte, then of each field the name
 *     and zero byte, a byte for the encoding and, with its top bit, one for the format
 *   payload
 */
#ifndef SPOOR_USER_EVENTS_H
#define SPOOR_USER_EVENTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <spoor/generated.h>

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

/* ---- EventHeader ---- */

enum spoor_event_header {
	SPOOR_EVENT_HEADER_SIZE = 8,
	/* 64-bit pointers, little-endian, an extension follows */
	SPOOR_EVENT_HEADER_FLAGS = 7,
	SPOOR_EVENT_HEADER_DESCRIPTION = 1,
	SPOOR_EVENT_HEADER_ACTIVITY = 2,
	/* in the kind of an extension: another one follows */
	SPOOR_EVENT_HEADER_MORE = 0x8000,
};

enum spoor_event_header_encoding {
	SPOOR_ENCODING_STRUCT = 1, /* the format is the number of its fields, which follow */
	SPOOR_ENCODING_VALUE8 = 2,
	SPOOR_ENCODING_VALUE16 = 3,
	SPOOR_ENCODING_VALUE32 = 4,
	SPOOR_ENCODING_VALUE64 = 5,
	SPOOR_ENCODING_VALUE128 = 6,
	SPOOR_ENCODING_ZERO_TEXT16 = 8,    /* UTF-16 and a 16-bit zero */
	SPOOR_ENCODING_COUNTED_BYTES = 10, /* u16 length, bytes */
	/* flags */
	SPOOR_ENCODING_ARRAY = 0x40, /* u16 count, then the elements */
	SPOOR_ENCODING_FORMAT = 0x80,
};

enum spoor_event_header_format {
	SPOOR_FORMAT_DEFAULT = 0, /* unsigned number, UTF-8 or UTF-16 */
	SPOOR_FORMAT_SIGNED = 2,
	SPOOR_FORMAT_HEX = 3,
	SPOOR_FORMAT_PID = 5,
	SPOOR_FORMAT_BOOLEAN = 7,
	SPOOR_FORMAT_FLOAT = 8,
	SPOOR_FORMAT_BYTES = 9,
	SPOOR_FORMAT_TEXT = 11,
	SPOOR_FORMAT_XML = 13,
	SPOOR_FORMAT_JSON = 14,
	SPOOR_FORMAT_UUID = 15,
	SPOOR_FORMAT_PORT = 16,
	SPOOR_FORMAT_IPV4 = 17,
};

/* With the final zero. */
#define SPOOR_USER_EVENTS_NAME_MAX 256

/* EventHeader has no level 0: such events, which every session gets, are critical. */
static inline unsigned spoor_user_events_level(unsigned level)
{
	return level ? level : 1;
}

/* ---- The kernel's interface ---- */

struct spoor_user_events_register_ {
	uint32_t size;
	uint8_t enable_bit;
	uint8_t enable_size;
	uint16_t flags;
	uint64_t enable_address;
	uint64_t description;
	uint32_t index; /* written by the kernel */
} __attribute__((packed));

struct spoor_user_events_unregister_ {
	uint32_t size;
	uint8_t disable_bit;
	uint8_t reserved;
	uint16_t reserved2;
	uint64_t disable_address;
} __attribute__((packed));

/* O_CLOEXEC, which strict ISO C does not declare. */
#define SPOOR_USER_EVENTS_OPEN_ (O_RDWR | 02000000)

/* A descriptor for the process, or a negative errno; -ENOENT: the kernel has no user_events. */
static inline int spoor_user_events_open(void)
{
	int fd = open("/sys/kernel/tracing/user_events_data", SPOOR_USER_EVENTS_OPEN_);

	if (fd < 0 && errno == ENOENT)
		fd = open("/sys/kernel/debug/tracing/user_events_data", SPOOR_USER_EVENTS_OPEN_);
	return fd < 0 ? -errno : fd;
}

/*
 * Makes the tracepoint, or takes the existing one of this name. From here on the kernel sets bit 0
 * of the word while a tool has enabled it. 0 or a negative errno.
 */
static inline int spoor_user_events_register(int fd, const char *name, uint32_t *word,
	uint32_t *ret_index)
{
	struct spoor_user_events_register_ request;
	char text[SPOOR_USER_EVENTS_NAME_MAX + 96];

	memset(&request, 0, sizeof(request));
	(void)snprintf(text, sizeof(text),
		"%s u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level", name);
	request.size = sizeof(request);
	request.enable_size = sizeof(*word);
	request.enable_address = (uintptr_t)word;
	request.description = (uintptr_t)text;
	if (ioctl(fd, _IOWR('*', 0, void *), &request) < 0)
		return -errno;
	*ret_index = request.index;
	return 0;
}

/* The kernel no longer writes the word, which is 0. */
static inline void spoor_user_events_unregister(int fd, uint32_t *word)
{
	struct spoor_user_events_unregister_ request;

	memset(&request, 0, sizeof(request));
	request.size = sizeof(request);
	request.disable_address = (uintptr_t)word;
	(void)ioctl(fd, _IOW('*', 2, void *), &request);
	__atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

static inline bool spoor_user_events_enabled(const uint32_t *word)
{
	return __builtin_expect(__atomic_load_n(word, __ATOMIC_RELAXED) != 0, 0);
}

/*
 * Writes one event. `header` has 8 bytes, and `description` what follows the size and the kind of
 * its extension, at most 65,535 bytes. The ids are 16 bytes as .NET writes them, or NULL. 0, or a
 * negative errno: -EBADF if no tool has enabled the tracepoint. One system call; also in signal
 * handlers.
 */
static inline int spoor_user_events_write(int fd, uint32_t index, const uint8_t *header,
	const void *description, size_t description_size, const struct spoor_guid *activity,
	const struct spoor_guid *related, const void *payload, size_t payload_size)
{
	uint8_t head[4 + SPOOR_EVENT_HEADER_SIZE + 4 + 32 + 4];
	const uint8_t *const end = head + sizeof(head);
	uint8_t *at = spoor_generated_put_u32(head, end, index);
	struct iovec parts[3];

	at = spoor_put_within(at, end, header, SPOOR_EVENT_HEADER_SIZE);
	if (activity) {
		at = spoor_generated_put_u16(at, end, related ? 32 : 16);
		at = spoor_generated_put_u16(at, end,
			SPOOR_EVENT_HEADER_ACTIVITY | SPOOR_EVENT_HEADER_MORE);
		at = spoor_generated_put_uuid(at, end, activity);
		if (related)
			at = spoor_generated_put_uuid(at, end, related);
	}
	at = spoor_generated_put_u16(at, end, (uint16_t)description_size);
	at = spoor_generated_put_u16(at, end, SPOOR_EVENT_HEADER_DESCRIPTION);
	parts[0].iov_base = head;
	parts[0].iov_len = (size_t)(at - head);
	parts[1].iov_base = (void *)(uintptr_t)description;
	parts[1].iov_len = description_size;
	parts[2].iov_base = (void *)(uintptr_t)payload;
	parts[2].iov_len = payload_size;
	return writev(fd, parts, payload_size ? 3 : 2) < 0 ? -errno : 0;
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
