/* spoor symbols fetch: downloads the symbol files that a recording lacks. */
#ifndef SPOOR_CLI_SYMBOLS_FETCH_H
#define SPOOR_CLI_SYMBOLS_FETCH_H

#include <stdbool.h>
#include <stdint.h>

struct symbols_recording;
struct texts;
struct verb;

struct symbols_fetch_values {
	const struct texts *servers; /* none: of the environment, the settings, the default */
	uint64_t size_max;           /* of a file; 0: default */
	uint64_t timeout_ns;         /* of a download; 0: default */
	bool urls_only;              /* prints the addresses and downloads nothing */
	bool lines;                  /* portable PDBs too */
	bool quiet;
};

/*
 * Puts what it can get into the recording's cache; the recording's `found` is as before. EXIT_DONE:
 * at least one file was fetched, or none is needed. What failed is printed for each image.
 */
int symbols_fetch_run(const struct symbols_fetch_values *values, const struct verb *verb,
	const struct symbols_recording *recording);

#endif
