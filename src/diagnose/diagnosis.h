/*
 * Prints a diagnosis: for each process a verdict and its findings, worst first. The members of the
 * JSON object are documented in spoor-diagnose(1); they are only added to.
 */
#ifndef SPOOR_DIAGNOSE_DIAGNOSIS_H
#define SPOOR_DIAGNOSE_DIAGNOSIS_H

#include <stdbool.h>
#include <stdint.h>

struct bytes;
struct facts;
struct findings;

struct diagnosis {
	const struct facts *facts;
	const struct findings *findings;
	const char *file; /* of the recording, for the commands that show more */
};

/* Lines are wrapped to `columns`. */
void diagnosis_text(const struct diagnosis *diagnosis, unsigned columns, struct bytes *out);

void diagnosis_json(const struct diagnosis *diagnosis, struct bytes *out);

#endif
