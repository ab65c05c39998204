// Holds `spoor diagnose FILE --json` against analyzers that run in TraceEvent's framework for automated analysis (Microsoft.Diagnostics.Tracing.AutomatedAnalysis) on the
// same file: managed CPU time, garbage collection and memory. They have the thresholds of spoor-diagnose(1), and compute from what TraceEvent reads. Each kind is found by
// both or by neither, with the same method of the program; a value within a fifth of its threshold may be either.
using System.Globalization;
using System.Text.Json;
using Microsoft.Diagnostics.Symbols;
using Microsoft.Diagnostics.Tracing.Analysis;
using Microsoft.Diagnostics.Tracing.AutomatedAnalysis;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;
using TraceLog = Microsoft.Diagnostics.Tracing.Etlx.TraceLog;

[assembly: AnalyzerProvider(typeof(OwnProvider))]

static class Findings
{
    public const double Near = 0.2;

    // The kind, its value, its threshold and the method, as the text of an issue.
    public static AnalyzerIssue Issue(string kind, double value, double least, string method) =>
        new(Guid.Empty, kind, string.Create(CultureInfo.InvariantCulture, $"{value / least}|{method}"), "");

    public static (double Margin, string Method) Read(AnalyzerIssue issue)
    {
        var parts = issue.Description.Split('|', 2);
        return (double.Parse(parts[0], CultureInfo.InvariantCulture), parts[1]);
    }

    public static int Run(string file, string diagnosis, int pid)
    {
        var etlx = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName() + ".etlx");
        try
        {
            TraceLog.CreateFromEventPipeDataFile(file, etlx, new TraceLogOptions { ContinueOnError = false });
            using var log = new TraceLog(etlx);
            using var symbols = new SymbolReader(TextWriter.Null);
            var result = new TraceProcessor(new OwnAnalyzers()).ProcessTrace(new AutomatedAnalysisTraceLog(log, symbols));
            using var json = JsonDocument.Parse(File.ReadAllText(diagnosis));
            return Compare(result, json.RootElement, pid);
        }
        finally
        {
            File.Delete(etlx);
        }
    }

    static int Compare(TraceProcessorResult result, JsonElement diagnosis, int pid)
    {
        string[] kinds = ["cpu-hotspot", "induced-gc", "gc-pressure", "large-object-churn"];
        Dictionary<string, (double Margin, string Method)> theirs = [];
        foreach (KeyValuePair<Microsoft.Diagnostics.Tracing.AutomatedAnalysis.Process, List<AnalyzerIssue>> process in result.Issues)
            if (process.Key.DisplayID == pid)
                foreach (var issue in process.Value)
                    theirs[issue.Title] = Read(issue);
        var ours = diagnosis.GetProperty("processes").EnumerateArray().Single(p => p.GetProperty("pid").GetInt32() == pid).GetProperty("findings").EnumerateArray()
            .ToDictionary(f => f.GetProperty("kind").GetString()!, f => f.GetProperty("method").GetString()!);
        var different = result.ExecutedAnalyzers.Count() == 2 ? 0 : 1;
        foreach (var kind in kinds)
        {
            var margin = theirs.TryGetValue(kind, out var their) ? their.Margin : 0;
            var found = ours.TryGetValue(kind, out var method);
            var isNear = margin is > 1 - Near and < 1 + Near;
            // An analyzer reports its value also below the threshold.
            var same = isNear || margin >= 1 == found;
            // It is left out where another finding says more about the same method.
            same |= kind == "cpu-hotspot" && ours.ContainsValue(their.Method ?? "-");
            if (found && margin >= 1 && their.Method != "" && their.Method != method)
                same = false;
            Console.WriteLine($"  {(same ? "same" : "DIFFERENT")}  {kind}: TraceEvent {margin:0.##} times the threshold {their.Method}, spoor {(found ? "found " + method : "not found")}");
            different += same ? 0 : 1;
        }
        return different == 0 ? 0 : 1;
    }
}

sealed class OwnAnalyzers : AnalyzerResolver
{
    protected override void Resolve() => ConsumeAssembly(typeof(OwnAnalyzers).Assembly);
}

public sealed class OwnProvider : IAnalyzerProvider
{
    public IEnumerable<Analyzer> GetAnalyzers() => [new ManagedCpu(), new Collector()];
}

// CPU time of managed code, by the innermost method of the program on the stack.
sealed class ManagedCpu : ProcessAnalyzer
{
    static bool IsManaged(TraceCodeAddress address) =>
        address.FullMethodName.Contains('.') && !address.ModuleName.StartsWith("lib", StringComparison.Ordinal) && !address.FullMethodName.Contains(".so");

    // Modules of the framework and of the runtime.
    static bool IsOwn(string module) => !(module.StartsWith("System", StringComparison.Ordinal) || module.StartsWith("Microsoft", StringComparison.Ordinal) ||
        module.StartsWith("lib", StringComparison.Ordinal) || module is "netstandard" or "dotnet" or "" || module.Contains("kernel"));

    protected override AnalyzerExecutionResult Execute(AnalyzerExecutionContext context, ProcessContext process)
    {
        var log = ((AutomatedAnalysisTraceLog)context.Trace).UnderlyingSource;
        Dictionary<string, int> samples = [];
        var all = 0;
        foreach (var data in log.Events)
        {
            if (data.ProcessID != process.Process.DisplayID || data.ProviderName != "Universal.Events" || data.EventName != "cpu")
                continue;
            all++;
            // Work of the runtime and of native libraries is not the method's own.
            var leaf = data.CallStack()?.CodeAddress;
            if (leaf is null || !IsManaged(leaf))
                continue;
            for (var stack = data.CallStack(); stack is not null; stack = stack.Caller)
            {
                var address = stack.CodeAddress;
                if (!IsManaged(address) || !IsOwn(address.ModuleName))
                    continue;
                var method = address.FullMethodName.Replace("::", ".").Split('(')[0];
                if (method.StartsWith("System.", StringComparison.Ordinal) || method.StartsWith("Microsoft.", StringComparison.Ordinal))
                    continue;
                samples[method] = samples.GetValueOrDefault(method) + 1;
                break;
            }
        }
        if (samples.Count == 0)
            return AnalyzerExecutionResult.Success;
        var hot = samples.MaxBy(pair => pair.Value);
        process.AddIssue(Findings.Issue("cpu-hotspot", (double)hot.Value / all, 0.25, hot.Key));
        return AnalyzerExecutionResult.Success;
    }
}

// Collections by what they are for, and the memory that causes them.
sealed class Collector : ProcessAnalyzer
{
    protected override AnalyzerExecutionResult Execute(AnalyzerExecutionContext context, ProcessContext process)
    {
        var log = ((AutomatedAnalysisTraceLog)context.Trace).UnderlyingSource;
        using var source = log.Events.GetSource();
        source.NeedLoadedDotNetRuntimes();
        source.Process();
        var runtime = source.Processes().FirstOrDefault(p => p.ProcessID == process.Process.DisplayID)?.LoadedDotNetRuntime();
        if (runtime is null)
            return AnalyzerExecutionResult.Fail;
        var seconds = log.SessionDuration.TotalSeconds;
        var done = runtime.GC.GCs.Where(gc => gc.IsComplete).ToList();
        var induced = done.Where(gc => gc.Reason is GCReason.Induced or GCReason.InducedNotForced or GCReason.InducedCompacting).ToList();
        var large = done.Where(gc => gc.Reason is GCReason.AllocLarge or GCReason.OutOfSpaceLOH).ToList();
        var others = done.Except(induced).Except(large).ToList();
        process.AddIssue(Findings.Issue("induced-gc", induced.Count / seconds, 0.5, ""));
        process.AddIssue(Findings.Issue("large-object-churn", Both(large.Count / seconds, 1, large.Sum(gc => gc.PauseDurationMSec) / 1000 / seconds, 0.005), 1, ""));
        process.AddIssue(Findings.Issue("gc-pressure", Both(others.Count / seconds, 1, others.Sum(gc => gc.PauseDurationMSec) / 1000 / seconds, 0.05), 1, ""));
        return AnalyzerExecutionResult.Success;
    }

    // How far the less clear of two conditions is beyond its threshold.
    static double Both(double a, double leastA, double b, double leastB) => Math.Min(a / leastA, b / leastB);
}
