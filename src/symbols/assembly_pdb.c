/* See assembly_pdb.h. */
#include "symbols/assembly_pdb.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "code/r2r.h"
#include "image/embedded_pdb.h"
#include "image/image_file.h"
#include "image/pe.h"
#include "machine/target_root.h"
#include "symbolize/symbol_cache.h"
#include "trace/trace.h"

/* Where a path is tried. */
enum pdb_place { PLACE_HERE, PLACE_TARGET, PLACE_COUNT };

void assembly_pdb_key(const uint8_t id[16], char ret_key[PDB_KEY_ROOM])
{
	ret_key[text_put_hex(ret_key, id, 16)] = '\0';
}

struct assembly_places assembly_places_of(const struct trace *trace, uint32_t process,
	const struct symbol_cache *cache)
{
	const struct process *own = &trace->processes.items[process];
	char host[HOST_NAME_MAX + 1] = "";

	/* A recording of another machine has pids of other processes. */
	(void)gethostname(host, sizeof(host) - 1); /* then it is no name of a recording */
	bool here = *host && strcmp(host, trace_text(trace, trace->recording.host)) == 0;
	return (struct assembly_places){ .cache = cache,
		.pid = here && !own->ended ? own->pid : 0 };
}

static int open_at(const struct assembly_places *places, enum pdb_place place, const char *path,
	uint64_t size_max)
{
	uint64_t size;
	int fd;

	if (place == PLACE_TARGET && !places->pid)
		return -1;
	return target_file_open(place == PLACE_TARGET ? places->pid : 0, path, size_max, &fd, &size,
		       NULL) < 0
		       ? -1
		       : fd;
}

/* Takes ownership of the data. */
static bool take_pdb(struct assembly_pdb *found, uint8_t *data, size_t size, const uint8_t *id)
{
	if (portable_pdb_read(&found->pdb, data, size) == 0 && memcmp(found->pdb.id, id, 16) == 0) {
		found->data = data;
		return true;
	}
	free(data);
	return false;
}

/* Closes fd. */
static bool take_file(struct assembly_pdb *found, int opened, const uint8_t *id)
{
	cleanup(closep) int fd = opened;
	struct image_file file;
	uint8_t *data;

	return fd >= 0 && image_file_from_fd(&file, fd, NULL) == 0 &&
	       file.size_bytes <= PORTABLE_PDB_MAX &&
	       image_file_load(&file, 0, file.size_bytes, PORTABLE_PDB_MAX, &data) == 0 &&
	       take_pdb(found, data, (size_t)file.size_bytes, id);
}

static bool take_embedded(struct assembly_pdb *found, int opened, const uint8_t *id)
{
	cleanup(closep) int fd = opened;
	struct image_file file;
	struct pe pe;
	uint8_t *data;
	size_t size;

	if (fd < 0 || image_file_from_fd(&file, fd, NULL) < 0)
		return false;
	bool taken = pe_read(&pe, &file, NULL) == 0 &&
		     embedded_pdb_load(&pe, &file, PORTABLE_PDB_MAX, &data, &size) == 0 &&
		     take_pdb(found, data, size, id);
	pe_done(&pe);
	return taken;
}

static bool take_cached(struct assembly_pdb *found, const struct symbol_cache *cache,
	const uint8_t *id)
{
	char key[PDB_KEY_ROOM];
	int fd;

	assembly_pdb_key(id, key);
	return cache && symbol_cache_find(cache, key, &fd) == 0 && take_file(found, fd, id);
}

/* "/app/Shop.dll": "/app/Shop.pdb", or inside the assembly. */
bool assembly_pdb_find(struct assembly_pdb *found, const struct assembly_places *places,
	const char *assembly, const uint8_t id[16])
{
	static const uint8_t unknown[16];
	cleanup(bytes_done) struct bytes path = { 0 };
	const char *dot = strrchr(assembly, '.');
	bool taken = false;

	*found = (struct assembly_pdb){ 0 };
	if (*assembly != '/' || memcmp(id, unknown, sizeof(unknown)) == 0)
		return false;
	bytes_add(&path, assembly,
		dot && !strchr(dot, '/') ? (size_t)(dot - assembly) : strlen(assembly));
	bytes_text(&path, ".pdb");
	for (enum pdb_place place = PLACE_HERE; !taken && place < PLACE_COUNT; place++)
		taken = take_file(found, open_at(places, place, bytes_z(&path), PORTABLE_PDB_MAX),
				id) ||
			take_embedded(found, open_at(places, place, assembly, R2R_FILE_MAX), id);
	return taken || take_cached(found, places->cache, id);
}

int assembly_open(const struct assembly_places *places, const char *assembly, const uint8_t id[16])
{
	for (enum pdb_place place = PLACE_HERE; *assembly == '/' && place < PLACE_COUNT; place++) {
		cleanup(closep) int fd = open_at(places, place, assembly, R2R_FILE_MAX);
		struct image_file file;
		struct pe pe;
		if (fd < 0 || image_file_from_fd(&file, fd, NULL) < 0)
			continue;
		bool is_it = pe_read(&pe, &file, NULL) == 0 && pe.has_pdb &&
			     memcmp(pe.pdb_guid, id, 16) == 0;
		pe_done(&pe);
		if (is_it)
			return TAKE_FD(fd);
	}
	return -1;
}

void assembly_pdb_done(struct assembly_pdb *found)
{
	free(found->data);
	*found = (struct assembly_pdb){ 0 };
}
