// Managed shares MS: two callers of one small method, with known shares of the time.
//
// OuterA spends 60,000 rounds of Work in Mid, OuterB 20,000: 75 % and 25 %. All but Run are compiled once, optimized. Mid makes
// one call and has no loop, so that the compiler gives it no frame pointer.

using System.Diagnostics;
using System.Runtime.CompilerServices;

static class Shares
{
    const MethodImplOptions Final = MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization;

    [MethodImpl(Final)]
    static long Work(int n)
    {
        long x = 1;
        for (int i = 0; i < n; i++)
            x = x * 31 + i;
        return x;
    }

    [MethodImpl(Final)]
    static long Mid(int n) => Work(n) + 1;

    [MethodImpl(Final)]
    static long OuterA()
    {
        long x = 0;
        for (int i = 0; i < 3; i++)
            x += Mid(20_000);
        return x;
    }

    [MethodImpl(Final)]
    static long OuterB() => Mid(10_000) + Mid(10_000);

    [MethodImpl(Final)]
    static long Round() => OuterA() + OuterB();

    // Replaced while it runs (on-stack replacement).
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Run(int ms)
    {
        long x = 0;
        for (Stopwatch watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < ms;)
            x += Round();
        Console.WriteLine(x);
    }
}
