/*
 * spoor heap: the objects in the heap of a .NET process, and the references that keep them alive.
 *
 * Takes a snapshot, saves it as .gcdump, reports; or reports on and compares saved ones.
 */
#include "base/clocks.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/run_control.h"
#include "cli/selection.h"
#include "cli/target_options.h"
#include "dotnet/guard.h"
#include "dotnet/port.h"
#include "formats/gcdump_read.h"
#include "formats/gcdump_write.h"
#include "heap/heap_paths.h"
#include "heap/heap_report.h"
#include "heap/heap_retained.h"
#include "heap/heap_snapshot.h"
#include "heap/heap_text.h"
#include "heap/heap_types.h"
#include "machine/box.h"
#include "machine/output_file.h"
#include "trace/heap_graph.h"

#define ASK_BYTES  (UINT64_C(4) << 30)
#define FILE_MAX   (UINT64_C(8) << 30)
#define PATH_ROOM  4096u
#define BUFFER_MAX 65536u /* MB */

#define GCDUMP_SUFFIX     ".gcdump"
#define INCOMPLETE_SUFFIX ".incomplete"

#define OPTIONS_VERB heap
#define OPTIONS_LIST "cli/heap_options.def"
#include "cli/option_list.h"

/* One heap, its report, and what the report borrows. */
struct heap_run {
	struct heap_graph graph;
	struct heap_report report;
	struct bytes process;
	char path[PATH_ROOM];
	struct gcdump_origin origin;
};

static void heap_done(struct heap_run *heap)
{
	heap_report_done(&heap->report);
	heap_graph_done(&heap->graph);
	bytes_done(&heap->process);
}

/* ---- reports ---- */

/* All results that the options request of one heap; `type_name` NULL: its types. */
static int analyse(const struct heap_values *values, struct heap_run *heap, const char *type_name,
	struct diag *diag)
{
	struct heap_order order;
	uint32_t matches = 1;

	heap->report.graph = &heap->graph;
	int error = heap_order_init(&order, &heap->graph);
	if (!error && type_name)
		error = heap_paths_find(&heap->report, &order, type_name, &matches);
	if (!error)
		error = heap_types_count(&heap->report, &order, (enum heap_sort)values->sort);
	heap_order_done(&order);
	if (error)
		return diag_set(diag, error, "cannot analyse the heap: %m");
	if (matches && (!type_name || heap->report.paths.count))
		return 0;
	diag_set(diag, -ENOENT,
		matches ? "no root leads to an object of type '%s'"
			: "the heap has no objects of a type '%s'",
		type_name);
	diag_remedy(diag,
		"give the whole name as the report has it, its last part, or a pattern with *");
	return -ENOENT;
}

static int print_heap(const struct heap_values *values, const struct heap_run *heap,
	const char *type_name)
{
	uint32_t top = values->top > UINT32_MAX ? UINT32_MAX : (uint32_t)values->top;
	struct bytes out = { 0 };
	struct screen screen;

	screen_look(stdout, COLOR_AUTO, &screen);
	const struct heap_text_options options = {
		.columns = screen.columns, .row_count = top, .type_name = type_name
	};
	if (values->json)
		heap_json(&heap->report, NULL, top, &out);
	else
		heap_text(&heap->report, &options, &out);
	int code = out.failed ? EXIT_FAILED : selection_print(&out);

	bytes_done(&out);
	return code;
}

/* ---- files ---- */

static int load(const char *path, struct heap_run *heap, struct diag *diag)
{
	struct input in;
	struct gcdump_origin *origin = &heap->origin;
	cleanup(freep) uint8_t *data = NULL;
	size_t size;

	if (strlen(path) >= sizeof(heap->path))
		return diag_set(diag, -ENAMETOOLONG, "the name of the file is too long");
	memcpy(heap->path, path, strlen(path) + 1);
	int result = input_open(&in, path, diag);
	if (result < 0)
		return result;
	result = input_read_all(&in, FILE_MAX, &data, &size, diag);
	input_close(&in);
	if (result == 0)
		result = heap_graph_init(&heap->graph);
	if (result == 0)
		result = gcdump_read(data, size, path, &heap->graph, origin, diag);
	if (result < 0)
		return diag->error ? result : diag_set(diag, result, "cannot read '%s': %m", path);
	text_add_safe_z(&heap->process, origin->process_name);
	if (origin->pid)
		bytes_printf(&heap->process, " (%u)", origin->pid);
	heap->report.graph = &heap->graph;
	heap->report.process = bytes_z(&heap->process);
	heap->report.utc_ns = origin->utc_ns;
	heap->report.missing = origin->missing;
	heap->report.file = heap->path;
	return 0;
}

/* Part of a heap is reported, with a warning and the exit code of a failure. */
static bool is_partial(const struct heap_run *heap)
{
	return heap->report.missing && *heap->report.missing;
}

static int report_file(const struct heap_values *values, const char *path, const char *type_name)
{
	struct heap_run heap = { 0 };
	struct diag diag = { 0 };
	int result = load(path, &heap, &diag);

	if (result == 0)
		result = analyse(values, &heap, type_name, &diag);
	int code = result < 0 ? message_fail(&diag) : print_heap(values, &heap, type_name);

	if (code == EXIT_DONE && is_partial(&heap))
		code = EXIT_FAILED;
	heap_done(&heap);
	return code;
}

static int compare_files(const struct heap_values *values, const char *before_path,
	const char *after_path)
{
	struct heap_run before = { 0 };
	struct heap_run after = { 0 };
	struct diag diag = { 0 };
	int result = load(before_path, &before, &diag);

	if (result == 0)
		result = load(after_path, &after, &diag);
	if (result == 0)
		result = analyse(values, &after, NULL, &diag);
	if (result == 0 && heap_types_compare(&after.report, &before.graph) < 0)
		result = diag_set(&diag, -ENOMEM, "cannot compare the heaps: %m");
	int code;

	if (result < 0) {
		code = message_fail(&diag);
	} else {
		uint32_t top = values->top > UINT32_MAX ? UINT32_MAX : (uint32_t)values->top;
		const struct heap_text_options options = { .row_count = top };
		struct bytes out = { 0 };
		if (values->json)
			heap_json(&after.report, &before.report, top, &out);
		else
			heap_diff_text(&after.report, &before.report, &options, &out);
		code = out.failed ? EXIT_FAILED : selection_print(&out);
		bytes_done(&out);
		if (code == EXIT_DONE && (is_partial(&before) || is_partial(&after)))
			code = EXIT_FAILED;
	}
	heap_done(&before);
	heap_done(&after);
	return code;
}

/* ---- live ---- */

/* The collection stops the process for about 1 s a GiB: before a large one the user is asked. */
static bool may_stop(const struct heap_values *values, const struct target *target,
	const struct pollfd *watched)
{
	cleanup(bytes_done) struct bytes size = { 0 };
	char answer[16] = "";

	if (values->yes || target->resident_bytes <= ASK_BYTES)
		return true;
	text_add_size(&size, target->resident_bytes);
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
		char name[256];
		/* a cut end is fine */
		(void)text_make_safe(target->name, strlen(target->name), name, sizeof(name));
		fprintf(stderr,
			"%s (%u) uses %s: a full collection may stop it for seconds. Go on? [y/N] ",
			name, target->pid, bytes_z(&size));
		struct poll_set set = { 0 };
		poll_set_begin(&set, UINT64_MAX);
		(void)poll_set_add(&set, STDIN_FILENO, POLLIN);
		uint32_t signals = poll_set_add(&set, watched->fd, POLLIN);
		while (!set.ready)
			(void)poll_set_wait(&set);
		/* A signal is a no. */
		if (poll_set_revents(&set, signals) || !fgets(answer, sizeof(answer), stdin))
			answer[0] = '\0';
		poll_set_done(&set);
	} else {
		message_print(
			"%s (%u) uses %s: a full collection may stop it for seconds; --yes takes the snapshot all the same",
			target->name, target->pid, bytes_z(&size));
	}
	return answer[0] == 'y' || answer[0] == 'Y';
}

struct heap_progress {
	bool shown;
	bool terminal;
};

static void on_progress(void *context, uint32_t objects, uint64_t stream_bytes)
{
	struct heap_progress *progress = context;
	cleanup(bytes_done) struct bytes line = { 0 };

	if (!progress->terminal)
		return;
	bytes_printf(&line, "\r  %s%s\x1b[K", TEXT_THINGS(objects, "object  ", "objects  "),
		TEXT_SIZE(stream_bytes));
	fputs(bytes_z(&line), stderr);
	fflush(stderr);
	progress->shown = true;
}

static int name_file(const struct heap_values *values, const struct target *target, bool several,
	struct heap_run *heap, struct diag *diag)
{
	char stem[64];
	char stamp[OUTPUT_STAMP_ROOM];
	int n;

	target_file_stem(target->name, stem, sizeof(stem));
	output_file_stamp(stamp);
	if (values->output)
		n = snprintf(heap->path, sizeof(heap->path), "%s", values->output);
	else if (several)
		n = snprintf(heap->path, sizeof(heap->path), "%s_%u_%s.gcdump", stem, target->pid,
			stamp);
	else
		n = snprintf(heap->path, sizeof(heap->path), "%s_%s.gcdump", stem, stamp);
	if (n < 0 || (size_t)n >= sizeof(heap->path))
		return diag_set(diag, -ENAMETOOLONG, "the name of the file is too long");
	return 0;
}

/* "shop.gcdump" becomes "shop.incomplete.gcdump". A pipe or device keeps its name. */
static int mark_name(struct heap_run *heap, struct diag *diag)
{
	struct stat status;
	char suffix[] = GCDUMP_SUFFIX;
	size_t len = strlen(heap->path);
	size_t stem = len > strlen(suffix) && strcmp(heap->path + len - strlen(suffix), suffix) == 0
			      ? len - strlen(suffix)
			      : len;

	if (stat(heap->path, &status) == 0 && !S_ISREG(status.st_mode))
		return 0;
	if (len + strlen(INCOMPLETE_SUFFIX) >= sizeof(heap->path))
		return diag_set(diag, -ENAMETOOLONG, "the name of the file is too long");
	(void)snprintf(heap->path + stem, sizeof(heap->path) - stem, "%s%s", INCOMPLETE_SUFFIX,
		stem < len ? suffix : "");
	return 0;
}

static int save(struct heap_run *heap, const struct target *target, bool quiet, struct diag *diag)
{
	struct box box;
	struct output_file out;
	int result = is_partial(heap) ? mark_name(heap, diag) : 0;

	if (result == 0)
		result = output_file_open(&out, heap->path, diag);
	if (result < 0)
		return result;
	box_read(&box);
	const struct gcdump_info info = {
		.machine = box.host,
		.process_name = target->name,
		.missing = heap->report.missing,
		.tool = "spoor " SPOOR_VERSION,
		.pid = target->pid,
		.utc_ns = heap->report.utc_ns,
		.working_set_bytes = target->resident_bytes,
	};
	result = gcdump_write(&heap->graph, &info, out.fd, heap->path, diag);
	if (result == 0)
		result = output_file_keep(&out, diag);
	if (result == 0 && out.replaced && !quiet)
		message_print_replaced(heap->path);
	output_file_close(&out);
	heap->report.file = heap->path;
	return result;
}

static void tell_saved(const struct heap_run *heap)
{
	cleanup(bytes_done) struct bytes line = { 0 };

	text_add_safe_z(&line, heap->path);
	bytes_printf(&line, "  %s", TEXT_THINGS(heap->graph.object_count, "object", "objects"));
	if (is_partial(heap))
		bytes_text(&line, ", not the whole heap");
	message_print("%s", bytes_z(&line));
}

static int take(const struct heap_values *values, const struct target *target, bool several,
	struct guard *guard, struct pollfd *watched, const char *type_name)
{
	struct heap_run heap = { 0 };
	struct diag diag = { 0 };
	struct dotnet_target port;
	struct heap_snapshot_result snapshot = { .missing = "" };
	struct screen screen;
	struct heap_progress progress = { 0 };
	struct heap_snapshot_options options = {
		.target = &port,
		.guard = guard,
		.buffer_mb = (uint32_t)values->buffer_mb,
		.timeout_ns = values->timeout_ns,
		.watched = watched,
		.progress = on_progress,
		.context = &progress,
	};

	screen_look(stderr, COLOR_AUTO, &screen);
	progress.terminal = screen.terminal && !values->quiet;
	int result = dotnet_target_read(target->pid, &port, &diag);
	if (result == 0)
		result = name_file(values, target, several, &heap, &diag);
	if (result == 0)
		result = heap_graph_init(&heap.graph);
	heap.report.utc_ns = clock_utc_ns();
	if (result == 0)
		result = heap_snapshot_take(&options, &heap.graph, &snapshot, &diag);
	if (progress.shown)
		fputs("\r\x1b[K", stderr);
	if (result == 0 && heap_graph_resolve(&heap.graph) < 0)
		result = diag_set(&diag, -ENOMEM, "there is no memory for so large a heap: %m");
	if (result == 0) {
		text_add_safe_z(&heap.process, target->name);
		bytes_printf(&heap.process, " (%u)", target->pid);
		heap.report.process = bytes_z(&heap.process);
		heap.report.runtime = snapshot.runtime_version;
		heap.report.missing = snapshot.missing;
		heap.report.stream_bytes = snapshot.bytes;
		heap.report.took_ns = snapshot.took_ns;
		heap.report.pause_ns = snapshot.pause_ns;
	}
	int code = EXIT_DONE;
	if (result == 0 && !values->no_file) {
		result = save(&heap, target, values->quiet, &diag);
		if (result == 0 && !values->quiet)
			tell_saved(&heap);
	}
	if (result == 0)
		result = analyse(values, &heap, type_name, &diag);
	if (result < 0)
		code = message_fail(&diag);
	else
		code = print_heap(values, &heap, type_name);
	if (code == EXIT_DONE && *snapshot.missing) {
		code = EXIT_FAILED; /* reported, but not to be taken for the whole */
		/* Neither the runtime's sender nor we got the CPU while the buffer filled. */
		if (snapshot.lost && snapshot.buffer_mb <= BUFFER_MAX / HEAP_SNAPSHOT_RETRY_FACTOR)
			message_print(
				"the machine was too busy to read the heap while the collection "
				"ran; try again with --buffersize %u",
				snapshot.buffer_mb * HEAP_SNAPSHOT_RETRY_FACTOR);
	}
	heap_done(&heap);
	return code;
}

static int take_all(const struct heap_values *values, const struct verb *verb,
	const char *type_name)
{
	struct target_choice choice;
	struct targets targets = { 0 };
	struct guard *guard = NULL;
	struct run_control control = { .watched = { { .fd = -1 } } };
	struct diag diag = { 0 };
	int code = target_options_dotnet(&values->targets, verb, &choice);

	if (code != EXIT_DONE) {
		target_options_done(&choice);
		return code;
	}
	int result = target_options_choose_own(&choice.query, &targets, &diag);
	if (result == 0 && values->output && targets.list.count > 1)
		code = options_misused(verb, "-o names one file, and %u processes were chosen",
			targets.list.count);
	if (result == 0 && code == EXIT_DONE)
		/* stopped, it would hold up the process: Ctrl-Z ends it */
		result = run_control_start(&control, INTERRUPT_PAUSE, false, &diag);
	if (result == 0 && code == EXIT_DONE)
		result = guard_start(&guard, &diag);
	if (result < 0)
		code = message_fail(&diag);
	for (uint32_t i = 0; result == 0 && code != EXIT_MISUSED && i < targets.list.count; i++) {
		const struct target *target = &targets.list.items[i];
		int each = may_stop(values, target, &control.watched[0])
				   ? take(values, target, targets.list.count > 1, guard,
					     &control.watched[0], type_name)
				   : EXIT_FAILED;
		code = code ? code : each;
	}
	guard_free(guard);
	run_control_end(&control);
	targets_done(&targets);
	target_options_done(&choice);
	return code;
}

int cmd_heap(const struct verb *self, int argc, char **argv)
{
	struct heap_values values = { 0 };
	struct arguments args;
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	const char *const *words = args.words.items;
	uint32_t count = args.words.count;
	const char *what = count ? words[0] : "";
	bool live = target_options_given(&values.targets);

	if (args.command || values.buffer_mb > BUFFER_MAX)
		code = options_misused(self,
			args.command ? "no command can be started here"
				     : "--buffersize takes at most %u",
			BUFFER_MAX);
	else if (!count)
		code = take_all(&values, self, NULL);
	else if (strcmp(what, "report") == 0 && count == 2 && !live)
		code = report_file(&values, words[1], NULL);
	else if (strcmp(what, "roots") == 0 && count == 3 && !live)
		code = report_file(&values, words[1], words[2]);
	else if (strcmp(what, "roots") == 0 && count == 2 && live)
		code = take_all(&values, self, words[1]);
	else if (strcmp(what, "diff") == 0 && count == 3 && !live)
		code = compare_files(&values, words[1], words[2]);
	else
		code = options_misused(self,
			"it takes -p PID; or 'report FILE', 'roots FILE TYPE', 'roots -p PID TYPE', 'diff BEFORE AFTER'");
	options_done(self, &values, &args);
	return code;
}
