/*
 * See session_wants.h.
 */
#include "lib/event/session_wants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool provider_name_matches(const char *wanted, const char *name)
{
	size_t i = 0;

	while (wanted[i] && lower(wanted[i]) == lower(name[i]))
		i++;
	return lower(wanted[i]) == lower(name[i]);
}

static bool want_is_everything(const struct spoor_want *want)
{
	return want->name[0] == '*' && !want->name[1] && want->keywords == UINT64_MAX &&
	       want->level >= SPOOR_VERBOSE;
}

bool want_admits(const struct spoor_want *want, uint32_t level, uint64_t keywords, uint32_t id)
{
	if (keywords && !(keywords & want->keywords))
		return false;
	if (level != SPOOR_ALWAYS && level > want->level)
		return false;
	for (size_t i = 0; i < want->id_count; i++)
		if (want->ids[i] == id)
			return want->ids_allowed;
	return !want->ids_allowed;
}

bool want_names(const struct spoor_want *want, const char *name)
{
	return want_is_everything(want) || provider_name_matches(want->name, name);
}

int session_wants_copy(struct session_wants *ret_wants, const struct spoor_want *wants,
	size_t count)
{
	struct session_wants copy = { calloc(count ? count : 1, sizeof(struct spoor_want)), 0 };
	const char *at = (const char *)wants;

	if (!copy.wants)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct spoor_want *from = (const struct spoor_want *)(const void *)at;
		struct spoor_want want = { 0 };
		if (from->size < offsetof(struct spoor_want, arguments) || from->size > 4096) {
			session_wants_done(&copy);
			return -EINVAL;
		}
		memcpy(&want, from, from->size < sizeof(want) ? from->size : sizeof(want));
		at += from->size;
		/* Except for "everything" there are no patterns: such a want would never match. */
		if (!want.name || !want.name[0] || want.level > SPOOR_VERBOSE ||
			(want.id_count && !want.ids) ||
			(strchr(want.name, '*') && !want_is_everything(&want))) {
			session_wants_done(&copy);
			return -EINVAL;
		}
		uint32_t *ids = malloc((want.id_count ? want.id_count : 1) * sizeof(*ids));
		if (ids && want.id_count)
			memcpy(ids, want.ids, want.id_count * sizeof(*ids));
		struct spoor_want *to = &copy.wants[copy.count++];
		*to = want;
		to->size = sizeof(*to);
		to->ids = ids;
		to->name = strdup(want.name);
		to->arguments = want.arguments ? strdup(want.arguments) : NULL;
		if (!ids || !to->name || (want.arguments && !to->arguments)) {
			session_wants_done(&copy);
			return -ENOMEM;
		}
	}
	*ret_wants = copy;
	return 0;
}

void session_wants_done(struct session_wants *wants)
{
	for (size_t i = 0; i < wants->count; i++) {
		free((void *)(uintptr_t)wants->wants[i].name);
		free((void *)(uintptr_t)wants->wants[i].arguments);
		free((void *)(uintptr_t)wants->wants[i].ids);
	}
	free(wants->wants);
	*wants = (struct session_wants){ NULL, 0 };
}
