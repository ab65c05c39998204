// Prints the content of a .nettrace file, read with PerfView's TraceEvent library, as one JSON object. spoor report is compared with it.
//
//   dotnet oracle.dll FILE                          prints the object. Exit 1 if TraceEvent cannot read the file; "error" is the reason.
//   dotnet oracle.dll FILE REPORT.json PID NAME     compares with the output of spoor report --raw-names --json: samples, loss, processes, frames,
//                                                   names, and the function NAME of process PID. Exit 1 and a line for each difference.
//   dotnet oracle.dll same|equal ...                see Same.cs
//   dotnet oracle.dll counted ...                   see Counted.cs
//   dotnet oracle.dll collections FILE GC.json      see Collections.cs
//   dotnet oracle.dll answers FILE FOLDER           see Answers.cs
//   dotnet oracle.dll findings FILE DIAGNOSIS.json PID   see Findings.cs
//   dotnet oracle.dll thread-time FILE TIMES.json   see ThreadTime.cs
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.Parsers;

if (args[0] is "counted")
    return Counted.Run(args);
if (args[0] is "collections")
    return Collections.Run(args);
if (args[0] is "answers")
    return Answers.Run(args[1], args[2]);
if (args[0] is "findings")
    return Findings.Run(args[1], args[2], int.Parse(args[3]));
if (args[0] is "thread-time")
    return ThreadTime.Run(args);
if (args[0] is "same" or "equal")
    return Same.Run(args[0], args[1], args[2], int.Parse(args[3]));
var path = args[0];
var result = new SortedDictionary<string, object?>();
try
{
    ReadAsStream(path, result);
    ReadAsLog(path, result);
    result["error"] = null;
}
catch (Exception exception)
{
    result["error"] = exception.GetType().Name + ": " + exception.Message;
}
var found = JsonSerializer.SerializeToElement(result);
if (args.Length == 1 || result["error"] is not null)
{
    Console.WriteLine(found);
    return result["error"] is null ? 0 : 1;
}
using var report = JsonDocument.Parse(File.ReadAllText(args[1]));
return Compare(found, report.RootElement, int.Parse(args[2]), args[3]) == 0 ? 0 : 1;

// A function of which the recording knows only the bounds: sub_46cd10. spoor report counts it as one without a name.
static bool IsBounds(string method) => System.Text.RegularExpressions.Regex.IsMatch(method, "^sub_[1-9a-f][0-9a-f]*$");

// What the file has in place of a caller that the walk has missed. spoor report counts it as a frame without a name.
static bool IsLostCaller(string method) => method == "[caller unknown: no frame pointer]";

// The number of differences; each is printed.
static int Compare(JsonElement found, JsonElement report, int hotProcess, string hotName)
{
    var differences = 0;

    void Same<T>(string what, T theirs, T ours)
    {
        if (EqualityComparer<T>.Default.Equals(theirs, ours))
        {
            Console.WriteLine($"  same  {what}: {ours}");
            return;
        }
        Console.WriteLine($"  DIFFERENT  {what}: TraceEvent {theirs}, spoor report {ours}");
        differences++;
    }

    Same("samples", found.GetProperty("samples").GetInt64(), report.GetProperty("samples").GetInt64());
    Same("samples in the stream", found.GetProperty("stream_samples").GetInt64(), report.GetProperty("samples").GetInt64());
    Same("lost", found.GetProperty("lost").GetInt64(), report.GetProperty("lost").GetInt64());
    Same("any sample at all", found.GetProperty("samples").GetInt64() > 0, true);

    var theirs = SamplesByProcess(found);
    var ours = SamplesByProcess(report);
    Same("processes", theirs.Count, ours.Count);
    foreach (var pid in theirs.Keys.Union(ours.Keys))
    {
        if (theirs.GetValueOrDefault(pid) != ours.GetValueOrDefault(pid))
            Same($"samples of process {pid}", theirs.GetValueOrDefault(pid), ours.GetValueOrDefault(pid));
    }

    var names = report.GetProperty("names");
    var ourFrames = names.GetProperty("frames").GetInt64();
    Same("frames", found.GetProperty("frames").GetInt64(), ourFrames);
    Same("frames without a name", found.GetProperty("frames_unnamed").GetInt64(), ourFrames - names.GetProperty("named_frames").GetInt64());

    // Each distinct function name, as in the metadata. TraceEvent keeps the :: of the file before a method.
    var theirNames = found.GetProperty("functions").EnumerateArray()
        .Select(function => function.GetProperty("name").GetString()!)
        .Select(name => name[(name.IndexOf('!') + 1)..].Replace("::", "."))
        .Where(name => name != "?")
        .ToHashSet();
    var ourNames = report.GetProperty("processes").EnumerateArray()
        .SelectMany(process => process.GetProperty("functions").EnumerateArray())
        .Where(function => function.GetProperty("named").GetBoolean())
        .Select(function => function.GetProperty("name").GetString()!.Replace("::", "."))
        // The mark for a caller that is missing in the stack. TraceEvent shows the frame of the replaced code there.
        .Where(name => name != "[caller unknown: on-stack replacement]")
        .ToHashSet();
    Same("names", theirNames.Count, ourNames.Count);
    foreach (var name in theirNames.Except(ourNames).Take(10))
        Console.WriteLine($"    only TraceEvent has  {name}");
    foreach (var name in ourNames.Except(theirNames).Take(10))
        Console.WriteLine($"    only spoor report has  {name}");
    Same("names that both have", theirNames.Intersect(ourNames).Count(), ourNames.Count);

    // The self samples of the function that computes, in both.
    var theirSelf = found.GetProperty("functions").EnumerateArray()
        .Where(function => function.GetProperty("name").GetString()!.Replace("::", ".").Contains(hotName))
        .Sum(function => function.GetProperty("self").GetInt64());
    var ourSelf = report.GetProperty("processes").EnumerateArray()
        .Where(process => process.GetProperty("pid").GetInt32() == hotProcess)
        .SelectMany(process => process.GetProperty("functions").EnumerateArray())
        .Where(function => function.GetProperty("name").GetString()!.Contains(hotName))
        .Sum(function => function.GetProperty("self_samples").GetInt64());
    Same($"samples in {hotName} itself", theirSelf, ourSelf);
    Same($"{hotName} seen", theirSelf > 0, true);
    return differences;
}

static SortedDictionary<int, long> SamplesByProcess(JsonElement result)
{
    var sums = new SortedDictionary<int, long>();
    foreach (var process in result.GetProperty("processes").EnumerateArray())
    {
        var pid = process.GetProperty("pid").GetInt32();
        var samples = process.GetProperty("samples").GetInt64();
        if (samples > 0)
            sums[pid] = sums.GetValueOrDefault(pid) + samples;
    }
    return sums;
}

// Event by event, as a live consumer sees it.
static void ReadAsStream(string path, IDictionary<string, object?> result)
{
    using var source = new EventPipeEventSource(path);
    long events = 0, samples = 0;
    source.AllEvents += _ => events++;
    new UniversalEventsTraceEventParser(source).cpu += _ => samples++;
    source.Process();
    result["stream_events"] = events;
    result["stream_samples"] = samples;
    result["stream_lost"] = source.EventsLost;
}

// Converted to a TraceLog, as PerfView does before it shows anything.
static void ReadAsLog(string path, IDictionary<string, object?> result)
{
    var etlx = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName() + ".etlx");
    try
    {
        TraceLog.CreateFromEventPipeDataFile(path, etlx, new TraceLogOptions { ContinueOnError = false });
        using var log = new TraceLog(etlx);
        var processes = new SortedDictionary<int, Process>();
        var frames = new SortedDictionary<string, long>(StringComparer.Ordinal);
        long samples = 0, withStack = 0, unnamed = 0, total = 0;

        foreach (var data in log.Events)
        {
            if (!IsSample(data))
                continue;
            samples++;
            if (!processes.TryGetValue(data.ProcessID, out var process))
                processes.Add(data.ProcessID, process = new Process(log.Processes.GetProcess(data.ProcessID, data.TimeStampRelativeMSec)?.Name ?? ""));
            process.Samples++;
            var leaf = true;
            for (var stack = data.CallStack(); stack is not null; stack = stack.Caller)
            {
                if (leaf)
                    withStack++;
                total++;
                var method = stack.CodeAddress.FullMethodName;
                if (string.IsNullOrEmpty(method) || IsBounds(method))
                {
                    unnamed++;
                    method = "?";
                }
                else if (IsLostCaller(method))
                {
                    unnamed++;
                }
                var name = stack.CodeAddress.ModuleName + "!" + method;
                frames[name] = frames.GetValueOrDefault(name) + (leaf ? 1 : 0);
                leaf = false;
            }
        }
        result["duration_ns"] = (long)(log.SessionDuration.TotalMilliseconds * 1e6);
        result["samples"] = samples;
        result["samples_with_stack"] = withStack;
        result["frames"] = total;
        result["frames_unnamed"] = unnamed;
        result["lost"] = (long)log.EventsLost;
        result["processes"] = processes.Select(pair => new { pid = pair.Key, name = pair.Value.Name, samples = pair.Value.Samples }).ToArray();
        result["known_processes"] = log.Processes.Select(process => new { pid = process.ProcessID, name = process.Name }).ToArray();
        result["functions"] = frames.Select(pair => new { name = pair.Key, self = pair.Value }).ToArray();
    }
    finally
    {
        File.Delete(etlx);
    }
}

static bool IsSample(TraceEvent data) =>
    data.ProviderName == "Universal.Events" && data.EventName == "cpu";

sealed class Process(string name)
{
    public string Name { get; } = name;
    public long Samples { get; set; }
}
