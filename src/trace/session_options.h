/* The options of a recording, which Spoor's Session event has as JSON, as values. */
#ifndef SPOOR_TRACE_SESSION_OPTIONS_H
#define SPOOR_TRACE_SESSION_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* Of each member of session_options.def: 0 means that the options lack it. */
enum session_value {
	SESSION_UNKNOWN,
#define SESSION_VALUE(member, enumerator, word) enumerator,
#include "trace/session_options.def"
};

enum session_flag {
	SESSION_NOT_SAID,
	SESSION_NO,
	SESSION_YES,
};

struct session_options {
#define SESSION_FLAG(member, name) enum session_flag member;
#include "trace/session_options.def"
#define SESSION_WORD(member, name) enum session_value member;
#include "trace/session_options.def"
};

/* The word of a value in the options; NULL: SESSION_UNKNOWN. */
const char *session_value_word(enum session_value value);

/*
 * Reads the members that session_options.def lists; others, nested ones, and words that it does not list are passed over.
 * Text that is not JSON gives the members up to there.
 */
void session_options_read(const char *json, size_t len, struct session_options *ret_options);

#endif
