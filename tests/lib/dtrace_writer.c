/*
 * dtrace_writer: libspoor without sessions fires every kind of event to a stand-in of DTrace's
 * probes, which prints them: level, provider, event, id, keywords, fields.
 */
#include <stdio.h>
#include <unistd.h>

#include <spoor/logger.h>

#include "spoor_dtrace.h"

#include "lib/all_types.h"

/* Which level's probe is enabled. */
int libspoor_on[6];

static const char *const levels[] = { "always", "critical", "error", "warning", "info", "verbose" };

void libspoor_hit(int level, const char *provider, const char *event, unsigned id,
	unsigned long long keywords, const char *fields)
{
	printf("{\"level\":\"%s\",\"provider\":\"%s\",\"event\":\"%s\",\"id\":%u,\"keywords\":\"0x%llx\",\"fields\":%s}\n",
		levels[level], provider, event, id, keywords, fields);
}

SPOOR_PROVIDER(odd, "Odd")
SPOOR_EVENT(odd, text, 1, SPOOR_ERROR, 0x8000000000000001, (text, value), (f64, number),
	(i64, least), (u64, most))

static int wait_for(bool (*is_enabled)(void), bool wanted)
{
	for (int i = 0; i < 15000 && is_enabled() != wanted; i++)
		usleep(10000);
	return is_enabled() == wanted ? 0 : 1;
}

int main(void)
{
	static char large[9000];
	double infinite = 1e308;

	if (spoor_start(NULL) || spoor_provider_register(&types) || spoor_provider_register(&odd) ||
		spoor_logger_start(SPOOR_LOGGER_DTRACE))
		return 1;
	types_fire_all();
	for (int i = 0; i < 6; i++)
		libspoor_on[i] = i != SPOOR_VERBOSE;
	if (wait_for(odd_text_enabled, true) || wait_for(types_plain_enabled, true))
		return 1;
	types_fire_all();
	libspoor_on[SPOOR_VERBOSE] = 1;
	if (wait_for(types_arrays_enabled, true))
		return 1;
	types_fire_all();
	infinite *= 10;
	odd_text("a \"quote\", a \\ and \x01\x1f\n", infinite, INT64_MIN, UINT64_MAX);
	memset(large, 'x', sizeof(large) - 1);
	odd_text(large, 0, 0, 0);
	spoor_stop();
	odd_text("after the end", 0, 0, 0);
	return 0;
}
