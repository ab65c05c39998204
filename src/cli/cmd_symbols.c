/* spoor symbols: the symbol files that a recording lacks, and the cache of those that were found. */
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/selection.h"
#include "cli/symbols_fetch.h"
#include "cli/symbols_recording.h"
#include "machine/rights.h"
#include "symbolize/symbol_cache.h"
#include "symbols/symbol_apply.h"
#include "symbols/symbols_list.h"

#define DAY_S              (24 * 3600)
#define IMPORT_DEPTH_MAX   16
#define IMPORT_ENTRIES_MAX 1000000u

#define OPTIONS_VERB symbols
#define OPTIONS_LIST "cli/symbols_options.def"
#include "cli/option_list.h"

static int print_bytes(struct bytes *out)
{
	int code = EXIT_FAILED;

	if (out->failed) {
		struct diag diag = { 0 };
		diag_set(&diag, -ENOMEM, "cannot print the result: %m");
		(void)message_fail(&diag);
	} else {
		code = selection_print(out);
	}
	bytes_done(out);
	return code;
}

/* ---- list ---- */

static void say_missing(const struct symbols_recording *r)
{
	uint64_t left = r->missing.missing_frames - r->found.frames;
	cleanup(bytes_done) struct bytes text = { 0 };

	bytes_printf(&text, "%s of %s no symbols", TEXT_COUNT(left),
		TEXT_THINGS(r->missing.frames, "frame has", "frames have"));
	message_print("%s", bytes_z(&text));
}

static int list(const struct symbols_values *values, const char *path)
{
	struct symbols_recording r;
	struct bytes out = { 0 };
	int code = symbols_recording_open(&r, path, false);

	if (code == EXIT_DONE) {
		if (values->json)
			symbols_list_json(&r.missing, &r.found, path, &out);
		else
			symbols_list_text(&r.missing, &r.found, &out);
		code = print_bytes(&out);
		if (!values->quiet && !values->json)
			say_missing(&r);
	}
	symbols_recording_close(&r);
	return code;
}

/* ---- apply ---- */

static void say_applied(const struct symbols_recording *r, const char *path)
{
	struct bytes text = { 0 };

	text_add_safe_z(&text, path);
	bytes_text(&text, ": names for ");
	text_add_things(&text, r->found.frames, "frame", "frames");
	bytes_text(&text, " in ");
	text_add_things(&text, r->found.names.count, "function", "functions");
	if (r->lines.asked) {
		bytes_text(&text, ", lines for ");
		text_add_things(&text, r->lines.answered, "address", "addresses");
	}
	message_print("%s", bytes_z(&text));
	bytes_done(&text);
}

static int apply(const struct symbols_values *values, const char *path)
{
	struct symbols_recording r;
	struct diag diag = { 0 };
	int code = symbols_recording_open(&r, path, false);

	/* with an output, a complete recording is copied */
	bool copies = values->output && !r.missing.images.count;
	if (code == EXIT_DONE && values->lines)
		code = symbols_recording_find_lines(&r);
	if (code == EXIT_DONE && !r.found.names.count && !copies && !r.lines.answered) {
		if (values->lines)
			message_print("no debug file and no PDB here gives lines of '%s'", path);
		else if (r.missing.images.count)
			message_print(
				"no symbol file here names a function of '%s': 'spoor symbols list' shows those it needs",
				path);
		else
			message_print("'%s' has names for all of its native frames", path);
		code = r.missing.images.count ? EXIT_FAILED : EXIT_DONE;
	} else if (code == EXIT_DONE) {
		code = symbol_apply(path, values->output, &r.found, values->lines ? &r.lines : NULL,
			       &r.trace, &diag) < 0
			       ? message_fail(&diag)
			       : EXIT_DONE;
		if (code == EXIT_DONE && !values->quiet)
			say_applied(&r, values->output ? values->output : path);
	}
	symbols_recording_close(&r);
	return code;
}

static int fetch(const struct symbols_values *values, const struct verb *self, const char *path)
{
	const struct symbols_fetch_values how = {
		.servers = &values->servers,
		.size_max = values->max_size,
		.timeout_ns = values->timeout_ns,
		.urls_only = values->urls,
		.lines = values->lines,
		.quiet = values->quiet,
	};
	struct symbols_recording r;
	int code = symbols_recording_open(&r, path, !values->urls);

	if (code == EXIT_DONE)
		code = symbols_fetch_run(&how, self, &r);
	symbols_recording_close(&r);
	return code == EXIT_DONE && values->apply ? apply(values, path) : code;
}

/* ---- import ---- */

struct import {
	struct symbol_cache cache;
	uint32_t added;
};

/* `found`: the file was found in a folder, so it may be no symbol file. */
static int import_file(struct import *import, const char *path, bool found, struct diag *diag)
{
	char build_id[BUILD_ID_TEXT_SIZE];
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return found ? 0 : diag_set(diag, -errno, "cannot open '%s': %m", path);
	int result = symbol_cache_check(fd, NULL, build_id, found ? NULL : diag);
	if (result == 0)
		result = symbol_cache_add(&import->cache, fd, NULL, build_id, diag);
	else if (found)
		return 0;
	if (result < 0)
		diag_context(diag, "cannot import '%s'", path);
	import->added += result == 0;
	return result;
}

static int import_folder(struct import *import, const char *path, struct diag *diag)
{
	char *const roots[] = { (char *)path, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	uint32_t seen = 0;
	int result = 0;

	if (!walk)
		return diag_set(diag, -errno, "cannot read '%s': %m", path);
	for (FTSENT *entry; result == 0 && (entry = fts_read(walk));) {
		if (++seen > IMPORT_ENTRIES_MAX)
			result = diag_set(diag, -E2BIG, "'%s' has more than %u files", path,
				IMPORT_ENTRIES_MAX);
		else if (entry->fts_info == FTS_D && entry->fts_level > IMPORT_DEPTH_MAX)
			(void)fts_set(walk, entry, FTS_SKIP);
		else if (entry->fts_info == FTS_F)
			result = import_file(import, entry->fts_path, true, diag);
	}
	(void)fts_close(walk); /* read only */
	return result;
}

static int import_all(const struct symbols_values *values, const char *const *paths, uint32_t count)
{
	struct import import = { 0 };
	struct diag diag = { 0 };
	int result = symbol_cache_open(&import.cache, true, &diag);

	for (uint32_t i = 0; i < count && result == 0; i++) {
		struct stat st;
		result = stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode)
				 ? import_folder(&import, paths[i], &diag)
				 : import_file(&import, paths[i], false, &diag);
	}
	if (result == 0 && !values->quiet)
		message_print("%u symbol file%s imported into %s", import.added,
			import.added == 1 ? "" : "s", import.cache.path);
	symbol_cache_close(&import.cache);
	if (result < 0)
		return message_fail(&diag);
	return import.added ? EXIT_DONE : EXIT_FAILED;
}

/* ---- cache ---- */

static bool is_to_go(const struct symbols_values *values, const struct symbol_cache_list *list,
	const struct symbol_cache_entry *entry, int64_t now_s)
{
	return values->clean || (values->max_size && list->size_bytes > values->max_size) ||
	       (values->unused_days &&
		       now_s - entry->used_s >= (int64_t)values->unused_days * DAY_S);
}

/* The list begins with the file that was not used for longest. */
static int clean_up(const struct symbols_values *values, const struct symbol_cache *cache,
	struct symbol_cache_list *list, int64_t now_s, struct diag *diag)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->entries.count; i++) {
		const struct symbol_cache_entry entry = list->entries.items[i];
		if (!is_to_go(values, list, &entry, now_s)) {
			list->entries.items[kept++] = entry;
			continue;
		}
		int result = symbol_cache_remove(cache, entry.build_id);
		if (result < 0 && result != -ENOENT)
			return diag_set(diag, result, "cannot remove %s from the symbol cache: %m",
				entry.build_id);
		list->size_bytes -= entry.size_bytes;
	}
	list->entries.count = kept;
	return 0;
}

static int show_cache(const struct symbols_values *values)
{
	struct symbol_cache_list files = { 0 };
	struct symbol_cache cache;
	struct bytes out = { 0 };
	struct diag diag = { 0 };
	int64_t now_s = time(NULL);
	int code = EXIT_DONE;
	int result = symbol_cache_open(&cache, true, &diag);

	if (result == 0)
		result = symbol_cache_read(&cache, &files, &diag);
	if (result == 0)
		result = clean_up(values, &cache, &files, now_s, &diag);
	if (result < 0) {
		code = message_fail(&diag);
	} else {
		if (values->json)
			symbol_cache_json(&files, cache.path, now_s, &out);
		else
			symbol_cache_text(&files, cache.path, now_s, &out);
		code = print_bytes(&out);
	}
	vec_done(&files.entries);
	symbol_cache_close(&cache);
	return code;
}

static int run(const struct symbols_values *values, const struct verb *self,
	const struct arguments *args)
{
	const char *const *words = args->words.items;
	uint32_t count = args->words.count;
	const char *what = count ? words[0] : "";
	bool fetches = strcmp(what, "fetch") == 0;
	bool cleans = values->clean || values->unused_days || (values->max_size && !fetches);

	if (args->command)
		return options_misused(self, "no command can be started here");
	if (strcmp(what, "cache") == 0 && count == 1)
		return show_cache(values);
	if (cleans)
		return options_misused(self,
			"--clean, --unused-days and --max-size go with 'cache'");
	if (values->output && strcmp(values->output, "-") == 0)
		return options_misused(self,
			"-o takes a file: a recording with names is not written to standard output");
	if (fetches && count == 2)
		return fetch(values, self, words[1]);
	if (values->servers.list.count || values->urls || values->apply || values->timeout_ns)
		return options_misused(self,
			"--server, --urls, --apply and --timeout go with 'fetch'");
	if (values->lines && strcmp(what, "apply") != 0)
		return options_misused(self, "--lines goes with 'apply' and 'fetch'");
	if (strcmp(what, "apply") == 0 && count == 2)
		return apply(values, words[1]);
	if (values->output)
		return options_misused(self, "-o goes with 'apply'");
	if (strcmp(what, "list") == 0 && count == 2)
		return list(values, words[1]);
	if (strcmp(what, "import") == 0 && count > 1)
		return import_all(values, words + 1, count - 1);
	return options_misused(self,
		"it takes 'list FILE', 'fetch FILE', 'apply FILE', 'import PATH...' or 'cache'");
}

int cmd_symbols(const struct verb *self, int argc, char **argv)
{
	struct symbols_values values = { 0 };
	struct arguments args;
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	/*
	 * Any user may have written the recording and the symbol files. KILL: as in selection_open().
	 * SYS_PTRACE opens the root of a process, for files of its container.
	 */
	(void)rights_reduce(rights_are_borrowed()
				    ? 0
				    : RIGHTS_OF_FILES | RIGHT_KILL | RIGHT_SYS_PTRACE);
	code = run(&values, self, &args);
	options_done(self, &values, &args);
	return code;
}
