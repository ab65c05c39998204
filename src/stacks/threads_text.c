/* See threads_text.h. */
#include "stacks/threads_text.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "stacks/thread_dump.h"
#include "trace/symbolmap.h"

#define NAME_COLUMNS_MAX 90u
#define MEMBERS_SHOWN    8u

static const char *text_of(const struct thread_dump *dump, uint32_t index)
{
	return strtab_get(&dump->texts, index);
}

static void add_safe(struct bytes *out, const struct thread_dump *dump, uint32_t index)
{
	text_add_safe(out, text_of(dump, index), strtab_len(&dump->texts, index));
}

static const char *state_words(const struct dump_thread *thread)
{
	switch (thread->state) {
	case 'R':
		return "running";
	case 'S':
		return "waiting";
	case 'D':
		return "waiting for the disk or the kernel";
	case 'T':
		return "stopped";
	case 't':
		return "held by a debugger";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "";
	}
}

static void add_utc(struct bytes *out, uint64_t utc_ns)
{
	char text[32];
	time_t seconds = (time_t)(utc_ns / 1000000000u);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	(void)strftime(text, sizeof(text), "%H:%M:%S UTC", &utc); /* fits */
	bytes_text(out, text);
}

static void add_head(struct thread_dump *dump, struct bytes *out)
{
	uint32_t managed = 0;

	for (uint32_t i = 0; i < dump->threads.count; i++)
		managed += dump->threads.items[i].managed_count > 0;
	add_safe(out, dump, dump->name);
	bytes_printf(out, " (%" PRIu32 ")", dump->pid);
	if (dump->runtime_version) {
		bytes_text(out, ", .NET ");
		add_safe(out, dump, dump->runtime_version);
	}
	bytes_text(out, ", ");
	add_utc(out, dump->utc_ns);
	bytes_printf(out, ": %s%s with managed frames, %s",
		TEXT_THINGS(dump->threads.count, "thread, ", "threads, "), TEXT_COUNT(managed),
		TEXT_THINGS(dump->groups.count, "different stack\n", "different stacks\n"));
}

/* The data that is missing in the dump, and the reasons. */
static void add_trust(const struct thread_dump *dump, struct bytes *out)
{
	size_t before = out->len;

	if (dump->unsampled_reason) {
		bytes_text(out, "no managed frames from the runtime: ");
		add_safe(out, dump, dump->unsampled_reason);
		bytes_text(out, "\n");
	}
	if (dump->lost_events)
		bytes_printf(out, "%s lost on the way\n",
			TEXT_THINGS(dump->lost_events, "event", "events"));
	if (dump->unnamed)
		bytes_printf(out, "%s without a name\n",
			TEXT_THINGS(dump->unnamed, "managed frame", "managed frames"));
	if (!dump->native)
		bytes_text(out,
			"no native frames and no system calls: that needs the right to trace it (root, or CAP_SYS_PTRACE)\n");
	if (out->len == before)
		bytes_printf(out, "whole, taken within %s\n",
			TEXT_DURATION((double)dump->took_ns / 1e9));
}

/* "waiting for a task, in futex (futex_do_wait)", "waiting in recvmsg at socket:[17]". */
static void add_wait(const struct thread_dump *dump, const struct dump_thread *thread, bool alone,
	struct bytes *out)
{
	/* for a lock, add_lock() prints more */
	const char *words = thread->lock ? "" : text_of(dump, thread->waits_for);

	bytes_text(out, state_words(thread));
	if (thread->state == 'R')
		return;
	if (*words)
		bytes_printf(out, " %s,", words);
	if (thread->syscall) {
		bytes_text(out, " in ");
		add_safe(out, dump, thread->syscall);
		if (thread->object && alone) {
			bytes_text(out, " at ");
			add_safe(out, dump, thread->object);
		}
		if (thread->function) {
			bytes_text(out, " (");
			add_safe(out, dump, thread->function);
			bytes_text(out, ")");
		}
	} else if (thread->function) {
		bytes_text(out, " in the kernel's ");
		add_safe(out, dump, thread->function);
	} else if (*words) {
		out->len--; /* the comma */
	}
}

static void add_lock(const struct thread_dump *dump, const struct dump_thread *thread,
	struct bytes *out)
{
	if (!thread->lock)
		return;
	bytes_printf(out, ", for the lock of object 0x%" PRIx64, thread->lock);
	for (uint32_t i = 0; thread->lock_owner && i < dump->threads.count; i++) {
		const struct dump_thread *owner = &dump->threads.items[i];
		if (owner->tid != thread->lock_owner)
			continue;
		bytes_printf(out, ", held by %" PRIu32 " ", owner->tid);
		add_safe(out, dump, owner->name);
	}
}

/* "12 threads  waiting in futex (futex_do_wait)", then their ids and names. */
static void add_group_head(const struct thread_dump *dump, const struct dump_group *group,
	struct bytes *out)
{
	const uint32_t *members = &dump->members.items[group->first];
	const struct dump_thread *first = &dump->threads.items[members[0]];

	if (group->count > 1) {
		text_add_things(out, group->count, "thread  ", "threads  ");
	} else {
		bytes_printf(out, "%" PRIu32 " ", first->tid);
		add_safe(out, dump, first->name);
		bytes_text(out, "  ");
	}
	add_wait(dump, first, group->count == 1, out);
	add_lock(dump, first, out);
	if (first->moved)
		bytes_printf(out, "; the frames are of another moment, %s ran in between",
			group->count > 1 ? "they" : "it");
	bytes_text(out, "\n");
	if (group->count == 1)
		return;
	bytes_text(out, " ");
	for (uint32_t i = 0; i < group->count && i < MEMBERS_SHOWN; i++) {
		const struct dump_thread *thread = &dump->threads.items[members[i]];
		bytes_printf(out, "%s %" PRIu32 " ", i ? "," : "", thread->tid);
		add_safe(out, dump, thread->name);
	}
	if (group->count > MEMBERS_SHOWN)
		bytes_printf(out, ", and %" PRIu32 " more", group->count - MEMBERS_SHOWN);
	bytes_text(out, "\n");
}

/* A name of at most `room` columns; cut in its middle. 0: as it is. */
static size_t add_name(const struct thread_dump *dump, uint32_t name, size_t room,
	struct bytes *out)
{
	cleanup(bytes_done) struct bytes safe = { 0 };
	size_t at = 0;

	add_safe(&safe, dump, name);
	const char *text = bytes_z(&safe);
	size_t columns = text_columns(text, safe.len);

	if (!room || columns <= room || room < 8) {
		bytes_text(out, text);
	} else {
		size_t tail = room / 3;
		for (size_t i = 0; i + 1 < room - tail; i++)
			(void)text_next_char(text, safe.len, &at);
		bytes_add(out, text, at);
		bytes_text(out, "\xe2\x80\xa6");
		while (text_columns(text + at, safe.len - at) > tail)
			(void)text_next_char(text, safe.len, &at);
		bytes_add(out, text + at, safe.len - at);
		columns = room;
	}
	return columns;
}

/* A native frame that only has its place in a file: "libcoreclr.so+0x63023e". */
static bool is_nameless(const struct thread_dump *dump, const struct dump_frame *frame)
{
	const char *module = text_of(dump, frame->module);
	size_t len = strlen(module);

	return frame->module && !dump_frame_is_managed(frame) &&
	       strncmp(text_of(dump, frame->name), module, len) == 0 &&
	       strncmp(text_of(dump, frame->name) + len, "+0x", 3) == 0;
}

/* How many frames from here on are one line: of the kernel, or without names and of one file. */
static uint32_t count_folded(const struct thread_dump *dump, const uint64_t *frames, uint32_t count)
{
	const struct dump_frame *first = &dump->frames.items[frames[0]];
	bool kernel = first->kind == FUNCTION_KERNEL;
	uint32_t n = 1;

	if (!kernel && !is_nameless(dump, first))
		return 1;
	for (; n < count; n++) {
		const struct dump_frame *frame = &dump->frames.items[frames[n]];
		if (kernel ? frame->kind != FUNCTION_KERNEL
			   : frame->module != first->module || !is_nameless(dump, frame))
			break;
	}
	return n;
}

static void add_folded(const struct thread_dump *dump, const struct dump_frame *first,
	uint32_t count, struct bytes *out)
{
	bytes_printf(out, "[%" PRIu32 " frames of ", count);
	if (first->kind == FUNCTION_KERNEL) {
		bytes_text(out, "the kernel]\n");
		return;
	}
	add_safe(out, dump, first->module);
	bytes_text(out, " without symbols]\n");
}

static uint32_t shown_name(const struct dump_frame *frame,
	const struct threads_text_options *options)
{
	return frame->short_name && !options->long_names ? frame->short_name : frame->name;
}

static void add_frames(const struct thread_dump *dump, uint32_t stack,
	const struct threads_text_options *options, struct bytes *out)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, stack, &count);
	size_t width = 0;
	uint32_t folded;

	for (uint32_t i = 0; i < count; i += folded) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		size_t own = text_columns(text_of(dump, shown_name(frame, options)),
			strtab_len(&dump->texts, shown_name(frame, options)));
		folded = options->whole ? 1 : count_folded(dump, frames + i, count - i);
		if (own > width && frame->module && folded == 1)
			width = own;
	}
	if (width > NAME_COLUMNS_MAX)
		width = NAME_COLUMNS_MAX;
	size_t room = options->columns > 60 ? options->columns - 30 : options->columns ? 30 : 0;

	if (room && width > room)
		width = room;
	for (uint32_t i = 0; i < count; i += folded) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		folded = options->whole ? 1 : count_folded(dump, frames + i, count - i);
		bytes_text(out, "    ");
		if (folded > 1) {
			add_folded(dump, frame, folded, out);
			continue;
		}
		size_t used = add_name(dump, shown_name(frame, options), room, out);
		if (frame->module) {
			bytes_printf(out, "%*s  ", used < width ? (int)(width - used) : 0, "");
			add_safe(out, dump, frame->module);
		}
		bytes_text(out, "\n");
	}
}

/* "12 threads of the runtime: 4 .NET TP Worker, .NET TP Gate": the groups from `first` on. */
static void add_idle(const struct thread_dump *dump, uint32_t first, struct bytes *out)
{
	struct {
		uint32_t name;
		uint32_t count;
	} names[MEMBERS_SHOWN];
	uint32_t name_count = 0;
	uint32_t threads = 0;
	uint32_t others = 0;

	for (uint32_t m = dump->groups.items[first].first; m < dump->members.count;
		m++, threads++) {
		uint32_t name = dump->threads.items[dump->members.items[m]].name;
		uint32_t n = 0;
		while (n < name_count && names[n].name != name)
			n++;
		if (n < name_count) {
			names[n].count++;
		} else if (n < MEMBERS_SHOWN) {
			names[n].name = name;
			names[n].count = 1;
			name_count++;
		} else {
			others++;
		}
	}
	bytes_printf(out, "\n%s",
		TEXT_THINGS(threads, "thread of the runtime: ", "threads of the runtime: "));
	for (uint32_t n = 0; n < name_count; n++) {
		bytes_text(out, n ? ", " : "");
		if (names[n].count > 1)
			bytes_printf(out, "%s ", TEXT_COUNT(names[n].count));
		add_safe(out, dump, names[n].name);
	}
	if (others)
		bytes_printf(out, ", and %" PRIu32 " more", others);
	bytes_text(out, " (--whole shows them)\n");
}

/* The waits for locks whose owner is not shown: once, why. */
static void add_unowned(const struct thread_dump *dump, struct bytes *out)
{
	bool unowned = false;

	vec_each(thread, &dump->threads)
		unowned |= !thread->lock_owner && thread->waits_for_lock;
	if (unowned && !dump->values_withheld)
		bytes_text(out,
			"\nlocks without an owner: the runtime announces the owner only when a wait begins; "
			"these waits began before, or are for no monitor, and the memory of the process does not show it\n");
}

void threads_text(struct thread_dump *dump, const struct threads_text_options *options,
	struct bytes *out)
{
	add_head(dump, out);
	add_trust(dump, out);
	for (uint32_t g = 0; g < dump->groups.count; g++) {
		const struct dump_group *group = &dump->groups.items[g];
		const struct dump_thread *thread =
			&dump->threads.items[dump->members.items[group->first]];
		if ((thread->idle || thread->serves_session) && !options->whole) {
			add_idle(dump, g, out);
			break;
		}
		bytes_text(out, "\n");
		add_group_head(dump, group, out);
		add_frames(dump, thread->stack, options, out);
	}
	add_unowned(dump, out);
}

static const char *mode_word(const struct dump_thread *thread)
{
	return thread->mode == THREAD_MANAGED  ? "managed"
	       : thread->mode == THREAD_NATIVE ? "native"
					       : "";
}

static void json_frames(const struct thread_dump *dump, uint32_t stack, struct json *json)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, stack, &count);

	json_array(json, "frames");
	for (uint32_t i = 0; i < count; i++) {
		const struct dump_frame *frame = &dump->frames.items[frames[i]];
		json_object(json, NULL);
		json_z(json, "name", text_of(dump, frame->name));
		json_z(json, "module", text_of(dump, frame->module));
		json_z(json, "kind", frame->gap ? "gap" : label_kind(frame->kind));
		json_end(json);
	}
	json_end(json);
}

static void json_thread(const struct thread_dump *dump, const struct dump_thread *thread,
	struct json *json)
{
	const char state[2] = { thread->state, 0 };

	json_object(json, NULL);
	json_u64(json, "tid", thread->tid);
	json_u64(json, "inner_tid", thread->inner_tid);
	json_z(json, "name", text_of(dump, thread->name));
	json_z(json, "state", state);
	json_z(json, "mode", mode_word(thread));
	json_z(json, "system_call", text_of(dump, thread->syscall));
	json_z(json, "waits_at", text_of(dump, thread->object));
	json_z(json, "kernel_function", text_of(dump, thread->function));
	json_z(json, "waits_for", text_of(dump, thread->waits_for));
	json_bool(json, "same_moment", !thread->moved);
	json_bool(json, "idle", thread->idle);
	json_u64(json, "lock_object", thread->lock);
	json_u64(json, "lock_owner_tid", thread->lock_owner);
	json_u64(json, "cpu_ns", thread->cpu_ns);
	json_end(json);
}

void threads_json(const struct thread_dump *dump, struct bytes *out)
{
	struct json json = { .out = out };

	json_object(&json, NULL);
	json_u64(&json, "pid", dump->pid);
	json_z(&json, "name", text_of(dump, dump->name));
	json_z(&json, "runtime_version", text_of(dump, dump->runtime_version));
	json_u64(&json, "utc_ns", dump->utc_ns);
	json_u64(&json, "took_ns", dump->took_ns);
	json_bool(&json, "sampled", !dump->unsampled_reason);
	json_z(&json, "reason", text_of(dump, dump->unsampled_reason));
	json_bool(&json, "native", dump->native);
	json_bool(&json, "values_withheld", dump->values_withheld);
	json_u64(&json, "lost_events", dump->lost_events);
	json_u64(&json, "threads", dump->threads.count);
	json_array(&json, "stacks");
	vec_each(group, &dump->groups) {
		const uint32_t *members = &dump->members.items[group->first];
		json_object(&json, NULL);
		json_array(&json, "threads");
		for (uint32_t i = 0; i < group->count; i++)
			json_thread(dump, &dump->threads.items[members[i]], &json);
		json_end(&json);
		json_frames(dump, dump->threads.items[members[0]].stack, &json);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	bytes_text(out, "\n");
}

void threads_dotnet_stack(const struct thread_dump *dump, struct bytes *out)
{
	vec_each(thread, &dump->threads) {
		uint32_t count;
		const uint64_t *frames = stack_table_get(&dump->stacks, thread->stack, &count);
		if (!thread->managed_count)
			continue;
		bytes_printf(out, "Thread (0x%" PRIX32 "):\n", thread->inner_tid);
		bytes_text(out,
			thread->mode == THREAD_MANAGED ? "  CPU_TIME\n" : "  [Native Frames]\n");
		for (uint32_t i = 0; i < count; i++) {
			const struct dump_frame *frame = &dump->frames.items[frames[i]];
			if (!dump_frame_is_managed(frame))
				continue;
			bytes_text(out, "  ");
			add_safe(out, dump, frame->module);
			bytes_text(out, frame->module ? "!" : "?!");
			add_safe(out, dump, frame->name);
			bytes_text(out, "\n");
		}
		bytes_text(out, "\n");
	}
}
