// What the reader of PerfView finds in a .nettrace file, as one JSON object: the stranger's word against which spoor report is held.
//
// Usage: dotnet oracle.dll FILE. Exit 0: opened. Exit 1: TraceEvent could not read it; the reason stands in "error".
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;

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
Console.WriteLine(JsonSerializer.Serialize(result));
return result["error"] is null ? 0 : 1;

// Event by event, as a live consumer sees it.
static void ReadAsStream(string path, IDictionary<string, object?> result)
{
    using var source = new EventPipeEventSource(path);
    long events = 0, samples = 0;
    source.Dynamic.All += _ => { };
    source.AllEvents += data =>
    {
        events++;
        if (IsSample(data))
            samples++;
    };
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
                if (string.IsNullOrEmpty(method))
                {
                    unnamed++;
                    method = "?";
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
