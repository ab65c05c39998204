// Holds `spoor report --gc --json` against TraceEvent's TraceGC, collection by collection: number, generation, type, reason, pause,
// promoted bytes, heap after it and free bytes in it. A pause may differ by a microsecond, as TraceEvent counts in fractions of milliseconds.
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Analysis;
using Microsoft.Diagnostics.Tracing.Analysis.GC;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

static class Collections
{
    static readonly Dictionary<GCReason, string> Reasons = new()
    {
        [GCReason.AllocSmall] = "small objects",
        [GCReason.Induced] = "induced",
        [GCReason.LowMemory] = "low memory",
        [GCReason.AllocLarge] = "large objects",
        [GCReason.OutOfSpaceSOH] = "no space for small objects",
        [GCReason.OutOfSpaceLOH] = "no space for large objects",
        [GCReason.InducedNotForced] = "induced, not forced",
        [GCReason.InducedCompacting] = "induced, compacting",
    };

    static readonly Dictionary<GCType, string> Types = new()
    {
        [GCType.NonConcurrentGC] = "blocking",
        [GCType.BackgroundGC] = "background",
        [GCType.ForegroundGC] = "foreground",
    };

    public static int Run(string[] args)
    {
        using var source = new EventPipeEventSource(args[1]);
        source.NeedLoadedDotNetRuntimes();
        source.Process();
        using var report = JsonDocument.Parse(File.ReadAllText(args[2]));
        var ours = new Dictionary<(int, int), JsonElement>();
        foreach (var process in report.RootElement.GetProperty("processes").EnumerateArray())
            foreach (var row in process.GetProperty("collections").EnumerateArray())
                ours[(process.GetProperty("pid").GetInt32(), row.GetProperty("number").GetInt32())] = row;
        var compared = 0;
        var different = 0;

        void Same<T>(string what, T theirs, T spoor)
        {
            if (EqualityComparer<T>.Default.Equals(theirs, spoor))
                return;
            Console.WriteLine($"  DIFFERENT  {what}: TraceEvent {theirs}, spoor {spoor}");
            different++;
        }

        foreach (var process in source.Processes().Where(p => p.LoadedDotNetRuntime() is not null))
            foreach (var gc in process.LoadedDotNetRuntime()!.GC.GCs.Where(gc => gc.IsComplete))
            {
                var what = $"process {process.ProcessID}, collection {gc.Number}";
                compared++;
                if (!ours.TryGetValue((process.ProcessID, gc.Number), out var row))
                {
                    Same(what, "there", "missing");
                    continue;
                }
                Same(what + ", generation", gc.Generation, row.GetProperty("generation").GetInt32());
                Same(what + ", type", Types[gc.Type], row.GetProperty("type").GetString());
                Same(what + ", reason", Reasons[gc.Reason], row.GetProperty("reason").GetString());
                Same(what + ", pause within 1 us", true,
                    Math.Abs(gc.PauseDurationMSec * 1e6 - row.GetProperty("pause_ns").GetDouble()) <= 1000);
                Same(what + ", promoted", Math.Round(gc.PromotedMB * 1e6), row.GetProperty("promoted_bytes").GetDouble());
                Same(what + ", free", Enum.GetValues<Gens>().Where(g => g <= Gens.GenPinObj).Sum(g => Math.Round(gc.GenFragmentationMB(g) * 1e6)),
                    row.GetProperty("free_bytes").GetDouble());
                foreach (var part in Enum.GetValues<Gens>().Where(g => g <= Gens.GenPinObj))
                    Same($"{what}, {part}", Math.Round(gc.GenSizeAfterMB(part) * 1e6), row.GetProperty("part_bytes")[(int)part].GetDouble());
                Same(what + ", heap", Math.Round(gc.HeapSizeAfterMB * 1e6), row.GetProperty("heap_bytes").GetDouble());
            }
        Console.WriteLine($"  {compared} collections compared, {ours.Count} of spoor");
        // Those that had not ended are complete for neither.
        Same("collections found", true, compared > 0 && ours.Count >= compared && ours.Count - compared <= 2);
        return different == 0 ? 0 : 1;
    }
}
