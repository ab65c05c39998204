/*
 * Runs a fuzz target over the files of a folder, without a fuzzing engine: each file as a whole,
 * and cut at up to 64 offsets. So a corpus is a regression test in every build. An empty folder is
 * a failure, because such a test proves nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_SIZE_MAX (8u << 20)
#define CUTS          64u

/*
 * A copy of the exact size on the heap, so that a sanitizer detects the first byte read beyond it.
 */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	memcpy(exact, data, size);
	(void)LLVMFuzzerTestOneInput(exact, size); /* always 0 by contract */
	free(exact);
}

static int run_file(const char *path)
{
	static uint8_t buffer[FILE_SIZE_MAX];
	FILE *file = fopen(path, "rb");

	if (!file) {
		fprintf(stderr, "cannot open '%s': %s\n", path, strerror(errno));
		return -1;
	}
	size_t size = fread(buffer, 1, sizeof(buffer), file);
	fclose(file);
	run(buffer, size);
	for (size_t i = 0; i < CUTS; i++)
		run(buffer, size * i / CUTS);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		if (!folder) {
			fprintf(stderr, "cannot open '%s': %s\n", argv[i], strerror(errno));
			return 1;
		}
		for (struct dirent *entry; (entry = readdir(folder));) {
			char path[4096];
			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			if (run_file(path) < 0)
				return 1;
			count++;
		}
		closedir(folder);
	}
	printf("%u files replayed, each whole and cut at %u places\n", count, CUTS);
	return count ? 0 : 1;
}
