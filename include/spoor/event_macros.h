/*
 * The macros that declare events. Included by <spoor/spoor.h>.
 *
 *   SPOOR_PROVIDER(shop, "Shop")
 *   SPOOR_EVENT(shop, NAME, ID, LEVEL, KEYWORDS, (TYPE, FIELD), ...)          at most 24 fields
 *   SPOOR_EVENT_NAMED(shop, NAME, "Name in traces", ID, VERSION, LEVEL, OPCODE, KEYWORDS, (TYPE,
 *   FIELD), ...)
 *
 * make `bool shop_NAME_enabled(void)` and `void shop_NAME(FIELD, ...)`, both inline. The macros may
 * be used in a header that many files of one program or shared object include: the object then has
 * one provider and one event of each name, hidden from other objects.
 * spoor_provider_register(&shop) registers all events of the provider in that object.
 *
 *   TYPE                                    parameter of the fire function
 *   boolean i8 u8 i16 u16 i32 u32 i64 u64   bool, int8_t ... uint64_t
 *   f32 f64 char16                          float, double, spoor_char16
 *   guid                                    const struct spoor_guid *
 *   time                                    int64_t: nanoseconds since 1970-01-01 UTC
 *   pointer                                 const void *
 *   text text16                             const char * (UTF-8), const spoor_char16 *; cut after SPOOR_TEXT_MAX bytes or units, between characters
 *   counted_text                            const char *, size_t: a text that ends after a count, or at a zero before
 *   blob                                    const void *, size_t
 *   u8_array ... f64_array, text_array      pointer to the elements, size_t count (at most 65,535)
 *   (object, FIELD, TAG)                    const struct TAG * of SPOOR_STRUCT(TAG, (TYPE, MEMBER), ...)
 *   (object_array, FIELD, TAG)              const struct TAG *, size_t
 *
 * FIELD is also the field's name in traces. (FIELD, "name") in its place gives it another name, for
 * example (i32, (error, "errno")).
 *
 * NULL is an empty value: zeroes for guid and pointer, an empty text or array, an object whose
 * members are all zero or NULL.
 *
 * Rules. Both functions may be called from any thread, in signal handlers, and before spoor_start()
 * (then the event is off). Neither fails: an event whose payload exceeds SPOOR_PAYLOAD_MAX bytes,
 * or that finds no room, is not written and counts as lost. In nettrace, where texts are UTF-16,
 * the texts of a payload that exceeds SPOOR_PAYLOAD_MAX there are cut further. Arguments are
 * evaluated whether the event is enabled or not; the data they point to is copied before the
 * return. C++: <spoor/spoor.hpp> adds standard types.
 */
#ifndef SPOOR_EVENT_MACROS_H
#define SPOOR_EVENT_MACROS_H

#include <spoor/event_lists.h>
#include <spoor/event_payload.h>
#include <spoor/spoor.h>

/*
 * ---- What each TYPE means ----
 *
 * A type is of a KIND (how it is passed and written), has a C type and a code. Per kind:
 *
 *   PARAM   its parameters                          ARG   its arguments, for a call with the same parameters
 *   MEASURE computes what its size depends on       SIZE  its bytes in the payload
 *   PUT     writes it at p_                         FIELD its description
 *   MEMBER, MSIZE, MPUT  the same as a member of the struct s_, written no further than end_
 */
#define SPOOR_KIND_boolean      ~, BOOLEAN
#define SPOOR_KIND_i8           ~, SCALAR
#define SPOOR_KIND_u8           ~, SCALAR
#define SPOOR_KIND_i16          ~, SCALAR
#define SPOOR_KIND_u16          ~, SCALAR
#define SPOOR_KIND_i32          ~, SCALAR
#define SPOOR_KIND_u32          ~, SCALAR
#define SPOOR_KIND_i64          ~, SCALAR
#define SPOOR_KIND_u64          ~, SCALAR
#define SPOOR_KIND_f32          ~, SCALAR
#define SPOOR_KIND_f64          ~, SCALAR
#define SPOOR_KIND_char16       ~, SCALAR
#define SPOOR_KIND_guid         ~, GUID
#define SPOOR_KIND_time         ~, TIME
#define SPOOR_KIND_pointer      ~, POINTER
#define SPOOR_KIND_text         ~, TEXT
#define SPOOR_KIND_text16       ~, TEXT16
#define SPOOR_KIND_counted_text ~, COUNTED
#define SPOOR_KIND_blob         ~, ARRAY
#define SPOOR_KIND_i8_array     ~, ARRAY
#define SPOOR_KIND_u8_array     ~, ARRAY
#define SPOOR_KIND_i16_array    ~, ARRAY
#define SPOOR_KIND_u16_array    ~, ARRAY
#define SPOOR_KIND_i32_array    ~, ARRAY
#define SPOOR_KIND_u32_array    ~, ARRAY
#define SPOOR_KIND_i64_array    ~, ARRAY
#define SPOOR_KIND_u64_array    ~, ARRAY
#define SPOOR_KIND_f32_array    ~, ARRAY
#define SPOOR_KIND_f64_array    ~, ARRAY
#define SPOOR_KIND_text_array   ~, TEXTS
#define SPOOR_KIND_object       ~, OBJECT
#define SPOOR_KIND_object_array ~, OBJECTS

#define SPOOR_C_i8        int8_t
#define SPOOR_C_u8        uint8_t
#define SPOOR_C_i16       int16_t
#define SPOOR_C_u16       uint16_t
#define SPOOR_C_i32       int32_t
#define SPOOR_C_u32       uint32_t
#define SPOOR_C_i64       int64_t
#define SPOOR_C_u64       uint64_t
#define SPOOR_C_f32       float
#define SPOOR_C_f64       double
#define SPOOR_C_char16    spoor_char16
#define SPOOR_C_blob      void
#define SPOOR_C_i8_array  int8_t
#define SPOOR_C_u8_array  uint8_t
#define SPOOR_C_i16_array int16_t
#define SPOOR_C_u16_array uint16_t
#define SPOOR_C_i32_array int32_t
#define SPOOR_C_u32_array uint32_t
#define SPOOR_C_i64_array int64_t
#define SPOOR_C_u64_array uint64_t
#define SPOOR_C_f32_array float
#define SPOOR_C_f64_array double

#define SPOOR_BYTES_blob      1u
#define SPOOR_BYTES_i8_array  1u
#define SPOOR_BYTES_u8_array  1u
#define SPOOR_BYTES_i16_array 2u
#define SPOOR_BYTES_u16_array 2u
#define SPOOR_BYTES_i32_array 4u
#define SPOOR_BYTES_u32_array 4u
#define SPOOR_BYTES_i64_array 8u
#define SPOOR_BYTES_u64_array 8u
#define SPOOR_BYTES_f32_array 4u
#define SPOOR_BYTES_f64_array 8u

#define SPOOR_CODE_i8        SPOOR_TYPE_I8
#define SPOOR_CODE_u8        SPOOR_TYPE_U8
#define SPOOR_CODE_i16       SPOOR_TYPE_I16
#define SPOOR_CODE_u16       SPOOR_TYPE_U16
#define SPOOR_CODE_i32       SPOOR_TYPE_I32
#define SPOOR_CODE_u32       SPOOR_TYPE_U32
#define SPOOR_CODE_i64       SPOOR_TYPE_I64
#define SPOOR_CODE_u64       SPOOR_TYPE_U64
#define SPOOR_CODE_f32       SPOOR_TYPE_F32
#define SPOOR_CODE_f64       SPOOR_TYPE_F64
#define SPOOR_CODE_char16    SPOOR_TYPE_CHAR16
#define SPOOR_CODE_blob      SPOOR_TYPE_U8
#define SPOOR_CODE_i8_array  SPOOR_TYPE_I8
#define SPOOR_CODE_u8_array  SPOOR_TYPE_U8
#define SPOOR_CODE_i16_array SPOOR_TYPE_I16
#define SPOOR_CODE_u16_array SPOOR_TYPE_U16
#define SPOOR_CODE_i32_array SPOOR_TYPE_I32
#define SPOOR_CODE_u32_array SPOOR_TYPE_U32
#define SPOOR_CODE_i64_array SPOOR_TYPE_I64
#define SPOOR_CODE_u64_array SPOOR_TYPE_U64
#define SPOOR_CODE_f32_array SPOOR_TYPE_F32
#define SPOOR_CODE_f64_array SPOOR_TYPE_F64

#define SPOOR_PARAM_SCALAR(t, n) SPOOR_C_##t n
#define SPOOR_ARG_SCALAR(t, n)   n
#define SPOOR_MEASURE_SCALAR(t, n)
#define SPOOR_SIZE_SCALAR(t, n) +sizeof(n)
#define SPOOR_PUT_SCALAR(t, n)  p_ = spoor_put(p_, &n, sizeof(n));
#define SPOOR_FIELD_SCALAR(s, t, n)              \
	{                                        \
		s, SPOOR_CODE_##t, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_SCALAR(t, n) SPOOR_C_##t n;
#define SPOOR_MSIZE_SCALAR(t, n)  +sizeof(s_->n)
#define SPOOR_MPUT_SCALAR(t, n)   p_ = spoor_put_within(p_, end_, &s_->n, sizeof(s_->n));

#define SPOOR_PARAM_BOOLEAN(t, n)   bool n
#define SPOOR_ARG_BOOLEAN(t, n)     n
#define SPOOR_MEASURE_BOOLEAN(t, n) const uint32_t n##_measure_ = n ? 1 : 0;
#define SPOOR_SIZE_BOOLEAN(t, n)    +4u
#define SPOOR_PUT_BOOLEAN(t, n)     p_ = spoor_put(p_, &n##_measure_, 4);
#define SPOOR_FIELD_BOOLEAN(s, t, n)                 \
	{                                            \
		s, SPOOR_TYPE_BOOLEAN, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_BOOLEAN(t, n) bool n;
#define SPOOR_MSIZE_BOOLEAN(t, n)  +4u
#define SPOOR_MPUT_BOOLEAN(t, n)                         \
	{                                                \
		const uint32_t v_ = s_->n ? 1 : 0;       \
		p_ = spoor_put_within(p_, end_, &v_, 4); \
	}

#define SPOOR_PARAM_GUID(t, n) const struct spoor_guid *n
#define SPOOR_ARG_GUID(t, n)   n
#define SPOOR_MEASURE_GUID(t, n)
#define SPOOR_SIZE_GUID(t, n) +16u
#define SPOOR_PUT_GUID(t, n)  p_ = spoor_put_guid(p_, n);
#define SPOOR_FIELD_GUID(s, t, n)                 \
	{                                         \
		s, SPOOR_TYPE_GUID, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_GUID(t, n) struct spoor_guid n;
#define SPOOR_MSIZE_GUID(t, n)  +16u
#define SPOOR_MPUT_GUID(t, n)   p_ = spoor_put_within(p_, end_, &s_->n, 16);

#define SPOOR_PARAM_TIME(t, n)   int64_t n
#define SPOOR_ARG_TIME(t, n)     n
#define SPOOR_MEASURE_TIME(t, n) const uint64_t n##_measure_ = spoor_time_of(n);
#define SPOOR_SIZE_TIME(t, n)    +8u
#define SPOOR_PUT_TIME(t, n)     p_ = spoor_put(p_, &n##_measure_, 8);
#define SPOOR_FIELD_TIME(s, t, n)                 \
	{                                         \
		s, SPOOR_TYPE_TIME, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_TIME(t, n) int64_t n;
#define SPOOR_MSIZE_TIME(t, n)  +8u
#define SPOOR_MPUT_TIME(t, n)                             \
	{                                                 \
		const uint64_t v_ = spoor_time_of(s_->n); \
		p_ = spoor_put_within(p_, end_, &v_, 8);  \
	}

#define SPOOR_PARAM_POINTER(t, n)   const void *n
#define SPOOR_ARG_POINTER(t, n)     n
#define SPOOR_MEASURE_POINTER(t, n) const uint64_t n##_measure_ = SPOOR_ADDRESS(n);
#define SPOOR_SIZE_POINTER(t, n)    +8u
#define SPOOR_PUT_POINTER(t, n)     p_ = spoor_put(p_, &n##_measure_, 8);
#define SPOOR_FIELD_POINTER(s, t, n)                 \
	{                                            \
		s, SPOOR_TYPE_POINTER, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_POINTER(t, n) const void *n;
#define SPOOR_MSIZE_POINTER(t, n)  +8u
#define SPOOR_MPUT_POINTER(t, n)                          \
	{                                                 \
		const uint64_t v_ = SPOOR_ADDRESS(s_->n); \
		p_ = spoor_put_within(p_, end_, &v_, 8);  \
	}

#define SPOOR_PARAM_TEXT(t, n)   const char *n
#define SPOOR_ARG_TEXT(t, n)     n
#define SPOOR_MEASURE_TEXT(t, n) const size_t n##_measure_ = spoor_text_length(n);
#define SPOOR_SIZE_TEXT(t, n)    +3u + n##_measure_
#define SPOOR_PUT_TEXT(t, n)     p_ = spoor_put_text(p_, n, n##_measure_);
#define SPOOR_FIELD_TEXT(s, t, n)                 \
	{                                         \
		s, SPOOR_TYPE_TEXT, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_TEXT(t, n) const char *n;
#define SPOOR_MSIZE_TEXT(t, n)  +3u + spoor_text_length(s_->n)
#define SPOOR_MPUT_TEXT(t, n)   p_ = spoor_put_text_within(p_, end_, s_->n);

#define SPOOR_PARAM_COUNTED(t, n) const char *n, size_t n##_count
#define SPOOR_ARG_COUNTED(t, n)   n, n##_count
#define SPOOR_MEASURE_COUNTED(t, n) \
	const size_t n##_measure_ = spoor_counted_text_length(n, n##_count);
#define SPOOR_SIZE_COUNTED(t, n) +3u + n##_measure_
#define SPOOR_PUT_COUNTED(t, n)  p_ = spoor_put_text(p_, n, n##_measure_);
#define SPOOR_FIELD_COUNTED(s, t, n)              \
	{                                         \
		s, SPOOR_TYPE_TEXT, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_COUNTED(t, n) \
	const char *n;             \
	size_t n##_count;
#define SPOOR_MSIZE_COUNTED(t, n) +3u + spoor_counted_text_length(s_->n, s_->n##_count)
#define SPOOR_MPUT_COUNTED(t, n)                            \
	p_ = spoor_put_counted_text_within(p_, end_, s_->n, \
		spoor_counted_text_length(s_->n, s_->n##_count));

#define SPOOR_PARAM_TEXT16(t, n)   const spoor_char16 *n
#define SPOOR_ARG_TEXT16(t, n)     n
#define SPOOR_MEASURE_TEXT16(t, n) const size_t n##_measure_ = spoor_text16_length(n);
#define SPOOR_SIZE_TEXT16(t, n)    +2u + 2u * n##_measure_
#define SPOOR_PUT_TEXT16(t, n)     p_ = spoor_put_text16(p_, n, n##_measure_);
#define SPOOR_FIELD_TEXT16(s, t, n)                 \
	{                                           \
		s, SPOOR_TYPE_TEXT16, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_TEXT16(t, n) const spoor_char16 *n;
#define SPOOR_MSIZE_TEXT16(t, n)  +2u + 2u * spoor_text16_length(s_->n)
#define SPOOR_MPUT_TEXT16(t, n)   p_ = spoor_put_text16_within(p_, end_, s_->n);

#define SPOOR_PARAM_ARRAY(t, n)   const SPOOR_C_##t *n, size_t n##_count
#define SPOOR_ARG_ARRAY(t, n)     n, n##_count
#define SPOOR_MEASURE_ARRAY(t, n) const size_t n##_measure_ = spoor_count_of(n, n##_count);
#define SPOOR_SIZE_ARRAY(t, n)    +2u + SPOOR_BYTES_##t *n##_measure_
#define SPOOR_PUT_ARRAY(t, n)     p_ = spoor_put_array(p_, n, SPOOR_BYTES_##t, n##_measure_);
#define SPOOR_FIELD_ARRAY(s, t, n)                                  \
	{                                                           \
		s, SPOOR_CODE_##t | SPOOR_TYPE_ARRAY, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_ARRAY(t, n) \
	const SPOOR_C_##t *n;    \
	size_t n##_count;
#define SPOOR_MSIZE_ARRAY(t, n) +2u + SPOOR_BYTES_##t *spoor_count_of(s_->n, s_->n##_count)
#define SPOOR_MPUT_ARRAY(t, n)                                        \
	p_ = spoor_put_array_within(p_, end_, s_->n, SPOOR_BYTES_##t, \
		spoor_count_of(s_->n, s_->n##_count));

#define SPOOR_PARAM_TEXTS(t, n) const char *const *n, size_t n##_count
#define SPOOR_ARG_TEXTS(t, n)   n, n##_count
#define SPOOR_MEASURE_TEXTS(t, n) \
	const size_t n##_measure_ = spoor_text_array_size(n, spoor_count_of(n, n##_count));
#define SPOOR_SIZE_TEXTS(t, n) +n##_measure_
#define SPOOR_PUT_TEXTS(t, n) \
	p_ = spoor_put_text_array(p_, p_ + n##_measure_, n, spoor_count_of(n, n##_count));
#define SPOOR_FIELD_TEXTS(s, t, n)                                   \
	{                                                            \
		s, SPOOR_TYPE_TEXT | SPOOR_TYPE_ARRAY, 0, SPOOR_NULL \
	}
#define SPOOR_MEMBER_TEXTS(t, n) \
	const char *const *n;    \
	size_t n##_count;
#define SPOOR_MSIZE_TEXTS(t, n) +spoor_text_array_size(s_->n, spoor_count_of(s_->n, s_->n##_count))
#define SPOOR_MPUT_TEXTS(t, n) \
	p_ = spoor_put_text_array(p_, end_, s_->n, spoor_count_of(s_->n, s_->n##_count));

#define SPOOR_PARAM_OBJECT(t, n, c)   const struct c *n
#define SPOOR_ARG_OBJECT(t, n, c)     n
#define SPOOR_MEASURE_OBJECT(t, n, c) const size_t n##_measure_ = c##_size_(n);
#define SPOOR_SIZE_OBJECT(t, n, c)    +n##_measure_
#define SPOOR_PUT_OBJECT(t, n, c)     p_ = c##_put_(p_, p_ + n##_measure_, n);
#define SPOOR_FIELD_OBJECT(s, t, n, c)                                                      \
	{                                                                                   \
		s, SPOOR_TYPE_STRUCT,                                                       \
			SPOOR_CAST(uint32_t, sizeof(c##_fields_) / sizeof(c##_fields_[0])), \
			c##_fields_                                                         \
	}
#define SPOOR_MEMBER_OBJECT(t, n, c) struct c n;
#define SPOOR_MSIZE_OBJECT(t, n, c)  +c##_size_(&s_->n)
#define SPOOR_MPUT_OBJECT(t, n, c)   p_ = c##_put_(p_, end_, &s_->n);

#define SPOOR_PARAM_OBJECTS(t, n, c) const struct c *n, size_t n##_count
#define SPOOR_ARG_OBJECTS(t, n, c)   n, n##_count
#define SPOOR_MEASURE_OBJECTS(t, n, c) \
	const size_t n##_measure_ = c##_sizes_(n, spoor_count_of(n, n##_count));
#define SPOOR_SIZE_OBJECTS(t, n, c) +n##_measure_
#define SPOOR_PUT_OBJECTS(t, n, c)                                                      \
	{                                                                               \
		const uint8_t *const e_ = p_ + n##_measure_;                            \
		const uint16_t v_ = SPOOR_CAST(uint16_t, spoor_count_of(n, n##_count)); \
		p_ = spoor_put(p_, &v_, 2);                                             \
		for (size_t i_ = 0; i_ < v_; i_++)                                      \
			p_ = c##_put_(p_, e_, &n[i_]);                                  \
	}
#define SPOOR_FIELD_OBJECTS(s, t, n, c)                                                     \
	{                                                                                   \
		s, SPOOR_TYPE_STRUCT | SPOOR_TYPE_ARRAY,                                    \
			SPOOR_CAST(uint32_t, sizeof(c##_fields_) / sizeof(c##_fields_[0])), \
			c##_fields_                                                         \
	}

/* From the tuple (TYPE, NAME, ...) to the macro of its kind. */
#define SPOOR_PARAM(x, tuple)   SPOOR_PARAM_1 tuple
#define SPOOR_PARAM_1(t, ...)   SPOOR_PARAM_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_PARAM_2(k, ...)   SPOOR_PARAM_3(k, __VA_ARGS__)
#define SPOOR_PARAM_3(k, ...)   SPOOR_PARAM_##k(__VA_ARGS__)
#define SPOOR_ARG(x, tuple)     SPOOR_ARG_1 tuple
#define SPOOR_ARG_1(t, ...)     SPOOR_ARG_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_ARG_2(k, ...)     SPOOR_ARG_3(k, __VA_ARGS__)
#define SPOOR_ARG_3(k, ...)     SPOOR_ARG_##k(__VA_ARGS__)
#define SPOOR_MEASURE(x, tuple) SPOOR_MEASURE_1 tuple
#define SPOOR_MEASURE_1(t, ...) SPOOR_MEASURE_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_MEASURE_2(k, ...) SPOOR_MEASURE_3(k, __VA_ARGS__)
#define SPOOR_MEASURE_3(k, ...) SPOOR_MEASURE_##k(__VA_ARGS__)
#define SPOOR_SIZE(x, tuple)    SPOOR_SIZE_1 tuple
#define SPOOR_SIZE_1(t, ...)    SPOOR_SIZE_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_SIZE_2(k, ...)    SPOOR_SIZE_3(k, __VA_ARGS__)
#define SPOOR_SIZE_3(k, ...)    SPOOR_SIZE_##k(__VA_ARGS__)
#define SPOOR_PUT(x, tuple)     SPOOR_PUT_1 tuple
#define SPOOR_PUT_1(t, ...)     SPOOR_PUT_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_PUT_2(k, ...)     SPOOR_PUT_3(k, __VA_ARGS__)
#define SPOOR_PUT_3(k, ...)     SPOOR_PUT_##k(__VA_ARGS__)
#define SPOOR_FIELD(x, tuple)   SPOOR_FIELD_1 tuple
#define SPOOR_FIELD_1(t, ...) \
	SPOOR_FIELD_2(SPOOR_KIND(t), SPOOR_TITLE(__VA_ARGS__), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_FIELD_2(k, ...)  SPOOR_FIELD_3(k, __VA_ARGS__)
#define SPOOR_FIELD_3(k, ...)  SPOOR_FIELD_##k(__VA_ARGS__)
#define SPOOR_MEMBER(x, tuple) SPOOR_MEMBER_1 tuple
#define SPOOR_MEMBER_1(t, ...) SPOOR_MEMBER_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_MEMBER_2(k, ...) SPOOR_MEMBER_3(k, __VA_ARGS__)
#define SPOOR_MEMBER_3(k, ...) SPOOR_MEMBER_##k(__VA_ARGS__)
#define SPOOR_MSIZE(x, tuple)  SPOOR_MSIZE_1 tuple
#define SPOOR_MSIZE_1(t, ...)  SPOOR_MSIZE_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_MSIZE_2(k, ...)  SPOOR_MSIZE_3(k, __VA_ARGS__)
#define SPOOR_MSIZE_3(k, ...)  SPOOR_MSIZE_##k(__VA_ARGS__)
#define SPOOR_MPUT(x, tuple)   SPOOR_MPUT_1 tuple
#define SPOOR_MPUT_1(t, ...)   SPOOR_MPUT_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_MPUT_2(k, ...)   SPOOR_MPUT_3(k, __VA_ARGS__)
#define SPOOR_MPUT_3(k, ...)   SPOOR_MPUT_##k(__VA_ARGS__)

/* ---- Declarations ---- */

/*
 * The events of one program or shared object: each source file puts the address of the event, which
 * is one for all of them, and of the definition in this file into this section. The linker defines
 * symbols for the section's two ends.
 */
#define SPOOR_SECTION "spoor_events"
#ifdef _WIN32
#define SPOOR_HIDDEN /* there, a symbol is hidden unless it is exported */
#define SPOOR_ONE    __attribute__((selectany))
#else
#define SPOOR_HIDDEN __attribute__((visibility("hidden")))
#define SPOOR_ONE    SPOOR_HIDDEN __attribute__((weak))
#endif

/*
 * The linker keeps what is `retain` under --gc-sections. The symbols of a section's ends alone keep
 * it only in some linkers. A compiler without the attribute (GCC before 11, Clang before 13) needs
 * -Wl,-z,nostart-stop-gc with lld.
 */
#ifdef _WIN32
/* Windows' linker sorts the parts of a section by what follows the '$'. */
#define SPOOR_LISTED __attribute__((used, section(SPOOR_SECTION_WINDOWS "$m")))
#elif defined(__APPLE__)
#define SPOOR_LISTED __attribute__((used, section("__DATA,spoor_events")))
#elif defined(__has_attribute)
#if __has_attribute(retain)
#define SPOOR_LISTED __attribute__((used, retain, section(SPOOR_SECTION)))
#endif
#endif
#ifndef SPOOR_LISTED
#define SPOOR_LISTED __attribute__((used, section(SPOOR_SECTION)))
#endif

#ifdef _WIN32
/* Each source file has both, which are NULL: no event. */
#define SPOOR_SECTION_WINDOWS "spoor"
__attribute__((used,
	section(SPOOR_SECTION_WINDOWS
		"$a"))) static struct spoor_event *const spoor_events_begin_[1] = { SPOOR_NULL };
__attribute__((used,
	section(SPOOR_SECTION_WINDOWS
		"$z"))) static struct spoor_event *const spoor_events_end_[1] = { SPOOR_NULL };
#define SPOOR_EVENTS_BEGIN spoor_events_begin_
#define SPOOR_EVENTS_END   spoor_events_end_
#else
#ifdef __cplusplus
extern "C" {
#endif
#ifdef __APPLE__
extern struct spoor_event *const
	__start_spoor_events[] __asm__("section$start$__DATA$spoor_events");
extern struct spoor_event *const __stop_spoor_events[] __asm__("section$end$__DATA$spoor_events");
#else
extern struct spoor_event *const __start_spoor_events[] SPOOR_HIDDEN __attribute__((weak));
extern struct spoor_event *const __stop_spoor_events[] SPOOR_HIDDEN __attribute__((weak));
#endif
#ifdef __cplusplus
}
#endif
#define SPOOR_EVENTS_BEGIN __start_spoor_events
#define SPOOR_EVENTS_END   __stop_spoor_events
#endif

#define SPOOR_PROVIDER(provider, name) SPOOR_PROVIDER_WITH(provider, name, SPOOR_NULL, SPOOR_NULL)

/* A provider with an enable callback (spoor_enable_function). */
#define SPOOR_PROVIDER_WITH(provider, name, enable, context)                              \
	SPOOR_ASSERT(sizeof(name) > 1, #provider ": the provider's name is empty")        \
	SPOOR_ONE struct spoor_provider provider = { sizeof(struct spoor_provider), name, \
		SPOOR_EVENTS_BEGIN, SPOOR_EVENTS_END, enable, context, SPOOR_NULL };

/*
 * In one file of a shared object: registers its providers at dlopen() and unregisters them at
 * dlclose(), in a constructor and a destructor of that object.
 */
#define SPOOR_PROVIDER_OF_OBJECT(provider)                              \
	__attribute__((constructor)) static void provider##_come_(void) \
	{                                                               \
		(void)spoor_provider_register(&provider);               \
	}                                                               \
	__attribute__((destructor)) static void provider##_go_(void)    \
	{                                                               \
		spoor_provider_unregister(&provider);                   \
	}

#define SPOOR_EVENT(provider, name, id, level, ...) \
	SPOOR_EVENT_NAMED(provider, name, #name, id, 0, level, SPOOR_OPCODE_INFO, __VA_ARGS__)

#define SPOOR_EVENT_NAMED(provider, name, text, id, version, level, opcode, ...)                \
	SPOOR_EVENT_1(SPOOR_COUNT(__VA_ARGS__), provider, provider##_##name, text, id, version, \
		level, opcode, __VA_ARGS__)
#define SPOOR_EVENT_1(n, ...)       SPOOR_EVENT_2(n, __VA_ARGS__)
#define SPOOR_EVENT_2(n, ...)       SPOOR_EVENT_3(SPOOR_SOME_##n, n, __VA_ARGS__)
#define SPOOR_EVENT_3(some, n, ...) SPOOR_EVENT_4(some, n, __VA_ARGS__)
#define SPOOR_EVENT_4(some, n, ...) SPOOR_EVENT_##some(n, __VA_ARGS__)

#define SPOOR_EVENT_OBJECT_(provider, full, text, id, version, level, opcode, keywords, fields,    \
	field_count)                                                                               \
	SPOOR_ASSERT(SPOOR_CAST(long long, id) >= 0 && SPOOR_CAST(long long, id) <= 65535,         \
		#full ": the id is not a number from 0 to 65535")                                  \
	SPOOR_ASSERT(SPOOR_CAST(long long, level) >= 0 && SPOOR_CAST(long long, level) <= 5,       \
		#full ": the level is not a number from 0 to 5")                                   \
	SPOOR_ASSERT(SPOOR_CAST(long long, version) >= 0 && SPOOR_CAST(long long, version) <= 255, \
		#full ": the version is not a number from 0 to 255")                               \
	SPOOR_ASSERT(SPOOR_CAST(long long, opcode) >= 0 && SPOOR_CAST(long long, opcode) <= 255,   \
		#full ": the opcode is not a number from 0 to 255")                                \
	SPOOR_ONE struct spoor_event full##_event = { 0, 0,                                        \
		SPOOR_CAST(uint32_t, sizeof(struct spoor_event)), &provider, text, keywords,       \
		fields, field_count, SPOOR_CAST(uint16_t, id), SPOOR_CAST(uint8_t, version),       \
		SPOOR_CAST(uint8_t, level), SPOOR_CAST(uint8_t, opcode), 0, SPOOR_RING_PROTOCOL }; \
	static struct spoor_event full##_defined_ = { 0, 0,                                        \
		SPOOR_CAST(uint32_t, sizeof(struct spoor_event)), &provider, text, keywords,       \
		fields, field_count, SPOOR_CAST(uint16_t, id), SPOOR_CAST(uint8_t, version),       \
		SPOOR_CAST(uint8_t, level), SPOOR_CAST(uint8_t, opcode), SPOOR_EVENT_DEFINITION,   \
		SPOOR_RING_PROTOCOL };                                                             \
	SPOOR_LISTED static struct spoor_event *const full##_listed_[2] = { &full##_event,         \
		&full##_defined_ };                                                                \
	__attribute__((unused)) static inline bool full##_enabled(void)                            \
	{                                                                                          \
		return spoor_event_enabled(&full##_event);                                         \
	}

/* The keywords and the fields are checked first. A faulty event is one error, and functions that take anything. */
#define SPOOR_EVENT_NONE(n, provider, full, text, id, version, level, opcode, keywords)            \
	SPOOR_EVENT_EMPTY(SPOOR_VERDICT(SPOOR_KEYWORDS_FAULT(keywords)), provider, full, text, id, \
		version, level, opcode, keywords)
#define SPOOR_EVENT_EMPTY(verdict, ...) \
	SPOOR_CAT(SPOOR_EVENT_EMPTY_, SPOOR_IS_TUPLE(verdict))(verdict, __VA_ARGS__)
#define SPOOR_EVENT_EMPTY_1(fault, provider, full, ...) SPOOR_SAY(full, fault) SPOOR_STUB(full)
#define SPOOR_EVENT_EMPTY_0(verdict, provider, full, text, id, version, level, opcode, keywords) \
	SPOOR_EVENT_OBJECT_(provider, full, text, id, version, level, opcode, keywords,          \
		SPOOR_NULL, 0)                                                                   \
	__attribute__((unused)) static inline void full(void)                                    \
	{                                                                                        \
		if (full##_enabled()) {                                                          \
			const struct spoor_slot slot_ = spoor_fire_begin(&full##_event, 0);      \
			if (slot_.at)                                                            \
				spoor_fire_end(slot_);                                           \
		}                                                                                \
	}

#define SPOOR_EVENT_SOME(n, provider, full, text, id, version, level, opcode, keywords, ...) \
	SPOOR_EVENT_CHECKED(SPOOR_VERDICT(SPOOR_KEYWORDS_FAULT(keywords)                     \
					    SPOOR_EACH_##n(SPOOR_FAULT, , __VA_ARGS__)),     \
		n, provider, full, text, id, version, level, opcode, keywords, __VA_ARGS__)
#define SPOOR_EVENT_CHECKED(verdict, ...) \
	SPOOR_CAT(SPOOR_EVENT_FAULTY_, SPOOR_IS_TUPLE(verdict))(verdict, __VA_ARGS__)
#define SPOOR_EVENT_FAULTY_1(fault, n, provider, full, ...) SPOOR_SAY(full, fault) SPOOR_STUB(full)
#define SPOOR_EVENT_MANY(n, provider, full, ...) \
	SPOOR_ASSERT(0, #full ": an event has at most 24 fields") SPOOR_STUB(full)

#ifdef __cplusplus
#define SPOOR_STUB(full)                                               \
	[[maybe_unused]] static inline bool full##_enabled()           \
	{                                                              \
		return false;                                          \
	}                                                              \
	template <typename... T> static inline void full(const T &...) \
	{                                                              \
	}
#else
#define SPOOR_STUB(full)                                                \
	__attribute__((unused)) static inline bool full##_enabled(void) \
	{                                                               \
		return false;                                           \
	}                                                               \
	__attribute__((unused)) static inline void full()               \
	{                                                               \
	}
#endif

#define SPOOR_EVENT_FAULTY_0(verdict, n, provider, full, text, id, version, level, opcode,        \
	keywords, ...)                                                                            \
	static const struct spoor_field full##_fields_[] = { SPOOR_LIST_##n(SPOOR_FIELD, ,        \
		__VA_ARGS__) };                                                                   \
	SPOOR_EVENT_OBJECT_(provider, full, text, id, version, level, opcode, keywords,           \
		full##_fields_, n)                                                                \
	__attribute__((noinline, unused)) static void full##_write_(SPOOR_LIST_##n(SPOOR_PARAM, , \
		__VA_ARGS__))                                                                     \
	{                                                                                         \
		SPOOR_EACH_##n(SPOOR_MEASURE, , __VA_ARGS__) const struct spoor_slot slot_ =      \
			spoor_fire_begin(&full##_event,                                           \
				SPOOR_CAST(size_t, 0) SPOOR_EACH_##n(SPOOR_SIZE, , __VA_ARGS__)); \
		uint8_t *p_ = slot_.at;                                                           \
		if (p_) {                                                                         \
			SPOOR_EACH_##n(SPOOR_PUT, , __VA_ARGS__)(void) p_;                        \
			spoor_fire_end(slot_);                                                    \
		}                                                                                 \
	}                                                                                         \
	__attribute__((unused)) static inline void full(SPOOR_LIST_##n(SPOOR_PARAM, ,             \
		__VA_ARGS__))                                                                     \
	{                                                                                         \
		if (full##_enabled())                                                             \
			full##_write_(SPOOR_LIST_##n(SPOOR_ARG, , __VA_ARGS__));                  \
	}                                                                                         \
	SPOOR_OVERLOAD_(n, full, __VA_ARGS__)

/* <spoor/spoor.hpp> defines this: the same function with C++ types. */
#define SPOOR_OVERLOAD_(n, full, ...)

/* An object of zeroes; older C has no empty initialiser. */
#ifdef __cplusplus
#define SPOOR_ZEROED = {}
#else
#define SPOOR_ZEROED = { 0 }
#endif

/*
 * Declares struct TAG with these members, for fields of events. Arrays of structs cannot be
 * members.
 */
#define SPOOR_STRUCT(tag, ...) SPOOR_STRUCT_1(SPOOR_COUNT(0, __VA_ARGS__), tag, __VA_ARGS__)
#define SPOOR_STRUCT_1(n, ...) SPOOR_STRUCT_2(n, __VA_ARGS__)
#define SPOOR_STRUCT_2(n, ...) SPOOR_CAT(SPOOR_STRUCT_, SPOOR_SOME_##n)(n, __VA_ARGS__)
#define SPOOR_STRUCT_MANY(n, tag, ...)                            \
	SPOOR_ASSERT(0, #tag ": a struct has at most 24 members") \
	SPOOR_STRUCT_FAULTY_0(, 1, tag, (u8, faulty))
#define SPOOR_STRUCT_SOME(n, tag, ...)                                                            \
	SPOOR_STRUCT_CHECKED(SPOOR_VERDICT(SPOOR_EACH_##n(SPOOR_MEMBER_FAULT, , __VA_ARGS__)), n, \
		tag, __VA_ARGS__)
#define SPOOR_STRUCT_CHECKED(verdict, ...) \
	SPOOR_CAT(SPOOR_STRUCT_FAULTY_, SPOOR_IS_TUPLE(verdict))(verdict, __VA_ARGS__)
#define SPOOR_STRUCT_FAULTY_1(fault, n, tag, ...) \
	SPOOR_SAY(tag, fault) SPOOR_STRUCT_FAULTY_0(, 1, tag, (u8, faulty))
#define SPOOR_STRUCT_FAULTY_0(verdict, n, tag, ...)                                             \
	struct tag {                                                                            \
		SPOOR_EACH_##n(SPOOR_MEMBER, , __VA_ARGS__)                                     \
	};                                                                                      \
	static const struct spoor_field tag##_fields_[] = { SPOOR_LIST_##n(SPOOR_FIELD, ,       \
		__VA_ARGS__) };                                                                 \
	__attribute__((unused)) static inline const struct tag *tag##_of_(const struct tag *s_) \
	{                                                                                       \
		static const struct tag none_ SPOOR_ZEROED;                                     \
		return s_ ? s_ : &none_;                                                        \
	}                                                                                       \
	__attribute__((unused)) static inline size_t tag##_size_(const struct tag *s_)          \
	{                                                                                       \
		s_ = tag##_of_(s_);                                                             \
		(void)s_;                                                                       \
		return SPOOR_CAST(size_t, 0) SPOOR_EACH_##n(SPOOR_MSIZE, , __VA_ARGS__);        \
	}                                                                                       \
	__attribute__((unused)) static inline size_t tag##_sizes_(const struct tag *s_,         \
		size_t count_)                                                                  \
	{                                                                                       \
		size_t size_ = 2;                                                               \
		for (size_t i_ = 0; i_ < count_; i_++)                                          \
			size_ += tag##_size_(&s_[i_]);                                          \
		return size_;                                                                   \
	}                                                                                       \
	__attribute__((unused)) static inline uint8_t *tag##_put_(uint8_t *p_,                  \
		const uint8_t *end_, const struct tag *s_)                                      \
	{                                                                                       \
		s_ = tag##_of_(s_);                                                             \
		SPOOR_EACH_##n(SPOOR_MPUT, , __VA_ARGS__) return p_;                            \
	}

#endif
