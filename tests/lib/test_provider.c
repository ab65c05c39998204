/*
 * Which session gets which event: every combination of two providers' events over levels, keywords
 * and ids with many sessions at a time, each with random wants, compared with a second, naive
 * implementation of the rule. And enable callbacks: which calls are made, and in which order.
 */
#include "unit/test.h"

#include <errno.h>
#include <strings.h>

#include <spoor/spoor.h>

#define EVENTS   48u
#define SESSIONS 24u
#define ROUNDS   30u

/* 6 levels x 4 keywords x 2 providers; the id is the place in its provider + 1. */
static const uint64_t keyword_choice[4] = { 0, 0x1, 0x8000000000000000, 0x6 };
static struct spoor_event events[EVENTS];
static struct spoor_event *lists[2][EVENTS / 2];
static struct spoor_provider providers[2];
static const struct spoor_field number_field[] = { { "number", SPOOR_TYPE_U32, 0, NULL } };

static uint64_t seed = 12345;

static uint32_t draw(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static void world_make(void)
{
	static char names[EVENTS][16];

	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t own = i / 2;
		snprintf(names[i], sizeof(names[i]), "event%u", i);
		events[i] = (struct spoor_event){ .size = sizeof(events[i]),
			.provider = &providers[i % 2],
			.name = names[i],
			.keywords = keyword_choice[own % 4],
			.fields = number_field,
			.field_count = 1,
			.id = (uint16_t)(own + 1),
			.level = (uint8_t)(own / 4) };
		lists[i % 2][own] = &events[i];
	}
	for (int i = 0; i < 2; i++) {
		providers[i].size = sizeof(providers[i]);
		providers[i].name = i ? "World-B" : "World-A";
		providers[i].events = lists[i];
		providers[i].events_end = lists[i] + EVENTS / 2;
	}
}

struct wish {
	struct spoor_want wants[3];
	uint32_t ids[3][4];
	size_t count;
};

static void wish_draw(struct wish *wish)
{
	static const char *const names[] = { "World-A", "World-B", "world-a", "WORLD-B", "*",
		"Other" };
	static const uint64_t masks[] = { 0, UINT64_MAX, 0x1, 0x2, 0x8000000000000001, 0x4 };

	wish->count = 1 + draw(3);
	for (size_t i = 0; i < wish->count; i++) {
		struct spoor_want *want = &wish->wants[i];
		*want = (struct spoor_want){ .size = sizeof(*want),
			.name = names[draw(6)],
			.keywords = masks[draw(6)],
			.level = draw(6) };
		if (want->name[0] == '*') {
			want->keywords = UINT64_MAX;
			want->level = SPOOR_VERBOSE;
		}
		want->ids_allowed = draw(4) == 0;
		want->id_count = draw(2) ? draw(5) : 0;
		want->ids = wish->ids[i];
		for (size_t k = 0; k < want->id_count; k++)
			wish->ids[i][k] = draw(EVENTS / 2) + 1;
	}
}

/* The rule, implemented naively. */
static bool expected(const struct wish *wish, const struct spoor_event *event)
{
	for (size_t i = 0; i < wish->count; i++) {
		const struct spoor_want *want = &wish->wants[i];
		bool all = strcmp(want->name, "*") == 0 && want->level == 5 &&
			   want->keywords == UINT64_MAX;
		bool name = strcasecmp(want->name, event->provider->name) == 0;
		bool keywords = event->keywords == 0 || (event->keywords & want->keywords) != 0;
		bool level = event->level == 0 || event->level <= want->level;
		bool listed = false;
		for (size_t k = 0; k < want->id_count; k++)
			listed = listed || want->ids[k] == event->id;
		if ((all || name) && keywords && level && listed == want->ids_allowed)
			return true;
	}
	return false;
}

/*
 * The next event of the test's providers: a session that enables everything also gets samples of
 * this thread.
 */
static int read_own(struct spoor_session *session, struct spoor_event_view *ret_view)
{
	int r;

	do
		r = spoor_listener_read(session, ret_view, 0);
	while (r == 1 && strncmp(ret_view->info->provider, "World-", 6) != 0);
	return r;
}

static void every_subset_gets_what_the_rule_says(void **state)
{
	static struct wish wishes[SESSIONS];
	struct spoor_session *sessions[SESSIONS];
	struct spoor_event_view view = { .size = sizeof(view) };

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t s = 0; s < SESSIONS; s++) {
			wish_draw(&wishes[s]);
			struct spoor_session_options options = { .size = sizeof(options),
				.wants = wishes[s].wants,
				.want_count = wishes[s].count };
			assert_int_equal(spoor_session_start_listener(&options, &sessions[s]), 0);
			/* Providers that are registered while sessions run get the same events. */
			if (s == SESSIONS / 2 && round % 2) {
				spoor_provider_unregister(&providers[0]);
				assert_int_equal(spoor_provider_register(&providers[0]), 0);
			}
		}
		for (uint32_t i = 0; i < EVENTS; i++) {
			bool any = false;
			for (uint32_t s = 0; s < SESSIONS; s++)
				any = any || expected(&wishes[s], &events[i]);
			assert_int_equal(spoor_event_enabled(&events[i]), any);
			spoor_fire(&events[i], &i, sizeof(i));
		}
		for (uint32_t s = 0; s < SESSIONS; s++) {
			assert_int_equal(spoor_session_stop(sessions[s]), 0);
			for (uint32_t i = 0; i < EVENTS; i++) {
				uint32_t number;
				if (!expected(&wishes[s], &events[i]))
					continue;
				assert_int_equal(read_own(sessions[s], &view), 1);
				assert_int_equal(view.payload_size, sizeof(number));
				memcpy(&number, view.payload, sizeof(number));
				assert_int_equal(number, i);
				assert_string_equal(view.info->name, events[i].name);
			}
			assert_int_equal(read_own(sessions[s], &view), -ESHUTDOWN);
			spoor_session_free(sessions[s]);
		}
		for (uint32_t i = 0; i < EVENTS; i++)
			assert_false(spoor_event_enabled(&events[i]));
	}
}

/* ---- Enable callbacks ---- */

struct notified {
	struct spoor_enable calls[32];
	char arguments[32][32];
	unsigned count;
	struct spoor_session *inner;
};

/* A provider with a callback has an event, too. */
static struct spoor_event *const *one_event(struct spoor_provider *provider)
{
	static struct spoor_event event;
	static struct spoor_event *list[] = { &event };

	event = (struct spoor_event){
		.size = sizeof(event), .provider = provider, .name = "only", .id = 1
	};
	return list;
}

static void note_enable(const struct spoor_enable *what, void *context)
{
	struct notified *notified = context;

	assert_true(notified->count < 32);
	snprintf(notified->arguments[notified->count], 32, "%s",
		what->arguments ? what->arguments : "(none)");
	notified->calls[notified->count++] = *what;
}

static struct spoor_session *wanting(const char *name, uint64_t keywords, uint32_t level,
	const char *arguments)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = name,
		.keywords = keywords,
		.level = level,
		.arguments = arguments };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session = NULL;

	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	return session;
}

static void enable_callbacks_are_called(void **state)
{
	static struct notified notified;
	struct spoor_provider provider = { .size = sizeof(provider),
		.name = "Notified",
		.events = one_event(&provider),
		.events_end = one_event(&provider) + 1,
		.enable = note_enable,
		.enable_context = &notified };

	(void)state;
	struct spoor_session *before = wanting("Notified", 0x10, 2, "a=1");
	assert_int_equal(spoor_provider_register(&provider), 0);
	assert_int_equal(notified.count, 1);
	assert_true(notified.calls[0].enabled);
	assert_string_equal(notified.arguments[0], "a=1");
	assert_int_equal(notified.calls[0].session_id, spoor_session_id(before));
	struct spoor_session *other = wanting("notified", 0x3, 4, NULL);
	struct spoor_session *neither = wanting("Notifie", UINT64_MAX, 5, "x");
	assert_int_equal(notified.count, 2);
	assert_string_equal(notified.arguments[1], "(none)");
	assert_int_equal(notified.calls[1].keywords, 0x3);
	assert_int_equal(notified.calls[1].any_keywords, 0x13);
	assert_int_equal(notified.calls[1].any_level, 4);
	spoor_session_stop(other);
	assert_int_equal(notified.count, 3);
	assert_false(notified.calls[2].enabled);
	assert_true(notified.calls[2].any_enabled);
	assert_int_equal(notified.calls[2].any_level, 2);
	spoor_session_stop(before);
	assert_int_equal(notified.count, 4);
	assert_false(notified.calls[3].any_enabled);
	spoor_provider_unregister(&provider);
	spoor_session_free(before);
	spoor_session_free(other);
	spoor_session_free(neither);
}

/*
 * A callback that starts and stops a session: no deadlock, and its own changes are reported after
 * it returns.
 */
static void reentrant_enable(const struct spoor_enable *what, void *context)
{
	struct notified *notified = context;

	note_enable(what, context);
	if (what->enabled && notified->count == 1)
		notified->inner = wanting("Reentrant", 0x2, 3, "inner");
	if (!what->enabled && notified->inner) {
		struct spoor_session *inner = notified->inner;
		notified->inner = NULL;
		spoor_session_free(inner);
	}
}

static void callbacks_may_start_sessions(void **state)
{
	static struct notified notified;
	struct spoor_provider provider = { .size = sizeof(provider),
		.name = "Reentrant",
		.events = one_event(&provider),
		.events_end = one_event(&provider) + 1,
		.enable = reentrant_enable,
		.enable_context = &notified };

	(void)state;
	assert_int_equal(spoor_provider_register(&provider), 0);
	struct spoor_session *session = wanting("Reentrant", 0x1, 2, "outer");
	assert_int_equal(notified.count, 2);
	assert_string_equal(notified.arguments[0], "outer");
	assert_string_equal(notified.arguments[1], "inner");
	spoor_session_stop(session);
	assert_int_equal(notified.count, 4);
	assert_false(notified.calls[3].any_enabled);
	spoor_session_free(session);
	spoor_provider_unregister(&provider);
}

/* ---- Limits ---- */

static void as_many_sessions_as_slots_and_no_more(void **state)
{
	struct spoor_session *sessions[60];
	struct spoor_session *one_more = NULL;
	struct spoor_want want = {
		.size = sizeof(want), .name = "World-A", .keywords = 0x1, .level = 5
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};

	(void)state;
	for (int i = 0; i < 60; i++)
		sessions[i] = wanting("World-A", UINT64_MAX, 5, NULL);
	assert_int_equal(spoor_session_start_listener(&options, &one_more), -EBUSY);
	uint32_t number = 0;
	spoor_fire(&events[0], &number, sizeof(number));
	for (int i = 0; i < 60; i++) {
		struct spoor_event_view view = { .size = sizeof(view) };
		assert_int_equal(spoor_listener_read(sessions[i], &view, 1000), 1);
		assert_int_equal(spoor_session_stop(sessions[i]), 0);
		spoor_session_free(sessions[i]);
	}
	assert_int_equal(spoor_session_start_listener(&options, &one_more), 0);
	spoor_session_free(one_more);
}

static void bad_requests_are_refused(void **state)
{
	struct spoor_want want = { .size = sizeof(want), .name = "", .keywords = 0, .level = 5 };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session = NULL;

	(void)state;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	want.name = "World-A";
	want.level = 6;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	want.level = 5;
	want.id_count = 3;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	want.id_count = 0;
	/* They would never match. */
	want.name = "Wor*";
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	want.keywords = UINT64_MAX;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	want.name = "*";
	want.level = 4;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	want.level = 5;
	want.keywords = UINT64_MAX >> 1;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	want.name = "World-A";
	options.policy = 9;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	struct spoor_file_options file = { .size = sizeof(file), .path = "/nowhere/at/all" };
	options.policy = 0;
	assert_int_equal(spoor_session_start_file(&options, &file, &session), -ENOENT);
	static const struct spoor_field bad[] = { { "x", 99, 0, NULL } };
	struct spoor_provider provider = { .size = sizeof(provider), .name = "Bad" };
	struct spoor_event event = { .size = sizeof(event),
		.provider = &provider,
		.name = "Bad",
		.fields = bad,
		.field_count = 1,
		.id = 1 };
	struct spoor_event *list[] = { &event };
	provider.events = list;
	provider.events_end = list + 1;
	assert_int_equal(spoor_provider_register(&provider), -EINVAL);
	event.field_count = 0;
	provider.name = "B*d";
	assert_int_equal(spoor_provider_register(&provider), -EINVAL);
}

/* Also when its list has events of other providers only. */
static void a_provider_has_events(void **state)
{
	struct spoor_provider empty = { .size = sizeof(empty), .name = "Empty" };

	(void)state;
	assert_int_equal(spoor_provider_register(&empty), -ENODATA);
	empty.events = lists[0];
	empty.events_end = lists[0] + EVENTS / 2;
	assert_int_equal(spoor_provider_register(&empty), -ENODATA);
	assert_null(empty.registered);
}

/* A program that was built with headers which write rings in another way. */
static void another_protocol_is_refused(void **state)
{
	struct spoor_provider provider = { .size = sizeof(provider), .name = "Foreign" };
	struct spoor_event event = { .size = sizeof(event),
		.provider = &provider,
		.name = "event",
		.id = 1,
		.level = SPOOR_INFO,
		.protocol = SPOOR_RING_PROTOCOL + 1 };
	struct spoor_event *const list[] = { &event };

	(void)state;
	provider.events = list;
	provider.events_end = list + 1;
	assert_int_equal(spoor_provider_register(&provider), -EPROTONOSUPPORT);
	assert_null(provider.registered);
	event.protocol = SPOOR_RING_PROTOCOL;
	assert_int_equal(spoor_provider_register(&provider), 0);
	spoor_provider_unregister(&provider);
}

/* ---- Definitions that readers would take for one another ---- */

static const struct spoor_field text_field[] = { { "text", SPOOR_TYPE_TEXT, 0, NULL } };

struct declared {
	struct spoor_provider provider;
	struct spoor_event events[2];
	struct spoor_event *list[2];
};

/* A provider with one event of this id and these fields, or with two that differ in their fields. */
static void declare(struct declared *declared, const char *name, uint16_t id,
	const struct spoor_field *first, const struct spoor_field *second)
{
	const struct spoor_field *fields[2] = { first, second };
	size_t count = second ? 2 : 1;

	*declared = (struct declared){ .provider = { .size = sizeof(declared->provider),
					       .name = name,
					       .events = declared->list,
					       .events_end = declared->list + count } };
	for (size_t i = 0; i < count; i++) {
		declared->events[i] = (struct spoor_event){ .size = sizeof(declared->events[i]),
			.provider = &declared->provider,
			.name = i ? "bill" : "order",
			.fields = fields[i],
			.field_count = 1,
			.id = id };
		declared->list[i] = &declared->events[i];
	}
}

static void conflict_names(const char *first, const char *second)
{
	char text[512];

	spoor_provider_conflict(text, sizeof(text));
	const char *found = strstr(text, first);
	assert_non_null(found);
	assert_non_null(strstr(found, " conflicts with "));
	assert_non_null(strstr(strstr(found, " conflicts with "), second));
	spoor_provider_conflict(text, 4);
	assert_int_equal(strlen(text), 3);
}

/* Manifests have several versions of one id, and .NET's own events are what readers know. */
static void versions_of_one_id(void **state)
{
	struct declared both;

	(void)state;
	declare(&both, "Versions", 7, number_field, text_field);
	both.events[1].version = 1;
	assert_int_equal(spoor_provider_register(&both.provider), 0);
	assert_int_not_equal(both.events[0].index, both.events[1].index);
	spoor_provider_unregister(&both.provider);

	declare(&both, "Known", 7, number_field, text_field);
	both.events[0].flags = SPOOR_EVENT_WELL_KNOWN;
	assert_int_equal(spoor_provider_register(&both.provider), -EEXIST);
	both.events[1].flags = SPOOR_EVENT_WELL_KNOWN;
	assert_int_equal(spoor_provider_register(&both.provider), 0);
	spoor_provider_unregister(&both.provider);
}

static void one_id_is_one_event(void **state)
{
	struct declared both, other, same;
	struct spoor_session *session = wanting("Spoor-Library", UINT64_MAX, 5, NULL);
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_value value;

	(void)state;
	declare(&both, "Shop", 7, number_field, text_field);
	assert_int_equal(spoor_provider_register(&both.provider), -EEXIST);
	assert_null(both.provider.registered);
	conflict_names("event 7 'order' of 'Shop', version 0, level 0, keywords 0x0 (u32 number)",
		"event 7 'bill' of 'Shop', version 0, level 0, keywords 0x0 (text text)");
	assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
	assert_string_equal(view.info->name, "Conflict");
	assert_int_equal(spoor_event_field(&view, "Message", &value), 0);
	assert_non_null(strstr((const char *)value.bytes, "'bill'"));
	spoor_session_free(session);

	/* Two providers of one name, as sessions compare names. */
	declare(&both, "Shop", 7, number_field, NULL);
	declare(&same, "Shop", 7, number_field, NULL);
	declare(&other, "SHOP", 7, text_field, NULL);
	assert_int_equal(spoor_provider_register(&both.provider), 0);
	assert_int_equal(spoor_provider_register(&same.provider), 0);
	assert_int_equal(both.events[0].index, same.events[0].index);
	assert_int_equal(spoor_provider_register(&other.provider), -EEXIST);
	conflict_names("(u32 number)", "of 'SHOP', version 0, level 0, keywords 0x0 (text text)");
	other.events[0].id = 8;
	assert_int_equal(spoor_provider_register(&other.provider), 0);
	spoor_provider_unregister(&other.provider);
	other.events[0].id = 7;
	spoor_provider_unregister(&both.provider);
	assert_int_equal(spoor_provider_register(&other.provider), -EEXIST);
	spoor_provider_unregister(&same.provider);
	/* As after dlclose(): a plug-in's new version. Its events are other ones, for sessions too. */
	assert_int_equal(spoor_provider_register(&other.provider), 0);
	assert_int_not_equal(other.events[0].index, same.events[0].index);
	spoor_provider_unregister(&other.provider);
}

static uint32_t id_of_kind(struct spoor_event_source *source, struct spoor_session *session,
	const char *name)
{
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_writer w;

	assert_true(spoor_source_begin(source, name, SPOOR_INFO, 0, &w));
	spoor_write_u32(&w, "number", 1);
	assert_int_equal(spoor_source_end(&w), 0);
	assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
	assert_string_equal(view.info->name, name);
	return view.info->id;
}

static void sources_of_one_name_have_ids_of_their_own(void **state)
{
	struct declared declared;
	struct spoor_session *session = wanting("Till", UINT64_MAX, 5, NULL);
	struct spoor_event_source *first = spoor_source_new("Till");
	struct spoor_event_source *second = spoor_source_new("Till");

	(void)state;
	uint32_t open_id = id_of_kind(first, session, "open");
	uint32_t shut_id = id_of_kind(second, session, "shut");
	assert_int_not_equal(open_id, shut_id);
	assert_int_equal(id_of_kind(second, session, "open"), open_id);
	declare(&declared, "Till", (uint16_t)open_id, number_field, NULL);
	assert_int_equal(spoor_provider_register(&declared.provider), -EEXIST);
	declare(&declared, "Till", 1, number_field, NULL);
	assert_int_equal(spoor_provider_register(&declared.provider), 0);
	spoor_provider_unregister(&declared.provider);
	spoor_source_free(first);
	spoor_source_free(second);
	/* The session has events of that id already. */
	first = spoor_source_new("Till");
	uint32_t new_id = id_of_kind(first, session, "new");
	assert_true(new_id != open_id && new_id != shut_id && new_id != 1);
	spoor_source_free(first);
	spoor_session_free(session);
}

static int set_up(void **state)
{
	(void)state;
	world_make();
	return spoor_start(NULL) || spoor_provider_register(&providers[0]) ||
	       spoor_provider_register(&providers[1]);
}

static int tear_down(void **state)
{
	(void)state;
	spoor_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_subset_gets_what_the_rule_says),
		cmocka_unit_test(enable_callbacks_are_called),
		cmocka_unit_test(callbacks_may_start_sessions),
		cmocka_unit_test(as_many_sessions_as_slots_and_no_more),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(a_provider_has_events),
		cmocka_unit_test(versions_of_one_id),
		cmocka_unit_test(another_protocol_is_refused),
		cmocka_unit_test(one_id_is_one_event),
		cmocka_unit_test(sources_of_one_name_have_ids_of_their_own),
	};

	return cmocka_run_group_tests_name("provider", tests, set_up, tear_down);
}
