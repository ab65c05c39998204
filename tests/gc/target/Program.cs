// The program that the tests of gc/ run under a library. It uses every kind of allocation and checks its objects.
//
//   Target churn SECONDS [READY-FILE]   allocates small, large and pinned objects, handles of all kinds, on several threads; checks its live objects.
//                                   Also ends a second after READY-FILE was removed.
//   Target collect N                    N induced collections of each generation
//   Target wait READY-FILE              keeps a thousand nodes until that file is removed, for heap snapshots
//   Target crash                        FailFast with a heap, for createdump
//   Target allocate MEGABYTES           an allocation benchmark: many objects that die early, and a few that live
//   Target trees DEPTH                  binary trees: many that die, one that lives
//
// Prints "ok ..." and exits with 0, or prints the error and exits with 1.
using System.Diagnostics;
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

return args switch
{
    ["churn", var seconds, .. var rest] => Churn.Run(double.Parse(seconds), rest.FirstOrDefault()),
    ["collect", var count] => Collect(int.Parse(count)),
    ["wait", var ready] => Wait(ready),
    ["crash"] => Crash(),
    ["allocate", var megabytes] => Allocate(int.Parse(megabytes)),
    ["trees", var depth] => Tree.Run(int.Parse(depth)),
    _ => Misused(),
};

static int Misused()
{
    Console.Error.WriteLine("Target churn SECONDS [READY-FILE] | collect N | wait READY-FILE | crash | allocate MEGABYTES | trees DEPTH");
    return 2;
}

static int Collect(int count)
{
    for (var i = 0; i < count; i++)
    {
        for (var generation = 0; generation <= 2; generation++)
            GC.Collect(generation, GCCollectionMode.Forced, blocking: true);
        GC.WaitForPendingFinalizers();
    }
    Console.WriteLine($"ok {GC.CollectionCount(0)} {GC.CollectionCount(1)} {GC.CollectionCount(2)}");
    return 0;
}

static int Wait(string ready)
{
    var held = new List<object>();
    for (var i = 0; i < 1000; i++)
        held.Add(new Node { Number = i, Text = "node " + i });
    File.WriteAllText(ready + ".part", Environment.ProcessId.ToString());
    File.Move(ready + ".part", ready, true);
    while (File.Exists(ready))
        Thread.Sleep(50);
    GC.KeepAlive(held);
    return 0;
}

static int Crash()
{
    var held = new byte[1000][];
    for (var i = 0; i < held.Length; i++)
        held[i] = new byte[1000];
    GC.Collect();
    Environment.FailFast("on purpose");
    GC.KeepAlive(held);
    return 1;
}

static int Allocate(int megabytes)
{
    var kept = new Node[4096];
    long allocated = 0, goal = (long)megabytes << 20;
    var i = 0;
    while (allocated < goal)
    {
        var node = new Node { Number = i, Text = "" };
        var array = new byte[(i & 63) * 8];
        node.Data = array;
        if ((i & 255) == 0)
            kept[(i >> 8) & 4095] = node;
        allocated += 48 + 24 + array.Length;
        i++;
    }
    GC.KeepAlive(kept);
    Console.WriteLine($"ok {i} nodes, {GC.CollectionCount(0)} collections");
    return 0;
}

class Node
{
    public int Number;
    public string? Text;
    public object? Data;
    public Node? Next;
}

class Tree
{
    Tree? left, right;

    static Tree Grow(int depth) => depth == 0 ? new Tree() : new Tree { left = Grow(depth - 1), right = Grow(depth - 1) };

    int Count() => left is null ? 1 : 1 + left.Count() + right!.Count();

    public static int Run(int depth)
    {
        var lives = Grow(depth);
        long nodes = 0;
        for (var d = 4; d <= depth; d += 4)
        {
            for (var i = 0; i < 1 << (depth - d + 4); i++)
                nodes += Grow(d).Count();
        }
        if (lives.Count() != (1 << (depth + 1)) - 1)
            return 1;
        Console.WriteLine($"ok {nodes} nodes, {GC.CollectionCount(0)} collections");
        return 0;
    }
}

class Finalizable
{
    public static int Count;
    public byte[] Data = new byte[100];

    ~Finalizable() => Interlocked.Increment(ref Count);
}

static class Churn
{
    static volatile bool stop;
    static int wrong;

    public static int Run(double seconds, string? ready)
    {
        var clock = Stopwatch.StartNew();
        var threads = new List<Thread>();
        foreach (var work in new Action<int>[] { Small, Large, Handles, Weak, Small })
        {
            var seed = threads.Count;
            var thread = new Thread(() => work(seed)) { IsBackground = true };
            thread.Start();
            threads.Add(thread);
        }
        if (ready is not null)
        {
            File.WriteAllText(ready + ".part", Environment.ProcessId.ToString());
            File.Move(ready + ".part", ready, true);
        }
        var left = 10;
        while (clock.Elapsed.TotalSeconds < seconds && left > 0)
        {
            Thread.Sleep(100);
            GC.Collect(1, GCCollectionMode.Forced, blocking: true);
            if (ready is not null && !File.Exists(ready))
                left--;
        }
        stop = true;
        foreach (var thread in threads)
            thread.Join();
        GC.Collect();
        GC.WaitForPendingFinalizers();
        if (Finalizable.Count == 0)
            Wrong("no finalizer ran");
        if (wrong != 0)
            return 1;
        Console.WriteLine($"ok {GC.CollectionCount(0)} {GC.CollectionCount(1)} {GC.CollectionCount(2)}");
        return 0;
    }

    static void Wrong(string what)
    {
        Interlocked.Increment(ref wrong);
        Console.WriteLine("wrong: " + what);
    }

    // A list that grows and is dropped. It is intact at each check.
    static void Small(int seed)
    {
        while (!stop)
        {
            Node? head = null;
            for (var i = 0; i < 5000; i++)
                head = new Node { Number = i ^ seed, Text = (i & 127) == 0 ? i.ToString() : null, Next = head };
            var at = 5000;
            for (var node = head; node is not null; node = node.Next)
            {
                at--;
                if (node.Number != (at ^ seed) || ((at & 127) == 0 && node.Text != at.ToString()))
                    Wrong($"list at {at}: {node.Number} '{node.Text}'");
            }
            if (at != 0)
                Wrong($"list ends at {at}");
        }
    }

    static void Large(int seed)
    {
        var kept = new byte[8][];
        for (var i = 0; !stop; i++)
        {
            var array = new byte[100_000 + (i % 7) * 1000];
            array[^1] = (byte)i;
            kept[i & 7] = array;
            var pinned = GC.AllocateArray<byte>(200, pinned: true);
            pinned[0] = 1;
            if (i >= 7 && kept[(i - 3) & 7][^1] != (byte)(i - 3))
                Wrong("a large array lost its last byte");
            Thread.Sleep(1);
        }
    }

    static void Handles(int seed)
    {
        while (!stop)
        {
            var handles = new List<GCHandle>();
            for (var i = 0; i < 200; i++)
            {
                handles.Add(GCHandle.Alloc(new byte[32], GCHandleType.Pinned));
                handles.Add(GCHandle.Alloc(new Node { Number = i }));
                handles.Add(GCHandle.Alloc(new Node { Number = i }, GCHandleType.Weak));
            }
            var address = handles[0].AddrOfPinnedObject();
            Thread.Sleep(2);
            if (handles[0].AddrOfPinnedObject() != address)
                Wrong("a pinned object moved");
            for (var i = 0; i < 200; i++)
            {
                if (((Node)handles[3 * i + 1].Target!).Number != i)
                    Wrong("a strong handle holds another object");
            }
            foreach (var handle in handles)
                handle.Free();
        }
    }

    static void Weak(int seed)
    {
        var table = new ConditionalWeakTable<object, object>();
        while (!stop)
        {
            var keys = new List<object>();
            for (var i = 0; i < 100; i++)
            {
                var key = new Node { Number = i };
                table.Add(key, new Node { Number = -i });
                keys.Add(key);
                _ = new Finalizable();
                new WeakReference(key).Target = null;
            }
            Thread.Sleep(1);
            for (var i = 0; i < 100; i++)
            {
                if (!table.TryGetValue(keys[i], out var value) || ((Node)value).Number != -i)
                    Wrong("a dependent handle lost its value");
            }
        }
    }
}
