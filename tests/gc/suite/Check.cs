using System.Runtime.CompilerServices;

namespace Suite;

public sealed class CheckFailed(string message) : Exception(message);

/// <summary>The checks that the tests use.</summary>
public static class Check
{
    public static void That(bool condition, string message)
    {
        if (!condition)
            throw new CheckFailed(message);
    }

    public static void Same<T>(T expected, T actual, string what)
    {
        if (!EqualityComparer<T>.Default.Equals(expected, actual))
            throw new CheckFailed($"{what}: {actual}, not {expected}");
    }

    /// <summary>Collects all garbage, and runs all finalizers.</summary>
    public static void CollectAll()
    {
        for (var i = 0; i < 3; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        GC.Collect();
    }

    /// <summary>Calls <paramref name="make"/> deep in the stack and overwrites the stack afterwards, so that no old slot or register
    /// keeps its object alive: a program may run with conservative roots.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Deep(Action make, int depth = 30)
    {
        Dive(make, depth);
        Wipe();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Dive(Action make, int depth)
    {
        if (depth == 0)
            make();
        else
            Dive(make, depth - 1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Wipe()
    {
        Span<byte> space = stackalloc byte[32 * 1024];
        space.Fill(0);
        GC.KeepAlive(space.Length == 0 ? "" : null);
    }

    /// <summary>Most of <paramref name="references"/> are dead. A stale slot may keep one alive.</summary>
    public static void MostDead(IReadOnlyCollection<WeakReference> references, string what)
    {
        var alive = references.Count(reference => reference.IsAlive);
        That(alive <= references.Count / 10, $"{what}: {alive} of {references.Count} still live");
    }

    public static void AllAlive(IReadOnlyCollection<WeakReference> references, string what)
    {
        var dead = references.Count(reference => !reference.IsAlive);
        That(dead == 0, $"{what}: {dead} of {references.Count} are gone");
    }

    /// <summary>Allocates garbage of many sizes, so that freed memory is used again.</summary>
    public static void Litter(int kilobytes = 512)
    {
        var random = new Random(kilobytes);
        for (long made = 0; made < kilobytes * 1024L;)
        {
            var size = random.Next(1, 400);
            var bytes = new byte[size];
            bytes.AsSpan().Fill(0xEE);
            made += size + 24;
        }
    }

    /// <summary>Waits until a condition is true, because finalizers and other threads run later.</summary>
    public static void Eventually(Func<bool> condition, string message, int seconds = 20)
    {
        var until = Environment.TickCount64 + seconds * 1000;
        while (!condition())
        {
            That(Environment.TickCount64 < until, message);
            Thread.Sleep(1);
        }
    }
}
