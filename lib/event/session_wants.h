/*
 * Which events a session enables: a list of wants, each with the name of a provider, a level, keywords
 * and ids. Any thread, no lock.
 */
#ifndef SPOOR_LIB_EVENT_SESSION_WANTS_H
#define SPOOR_LIB_EVENT_SESSION_WANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spoor/spoor.h>

/* Compares provider names as tools do: without regard to ASCII case. */
bool provider_name_matches(const char *wanted, const char *name);

/*
 * Does `want` enable an event of this level, keywords and id? The name is not compared. This is the
 * only implementation of the rule.
 */
bool want_admits(const struct spoor_want *want, uint32_t level, uint64_t keywords, uint32_t id);
/* Is `name` that of the provider, or does the want enable everything? */
bool want_names(const struct spoor_want *want, const char *name);
struct session_wants {
	struct spoor_want *wants; /* deep copies */
	size_t count;
};

/*
 * Copies what the program passed. 0, -ENOMEM, or -EINVAL: a want has no name, a pattern, or a level
 * that does not exist.
 */
int session_wants_copy(struct session_wants *ret_wants, const struct spoor_want *wants,
	size_t count);
void session_wants_done(struct session_wants *wants);

#endif
