/* See symbols_fetch.h. */
#include "cli/symbols_fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "cli/symbols_recording.h"
#include "cli/verb.h"
#include "machine/target_root.h"
#include "symbols/assembly_pdb.h"
#include "symbols/http_download.h"
#include "symbols/symbol_fetch.h"
#include "symbols/symbol_servers.h"

#define SIZE_MAX_DEFAULT   (UINT64_C(2) << 30)
#define TIMEOUT_DEFAULT_NS (UINT64_C(600) * 1000000000u)
#define DEFAULT_SERVERS    "microsoft debuginfod"

struct fetching {
	const struct symbols_fetch_values *values;
	const struct symbols_recording *recording;
	struct symbol_servers servers;
	struct symbol_fetch fetch;
	const char *image; /* for the progress line */
	bool terminal;
	bool progress_shown;
	uint32_t fetched;
	uint32_t not_asked; /* images, as no server answers */
	VEC(uint32_t)
	pdbs; /* indexes in trace.lines.bodies: one body of each assembly that lacks its PDB */
	struct map taken; /* image -> 1: its file was in the root of a process */
};

static int choose_servers(struct fetching *f, struct diag *diag)
{
	const struct texts *chosen = f->values->servers;
	int result = 0;

	for (uint32_t i = 0; i < chosen->list.count && result == 0; i++)
		result = symbol_servers_add(&f->servers, chosen->list.items[i], diag);
	if (chosen->list.count)
		return result;
	result = symbol_servers_read_settings(&f->servers, diag);
	if (result == 0)
		result = symbol_servers_add(&f->servers, DEFAULT_SERVERS, diag);
	if (result < 0 || f->servers.list.count)
		return result < 0 ? result : 0;
	diag_set(diag, -EDESTADDRREQ,
		"no symbol server is set: SPOOR_SYMBOLS or the configuration file names none");
	diag_remedy(diag, "name one with --server");
	return -EDESTADDRREQ;
}

static const char *image_name(const struct fetching *f, const struct missing_image *image)
{
	const char *path = trace_text(&f->recording->trace, image->path);
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether a file may be found for the image that is not here yet. */
static bool is_wanted(const struct fetching *f, uint32_t image)
{
	const char *build_id = trace_text(&f->recording->trace,
		f->recording->missing.images.items[image].build_id);
	uint8_t state = f->recording->found.states.items[image];

	return (state == SYMBOLS_ABSENT || state == SYMBOLS_WRONG) && build_id_is_valid(build_id) &&
	       !map_get(&f->taken, image + UINT64_C(1));
}

/* ---- PDBs ---- */

/* "Shop.pdb" of "/app/Shop.dll". */
static void add_pdb_name(const struct fetching *f, const struct line_body *body, struct bytes *out)
{
	const char *path = trace_text(&f->recording->trace, body->assembly);
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	bytes_add(out, name, dot ? (size_t)(dot - name) : strlen(name));
	bytes_text(out, ".pdb");
}

static int find_pdbs(struct fetching *f)
{
	static const uint8_t unknown[16];
	const struct trace *trace = &f->recording->trace;
	const struct assembly_places places = { .cache = &f->recording->cache };
	struct map seen = { 0 };
	bool done = true;

	for (uint32_t i = 0; i < trace->lines.bodies.count && done; i++) {
		const struct line_body *body = &trace->lines.bodies.items[i];
		struct assembly_pdb pdb;
		uint64_t key = hash_bytes(body->pdb_id, sizeof(body->pdb_id)) ^ body->assembly;
		if (memcmp(body->pdb_id, unknown, sizeof(unknown)) == 0 || map_get(&seen, key))
			continue;
		done = map_add(&seen, key, 1);
		if (!assembly_pdb_find(&pdb, &places, trace_text(trace, body->assembly),
			    body->pdb_id))
			done = done && vec_add(&f->pdbs, i);
		assembly_pdb_done(&pdb);
	}
	map_done(&seen);
	return done ? 0 : -ENOMEM;
}

static void add_pdb_urls(const struct fetching *f, struct bytes *out)
{
	cleanup(bytes_done) struct bytes url = { 0 };
	cleanup(bytes_done) struct bytes name = { 0 };
	char key[PDB_KEY_ROOM];

	vec_each(index, &f->pdbs) {
		const struct line_body *body = &f->recording->trace.lines.bodies.items[*index];
		bytes_reset(&name);
		add_pdb_name(f, body, &name);
		assembly_pdb_key(body->pdb_id, key);
		for (uint32_t s = 0; s < f->servers.list.count; s++)
			for (uint32_t u = 0; symbol_server_url(&f->servers.list.items[s],
				     bytes_z(&name), key, u, &url);
				u++) {
				text_add_url(out, bytes_z(&url), url.len);
				bytes_text(out, "\n");
			}
	}
}

/* ---- the roots of processes ---- */

/* A debug store in the root of a process with this image, as in a container. True: the file is in the cache now. */
static bool take_from_root(const struct fetching *f, const struct process *process,
	const char *build_id)
{
	struct target_root root = { .fd = -1 };
	char path[sizeof("/usr/lib/debug/.build-id//.debug") + BUILD_ID_TEXT_SIZE];
	char found[BUILD_ID_TEXT_SIZE];
	cleanup(closep) int fd = -1;
	uint64_t size;

	if (target_root_open(&root, process->pid, NULL) < 0)
		return false;
	text_set(path, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
	bool taken = !target_root_is_ours(&root) &&
		     target_root_open_file(&root, path, f->fetch.size_max, &fd, &size, NULL) == 0 &&
		     symbol_cache_add(f->fetch.cache, fd, build_id, found, NULL) == 0;
	target_root_close(&root);
	return taken;
}

static void take_from_roots(struct fetching *f, uint32_t image)
{
	const struct trace *trace = &f->recording->trace;
	uint32_t build_id = f->recording->missing.images.items[image].build_id;

	for (uint32_t i = 1; i < trace->mappings.count; i++) {
		const struct mapping *mapping = &trace->mappings.items[i];
		const struct assembly_places places =
			assembly_places_of(trace, mapping->process, NULL);
		if (mapping->build_id != build_id || !places.pid ||
			!take_from_root(f, &trace->processes.items[mapping->process],
				trace_text(trace, build_id)))
			continue;
		if (!f->values->quiet)
			message_print("%s: from the file system of process %u", f->image,
				places.pid);
		f->fetched++;
		(void)map_add(&f->taken, image + UINT64_C(1),
			1); /* without memory it is downloaded too */
		return;
	}
}

static int print_urls(const struct fetching *f)
{
	const struct missing_symbols *missing = &f->recording->missing;
	struct bytes out = { 0 };
	struct bytes url = { 0 };

	for (uint32_t i = 0; i < missing->images.count; i++) {
		const struct missing_image *image = &missing->images.items[i];
		for (uint32_t s = 0; is_wanted(f, i) && s < f->servers.list.count; s++)
			for (uint32_t u = 0;
				symbol_server_url(&f->servers.list.items[s], image_name(f, image),
					trace_text(&f->recording->trace, image->build_id), u, &url);
				u++) {
				text_add_url(&out, bytes_z(&url), url.len);
				bytes_text(&out, "\n");
			}
	}
	add_pdb_urls(f, &out);
	int code = selection_print(&out);
	if (code == EXIT_DONE && out.len && !f->values->quiet)
		message_print(
			"download those that exist, whatever their names become, and run 'spoor symbols import FILE...' here");
	bytes_done(&out);
	bytes_done(&url);
	return code;
}

/* Whether a server is not asked any more. */
static bool has_given_up(const struct fetching *f)
{
	for (uint32_t i = 0; i < f->servers.list.count; i++)
		if (f->servers.list.items[i].failures >= SYMBOL_SERVER_FAILURES_MAX)
			return true;
	return false;
}

static void on_progress(void *context, uint64_t done, uint64_t total)
{
	struct fetching *f = context;
	struct bytes line = { 0 };

	if (!f->terminal)
		return;
	bytes_text(&line, "\r\x1b[K");
	text_add_safe_z(&line, f->image);
	bytes_text(&line, ": ");
	text_add_size(&line, done);
	if (total) {
		bytes_text(&line, " of ");
		text_add_size(&line, total);
	}
	fputs(bytes_z(&line), stderr);
	f->progress_shown = true;
	bytes_done(&line);
}

static void say_result(struct fetching *f, int result, const struct bytes *url, uint64_t size_bytes,
	const struct diag *diag)
{
	struct bytes line = { 0 };

	if (f->progress_shown)
		fputs("\r\x1b[K", stderr);
	f->progress_shown = false;
	if (result == 0 && f->values->quiet)
		return;
	bytes_printf(&line, "%s: ", f->image);
	if (result == 0) {
		text_add_size(&line, size_bytes);
		bytes_text(&line, " from ");
		text_add_url(&line, (const char *)url->data, url->len);
	} else if (result == -ENOENT) {
		bytes_text(&line, has_given_up(f) ? "no server that answers has its symbols"
						  : "no server has its symbols");
	} else {
		bytes_text(&line, diag->text);
	}
	message_print("%s", bytes_z(&line));
	bytes_done(&line);
}

static void fetch_file(struct fetching *f, const char *name, const char *build_id)
{
	struct bytes url = { 0 };
	struct diag diag = { 0 };
	uint64_t size_bytes = 0;

	f->image = name;
	int result = symbol_fetch(&f->fetch, name, build_id, &url, &size_bytes, &diag);

	f->fetched += result == 0;
	f->not_asked += result == -EHOSTDOWN;
	if (result != -EHOSTDOWN)
		say_result(f, result, &url, size_bytes, &diag);
	bytes_done(&url);
}

static void fetch_pdb(struct fetching *f, const struct line_body *body)
{
	cleanup(bytes_done) struct bytes name = { 0 };
	char key[PDB_KEY_ROOM];

	add_pdb_name(f, body, &name);
	assembly_pdb_key(body->pdb_id, key);
	fetch_file(f, bytes_z(&name), key);
}

static bool wants_any(const struct fetching *f)
{
	for (uint32_t i = 0; i < f->recording->missing.images.count; i++)
		if (is_wanted(f, i))
			return true;
	return f->pdbs.count;
}

static int download_all(struct fetching *f, struct diag *diag)
{
	const struct missing_symbols *missing = &f->recording->missing;
	int result = http_client_open(&f->fetch.client, diag);
	struct screen screen;

	if (result < 0)
		return result;
	screen_look(stderr, COLOR_AUTO, &screen);
	f->terminal = screen.terminal && !f->values->quiet;
	for (uint32_t i = 0; i < missing->images.count; i++)
		if (is_wanted(f, i))
			fetch_file(f, image_name(f, &missing->images.items[i]),
				trace_text(&f->recording->trace,
					missing->images.items[i].build_id));
	vec_each(index, &f->pdbs)
		fetch_pdb(f, &f->recording->trace.lines.bodies.items[*index]);
	http_client_close(f->fetch.client);
	if (f->not_asked)
		message_print("%s not asked for: no server answers",
			TEXT_THINGS(f->not_asked, "more image was", "more images were"));
	return 0;
}

static int fetch_images(struct fetching *f, struct diag *diag)
{
	for (uint32_t i = 0; i < f->recording->missing.images.count; i++) {
		f->image = image_name(f, &f->recording->missing.images.items[i]);
		if (is_wanted(f, i))
			take_from_roots(f, i);
	}
	return wants_any(f) ? download_all(f, diag) : 0;
}

int symbols_fetch_run(const struct symbols_fetch_values *values, const struct verb *verb,
	const struct symbols_recording *recording)
{
	struct fetching f = { .values = values, .recording = recording };
	struct diag diag = { 0 };
	int code = EXIT_DONE;
	int result = choose_servers(&f, &diag);

	f.fetch = (struct symbol_fetch){
		.cache = &recording->cache,
		.servers = &f.servers,
		.size_max = values->size_max ? values->size_max : SIZE_MAX_DEFAULT,
		.timeout_ns = values->timeout_ns ? values->timeout_ns : TIMEOUT_DEFAULT_NS,
		.progress = on_progress,
		.context = &f,
	};
	if (result == 0 && values->lines)
		result = find_pdbs(&f);
	if (result == -ENOMEM)
		diag_set(&diag, result, "cannot find the PDBs: %m");
	if (result == -EINVAL) {
		code = options_misused(verb, "%s", diag.text);
	} else if (result < 0) {
		code = message_fail(&diag);
	} else if (values->urls_only) {
		code = print_urls(&f);
	} else if (!wants_any(&f)) {
		if (!values->quiet)
			message_print("all symbol files that can be named are here");
	} else {
		result = fetch_images(&f, &diag);
		code = result < 0 ? message_fail(&diag) : f.fetched ? EXIT_DONE : EXIT_FAILED;
	}
	symbol_servers_done(&f.servers);
	vec_done(&f.pdbs);
	map_done(&f.taken);
	return code;
}
