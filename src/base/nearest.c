/* See nearest.h. */
#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"

#define FAR          UINT32_MAX
#define DISTANCE_MAX 4u /* beyond this distance long names match that are not similar */

/* Converts to lower case and drops * and ?; false: it does not fit. */
static bool fold(char *out, const char *text, size_t len)
{
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c == '*' || c == '?')
			continue;
		if (used + 1 >= NEAREST_NAME_MAX)
			return false;
		out[used++] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
	}
	out[used] = '\0';
	return true;
}

/* Of "Shop.Pricing.Burn(int)" this is "Burn". */
static void find_last_part(const char *name, size_t *ret_begin, size_t *ret_end)
{
	size_t end = strcspn(name, "(");
	size_t begin = end;

	while (begin && !strchr("./:!-", name[begin - 1]))
		begin--;
	*ret_begin = begin;
	*ret_end = end;
}

/* The same letters in another order. */
static bool has_same_letters(const char *a, const char *b)
{
	int count[256] = { 0 };

	for (; *a; a++)
		count[(unsigned char)*a]++;
	for (; *b; b++)
		count[(unsigned char)*b]--;
	for (size_t i = 0; i < 256; i++)
		if (count[i])
			return false;
	return true;
}

/* How many letters may differ. Of four, two would be half of the name; a swap counts as two. */
static unsigned most_distance(const char *wanted, const char *name)
{
	size_t len = strlen(name);
	size_t most = len <= 4 && !has_same_letters(wanted, name) ? 1 : (len + 2) / 3;

	return most < DISTANCE_MAX ? (unsigned)most : DISTANCE_MAX;
}

/* A name that contains the typed one is nearer than a misspelling. 0: equal except for case. */
static unsigned measure(const char *wanted, const char *name, bool whole)
{
	size_t wanted_len = strlen(wanted);
	size_t len = strlen(name);

	if (strcmp(wanted, name) == 0)
		return 0;
	if (wanted_len >= 3 && strstr(name, wanted))
		return 1;
	if (whole && len >= 3 && strstr(wanted, name))
		return 2;
	unsigned distance = text_distance(wanted, name);

	return distance <= most_distance(wanted, name) && distance < wanted_len ? 2 + distance
										: FAR;
}

void nearest_offer(struct nearest *near, const char *name)
{
	char wanted[NEAREST_NAME_MAX];
	char folded[NEAREST_NAME_MAX];
	size_t begin;
	size_t end;
	size_t len = strlen(name);

	if (!len || len >= NEAREST_NAME_MAX || !fold(wanted, near->wanted, strlen(near->wanted)) ||
		!*wanted || !fold(folded, name, len))
		return;
	unsigned distance = measure(wanted, folded, true);

	find_last_part(name, &begin, &end);
	if (begin < end && (begin || name[end])) {
		if (!fold(folded, name + begin, end - begin))
			return;
		unsigned of_part = measure(wanted, folded, false);
		distance = of_part < distance ? of_part : distance;
	}
	for (uint32_t i = 0; i < near->count; i++)
		if (strcmp(near->found[i].name, name) == 0)
			return;
	uint32_t at = near->count;

	while (at && near->found[at - 1].distance > distance)
		at--;
	if (distance == FAR || at == NEAREST_MAX)
		return;
	if (near->count < NEAREST_MAX)
		near->count++;
	memmove(&near->found[at + 1], &near->found[at],
		(near->count - 1 - at) * sizeof(near->found[0]));
	memcpy(near->found[at].name, name, len + 1);
	near->found[at].distance = distance;
}

bool nearest_add(const struct nearest *near, struct bytes *out)
{
	for (uint32_t i = 0; i < near->count; i++) {
		bytes_text(out, !i ? "'" : i + 1 == near->count ? " or '" : ", '");
		text_add_safe_z(out, near->found[i].name);
		bytes_text(out, "'");
	}
	return near->count != 0;
}
