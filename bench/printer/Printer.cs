// Prints the events of a nettrace file with TraceEvent, one a line as spoor events does: time, process and thread, provider and name, fields. The peer of bench/cases/events.sh.
using System.Text;
using Microsoft.Diagnostics.Tracing;

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

source.Clr.All += Print;
source.Dynamic.All += Print;
source.Process();
output.Flush();
Console.Error.WriteLine($"events {count}");
