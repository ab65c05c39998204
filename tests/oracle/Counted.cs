// Compares a recording's runtime events, as TraceEvent reads them, with the numbers that the recorded programs counted.
//
//   dotnet oracle.dll counted FILE PID THROWN COLLECTED [PID THROWN COLLECTED ...]     exit 1 and a line for each difference
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Analysis;
using Microsoft.Diagnostics.Tracing.Etlx;
using TraceLog = Microsoft.Diagnostics.Tracing.Etlx.TraceLog;
using Microsoft.Diagnostics.Tracing.Parsers;

static class Counted
{
    sealed class Process
    {
        public long Thrown, Starts, Stops, Samples;
        public readonly HashSet<int> Throwers = [];
        public readonly HashSet<string> Texts = [];
    }

    public static int Run(string[] args)
    {
        var differences = 0;

        void Same<T>(string what, T expected, T got)
        {
            var same = EqualityComparer<T>.Default.Equals(expected, got);
            Console.WriteLine($"  {(same ? "same" : "DIFFERENT")}  {what}: {(same ? $"{got}" : $"counted {expected}, TraceEvent {got}")}");
            differences += same ? 0 : 1;
        }

        var stream = ReadStream(args[1], out var streamLost, out var backwards);
        var log = ReadLog(args[1], out var logLost);
        var collections = ReadCollections(args[1]);
        Same("lost, in the stream", 0, streamLost);
        Same("lost, in the log", 0, logLost);
        Same("events that step back in time", 0, backwards);
        for (var i = 2; i + 2 < args.Length; i += 3)
        {
            var pid = int.Parse(args[i]);
            long thrown = long.Parse(args[i + 1]), collected = long.Parse(args[i + 2]);
            foreach (var (name, all) in new[] { ("stream", stream), ("log", log) })
            {
                var process = all.GetValueOrDefault(pid) ?? new Process();
                Same($"{pid}, {name}: exceptions", thrown, process.Thrown);
                Same($"{pid}, {name}: threads that threw", 2, process.Throwers.Count);
                Same($"{pid}, {name}: messages as thrown", true, process.Texts.Count > 0 && process.Texts.All(t => t.StartsWith("told ")));
                Same($"{pid}, {name}: collections begun", collected, process.Starts);
                Same($"{pid}, {name}: collections ended", collected, process.Stops);
                Same($"{pid}, {name}: samples beside them", true, process.Samples > 0);
            }
            Same($"{pid}: collections of TraceEvent's GC statistics", collected, collections.GetValueOrDefault(pid));
        }
        foreach (var pid in stream.Where(p => p.Value.Thrown + p.Value.Starts > 0).Select(p => p.Key))
            Same($"{pid} is one of the programs", true, Enumerable.Range(0, (args.Length - 2) / 3).Any(i => int.Parse(args[2 + 3 * i]) == pid));
        Console.WriteLine(differences == 0 ? "  nothing differs" : $"  {differences} differences");
        return differences == 0 ? 0 : 1;
    }

    static void Take(Dictionary<int, Process> all, TraceEvent data)
    {
        if (!all.TryGetValue(data.ProcessID, out var process))
            all[data.ProcessID] = process = new Process();
        if (data.ProviderName == "Microsoft-Windows-DotNETRuntime")
            switch ((int)data.ID)
            {
                case 80:
                    process.Thrown++;
                    process.Throwers.Add(data.ThreadID);
                    process.Texts.Add((string)data.PayloadByName("ExceptionMessage"));
                    break;
                case 1:
                    process.Starts++;
                    break;
                case 2:
                    process.Stops++;
                    break;
            }
        else if (data.ProviderName == "Universal.Events" && data.EventName == "cpu")
            process.Samples++;
    }

    static Dictionary<int, Process> ReadStream(string path, out int lost, out int backwards)
    {
        using var source = new EventPipeEventSource(path);
        var all = new Dictionary<int, Process>();
        var last = DateTime.MinValue;
        var steps = 0;
        var clr = new ClrTraceEventParser(source);
        clr.All += _ => { };
        source.Dynamic.All += _ => { };
        source.AllEvents += data =>
        {
            steps += data.TimeStamp < last ? 1 : 0;
            last = data.TimeStamp;
            Take(all, data);
        };
        source.Process();
        lost = source.EventsLost;
        backwards = steps;
        return all;
    }

    static Dictionary<int, Process> ReadLog(string path, out int lost)
    {
        var etlx = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName() + ".etlx");
        try
        {
            TraceLog.CreateFromEventPipeDataFile(path, etlx, new TraceLogOptions { ContinueOnError = false });
            using var log = new TraceLog(etlx);
            var all = new Dictionary<int, Process>();
            foreach (var data in log.Events)
                Take(all, data);
            lost = log.EventsLost;
            return all;
        }
        finally
        {
            File.Delete(etlx);
        }
    }

    static Dictionary<int, long> ReadCollections(string path)
    {
        using var source = new EventPipeEventSource(path);
        source.NeedLoadedDotNetRuntimes();
        source.Process();
        return source.Processes().Where(p => p.LoadedDotNetRuntime() is not null)
            .ToDictionary(p => p.ProcessID, p => (long)p.LoadedDotNetRuntime()!.GC.GCs.Count(gc => gc.IsComplete));
    }
}
