/*
 * See portable_pdb.h. Portable PDB Format Specification v1.0: metadata root (ECMA-335 II.24.2.1)
 * with the streams "#Pdb", "#~" and "#Blob"; tables 0x30 Document and 0x31 MethodDebugInformation.
 */
#include "code/portable_pdb.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/text.h"
#include "code/metadata.h"

#define TABLE_DOCUMENT 0x30
#define TABLE_METHOD   0x31
#define PATH_SIZE_MAX  4096u
#define TOKEN_METHOD   0x06000000u
#define TOKEN_ROW      0x00ffffffu
/* Sequence points of one method; a generated one has some ten thousand. */
#define POINTS_MAX (1u << 20)

/* Heap index sizes, from the header of "#~". */
enum { WIDE_GUIDS = 2, WIDE_BLOBS = 4 };

static uint32_t read_index(struct cursor *c, unsigned size)
{
	return size == 4 ? cursor_u32(c) : cursor_u16(c);
}

/* A blob of the heap; false: malformed. */
static bool find_blob(const struct portable_pdb *pdb, uint32_t index, struct cursor *ret_blob)
{
	if (index >= pdb->blobs_size)
		return false;
	struct cursor c = cursor_of(pdb->blobs + index, pdb->blobs_size - index);
	uint32_t size = metadata_compressed(&c);
	*ret_blob = cursor_sub(&c, size);
	return !c.short_read;
}

static int32_t signed_compressed(struct cursor *c)
{
	const uint8_t *begin = c->at;
	uint32_t value = metadata_compressed(c);
	size_t size = (size_t)(c->at - begin);
	/* Rotated left by one within 7, 14 or 29 bits (II.23.2). */
	unsigned bits = size == 1 ? 7 : size == 2 ? 14 : 29;
	uint32_t half = value >> 1;

	return value & 1 ? (int32_t)(half | UINT32_MAX << (bits - 1)) : (int32_t)half;
}

static int read_tables(struct portable_pdb *pdb, struct cursor c)
{
	cursor_skip(&c, 6);
	uint8_t heap_sizes = cursor_u8(&c);
	cursor_skip(&c, 1);
	uint64_t valid = cursor_u64(&c);
	cursor_skip(&c, 8);
	/* Tables below Document are the assembly's, and are not in a PDB. */
	if (valid & ((UINT64_C(1) << TABLE_DOCUMENT) - 1))
		return -EBADMSG;
	for (unsigned i = TABLE_DOCUMENT; i < 64; i++) {
		uint32_t rows = valid >> i & 1 ? cursor_u32(&c) : 0;
		if (rows > TOKEN_ROW)
			return -EBADMSG;
		if (i == TABLE_DOCUMENT)
			pdb->documents.rows = rows;
		else if (i == TABLE_METHOD)
			pdb->methods.rows = rows;
	}
	pdb->blob_index_size = heap_sizes & WIDE_BLOBS ? 4 : 2;
	pdb->guid_index_size = heap_sizes & WIDE_GUIDS ? 4 : 2;
	pdb->document_index_size = pdb->documents.rows >= 0x10000 ? 4 : 2;
	/* Document: name, hash algorithm, hash, language. MethodDebugInformation: document, points. */
	pdb->documents.row_size = 2 * pdb->blob_index_size + 2 * pdb->guid_index_size;
	pdb->methods.row_size = pdb->document_index_size + pdb->blob_index_size;
	pdb->documents.data =
		cursor_take(&c, (size_t)pdb->documents.rows * pdb->documents.row_size);
	pdb->methods.data = cursor_take(&c, (size_t)pdb->methods.rows * pdb->methods.row_size);
	return c.short_read ? -EBADMSG : 0;
}

int portable_pdb_read(struct portable_pdb *pdb, const void *data, size_t size)
{
	struct metadata_streams streams = metadata_streams(data, size);
	struct metadata_stream stream;
	struct cursor tables = { .short_read = true };
	bool has_id = false;

	*pdb = (struct portable_pdb){ 0 };
	while (metadata_next_stream(&streams, &stream)) {
		if (strcmp(stream.name, "#Pdb") == 0) {
			has_id = stream.size >= sizeof(pdb->id);
			if (has_id)
				memcpy(pdb->id, stream.data, sizeof(pdb->id));
		} else if (strcmp(stream.name, "#~") == 0) {
			tables = cursor_of(stream.data, stream.size);
		} else if (strcmp(stream.name, "#Blob") == 0) {
			pdb->blobs = stream.data;
			pdb->blobs_size = stream.size;
		}
	}
	if (streams.error)
		return streams.error;
	return has_id && pdb->blobs ? read_tables(pdb, tables) : -EBADMSG;
}

/*
 * Sequence points: the signature of locals, the document if the row has none, then records. A record
 * with an IL delta of 0 (but for the first) changes the document; one without lines and columns is
 * hidden; lines and columns are relative to the last record that is not hidden.
 */
bool portable_pdb_find(const struct portable_pdb *pdb, uint32_t token, uint32_t il_offset,
	uint32_t *ret_document, uint32_t *ret_line)
{
	uint32_t row = token & TOKEN_ROW;
	struct cursor points;
	bool found = false;
	bool visible = false;
	int64_t line = 0;
	uint64_t il = 0;

	if ((token & ~TOKEN_ROW) != TOKEN_METHOD || !row || row > pdb->methods.rows)
		return false;
	struct cursor c = cursor_of(pdb->methods.data + (size_t)(row - 1) * pdb->methods.row_size,
		pdb->methods.row_size);
	uint32_t document = read_index(&c, pdb->document_index_size);
	uint32_t blob = read_index(&c, pdb->blob_index_size);
	if (!blob || !find_blob(pdb, blob, &points))
		return false;
	(void)metadata_compressed(&points); /* signature of locals */
	if (!document)
		document = metadata_compressed(&points);
	for (uint32_t i = 0; i < POINTS_MAX && cursor_left(&points); i++) {
		uint32_t il_delta = metadata_compressed(&points);
		if (i && !il_delta) {
			document = metadata_compressed(&points);
			continue;
		}
		il += il_delta;
		uint32_t lines = metadata_compressed(&points);
		int32_t columns =
			lines ? signed_compressed(&points) : (int32_t)metadata_compressed(&points);
		if (points.short_read || il > il_offset)
			break;
		if (!lines && !columns)
			continue; /* hidden */
		line += visible ? signed_compressed(&points)
				: (int64_t)metadata_compressed(&points);
		if (visible)
			(void)signed_compressed(&points); /* column */
		else
			(void)metadata_compressed(&points);
		visible = true;
		if (points.short_read || line <= 0 || line > INT32_MAX)
			break;
		*ret_document = document;
		*ret_line = (uint32_t)line;
		found = true;
	}
	return found;
}

/* A document's name: a separator, then blob indexes of its parts. */
bool portable_pdb_document(const struct portable_pdb *pdb, uint32_t document, struct bytes *out)
{
	struct cursor name;
	struct cursor part;
	size_t begin = out->len;

	if (!document || document > pdb->documents.rows)
		return false;
	struct cursor c =
		cursor_of(pdb->documents.data + (size_t)(document - 1) * pdb->documents.row_size,
			pdb->documents.row_size);
	if (!find_blob(pdb, read_index(&c, pdb->blob_index_size), &name))
		return false;
	uint8_t separator = cursor_u8(&name);
	for (bool first = true; cursor_left(&name) && !name.short_read; first = false) {
		uint32_t index = metadata_compressed(&name);
		if (name.short_read || (index && !find_blob(pdb, index, &part)) ||
			out->len - begin > PATH_SIZE_MAX) {
			out->len = begin;
			return false;
		}
		if (!first && separator)
			bytes_u8(out, separator);
		if (index)
			bytes_add(out, part.at, cursor_left(&part));
	}
	return out->len > begin;
}
