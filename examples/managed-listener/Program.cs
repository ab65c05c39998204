// Reads the events of native threads while garbage collections run all the time.
//
//   managed-listener LIBSPOOR LIBFIRING [EVENTS-PER-THREAD]
//
// Checks the fields of every event, and that each thread's events come in order with no gap beyond the counted losses. The events read plus the events lost are the events fired.
// No firing thread may enter managed code: firing_threads.c detects an entry, and a control thread that does enter proves it.
using System.Diagnostics;
using System.Reflection;
using System.Runtime.InteropServices;

const uint Threads = 4;
ulong perThread = args.Length > 2 ? ulong.Parse(args[2]) : 200_000;

var spoor = NativeLibrary.Load(Path.GetFullPath(args[0]));
var firing = NativeLibrary.Load(Path.GetFullPath(args[1]));
NativeLibrary.SetDllImportResolver(Assembly.GetExecutingAssembly(), (name, _, _) => name switch { "spoor" => spoor, "firing" => firing, _ => 0 });

using var listener = new SpoorListener("Firing", 8 << 20);
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

// The native threads fire during collections. A separate managed thread waits for them, outside of managed code.
if (Firing.firing_begin(Threads, perThread) != 0)
    throw new InvalidOperationException("cannot start the firing threads");
int been = -1;
var ender = new Thread(() =>
{
    been = Firing.firing_end();
    listener.Stop();
});
ender.Start();

var last = new ulong[Threads];
var lost = new ulong[Threads];
var ids = new ulong[Threads];
ulong read = 0;
while (listener.Read(100) is { } some)
{
    if (!some)
        continue;
    if (listener.Name != "shot")
        throw new InvalidOperationException($"an event {listener.Name}");
    var thread = (uint)listener.Field("Thread\0"u8).U64;
    var number = listener.Field("Number\0"u8).U64;
    if (listener.Field("Half\0"u8).F64 != number / 2.0 || SpoorListener.Text(listener.Field("Text\0"u8)) != "naïve")
        throw new InvalidOperationException($"event {number} of thread {thread} has other values");
    if (number != last[thread] + listener.LostBefore + 1)
        throw new InvalidOperationException($"event {number} of thread {thread} after {last[thread]} with {listener.LostBefore} lost between");
    if (ids[thread] != 0 && ids[thread] != listener.ThreadId)
        throw new InvalidOperationException($"thread {thread} changed its id");
    ids[thread] = listener.ThreadId;
    last[thread] = number;
    lost[thread] += listener.LostBefore;
    read++;
}
ender.Join();
Volatile.Write(ref done, true);
collector.Join();

var counts = listener.Counts;
var fired = Threads * perThread;
Console.WriteLine($"fired {fired}, read {read}, lost {counts.Lost}, {(collections > 0 ? "while the collector ran" : "without a collection")}");
if (counts.Written != read || read + counts.Lost != fired)
    throw new InvalidOperationException($"{counts.Written} written, {read} read, {counts.Lost} lost, {fired} fired");
if (been != 0)
    throw new InvalidOperationException($"{been} firing threads have been in managed code");
if (Firing.Control() != 1)
    throw new InvalidOperationException("a thread that was in managed code was not noticed");
if (read == 0 || collections < 3)
    throw new InvalidOperationException($"{read} events, {collections} collections prove nothing");

static unsafe class Firing
{
    [DllImport("firing")] internal static extern int firing_begin(uint threads, ulong eventsPerThread);
    [DllImport("firing")] internal static extern int firing_end();
    [DllImport("firing")] static extern int firing_control(delegate* unmanaged<void> managed);

    [UnmanagedCallersOnly] static void GoIn() => GC.KeepAlive(new object());

    internal static int Control() => firing_control(&GoIn);
}
