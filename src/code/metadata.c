/* See metadata.h. ECMA-335 6th edition: II.22 tables, II.23.2 signatures, II.24 streams. */
#include "code/metadata.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/partition_point.h"

#define SIGNATURE       0x424a5342u /* "BSJB" */
#define STREAMS_MAX     32u
#define EDITED_ROWS_MAX 65536u /* that are searched one by one */
#define NESTED_MAX      16u
#define TYPE_DEPTH_MAX  24u
#define ARGUMENTS_MAX   512u
#define TEXT_MAX        6000u /* limit of one name; the rest is truncated with "..." */

/* 2, 4 = numbers; s g b = string, guid, blob; A to M = coded index; xNN = row of table NN. */
static const char *const schemas[METADATA_TABLES] = {
	[0x00] = "2sggg",
	[0x01] = "Lss",
	[0x02] = "4ssAx04x06",
	[0x03] = "x04",
	[0x04] = "2sb",
	[0x05] = "x06",
	[0x06] = "422sbx08",
	[0x07] = "x08",
	[0x08] = "22s",
	[0x09] = "x02A",
	[0x0a] = "Fsb",
	[0x0b] = "2Bb",
	[0x0c] = "CKb",
	[0x0d] = "Db",
	[0x0e] = "2Eb",
	[0x0f] = "24x02",
	[0x10] = "4x04",
	[0x11] = "b",
	[0x12] = "x02x14",
	[0x13] = "x14",
	[0x14] = "2sA",
	[0x15] = "x02x17",
	[0x16] = "x17",
	[0x17] = "2sb",
	[0x18] = "2x06G",
	[0x19] = "x02HH",
	[0x1a] = "s",
	[0x1b] = "b",
	[0x1c] = "2Isx1a",
	[0x1d] = "4x04",
	[0x1e] = "44",
	[0x1f] = "4",
	[0x20] = "422224bss",
	[0x21] = "4",
	[0x22] = "444",
	[0x23] = "22224bssb",
	[0x24] = "4x23",
	[0x25] = "444x23",
	[0x26] = "4sb",
	[0x27] = "44ssJ",
	[0x28] = "44sJ",
	[0x29] = "x02x02",
	[0x2a] = "22Ms",
	[0x2b] = "Hb",
	[0x2c] = "x2aA",
};

#define NO_TABLE 0xff

/* Coded indexes (II.24.2.6): the tag's bits, and which table each tag means. */
static const struct {
	uint8_t bits;
	uint8_t count;
	uint8_t tables[22];
} coded[] = {
	{ 2, 3, { 0x02, 0x01, 0x1b } }, /* A TypeDefOrRef */
	{ 2, 3, { 0x04, 0x08, 0x17 } }, /* B HasConstant */
	{ 5, 22,
		{ 0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a,
			0x1b,
			/* C HasCustomAttribute */
			0x20, 0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b } },
	{ 1, 2, { 0x04, 0x08 } },                               /* D HasFieldMarshal */
	{ 2, 3, { 0x02, 0x06, 0x20 } },                         /* E HasDeclSecurity */
	{ 3, 5, { 0x02, 0x01, 0x1a, 0x06, 0x1b } },             /* F MemberRefParent */
	{ 1, 2, { 0x14, 0x17 } },                               /* G HasSemantics */
	{ 1, 2, { 0x06, 0x0a } },                               /* H MethodDefOrRef */
	{ 1, 2, { 0x04, 0x06 } },                               /* I MemberForwarded */
	{ 2, 3, { 0x26, 0x23, 0x27 } },                         /* J Implementation */
	{ 3, 5, { NO_TABLE, NO_TABLE, 0x06, 0x0a, NO_TABLE } }, /* K CustomAttributeType */
	{ 2, 4, { 0x00, 0x1a, 0x23, 0x01 } },                   /* L ResolutionScope */
	{ 1, 2, { 0x02, 0x06 } },                               /* M TypeOrMethodDef */
};

#define CODED_TYPE   0  /* A */
#define CODED_SCOPE  11 /* L */
#define CODED_PARENT 5  /* F */

static unsigned digit_of(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

static uint32_t coded_size(const struct metadata *m, unsigned kind)
{
	for (unsigned i = 0; i < coded[kind].count; i++) {
		uint8_t table = coded[kind].tables[i];
		if (table != NO_TABLE && m->rows[table] >= 1u << (16 - coded[kind].bits))
			return 4;
	}
	return 2;
}

/* Size of the column at *column, which moves to the next one. */
static uint32_t column_size(const struct metadata *m, const char **column)
{
	char c = *(*column)++;

	if (c == '2' || c == '4')
		return (uint32_t)(c - '0');
	if (c == 's' || c == 'g' || c == 'b')
		return m->heap_sizes & (c == 's' ? 1 : c == 'g' ? 2 : 4) ? 4 : 2;
	if (c >= 'A' && c <= 'M')
		return coded_size(m, (unsigned)(c - 'A'));
	unsigned table = digit_of((*column)[0]) * 16 + digit_of((*column)[1]);
	*column += 2;
	return m->rows[table] >= 0x10000 ? 4 : 2;
}

static int read_tables(struct metadata *m, struct cursor c)
{
	cursor_skip(&c, 6);
	m->heap_sizes = cursor_u8(&c);
	cursor_skip(&c, 1);
	uint64_t valid = cursor_u64(&c);
	cursor_skip(&c, 8);
	for (unsigned i = 0; i < 64; i++) {
		uint32_t rows = valid >> i & 1 ? cursor_u32(&c) : 0;
		if (rows > 0xffffff || (rows && i >= METADATA_TABLES))
			return -EBADMSG;
		if (rows)
			m->rows[i] = rows;
	}
	if (m->heap_sizes & 0x40)
		cursor_skip(&c, 4); /* extra word that some compilers write */
	for (unsigned i = 0; i < METADATA_TABLES; i++) {
		unsigned count = 0;
		for (const char *column = schemas[i]; *column;) {
			m->row_size[i] += column_size(m, &column);
			m->column_at[i][++count] = (uint8_t)m->row_size[i];
		}
		if (m->rows[i])
			m->tables[i] = cursor_take(&c, (size_t)m->rows[i] * m->row_size[i]);
	}
	return c.short_read ? -EBADMSG : 0;
}

struct metadata_streams metadata_streams(const void *data, size_t size)
{
	struct metadata_streams streams = { .data = data, .size = size };
	struct cursor c = cursor_of(data, size);

	bool is_metadata = cursor_u32(&c) == SIGNATURE;
	cursor_skip(&c, 8);
	uint32_t version_size = cursor_u32(&c);
	cursor_skip(&c, version_size);
	cursor_skip(&c, 2);
	streams.left = cursor_u16(&c);
	streams.at = size - cursor_left(&c);
	if (!is_metadata || c.short_read || streams.left > STREAMS_MAX)
		streams.error = -EBADMSG;
	return streams;
}

bool metadata_next_stream(struct metadata_streams *streams, struct metadata_stream *ret)
{
	size_t length;

	if (streams->error || !streams->left)
		return false;
	streams->left--;
	struct cursor c = cursor_of(streams->data + streams->at, streams->size - streams->at);
	uint32_t offset = cursor_u32(&c);
	uint32_t size = cursor_u32(&c);
	ret->name = cursor_stringz(&c, &length);
	/* The name with its zero is padded to four bytes. */
	cursor_skip(&c, -(length + 1) & 3u);
	streams->at = streams->size - cursor_left(&c);
	if (c.short_read || offset > streams->size || size > streams->size - offset) {
		streams->error = -EBADMSG;
		return false;
	}
	ret->data = streams->data + offset;
	ret->size = size;
	return true;
}

int metadata_read(struct metadata *m, const void *data, size_t size)
{
	struct metadata_streams streams = metadata_streams(data, size);
	struct metadata_stream stream;
	struct cursor tables = { 0 };
	bool has_tables = false;

	*m = (struct metadata){ 0 };
	while (metadata_next_stream(&streams, &stream)) {
		if (!strcmp(stream.name, "#Strings")) {
			m->strings = (struct metadata_heap){ stream.data, stream.size };
		} else if (!strcmp(stream.name, "#Blob")) {
			m->blobs = (struct metadata_heap){ stream.data, stream.size };
		} else if (!strcmp(stream.name, "#~") || !strcmp(stream.name, "#-")) {
			m->is_edited = stream.name[1] == '-';
			tables = cursor_of(stream.data, stream.size);
			has_tables = true;
		}
	}
	return streams.error ? streams.error : has_tables ? read_tables(m, tables) : -EBADMSG;
}

/* Number in column `number` of a row (counted from 1); 0 when there is no such row. */
static uint32_t cell(const struct metadata *m, unsigned table, uint32_t row, unsigned number)
{
	if (!row || row > m->rows[table])
		return 0;
	unsigned at = m->column_at[table][number];
	unsigned size = m->column_at[table][number + 1] - at;
	struct cursor c =
		cursor_of(m->tables[table] + (size_t)(row - 1) * m->row_size[table] + at, size);
	return size == 4 ? cursor_u32(&c) : cursor_u16(&c);
}

static const char *string_at(const struct metadata *m, uint32_t offset, size_t *ret_len)
{
	if (offset >= m->strings.size)
		return NULL;
	struct cursor c = cursor_of(m->strings.data + offset, m->strings.size - offset);
	return cursor_stringz(&c, ret_len);
}

static struct cursor blob_at(const struct metadata *m, uint32_t offset)
{
	struct cursor c = { .short_read = true };

	if (offset >= m->blobs.size)
		return c;
	c = cursor_of(m->blobs.data + offset, m->blobs.size - offset);
	uint32_t size = metadata_compressed(&c);
	return cursor_sub(&c, size);
}

uint32_t metadata_compressed(struct cursor *c)
{
	uint32_t first = cursor_u8(c);

	if (!(first & 0x80))
		return first;
	if (!(first & 0x40))
		return (first & 0x3f) << 8 | cursor_u8(c);
	uint32_t high = (first & 0x1f) << 24 | (uint32_t)cursor_u8(c) << 16;
	high |= (uint32_t)cursor_u8(c) << 8;
	return high | cursor_u8(c);
}

static uint32_t decode(unsigned kind, uint32_t value)
{
	uint32_t tag = value & ((1u << coded[kind].bits) - 1);

	if (tag >= coded[kind].count || coded[kind].tables[tag] == NO_TABLE)
		return 0;
	return (uint32_t)coded[kind].tables[tag] << 24 | value >> coded[kind].bits;
}

static void add_text(struct bytes *out, const char *text, size_t len)
{
	if (!out)
		return;
	if (out->len > TEXT_MAX)
		return;
	bytes_add(out, text, len);
	if (out->len > TEXT_MAX)
		bytes_text(out, "...");
}

/* The row of NestedClass (sorted by its first column) for this inner type: its outer type, or 0. */
static uint32_t outer_type(const struct metadata *m, uint32_t inner)
{
	uint32_t low = 1;

	if (m->is_edited) {
		uint32_t rows = m->rows[METADATA_NESTED_CLASS];
		for (uint32_t row = 1; row <= rows && row <= EDITED_ROWS_MAX; row++)
			if (cell(m, METADATA_NESTED_CLASS, row, 0) == inner)
				return cell(m, METADATA_NESTED_CLASS, row, 1);
		return 0;
	}
	low = partition_point_from(low, m->rows[METADATA_NESTED_CLASS] + 1, row,
		cell(m, METADATA_NESTED_CLASS, row, 0) < inner);
	return cell(m, METADATA_NESTED_CLASS, low, 0) == inner
		       ? cell(m, METADATA_NESTED_CLASS, low, 1)
		       : 0;
}

static bool add_type_name(const struct metadata *m, uint32_t token, unsigned depth, bool with_outer,
	struct bytes *out)
{
	unsigned table = token >> 24;
	uint32_t row = token & 0xffffff;
	bool is_ref = table == METADATA_TYPE_REF;
	size_t len;
	size_t space_len;

	if (table == METADATA_TYPE_SPEC) {
		struct cursor c = blob_at(m, cell(m, table, row, 0));
		return depth < NESTED_MAX && metadata_add_signature_type(m, &c, false, out);
	}
	if ((table != METADATA_TYPE_DEF && !is_ref) || !row || row > m->rows[table] ||
		depth > NESTED_MAX)
		return false;
	const char *name = string_at(m, cell(m, table, row, 1), &len);
	const char *space = string_at(m, cell(m, table, row, 2), &space_len);
	if (!name || !space)
		return false;
	uint32_t outer = 0;
	if (is_ref) {
		uint32_t scope = decode(CODED_SCOPE, cell(m, table, row, 0));
		if (scope >> 24 == METADATA_TYPE_REF)
			outer = scope;
	} else {
		outer = outer_type(m, row);
		if (outer)
			outer |= (uint32_t)METADATA_TYPE_DEF << 24;
	}
	if (outer) {
		if (with_outer) {
			if (!add_type_name(m, outer, depth + 1, true, out))
				return false;
			add_text(out, "+", 1);
		}
	} else if (space_len) {
		add_text(out, space, space_len);
		add_text(out, ".", 1);
	}
	add_text(out, name, len);
	return true;
}

bool metadata_add_type(const struct metadata *m, uint32_t token, struct bytes *out)
{
	size_t before = out->len;

	if (add_type_name(m, token, 0, true, out))
		return true;
	out->len = before;
	return false;
}

bool metadata_add_assembly(const struct metadata *m, struct bytes *out)
{
	size_t len;
	const char *name = m->rows[METADATA_ASSEMBLY]
				   ? string_at(m, cell(m, METADATA_ASSEMBLY, 1, 7), &len)
				   : NULL;

	if (!name || !len)
		return false;
	add_text(out, name, len);
	return true;
}

uint32_t metadata_owner(const struct metadata *m, uint32_t method_token)
{
	uint32_t method = method_token & 0xffffff;
	uint32_t low = 1;

	if (method_token >> 24 == METADATA_MEMBER_REF)
		return decode(CODED_PARENT, cell(m, METADATA_MEMBER_REF, method, 0));
	if (method_token >> 24 != METADATA_METHOD_DEF || !method ||
		method > m->rows[METADATA_METHOD_DEF])
		return 0;
	if (m->rows[METADATA_METHOD_POINTER]) {
		/* The lists of methods are of rows of this table. */
		uint32_t rows = m->rows[METADATA_METHOD_POINTER];
		uint32_t row = 1;
		while (row <= rows && row <= EDITED_ROWS_MAX &&
			cell(m, METADATA_METHOD_POINTER, row, 0) != method)
			row++;
		if (row > rows || row > EDITED_ROWS_MAX)
			return 0;
		method = row;
	}
	/* A type's methods end where the next type's begin: the last type from this method back. */
	low = partition_point_from(low, m->rows[METADATA_TYPE_DEF] + 1, row,
		cell(m, METADATA_TYPE_DEF, row, 5) <= method);
	return low > 1 ? (uint32_t)METADATA_TYPE_DEF << 24 | (low - 1) : 0;
}

bool metadata_add_method(const struct metadata *m, uint32_t token, struct bytes *out)
{
	unsigned table = token >> 24;
	size_t len;

	if (table != METADATA_METHOD_DEF && table != METADATA_MEMBER_REF)
		return false;
	uint32_t row = token & 0xffffff;
	if (!row || row > m->rows[table])
		return false;
	const char *name =
		string_at(m, cell(m, table, row, table == METADATA_METHOD_DEF ? 3 : 1), &len);
	if (!name || !len)
		return false;
	add_text(out, name, len);
	return true;
}

/* Signatures */

enum signature_convention { CONVENTION_GENERIC = 0x10, CONVENTION_INSTANCE = 0x20 };

enum element_type {
	ELEMENT_PTR = 0x0f,
	ELEMENT_BYREF = 0x10,
	ELEMENT_VALUETYPE = 0x11,
	ELEMENT_CLASS = 0x12,
	ELEMENT_VAR = 0x13,
	ELEMENT_ARRAY = 0x14,
	ELEMENT_GENERIC = 0x15,
	ELEMENT_FUNCTION = 0x1b,
	ELEMENT_SZARRAY = 0x1d,
	ELEMENT_MVAR = 0x1e,
	ELEMENT_MODIFIER_REQUIRED = 0x1f,
	ELEMENT_MODIFIER_OPTIONAL = 0x20,
	ELEMENT_NATIVE_VALUETYPE = 0x3d, /* of precompiled images, like the next two */
	ELEMENT_CANON = 0x3e,
	ELEMENT_MODULE = 0x3f,
	ELEMENT_SENTINEL = 0x41,
	ELEMENT_PINNED = 0x45,
};

static const char *const simple_types[0x20] = {
	[0x01] = "void",
	[0x02] = "bool",
	[0x03] = "char",
	[0x04] = "int8",
	[0x05] = "uint8",
	[0x06] = "int16",
	[0x07] = "uint16",
	[0x08] = "int32",
	[0x09] = "uint32",
	[0x0a] = "int64",
	[0x0b] = "uint64",
	[0x0c] = "float32",
	[0x0d] = "float64",
	[0x0e] = "string",
	[0x16] = "typedref",
	[0x18] = "native int",
	[0x19] = "native uint",
	[0x1c] = "object",
};

/* Those that the runtime's events spell in another way. */
static const char *const event_types[0x20] = {
	[0x03] = "wchar",
	[0x05] = "unsigned int8",
	[0x07] = "unsigned int16",
	[0x09] = "unsigned int32",
	[0x0b] = "unsigned int64",
	[0x0e] = "class System.String",
	[0x16] = "refany",
	[0x18] = "int",
	[0x19] = "unsigned int",
	[0x1c] = "class System.Object",
};

static void add_z(struct bytes *out, const char *text)
{
	add_text(out, text, strlen(text));
}

static void add_number(struct bytes *out, const char *prefix, uint32_t number)
{
	if (out && out->len <= TEXT_MAX)
		bytes_printf(out, "%s%u", prefix, number);
}

static bool add_element(const struct metadata *m, struct cursor *c, bool foreign, unsigned depth,
	struct bytes *out);

static bool add_return(const struct metadata *m, struct cursor *c, bool foreign, unsigned depth,
	struct bytes *out)
{
	unsigned convention = cursor_u8(c);

	if (convention & CONVENTION_GENERIC)
		(void)metadata_compressed(c); /* count of type parameters */
	(void)metadata_compressed(c);
	return !c->short_read && add_element(m, c, foreign, depth + 1, out);
}

static bool add_method_signature(const struct metadata *m, struct cursor *c, bool foreign,
	unsigned depth, struct bytes *out)
{
	unsigned convention = cursor_u8(c);

	if (convention & CONVENTION_GENERIC)
		(void)metadata_compressed(c); /* count of type parameters */
	uint32_t count = metadata_compressed(c);
	if (c->short_read || count > ARGUMENTS_MAX || !add_element(m, c, foreign, depth + 1, NULL))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			add_z(out, ",");
		if (!add_element(m, c, foreign, depth + 1, out))
			return false;
	}
	return true;
}

static bool add_array(const struct metadata *m, struct cursor *c, bool foreign, unsigned depth,
	struct bytes *out)
{
	if (!add_element(m, c, foreign, depth + 1, out))
		return false;
	uint32_t rank = metadata_compressed(c);
	if (!rank || rank > 32)
		return false;
	for (unsigned pass = 0; pass < 2; pass++) { /* sizes, then lower bounds */
		uint32_t count = metadata_compressed(c);
		if (count > rank)
			return false;
		for (uint32_t i = 0; i < count; i++)
			(void)metadata_compressed(c);
	}
	add_z(out, "[");
	for (uint32_t i = 1; i < rank; i++)
		add_z(out, ",");
	add_z(out, "]");
	return !c->short_read;
}

static bool add_generic(const struct metadata *m, struct cursor *c, bool foreign, unsigned depth,
	struct bytes *out)
{
	if (!add_element(m, c, foreign, depth + 1, out))
		return false;
	uint32_t count = metadata_compressed(c);
	if (c->short_read || count > ARGUMENTS_MAX)
		return false;
	add_z(out, "<");
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			add_z(out, ",");
		if (!add_element(m, c, foreign, depth + 1, out))
			return false;
	}
	add_z(out, ">");
	return true;
}

static bool add_element(const struct metadata *m, struct cursor *c, bool foreign, unsigned depth,
	struct bytes *out)
{
	/* A loop over modifiers, which no name shows, so that they do not count as depth. */
	for (;;) {
		unsigned type = cursor_u8(c);

		if (c->short_read || depth > TYPE_DEPTH_MAX)
			return false;
		if (type < 0x20 && simple_types[type]) {
			add_z(out, m->as_events && event_types[type] ? event_types[type]
								     : simple_types[type]);
			return true;
		}
		switch (type) {
		case ELEMENT_PTR:
		case ELEMENT_BYREF:
		case ELEMENT_SZARRAY:
			if (!add_element(m, c, foreign, depth + 1, out))
				return false;
			add_z(out, type == ELEMENT_PTR ? "*" : type == ELEMENT_BYREF ? "&" : "[]");
			return true;
		case ELEMENT_VALUETYPE:
		case ELEMENT_CLASS: {
			uint32_t token = decode(CODED_TYPE, metadata_compressed(c));
			if (c->short_read)
				return false;
			if (m->as_events)
				add_z(out, type == ELEMENT_CLASS ? "class " : "value class ");
			if (foreign || token >> 24 == METADATA_TYPE_SPEC || !out)
				add_z(out, "?");
			else
				return add_type_name(m, token, 0, !m->as_events, out);
			return true;
		}
		case ELEMENT_VAR:
		case ELEMENT_MVAR:
			add_number(out, type == ELEMENT_VAR ? "!" : "!!", metadata_compressed(c));
			return !c->short_read;
		case ELEMENT_ARRAY:
			return add_array(m, c, foreign, depth, out);
		case ELEMENT_GENERIC:
			return add_generic(m, c, foreign, depth, out);
		case ELEMENT_FUNCTION:
			if (m->as_events) {
				struct cursor copy = *c;
				add_z(out, "fnptr ");
				if (!add_return(m, &copy, foreign, depth, out))
					return false;
				add_z(out, "(");
			} else {
				add_z(out, "method *(");
			}
			if (!add_method_signature(m, c, foreign, depth, out))
				return false;
			add_z(out, ")");
			return true;
		case ELEMENT_CANON:
			add_z(out, "System.__Canon");
			return true;
		case ELEMENT_MODIFIER_REQUIRED:
		case ELEMENT_MODIFIER_OPTIONAL:
			(void)metadata_compressed(c);
			break;
		case ELEMENT_MODULE:
			(void)metadata_compressed(c); /* its index; even 0 may be another one */
			foreign = true;
			break;
		case ELEMENT_NATIVE_VALUETYPE:
		case ELEMENT_SENTINEL:
		case ELEMENT_PINNED:
			break;
		default:
			return false;
		}
	}
}

bool metadata_add_signature_type(const struct metadata *m, struct cursor *c, bool foreign,
	struct bytes *out)
{
	return add_element(m, c, foreign, 0, out);
}

bool metadata_add_whole_signature(const struct metadata *m, struct cursor whole, struct bytes *out)
{
	size_t before = out->len;
	struct cursor c = whole;
	unsigned convention = cursor_u8(&c);

	c = whole;
	if (convention & CONVENTION_INSTANCE)
		add_z(out, "instance ");
	if (convention & CONVENTION_GENERIC)
		add_z(out, "generic ");
	bool valid = add_return(m, &c, false, 0, out);
	add_z(out, "  (");
	if (valid && add_method_signature(m, &whole, false, 0, out)) {
		add_z(out, ")");
		return true;
	}
	out->len = before;
	return false;
}

bool metadata_add_signature(const struct metadata *m, uint32_t token, struct bytes *out)
{
	return token >> 24 == METADATA_METHOD_DEF &&
	       metadata_add_whole_signature(m,
		       blob_at(m, cell(m, METADATA_METHOD_DEF, token & 0xffffff, 4)), out);
}

bool metadata_add_arguments(const struct metadata *m, uint32_t token, struct bytes *out)
{
	unsigned table = token >> 24;
	size_t before = out->len;

	if (table != METADATA_METHOD_DEF && table != METADATA_MEMBER_REF)
		return false;
	struct cursor c =
		blob_at(m, cell(m, table, token & 0xffffff, table == METADATA_METHOD_DEF ? 4 : 2));
	if (add_method_signature(m, &c, false, 0, out))
		return true;
	out->len = before;
	return false;
}
