// Out of memory and recovery, under a hard limit of 200 MB (0xC800000) or in a small address range.
using System.Runtime.CompilerServices;

namespace Suite;

public static class LimitTests
{
    static bool Fails(Action action)
    {
        try
        {
            action();
            return false;
        }
        catch (OutOfMemoryException)
        {
            return true;
        }
    }

    public static void One_array_that_is_too_large()
    {
        for (var i = 0; i < 10; i++)
            Check.That(Fails(() => _ = new byte[1_000_000_000]), "1 GB in 200 MB");
        Works();
    }

    public static void Many_large_arrays()
    {
        for (var round = 0; round < 3; round++)
        {
            var kept = new List<byte[]>(10_000);
            Check.That(Fails(() => Fill(kept, 1_000_000)), "10 GB in 1 MB pieces");
            Check.That(kept.Count > 20, $"{kept.Count} MB fit");
            Check.That(kept.All(bytes => bytes[999_999] == 1), "what was made is whole");
            kept.Clear();
            Works();
        }

        static void Fill(List<byte[]> kept, int size)
        {
            for (var i = 0; i < 10_000; i++)
            {
                var bytes = new byte[size];
                bytes[size - 1] = 1;
                kept.Add(bytes);
            }
        }
    }

    public static void Many_medium_arrays()
    {
        var kept = new List<byte[]>(1_000_000);
        Check.That(Fails(() => { for (var i = 0; i < 1_000_000; i++) kept.Add(new byte[20_000]); }), "20 GB in 20 KB pieces");
        Check.That(kept.Count > 1_000, $"{kept.Count * 20L / 1_000} MB fit");
        kept.Clear();
        Works();
    }

    sealed class Node(Node? next)
    {
        public readonly Node? Next = next;
        public long Number = 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Chain()
    {
        Node? head = null;
        var count = 0;
        try
        {
            for (; count < 100_000_000; count++)
                head = new Node(head);
        }
        catch (OutOfMemoryException)
        {
            // The object is intact, although no memory is left.
            var seen = 0L;
            for (var at = head; at is not null; at = at.Next)
                seen += at.Number;
            return seen == count ? count : -1;
        }
        return 0;
    }

    public static void Many_small_objects()
    {
        // The runtime's own collector of .NET 10 gives up after 27 of 200 MB on some machines.
        var least = Environment.GetEnvironmentVariable("DOTNET_GCName") is null ? 500_000 : 2_000_000;
        for (var round = 0; round < 2; round++)
        {
            var count = Chain();
            Check.That(count > least, $"out of memory after {count} objects");
            Works();
        }
    }

    public static void In_another_thread()
    {
        var failed = 0;
        var failure = Loads.RunAll(3, _ =>
        {
            var kept = new List<byte[]>();
            if (Fails(() => { for (var i = 0; i < 100_000; i++) kept.Add(new byte[100_000]); }))
                Interlocked.Increment(ref failed);
        });
        Check.That(failure is null, $"{failure}");
        Check.That(failed >= 1, "out of memory in a thread");
        Works();
    }

    public static void Garbage_is_no_reason()
    {
        for (var i = 0; i < 3_000; i++)
            _ = new byte[1_000_000];
        for (var i = 0; i < 100_000; i++)
            _ = new byte[10_000];
        for (var i = 0; i < 20; i++)
            _ = new byte[60_000_000];
        Works();
    }

    public static void The_limit_is_told()
    {
        GC.Collect();
        var total = GC.GetGCMemoryInfo().TotalAvailableMemoryBytes;
        if (GC.GetConfigurationVariables().TryGetValue("GCHeapHardLimit", out var limit) && Convert.ToInt64(limit) > 0)
            Check.Same(Convert.ToInt64(limit), total, "available memory");
    }

    static void Works()
    {
        Check.CollectAll();
        var kept = new List<string>();
        for (var i = 0; i < 100_000; i++)
            kept.Add(i.ToString());
        Check.That(kept.Select((text, i) => text == i.ToString()).All(same => same), "strings made afterwards");
        Check.That(new byte[20_000_000].Length == 20_000_000, "20 MB afterwards");
    }
}
