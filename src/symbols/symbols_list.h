/* The images of a recording without symbols, as text and JSON: the output of `spoor symbols list`. */
#ifndef SPOOR_SYMBOLS_SYMBOLS_LIST_H
#define SPOOR_SYMBOLS_SYMBOLS_LIST_H

#include <stdint.h>

struct bytes;
struct missing_symbols;
struct symbol_cache_list;
struct symbol_names;

/* A table with a heading; nothing if no image lacks symbols. */
void symbols_list_text(const struct missing_symbols *missing, const struct symbol_names *found,
	struct bytes *out);
void symbols_list_json(const struct missing_symbols *missing, const struct symbol_names *found,
	const char *file, struct bytes *out);

/* The files of the symbol cache in `folder`; `now_s` is UTC. */
void symbol_cache_text(const struct symbol_cache_list *list, const char *folder, int64_t now_s,
	struct bytes *out);
void symbol_cache_json(const struct symbol_cache_list *list, const char *folder, int64_t now_s,
	struct bytes *out);

#endif
