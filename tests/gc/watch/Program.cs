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
using System.Buffers.Binary;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.Text;
using System.Text.RegularExpressions;
using Microsoft.Diagnostics.NETCore.Client;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Analysis;
using Microsoft.Diagnostics.Tracing.Parsers;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

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
        return Facts(file, Schema.Read(list));
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

static int Facts(string file, Dictionary<string, Schema> schemas)
{
    var counts = new SortedDictionary<string, long>(StringComparer.Ordinal);
    var dynamics = new SortedDictionary<string, long>(StringComparer.Ordinal);
    var lines = new List<string>();
    long undecoded = 0, nodes = 0, edges = 0, starts = 0, ends = 0;
    var started = new HashSet<int>();
    int last = -1, background = -1;
    using var source = new EventPipeEventSource(file);
    source.NeedLoadedDotNetRuntimes();
    // The analysis needs the events of every parser, and parses dynamic events itself.
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
    source.AllEvents += data =>
    {
        counts[data.EventName] = counts.GetValueOrDefault(data.EventName) + 1;
        if (data.ProviderName != runtime || !data.EventName.StartsWith("GC/") || !IsDynamic(data, out var name, out var bytes))
            return;
        dynamics[name] = dynamics.GetValueOrDefault(name) + 1;
        if (!name.StartsWith("Spoor"))
            return;
        lines.Add($"raw {name} {Convert.ToHexStringLower(bytes)}");
        if (schemas.TryGetValue(Regex.Replace(name, "_V[0-9]+$", ""), out var schema) && schema.Decode(bytes) is { } text)
            lines.Add($"line {name}{text}");
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

// Event 39 has name, size, bytes and instance id. A parser may have changed its id.
static bool IsDynamic(TraceEvent data, out string name, out byte[] bytes)
{
    (name, bytes) = ("", []);
    if (!data.EventName.Contains("Dynamic") && (int)data.ID != 39 && (int)data.ID < 65500)
        return false;
    var payload = data.EventData().AsSpan();
    var end = 0;
    while (end + 1 < payload.Length && (payload[end] | payload[end + 1]) != 0)
        end += 2;
    if (end + 6 > payload.Length)
        return false;
    name = Encoding.Unicode.GetString(payload[..end]);
    var size = BinaryPrimitives.ReadInt32LittleEndian(payload[(end + 2)..]);
    if (size < 0 || end + 6 + size > payload.Length)
        return false;
    bytes = payload.Slice(end + 6, size).ToArray();
    return true;
}

// An entry of gc_events.def, parsed here independently of the C table.
class Schema
{
    readonly List<(string Type, string Name)> fields = [];
    int version;

    public static Dictionary<string, Schema> Read(string path)
    {
        var result = new Dictionary<string, Schema>();
        var text = Regex.Replace(File.ReadAllText(path), @"/\*.*?\*/", "", RegexOptions.Singleline);
        foreach (Match entry in Regex.Matches(text, @"^GC_DYNAMIC\((\w+),\s*(\d+),\s*\d+,\s*\w+,\s*""[^""]*""((?:\s*,\s*\(\s*\w+\s*,\s*\w+\s*\))*)\s*\)", RegexOptions.Multiline))
        {
            var schema = new Schema { version = int.Parse(entry.Groups[2].Value) };
            foreach (Match field in Regex.Matches(entry.Groups[3].Value, @"\(\s*(\w+)\s*,\s*(\w+)\s*\)"))
                schema.fields.Add((field.Groups[1].Value, field.Groups[2].Value));
            result[entry.Groups[1].Value] = schema;
        }
        return result;
    }

    // " Name=value ...", or null when the bytes are not exactly these fields.
    public string? Decode(byte[] bytes)
    {
        var text = new StringBuilder();
        var reader = new BinaryReader(new MemoryStream(bytes));
        try
        {
            if (reader.ReadUInt16() != version)
                return null;
            foreach (var (type, name) in fields)
            {
                text.Append(' ').Append(name).Append('=');
                if (type == "text16")
                {
                    text.Append('"');
                    for (var c = reader.ReadUInt16(); c != 0; c = reader.ReadUInt16())
                        text.Append((char)c);
                    text.Append('"');
                }
                else if (type.EndsWith('s'))
                {
                    var values = new List<string>();
                    for (var left = reader.ReadUInt16(); left > 0; left--)
                        values.Add(Number(reader, type[..^1]));
                    text.Append('[').Append(string.Join(",", values)).Append(']');
                }
                else
                {
                    text.Append(Number(reader, type));
                }
            }
        }
        catch (EndOfStreamException)
        {
            return null;
        }
        return reader.BaseStream.Position == bytes.Length ? text.ToString() : null;
    }

    static string Number(BinaryReader reader, string type) => type switch
    {
        "u8" => reader.ReadByte().ToString(),
        "u16" => reader.ReadUInt16().ToString(),
        "u32" => reader.ReadUInt32().ToString(),
        "u64" or "ptr" or "size" => reader.ReadUInt64().ToString(),
        "i8" => reader.ReadSByte().ToString(),
        "i16" => reader.ReadInt16().ToString(),
        "i32" => reader.ReadInt32().ToString(),
        "i64" => reader.ReadInt64().ToString(),
        "f32" => reader.ReadSingle().ToString("G9", CultureInfo.InvariantCulture),
        "f64" => reader.ReadDouble().ToString("G17", CultureInfo.InvariantCulture),
        _ => throw new InvalidDataException("a type that is not known: " + type),
    };
}
