/*
 * libspoor for C++17: what <spoor/spoor.h>, <spoor/activity.h> and <spoor/counter.h> declare, with
 * standard types as arguments and objects that end what they started.
 *
 * Events are declared once, by the macros of event_macros.h, in a header that C and C++ files
 * include. In a C++ file that includes <spoor/spoor.hpp> before that header, the same fire function
 * also takes
 *
 *   TYPE                          argument
 *   numbers, boolean              also values of an enum or enum class
 *   text                          const char *, std::string, std::string_view: not copied, not measured while the event is off
 *   text16                        const char16_t *, std::u16string, std::u16string_view
 *   time                          also std::chrono::system_clock::time_point
 *   blob                          one argument: any container of trivially copyable elements
 *   u8_array ... f64_array        one argument: std::vector, std::array, a C array, spoor::span
 *   text_array                    one argument: the same, of const char *, std::string or std::string_view
 *   object_array                  one argument: the same, of the struct
 *
 * Rules. Nothing here throws; functions that can fail return 0 or a negative errno. Objects are
 * moved, not copied. The thread rules are those of the C functions.
 */
#ifndef SPOOR_SPOOR_HPP
#define SPOOR_SPOOR_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <spoor/activity.h>
#include <spoor/counter.h>
#include <spoor/spoor.h>

namespace spoor
{

/* ---- Arguments of events: views, valid until the call returns ---- */

/* A number, also from an enum; converted as C converts arguments. */
template <typename T> class number
{
    public:
	template <typename U,
		std::enable_if_t<std::is_arithmetic_v<U> || std::is_enum_v<U>, int> = 0>
	constexpr number(U value) noexcept : value_(static_cast<T>(value))
	{
	}
	constexpr T get() const noexcept
	{
		return value_;
	}

    private:
	T value_;
};

/* Characters that end at a zero, or after a count. `Char` is char or char16_t. */
template <typename Char> class basic_text
{
    public:
	constexpr basic_text(const Char *text) noexcept : data_(text)
	{
	}
	constexpr basic_text(const Char *text, std::size_t count) noexcept
		: data_(text), count_(count)
	{
	}
	template <typename T,
		std::enable_if_t<!std::is_convertible_v<const T &, const Char *> &&
					 std::is_convertible_v<const T &,
						 std::basic_string_view<Char>>,
			int> = 0>
	constexpr basic_text(const T &text) noexcept
		: basic_text(std::basic_string_view<Char>(text).data(),
			  std::basic_string_view<Char>(text).size())
	{
	}
	constexpr const Char *data() const noexcept
	{
		return data_;
	}
	/* SIZE_MAX: it ends at a zero. */
	constexpr std::size_t count() const noexcept
	{
		return count_;
	}

    private:
	const Char *data_;
	std::size_t count_ = SIZE_MAX;
};
using text = basic_text<char>;
using text16 = basic_text<char16_t>;

/* Elements in a row. */
template <typename T> class span
{
    public:
	constexpr span() noexcept = default;
	constexpr span(const T *data, std::size_t count) noexcept : data_(data), count_(count)
	{
	}
	template <std::size_t N>
	constexpr span(const T (&elements)[N]) noexcept : data_(elements), count_(N)
	{
	}
	template <typename C,
		std::enable_if_t<std::is_convertible_v<decltype(std::declval<const C &>().data()),
					 const T *> &&
					 std::is_convertible_v<
						 decltype(std::declval<const C &>().size()),
						 std::size_t>,
			int> = 0>
	constexpr span(const C &container) noexcept
		: data_(container.data()), count_(container.size())
	{
	}
	constexpr const T *data() const noexcept
	{
		return data_;
	}
	constexpr std::size_t size() const noexcept
	{
		return count_;
	}

    private:
	const T *data_ = nullptr;
	std::size_t count_ = 0;
};

/* Texts in a row: of const char *, std::string, std::string_view, or another type that `text` takes. */
class texts
{
    public:
	template <typename E, std::enable_if_t<std::is_convertible_v<const E &, text>, int> = 0>
	constexpr texts(const E *data, std::size_t count) noexcept
		: data_(data), count_(count), at_(&texts::element<E>)
	{
	}
	template <typename E, std::size_t N,
		std::enable_if_t<std::is_convertible_v<const E &, text>, int> = 0>
	constexpr texts(const E (&elements)[N]) noexcept : texts(&elements[0], N)
	{
	}
	template <typename C,
		typename E = std::remove_pointer_t<decltype(std::declval<const C &>().data())>,
		std::enable_if_t<std::is_convertible_v<E &, text>, int> = 0>
	constexpr texts(const C &container) noexcept : texts(container.data(), container.size())
	{
	}
	text operator[](std::size_t i) const noexcept
	{
		return at_(data_, i);
	}
	constexpr std::size_t size() const noexcept
	{
		return data_ ? count_ : 0;
	}

    private:
	template <typename E> static text element(const void *data, std::size_t i) noexcept
	{
		return static_cast<const E *>(data)[i];
	}
	const void *data_;
	std::size_t count_;
	text (*at_)(const void *data, std::size_t i) noexcept;
};

/* The bytes of elements in a row. */
class bytes
{
    public:
	constexpr bytes() noexcept = default;
	constexpr bytes(std::nullptr_t) noexcept
	{
	}
	constexpr bytes(const void *data, std::size_t size) noexcept : data_(data), size_(size)
	{
	}
	template <typename C,
		typename E = std::remove_pointer_t<decltype(std::declval<const C &>().data())>,
		std::enable_if_t<std::is_trivially_copyable_v<E>, int> = 0>
	constexpr bytes(const C &container) noexcept
		: data_(container.data()), size_(container.size() * sizeof(E))
	{
	}
	constexpr const void *data() const noexcept
	{
		return data_;
	}
	constexpr std::size_t size() const noexcept
	{
		return size_;
	}

    private:
	const void *data_ = nullptr;
	std::size_t size_ = 0;
};

/* Nanoseconds since 1970-01-01 UTC. */
class time
{
    public:
	constexpr time(std::int64_t unix_ns) noexcept : unix_ns_(unix_ns)
	{
	}
	time(std::chrono::system_clock::time_point point) noexcept
		: unix_ns_(std::chrono::duration_cast<std::chrono::nanoseconds>(
				point.time_since_epoch())
				.count())
	{
	}
	constexpr std::int64_t get() const noexcept
	{
		return unix_ns_;
	}

    private:
	std::int64_t unix_ns_;
};

/* ---- The library ---- */

/* Starts the library, and stops it when it is destroyed. result(): 0 or a negative errno. */
class library
{
    public:
	explicit library(const spoor_options *options = nullptr) noexcept
		: result_(spoor_start(options))
	{
	}
	~library()
	{
		if (result_ == 0)
			spoor_stop();
	}
	library(const library &) = delete;
	library &operator=(const library &) = delete;
	int result() const noexcept
	{
		return result_;
	}

    private:
	int result_;
};

/* Registers a provider, and unregisters it when it is destroyed. */
class registration
{
    public:
	explicit registration(spoor_provider &provider) noexcept
		: provider_(provider), result_(spoor_provider_register(&provider))
	{
	}
	~registration()
	{
		if (result_ == 0)
			spoor_provider_unregister(&provider_);
	}
	registration(const registration &) = delete;
	registration &operator=(const registration &) = delete;
	int result() const noexcept
	{
		return result_;
	}

    private:
	spoor_provider &provider_;
	int result_;
};

/* ---- Sessions ---- */

enum class level : std::uint32_t {
	always = SPOOR_ALWAYS,
	critical = SPOOR_CRITICAL,
	error = SPOOR_ERROR,
	warning = SPOOR_WARNING,
	info = SPOOR_INFO,
	verbose = SPOOR_VERBOSE,
};

enum class policy : std::uint32_t {
	drop_newest = SPOOR_DROP_NEWEST,
	overwrite_oldest = SPOOR_OVERWRITE_OLDEST,
	block = SPOOR_BLOCK,
};

/* As spoor_want. */
struct want {
	const char *name;
	std::uint64_t keywords = UINT64_MAX;
	spoor::level level = spoor::level::verbose;
	const char *arguments = nullptr;
};

/* As spoor_session_options; zeroes are its defaults. */
struct session_options {
	spoor::policy policy = spoor::policy::drop_newest;
	bool stacks = false;
	std::uint32_t block_ms = 0;
	std::uint32_t flush_ms = 0;
	std::size_t buffer_bytes = 0;
};

struct session_counts {
	std::uint64_t written;
	std::uint64_t lost;
};

/* A session; it is stopped and freed when it is destroyed. Not started: an empty object. */
class session
{
    public:
	using listener = std::function<void(const spoor_event_view &)>;

	session() noexcept = default;
	session(const session &) = delete;
	session &operator=(const session &) = delete;
	session(session &&other) noexcept
		: handle_(std::exchange(other.handle_, nullptr)),
		  function_(std::move(other.function_))
	{
	}
	session &operator=(session &&other) noexcept
	{
		std::swap(handle_, other.handle_);
		std::swap(function_, other.function_);
		return *this;
	}
	~session()
	{
		end();
	}

	/* Writes a nettrace file. -EBUSY: this object has a session. */
	int start_file(const char *path, std::initializer_list<want> wants,
		const session_options &options = {}) noexcept
	{
		spoor_file_options file{};
		file.size = sizeof(file);
		file.path = path;
		return start(wants, options, [&file](auto *all, auto **ret) {
			return spoor_session_start_file(all, &file, ret);
		});
	}
	/* Calls `function` with each event, on a thread of this session. It must not throw. */
	int start_callback(listener function, std::initializer_list<want> wants,
		const session_options &options = {}) noexcept
	{
		if (handle_)
			return -EBUSY;
		function_.reset(new (std::nothrow) listener(std::move(function)));
		if (!function_)
			return -ENOMEM;
		return start(wants, options, [this](auto *all, auto **ret) {
			return spoor_session_start_callback(
				all,
				[](const spoor_event_view *event, void *context) {
					(*static_cast<listener *>(context))(*event);
				},
				function_.get(), ret);
		});
	}
	/* As spoor_session_stop(): its counts stay readable. */
	int stop() noexcept
	{
		return handle_ ? spoor_session_stop(handle_) : -EINVAL;
	}
	int flush(std::chrono::milliseconds timeout) noexcept
	{
		return handle_ ? spoor_session_flush(handle_,
					 static_cast<std::uint32_t>(timeout.count()))
			       : -EINVAL;
	}
	int snapshot(const char *path) noexcept
	{
		return handle_ ? spoor_session_snapshot(handle_, path) : -EINVAL;
	}
	session_counts counts() const noexcept
	{
		spoor_session_counts counts{};
		counts.size = sizeof(counts);
		if (handle_)
			spoor_session_count(handle_, &counts);
		return { counts.written, counts.lost };
	}
	explicit operator bool() const noexcept
	{
		return handle_ != nullptr;
	}
	/* For the C functions; owned by this object. */
	spoor_session *get() const noexcept
	{
		return handle_;
	}

    private:
	static constexpr std::size_t wants_max = 64;

	template <typename Start>
	int start(std::initializer_list<want> wants, const session_options &options,
		Start start_it) noexcept
	{
		spoor_want all[wants_max]{};
		std::size_t count = 0;

		if (handle_)
			return -EBUSY;
		if (wants.size() > wants_max)
			return -E2BIG;
		for (const want &one : wants) {
			all[count].size = sizeof(all[count]);
			all[count].name = one.name;
			all[count].keywords = one.keywords;
			all[count].level = static_cast<std::uint32_t>(one.level);
			all[count++].arguments = one.arguments;
		}
		spoor_session_options full{};
		full.size = sizeof(full);
		full.wants = all;
		full.want_count = count;
		full.policy = static_cast<std::uint32_t>(options.policy);
		full.stacks = options.stacks;
		full.block_ms = options.block_ms;
		full.flush_ms = options.flush_ms;
		full.buffer_bytes = options.buffer_bytes;
		return start_it(&full, &handle_);
	}
	void end() noexcept
	{
		if (handle_) {
			/* The listener is not called any more. */
			(void)spoor_session_stop(handle_);
			spoor_session_free(handle_);
		}
	}

	spoor_session *handle_ = nullptr;
	std::unique_ptr<listener> function_{}; /* at an address that moving keeps */
};

/* ---- Activities ---- */

/* An activity of the calling thread, from here to the end of the block. */
class activity
{
    public:
	/* `name` and `traceparent` as for spoor_activity_start(). */
	explicit activity(const char *name, const char *traceparent = nullptr) noexcept
		: result_(spoor_activity_start(&activity_, name, traceparent))
	{
	}
	~activity()
	{
		spoor_activity_stop(&activity_);
	}
	activity(const activity &) = delete;
	activity &operator=(const activity &) = delete;
	/* 0, or -EINVAL: the header was malformed, and the activity began without it. */
	int result() const noexcept
	{
		return result_;
	}
	const spoor_activity &get() const noexcept
	{
		return activity_;
	}

    private:
	spoor_activity activity_{};
	int result_;
};

/* Another thread continues an activity, from here to the end of the block. */
class activity_scope
{
    public:
	explicit activity_scope(const spoor_activity *activity) noexcept
	{
		spoor_activity_enter(activity, &scope_);
	}
	explicit activity_scope(const activity &activity) noexcept : activity_scope(&activity.get())
	{
	}
	~activity_scope()
	{
		spoor_activity_leave(&scope_);
	}
	activity_scope(const activity_scope &) = delete;
	activity_scope &operator=(const activity_scope &) = delete;

    private:
	spoor_activity_scope scope_{};
};

/* ---- Counters ---- */

class meter
{
    public:
	explicit meter(const char *name, const char *version = nullptr) noexcept
		: meter_(spoor_meter_open(name, version))
	{
	}
	~meter()
	{
		spoor_meter_close(meter_);
	}
	meter(const meter &) = delete;
	meter &operator=(const meter &) = delete;
	spoor_meter *get() const noexcept
	{
		return meter_;
	}

    private:
	spoor_meter *meter_;
};

/* A series of one kind of instrument; closed when it is destroyed, before its meter. */
class instrument
{
    public:
	instrument(const meter &meter, spoor_counter_kind kind, const char *name,
		const char *unit = nullptr, std::initializer_list<spoor_tag> tags = {}) noexcept
		: series_(open(meter, kind, name, unit, tags))
	{
	}
	~instrument()
	{
		spoor_counter_close(series_);
	}
	instrument(const instrument &) = delete;
	instrument &operator=(const instrument &) = delete;
	spoor_counter *get() const noexcept
	{
		return series_;
	}

    private:
	static spoor_counter *open(const meter &meter, spoor_counter_kind kind, const char *name,
		const char *unit, std::initializer_list<spoor_tag> tags) noexcept
	{
		spoor_counter_options options{};
		options.size = sizeof(options);
		options.unit = unit;
		options.tags = tags.begin();
		options.tag_count = tags.size();
		return spoor_counter_open(meter.get(), kind, name, &options);
	}
	spoor_counter *series_;
};

class counter : public instrument
{
    public:
	counter(const meter &meter, const char *name, const char *unit = nullptr,
		std::initializer_list<spoor_tag> tags = {}) noexcept
		: instrument(meter, SPOOR_COUNTER, name, unit, tags)
	{
	}
	void add(std::int64_t amount = 1) noexcept
	{
		spoor_counter_add(get(), amount);
	}
};

class up_down_counter : public instrument
{
    public:
	up_down_counter(const meter &meter, const char *name, const char *unit = nullptr,
		std::initializer_list<spoor_tag> tags = {}) noexcept
		: instrument(meter, SPOOR_UP_DOWN_COUNTER, name, unit, tags)
	{
	}
	void add(std::int64_t amount) noexcept
	{
		spoor_counter_add(get(), amount);
	}
};

class gauge : public instrument
{
    public:
	gauge(const meter &meter, const char *name, const char *unit = nullptr,
		std::initializer_list<spoor_tag> tags = {}) noexcept
		: instrument(meter, SPOOR_GAUGE, name, unit, tags)
	{
	}
	void set(double value) noexcept
	{
		spoor_gauge_set(get(), value);
	}
};

class histogram : public instrument
{
    public:
	histogram(const meter &meter, const char *name, const char *unit = nullptr,
		std::initializer_list<spoor_tag> tags = {}) noexcept
		: instrument(meter, SPOOR_HISTOGRAM, name, unit, tags)
	{
	}
	void record(double value) noexcept
	{
		spoor_histogram_record(get(), value);
	}
};

/* Records its own lifetime in a histogram, in seconds. */
class timed
{
    public:
	explicit timed(histogram &histogram) noexcept
		: histogram_(histogram), from_ns_(spoor_now_ns())
	{
	}
	~timed()
	{
		histogram_.record(static_cast<double>(spoor_now_ns() - from_ns_) / 1e9);
	}
	timed(const timed &) = delete;
	timed &operator=(const timed &) = delete;

    private:
	histogram &histogram_;
	std::uint64_t from_ns_;
};

/* Adds one to an up-down counter for its lifetime. */
class in_progress
{
    public:
	explicit in_progress(up_down_counter &counter) noexcept : counter_(counter)
	{
		counter_.add(1);
	}
	~in_progress()
	{
		counter_.add(-1);
	}
	in_progress(const in_progress &) = delete;
	in_progress &operator=(const in_progress &) = delete;

    private:
	up_down_counter &counter_;
};

} // namespace spoor

/* ---- The C++ overload of each fire function ---- */

/* The macros of event_macros.h measure and write an argument of type spoor::text by these. */
inline size_t spoor_text_length(const spoor::text &text) noexcept
{
	return text.count() == SIZE_MAX ? spoor_text_length(text.data())
					: spoor_counted_text_length(text.data(), text.count());
}
inline uint8_t *spoor_put_text(uint8_t *at, const spoor::text &text, size_t length) noexcept
{
	return spoor_put_text(at, text.data(), length);
}
inline size_t spoor_text16_length(const spoor::text16 &text) noexcept
{
	const char16_t *const units = text.data();
	std::size_t length = 0;
	char16_t before = 0;
	char16_t unit = units && text.count() ? units[0] : 0;

	/* As for C: an index that is a constant would be outside of a short literal. */
	while (unit && length < SPOOR_TEXT_MAX) {
		before = unit;
		length++;
		unit = length < text.count() ? units[length] : 0;
	}
	return (before & 0xfc00) == 0xd800 && (unit & 0xfc00) == 0xdc00 ? length - 1 : length;
}
inline uint8_t *spoor_put_text16(uint8_t *at, const spoor::text16 &text, size_t length) noexcept
{
	return spoor_put_text16(at, text.data(), length);
}

inline size_t spoor_count_of(const spoor::texts &texts, size_t count) noexcept
{
	count = texts.size() < count ? texts.size() : count;
	return count < 65535 ? count : 65535;
}
inline size_t spoor_text_array_size(const spoor::texts &texts, size_t count) noexcept
{
	size_t size = 2;

	for (size_t i = 0; i < count; i++)
		size += 3 + spoor_text_length(texts[i]);
	return size;
}
inline uint8_t *spoor_put_text_array(uint8_t *at, const uint8_t *end, const spoor::texts &texts,
	size_t count) noexcept
{
	const uint16_t prefix = static_cast<uint16_t>(count);

	at = spoor_put_within(at, end, &prefix, sizeof(prefix));
	for (size_t i = 0; i < count; i++) {
		const spoor::text text = texts[i];
		at = spoor_put_counted_text_within(at, end, text.data(), spoor_text_length(text));
	}
	return at;
}

/* Per kind: its parameter, and the names that the other macros of the kind use. */
#define SPOOR_CPP_SCALAR(t, n)          spoor::number<SPOOR_C_##t> n##_given_
#define SPOOR_LOCAL_SCALAR(t, n)        const SPOOR_C_##t n = n##_given_.get();
#define SPOOR_CPP_BOOLEAN(t, n)         spoor::number<bool> n##_given_
#define SPOOR_LOCAL_BOOLEAN(t, n)       const bool n = n##_given_.get();
#define SPOOR_CPP_GUID(t, n)            const spoor_guid *n
#define SPOOR_LOCAL_GUID(t, n)
#define SPOOR_CPP_TIME(t, n)            spoor::time n##_given_
#define SPOOR_LOCAL_TIME(t, n)          const int64_t n = n##_given_.get();
#define SPOOR_CPP_POINTER(t, n)         const void *n
#define SPOOR_LOCAL_POINTER(t, n)
#define SPOOR_CPP_TEXT(t, n)            spoor::text n
#define SPOOR_LOCAL_TEXT(t, n)
#define SPOOR_CPP_COUNTED(t, n)         spoor::text n##_given_
#define SPOOR_LOCAL_COUNTED(t, n)                    \
	const char *const n = n##_given_.data();     \
	const size_t n##_count = n##_given_.count(); 
#define SPOOR_CPP_TEXT16(t, n)          spoor::text16 n
#define SPOOR_LOCAL_TEXT16(t, n)
#define SPOOR_CPP_ARRAY(t, n)           spoor::elements_<SPOOR_C_##t> n##_given_
#define SPOOR_LOCAL_ARRAY(t, n)                            \
	const SPOOR_C_##t *const n = n##_given_.data();    \
	const size_t n##_count = n##_given_.size();
#define SPOOR_CPP_TEXTS(t, n)           spoor::texts n
#define SPOOR_LOCAL_TEXTS(t, n)         const size_t n##_count = n.size();
#define SPOOR_CPP_OBJECT(t, n, c)       const struct c *n
#define SPOOR_LOCAL_OBJECT(t, n, c)
#define SPOOR_CPP_OBJECTS(t, n, c)      spoor::span<struct c> n##_given_
#define SPOOR_LOCAL_OBJECTS(t, n, c)                   \
	const struct c *const n = n##_given_.data();   \
	const size_t n##_count = n##_given_.size();

namespace spoor
{
/* The parameter of an array of T; `void` is that of a blob. */
template <typename T> struct elements_of {
	using type = span<T>;
};
template <> struct elements_of<void> {
	using type = bytes;
};
template <typename T> using elements_ = typename elements_of<T>::type;
} // namespace spoor

#define SPOOR_CPP(x, tuple)     SPOOR_CPP_1 tuple
#define SPOOR_CPP_1(t, ...) SPOOR_CPP_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_CPP_2(k, ...)     SPOOR_CPP_3(k, __VA_ARGS__)
#define SPOOR_CPP_3(k, ...)     SPOOR_CPP_##k(__VA_ARGS__)
#define SPOOR_LOCAL(x, tuple)   SPOOR_LOCAL_1 tuple
#define SPOOR_LOCAL_1(t, ...) SPOOR_LOCAL_2(SPOOR_KIND(t), t, SPOOR_IDENT(__VA_ARGS__))
#define SPOOR_LOCAL_2(k, ...)   SPOOR_LOCAL_3(k, __VA_ARGS__)
#define SPOOR_LOCAL_3(k, ...)   SPOOR_LOCAL_##k(__VA_ARGS__)

/*
 * A template, so that a call whose arguments fit the C function takes that one, and so that both
 * may have the same parameters. Internal linkage, because it refers to static functions. The event may
 * be in a header whose declarations are extern "C".
 */
#undef SPOOR_OVERLOAD_
#define SPOOR_OVERLOAD_(n, full, ...)                                                         \
	extern "C++" {                                                                        \
	template <typename = void>                                                            \
	[[maybe_unused]] static inline void full(SPOOR_LIST_##n(SPOOR_CPP, , __VA_ARGS__))    \
	{                                                                                     \
		if (!full##_enabled())                                                        \
			return;                                                               \
		SPOOR_EACH_##n(SPOOR_LOCAL, , __VA_ARGS__)                                    \
		SPOOR_EACH_##n(SPOOR_MEASURE, , __VA_ARGS__) const struct spoor_slot slot_ =  \
			spoor_fire_begin(&full##_event,                                       \
				SPOOR_CAST(size_t, 0) SPOOR_EACH_##n(SPOOR_SIZE, , __VA_ARGS__));         \
		uint8_t *p_ = slot_.at;                                                       \
		if (p_) {                                                                     \
			SPOOR_EACH_##n(SPOOR_PUT, , __VA_ARGS__)(void) p_;                    \
			spoor_fire_end(slot_);                                                \
		}                                                                             \
	}                                                                                     \
	}

#endif
