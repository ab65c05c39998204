using System.Runtime.CompilerServices;

namespace Suite;

public sealed class CheckFailed(string message) : Exception(message);

/// <summary>Words the tests check with.</summary>
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

    /// <summary>Everything that can go goes, finalizers included.</summary>
    public static void CollectAll()
    {
        for (var i = 0; i < 3; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        GC.Collect();
    }

    /// <summary>Makes what <paramref name="make"/> makes deep in the stack, and wipes the stack after it, so that no old slot or register
    /// keeps it: a program may run with conservative roots.</summary>
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

    /// <summary>Most of <paramref name="references"/> are dead. Not all: a stale slot may hold one.</summary>
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

    /// <summary>Garbage of many sizes, so that what was freed is used again.</summary>
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

    /// <summary>Waits until something is so; finalizers and other threads take their time.</summary>
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
