/* The C half of cpp.sh: the same values as both_main.cc fires. */
#include "both_events.h"

void both_fire_in_c(void)
{
	static const uint32_t items[] = { 3, 5, 8 };
	static const spoor_char16 name[] = { 't', 0xe9, 'a', 0 };
	const struct both_point point = { -4, "left of it", 4 };
	const struct both_point points[] = { { 1, "a", 1 }, { 2, "bcd", 2 } };
	const char *words[] = { "one", "two" };

	both_order(1, "anna", true);
	both_part("tea and more", 3, items, 3, items, sizeof(items), 1000000000, 2.5, -1);
	both_wide(name, &point, points, 2, words, 2);
	both_tick();
	both_plain(9);
}
