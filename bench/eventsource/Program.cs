// The .NET side of bench/run lib: the cost of an event with the same four fields for the firing thread, through EventSource and EventPipe. Another thread of this
// program writes the session, which has no stacks, into a file. Prints "event_ns VALUE".
//
//   eventsource FILE           WriteEventCore, as the documentation recommends for speed: no array, no boxing
//   eventsource FILE plain     WriteEvent(id, ...), as in most event sources
using System.Diagnostics;
using System.Diagnostics.Tracing;
using Microsoft.Diagnostics.NETCore.Client;

const int batch = 1000, burst = 8, rounds = 250;
string[] texts = ["abcdefghijklmn", "bbcdefghijklmn", "cbcdefghijklmn", "dbcdefghijklmn"];
var log = BenchSource.Log;
bool plain = args is [_, "plain"];
var client = new DiagnosticsClient(Environment.ProcessId);
var session = client.StartEventPipeSession(new EventPipeSessionConfiguration([new EventPipeProvider("Bench-EventSource", EventLevel.Informational, 1)],
    circularBufferSizeMB: 256, requestRundown: false, requestStackwalk: false));
long drained = 0;
var drain = new Thread(() =>
{
    using var file = File.Create(args[0]);
    var buffer = new byte[1 << 16];
    for (int n; (n = session.EventStream.Read(buffer)) > 0; drained += n)
        file.Write(buffer, 0, n);
});
drain.Start();
if (log.ConstructionException is { } wrong)
    throw wrong;
while (!log.IsEnabled())
    Thread.Sleep(10);

var costs = new double[burst * rounds];
// The first run compiles the code; the second run, optimized, is the result.
for (int pass = 0; pass < 2; pass++)
{
    uint number = 0;
    for (int round = 0, at = 0; round < rounds; round++)
    {
        for (int b = 0; b < burst; b++)
        {
            long before = Stopwatch.GetTimestamp();
            for (int i = 0; i < batch; i++, number++)
                if (plain)
                    log.Plain(number, number * 3UL, number * 0.5, texts[number & 3]);
                else
                    log.Four(number, number * 3UL, number * 0.5, texts[number & 3]);
            costs[at++] = Stopwatch.GetElapsedTime(before).TotalNanoseconds / batch;
        }
        Thread.Sleep(20); // so that no buffer fills
    }
}
session.Stop();
drain.Join();
Array.Sort(costs);
Console.WriteLine($"event_ns {costs[costs.Length / 2]:F2}\ndrained_bytes {drained}");

[EventSource(Name = "Bench-EventSource")]
sealed class BenchSource : EventSource
{
    public static readonly BenchSource Log = new();

    public static class Keywords
    {
        public const EventKeywords Bench = (EventKeywords)1;
    }

    [Event(2, Level = EventLevel.Informational, Keywords = Keywords.Bench)]
    public void Plain(uint number, ulong bytes, double price, string name) => WriteEvent(2, number, bytes, price, name);

    [Event(1, Level = EventLevel.Informational, Keywords = Keywords.Bench)]
    public unsafe void Four(uint number, ulong bytes, double price, string name)
    {
        if (!IsEnabled())
            return;
        fixed (char* text = name)
        {
            EventData* data = stackalloc EventData[4];
            data[0] = new EventData { DataPointer = (nint)(&number), Size = sizeof(uint) };
            data[1] = new EventData { DataPointer = (nint)(&bytes), Size = sizeof(ulong) };
            data[2] = new EventData { DataPointer = (nint)(&price), Size = sizeof(double) };
            data[3] = new EventData { DataPointer = (nint)text, Size = (name.Length + 1) * sizeof(char) };
            WriteEventCore(1, 4, data);
        }
    }
}
