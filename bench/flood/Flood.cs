// Writes events at a steady rate: Flood EVENTS_A_SECOND SECONDS [THREADS]. The source Bench-Flood has one event with three fields: a number, a text and a number. Sixteen
// call paths fire it in turn. Prints "ready" first, and the number of written events at the end.
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Runtime.CompilerServices;

int rate = int.Parse(args[0]);
double seconds = double.Parse(args[1]);
int threads = args.Length > 2 ? int.Parse(args[2]) : 2;
long written = 0;
Console.WriteLine("ready");
var all = Enumerable.Range(0, threads).Select(_ => new Thread(() =>
{
    var watch = Stopwatch.StartNew();
    long own = 0;
    while (watch.Elapsed.TotalSeconds < seconds)
    {
        long due = (long)(watch.Elapsed.TotalSeconds * rate / threads);
        for (; own < due; own++)
            Places.Write((int)own & 15, own);
        Thread.Sleep(1);
    }
    Interlocked.Add(ref written, own);
})).ToList();
all.ForEach(thread => thread.Start());
all.ForEach(thread => thread.Join());
Console.WriteLine($"{written} events");

static class Places
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Write(int depth, long number)
    {
        if (depth > 0)
            Write(depth - 1, number);
        else
            Source.Log.Order(number, "an order of the usual size", 0.25);
    }
}

[EventSource(Name = "Bench-Flood")]
sealed class Source : EventSource
{
    public static readonly Source Log = new();

    [Event(1)]
    public unsafe void Order(long number, string text, double weight)
    {
        if (!IsEnabled())
            return;
        fixed (char* chars = text)
        {
            EventData* data = stackalloc EventData[3];
            data[0] = new EventData { DataPointer = (IntPtr)(&number), Size = 8 };
            data[1] = new EventData { DataPointer = (IntPtr)chars, Size = (text.Length + 1) * 2 };
            data[2] = new EventData { DataPointer = (IntPtr)(&weight), Size = 8 };
            WriteEventCore(1, 3, data);
        }
    }
}
