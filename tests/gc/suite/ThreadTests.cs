// Many threads that allocate while others collect; exceptions, async, calls into native code.
using System.Collections.Concurrent;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Suite;

public static class ThreadTests
{
    sealed class Link(int number, Link? next)
    {
        public readonly int Number = number;
        public readonly Link? Next = next;
    }

    static void Together(int count, Action<int> body)
    {
        var failure = Loads.RunAll(count, body);
        Check.That(failure is null, $"{failure}");
    }

    public static void Threads_allocate_while_one_collects()
    {
        var done = false;
        var collector = new Thread(() =>
        {
            while (!Volatile.Read(ref done))
            {
                GC.Collect();
                Thread.Sleep(2);
            }
        });
        collector.Start();
        try
        {
            Together(6, number =>
            {
                var random = new Random(number);
                var kept = new object[64];
                for (var step = 0; step < 40_000; step++)
                {
                    var at = random.Next(kept.Length);
                    if (kept[at] is Link link)
                        Check.That(link.Number == at && (link.Next is null || link.Next.Number == at), "link");
                    else if (kept[at] is int[] numbers)
                        Check.That(numbers.AsSpan().IndexOfAnyExcept(at) < 0, "numbers");
                    if (step % 3 == 0)
                    {
                        var made = new int[random.Next(1, 200)];
                        made.AsSpan().Fill(at);
                        kept[at] = made;
                    }
                    else
                    {
                        kept[at] = new Link(at, kept[at] as Link is { Next: null } old ? old : null);
                    }
                }
            });
        }
        finally
        {
            Volatile.Write(ref done, true);
            collector.Join();
        }
    }

    public static void Objects_pass_between_threads()
    {
        var queue = new BlockingCollection<Link>(100);
        var sum = 0L;
        var consumers = Enumerable.Range(0, 3).Select(_ => new Thread(() =>
        {
            foreach (var link in queue.GetConsumingEnumerable())
            {
                for (var at = link; at is not null; at = at.Next)
                    Interlocked.Add(ref sum, at.Number);
            }
        })).ToArray();
        foreach (var consumer in consumers)
            consumer.Start();
        Together(3, number =>
        {
            for (var i = 0; i < 10_000; i++)
                queue.Add(new Link(1, new Link(2, new Link(3, null))));
        });
        queue.CompleteAdding();
        foreach (var consumer in consumers)
            consumer.Join();
        Check.Same(30_000L * 6, sum, "sum");
    }

    public static void A_stack_without_locks()
    {
        Link? head = null;
        var popped = 0;
        Together(4, number =>
        {
            for (var i = 0; i < 30_000; i++)
            {
                Link? seen;
                do
                    seen = Volatile.Read(ref head);
                while (Interlocked.CompareExchange(ref head, new Link(number, seen), seen) != seen);
                if (i % 2 == 1)
                {
                    do
                        seen = Volatile.Read(ref head);
                    while (seen is not null && Interlocked.CompareExchange(ref head, seen.Next, seen) != seen);
                    if (seen is not null)
                        Interlocked.Increment(ref popped);
                }
            }
        });
        var left = 0;
        for (var at = head; at is not null; at = at.Next)
            left++;
        Check.Same(120_000, left + popped, "links");
    }

    public static void Threads_come_and_go()
    {
        var total = 0;
        for (var round = 0; round < 25; round++)
        {
            Together(16, number =>
            {
                var list = new List<string>();
                for (var i = 0; i < 200; i++)
                    list.Add($"{number} {i}");
                if (number == 0)
                    GC.Collect();
                Interlocked.Add(ref total, list.Count(text => text.StartsWith($"{number} ")));
            });
        }
        Check.Same(25 * 16 * 200, total, "strings");
    }

    public static void Roots_deep_in_the_stack()
    {
        Together(3, number =>
        {
            Check.Same(4_000, Down(4_000, new Link(4_000, null)), "depth");

            static int Down(int depth, Link link)
            {
                if (depth == 0)
                {
                    GC.Collect();
                    return 0;
                }
                var below = Down(depth - 1, new Link(depth - 1, link));
                Check.Same(depth, link.Number, "a frame's link");
                return below + 1;
            }
        });
    }

    public static void Exceptions()
    {
        var finallies = 0;
        Together(4, number =>
        {
            for (var round = 0; round < 150; round++)
            {
                try
                {
                    Throw(8, $"{number}/{round}", new Link(round, null));
                    throw new CheckFailed("nothing was thrown");
                }
                catch (ApplicationException exception) when (Filter(exception, round))
                {
                    Check.Same($"{number}/{round}", exception.InnerException!.Message, "message");
                    Check.That(exception.StackTrace!.Contains("Throw"), "stack trace");
                    Check.Same(round, ((Link)exception.Data["link"]!).Number, "data");
                }
                if (round % 50 == 0)
                    GC.Collect();
            }
        });
        Check.Same(4 * 150 * 9, finallies, "finally blocks");

        static bool Filter(Exception exception, int round)
        {
            Check.Litter(8);
            if (round % 40 == 0)
                GC.Collect();
            return exception.Data.Count == 1;
        }

        void Throw(int depth, string message, Link link)
        {
            object local = new Link(depth, link);
            try
            {
                if (depth == 0)
                {
                    try
                    {
                        throw new InvalidOperationException(message);
                    }
                    catch (InvalidOperationException inner)
                    {
                        var outer = new ApplicationException("wrapped", inner);
                        outer.Data["link"] = link;
                        throw outer;
                    }
                }
                Throw(depth - 1, message, link);
            }
            finally
            {
                Check.Litter(2);
                Check.Same(depth, ((Link)local).Number, "local in finally");
                Interlocked.Increment(ref finallies);
            }
        }
    }

    public static void Async()
    {
        var sum = Task.WhenAll(Enumerable.Range(0, 200).Select(number => Work(number, 6))).GetAwaiter().GetResult().Sum();
        Check.Same(200 * 64, sum, "leaves");

        static async Task<int> Work(int number, int depth)
        {
            var link = new Link(number, new Link(depth, null));
            await Task.Yield();
            if (depth == 0)
                return link.Number == number ? 1 : 0;
            if (number % 50 == 0 && depth == 3)
                GC.Collect();
            var left = Work(number, depth - 1);
            if (depth == 2)
                await Task.Delay(1);
            var right = await Work(number, depth - 1);
            Check.That(link.Number == number && link.Next!.Number == depth, "what the state machine holds");
            return await left + right;
        }
    }

    public static void Streams_of_values()
    {
        Check.Same(499_500 * 2, Sum().GetAwaiter().GetResult(), "sum");

        static async Task<int> Sum()
        {
            var sum = 0;
            await foreach (var (number, text) in Numbers())
                sum += number + int.Parse(text);
            return sum;
        }

        static async IAsyncEnumerable<(int, string)> Numbers()
        {
            for (var i = 0; i < 1_000; i++)
            {
                if (i % 100 == 0)
                {
                    await Task.Yield();
                    GC.Collect(0);
                }
                yield return (i, i.ToString());
            }
        }
    }

    public static void Parallel_queries_and_dictionaries()
    {
        var dictionary = new ConcurrentDictionary<string, Link>();
        Parallel.For(0, 40_000, i => dictionary.AddOrUpdate($"key {i % 5_000}", _ => new Link(1, null), (_, old) => new Link(old.Number + 1, null)));
        Check.Same(5_000, dictionary.Count, "keys");
        Check.Same(40_000, dictionary.Values.Sum(link => link.Number), "values");
        var groups = Enumerable.Range(0, 60_000).AsParallel().Select(i => $"{i % 97}").GroupBy(text => text).ToDictionary(group => group.Key, group => group.Count());
        Check.That(groups.Count == 97 && groups.Values.Sum() == 60_000, "groups");
    }

    public static void Locks_with_collections_between()
    {
        var gate = new object();
        var list = new List<Link>();
        Together(5, number =>
        {
            for (var i = 0; i < 3_000; i++)
            {
                lock (gate)
                {
                    list.Add(new Link(number, list.Count > 0 ? list[^1] : null));
                    if (list.Count > 50)
                        list.Clear();
                    Monitor.Pulse(gate);
                }
                if (i % 1_000 == 0)
                    GC.Collect();
            }
        });
        Check.That(list.Count <= 51, "list");
    }

    public static void Timers_and_the_thread_pool()
    {
        var ticks = 0;
        using (new Timer(state => { Check.Litter(4); Interlocked.Increment(ref ticks); GC.KeepAlive(state); }, new Link(1, null), 0, 1))
        {
            using var left = new CountdownEvent(2_000);
            for (var i = 0; i < 2_000; i++)
                ThreadPool.QueueUserWorkItem(link => { Check.Litter(1); if (link.Number >= 0) left.Signal(); }, new Link(i, null), i % 2 == 0);
            Check.That(left.Wait(60_000), "work items");
            Check.Eventually(() => Volatile.Read(ref ticks) > 3, "the timer ticks");
        }
    }

    public static void Thread_locals()
    {
        using var local = new ThreadLocal<List<string>>(() => new List<string>(), true);
        Together(8, number =>
        {
            for (var i = 0; i < 500; i++)
                local.Value!.Add($"{number}");
            GC.Collect();
            Check.That(local.Value!.Count == 500 && local.Value.All(text => text == $"{number}"), "this thread's list");
        });
        Check.Same(4_000, local.Values.Sum(list => list.Count), "all lists");
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate int Compare(nint left, nint right);

    [DllImport("libc", EntryPoint = "qsort")]
    static extern void SortWithDelegate(int[] numbers, nint count, nint size, Compare compare);

    [DllImport("libc", EntryPoint = "qsort")]
    static extern unsafe void SortWithPointer(int* numbers, nint count, nint size, delegate* unmanaged[Cdecl]<nint, nint, int> compare);

    [DllImport("libc", EntryPoint = "strlen")]
    static extern nint Length([MarshalAs(UnmanagedType.LPUTF8Str)] string text);

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    static unsafe int ComparePointers(nint left, nint right)
    {
        _ = new byte[100];
        return *(int*)left - *(int*)right;
    }

    public static unsafe void Native_code_calls_back()
    {
        Together(3, number =>
        {
            var random = new Random(number);
            for (var round = 0; round < 20; round++)
            {
                var numbers = new int[500];
                for (var i = 0; i < numbers.Length; i++)
                    numbers[i] = random.Next(10_000);
                var expected = numbers.Order().ToArray();
                var copy = numbers.ToArray();
                var calls = 0;
                SortWithDelegate(numbers, numbers.Length, 4, (left, right) =>
                {
                    _ = new Link(calls, null);
                    if (++calls % 3_000 == 0)
                        GC.Collect();
                    return *(int*)left - *(int*)right;
                });
                fixed (int* pointer = copy)
                    SortWithPointer(pointer, copy.Length, 4, &ComparePointers);
                Check.That(numbers.SequenceEqual(expected) && copy.SequenceEqual(expected), "sorted");
                Check.Same(round + 3, (int)Length(new string('x', round) + "xyz"), "length");
            }
        });
    }

    public static void A_delegate_lives_as_long_as_it_is_kept()
    {
        var kept = new List<(Compare Delegate, nint Pointer)>();
        for (var i = 0; i < 200; i++)
        {
            var number = i;
            Compare made = (left, right) => number + (int)left + (int)right;
            kept.Add((made, Marshal.GetFunctionPointerForDelegate(made)));
        }
        Check.CollectAll();
        Check.Litter();
        for (var i = 0; i < kept.Count; i++)
            Check.Same(i + 3, Marshal.GetDelegateForFunctionPointer<Compare>(kept[i].Pointer)(1, 2), "called through native code");
        GC.KeepAlive(kept);
    }
}
