/* SPOOR_BLOCK with a callback that is slower than block_ms for the buffer, but takes events all the time: none is lost. */
#include "unit/test.h"

#include <spoor/spoor.h>

#include <string.h>
#include <unistd.h>

SPOOR_PROVIDER(slow, "Slow")
SPOOR_EVENT(slow, number, 1, SPOOR_INFO, 0x1, (u64, value), (text, text))

#define EVENTS   100u
#define BLOCK_MS 1000u
#define TAKE_US  104000u /* the buffer holds some 23 events: 2.4 times BLOCK_MS */

static void take_slowly(const struct spoor_event_view *event, void *context)
{
	uint64_t *next = context;
	struct spoor_value value;

	assert_int_equal(spoor_event_field(event, "value", &value), 0);
	assert_int_equal(value.u64, *next);
	*next += 1;
	usleep(TAKE_US);
}

static void test_nothing_is_lost(void **state)
{
	struct spoor_options start = { .size = sizeof(start), .ring_bytes = 64 << 10 };
	struct spoor_want want = {
		.size = sizeof(want), .name = "Slow", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = { .size = sizeof(options),
		.wants = &want,
		.want_count = 1,
		.policy = SPOOR_BLOCK,
		.block_ms = BLOCK_MS,
		.buffer_bytes = 64 << 10 };
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	struct spoor_session *session = NULL;
	uint64_t taken = 0;
	char words[1400];

	(void)state;
	memset(words, 'w', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	assert_int_equal(spoor_start(&start), 0);
	assert_int_equal(spoor_provider_register(&slow), 0);
	assert_int_equal(spoor_session_start_callback(&options, take_slowly, &taken, &session), 0);
	for (uint64_t i = 0; i < EVENTS; i++)
		slow_number(i, words);
	spoor_session_stop(session);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.lost, 0);
	assert_int_equal(taken, EVENTS);
	spoor_session_free(session);
	spoor_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
