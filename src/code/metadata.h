/*
 * ECMA-335 metadata: the names of types and methods of a managed assembly, by token.
 *
 * Works on the metadata root as one block of memory, which stays the caller's. Every index is
 * checked. A name that cannot be read is reported as missing, never guessed.
 */
#ifndef SPOOR_CODE_METADATA_H
#define SPOOR_CODE_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct cursor;

#define METADATA_TABLES      45u
#define METADATA_COLUMNS_MAX 10u

enum metadata_table {
	METADATA_TYPE_REF = 0x01,
	METADATA_TYPE_DEF = 0x02,
	METADATA_METHOD_POINTER = 0x05,
	METADATA_METHOD_DEF = 0x06,
	METADATA_MEMBER_REF = 0x0a,
	METADATA_TYPE_SPEC = 0x1b,
	METADATA_ASSEMBLY = 0x20,
	METADATA_NESTED_CLASS = 0x29,
};

struct metadata_heap {
	const uint8_t *data;
	size_t size;
};

struct metadata {
	struct metadata_heap strings;
	struct metadata_heap blobs;
	uint8_t heap_sizes;
	/* written as it is edited (Reflection.Emit): no table is sorted */
	bool is_edited;
	/* signatures are spelled as in the runtime's events: "class System.String", "wchar", "Nested" */
	bool as_events;
	uint32_t rows[METADATA_TABLES];
	uint32_t row_size[METADATA_TABLES];
	uint8_t column_at[METADATA_TABLES]
			 [METADATA_COLUMNS_MAX +
				 1]; /* begin of each column, and the end of the last one */
	const uint8_t *tables[METADATA_TABLES];
};

/*
 * The streams of a metadata root, also that of a portable PDB. metadata_streams() begins,
 * metadata_next_stream() gives one after the other: false at the end, and when `error` is set
 * (-EBADMSG: it is not metadata, or it is truncated). Names and bytes are those of `data`.
 */
struct metadata_streams {
	const uint8_t *data;
	size_t size;
	size_t at; /* of the next stream's header */
	unsigned left;
	int error;
};

struct metadata_stream {
	const char *name; /* "#Strings" */
	const uint8_t *data;
	size_t size;
};

struct metadata_streams metadata_streams(const void *data, size_t size);
bool metadata_next_stream(struct metadata_streams *streams, struct metadata_stream *ret);

/* `data` must outlive the metadata. -EBADMSG: it is not metadata, or its tables are truncated. */
int metadata_read(struct metadata *metadata, const void *data, size_t size);

/*
 * "Namespace.Outer+Inner" of a TypeDef, TypeRef or TypeSpec. False, and nothing added: unreadable.
 */
bool metadata_add_type(const struct metadata *metadata, uint32_t token, struct bytes *out);

/* The simple name of the assembly. False: the module is not its main one. */
bool metadata_add_assembly(const struct metadata *metadata, struct bytes *out);

/* The type that owns a MethodDef, or 0; the name of a MethodDef or MemberRef token, appended. */
uint32_t metadata_owner(const struct metadata *metadata, uint32_t method_token);
bool metadata_add_method(const struct metadata *metadata, uint32_t token, struct bytes *out);

/* "instance void  (int32,class System.String)" of a MethodDef; the whole signature. */
bool metadata_add_signature(const struct metadata *metadata, uint32_t token, struct bytes *out);
bool metadata_add_whole_signature(const struct metadata *metadata, struct cursor signature,
	struct bytes *out);

/* "int32,System.String" of a MethodDef's or MemberRef's parameters. */
bool metadata_add_arguments(const struct metadata *metadata, uint32_t token, struct bytes *out);

/*
 * One type of a signature, spelled as in IL; `out` NULL: only skipped. `foreign`: its tokens are
 * another assembly's, shown as "?". False if the signature is malformed.
 */
bool metadata_add_signature_type(const struct metadata *metadata, struct cursor *c, bool foreign,
	struct bytes *out);

/* Compressed unsigned number of signatures (ECMA-335 II.23.2). */
uint32_t metadata_compressed(struct cursor *c);

#endif
