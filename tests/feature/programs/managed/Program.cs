// The program that the managed_*.sh scripts record.
//
//   Managed burn MS       computes for MS of CPU time in Hot.Burn (compiled here) and in the framework's Convert and Array.Sort (precompiled)
//   Managed paced MS      the same, but collects and sleeps 20 ms after each round, so that it slows down other tests less
//   Managed dynamic MS    generates methods Made_0, Made_1, ... for MS of CPU time, one after the other. Each computes 20 ms and is freed, so that
//                         later methods get the same addresses
//   Managed work MS       computes, compiles and creates event sources all the time; prints the milliseconds and the rounds so far every 100 ms;
//                         also ends when ./end exists
//   Managed idle MS       sleeps
//   Managed late MS       when the file ./go exists: computes for MS of CPU time in methods that were not called before: Late.Plain, Late.Of<int>, and
//                         Made_1000000, which is generated then and kept
//   Managed naps MS       computes a millisecond each second
//   Managed shares MS     computes in two callers of one small method, 75 % and 25 % (Shares.cs)
//   Managed collectible MS  like dynamic, with assemblies that are unloaded: types Unloaded_0, Unloaded_1, ...
//
//   Managed heap N        keeps N orders for `spoor heap`, every second one with a note, and one more for each byte from the pipe $ORDERS, until
//                         its end. Also 1000 holders of one array of a megabyte, and 1000 keys of a
//                         conditional weak table
//   Managed collects N    the same, and collects all generations again and again while two threads compute
//
//   Managed meters MS     counts 10 orders every 100 ms, with a Meter "Shop.Orders" (counter, up-down counter, gauge, histogram; tags) and
//                         an EventSource "Shop-Counters" with EventCounters of both kinds, for `spoor counters`
//   Managed threads MS    threads for `spoor stacks`: four that wait for one event (Parked 0..3), "Owner" that sleeps inside a lock, "Waiter 0" and
//                         "Waiter 1" that repeatedly request that lock, "Sleeper", "Reader" that reads an empty pipe, "Spinner" that computes
//
//   Managed starve N      the pool's first N workers wait for a task that never ends, called directly (all their frames are System.Threading's);
//                         after them N in Starved.Block; "starved" is printed when all 2 N wait. Thread "Swinger" sleeps a millisecond in
//                         Starved.Nap, then waits in Starved.Read for a byte that "Feeder" writes each two
//
//   Managed events N      when the file ./go exists: throws N exceptions, N / 10 of them on a second thread, and collects N / 10 times. Prints its own
//                         counts of both, "thrown X collected Y"; ends when ./end exists
//   Managed throws MS     throws as fast as possible when ./go exists, then like events
//
// Prints "ready" first (heap: when all objects exist; meters: when the sources exist, because .NET 10 can hang when a session is opened while a
// Meter or EventSource is being created); burn ends with its rounds per second of CPU time.

using System.Diagnostics;
using System.Diagnostics.Metrics;
using System.Diagnostics.Tracing;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

if (args.Length != 2 || !int.TryParse(args[1], out int ms))
    return 2;
if (args[0] is "heap" or "collects")
    return Kept.Run(ms, args[0] == "collects");
if (args[0] == "meters")
    return Counted.Run(ms);
Console.WriteLine("ready");
switch (args[0])
{
    case "burn":
        Hot.Run(ms, 0);
        break;
    case "paced":
        Hot.Run(ms, 20);
        break;
    case "work":
        Worker.Run(ms);
        break;
    case "naps":
        for (Stopwatch watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < ms;)
        {
            Hot.Burn(1);
            Thread.Sleep(1000);
        }
        break;
    case "idle":
        Thread.Sleep(ms);
        break;
    case "late":
        Late.Run(ms);
        break;
    case "shares":
        Shares.Run(ms);
        break;
    case "threads":
        Posed.Run(ms);
        break;
    case "starve":
        Starved.Run(ms);
        break;
    case "dynamic":
        Made.Run(ms, Made.Dynamic);
        break;
    case "collectible":
        Made.Run(ms, Made.Collectible);
        break;
    case "events":
        Told.Run(ms);
        break;
    case "throws":
        Told.Flood(ms);
        break;
    case "waits":
        Waiting.Run(ms);
        break;
    default:
        return 2;
}
return 0;

class Order
{
    public int Number;
    public Note? Note;
}

class Note
{
    public readonly byte[] Text = new byte[100];
}

class Holder
{
    public byte[]? Shared;
}

class Key
{
    public int Number;
}

class Value
{
    public readonly byte[] Text = new byte[100];
}

static class Kept
{
    static readonly Dictionary<int, Order> all = [];
    static readonly Holder[] holders = new Holder[1000];
    static readonly Key[] keys = new Key[1000];
    static readonly ConditionalWeakTable<Key, Value> values = [];

    // A thousand holders share one array; a thousand keys have a value each in a conditional weak table.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Share()
    {
        byte[] shared = new byte[1_000_000];
        for (int i = 0; i < holders.Length; i++)
        {
            holders[i] = new Holder { Shared = shared };
            keys[i] = new Key { Number = i };
            values.Add(keys[i], new Value());
        }
    }

    public static int Run(int count, bool collects)
    {
        Share();
        for (int i = 0; i < count; i++)
            all[i] = new Order { Number = i, Note = i % 2 == 0 ? new Note() : null };
        if (collects)
            new Thread(() => { for (; ; Thread.Sleep(5)) GC.Collect(); }) { IsBackground = true }.Start();
        for (int i = 0; collects && i < 2; i++)
            new Thread(() => { for (int x = 0; ;) x = Hot.Burn(x); }) { IsBackground = true }.Start();
        Console.WriteLine("ready");
        using FileStream orders = File.OpenRead(Environment.GetEnvironmentVariable("ORDERS")!);
        while (orders.ReadByte() >= 0)
            all[-all.Count] = new Order();
        return all.Count;
    }
}

static class Counted
{
    public static int Run(int ms)
    {
        using Meter meter = new("Shop.Orders", "1.2", [new("region", "north")]);
        Counter<long> orders = meter.CreateCounter<long>("shop.orders", "{order}", "Orders taken");
        UpDownCounter<int> open = meter.CreateUpDownCounter<int>("shop.open");
        Histogram<double> duration = meter.CreateHistogram<double>("shop.duration", "s", "Time an order takes");
        meter.CreateObservableGauge("shop.temperature", () => 21.5, "Cel");
        using ShopCounters source = new();
        Console.WriteLine("ready");
        Stopwatch watch = Stopwatch.StartNew();
        for (int turn = 0; watch.ElapsedMilliseconds < ms; turn++)
        {
            for (int i = 1; i <= 10; i++)
            {
                orders.Add(1, new KeyValuePair<string, object?>("kind", i % 2 == 0 ? "book" : "pen, \"blue\""));
                duration.Record(i / 1000.0);
                source.Order(i);
            }
            open.Add(turn % 2 == 0 ? 3 : -3);
            Thread.Sleep(100);
        }
        return 0;
    }
}

[EventSource(Name = "Shop-Counters")]
class ShopCounters : EventSource
{
    readonly EventCounter size;
    readonly IncrementingEventCounter orders;

    public ShopCounters()
    {
        size = new EventCounter("order-size", this) { DisplayName = "Order Size", DisplayUnits = "kg" };
        orders = new IncrementingEventCounter("order-rate", this) { DisplayName = "Order Rate", DisplayRateTimeScale = TimeSpan.FromSeconds(1) };
    }

    [NonEvent]
    public void Order(int kilograms)
    {
        size.WriteMetric(kilograms);
        orders.Increment();
    }

    protected override void Dispose(bool disposing)
    {
        size.Dispose();
        orders.Dispose();
        base.Dispose(disposing);
    }
}

static class Told
{
    static long thrown;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw()
    {
        try
        {
            throw new InvalidOperationException("told " + thrown);
        }
        catch (InvalidOperationException)
        {
            Interlocked.Increment(ref thrown);
        }
    }

    static void Await(string path)
    {
        while (!File.Exists(path))
            Thread.Sleep(10);
    }

    static void Tell(int collected)
    {
        Console.WriteLine($"thrown {Interlocked.Read(ref thrown)} collected {GC.CollectionCount(0) - collected}");
        Await("end");
    }

    public static void Run(int count)
    {
        Await("go");
        int collected = GC.CollectionCount(0);
        Thread other = new(() =>
        {
            for (int i = 0; i < count / 10; i++)
                Throw();
        });
        other.Start();
        for (int i = 0; i < count - count / 10; i++)
        {
            Throw();
            if (i % 10 == 0 && i / 10 < count / 10)
                GC.Collect(i / 10 % 3);
        }
        other.Join();
        Tell(collected);
    }

    public static void Flood(int ms)
    {
        Await("go");
        int collected = GC.CollectionCount(0);
        for (Stopwatch watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < ms;)
            for (int i = 0; i < 100; i++)
                Throw();
        Tell(collected);
    }
}

static class Posed
{
    static readonly ManualResetEventSlim never = new(false, 0);
    static readonly object kept = new();
    static readonly AnonymousPipe pipe = new();
    static volatile bool over;

    sealed class AnonymousPipe
    {
        public readonly System.IO.Pipes.AnonymousPipeServerStream Server = new(System.IO.Pipes.PipeDirection.Out);
        public readonly System.IO.Pipes.AnonymousPipeClientStream Client;
        public AnonymousPipe() => Client = new(System.IO.Pipes.PipeDirection.In, Server.ClientSafePipeHandle);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Park() => never.Wait();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Hold()
    {
        lock (kept)
            Thread.Sleep(Timeout.Infinite);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Want()
    {
        while (!over)
            Monitor.TryEnter(kept, 40);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sleep() => Thread.Sleep(Timeout.Infinite);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Read() => pipe.Client.ReadByte();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spin()
    {
        int x = 0;
        while (!over)
        {
            x = Hot.Burn(x);
            Thread.Sleep(2);
        }
        GC.KeepAlive(x);
    }

    static void Begin(string name, ThreadStart run) => new Thread(run) { Name = name, IsBackground = true }.Start();

    public static void Run(int ms)
    {
        for (int i = 0; i < 4; i++)
            Begin("Parked " + i, Park);
        Begin("Owner", Hold);
        while (Monitor.TryEnter(kept))
        {
            Monitor.Exit(kept);
            Thread.Sleep(1);
        }
        Begin("Waiter 0", Want);
        Begin("Waiter 1", Want);
        Begin("Sleeper", Sleep);
        Begin("Reader", Read);
        Begin("Spinner", Spin);
        Thread.Sleep(200);
        Console.WriteLine("posed");
        Thread.Sleep(ms);
        over = true;
    }
}

static class Starved
{
    static readonly TaskCompletionSource<int> never = new();
    static readonly System.IO.Pipes.AnonymousPipeServerStream sink = new(System.IO.Pipes.PipeDirection.Out);
    static readonly System.IO.Pipes.AnonymousPipeClientStream source = new(System.IO.Pipes.PipeDirection.In, sink.ClientSafePipeHandle);
    static int waiting;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Block()
    {
        Interlocked.Increment(ref waiting);
        GC.KeepAlive(never.Task.Result);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nap() => Thread.Sleep(1);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Read() => source.ReadByte();

    static void Swing()
    {
        for (;;)
        {
            Nap();
            Read();
        }
    }

    static void Feed()
    {
        for (;;)
        {
            Thread.Sleep(2);
            sink.WriteByte(1);
        }
    }

    public static void Run(int count)
    {
        new Thread(Swing) { Name = "Swinger", IsBackground = true }.Start();
        new Thread(Feed) { Name = "Feeder", IsBackground = true }.Start();
        ThreadPool.SetMinThreads(2 * count + 2, 1);
        for (int i = 0; i < count; i++)
            Task.Run(never.Task.Wait);
        for (int i = 0; i < count; i++)
            Task.Run(Block);
        while (Volatile.Read(ref waiting) < count)
            Thread.Sleep(1);
        Thread.Sleep(100);
        Console.WriteLine("starved");
        Thread.Sleep(Timeout.Infinite);
    }
}

static class Hot
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Burn(int x)
    {
        for (int i = 0; i < 1_000_000; i++)
            x = x * 31 + i;
        return x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Framework(byte[] bytes, string[] words)
    {
        string text = Convert.ToBase64String(bytes);
        string[] copy = (string[])words.Clone();
        Array.Sort(copy, StringComparer.Ordinal);
        return text.Length + copy[0].Length;
    }

    public static void Run(int ms, int pause)
    {
        byte[] bytes = new byte[20_000];
        string[] words = new string[4000];
        for (int i = 0; i < words.Length; i++)
            words[i] = "word " + (i * 7919 % words.Length);
        TimeSpan before = Process.GetCurrentProcess().TotalProcessorTime;
        long rounds = 0;
        int x = 0;
        long begin = CpuClock.ThreadMilliseconds();
        while (CpuClock.ThreadMilliseconds() - begin < ms)
        {
            x = Burn(x);
            x += Framework(bytes, words);
            rounds++;
            if (pause == 0)
                continue;
            GC.Collect(0);
            Thread.Sleep(pause);
        }
        TimeSpan cpu = Process.GetCurrentProcess().TotalProcessorTime - before;
        Console.WriteLine($"{(long)(rounds / cpu.TotalSeconds)} rounds");
        GC.KeepAlive(x);
    }
}

// The CPU time of the current thread, which does not depend on the load of the machine.
static class CpuClock
{
    const int ThreadCpuTime = 3; // CLOCK_THREAD_CPUTIME_ID

    struct Time
    {
        public long Seconds;
        public long Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    static extern int Read(int clock, out Time time);

    public static long ThreadMilliseconds()
    {
        if (Read(ThreadCpuTime, out Time time) != 0)
            throw new InvalidOperationException("no clock of the thread's CPU time");
        return time.Seconds * 1000 + time.Nanoseconds / 1_000_000;
    }
}

static class Late
{
    static readonly Func<int, int> made = Made.Dynamic(1_000_000);

    public static void Run(int ms)
    {
        while (!File.Exists("go"))
            Thread.Sleep(10);
        long begin = CpuClock.ThreadMilliseconds();
        int x = 0;
        while (CpuClock.ThreadMilliseconds() - begin < ms)
            x += Plain(20_000) + Of<int>(20_000) + made(20_000);
        GC.KeepAlive(x);
        Console.WriteLine("done");
        while (!File.Exists("end"))
            Thread.Sleep(10);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Plain(int n)
    {
        int x = 0;
        for (int i = 0; i < n; i++)
            x += i ^ x;
        return x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Of<T>(int n)
    {
        int x = typeof(T).Name.Length;
        for (int i = 0; i < n; i++)
            x += i ^ x;
        return x;
    }
}

// A blocked session would hold the lock under which an event source is created. Compiled methods fill its stream.
sealed class Source(string name) : EventSource(name);

static class Worker
{
    public static void Run(int ms)
    {
        Stopwatch watch = Stopwatch.StartNew();
        long tell = 100;
        int rounds = 0;
        int x = 0;
        while (watch.ElapsedMilliseconds < ms)
        {
            for (int i = 0; i < 8; i++)
                x += Made.Dynamic(rounds * 8 + i)(20_000);
            rounds++;
            if (watch.ElapsedMilliseconds < tell)
                continue;
            using Source source = new("Worker-" + tell);
            Console.WriteLine($"{watch.ElapsedMilliseconds} {rounds}");
            if (File.Exists("end"))
                break;
            tell = watch.ElapsedMilliseconds + 100;
        }
        GC.KeepAlive(x);
    }
}

static class Made
{
    // for (i = 0; i < n; i++) x = x * 31 + i; return x;
    static void Emit(ILGenerator il)
    {
        LocalBuilder i = il.DeclareLocal(typeof(int));
        LocalBuilder x = il.DeclareLocal(typeof(int));
        Label body = il.DefineLabel();
        Label test = il.DefineLabel();
        il.Emit(OpCodes.Br, test);
        il.MarkLabel(body);
        il.Emit(OpCodes.Ldloc, x);
        il.Emit(OpCodes.Ldc_I4, 31);
        il.Emit(OpCodes.Mul);
        il.Emit(OpCodes.Ldloc, i);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Stloc, x);
        il.Emit(OpCodes.Ldloc, i);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Stloc, i);
        il.MarkLabel(test);
        il.Emit(OpCodes.Ldloc, i);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Blt, body);
        il.Emit(OpCodes.Ldloc, x);
        il.Emit(OpCodes.Ret);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Func<int, int> Dynamic(int number)
    {
        DynamicMethod method = new("Made_" + number, typeof(int), [typeof(int)], typeof(Made).Module);
        Emit(method.GetILGenerator());
        return method.CreateDelegate<Func<int, int>>();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Func<int, int> Collectible(int number)
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Unloaded" + number),
            AssemblyBuilderAccess.RunAndCollect);
        TypeBuilder type = assembly.DefineDynamicModule("m").DefineType("Unloaded_" + number, TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod("Spin", MethodAttributes.Public | MethodAttributes.Static, typeof(int),
            [typeof(int)]);
        Emit(method.GetILGenerator());
        return type.CreateType().GetMethod("Spin")!.CreateDelegate<Func<int, int>>();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Once(int number, Func<int, Func<int, int>> make)
    {
        Func<int, int> method = make(number);
        long begin = CpuClock.ThreadMilliseconds();
        while (CpuClock.ThreadMilliseconds() - begin < 20)
            method(100_000);
    }

    public static void Run(int ms, Func<int, Func<int, int>> make)
    {
        long begin = CpuClock.ThreadMilliseconds();
        int number = 0;
        while (CpuClock.ThreadMilliseconds() - begin < ms)
        {
            Once(number++, make);
            GC.Collect();
            GC.WaitForPendingFinalizers();
            GC.Collect();
        }
        Console.WriteLine($"{number} made");
    }
}
