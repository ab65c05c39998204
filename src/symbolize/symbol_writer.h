/*
 * Writes what the symbolizer has found to the file: mappings, their images, symbols and methods, each
 * before the first sample that needs it. Part of the symbolizer.
 */
#ifndef SPOOR_SYMBOLIZE_SYMBOL_WRITER_H
#define SPOOR_SYMBOLIZE_SYMBOL_WRITER_H

#include "symbolize/symbolizer_state.h"

struct code;
struct mapping;

/* A text of the trace. */
const char *symbol_writer_text(const struct symbolizer *symbolizer, uint32_t index);

/* The kind of a mapping with this path. */
bool symbol_writer_is_jit(const char *path);
bool symbol_writer_is_managed_image(const char *path);

/* Writes the event whose payload is in symbolizer->payload. */
int symbol_writer_emit(struct symbolizer *symbolizer, enum known_event known, uint32_t process);

/*
 * Writes a mapping when an address in it is first named, and before it the metadata of its image.
 */
int symbol_writer_mapping(struct symbolizer *symbolizer, uint32_t index);

/* Once for each begin in a mapping. */
int symbol_writer_symbol(struct symbolizer *symbolizer, uint32_t process, uint64_t mapping_id,
	uint64_t begin, uint64_t end, const char *name, size_t name_len);

/*
 * Writes a managed method: its name as a symbol, then the other properties (kind, tier, lifetime)
 * as a code event.
 */
int symbol_writer_code(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit,
	struct code *code);

/* Whether the body is a range whose owner at its time is not known. */
bool symbol_writer_is_unread(const struct code *code);

/* Writes the kernel's mapping to each process with kernel frames, with the same id for all. */
int symbol_writer_map_kernel(struct symbolizer *symbolizer, uint32_t process);

/* Once a process: writes a mapping and a symbol for STACK_LOST_CALLER. 0 or a negative errno. */
int symbol_writer_map_lost(struct symbolizer *symbolizer, uint32_t process);

/* Returns the state of an address that has this name. */
uint8_t symbol_writer_kernel_symbol(struct symbolizer *symbolizer, uint64_t begin, uint64_t end,
	const char *name, size_t name_len);

/* The index of a mapping's image; 0 without memory. */
uint32_t symbol_writer_image(struct symbolizer *symbolizer, const struct mapping *mapping);

/*
 * Methods at addresses that another method used before need an unload event; otherwise viewers show
 * the first method's name for them.
 */
void symbol_writer_end_reused(struct symbolizer *symbolizer);

/*
 * Removes the symbols in the mappings of ended processes from the index, because they are not
 * looked up again. Without memory they stay.
 */
void symbol_writer_forget(struct symbolizer *symbolizer, const bool *dead, uint32_t count);

#endif
