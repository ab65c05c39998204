/* See loss_words.h. */
#include "trace/loss_words.h"

#include <string.h>

static const char *const sources[LOSS_SOURCES] = {
	[LOSS_SOURCE_OTHER] = "",
#define LOSS_SOURCE(source, word) [source] = (word),
#include "trace/losses.def"
};

static const char *const units[LOSS_UNITS] = {
	[LOSS_UNIT_OTHER] = "",
#define LOSS_UNIT(unit, word) [unit] = (word),
#include "trace/losses.def"
};

static unsigned find(const char *const *words, unsigned count, const char *word)
{
	for (unsigned i = 1; i < count; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return 0;
}

const char *loss_source_word(enum loss_source source)
{
	return sources[source];
}

const char *loss_unit_word(enum loss_unit unit)
{
	return units[unit];
}

enum loss_source loss_source_of(const char *word)
{
	return (enum loss_source)find(sources, LOSS_SOURCES, word);
}

enum loss_unit loss_unit_of(const char *word)
{
	return (enum loss_unit)find(units, LOSS_UNITS, word);
}
