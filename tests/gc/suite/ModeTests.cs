// The GC class: modes, counters, regions without collections, and the information that it returns.
using System.Runtime;
using System.Runtime.CompilerServices;

namespace Suite;

public static class ModeTests
{
    public static void Collect_in_every_mode()
    {
        var kept = Enumerable.Range(0, 1_000).Select(i => i.ToString()).ToArray();
        foreach (var mode in new[] { GCCollectionMode.Default, GCCollectionMode.Forced, GCCollectionMode.Optimized, GCCollectionMode.Aggressive })
        {
            for (var generation = 0; generation <= GC.MaxGeneration; generation++)
            {
                foreach (var blocking in new[] { true, false })
                {
                    // Aggressive is for the oldest generation, blocking and compacting; anything else is an ArgumentException.
                    if (mode == GCCollectionMode.Aggressive && (generation != GC.MaxGeneration || !blocking))
                        continue;
                    var before = GC.CollectionCount(generation);
                    GC.Collect(generation, mode, blocking, mode == GCCollectionMode.Aggressive);
                    if (blocking && mode is GCCollectionMode.Forced or GCCollectionMode.Aggressive)
                        Check.That(GC.CollectionCount(generation) > before, $"generation {generation}, {mode}: a collection that is forced");
                    Check.Litter(64);
                }
            }
        }
        Check.That(kept.Select((text, i) => text == i.ToString()).All(same => same), "strings");
        Check.Same(2, GC.MaxGeneration, "oldest generation");
    }

    public static void Collections_are_counted()
    {
        var before = (GC.CollectionCount(0), GC.CollectionCount(2));
        for (var i = 0; i < 5; i++)
            GC.Collect();
        Check.That(GC.CollectionCount(0) >= before.Item1 + 5 && GC.CollectionCount(2) >= before.Item2 + 5, "five collections more");
        Check.That(GC.CollectionCount(0) >= GC.CollectionCount(1) && GC.CollectionCount(1) >= GC.CollectionCount(2), "the young are collected no less often");
    }

    public static void Allocation_alone_collects()
    {
        var before = GC.CollectionCount(0);
        var made = 0L;
        // The budget may be as large as the last level cache, or a multiple of what is live.
        while (GC.CollectionCount(0) < before + 2 && made < 8L << 30)
        {
            for (var i = 0; i < 1_000; i++)
                _ = Make();
            made += 1_000 * 1_024;
        }
        Check.That(GC.CollectionCount(0) >= before + 2, $"no collection in {made >> 20} MB");

        [MethodImpl(MethodImplOptions.NoInlining)]
        static object Make() => new byte[1_000];
    }

    public static void Memory_in_use()
    {
        Check.CollectAll();
        var empty = GC.GetTotalMemory(true);
        var kept = new byte[200][];
        for (var i = 0; i < kept.Length; i++)
            kept[i] = new byte[100_000];
        var full = GC.GetTotalMemory(true);
        Check.That(full - empty > 19_000_000 && full - empty < 40_000_000, $"20 MB more in use: {full - empty}");
        Check.Deep(() => Array.Clear(kept));
        Check.CollectAll();
        var after = GC.GetTotalMemory(true);
        Check.That(after - empty < 4_000_000, $"and given back: {after - empty}");
    }

    public static void Allocated_bytes()
    {
        var before = GC.GetAllocatedBytesForCurrentThread();
        for (var i = 0; i < 10_000; i++)
            _ = Make(1);
        var small = GC.GetAllocatedBytesForCurrentThread() - before;
        // 16 bytes of header and length, 1 of content: 32 each with the header word. Sometimes the runtime allocates an object here.
        Check.That(small >= 10_000 * 32L && small < 10_000 * 34L, $"bytes of small arrays: {small}");
        before = GC.GetAllocatedBytesForCurrentThread();
        for (var i = 0; i < 10; i++)
            _ = Make(1_000_000);
        var large = GC.GetAllocatedBytesForCurrentThread() - before;
        Check.That(large >= 10_000_000 && large < 10_001_000, $"bytes of large arrays: {large}");
        before = GC.GetAllocatedBytesForCurrentThread();
        for (var i = 0; i < 10; i++)
            _ = Make(20_000);
        var medium = GC.GetAllocatedBytesForCurrentThread() - before;
        Check.That(medium >= 200_000 && medium < 201_000, $"bytes of medium arrays: {medium}");
        var total = GC.GetTotalAllocatedBytes(true);
        for (var i = 0; i < 1_000; i++)
            _ = Make(1_000);
        var more = GC.GetTotalAllocatedBytes(true) - total;
        Check.That(more >= 1_000_000, $"bytes of all threads: {more}");

        [MethodImpl(MethodImplOptions.NoInlining)]
        static object Make(int size) => new byte[size];
    }

    public static void Memory_pressure()
    {
        GC.AddMemoryPressure(200_000_000);
        Check.Litter(2_048);
        GC.RemoveMemoryPressure(200_000_000);
        GC.Collect();
    }

    public static void What_the_collector_tells()
    {
        GC.Collect();
        foreach (var kind in new[] { GCKind.Any, GCKind.FullBlocking })
        {
            var info = GC.GetGCMemoryInfo(kind);
            Check.That(info.Index > 0, $"{kind}: an index");
            Check.That(info.HeapSizeBytes > 0 && info.HeapSizeBytes < 8L << 30, $"{kind}: heap of {info.HeapSizeBytes}");
            Check.That(info.TotalAvailableMemoryBytes > 16 << 20, $"{kind}: memory of {info.TotalAvailableMemoryBytes}");
            Check.That(info.HighMemoryLoadThresholdBytes > 0 && info.HighMemoryLoadThresholdBytes <= info.TotalAvailableMemoryBytes, $"{kind}: threshold");
            Check.That(info.MemoryLoadBytes > 0, $"{kind}: load");
            Check.That(info.FragmentedBytes >= 0 && info.FragmentedBytes <= info.HeapSizeBytes, $"{kind}: fragmentation {info.FragmentedBytes} of {info.HeapSizeBytes}");
            Check.That(info.TotalCommittedBytes > 0 && info.PromotedBytes > 0, $"{kind}: committed and promoted");
            Check.That(info.Generation is >= 0 and <= 2, $"{kind}: generation");
            Check.That(info.PauseTimePercentage is >= 0 and <= 100, $"{kind}: pauses of {info.PauseTimePercentage} %");
            Check.That(info.GenerationInfo.Length == 5, $"{kind}: generations");
            Check.That(info.PauseDurations[0] > TimeSpan.Zero && info.PauseDurations[0] < TimeSpan.FromSeconds(60), $"{kind}: pause");
        }
        Check.That(GC.GetTotalPauseDuration() > TimeSpan.Zero, "all pauses");
        Check.That(GC.GetConfigurationVariables().Count > 0, "configuration");
    }

    public static void Pinned_objects_are_counted()
    {
        var handles = Enumerable.Range(0, 50).Select(i => System.Runtime.InteropServices.GCHandle.Alloc(new byte[i + 1], System.Runtime.InteropServices.GCHandleType.Pinned)).ToList();
        GC.Collect();
        var info = GC.GetGCMemoryInfo(GCKind.FullBlocking);
        foreach (var handle in handles)
            handle.Free();
        // .NET's collector with several heaps does not count all: 39 and 48 of 50 have occurred.
        var least = GCSettings.IsServerGC ? 1 : 50;
        Check.That(info.PinnedObjectsCount >= least, $"{info.PinnedObjectsCount} pinned objects");
    }

    public static void No_collection_region()
    {
        Check.CollectAll();
        Check.That(GC.TryStartNoGCRegion(4_000_000), "the region starts");
        Check.Same(GCLatencyMode.NoGCRegion, GCSettings.LatencyMode, "latency mode");
        var before = GC.CollectionCount(0);
        for (var i = 0; i < 3_000; i++)
            _ = new byte[1_000];
        Check.Same(before, GC.CollectionCount(0), "collections in the region");
        GC.EndNoGCRegion();
        Check.That(GCSettings.LatencyMode != GCLatencyMode.NoGCRegion, "latency mode afterwards");
        try
        {
            GC.EndNoGCRegion();
            throw new CheckFailed("a region ended twice");
        }
        catch (InvalidOperationException)
        {
        }
        Check.That(GC.TryStartNoGCRegion(4_000_000), "a second region starts");
        GC.Collect();
        try
        {
            GC.EndNoGCRegion();
            throw new CheckFailed("a region survived GC.Collect");
        }
        catch (InvalidOperationException)
        {
        }
    }

    public static void Latency_modes()
    {
        var before = GCSettings.LatencyMode;
        GCSettings.LatencyMode = GCLatencyMode.Batch;
        Check.Litter();
        GCSettings.LatencyMode = before;
        GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
        Check.Same(GCLargeObjectHeapCompactionMode.CompactOnce, GCSettings.LargeObjectHeapCompactionMode, "compaction mode");
        GC.Collect();
        GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.Default;
    }

    public static void Generations()
    {
        object young = new byte[10], large = new byte[100_000];
        Check.That(GC.GetGeneration(young) is >= 0 and <= 2, "generation");
        Check.Same(2, GC.GetGeneration(large), "a large object's generation");
        GC.Collect();
        GC.Collect();
        Check.That(GC.GetGeneration(young) is >= 0 and <= 2, "generation afterwards");
        var weak = new WeakReference(young);
        Check.That(GC.GetGeneration(weak) is >= 0 and <= 2, "generation of a weak reference's target");
        GC.KeepAlive(young);
        GC.KeepAlive(large);
    }

    public static void Full_collection_notifications()
    {
        try
        {
            GC.RegisterForFullGCNotification(10, 10);
            GC.CancelFullGCNotification();
        }
        catch (InvalidOperationException)
        {
            // Not available with concurrent collections, nor in this mode: the exception is a valid result.
        }
    }

    public static void The_memory_limit_is_read_again()
    {
        GC.RefreshMemoryLimit();
        Check.Litter();
    }

    public static void Gen2_callbacks_keep_coming()
    {
        // The pattern of ArrayPool's trimming: an object that registers itself again at each collection.
        var calls = 0;
        Check.Deep(() => _ = new Callback(() => Interlocked.Increment(ref calls) < 5));
        for (var i = 0; i < 12; i++)
            Check.CollectAll();
        Check.Eventually(() => Volatile.Read(ref calls) == 5, $"five calls: {calls}");
    }

    sealed class Callback(Func<bool> call)
    {
        ~Callback()
        {
            if (call())
                GC.ReRegisterForFinalize(this);
        }
    }

    public static void Pooled_arrays()
    {
        for (var round = 0; round < 200; round++)
        {
            var rented = Enumerable.Range(0, 20).Select(i => System.Buffers.ArrayPool<byte>.Shared.Rent(1_000 << (i % 8))).ToArray();
            foreach (var bytes in rented)
                bytes.AsSpan().Fill((byte)round);
            Check.That(rented.All(bytes => bytes[^1] == (byte)round), "rented");
            foreach (var bytes in rented)
                System.Buffers.ArrayPool<byte>.Shared.Return(bytes);
            if (round % 40 == 0)
                GC.Collect();
        }
    }
}
