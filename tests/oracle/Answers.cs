// Holds the other analyses of `spoor report` against TraceEvent: exceptions by type, allocated bytes by type and kind, contentions with their time, compiled methods
// with their times and sizes (TraceEvent's JITStats), changes of thread pools. FOLDER has NAME.json for each analysis of one file.
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Analysis;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

static class Answers
{
    // A process, and what is counted in it.
    sealed class Sums : SortedDictionary<(int Process, string Name), (long Count, double Amount)>
    {
        public void Add(int process, string name, double amount, long count = 1)
        {
            TryGetValue((process, name), out var sum);
            this[(process, name)] = (sum.Count + count, sum.Amount + amount);
        }
    }

    static int different;

    static void Compare(string what, Sums theirs, Sums ours, double tolerance)
    {
        var before = different;
        foreach (var key in theirs.Keys.Union(ours.Keys))
        {
            theirs.TryGetValue(key, out var a);
            ours.TryGetValue(key, out var b);
            if (a.Count == b.Count && Math.Abs(a.Amount - b.Amount) <= tolerance * Math.Max(a.Count, 1))
                continue;
            Console.WriteLine($"  DIFFERENT  {what}, {key}: TraceEvent {a}, spoor {b}");
            different++;
        }
        if (before == different)
            Console.WriteLine($"  same  {what}: {theirs.Values.Sum(sum => sum.Count)} in {theirs.Count} rows");
    }

    static void Read(string folder, string answer, string list, Action<int, JsonElement> row)
    {
        using var report = JsonDocument.Parse(File.ReadAllText(Path.Combine(folder, answer + ".json")));
        foreach (var process in report.RootElement.GetProperty("processes").EnumerateArray())
            foreach (var element in process.GetProperty(list).EnumerateArray())
                row(process.GetProperty("pid").GetInt32(), element);
    }

    public static int Run(string file, string folder)
    {
        Sums exceptions = [], allocations = [], contentions = [], methods = [], pools = [];
        Sums ourExceptions = [], ourAllocations = [], ourContentions = [], ourMethods = [], ourPools = [];
        using var source = new EventPipeEventSource(file);
        source.NeedLoadedDotNetRuntimes();
        source.Clr.ExceptionStart += data => exceptions.Add(data.ProcessID, data.ExceptionType, 1);
        source.Clr.GCAllocationTick += data =>
            allocations.Add(data.ProcessID, $"{data.TypeName}, {(int)data.AllocationKind}", data.AllocationAmount64);
        source.Clr.ContentionStop += data => contentions.Add(data.ProcessID, "", data.DurationNs);
        source.Clr.ThreadPoolWorkerThreadAdjustmentAdjustment += data => pools.Add(data.ProcessID, "", data.NewWorkerThreadCount);
        // TraceEvent estimates the time and the size of the IL of a method without the event of its begin; such methods are not compared. Neither is one that was still being
        // compiled when the recording ended.
        HashSet<(int, int, double)> begun = [];
        source.Clr.MethodJittingStarted += data => begun.Add((data.ProcessID, data.ThreadID, data.TimeStampRelativeMSec));
        source.Process();
        foreach (var process in source.Processes().Where(p => p.LoadedDotNetRuntime() is not null))
            foreach (var method in process.LoadedDotNetRuntime()!.JIT.Methods.Where(method => method.NativeSize > 0 && begun.Contains((process.ProcessID, (int)method.ThreadID, method.StartTimeMSec))))
                methods.Add(process.ProcessID, $"IL {method.ILSize}, code {method.NativeSize}", method.CompileCpuTimeMSec * 1e6);

        string[] kinds = ["small", "large", "pinned"];
        Read(folder, "exceptions", "types", (process, row) =>
            ourExceptions.Add(process, row.GetProperty("type").GetString()!, row.GetProperty("count").GetInt64(), row.GetProperty("count").GetInt64()));
        Read(folder, "alloc", "types", (process, row) =>
            ourAllocations.Add(process, $"{row.GetProperty("type").GetString()}, {Array.IndexOf(kinds, row.GetProperty("kind").GetString())}",
                row.GetProperty("bytes").GetDouble(), row.GetProperty("events").GetInt64()));
        Read(folder, "locks", "waits", (process, row) =>
            ourContentions.Add(process, "", row.GetProperty("waited_ns").GetDouble(), row.GetProperty("count").GetInt64()));
        Read(folder, "threadpool", "adjustments", (process, row) => ourPools.Add(process, "", row.GetProperty("threads").GetDouble()));
        Read(folder, "jit", "methods", (process, row) =>
        {
            if (row.GetProperty("jit_ns").ValueKind != JsonValueKind.Null)
                ourMethods.Add(process, $"IL {row.GetProperty("il_bytes")}, code {row.GetProperty("code_bytes")}", row.GetProperty("jit_ns").GetDouble());
        });
        Compare("exceptions by type", exceptions, ourExceptions, 0);
        Compare("allocated bytes by type and kind", allocations, ourAllocations, 0);
        Compare("contentions", contentions, ourContentions, 1);
        Compare("adjustments of thread pools", pools, ourPools, 0);
        // TraceEvent counts in fractions of milliseconds.
        Compare("compiled methods by sizes", methods, ourMethods, 1000);
        return different == 0 ? 0 : 1;
    }
}
