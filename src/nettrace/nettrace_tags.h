/* Tags of nettrace (docs/formats/nettrace.md), version 6 unless stated, for reader and writer. */
#ifndef SPOOR_NETTRACE_NETTRACE_TAGS_H
#define SPOOR_NETTRACE_NETTRACE_TAGS_H

/* The upper 8 bits of a block's header word, and the reader's numbers for objects of version 4. */
enum block_kind {
	BLOCK_END,
	BLOCK_TRACE,
	BLOCK_EVENT,
	BLOCK_METADATA,
	BLOCK_SEQUENCE_POINT,
	BLOCK_STACK,
	BLOCK_THREAD,
	BLOCK_REMOVE_THREAD,
	BLOCK_LABELS,
};

#define BLOCK_SIZE_BITS 24 /* the lower bits of the header word */

/* Flags of an event block. */
#define EVENTS_COMPRESSED 1u

#define EVENTS_HEADER_SIZE 20u /* or more: a reader skips the excess */

/* The flags of a compressed event: which of its fields differ from those of the event before it. */
enum event_bit {
	HAS_METADATA = 0x01,
	HAS_CAPTURE = 0x02, /* sequence number, capture row and CPU */
	HAS_THREAD = 0x04,
	HAS_STACK = 0x08,
	HAS_LABELS = 0x10,
	HAS_ACTIVITY_V4 = 0x10,
	HAS_RELATED_ACTIVITY_V4 = 0x20,
	IS_SORTED = 0x40, /* no event after it in the file is older */
	HAS_SIZE = 0x80,
};

#define EVENT_UNSORTED (UINT32_C(1) << 31) /* in the metadata id of an event without compression */

/* Optional parts of a metadata row. */
enum metadata_tag {
	METADATA_OPCODE = 1,      /* u8 */
	METADATA_KEYWORDS = 3,    /* u64 */
	METADATA_MESSAGE = 4,     /* string */
	METADATA_DESCRIPTION = 5, /* string */
	METADATA_KEY_VALUE = 6,   /* two strings */
	METADATA_GUID = 7,        /* 16 bytes */
	METADATA_LEVEL = 8,       /* u8 */
	METADATA_VERSION = 9,     /* u8 */
};

/* The key of a metadata row that lists the fields that are Booleans among its bytes: "0,3". */
#define METADATA_BYTE_BOOLS_KEY "one_byte_booleans"

/* Optional parts of a thread row. */
enum thread_tag {
	THREAD_NAME = 1,      /* string */
	THREAD_PID = 2,       /* varuint */
	THREAD_TID = 3,       /* varuint */
	THREAD_KEY_VALUE = 4, /* two strings */
};

/* The name of the capture row of events that have no CPU. */
#define THREAD_NO_CPU_NAME "no cpu"

/* Kinds of labels beside those of trace/event_label.h. */
enum label_tag {
	LABEL_ACTIVITY = 1,         /* 16 bytes */
	LABEL_RELATED_ACTIVITY = 2, /* 16 bytes */
	LABEL_OPCODE = 7,           /* u8; the rest replaces what the metadata row states, too */
	LABEL_KEYWORDS = 8,         /* u64 */
	LABEL_LEVEL = 9,            /* u8 */
	LABEL_VERSION = 10,         /* u8 */
	LABEL_LAST = 0x80,          /* of its list; added to the kind */
};

/* The key of a label: how many ns before its written time an event happened. */
#define LABEL_LATE_KEY "late_ns"

/* Flags of a sequence point. */
enum sequence_point_flag {
	SEQUENCE_POINT_FORGETS_THREADS = 1 << 0,
	SEQUENCE_POINT_FORGETS_METADATA = 1 << 1,
};

/* Keys of the Trace block. */
#define KEY_CPU_COUNT   "HardwareThreadCount"
#define KEY_PAGE_SIZE   "SystemPageSize"
#define KEY_PROCESS_ID  "ProcessId"
#define KEY_PERIOD      "ExpectedCPUSamplingRate" /* in nanoseconds */
#define KEY_WRITER      "Writer"
#define KEY_PADDING     "Padding"
#define KEY_WRITER_OURS "Spoor"

#endif
