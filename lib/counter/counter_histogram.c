/*
 * Histograms in bounded memory. The bucket of a value is determined by its exponent and the first
 * five bits of its mantissa, so a quantile is accurate to 1/64 of its value, whatever the number of
 * values. Bucket counts only grow. Each reader stores the last counts and takes the difference, so
 * readers need no synchronization with recording threads or with other readers.
 */
#include "lib/counter/counter_registry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double counter_quantiles[COUNTER_QUANTILES] = { 0.5, 0.95, 0.99 };

static uint64_t histogram_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double histogram_value(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* sign, 11 bits of exponent (+ 1023), 52 of mantissa */
static unsigned histogram_bucket(double value)
{
	uint64_t bits = histogram_bits(value);
	int exponent = (int)(bits >> 52 & 0x7ff) - 1023;

	if (!(value > 0) || exponent < HISTOGRAM_EXPONENT_MIN)
		return 0;
	if (exponent > HISTOGRAM_EXPONENT_MAX)
		return HISTOGRAM_BUCKETS - 1;
	return 1 + (unsigned)(exponent - HISTOGRAM_EXPONENT_MIN) * HISTOGRAM_PARTS +
	       (unsigned)(bits >> 47 & (HISTOGRAM_PARTS - 1));
}

/* Square root by Newton's method: the library would need libm for this one use only. */
static double histogram_root(double square)
{
	/* half the exponent */
	double root = histogram_value((histogram_bits(square) >> 1) + (UINT64_C(1023) << 51));

	if (!(square > 0) || square > 1e300)
		return square > 0 ? square : 0;
	for (int i = 0; i < 6; i++)
		root = 0.5 * (root + square / root);
	return root;
}

/* The middle of a bucket, within the range of all values. */
static double histogram_middle(unsigned bucket, double least, double greatest)
{
	double value;

	if (bucket == 0) {
		value = least < 0 ? least : 0;
	} else if (bucket == HISTOGRAM_BUCKETS - 1) {
		value = greatest;
	} else {
		unsigned n = bucket - 1;
		uint64_t exponent =
			(uint64_t)((int)(n / HISTOGRAM_PARTS) + HISTOGRAM_EXPONENT_MIN + 1023);
		value = histogram_value(exponent << 52 | (uint64_t)(n % HISTOGRAM_PARTS) << 47 |
					UINT64_C(1) << 46);
	}
	return value < least ? least : value > greatest ? greatest : value;
}

struct counter_histogram *counter_histogram_new(void)
{
	struct counter_histogram *h = aligned_alloc(64, (sizeof(*h) + 63) & ~(size_t)63);

	if (!h)
		return NULL;
	memset(h, 0, sizeof(*h));
	h->least = histogram_bits(INFINITY);
	h->greatest = histogram_bits(-INFINITY);
	return h;
}

void counter_histogram_record(struct counter_histogram *h, unsigned stripe, double value)
{
	uint64_t *sum = &h->stripe[stripe].sum;
	uint64_t seen, next;

	if (isnan(value))
		return;
	seen = __atomic_load_n(&h->least, __ATOMIC_RELAXED);
	while (value < histogram_value(seen) &&
		!__atomic_compare_exchange_n(&h->least, &seen, histogram_bits(value), true,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	seen = __atomic_load_n(&h->greatest, __ATOMIC_RELAXED);
	while (value > histogram_value(seen) &&
		!__atomic_compare_exchange_n(&h->greatest, &seen, histogram_bits(value), true,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	seen = __atomic_load_n(sum, __ATOMIC_RELAXED);
	do
		next = histogram_bits(histogram_value(seen) + value);
	while (!__atomic_compare_exchange_n(sum, &seen, next, true, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED));
	/*
	 * The last store, with release: a reader that sees the value in its bucket also sees a
	 * range that contains it.
	 */
	(void)__atomic_fetch_add(&h->bucket[histogram_bucket(value)], 1, __ATOMIC_RELEASE);
}

void counter_histogram_read(const struct counter_histogram *h, uint32_t *last, double *last_sum,
	struct counter_reading *ret_reading)
{
	uint32_t fresh[HISTOGRAM_BUCKETS];
	unsigned first = HISTOGRAM_BUCKETS, end = 0;
	uint64_t count = 0, below = 0;
	double sum = 0, square = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint32_t now = __atomic_load_n(&h->bucket[i], __ATOMIC_ACQUIRE);
		fresh[i] = now - last[i]; /* modulo 2^32, like the counts */
		last[i] = now;
		if (!fresh[i])
			continue;
		count += fresh[i];
		first = i < first ? i : first;
		end = i + 1;
	}
	for (unsigned i = 0; i < SPOOR_COUNTER_STRIPES; i++)
		sum += histogram_value(__atomic_load_n(&h->stripe[i].sum, __ATOMIC_RELAXED));
	ret_reading->count = count;
	ret_reading->sum = sum - *last_sum;
	*last_sum = sum;
	if (!count)
		return;

	double least = histogram_value(__atomic_load_n(&h->least, __ATOMIC_RELAXED));
	double greatest = histogram_value(__atomic_load_n(&h->greatest, __ATOMIC_RELAXED));
	unsigned quantile = 0;
	ret_reading->mean = ret_reading->sum / (double)count;
	ret_reading->least = histogram_middle(first, least, greatest);
	ret_reading->greatest = histogram_middle(end - 1, least, greatest);
	for (unsigned i = first; i < end; i++) {
		if (!fresh[i])
			continue;
		double value = histogram_middle(i, least, greatest);
		square += (value - ret_reading->mean) * (value - ret_reading->mean) * fresh[i];
		below += fresh[i];
		while (quantile < COUNTER_QUANTILES &&
			(double)below >= counter_quantiles[quantile] * (double)count)
			ret_reading->quantile[quantile++] = value;
	}
	ret_reading->deviation = histogram_root(square / (double)count);
}
