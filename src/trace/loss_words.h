/* The words of Spoor's Loss event (losses.def), for its writers and its readers. Constant data. */
#ifndef SPOOR_TRACE_LOSS_WORDS_H
#define SPOOR_TRACE_LOSS_WORDS_H

/* 0 of each: a word that the list does not have. */
enum loss_source {
	LOSS_SOURCE_OTHER,
#define LOSS_SOURCE(source, word) source,
#include "trace/losses.def"
	LOSS_SOURCES
};

enum loss_unit {
	LOSS_UNIT_OTHER,
#define LOSS_UNIT(unit, word) unit,
#include "trace/losses.def"
	LOSS_UNITS
};

/* "ring", "samples"; "" for LOSS_SOURCE_OTHER and LOSS_UNIT_OTHER, which any other word gives back. */
const char *loss_source_word(enum loss_source source);
const char *loss_unit_word(enum loss_unit unit);
enum loss_source loss_source_of(const char *word);
enum loss_unit loss_unit_of(const char *word);

#endif
