// Handles of every kind that a program can make.
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Suite;

public static class HandleTests
{
    sealed class Thing(int number)
    {
        public readonly int Number = number;
        public object? Link;
    }

    public static void Weak_references()
    {
        var alive = Enumerable.Range(0, 200).Select(i => new Thing(i)).ToArray();
        var toAlive = alive.Select(thing => new WeakReference(thing)).ToList();
        var toDead = new List<WeakReference>();
        Check.Deep(() =>
        {
            for (var i = 0; i < 200; i++)
                toDead.Add(new WeakReference(new Thing(i)));
        });
        Check.CollectAll();
        Check.AllAlive(toAlive, "what is referenced");
        Check.MostDead(toDead, "what is not");
        for (var i = 0; i < alive.Length; i++)
            Check.That(ReferenceEquals(toAlive[i].Target, alive[i]), "target");
        toAlive[0].Target = alive[1];
        Check.That(ReferenceEquals(toAlive[0].Target, alive[1]), "new target");
        var typed = new WeakReference<Thing>(alive[2]);
        GC.Collect();
        Check.That(typed.TryGetTarget(out var found) && ReferenceEquals(found, alive[2]), "typed target");
        typed.SetTarget(null!);
        Check.That(!typed.TryGetTarget(out _), "no target");
        GC.KeepAlive(alive);
    }

    public static void Normal_handles_keep_alive()
    {
        var handles = new List<GCHandle>();
        var references = new List<WeakReference>();
        Check.Deep(() =>
        {
            for (var i = 0; i < 500; i++)
            {
                var thing = new Thing(i) { Link = new Thing(-i) };
                handles.Add(GCHandle.Alloc(thing));
                references.Add(new WeakReference(thing.Link));
            }
        });
        Check.CollectAll();
        Check.Litter();
        Check.AllAlive(references, "what a handle's object references");
        for (var i = 0; i < handles.Count; i++)
        {
            Check.That(handles[i].Target is Thing { Link: Thing link } thing && thing.Number == i && link.Number == -i, "target");
            Check.Same(GCHandle.ToIntPtr(handles[i]), GCHandle.ToIntPtr(GCHandle.FromIntPtr(GCHandle.ToIntPtr(handles[i]))), "value");
        }
        Check.Deep(() =>
        {
            foreach (var handle in handles)
                handle.Free();
        });
        Check.CollectAll();
        Check.MostDead(references, "after the handles are freed");
    }

    public static unsafe void Pinned_handles_keep_in_place()
    {
        var handles = new List<(GCHandle Handle, nint Address)>();
        for (var i = 0; i < 2_000; i++)
        {
            var bytes = new byte[8 + i % 300];
            bytes.AsSpan().Fill((byte)i);
            var handle = GCHandle.Alloc(bytes, GCHandleType.Pinned);
            handles.Add((handle, handle.AddrOfPinnedObject()));
            _ = new byte[i % 50];
        }
        Check.CollectAll();
        GC.Collect(2, GCCollectionMode.Forced, true, true);
        Check.Litter(2048);
        for (var i = 0; i < handles.Count; i++)
        {
            var (handle, address) = handles[i];
            Check.Same(address, handle.AddrOfPinnedObject(), "address");
            for (var j = 0; j < 8 + i % 300; j++)
            {
                if (((byte*)address)[j] != (byte)i)
                    throw new CheckFailed($"byte {j} of pinned array {i}");
            }
            handle.Free();
        }
    }

    public static unsafe void Fixed_keeps_in_place()
    {
        for (var round = 0; round < 50; round++)
        {
            fixed (char* text = new string((char)('a' + round % 26), 100))
            fixed (int* numbers = new int[100])
            {
                numbers[99] = round;
                if (round % 10 == 0)
                    GC.Collect();
                Check.Litter(64);
                Check.That(text[0] == 'a' + round % 26 && text[99] == 'a' + round % 26 && numbers[99] == round, "fixed");
            }
        }
    }

    sealed class Late(List<GCHandle> mirror)
    {
        public bool Ran;
        ~Late()
        {
            Ran = true;
            lock (mirror)
                mirror.Add(GCHandle.Alloc(this));
        }
    }

    public static void Long_weak_handles_see_resurrection()
    {
        var saved = new List<GCHandle>();
        List<WeakReference> shorts = new(), longs = new();
        Check.Deep(() =>
        {
            for (var i = 0; i < 100; i++)
            {
                var late = new Late(saved);
                shorts.Add(new WeakReference(late, false));
                longs.Add(new WeakReference(late, true));
            }
        });
        Check.CollectAll();
        Check.Eventually(() => { lock (saved) return saved.Count >= 90; }, "finalizers ran");
        Check.MostDead(shorts, "short weak references after the finalizer");
        Check.That(longs.Count(reference => reference.Target is Late { Ran: true }) >= 90, "long weak references follow the resurrected object");
        lock (saved)
        {
            foreach (var handle in saved)
                handle.Free();
            saved.Clear();
        }
        Check.CollectAll();
        Check.MostDead(longs, "long weak references at the end");
    }

    public static void Dependent_handles()
    {
        var keys = Enumerable.Range(0, 100).Select(i => new Thing(i)).ToArray();
        var handles = new List<DependentHandle>();
        List<WeakReference> values = new(), orphans = new();
        Check.Deep(() =>
        {
            foreach (var key in keys)
            {
                var value = new Thing(-key.Number) { Link = key };
                handles.Add(new DependentHandle(key, value));
                values.Add(new WeakReference(value));
            }
            for (var i = 0; i < 100; i++)
            {
                // The value references its key: neither keeps the other alive.
                var key = new Thing(i);
                var value = new Thing(-i) { Link = key };
                handles.Add(new DependentHandle(key, value));
                orphans.Add(new WeakReference(value));
            }
        });
        Check.CollectAll();
        Check.Litter();
        Check.AllAlive(values, "values whose keys live");
        Check.MostDead(orphans, "values whose keys are gone");
        for (var i = 0; i < keys.Length; i++)
        {
            var (target, dependent) = handles[i].TargetAndDependent;
            Check.That(ReferenceEquals(target, keys[i]) && dependent is Thing thing && thing.Number == -i, "pair");
        }
        for (var i = 100; i < 200; i++)
        {
            if (handles[i].Target is null)
                Check.That(handles[i].Dependent is null, "a dependent without its target");
        }
        foreach (var handle in handles)
            handle.Dispose();
        GC.KeepAlive(keys);
    }

    public static void Dependent_handles_in_a_chain()
    {
        // Each value is the key of the next handle. They are allocated in the order that needs the most rounds.
        var things = Enumerable.Range(0, 300).Select(i => new Thing(i)).ToArray();
        var handles = new DependentHandle[things.Length - 1];
        for (var i = handles.Length - 1; i >= 0; i--)
            handles[i] = new DependentHandle(things[i], things[i + 1]);
        var first = things[0];
        var last = new WeakReference(things[^1]);
        Array.Clear(things);
        things = null;
        Check.CollectAll();
        Check.Litter();
        Check.That(last.Target is Thing { Number: 299 }, "the end of the chain");
        var at = first;
        for (var i = 0; i < handles.Length; i++)
        {
            Check.Same(i, at.Number, "link");
            at = (Thing)handles[i].Dependent!;
        }
        foreach (var handle in handles)
            handle.Dispose();
    }

    public static void Dependent_handles_and_finalizers()
    {
        var saved = new List<GCHandle>();
        var table = new ConditionalWeakTable<object, Thing>();
        List<WeakReference> values = new();
        Check.Deep(() =>
        {
            for (var i = 0; i < 50; i++)
            {
                var value = new Thing(i);
                table.Add(new Late(saved), value);
                values.Add(new WeakReference(value));
            }
        });
        Check.CollectAll();
        Check.Eventually(() => { lock (saved) return saved.Count >= 45; }, "finalizers ran");
        // Resurrected keys have kept their values.
        lock (saved)
        {
            foreach (var handle in saved)
                Check.That(table.TryGetValue(handle.Target!, out _), "value of a resurrected key");
            foreach (var handle in saved)
                handle.Free();
            saved.Clear();
        }
        Check.CollectAll();
        Check.MostDead(values, "values at the end");
    }

    public static void Conditional_weak_table()
    {
        var table = new ConditionalWeakTable<object, List<int>>();
        var keys = new List<object>();
        for (var i = 0; i < 3_000; i++)
        {
            object key = new Thing(i);
            table.Add(key, [i, -i]);
            if (i % 2 == 0)
                keys.Add(key);
            if (i % 500 == 0)
                GC.Collect();
        }
        Check.CollectAll();
        Check.Litter();
        for (var i = 0; i < keys.Count; i++)
            Check.That(table.TryGetValue(keys[i], out var value) && value is [var a, var b] && a == i * 2 && b == -i * 2, "entry");
        var left = table.Count();
        Check.That(left >= keys.Count && left < keys.Count + 300, $"{left} entries are left of {keys.Count}");
    }

    public static void Very_many_handles()
    {
        var handles = new GCHandle[150_000];
        for (var round = 0; round < 3; round++)
        {
            for (var i = 0; i < handles.Length; i++)
                handles[i] = GCHandle.Alloc(i % 3 == 0 ? null : handles, (GCHandleType)(i % 3));
            GC.Collect();
            for (var i = 0; i < handles.Length; i++)
            {
                if (!ReferenceEquals(handles[i].Target, i % 3 == 0 ? null : handles))
                    throw new CheckFailed($"handle {i}");
                handles[i].Free();
            }
        }
    }

    public static void Handles_from_many_threads()
    {
        var failure = Loads.RunAll(6, number =>
        {
            var random = new Random(number);
            var handles = new GCHandle[500];
            for (var step = 0; step < 30_000; step++)
            {
                var at = random.Next(handles.Length);
                if (handles[at].IsAllocated)
                {
                    if (handles[at].Target is Thing thing)
                        Check.Same(at, thing.Number, "thing of a handle");
                    handles[at].Free();
                    handles[at] = default;
                }
                else
                {
                    handles[at] = GCHandle.Alloc(new Thing(at), (GCHandleType)random.Next(3));
                }
                if (step % 5_000 == 0)
                    GC.Collect();
            }
            foreach (var handle in handles.Where(handle => handle.IsAllocated))
                handle.Free();
        });
        Check.That(failure is null, $"{failure}");
    }
}
