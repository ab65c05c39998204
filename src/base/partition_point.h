/*
 * The one binary search. In a sorted table the items for which a condition holds come first, and
 * partition_point() is the number of these: the index of the first item for which it does not hold.
 *
 *   uint32_t after = partition_point(count, i, items[i].begin <= address);
 *   const struct item *item = after ? &items[after - 1] : NULL;      the last one that begins at or before it
 */
#ifndef SPOOR_BASE_PARTITION_POINT_H
#define SPOOR_BASE_PARTITION_POINT_H

/*
 * `count`, of 32 or 64 bits, is evaluated once. `index` names the variable of the condition and has the
 * type of `count`.
 */
#define partition_point(count, index, holds) partition_point_from(0, count, index, holds)

/* The same from the item `first` on; the condition must hold for all items before it. */
#define partition_point_from(first, count, index, holds)                           \
	({                                                                         \
		__typeof__((count) + 0) high_ = (count);                           \
		__typeof__((count) + 0) low_ = (first);                            \
		while (low_ < high_) {                                             \
			__typeof__((count) + 0) index = low_ + (high_ - low_) / 2; \
			if (holds)                                                 \
				low_ = index + 1;                                  \
			else                                                       \
				high_ = index;                                     \
		}                                                                  \
		low_;                                                              \
	})

#endif
