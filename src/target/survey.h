/*
 * Which .NET processes there are, and whether they would answer. Nothing is sent to them.
 */
#ifndef SPOOR_TARGET_SURVEY_H
#define SPOOR_TARGET_SURVEY_H

#include <stdint.h>

struct diag;

struct survey {
	uint32_t found;        /* processes with signs of .NET that this user may look into */
	uint32_t likely;       /* other processes that seem to be .NET from outside */
	uint32_t reachable;    /* of them: a socket that takes connections */
	uint32_t hidden;       /* processes that this user may not look into */
	uint32_t refused_pid;  /* the first that is not reachable; 0 none */
	char reason[256];      /* why it is not */
};

int survey_dotnet(struct survey *ret_survey, struct diag *diag);

#endif
