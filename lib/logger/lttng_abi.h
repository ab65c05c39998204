/*
 * The binary interface of LTTng-UST 2.13 (liblttng-ust.so.1, liblttng-ust-tracepoint.so.1), which is
 * loaded at run time. Structs of that library grow at their end only; `struct_size` says how much of
 * one its maker knows. The names are those of <lttng/ust-events.h> without "lttng_ust_".
 */
#ifndef SPOOR_LIB_LOGGER_LTTNG_ABI_H
#define SPOOR_LIB_LOGGER_LTTNG_ABI_H

#include <stddef.h>
#include <stdint.h>

#define LTTNG_PROVIDER_MAJOR 3u
#define LTTNG_PROVIDER_MINOR 0u

enum lttng_type {
	LTTNG_INTEGER = 0,
	LTTNG_STRING = 1,
	LTTNG_FLOAT = 2,
	LTTNG_ARRAY = 5,
	LTTNG_SEQUENCE = 6,
};

enum lttng_encoding {
	LTTNG_ENCODING_NONE = 0,
	LTTNG_ENCODING_UTF8 = 1,
};

struct lttng_type_common {
	uint32_t type; /* enum lttng_type */
};

struct lttng_integer {
	struct lttng_type_common parent;
	uint32_t struct_size;
	unsigned int size_bits;
	unsigned short alignment_bits;
	unsigned int is_signed : 1;
	unsigned int reverse_byte_order : 1;
	unsigned int base;
};

struct lttng_float {
	struct lttng_type_common parent;
	uint32_t struct_size;
	unsigned int exponent_bits;
	unsigned int mantissa_bits; /* with the sign */
	unsigned short alignment_bits;
	unsigned int reverse_byte_order : 1;
};

struct lttng_string {
	struct lttng_type_common parent;
	uint32_t struct_size;
	uint32_t encoding;
};

struct lttng_array {
	struct lttng_type_common parent;
	uint32_t struct_size;
	const struct lttng_type_common *element;
	unsigned int length;
	unsigned int alignment_bits;
	uint32_t encoding;
};

struct lttng_sequence {
	struct lttng_type_common parent;
	uint32_t struct_size;
	const char *length_name; /* NULL: the field before it */
	const struct lttng_type_common *element;
	unsigned int alignment_bits;
	uint32_t encoding;
};

struct lttng_field {
	uint32_t struct_size;
	const char *name;
	const struct lttng_type_common *type;
	unsigned int no_write : 1;
	unsigned int no_filter : 1;
};

struct lttng_class {
	uint32_t struct_size;
	const struct lttng_field *const *fields;
	size_t field_count;
	void (*probe_callback)(void);
	const char *signature;
	const struct lttng_provider *provider;
};

struct lttng_event {
	uint32_t struct_size;
	const char *name;
	const struct lttng_provider *provider;
	const struct lttng_class *class;
	const int **log_level;
	const char **model_emf_uri;
};

struct lttng_provider {
	uint32_t struct_size;
	const char *name;
	const struct lttng_event *const *events;
	unsigned int event_count;
	uint32_t major;
	uint32_t minor;
};

struct lttng_probe {
	void (*function)(void); /* NULL: the end of the list */
	void *data;
};

/* A call site. */
struct lttng_tracepoint {
	uint32_t struct_size;
	const char *provider;
	const char *event;
	int state; /* atomic; not 0: a session has enabled the event */
	struct lttng_probe *probes;
	int *provider_reference;
	const char *signature;
};

struct lttng_probe_context {
	uint32_t struct_size;
	void *ip;
};

/* What a probe gets: an event that one session or one trigger has enabled. */
enum lttng_enabled_type {
	LTTNG_RECORDER = 0,
	LTTNG_NOTIFIER = 1,
};

struct lttng_enabled {
	uint32_t struct_size;
	void *private;
	uint32_t type; /* enum lttng_enabled_type; later versions have more */
	void *child;   /* struct lttng_recorder or lttng_notifier */
	int enabled;
	int has_filter;
	int (*run_filter)(const struct lttng_enabled *event, const char *stack,
		struct lttng_probe_context *context, void *filter_context); /* 0: accepted */
};

struct lttng_abi_session {
	uint32_t struct_size;
	void *private;
	int active;
};

struct lttng_channel_common {
	uint32_t struct_size;
	void *private;
	uint32_t type;
	void *child;
	int enabled;
	struct lttng_abi_session *session;
};

struct lttng_buffer_context {
	uint32_t struct_size;
	void *client; /* the recorder */
	size_t data_size;
	int largest_align;
	struct lttng_probe_context *probe_context;
	void *private;
};

struct lttng_buffer_ops {
	uint32_t struct_size;
	void *private;
	int (*reserve)(struct lttng_buffer_context *context);
	void (*commit)(struct lttng_buffer_context *context);
	void (*write)(struct lttng_buffer_context *context, const void *bytes, size_t size,
		size_t alignment);
};

struct lttng_channel {
	uint32_t struct_size;
	struct lttng_channel_common *parent;
	void *private;
	struct lttng_buffer_ops *ops;
};

struct lttng_recorder {
	uint32_t struct_size;
	struct lttng_enabled *parent;
	void *private;
	struct lttng_channel *channel;
};

struct lttng_notification {
	uint32_t struct_size;
	int has_capture;
};

struct lttng_notifier {
	uint32_t struct_size;
	struct lttng_enabled *parent;
	void *private;
	int has_capture;
	void (*send)(const struct lttng_notifier *notifier, const char *stack,
		struct lttng_probe_context *context, struct lttng_notification *notification);
};

#endif
