/*
 * The options of one verb, from one list: struct VERB_values, and VERB_options[] for options.h.
 *
 *   #define OPTIONS_VERB heap
 *   #define OPTIONS_LIST "cli/heap_options.def"
 *   #include "cli/option_list.h"
 *
 * A row of the list makes a member and an option: KIND(member, letter, "name", "ARGUMENT", "help"), FLAG()
 * without an argument. ROW() makes an option that fills a member of another row, ROWS() inserts the
 * rows of a macro, and MEMBER() makes a member only. Included once by each file of a verb.
 */
#include "cli/options.h"

#define OPTIONS_GLUE_(a, b) a##b
#define OPTIONS_GLUE(a, b)  OPTIONS_GLUE_(a, b)
#define VALUES              struct OPTIONS_GLUE(OPTIONS_VERB, _values)

#define MEMBER(type, member)                           type member;
#define FLAG(member, letter, name, help)               bool member;
#define TEXT(member, letter, name, argument, help)     const char *member;
#define TEXTS(member, letter, name, argument, help)    struct texts member;
#define COUNT(member, letter, name, argument, help)    uint64_t member;
#define POSITIVE(member, letter, name, argument, help) uint64_t member;
#define DURATION(member, letter, name, argument, help) uint64_t member;
#define SIZE(member, letter, name, argument, help)     uint64_t member;
#define CHOICE(member, letter, name, argument, help)   unsigned member;
#define ROW(member, letter, name, argument, help, kind)
#define ROWS(...)
VALUES{
#include OPTIONS_LIST
};

#undef MEMBER
#undef FLAG
#undef TEXT
#undef TEXTS
#undef COUNT
#undef POSITIVE
#undef DURATION
#undef SIZE
#undef CHOICE
#undef ROW
#undef ROWS
#define MEMBER(type, member)
#define ROW(member, letter, name, argument, help, kind) \
	{ letter, name, argument, help, kind, INTO(VALUES, member) },
#define ROWS(...)                        __VA_ARGS__,
#define FLAG(member, letter, name, help) ROW(member, letter, name, NULL, help, OPTION_FLAG)
#define TEXT(member, letter, name, argument, help) \
	ROW(member, letter, name, argument, help, OPTION_TEXT)
#define TEXTS(member, letter, name, argument, help) \
	ROW(member, letter, name, argument, help, OPTION_TEXTS)
#define COUNT(member, letter, name, argument, help) \
	ROW(member, letter, name, argument, help, OPTION_COUNT)
#define POSITIVE(member, letter, name, argument, help) \
	ROW(member, letter, name, argument, help, OPTION_POSITIVE)
#define DURATION(member, letter, name, argument, help) \
	ROW(member, letter, name, argument, help, OPTION_DURATION)
#define SIZE(member, letter, name, argument, help) \
	ROW(member, letter, name, argument, help, OPTION_SIZE)
#define CHOICE(member, letter, name, argument, help) \
	ROW(member, letter, name, argument, help, OPTION_CHOICE)
const struct option OPTIONS_GLUE(OPTIONS_VERB, _options)[] = {
#include OPTIONS_LIST
	{ 0 },
};
