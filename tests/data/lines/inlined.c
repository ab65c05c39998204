/*
 * Source of tests/fuzz/corpus/source_lines/: two inlined calls, one inside the other.
 * gcc|clang -gdwarf-N [-gdwarf64] [-gz=zlib] -O2 -shared -nostdlib -fPIC -Wl,-z,noseparate-code
 *   -fdebug-prefix-map=$PWD=/src; gcczstd: objcopy --compress-debug-sections=zstd.
 */
static inline __attribute__((always_inline)) int inner(int x)
{
	return x * x + 7;
}

static inline __attribute__((always_inline)) int outer(int x)
{
	return inner(x) + inner(x + 3);
}

int both(int a)
{
	int sum = 0;

	for (int i = 0; i < a; i++)
		sum = (sum ^ outer(i)) * 31;
	return sum;
}
