/* See copy_size.h. */
#include "recording/copy_size.h"

#define JUDGED_EACH 4u  /* one of so many large copies is walked twice */
#define ROUND       64u /* judged samples of a round */
#define MISSING_MAX 1u  /* of a round: small copies are taken, or kept */
#define WAIT_MAX    1024u

bool copy_size_judges(struct copy_size *size)
{
	return !size->small && !size->wait && size->seen++ % JUDGED_EACH == 0;
}

static void begin_round(struct copy_size *size)
{
	size->seen = size->judged = size->missing = 0;
}

bool copy_size_note(struct copy_size *size, bool missing)
{
	size->judged++;
	size->missing += missing;
	if (size->judged < ROUND)
		return false;
	bool enough = size->missing <= MISSING_MAX;
	bool before = size->small;

	begin_round(size);
	if (size->wait) {
		size->wait--;
		return false;
	}
	size->small = enough;
	if (!enough) {
		size->next_wait = size->next_wait ? 2 * size->next_wait : 4;
		size->next_wait = size->next_wait < WAIT_MAX ? size->next_wait : WAIT_MAX;
		size->wait = size->next_wait;
	}
	return size->small != before;
}
