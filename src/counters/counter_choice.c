/* See counter_choice.h. */
#include "counters/counter_choice.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/diag.h"

#define ONLY_EVENT_COUNTERS "EventCounters\\"

/* A name may hold what it likes except the separators of the request and the command line. */
static int take_name(struct counter_choice *choice, const char *text, size_t len,
	const char **ret_name, struct diag *diag)
{
	while (len && *text == ' ') {
		text++;
		len--;
	}
	while (len && text[len - 1] == ' ')
		len--;
	if (!len || len > COUNTER_TEXT_MAX) {
		diag_set(diag, -EINVAL,
			len ? "a name in --counters is too long" : "--counters has an empty name");
		diag_remedy(diag, "write it as --counters 'Provider,Other[counter,counter]'");
		return -EINVAL;
	}
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || strchr("[];=\"", text[i]))
			return diag_set(diag, -EINVAL, "no counter has a '%c' in its name: '%.*s'",
				text[i], (int)len, text);
	}
	char *name = arena_alloc(&choice->arena, len + 1);

	if (!name)
		return -ENOMEM;
	memcpy(name, text, len);
	name[len] = '\0';
	*ret_name = name;
	return 0;
}

static struct counter_provider *find_or_add(struct counter_choice *choice, const char *name,
	bool only, bool *ret_new)
{
	vec_each(provider, &choice->providers) {
		if (provider->only_event_counters == only && strcmp(provider->name, name) == 0) {
			*ret_new = false;
			return provider;
		}
	}
	struct counter_provider *provider = vec_push(&choice->providers);

	if (provider) {
		provider->name = name;
		provider->only_event_counters = only;
	}
	*ret_new = true;
	return provider;
}

/* The counter names between the brackets. */
static int take_counters(struct counter_choice *choice, struct counter_provider *provider,
	const char *text, size_t len, struct diag *diag)
{
	for (;;) {
		const char *comma = memchr(text, ',', len);
		size_t part = comma ? (size_t)(comma - text) : len;
		const char *name;
		int result = take_name(choice, text, part, &name, diag);
		if (result < 0)
			return result;
		if (!vec_add(&provider->counters, name))
			return -ENOMEM;
		if (!comma)
			return 0;
		text += part + 1;
		len -= part + 1;
	}
}

static int take_provider(struct counter_choice *choice, const char *text, size_t len,
	const char *counters, size_t counters_len, struct diag *diag)
{
	size_t prefix = strlen(ONLY_EVENT_COUNTERS);
	bool only = len > prefix && strncmp(text, ONLY_EVENT_COUNTERS, prefix) == 0;
	const char *name;
	bool is_new;
	int result = take_name(choice, only ? text + prefix : text, only ? len - prefix : len,
		&name, diag);

	if (result < 0)
		return result;
	if (choice->providers.count >= COUNTER_PROVIDERS_MAX)
		return diag_set(diag, -EINVAL, "--counters names more than %u providers",
			COUNTER_PROVIDERS_MAX);
	struct counter_provider *provider = find_or_add(choice, name, only, &is_new);

	if (!provider)
		return -ENOMEM;
	if (!counters) {
		/* the provider's whole set, which includes the counters named before */
		vec_reset(&provider->counters);
		return 0;
	}
	if (!is_new && !provider->counters.count)
		return 0;
	return take_counters(choice, provider, counters, counters_len, diag);
}

int counter_choice_add(struct counter_choice *choice, const char *text, struct diag *diag)
{
	for (;;) {
		size_t len = strcspn(text, ",[");
		const char *counters = NULL;
		size_t counters_len = 0;
		const char *next = text + len;
		if (*next == '[') {
			counters = next + 1;
			const char *end = strchr(counters, ']');
			if (!end || (end[1] && end[1] != ',')) {
				diag_set(diag, -EINVAL,
					"--counters has no ']' that ends a list: '%s'", text);
				diag_remedy(diag,
					"write it as --counters 'Provider,Other[counter,counter]'");
				return -EINVAL;
			}
			counters_len = (size_t)(end - counters);
			next = end + 1;
		}
		int result = take_provider(choice, text, len, counters, counters_len, diag);
		if (result < 0)
			return result == -ENOMEM ? diag_set(diag, result, "out of memory") : result;
		if (!*next)
			return 0;
		text = next + 1;
	}
}

static bool names_it(const struct counter_provider *provider, const char *counter)
{
	for (uint32_t i = 0; i < provider->counters.count; i++) {
		if (strcmp(provider->counters.items[i], counter) == 0)
			return true;
	}
	return false;
}

/* The runtime's own rule: a * at the end of a pattern matches any text. */
static bool fits(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	if (len && pattern[len - 1] == '*')
		return strncmp(pattern, name, len - 1) == 0;
	return strcmp(pattern, name) == 0;
}

bool counter_provider_fits(const struct counter_provider *provider, const char *name)
{
	return fits(provider->name, name);
}

bool counter_choice_has_instrument(const struct counter_choice *choice, const char *meter,
	const char *instrument)
{
	vec_each(provider, &choice->providers) {
		if (!provider->only_event_counters && fits(provider->name, meter) &&
			(!provider->counters.count || names_it(provider, instrument)))
			return true;
	}
	return false;
}

bool counter_choice_has_event_counter(const struct counter_choice *choice, const char *provider,
	const char *counter, bool meter_exists)
{
	vec_each(p, &choice->providers) {
		if (strcmp(p->name, provider) != 0)
			continue;
		if (p->counters.count ? names_it(p, counter)
				      : p->only_event_counters || !meter_exists)
			return true;
	}
	return false;
}

bool counter_choice_has_provider(const struct counter_choice *choice, const char *provider)
{
	for (uint32_t i = 0; i < choice->providers.count; i++) {
		if (fits(choice->providers.items[i].name, provider))
			return true;
	}
	return false;
}

void counter_choice_add_meters(const struct counter_choice *choice, struct bytes *out)
{
	bool first = true;

	for (uint32_t i = 0; i < choice->providers.count; i++) {
		if (choice->providers.items[i].only_event_counters)
			continue;
		if (!first)
			bytes_text(out, ",");
		bytes_text(out, choice->providers.items[i].name);
		first = false;
	}
}

void counter_choice_done(struct counter_choice *choice)
{
	for (uint32_t i = 0; i < choice->providers.count; i++)
		vec_done(&choice->providers.items[i].counters);
	vec_done(&choice->providers);
	arena_done(&choice->arena);
}
