// Records a .NET process with Microsoft's client, as dotnet-trace does, and prints what TraceEvent finds in the recording. It verifies the events of gc/ independently.
//
//   watch record PID FILE SECONDS KEYWORDS:LEVEL [PRIVATE-KEYWORDS:LEVEL]   one session, keywords in hex
//   watch sessions PID FILE1 FILE2     two overlapping sessions: 1:4 for 3 s, and 3:5 from second 1 to second 5
//   watch facts FILE LIST              "NAME VALUE" lines; LIST is gc_events.def
//
// Lines of facts: lost; event <name> <count>; gcs, gcs_incomplete, gcs_unpaired (starts without an end, but for the
// last one, and the last background one: a session may end within them); first_gc (number of the first); dynamic <name> <count>; dynamic_outside
// (dynamic events of gc/ outside of any collection); undecoded (dynamic events of gc/ whose bytes the list does not describe exactly);
// "line <name> <field>=<value>..." for each dynamic event, and "raw <name> <hex>" before it; heap_nodes, heap_edges of a snapshot.
using System.Diagnostics.Tracing;
using System.Globalization;
using System.Text;
using Microsoft.Diagnostics.NETCore.Client;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Analysis;
using Microsoft.Diagnostics.Tracing.Parsers;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;
using Spoor;

const string runtime = "Microsoft-Windows-DotNETRuntime";
switch (args)
{
    case ["record", var pid, var file, var seconds, .. var wants]:
        await Record(int.Parse(pid), file, TimeSpan.FromSeconds(double.Parse(seconds)), wants);
        return 0;
    case ["sessions", var pid, var first, var second]:
        var one = Record(int.Parse(pid), first, TimeSpan.FromSeconds(3), ["1:4"]);
        await Task.Delay(1000);
        var two = Record(int.Parse(pid), second, TimeSpan.FromSeconds(4), ["3:5"]);
        await Task.WhenAll(one, two);
        return 0;
    case ["facts", var file, var list]:
        return Facts(file, CollectorEventList.Parse(File.ReadAllText(list)));
    default:
        Console.Error.WriteLine("watch record PID FILE SECONDS KEYWORDS:LEVEL [PRIVATE-KEYWORDS:LEVEL] | sessions PID FILE1 FILE2 | facts FILE LIST");
        return 2;
}

static async Task Record(int pid, string file, TimeSpan time, string[] wants)
{
    var names = new[] { runtime, runtime + "Private" };
    var providers = wants.Select((want, i) =>
    {
        var parts = want.Split(':');
        return new EventPipeProvider(names[i], (EventLevel)int.Parse(parts[1]), long.Parse(parts[0], NumberStyles.HexNumber));
    }).ToList();
    using var session = new DiagnosticsClient(pid).StartEventPipeSession(providers, false, 256);
    await using var output = File.Create(file);
    var copy = session.EventStream.CopyToAsync(output);
    await Task.WhenAny(copy, Task.Delay(time));
    session.Stop();
    await copy;
}

static int Facts(string file, CollectorEventList list)
{
    var counts = new SortedDictionary<string, long>(StringComparer.Ordinal);
    var dynamics = new SortedDictionary<string, long>(StringComparer.Ordinal);
    var lines = new List<string>();
    long undecoded = 0, nodes = 0, edges = 0, starts = 0, ends = 0;
    var started = new HashSet<int>();
    int last = -1, background = -1;
    using var source = new EventPipeEventSource(file);
    source.NeedLoadedDotNetRuntimes();
    source.Clr.GCStart += data =>
    {
        starts++;
        started.Add(data.Count);
        last = data.Count;
        if (data.Type == GCType.BackgroundGC)
            background = data.Count;
    };
    source.Clr.GCStop += data =>
    {
        ends++;
        started.Remove(data.Count);
    };
    source.Clr.GCBulkNode += data => nodes += data.Count;
    source.Clr.GCBulkEdge += data => edges += data.Count;
    source.AllEvents += data => counts[data.EventName] = counts.GetValueOrDefault(data.EventName) + 1;
    new SpoorTraceEventParser(source, list).CollectorEvent += data =>
    {
        dynamics[data.Name] = dynamics.GetValueOrDefault(data.Name) + 1;
        if (!data.Name.StartsWith("Spoor"))
            return;
        lines.Add($"raw {data.Name} {Convert.ToHexStringLower(data.Data)}");
        if (data.IsDecoded && data.Fields.Count() == data.Description!.Fields.Count)
            lines.Add($"line {data.Name}{Line(data)}");
        else
            undecoded++;
    };
    source.Process();

    Console.WriteLine($"lost {source.EventsLost}");
    foreach (var (name, count) in counts)
        Console.WriteLine($"event {name.Replace(' ', '_')} {count}");
    long gcs = 0, incomplete = 0, inside = 0, first = -1;
    foreach (var process in source.Processes())
    {
        if (process.LoadedDotNetRuntime() is not { } loaded)
            continue;
        foreach (var gc in loaded.GC.GCs)
        {
            gcs++;
            first = first < 0 ? gc.Number : Math.Min(first, gc.Number);
            if (!gc.IsComplete)
                incomplete++;
            inside += gc.DynamicEvents?.Count(e => e.Name.StartsWith("Spoor")) ?? 0;
        }
    }
    Console.WriteLine($"gcs {gcs}\ngcs_incomplete {incomplete}\ngc_starts {starts}\ngc_ends {ends}\ngcs_unpaired {started.Count(number => number != last && number != background)}\nfirst_gc {first}");
    foreach (var (name, count) in dynamics)
        Console.WriteLine($"dynamic {name} {count}");
    Console.WriteLine($"dynamic_inside {inside}\ndynamic_outside {lines.Count(line => line.StartsWith("raw ")) - inside}\nundecoded {undecoded}");
    Console.WriteLine($"heap_nodes {nodes}\nheap_edges {edges}");
    foreach (var line in lines)
        Console.WriteLine(line);
    return 0;
}

// The fields as "Name=value ..." for comparison with what trace/gc_dynamic.c reads.
static string Line(CollectorEvent data) => string.Concat(data.Fields.Select(field => $" {field.Key}=" + field.Value switch
{
    string text => $"\"{text}\"",
    object[] values => $"[{string.Join(",", values.Select(Number))}]",
    var value => Number(value),
}));

static string Number(object value) => value switch
{
    float number => number.ToString("G9", CultureInfo.InvariantCulture),
    double number => number.ToString("G17", CultureInfo.InvariantCulture),
    _ => value.ToString()!,
};
