// Workloads for other tests: known objects for a heap snapshot, load for events, binary trees for time measurements.
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Suite;

public sealed class KnownLeaf
{
    public long Number;
}

public sealed class KnownNode
{
    public KnownNode? Next;
    public KnownLeaf? Leaf;
    public KnownLeaf[]? Leaves;
    public string? Text;
}

public sealed class KnownKey;

public sealed class KnownValue;

public static class Loads
{
    /// <summary>Runs each on a thread, all at the same time. Returns the first exception, or null.</summary>
    public static Exception? RunAll(int count, Action<int> body)
    {
        Exception? failure = null;
        var threads = Enumerable.Range(0, count).Select(number => new Thread(() =>
        {
            try
            {
                body(number);
            }
            catch (Exception exception)
            {
                Interlocked.CompareExchange(ref failure, exception, null);
            }
        })).ToArray();
        foreach (var thread in threads)
            thread.Start();
        foreach (var thread in threads)
            thread.Join();
        return failure;
    }

    static KnownNode? held;
    static readonly ConditionalWeakTable<KnownKey, KnownValue> table = new();
    static readonly List<KnownKey> keys = new();
    static byte[]? large;
    static KnownLeaf[]? pinned;

    /// <summary>20,000 nodes in a list; 30,000 leaves (one each, and 10 in every twentieth node); 500 keys with 500 values that only a
    /// dependent handle keeps.</summary>
    public static int Hold(string file)
    {
        for (var i = 0; i < 20_000; i++)
        {
            held = new KnownNode { Next = held, Leaf = new KnownLeaf { Number = i } };
            if (i % 20 == 0)
            {
                held.Leaves = new KnownLeaf[10];
                for (var j = 0; j < 10; j++)
                    held.Leaves[j] = new KnownLeaf();
            }
        }
        for (var i = 0; i < 500; i++)
        {
            keys.Add(new KnownKey());
            table.Add(keys[i], new KnownValue());
        }
        large = new byte[1_000_000];
        pinned = new KnownLeaf[1];
        var handle = GCHandle.Alloc(large, GCHandleType.Pinned);
        Check.Litter(4_096);
        File.WriteAllText(file + ".new", $"{Environment.ProcessId}\n");
        File.Move(file + ".new", file, overwrite: true);
        while (File.Exists(file))
        {
            Thread.Sleep(20);
            Check.Litter(16);
        }
        handle.Free();
        GC.KeepAlive((held, keys, large, pinned));
        return 0;
    }

    sealed class Finalizable
    {
        public object? Link = new byte[100];
        ~Finalizable() => Link = null;
    }

    public static int Churn(TimeSpan time)
    {
        var until = Environment.TickCount64 + (long)time.TotalMilliseconds;
        var failure = RunAll(2, number =>
        {
            var random = new Random(number);
            var kept = new object?[2_000];
            while (Environment.TickCount64 < until)
            {
                for (var i = 0; i < 1_000; i++)
                {
                    kept[random.Next(kept.Length)] = random.Next(20) switch
                    {
                        0 => new byte[random.Next(100_000)],
                        1 => new Finalizable(),
                        2 => new object?[] { kept[random.Next(kept.Length)] is byte[] bytes ? bytes : null },
                        _ => new string('c', random.Next(100)),
                    };
                }
                var handle = GCHandle.Alloc(new byte[1_000], GCHandleType.Pinned);
                if (number == 0)
                    GC.Collect();
                handle.Free();
                Thread.Sleep(5);
            }
        });
        Console.WriteLine($"{GC.CollectionCount(0)} collections{failure}");
        return failure is null ? 0 : 1;
    }

    sealed class TreeNode
    {
        public TreeNode? Left, Right;

        public static TreeNode Make(int depth) =>
            depth == 0 ? new TreeNode() : new TreeNode { Left = Make(depth - 1), Right = Make(depth - 1) };

        public int Count() => Left is null ? 1 : 1 + Left.Count() + Right!.Count();
    }

    /// <summary>The binary trees of the language benchmarks: one tree that lives, and very many that die.</summary>
    public static int Trees(int most)
    {
        const int least = 4;
        Console.WriteLine($"stretch tree of depth {most + 1}: {TreeNode.Make(most + 1).Count()}");
        var stays = TreeNode.Make(most);
        for (var depth = least; depth <= most; depth += 4)
        {
            var count = 1 << (most - depth + least);
            long sum = 0;
            for (var i = 0; i < count; i++)
                sum += TreeNode.Make(depth).Count();
            Console.WriteLine($"{count} trees of depth {depth}: {sum}");
        }
        Console.WriteLine($"long-lived tree of depth {most}: {stays.Count()}");
        return 0;
    }
}
