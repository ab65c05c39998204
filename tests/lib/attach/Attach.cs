// Attach.cs: Microsoft's client and reader (TraceEvent) with a C program that uses libspoor (examples/server). Each command prints what it checked and exits with 1 at the first difference.
//
//   attach info PID             ProcessInfo, environment, refused commands
//   attach events PID FILE      every type of field, static and run-time events, activities, by TraceEvent
//   attach sessions PID N       N sessions, eight at a time
//   attach counters PID         EventCounters and System.Diagnostics.Metrics, field by field
//   attach stacks PID FILE      samples with names, by TraceLog
//   attach hosted LIBSPOOR      in this process, which has a runtime: libspoor (started here, or with "-" before) does not replace the runtime's socket
using System.Diagnostics.Tracing;
using System.Globalization;
using Microsoft.Diagnostics.NETCore.Client;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.Parsers;

CultureInfo.DefaultThreadCurrentCulture = CultureInfo.InvariantCulture;
if (args[0] == "hosted")
{
    Hosted(args[1]);
    return 0;
}
int pid = int.Parse(args[1]);
var client = new DiagnosticsClient(pid);
switch (args[0])
{
    case "info": Info(); break;
    case "events": Events(args[2]); break;
    case "sessions": Sessions(int.Parse(args[2])); break;
    case "counters": Counters(); break;
    case "stacks": Stacks(args[2]); break;
    default: throw new ArgumentException(args[0]);
}
return 0;

static void Hold(string what, object? is_, object? wanted)
{
    string a = Text(is_), b = Text(wanted);
    if (a == b)
        return;
    Console.WriteLine($"FAILED {what}: {a}, wanted {b}");
    Environment.Exit(1);
}

static string Text(object? value) => value switch
{
    null => "null",
    double d => d.ToString("R", CultureInfo.InvariantCulture),
    float f => f.ToString("R", CultureInfo.InvariantCulture),
    DateTime t => t.ToUniversalTime().ToString("O"),
    string s => s,
    char c => $"U+{(int)c:x4}",
    System.Collections.IDictionary map => "{" + string.Join(",", map.Keys.Cast<object>().Select(k => k + ":" + Text(map[k]))) + "}",
    IEnumerable<KeyValuePair<string, object>> pairs => "{" + string.Join(",", pairs.Select(p => p.Key + ":" + Text(p.Value))) + "}",
    System.Collections.IEnumerable list => "[" + string.Join(",", list.Cast<object>().Select(Text)) + "]",
    IFormattable n => n.ToString(null, CultureInfo.InvariantCulture),
    _ => value.ToString() ?? "",
};

// The version of the program at this socket, from the end of ProcessInfo2.
static string? Version(string path)
{
    using var socket = new System.Net.Sockets.Socket(System.Net.Sockets.AddressFamily.Unix, System.Net.Sockets.SocketType.Stream, System.Net.Sockets.ProtocolType.Unspecified);
    try { socket.Connect(new System.Net.Sockets.UnixDomainSocketEndPoint(path)); }
    catch (System.Net.Sockets.SocketException) { return null; }
    socket.Send(System.Text.Encoding.ASCII.GetBytes("DOTNET_IPC_V1\0\u0014\0\u0004\u0004\0\0"));
    using var stream = new MemoryStream();
    new System.Net.Sockets.NetworkStream(socket).CopyTo(stream);
    string text = System.Text.Encoding.Unicode.GetString(stream.GetBuffer(), 20, (int)stream.Length - 20).TrimEnd('\0');
    return text[(text.LastIndexOf('\0') + 1)..];
}

[System.Runtime.InteropServices.DllImport("libspoor")]
static extern int spoor_start(IntPtr options);

static void Hosted(string library)
{
    string stat = File.ReadAllText("/proc/self/stat");
    string key = stat[(stat.LastIndexOf(')') + 2)..].Split(' ')[19];
    string folder = Environment.GetEnvironmentVariable("TMPDIR")!.TrimEnd('/');
    string seen = library == "-" ? "dotnet-diagnostic" : "spoor-diagnostic", number = library == "-" ? "0" + key : key;
    string theirs = $"{folder}/dotnet-diagnostic-{Environment.ProcessId}-{key}-socket", ours = $"{folder}/{seen}-{Environment.ProcessId}-{number}-socket";
    if (library != "-")
    {
        System.Runtime.InteropServices.NativeLibrary.SetDllImportResolver(typeof(Program).Assembly, (name, assembly, path) =>
            name == "libspoor" ? System.Runtime.InteropServices.NativeLibrary.Load(library) : IntPtr.Zero);
        Hold("spoor_start", spoor_start(IntPtr.Zero), 0);
    }
    for (int i = 0; i < 1200 && (Version(theirs) == null || Version(ours) == null); i++)
        Thread.Sleep(50);
    string? runtime = Version(theirs), spoor = Version(ours);
    Hold("the runtime's socket", runtime != null && !runtime.Contains("libspoor"), true);
    Hold("libspoor's socket", spoor != null && spoor.Contains("libspoor"), true);
    // Like the tools: the newest socket with this process id.
    string chosen = Directory.GetFiles(folder, $"dotnet-diagnostic-{Environment.ProcessId}-*-socket").OrderByDescending(File.GetLastWriteTimeUtc).First();
    Hold("the socket that tools take", chosen, theirs);
    Console.WriteLine($"hosted: runtime {runtime}, libspoor {spoor}");
}

void Info()
{
    var environment = client.GetProcessEnvironment();
    Hold("environment", environment["SPOOR_TEST_WORD"], "a=b; c");
    client.ResumeRuntime();
    // Commands that libspoor does not have are refused, and the program continues.
    foreach (var (what, act) in new (string, Action)[] {
        ("dump", () => client.WriteDump(DumpType.Normal, "/nonexistent/x")),
        ("variable", () => client.SetEnvironmentVariable("A", "B")) })
    {
        try { act(); Hold(what, "accepted", "refused"); }
        catch (UnsupportedCommandException) { }
    }
    Console.WriteLine($"info: {environment.Count} variables");
}

// Writes a session's stream to a file. Stops it like the tools: reads until the end of the stream.
static void Record(DiagnosticsClient client, IEnumerable<EventPipeProvider> providers, string file, TimeSpan time, bool rundown)
{
    using var session = client.StartEventPipeSession(providers, rundown, 256);
    using var output = File.Create(file);
    var copy = session.EventStream.CopyToAsync(output);
    Thread.Sleep(time);
    session.Stop();
    if (!copy.Wait(TimeSpan.FromSeconds(20)))
        Hold("end of the stream", "none within 20 s", "at once");
}

void Events(string file)
{
    Record(client, new[] {
        new EventPipeProvider("Example", EventLevel.Verbose, -1),
        new EventPipeProvider("Example-Dynamic", EventLevel.Informational, 0x10),
        new EventPipeProvider("Spoor-Activity", EventLevel.Informational, -1) }, file, TimeSpan.FromSeconds(1), false);

    var seen = new Dictionary<string, int>();
    var wanted = new Dictionary<string, (string, object)[]>
    {
        ["Everything"] = new (string, object)[] {
            ("Boolean", true), ("I8", (sbyte)-8), ("U8", (byte)8), ("I16", (short)-16), ("U16", (ushort)16), ("I32", -32), ("U32", 32u),
            ("I64", -64L), ("U64", ulong.MaxValue), ("F32", 0.25f), ("F64", 1.0 / 3), ("Char", '\u20ac'),
            ("Guid", new Guid("00112233-4455-6677-8899-aabbccddeeff")), ("Time", DateTimeOffset.FromUnixTimeSeconds(1700000000).UtcDateTime),
            ("Pointer", 0x1234ul), ("Text", "na\u00efve \U0001f600"), ("Text16", "wid\u00e9\U0001f600") },
        ["Arrays"] = new (string, object)[] {
            ("Blob", new byte[] { 1, 2, 254, 255 }), ("Integers", new[] { -1, 0, int.MaxValue }), ("Doubles", new[] { 0.5, -1e300 }),
            ("Texts", new[] { "one", "", "dr\u00e9i" }), ("Address", "{Host:localhost,Port:8080}"), ("Last", 42u) },
        ["Request"] = new (string, object)[] { ("Path", "/orders") },
        ["Checkout"] = new (string, object)[] { ("Item", "tea"), ("Price", 2.5), ("Customer", "{Name:Ada,Known:True}") },
    };
    var names = new Dictionary<string, string[]> { ["Request"] = new[] { "Number", "Path", "Milliseconds" }, ["Checkout"] = new[] { "Number", "Item", "Price", "Customer" } };
    Guid workActivity = default, requestRelated = default;
    int open = 0, nested = 0, related = 0;
    using var source = new EventPipeEventSource(file);
    source.Dynamic.All += e =>
    {
        if (e.ProviderName is not ("Example" or "Example-Dynamic" or "Spoor-Activity"))
            return;
        seen[e.EventName] = seen.GetValueOrDefault(e.EventName) + 1;
        Hold("process", e.ProcessID, pid);
        if (wanted.TryGetValue(e.EventName, out var fields))
        {
            string[] has = names.GetValueOrDefault(e.EventName) ?? fields.Select(f => f.Item1).ToArray();
            Hold(e.EventName + " names", e.PayloadNames, has);
            foreach (var (name, value) in fields)
                Hold(e.EventName + "." + name, e.PayloadByName(name), value);
        }
        // WorkStart has the activity of the request. Request has the nested activity, whose start has the first one as its related activity.
        switch (e.EventName)
        {
            case "ActivityStart" or "Activity/Start":
                if ((string)e.PayloadByName("Name") == "query")
                {
                    related++;
                    requestRelated = e.RelatedActivityID;
                    if (open > 0)
                        Hold("related activity", requestRelated, workActivity);
                    string trace = (string)e.PayloadByName("TraceId"), span = (string)e.PayloadByName("SpanId");
                    Hold("ids' lengths", trace.Length + span.Length, 48);
                    Hold("activity id from trace and span", Convert.ToHexString(e.ActivityID.ToByteArray()).ToLowerInvariant(), trace[..16] + span);
                    Hold("parent span", e.PayloadByName("ParentSpanId"), Convert.ToHexString(requestRelated.ToByteArray()).ToLowerInvariant()[16..]);
                }
                break;
            case "Work/Start" or "WorkStart":
                open++;
                workActivity = e.ActivityID;
                Hold("an activity", workActivity != default, true);
                break;
            case "Request":
                if (open > 0)
                {
                    nested++;
                    Hold("its own activity", e.ActivityID != workActivity && e.ActivityID != default, true);
                }
                break;
            case "Work/Stop" or "WorkStop":
                if (open > 0)
                    Hold("the outer activity again", e.ActivityID, workActivity);
                break;
        }
    };
    source.Process();
    Hold("lost events", source.EventsLost, 0);
    foreach (string name in new[] { "Everything", "Arrays", "Request", "Detail", "Empty", "Checkout" })
        if (seen.GetValueOrDefault(name) < 20)
            Hold("how often " + name, seen.GetValueOrDefault(name), "20 or more");
    Hold("nested activities", nested > 20 && related > 20, true);
    Console.WriteLine("events: " + string.Join(" ", seen.OrderBy(s => s.Key).Select(s => s.Key + "=" + s.Value)));
}

// Copies a stream; sets `described` when the copy has the name of a provider, which precedes its first event.
static async Task Copy(Stream from, MemoryStream to, string provider, ManualResetEventSlim described)
{
    var name = System.Text.Encoding.Unicode.GetBytes(provider + "\0");
    var buffer = new byte[16384];
    int read;
    while ((read = await from.ReadAsync(buffer)) > 0)
    {
        to.Write(buffer, 0, read);
        if (!described.IsSet && to.GetBuffer().AsSpan(0, (int)to.Length).IndexOf(name) >= 0)
            described.Set();
    }
}

void Sessions(int count)
{
    int begun = 0, most = 0, now = 0, events = 0;
    Parallel.For(0, count, new ParallelOptions { MaxDegreeOfParallelism = 8 }, i =>
    {
        var mine = new DiagnosticsClient(pid);
        // Every third session enables an unknown provider; every fifth is closed without a stop. The others are stopped when they have an event.
        string provider = i % 3 == 0 ? "Nobody-Has-This" : "Example";
        using var session = mine.StartEventPipeSession(new[] { new EventPipeProvider(provider, EventLevel.Verbose, -1) }, i % 2 == 0, 16);
        int running = Interlocked.Increment(ref now);
        int seenMost;
        while (running > (seenMost = Volatile.Read(ref most)))
            Interlocked.CompareExchange(ref most, running, seenMost);
        if (i % 5 == 4)
        {
            Thread.Sleep(20);
            session.Dispose();
        }
        else
        {
            using var stream = new MemoryStream();
            using var described = new ManualResetEventSlim();
            var copy = Copy(session.EventStream, stream, "Example", described);
            if (provider == "Example")
                Hold("an event of " + i, described.Wait(TimeSpan.FromSeconds(120)), true);
            Thread.Sleep(i % 7 * 30);
            session.Stop();
            Hold("end of stream " + i, copy.Wait(TimeSpan.FromSeconds(120)), true);
            Hold("end tag " + i, stream.GetBuffer()[stream.Length - 1], (byte)1);
            stream.Position = 0;
            using var source = new EventPipeEventSource(stream);
            int own = 0;
            source.Dynamic.All += e => own += e.ProviderName == "Example" ? 1 : 0;
            source.Process();
            Hold("lost in " + i, source.EventsLost, 0);
            Hold("events in " + i, own > 0, provider == "Example");
            Interlocked.Add(ref events, own);
        }
        Interlocked.Decrement(ref now);
        Interlocked.Increment(ref begun);
    });
    Hold("sessions", begun, count);
    Hold("several at once", most > 2, true);
    Console.WriteLine($"sessions: {begun}, {most} at once, {events} events");
}

void Counters()
{
    var readings = new Dictionary<string, List<IDictionary<string, object>>>();
    var series = new List<(string Event, Dictionary<string, object> Fields)>();
    using (var session = client.StartEventPipeSession(new[] {
        new EventPipeProvider("Example.Counters", EventLevel.Informational, 0, new Dictionary<string, string> { ["EventCounterIntervalSec"] = "0.5" }),
        new EventPipeProvider("System.Diagnostics.Metrics", EventLevel.Informational, 2, new Dictionary<string, string> {
            ["SessionId"] = "SHARED", ["Metrics"] = "Example.Counters", ["RefreshInterval"] = "0.5", ["MaxTimeSeries"] = "1000",
            ["MaxHistograms"] = "10", ["ClientId"] = "one" }) }, false, 256))
    {
        using var source = new EventPipeEventSource(session.EventStream);
        source.Dynamic.All += e =>
        {
            // Read as dotnet-counters does.
            if (e.EventName == "EventCounters" && e.ProviderName == "Example.Counters")
            {
                var outer = (IDictionary<string, object>)e.PayloadValue(0);
                var fields = (IDictionary<string, object>)outer["Payload"];
                string key = fields["Name"] + "|" + fields["Metadata"];
                if (!readings.ContainsKey(key))
                    readings[key] = new();
                readings[key].Add(fields);
            }
            else if (e.ProviderName == "System.Diagnostics.Metrics")
            {
                var fields = e.PayloadNames.ToDictionary(n => n, n => e.PayloadByName(n));
                fields["$id"] = (int)e.ID;
                fields["$version"] = e.Version;
                series.Add((e.EventName.Replace("/", ""), fields)); // the reader removes Start and Stop from a name
            }
        };
        var reading = Task.Run(() => source.Process());
        Thread.Sleep(2300);
        session.Stop();
        Hold("end of the stream", reading.Wait(20000), true);
    }

    // EventCounters.
    string[] rate = { "Name", "DisplayName", "DisplayRateTimeScale", "Increment", "IntervalSec", "Metadata", "Series", "CounterType", "DisplayUnits" };
    string[] mean = { "Name", "DisplayName", "Mean", "StandardDeviation", "Count", "Min", "Max", "IntervalSec", "Series", "CounterType", "Metadata", "DisplayUnits" };
    foreach (var (key, unit, name, kind) in new[] {
        ("requests|", "{request}", "Requests", "Sum"), ("requests|http.method:POST", "{request}", "Requests", "Sum"), ("uptime|", "s", "Uptime", "Sum"),
        ("open|", "", "open", "Mean"), ("temperature|", "Cel", "Temperature", "Mean"), ("latency|", "ms", "Latency", "Mean"), ("half|", "1", "Half", "Mean") })
    {
        if (!readings.TryGetValue(key, out var list))
            Hold("counter " + key, "absent", "there");
        Hold("readings of " + key, list!.Count is >= 3 and <= 5, true);
        foreach (var fields in list)
        {
            Hold(key + " fields", fields.Select(f => f.Key), kind == "Sum" ? rate : mean);
            Hold(key + " unit", fields["DisplayUnits"], unit);
            Hold(key + " display name", fields["DisplayName"], name);
            Hold(key + " type", fields["CounterType"], kind);
            Hold(key + " series", fields["Series"], "Interval=500");
            float seconds = (float)fields["IntervalSec"];
            Hold(key + " interval " + seconds, seconds is > 0.3f and < 1.5f, true);
        }
    }
    double Increment(string key) => readings[key].Average(f => (double)f["Increment"] / (float)f["IntervalSec"]);
    double perSecond = Increment("requests|");
    Hold("requests a second " + perSecond, perSecond is > 30 and < 600, true);
    double quarter = Increment("requests|http.method:POST") / perSecond;
    Hold("a quarter are POST: " + quarter, quarter is > 0.15 and < 0.35, true);
    foreach (var fields in readings["latency|"])
    {
        double least = (double)fields["Min"], most = (double)fields["Max"], average = (double)fields["Mean"];
        Hold($"latency {least} {average} {most}", least is >= 0.9 and <= 12 && most is >= 88 and <= 103 && average is > 40 and < 60, true);
        Hold("latency count", (int)fields["Count"] > 15, true);
        Hold("latency deviation " + fields["StandardDeviation"], (double)fields["StandardDeviation"] is > 20 and < 40, true);
    }
    Hold("half", readings["half|"][0]["Mean"], 0.5);
    Hold("temperature", (double)readings["temperature|"][0]["Mean"] is >= 20 and <= 24, true);

    // System.Diagnostics.Metrics.
    string order = string.Join(" ", series.Select(s => s.Event).Where(n => n is "BeginInstrumentReporting" or "InitialInstrumentEnumerationComplete" or "CollectionStart" or "CollectionStop").Take(9));
    Hold("order", order, "BeginInstrumentReporting BeginInstrumentReporting BeginInstrumentReporting BeginInstrumentReporting BeginInstrumentReporting " +
        "BeginInstrumentReporting InitialInstrumentEnumerationComplete CollectionStart CollectionStop");
    foreach (var (_, fields) in series)
        if (fields.ContainsKey("sessionId"))
            Hold("session id", fields["sessionId"], "SHARED");
    var begins = series.Where(s => s.Event == "BeginInstrumentReporting").ToDictionary(s => (string)s.Fields["instrumentName"], s => s.Fields);
    foreach (var (name, type, unit, words) in new[] { ("requests", "Counter`1", "{request}", "Requests"), ("open", "UpDownCounter`1", "", ""),
        ("temperature", "Gauge`1", "Cel", "Temperature"), ("latency", "Histogram`1", "ms", "Latency"), ("uptime", "ObservableCounter`1", "s", "Uptime"),
        ("half", "ObservableGauge`1", "1", "Half") })
    {
        var fields = begins[name];
        Hold("begin id, version", $"{fields["$id"]} {fields["$version"]}", "7 3");
        Hold("begin fields", fields.Keys.Where(k => k[0] != '$'), new[] { "sessionId", "meterName", "meterVersion", "instrumentName", "instrumentType", "unit",
            "description", "instrumentTags", "meterTags", "meterScopeHash", "instrumentId", "meterTelemetrySchemaUrl" });
        Hold(name, $"{fields["meterName"]} {fields["meterVersion"]} {fields["instrumentType"]} {fields["unit"]} {fields["description"]}",
            $"Example.Counters 1.0 {type} {unit} {words}");
        Hold(name + " id", (int)fields["instrumentId"] > 0, true);
    }
    Dictionary<string, object>[] Of(string ev, string instrument, string tags) => series.Where(s => s.Event == ev && (string)s.Fields["instrumentName"] == instrument &&
        (string)s.Fields["tags"] == tags).Select(s => s.Fields).ToArray();
    double Number(object text) => double.Parse((string)text, CultureInfo.InvariantCulture);
    foreach (var (ev, id, version, instrument, tags, last) in new[] {
        ("CounterRateValuePublished", 4, 2, "requests", "", "rate value instrumentId"), ("CounterRateValuePublished", 4, 2, "requests", "http.method=POST", "rate value instrumentId"),
        ("CounterRateValuePublished", 4, 2, "uptime", "", "rate value instrumentId"), ("UpDownCounterRateValuePublished", 16, 2, "open", "", "rate value instrumentId"),
        ("GaugeValuePublished", 5, 2, "temperature", "", "lastValue instrumentId"), ("GaugeValuePublished", 5, 2, "half", "", "lastValue instrumentId"),
        ("HistogramValuePublished", 6, 2, "latency", "", "quantiles count sum instrumentId") })
    {
        var list = Of(ev, instrument, tags);
        Hold($"{ev} of {instrument} {tags}: {list.Length}", list.Length is >= 3 and <= 5, true);
        foreach (var fields in list)
        {
            Hold("id, version of " + ev, $"{fields["$id"]} {fields["$version"]}", $"{id} {version}");
            Hold("fields of " + ev, string.Join(" ", fields.Keys.Where(k => k[0] != '$')), "sessionId meterName meterVersion instrumentName unit tags " + last);
            Hold("instrument id", fields["instrumentId"], begins[instrument]["instrumentId"]);
        }
    }
    var counted = Of("CounterRateValuePublished", "requests", "");
    for (int i = 1; i < counted.Length; i++)
        Hold("value is what was before and the rate", Number(counted[i]["value"]), Number(counted[i - 1]["value"]) + Number(counted[i]["rate"]));
    var uptime = Of("CounterRateValuePublished", "uptime", "");
    Hold("first rate of an observable", uptime[0]["rate"], "");
    Hold("its value", Number(uptime[0]["value"]) > 0, true);
    foreach (var fields in Of("HistogramValuePublished", "latency", ""))
    {
        var quantiles = ((string)fields["quantiles"]).Split(';').Select(q => q.Split('=')).ToArray();
        Hold("quantiles", string.Join(" ", quantiles.Select(q => q[0])), "0.5 0.95 0.99");
        double half = Number(quantiles[0][1]), high = Number(quantiles[1][1]), top = Number(quantiles[2][1]);
        Hold($"quantiles {half} {high} {top}", half is > 40 and < 62 && high is > 85 and < 102 && top is > 88 and < 103, true);
        Hold("sum and count", (double)fields["sum"] / (int)fields["count"] is > 40 and < 60, true);
    }
    Hold("half", Of("GaugeValuePublished", "half", "")[0]["lastValue"], "0.5");
    Console.WriteLine($"counters: {readings.Count} EventCounters, {begins.Count} instruments, {series.Count} events");
}

void Stacks(string file)
{
    Record(client, new[] { new EventPipeProvider("Microsoft-DotNETCore-SampleProfiler", EventLevel.Informational, 0), new EventPipeProvider("Example", EventLevel.Informational, 2) },
        file, TimeSpan.FromSeconds(3), true);
    string etlx = TraceLog.CreateFromEventPipeDataFile(file);
    using var log = new TraceLog(etlx);
    int samples = 0, running = 0, leaf = 0, named = 0, made = 0, requests = 0, frames = 0, nameless = 0;
    foreach (var e in log.Events)
    {
        bool sample = e.ProviderName == "Microsoft-DotNETCore-SampleProfiler";
        bool request = e.ProviderName == "Example" && e.EventName == "Request";
        if (!sample && !request)
            continue;
        var methods = new List<string>();
        for (var at = e.CallStack(); at != null; at = at.Caller)
        {
            methods.Add(at.CodeAddress.FullMethodName);
            frames++;
            if (at.CodeAddress.FullMethodName == "")
                nameless++;
        }
        string chain = string.Join(" ", methods);
        if (request && chain.Contains("answer") && chain.Contains("work"))
            requests++;
        if (!sample)
            continue;
        samples++;
        if (BitConverter.ToInt32(e.EventData(), 0) != 2)
            continue;
        running++;
        if (chain.Contains("burn_step") && chain.Contains("burn_outer") && chain.IndexOf("burn_step") < chain.IndexOf("burn_outer"))
            named++;
        if (chain.Contains("Rule::match"))
            made++;
        if (chain.Contains("burn_step .burn_inner "))
            leaf++;
    }
    Console.WriteLine($"stacks: {samples} samples, {running} running, {named} in burn_step below burn_outer, {leaf} of them with the caller of the leaf, {made} through Rule::match, {requests} requests; " +
        $"{nameless} of {frames} frames without a name");
    Hold("samples", running > 15, true); // 4 ms of CPU time each, on a machine that may be busy
    Hold("named", named * 2 > running, true);
    if (System.Runtime.InteropServices.RuntimeInformation.ProcessArchitecture == System.Runtime.InteropServices.Architecture.X64)
    {
        Hold("made", made * 10 > named * 8, true);
        Hold("leaf", leaf * 10 > named * 8, true);
    }
    Hold("requests with their stacks", requests > 30, true);
    Hold("frames without a name", nameless * 100 < frames, true);
}
