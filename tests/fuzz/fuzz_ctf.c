/* A CTF trace: u16 size of the metadata, the metadata, and the file of one stream. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/diag.h"
#include "formats/ctf_read.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/fuzz_ctf.XXXXXX";

static void clean_up(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/metadata", folder);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/stream", folder);
	(void)unlink(path);
	(void)rmdir(folder);
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_made;
	struct trace trace;
	struct source *source;
	struct event event;
	struct diag diag = { 0 };

	if (size < 2)
		return 0;
	size_t metadata = (size_t)(data[0] | data[1] << 8);
	if (metadata > size - 2)
		metadata = size - 2;
	if (!is_made) {
		if (!mkdtemp(folder))
			abort();
		(void)atexit(clean_up);
		is_made = true;
	}
	write_file("metadata", data + 2, metadata);
	write_file("stream", data + 2 + metadata, size - 2 - metadata);
	if (trace_init(&trace) < 0)
		return 0;
	if (ctf_source_open(folder, &trace, &source, &diag) == 0) {
		while (ctf_source.next(source, &event, &diag) > 0)
			;
		ctf_source.close(source);
	}
	trace_done(&trace);
	return 0;
}
