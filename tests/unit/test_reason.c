/* The list of reasons: unique code words, sentences that fit their kind, and errors. */
#include "unit/test.h"

#include <errno.h>

#include "base/diag.h"
#include "dotnet/reason.h"

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(reason_word(REASON_KIND_NONE), "");
	for (unsigned kind = REASON_KIND_NONE + 1; kind < REASON_KIND_COUNT; kind++) {
		const char *word = reason_word((enum reason_kind)kind);
		assert_true(*word);
		assert_int_equal(strspn(word, "abcdefghijklmnopqrstuvwxyz-"), strlen(word));
		for (unsigned other = REASON_KIND_NONE + 1; other < kind; other++)
			assert_string_not_equal(word, reason_word((enum reason_kind)other));
		assert_non_null(reason_remedy((enum reason_kind)kind));
	}
}

static void test_sentences(void **state)
{
	(void)state;
	assert_string_equal(reason_text(REASON_NONE), "");
	for (unsigned reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
		assert_true(*reason_text((enum reason)reason));
		assert_null(strchr(reason_text((enum reason)reason), '%'));
		assert_int_not_equal(reason_kind((enum reason)reason), REASON_KIND_NONE);
	}
}

static void test_errors(void **state)
{
	(void)state;
	assert_string_equal(reason_word(reason_kind_of_error(-ENOENT)), "no-socket");
	assert_string_equal(reason_word(reason_kind_of_error(-EACCES)), "permission");
	assert_string_equal(reason_word(reason_kind_of_error(-EPERM)), "spoofed");
	assert_string_equal(reason_word(reason_kind_of_error(-ECANCELED)), "guarded");
	assert_string_equal(reason_word(reason_kind_of_error(-EIO)), "error");
}

static void test_set(void **state)
{
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(reason_set(&diag, -EACCES, REASON_HIDDEN), -EACCES);
	assert_int_equal(diag.error, -EACCES);
	assert_int_equal(diag.reason, REASON_HIDDEN);
	assert_string_equal(diag.text, reason_text(REASON_HIDDEN));
	/* The first sentence is kept. */
	assert_int_equal(reason_set(&diag, -ENOENT, REASON_NO_SOCKET), -ENOENT);
	assert_int_equal(diag.reason, REASON_HIDDEN);
	assert_int_equal(reason_set(NULL, -ENOENT, REASON_NO_SOCKET), -ENOENT);
}

/* A reason that is the peer's silence ends with it; another reason stays. */
static void test_note(void **state)
{
	struct reason_note note = { 0 };

	(void)state;
	reason_note_set_silence(&note, true);
	assert_int_equal(note.kind, REASON_KIND_STOPPED);
	assert_string_equal(note.text, reason_text(REASON_STOPPED));
	reason_note_end_silence(&note);
	assert_int_equal(note.kind, REASON_KIND_NONE);
	assert_string_equal(note.text, "");
	reason_note_set_silence(&note, false);
	assert_int_equal(note.kind, REASON_KIND_HUNG);
	reason_note_set(&note, REASON_KIND_SLOTS, "it has no room");
	reason_note_end_silence(&note);
	assert_int_equal(note.kind, REASON_KIND_SLOTS);
	assert_string_equal(note.text, "it has no room");
	reason_note_set_known(&note, REASON_BAD_STREAM);
	assert_int_equal(note.kind, REASON_KIND_LIED);
	assert_string_equal(note.text, reason_text(REASON_BAD_STREAM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_note),
	};

	return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
