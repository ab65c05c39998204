/* See event_patterns.h. */
#include "recording/event_patterns.h"

#include <errno.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"

#define PATTERN_MAX 512u

static bool has_one(const char *pattern, size_t len, const char *provider, const char *event)
{
	char text[PATTERN_MAX + 1];

	memcpy(text, pattern, len);
	text[len] = '\0';
	char *colon = strchr(text, ':');
	if (colon)
		*colon = '\0';
	return text_glob(text, provider) && (!colon || !event || text_glob(colon + 1, event));
}

bool event_patterns_have(const char *const *patterns, const char *provider, const char *event)
{
	for (; patterns && *patterns; patterns++)
		for (const char *at = *patterns; *at;) {
			size_t len = strcspn(at, ",");
			if (has_one(at, len, provider, event))
				return true;
			at += len + (at[len] == ',');
		}
	return false;
}

int event_patterns_check(const char *const *patterns, const char *option, const char *what,
	const char *events, struct diag *diag)
{
	for (; patterns && *patterns; patterns++) {
		const char *at = *patterns;
		do {
			size_t len = strcspn(at, ",");
			const char *colon = memchr(at, ':', len);
			size_t provider_len = colon ? (size_t)(colon - at) : len;
			bool second = colon && memchr(colon + 1, ':', len - provider_len - 1);
			if (!provider_len || len > PATTERN_MAX || second ||
				(colon && provider_len + 1 == len)) {
				diag_set(diag, -EINVAL, "%s '%s' names no %s", option, *patterns,
					what);
				diag_remedy(diag,
					"PROVIDER or PROVIDER:%s, several with commas; * stands for any characters",
					events);
				return -EINVAL;
			}
			at += len;
		} while (*at++ == ',');
	}
	return 0;
}
