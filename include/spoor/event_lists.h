/*
 * Lists of macro arguments, and messages about wrong ones. Included by <spoor/spoor.h>.
 */
#ifndef SPOOR_EVENT_LISTS_H
#define SPOOR_EVENT_LISTS_H

struct spoor_event; /* a file of macros alone is not C */

/* Casts and null pointers that no warning of either language forbids. */
#ifdef __cplusplus
#define SPOOR_CAST(type, value) static_cast<type>(value)
#define SPOOR_ADDRESS(pointer)  reinterpret_cast<uintptr_t>(pointer)
#define SPOOR_NULL              nullptr
#else
#define SPOOR_CAST(type, value) ((type)(value))
#define SPOOR_ADDRESS(pointer)  ((uintptr_t)(pointer))
#define SPOOR_NULL              NULL
#endif

/* ---- m(x, field) for each field, with or without commas between ---- */

#define SPOOR_EACH_1(m, x, a)       m(x, a)
#define SPOOR_EACH_2(m, x, a, ...)  m(x, a) SPOOR_EACH_1(m, x, __VA_ARGS__)
#define SPOOR_EACH_3(m, x, a, ...)  m(x, a) SPOOR_EACH_2(m, x, __VA_ARGS__)
#define SPOOR_EACH_4(m, x, a, ...)  m(x, a) SPOOR_EACH_3(m, x, __VA_ARGS__)
#define SPOOR_EACH_5(m, x, a, ...)  m(x, a) SPOOR_EACH_4(m, x, __VA_ARGS__)
#define SPOOR_EACH_6(m, x, a, ...)  m(x, a) SPOOR_EACH_5(m, x, __VA_ARGS__)
#define SPOOR_EACH_7(m, x, a, ...)  m(x, a) SPOOR_EACH_6(m, x, __VA_ARGS__)
#define SPOOR_EACH_8(m, x, a, ...)  m(x, a) SPOOR_EACH_7(m, x, __VA_ARGS__)
#define SPOOR_EACH_9(m, x, a, ...)  m(x, a) SPOOR_EACH_8(m, x, __VA_ARGS__)
#define SPOOR_EACH_10(m, x, a, ...) m(x, a) SPOOR_EACH_9(m, x, __VA_ARGS__)
#define SPOOR_EACH_11(m, x, a, ...) m(x, a) SPOOR_EACH_10(m, x, __VA_ARGS__)
#define SPOOR_EACH_12(m, x, a, ...) m(x, a) SPOOR_EACH_11(m, x, __VA_ARGS__)
#define SPOOR_EACH_13(m, x, a, ...) m(x, a) SPOOR_EACH_12(m, x, __VA_ARGS__)
#define SPOOR_EACH_14(m, x, a, ...) m(x, a) SPOOR_EACH_13(m, x, __VA_ARGS__)
#define SPOOR_EACH_15(m, x, a, ...) m(x, a) SPOOR_EACH_14(m, x, __VA_ARGS__)
#define SPOOR_EACH_16(m, x, a, ...) m(x, a) SPOOR_EACH_15(m, x, __VA_ARGS__)
#define SPOOR_EACH_17(m, x, a, ...) m(x, a) SPOOR_EACH_16(m, x, __VA_ARGS__)
#define SPOOR_EACH_18(m, x, a, ...) m(x, a) SPOOR_EACH_17(m, x, __VA_ARGS__)
#define SPOOR_EACH_19(m, x, a, ...) m(x, a) SPOOR_EACH_18(m, x, __VA_ARGS__)
#define SPOOR_EACH_20(m, x, a, ...) m(x, a) SPOOR_EACH_19(m, x, __VA_ARGS__)
#define SPOOR_EACH_21(m, x, a, ...) m(x, a) SPOOR_EACH_20(m, x, __VA_ARGS__)
#define SPOOR_EACH_22(m, x, a, ...) m(x, a) SPOOR_EACH_21(m, x, __VA_ARGS__)
#define SPOOR_EACH_23(m, x, a, ...) m(x, a) SPOOR_EACH_22(m, x, __VA_ARGS__)
#define SPOOR_EACH_24(m, x, a, ...) m(x, a) SPOOR_EACH_23(m, x, __VA_ARGS__)
#define SPOOR_LIST_1(m, x, a)       m(x, a)
#define SPOOR_LIST_2(m, x, a, ...)  m(x, a), SPOOR_LIST_1(m, x, __VA_ARGS__)
#define SPOOR_LIST_3(m, x, a, ...)  m(x, a), SPOOR_LIST_2(m, x, __VA_ARGS__)
#define SPOOR_LIST_4(m, x, a, ...)  m(x, a), SPOOR_LIST_3(m, x, __VA_ARGS__)
#define SPOOR_LIST_5(m, x, a, ...)  m(x, a), SPOOR_LIST_4(m, x, __VA_ARGS__)
#define SPOOR_LIST_6(m, x, a, ...)  m(x, a), SPOOR_LIST_5(m, x, __VA_ARGS__)
#define SPOOR_LIST_7(m, x, a, ...)  m(x, a), SPOOR_LIST_6(m, x, __VA_ARGS__)
#define SPOOR_LIST_8(m, x, a, ...)  m(x, a), SPOOR_LIST_7(m, x, __VA_ARGS__)
#define SPOOR_LIST_9(m, x, a, ...)  m(x, a), SPOOR_LIST_8(m, x, __VA_ARGS__)
#define SPOOR_LIST_10(m, x, a, ...) m(x, a), SPOOR_LIST_9(m, x, __VA_ARGS__)
#define SPOOR_LIST_11(m, x, a, ...) m(x, a), SPOOR_LIST_10(m, x, __VA_ARGS__)
#define SPOOR_LIST_12(m, x, a, ...) m(x, a), SPOOR_LIST_11(m, x, __VA_ARGS__)
#define SPOOR_LIST_13(m, x, a, ...) m(x, a), SPOOR_LIST_12(m, x, __VA_ARGS__)
#define SPOOR_LIST_14(m, x, a, ...) m(x, a), SPOOR_LIST_13(m, x, __VA_ARGS__)
#define SPOOR_LIST_15(m, x, a, ...) m(x, a), SPOOR_LIST_14(m, x, __VA_ARGS__)
#define SPOOR_LIST_16(m, x, a, ...) m(x, a), SPOOR_LIST_15(m, x, __VA_ARGS__)
#define SPOOR_LIST_17(m, x, a, ...) m(x, a), SPOOR_LIST_16(m, x, __VA_ARGS__)
#define SPOOR_LIST_18(m, x, a, ...) m(x, a), SPOOR_LIST_17(m, x, __VA_ARGS__)
#define SPOOR_LIST_19(m, x, a, ...) m(x, a), SPOOR_LIST_18(m, x, __VA_ARGS__)
#define SPOOR_LIST_20(m, x, a, ...) m(x, a), SPOOR_LIST_19(m, x, __VA_ARGS__)
#define SPOOR_LIST_21(m, x, a, ...) m(x, a), SPOOR_LIST_20(m, x, __VA_ARGS__)
#define SPOOR_LIST_22(m, x, a, ...) m(x, a), SPOOR_LIST_21(m, x, __VA_ARGS__)
#define SPOOR_LIST_23(m, x, a, ...) m(x, a), SPOOR_LIST_22(m, x, __VA_ARGS__)
#define SPOOR_LIST_24(m, x, a, ...) m(x, a), SPOOR_LIST_23(m, x, __VA_ARGS__)

/* The number of fields after the keywords: 0 to 24, or MANY. */
#define SPOOR_PICK(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
	a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35,  \
	a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53,  \
	a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, a64, pick, ...)                          \
	pick
#define SPOOR_COUNT(...)                                                                          \
	SPOOR_PICK(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
		MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,     \
		MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,     \
		MANY, MANY, MANY, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9,  \
		8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define SPOOR_SOME_0    NONE
#define SPOOR_SOME_1    SOME
#define SPOOR_SOME_2    SOME
#define SPOOR_SOME_3    SOME
#define SPOOR_SOME_4    SOME
#define SPOOR_SOME_5    SOME
#define SPOOR_SOME_6    SOME
#define SPOOR_SOME_7    SOME
#define SPOOR_SOME_8    SOME
#define SPOOR_SOME_9    SOME
#define SPOOR_SOME_10   SOME
#define SPOOR_SOME_11   SOME
#define SPOOR_SOME_12   SOME
#define SPOOR_SOME_13   SOME
#define SPOOR_SOME_14   SOME
#define SPOOR_SOME_15   SOME
#define SPOOR_SOME_16   SOME
#define SPOOR_SOME_17   SOME
#define SPOOR_SOME_18   SOME
#define SPOOR_SOME_19   SOME
#define SPOOR_SOME_20   SOME
#define SPOOR_SOME_21   SOME
#define SPOOR_SOME_22   SOME
#define SPOOR_SOME_23   SOME
#define SPOOR_SOME_24   SOME
#define SPOOR_SOME_MANY MANY

/* ---- Parts of lists ---- */

#define SPOOR_CAT(a, b)           SPOOR_CAT_1(a, b)
#define SPOOR_CAT_1(a, b)         a##b
#define SPOOR_FIRST(...)          SPOOR_FIRST_1(__VA_ARGS__, ~)
#define SPOOR_FIRST_1(a, ...)     a
#define SPOOR_SECOND(...)         SPOOR_SECOND_1(__VA_ARGS__, ~)
#define SPOOR_SECOND_1(a, b, ...) b
#define SPOOR_UNTUPLE(...)        __VA_ARGS__
/* 1: `x` begins with a parenthesis. */
#define SPOOR_IS_TUPLE(x)     SPOOR_SECOND(SPOOR_IS_TUPLE_1 x, 0)
#define SPOOR_IS_TUPLE_1(...) ~, 1

/*
 * The name of a field is NAME, or (NAME, "name in traces"). IDENT: the first, before what follows it
 * in the tuple. TITLE: the text.
 */
#define SPOOR_IDENT(...) \
	SPOOR_CAT(SPOOR_IDENT_, SPOOR_IS_TUPLE(SPOOR_FIRST(__VA_ARGS__)))(__VA_ARGS__)
#define SPOOR_IDENT_0(...) __VA_ARGS__
#define SPOOR_IDENT_1(...) SPOOR_FIRST __VA_ARGS__
#define SPOOR_TITLE(...) \
	SPOOR_CAT(SPOOR_TITLE_, SPOOR_IS_TUPLE(SPOOR_FIRST(__VA_ARGS__)))(SPOOR_FIRST(__VA_ARGS__))
#define SPOOR_TITLE_0(n)     SPOOR_TITLE_2(n)
#define SPOOR_TITLE_2(n)     #n
#define SPOOR_TITLE_1(tuple) SPOOR_SECOND tuple

/* ---- Mistakes, each of which is one error with a sentence ---- */

#ifdef __cplusplus
#define SPOOR_ASSERT(condition, text) static_assert(condition, text);
#else
#define SPOOR_ASSERT(condition, text) _Static_assert(condition, text);
#endif

/* The kind of a type; UNKNOWN: there is no such type. SPOOR_KIND_TYPE is `~, KIND`. */
#define SPOOR_KIND(t) SPOOR_SECOND(SPOOR_KIND_##t, UNKNOWN)

/* How many parts a tuple has: 1, 2, 3, or 9 for more. */
#define SPOOR_PARTS(...)                                     SPOOR_PARTS_1(__VA_ARGS__, 9, 9, 9, 9, 9, 9, 3, 2, 1, ~)
#define SPOOR_PARTS_1(a, b, c, d, e, f, g, h, i, count, ...) count
/* How many parts a field of this type has; 0: there is no such type. */
#define SPOOR_NEEDS(t)      SPOOR_NEEDS_1(SPOOR_KIND(t))
#define SPOOR_NEEDS_1(k)    SPOOR_NEEDS_2(k)
#define SPOOR_NEEDS_2(k)    SPOOR_SECOND(SPOOR_NEEDS_##k, 2)
#define SPOOR_NEEDS_UNKNOWN ~, 0
#define SPOOR_NEEDS_OBJECT  ~, 3
#define SPOOR_NEEDS_OBJECTS ~, 3

/* The first mistake in a list: FAULTS are `, (WHAT, ...)` for each mistake. No tuple: there is none. */
#define SPOOR_VERDICT(...)             SPOOR_SECOND(~__VA_ARGS__, GOOD)
#define SPOOR_FAULT(x, field)          SPOOR_CAT(SPOOR_FAULT_, SPOOR_IS_TUPLE(field))(field)
#define SPOOR_FAULT_0(field)           , (BARE, field)
#define SPOOR_FAULT_1(field)           SPOOR_FAULT_2(SPOOR_PARTS field, SPOOR_UNTUPLE field, ~)
#define SPOOR_FAULT_2(...)             SPOOR_FAULT_3(__VA_ARGS__)
#define SPOOR_FAULT_3(parts, ...)      SPOOR_FAULT_PARTS_##parts(__VA_ARGS__)
#define SPOOR_FAULT_PARTS_1(t, ...)    , (NAME, t)
#define SPOOR_FAULT_PARTS_2(t, n, ...) SPOOR_CAT(SPOOR_FAULT_PAIR_, SPOOR_NEEDS(t))(t, n)
#define SPOOR_FAULT_PARTS_3(t, n, ...) SPOOR_CAT(SPOOR_FAULT_TRIPLE_, SPOOR_NEEDS(t))(t, n)
#define SPOOR_FAULT_PARTS_9(t, n, ...) SPOOR_CAT(SPOOR_FAULT_LONG_, SPOOR_NEEDS(t))(t, n)
#define SPOOR_FAULT_PAIR_0(t, n)       , (TYPE, t, n)
#define SPOOR_FAULT_PAIR_2(t, n)       SPOOR_FAULT_TITLE(n)
#define SPOOR_FAULT_PAIR_3(t, n)       , (TAG, t, n)
#define SPOOR_FAULT_TRIPLE_0(t, n)     , (TYPE, t, n)
#define SPOOR_FAULT_TRIPLE_2(t, n)     , (LONG, n)
#define SPOOR_FAULT_TRIPLE_3(t, n)     SPOOR_FAULT_TITLE(n)
#define SPOOR_FAULT_LONG_0(t, n)       , (TYPE, t, n)
#define SPOOR_FAULT_LONG_2(t, n)       , (LONG, n)
#define SPOOR_FAULT_LONG_3(t, n)       , (LONG, n)
/* (NAME, "name in traces") has two parts. */
#define SPOOR_FAULT_TITLE(n) SPOOR_CAT(SPOOR_FAULT_TITLE_, SPOOR_IS_TUPLE(n))(n)
#define SPOOR_FAULT_TITLE_0(n)
#define SPOOR_FAULT_TITLE_1(n)   SPOOR_CAT(SPOOR_FAULT_TITLE_1_, SPOOR_PARTS n)(n)
#define SPOOR_FAULT_TITLE_1_1(n) , (TITLE, n)
#define SPOOR_FAULT_TITLE_1_2(n)
#define SPOOR_FAULT_TITLE_1_3(n) , (TITLE, n)
#define SPOOR_FAULT_TITLE_1_9(n) , (TITLE, n)
/* Members of structs are no arrays of structs. */
#define SPOOR_MEMBER_FAULT(x, field) \
	SPOOR_FAULT(x, field) SPOOR_CAT(SPOOR_NESTED_, SPOOR_IS_TUPLE(field))(field)
#define SPOOR_NESTED_0(field)
#define SPOOR_NESTED_1(field)     SPOOR_NESTED_2(SPOOR_UNTUPLE field, ~)
#define SPOOR_NESTED_2(...)       SPOOR_NESTED_3(__VA_ARGS__)
#define SPOOR_NESTED_3(t, n, ...) SPOOR_NESTED_4(SPOOR_KIND(t), n)
#define SPOOR_NESTED_4(k, n)      SPOOR_NESTED_5(k, n)
#define SPOOR_NESTED_5(k, n)      SPOOR_CAT(SPOOR_NESTED_IS_, SPOOR_SECOND(SPOOR_NESTED_##k, 0))(n)
#define SPOOR_NESTED_OBJECTS      ~, 1
#define SPOOR_NESTED_IS_0(n)
#define SPOOR_NESTED_IS_1(n) , (NESTED, n)
/* Keywords that are not there, or the first field in their place. Not `(a | b)`, nor `(type)a`. */
#define SPOOR_KEYWORDS_FAULT(k) SPOOR_CAT(SPOOR_KEYWORDS_FAULT_, SPOOR_IS_TUPLE(k))(k)
#define SPOOR_KEYWORDS_FAULT_0(k) \
	SPOOR_CAT(SPOOR_KEYWORDS_BAD_, SPOOR_SECOND(SPOOR_KEYWORDS_NONE k(), 0))
#define SPOOR_KEYWORDS_FAULT_1(k) \
	SPOOR_CAT(SPOOR_KEYWORDS_BAD_, SPOOR_KEYWORDS_PARTS(SPOOR_PARTS k))
#define SPOOR_KEYWORDS_NONE()        ~, 1
#define SPOOR_KEYWORDS_PARTS(parts)  SPOOR_KEYWORDS_PARTS_(parts)
#define SPOOR_KEYWORDS_PARTS_(parts) SPOOR_SECOND(SPOOR_KEYWORDS_PARTS_##parts, 1)
#define SPOOR_KEYWORDS_PARTS_1       ~, 0, ~
#define SPOOR_KEYWORDS_BAD_0
#define SPOOR_KEYWORDS_BAD_1 , (KEYWORDS, ~)

#define SPOOR_SAY(what, fault)       SPOOR_SAY_1(what, SPOOR_UNTUPLE fault)
#define SPOOR_SAY_1(...)             SPOOR_SAY_2(__VA_ARGS__)
#define SPOOR_SAY_2(what, kind, ...) SPOOR_SAY_##kind(what, __VA_ARGS__)
#define SPOOR_SAY_BARE(what, field) \
	SPOOR_ASSERT(0, #what       \
		": write a field as (TYPE, NAME), with parentheses, in place of '" #field "'")
#define SPOOR_SAY_TYPE(what, t, n)                           \
	SPOOR_ASSERT(0, #what ": '" #t "' of the field '" #n \
			      "' is not a type: <spoor/event_macros.h> lists them")

#define SPOOR_SAY_NAME(what, t)                                                 \
	SPOOR_ASSERT(0, #what ": a field has a type and a name, with a comma: " \
			      "(TYPE, NAME) in place of '(" #t ")'")
#define SPOOR_SAY_TAG(what, t, n)                                                  \
	SPOOR_ASSERT(0, #what ": the field '" #n "' needs the TAG of its struct: " \
			      "(" #t ", " #n ", TAG)")
#define SPOOR_SAY_LONG(what, n)                                                 \
	SPOOR_ASSERT(0, #what ": the field '" #n "' has too many parts, it is " \
			      "(TYPE, NAME), or (object, NAME, TAG)")
#define SPOOR_SAY_TITLE(what, n)                                          \
	SPOOR_ASSERT(0, #what ": a name with parentheses has two parts: " \
			      "(NAME, TEXT) in place of '" #n "'")
#define SPOOR_SAY_NESTED(what, n)                                              \
	SPOOR_ASSERT(0, #what ": the member '" #n "' is an array of structs, " \
			      "which a struct cannot have")
#define SPOOR_SAY_KEYWORDS(what, none) \
	SPOOR_ASSERT(0, #what ": keywords are missing after the level: write 0 for none")

#endif
