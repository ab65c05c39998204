// Reads the events and counters of native threads while garbage collections run all the time, with the package Spoor.Listener.
//
//   SPOOR_LIBRARY=libspoor.so managed-listener LIBFIRING [EVENTS-PER-THREAD [EVENTS-PER-SECOND]]
//
// Checks the fields of every event, and that each thread's events come in order with no gap beyond the counted losses. The events read plus the events lost are the events fired.
// No firing thread may enter managed code: firing_threads.c detects an entry, and a control thread that does enter proves it.
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Reflection;
using System.Runtime.InteropServices;
using Spoor;

const uint Threads = 4;
ulong perThread = args.Length > 1 ? ulong.Parse(args[1]) : 200_000;
ulong rate = args.Length > 2 ? ulong.Parse(args[2]) : 0;

var firing = NativeLibrary.Load(Path.GetFullPath(args[0]));
NativeLibrary.SetDllImportResolver(Assembly.GetExecutingAssembly(), (name, _, _) => name == "firing" ? firing : 0);

using var shots = new Shots(Threads);
using var other = new Others();
double counted = 0;
long intervals = 0;
using (var counters = new NativeCounterListener(value =>
       {
           if (value.Name == "shots" && value.Kind == NativeCounterKind.Counter)
               (counted, intervals) = (value.Value, intervals + 1);
       }, TimeSpan.FromMilliseconds(10), "Firing"))
{
    long collections = 0;
    bool done = false;

    // Collections of every generation run from start to end, and always find garbage.
    var collector = new Thread(() =>
    {
        var kept = new object[1000];
        while (!Volatile.Read(ref done))
        {
            for (int i = 0; i < 20_000; i++)
                kept[i % kept.Length] = new byte[i % 200];
            GC.Collect((int)(collections % 3), GCCollectionMode.Forced, blocking: true, compacting: collections % 2 == 0);
            collections++;
        }
    });
    collector.Start();
    while (GC.CollectionCount(0) < 1)
        Thread.Sleep(1);

    shots.EnableEvents("Firing", EventLevel.Informational, (EventKeywords)1);
    other.EnableEvents("firing", EventLevel.Verbose, (EventKeywords)2);
    // The native threads fire during collections. The main thread waits for them, outside of managed code.
    if (Firing.firing_begin(Threads, perThread, rate) != 0)
        throw new InvalidOperationException("cannot start the firing threads");
    int been = Firing.firing_end();
    shots.DisableEvents("Firing");
    var counts = shots.Ended;
    other.DisableEvents("Firing");
    Volatile.Write(ref done, true);
    collector.Join();

    var fired = Threads * perThread;
    Console.WriteLine($"fired {fired}, read {shots.Seen}, lost {counts.Lost}, {(collections > 0 ? "while the collector ran" : "without a collection")}");
    if (shots.Failure != null)
        throw new InvalidOperationException("an event is wrong", shots.Failure);
    if (counts.Written != shots.Seen || shots.Seen + counts.Lost != fired)
        throw new InvalidOperationException($"{counts.Written} written, {shots.Seen} read, {counts.Lost} lost, {fired} fired");
    if (been != 0)
        throw new InvalidOperationException($"{been} firing threads have been in managed code");
    if (Firing.Control() != 1)
        throw new InvalidOperationException("a thread that was in managed code was not noticed");
    if (shots.Seen == 0 || collections < 3)
        throw new InvalidOperationException($"{shots.Seen} events, {collections} collections prove nothing");
    if (other.Values != "True -8 200 -16 60000 -32 4000000000 -64 18446744073709551615 0.5 0.25 x 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 2001-09-09T01:46:40 4660 naïve [1,2] [a,b] {7,in} [{8,x},{9,y}]")
        throw new InvalidOperationException($"an event of all types has the values {other.Values}");
    // The handler that throws is called again.
    if (other.Failures != 1)
        throw new InvalidOperationException($"{other.Failures} failures were reported");
    var patience = Stopwatch.StartNew();
    while ((Volatile.Read(ref counted) != fired || intervals < 2) && patience.Elapsed < TimeSpan.FromSeconds(150))
        Thread.Sleep(10);
    if (counted != fired)
        throw new InvalidOperationException($"the native counter shows {counted}");
}

// The events of all firing threads, without an allocation for each.
sealed class Shots(uint threads) : NativeEventListener(new NativeListenerOptions { BufferBytes = 16 << 20 })
{
    readonly ulong[] last = new ulong[threads], ids = new ulong[threads];

    public ulong Seen;
    public Exception? Failure;
    public (ulong Written, ulong Lost) Ended { get; private set; }

    protected override void OnEventWritten(in NativeEvent data)
    {
        if (data.ProviderName != "Firing" || data.EventName != "shot" || data.EventId != 1 || data.Level != EventLevel.Informational)
            throw new InvalidOperationException($"an event {data.ProviderName}/{data.EventName}");
        var thread = (uint)data.GetUInt64("Thread\0"u8);
        var number = data.GetUInt64("Number\0"u8);
        if (data.GetDouble("Half\0"u8) != number / 2.0 || !data.GetBytes("Text\0"u8).SequenceEqual("naïve"u8))
            throw new InvalidOperationException($"event {number} of thread {thread} has other values");
        if (number != last[thread] + data.LostBefore + 1)
            throw new InvalidOperationException($"event {number} of thread {thread} after {last[thread]} with {data.LostBefore} lost between");
        if (ids[thread] != 0 && ids[thread] != data.OSThreadId)
            throw new InvalidOperationException($"thread {thread} changed its id");
        ids[thread] = data.OSThreadId;
        last[thread] = number;
        Seen++;
    }

    protected override void OnHandlerFailed(Exception exception) => Failure ??= exception;
    protected override void OnDisabled(string provider, ulong written, ulong lost) => Ended = (written, lost);
}

// Two events with a field of every type: the first makes the handler throw.
sealed class Others : NativeEventListener
{
    public string Values = "";
    public int Failures;

    protected override void OnEventWritten(in NativeEvent data)
    {
        if (data.EventName == "faulty")
            throw new InvalidOperationException("a handler that fails");
        Values = string.Join(" ", data.Payload.Select(Text));
    }

    protected override void OnHandlerFailed(Exception exception) => Failures++;

    static string Text(object? value) => value switch
    {
        DateTime time => time.ToString("s"),
        double or float => FormattableString.Invariant($"{value}"),
        object?[] members and not string[] => members.Length > 0 && members[0] is object?[] ? $"[{string.Join(",", members.Select(Text))}]" : $"{{{string.Join(",", members.Select(Text))}}}",
        Array array => $"[{string.Join(",", array.Cast<object>().Select(Text))}]",
        _ => $"{value}",
    };
}

static unsafe class Firing
{
    [DllImport("firing")] internal static extern int firing_begin(uint threads, ulong eventsPerThread, ulong eventsPerSecond);
    [DllImport("firing")] internal static extern int firing_end();
    [DllImport("firing")] static extern int firing_control(delegate* unmanaged<void> managed);

    [UnmanagedCallersOnly] static void GoIn() => GC.KeepAlive(new object());

    internal static int Control() => firing_control(&GoIn);
}
