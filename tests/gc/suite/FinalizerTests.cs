// Finalizers: when they run, how often, in which order, and what they may do.
using System.Runtime.CompilerServices;
using System.Runtime.ConstrainedExecution;

namespace Suite;

public static class FinalizerTests
{
    static int ran;
    static readonly List<object> saved = new();
    static readonly List<string> order = new();

    class Counted
    {
        public int Number = 42;
        public object? Link;
        ~Counted() => Interlocked.Increment(ref ran);
    }

    sealed class Saves
    {
        public int Runs;
        public string Text = new('s', 20);
        ~Saves()
        {
            Runs++;
            lock (saved)
                saved.Add(this);
        }
    }

    sealed class Allocates
    {
        ~Allocates()
        {
            var list = new List<string>();
            for (var i = 0; i < 500; i++)
                list.Add(new string('f', i % 50));
            GC.Collect(0);
            if (list.Count == 500 && list[49].Length == 49)
                Interlocked.Increment(ref ran);
        }
    }

    sealed class Ordinary(string name)
    {
        ~Ordinary()
        {
            lock (order)
                order.Add(name);
        }
    }

    sealed class Critical(string name) : CriticalFinalizerObject
    {
        ~Critical()
        {
            lock (order)
                order.Add(name);
        }
    }

    sealed class Throws
    {
        readonly byte[] bytes = new byte[50];
        public Throws(bool now)
        {
            if (now)
                throw new InvalidOperationException($"{bytes.Length}");
        }
        ~Throws()
        {
            if (bytes is { Length: 50 })
                Interlocked.Increment(ref ran);
        }
    }

    sealed class Again
    {
        public int Left = 3;
        ~Again()
        {
            Interlocked.Increment(ref ran);
            if (--Left > 0)
                GC.ReRegisterForFinalize(this);
        }
    }

    public static void Each_runs_once()
    {
        ran = 0;
        Check.Deep(() => Make(20_000));
        Check.CollectAll();
        Check.Eventually(() => Volatile.Read(ref ran) >= 19_900, "finalizers of dead objects ran");
        Check.CollectAll();
        Check.That(ran <= 20_000, $"finalizers ran {ran} times for 20000 objects");

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Make(int count)
        {
            for (var i = 0; i < count; i++)
                _ = new Counted { Link = new byte[i % 40] };
        }
    }

    public static void Living_objects_are_not_finalized()
    {
        ran = 0;
        var alive = Enumerable.Range(0, 1_000).Select(i => new Counted { Number = i }).ToArray();
        Check.CollectAll();
        Check.Same(0, ran, "finalizers");
        Check.That(alive.Select((counted, i) => counted.Number == i).All(same => same), "numbers");
        foreach (var counted in alive)
            GC.SuppressFinalize(counted);
        GC.KeepAlive(alive);
    }

    public static void Suppressed_ones_do_not_run()
    {
        ran = 0;
        Check.Deep(() =>
        {
            for (var i = 0; i < 500; i++)
                GC.SuppressFinalize(new Counted());
        });
        Check.CollectAll();
        Check.Same(0, ran, "finalizers");
    }

    public static void Suppressed_and_registered_again()
    {
        ran = 0;
        Check.Deep(() =>
        {
            for (var i = 0; i < 500; i++)
            {
                var counted = new Counted();
                GC.SuppressFinalize(counted);
                GC.ReRegisterForFinalize(counted);
            }
        });
        Check.CollectAll();
        Check.Eventually(() => Volatile.Read(ref ran) >= 490, "finalizers ran");
        Check.That(ran <= 500, $"{ran} runs");
    }

    public static void Registered_again_in_the_finalizer()
    {
        ran = 0;
        Check.Deep(() =>
        {
            for (var i = 0; i < 50; i++)
                _ = new Again();
        });
        for (var i = 0; i < 5; i++)
            Check.CollectAll();
        Check.Eventually(() => Volatile.Read(ref ran) >= 135, $"three runs each, {ran} for 50");
        Check.That(ran <= 150, $"{ran} runs");
    }

    public static void Resurrection()
    {
        lock (saved)
            saved.Clear();
        Check.Deep(() =>
        {
            for (var i = 0; i < 200; i++)
                _ = new Saves();
        });
        Check.CollectAll();
        Check.Eventually(() => { lock (saved) return saved.Count >= 180; }, "finalizers ran");
        Check.Litter(2048);
        GC.Collect();
        lock (saved)
        {
            Check.That(saved.All(one => one is Saves { Runs: 1, Text: "ssssssssssssssssssss" }), "what was saved is whole");
            var references = saved.Select(one => new WeakReference(one)).ToList();
            saved.Clear();
            Check.CollectAll();
            Check.MostDead(references, "after it was let go");
            Check.Same(0, saved.Count, "a second run");
        }
    }

    public static void Finalizer_sees_its_graph()
    {
        ran = 0;
        Check.Deep(() =>
        {
            for (var i = 0; i < 300; i++)
                _ = new Chain(new Chain(new Chain(null, i), i), i);
        });
        Check.CollectAll();
        Check.Eventually(() => Volatile.Read(ref ran) >= 870, $"finalizers ran: {ran}");
        Check.Same(0, Chain.Broken, "broken graphs");
    }

    sealed class Chain(Chain? next, int number)
    {
        public static int Broken;
        readonly string text = number.ToString();
        readonly Chain? next = next;
        ~Chain()
        {
            if (text != number.ToString() || next is not null && next.text != text)
                Interlocked.Increment(ref Broken);
            Interlocked.Increment(ref ran);
        }
    }

    public static void Critical_finalizers_run_last()
    {
        for (var round = 0; round < 5; round++)
        {
            lock (order)
                order.Clear();
            Check.Deep(() =>
            {
                for (var i = 0; i < 50; i++)
                {
                    _ = new Critical("critical");
                    _ = new Ordinary("ordinary");
                }
            });
            GC.Collect();
            GC.WaitForPendingFinalizers();
            string[] seen;
            lock (order)
                seen = order.ToArray();
            // A collection during the allocations splits the objects into two batches; the rule applies within a batch.
            if (seen.Count(name => name == "critical") < 45 || seen.Count(name => name == "ordinary") < 45)
                continue;
            var lastOrdinary = Array.LastIndexOf(seen, "ordinary");
            var firstCritical = Array.IndexOf(seen, "critical");
            if (firstCritical > lastOrdinary)
                return;
        }
        throw new CheckFailed("critical finalizers never ran after all ordinary ones");
    }

    public static void Finalizers_may_allocate_and_collect()
    {
        ran = 0;
        Check.Deep(() =>
        {
            for (var i = 0; i < 60; i++)
                _ = new Allocates();
        });
        Check.CollectAll();
        Check.Eventually(() => Volatile.Read(ref ran) >= 54, $"finalizers ran: {ran}");
    }

    public static void Constructor_that_throws()
    {
        ran = 0;
        Check.Deep(() =>
        {
            for (var i = 0; i < 100; i++)
            {
                try
                {
                    _ = new Throws(true);
                }
                catch (InvalidOperationException)
                {
                }
            }
        });
        Check.CollectAll();
        Check.Eventually(() => Volatile.Read(ref ran) >= 90, $"finalizers ran: {ran}");
    }

    public static void Weak_references_die_before_the_finalizer()
    {
        var references = new List<WeakReference>();
        Check.Deep(() =>
        {
            for (var i = 0; i < 100; i++)
            {
                var inner = new byte[100];
                var outer = new Counted { Link = inner };
                references.Add(new WeakReference(outer));
                references.Add(new WeakReference(inner));
            }
        });
        GC.Collect();
        Check.MostDead(references, "short weak references, to what hangs on it as well");
        Check.CollectAll();
    }

    public static void Waiting_waits_for_all()
    {
        ran = 0;
        for (var round = 0; round < 20; round++)
        {
            Check.Deep(() =>
            {
                for (var i = 0; i < 200; i++)
                    _ = new Counted();
            });
            GC.Collect();
            GC.WaitForPendingFinalizers();
            var after = Volatile.Read(ref ran);
            Check.That(after >= (round + 1) * 190, $"{after} ran after round {round}");
        }
    }
}
