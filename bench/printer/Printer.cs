// Reads a nettrace file with TraceEvent, as the peer of bench/cases/events.sh and answers.sh.
//
//   Printer FILE              prints the events, one a line as spoor events does: time, process and thread, provider and name, fields
//   Printer FILE events       counts them
//   Printer FILE exceptions   counts exceptions by process, type and message
//   Printer FILE gc           lists the collections as TraceEvent's own analysis has them
using System.Text;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Analysis;

using var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false), 1 << 16);
using var source = new EventPipeEventSource(args[0]);
long count = 0;

void Print(TraceEvent data)
{
    count++;
    output.Write($"{data.TimeStamp:HH:mm:ss.ffffff}  {data.ProcessID}/{data.ThreadID}  {data.ProviderName}/{data.EventName} ");
    var names = data.PayloadNames;
    for (var i = 0; i < names.Length; i++)
        output.Write($" {names[i]}={data.PayloadString(i)}");
    output.Write('\n');
}

switch (args.ElementAtOrDefault(1))
{
    case "events":
        source.AllEvents += _ => count++;
        source.Process();
        Console.WriteLine($"events {count}");
        return;
    case "exceptions":
        var exceptions = new Dictionary<(int, string, string), int>();
        source.Clr.ExceptionStart += data =>
        {
            var key = (data.ProcessID, data.ExceptionType, data.ExceptionMessage);
            exceptions[key] = exceptions.GetValueOrDefault(key) + 1;
        };
        source.Process();
        foreach (var (key, times) in exceptions.OrderByDescending(pair => pair.Value).Take(10))
            output.WriteLine($"{times} {key}");
        return;
    case "gc":
        source.NeedLoadedDotNetRuntimes();
        source.Process();
        foreach (var process in source.Processes())
            foreach (var gc in process.LoadedDotNetRuntime()?.GC.GCs ?? [])
                output.WriteLine($"{process.ProcessID} {gc.Number} {gc.Generation} {gc.Reason} {gc.PauseDurationMSec}");
        return;
}
source.Clr.All += Print;
source.Dynamic.All += Print;
source.Process();
output.Flush();
Console.Error.WriteLine($"events {count}");
