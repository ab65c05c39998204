// Compares the thread time of a recording with spoor report --thread-time --json: what PerfView's Thread Time view is made of.
//
//   dotnet oracle.dll thread-time FILE TIMES.json     exit 1 and a line for each difference
//
// TraceEvent knows no runnable time: its blocked time is the whole time off the CPU. What a thread did before its first and after its last switch is unknown
// to it, so only the time off the CPU is compared, of every thread that has some.
using System.Text.Json;
using Microsoft.Diagnostics.Symbols;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.Stacks;

#pragma warning disable CS0618 // ThreadTimeStackComputer is marked as experimental by this attribute
static class ThreadTime
{
    // Times in a TraceLog are 100 ns ticks, and a block has two.
    const double ToleranceMs = 0.0005;

    public static int Run(string[] args)
    {
        var (theirs, counts) = Read(args[1]);
        using var report = JsonDocument.Parse(File.ReadAllText(args[2]));
        var differences = 0;
        var compared = 0;
        foreach (var process in report.RootElement.GetProperty("processes").EnumerateArray())
        {
            foreach (var thread in process.GetProperty("threads").EnumerateArray())
            {
                var tid = thread.GetProperty("tid").GetInt32();
                var ours = (thread.GetProperty("runnable_ns").GetInt64() + thread.GetProperty("blocked_ns").GetInt64()) / 1e6;
                var found = theirs.GetValueOrDefault(tid);
                if (ours == 0 && found == 0)
                    continue;
                compared++;
                if (Math.Abs(found - ours) <= ToleranceMs * (1 + counts.GetValueOrDefault(tid)))
                    continue;
                Console.WriteLine($"  DIFFERENT  thread {tid}: off the CPU {found:F4} ms in TraceEvent, {ours:F4} ms in spoor report");
                differences++;
            }
        }
        Console.WriteLine($"  {compared} threads compared, {differences} differ");
        return compared > 0 && differences == 0 ? 0 : 1;
    }

    // The blocked time of each thread in ms, and the number of blocks.
    static (Dictionary<int, double>, Dictionary<int, int>) Read(string path)
    {
        var etlx = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName() + ".etlx");
        try
        {
            TraceLog.CreateFromEventPipeDataFile(path, etlx, new TraceLogOptions { ContinueOnError = false });
            using var log = new TraceLog(etlx);
            var times = new Dictionary<int, double>();
            var counts = new Dictionary<int, int>();
            foreach (var data in log.Events)
            {
                if (data.ProviderName == "Universal.Events" && data.EventName == "cswitch")
                    counts[data.ThreadID] = counts.GetValueOrDefault(data.ThreadID) + 1;
            }
            var stacks = new MutableTraceEventStackSource(log);
            new ThreadTimeStackComputer(log, new SymbolReader(TextWriter.Null)) { UseTasks = false, ExcludeReadyThread = true }
                .GenerateThreadTimeStacks(stacks);
            stacks.ForEach(sample =>
            {
                if (!stacks.GetFrameName(stacks.GetFrameIndex(sample.StackIndex), false).StartsWith("BLOCKED_TIME", StringComparison.Ordinal))
                    return;
                var tid = ThreadOf(stacks, sample.StackIndex);
                times[tid] = times.GetValueOrDefault(tid) + sample.Metric;
            });
            return (times, counts);
        }
        finally
        {
            File.Delete(etlx);
        }
    }

    // The frame "Thread (4711) CPU=5ms" is near the root of each stack.
    static int ThreadOf(StackSource stacks, StackSourceCallStackIndex stack)
    {
        for (; stack != StackSourceCallStackIndex.Invalid; stack = stacks.GetCallerIndex(stack))
        {
            var name = stacks.GetFrameName(stacks.GetFrameIndex(stack), false);
            if (name.StartsWith("Thread (", StringComparison.Ordinal))
                return int.Parse(name["Thread (".Length..name.IndexOf(')')]);
        }
        return 0;
    }
}
