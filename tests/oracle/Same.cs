// Compares a trace that spoor relayed with the runtime's bytes of a second session of the same run: in the time that both cover, every thread has the
// same events in the same order, with the same payloads, stacks, method names and activities. "equal" compares it with the bytes that were relayed;
// nothing may differ then.
//
//   dotnet oracle.dll same RELAYED RAW PID    exit 1 and a line for each difference
//   dotnet oracle.dll equal RELAYED RAW PID   every event, and its time
using System.Security.Cryptography;
using System.Text;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;

static class Same
{
    sealed record Seen(string What, DateTime Time, string Thread, bool Rundown, int Frames, int Named, bool Activity);

    public static int Run(string mode, string relayed, string raw, int pid)
    {
        var ours = Read(relayed, pid, out var oursLost);
        var theirs = Read(raw, pid, out var theirsLost);
        var differences = 0;

        void Differ(string text)
        {
            Console.WriteLine("  DIFFERENT  " + text);
            differences++;
        }

        void Least(string what, long least, long got)
        {
            Console.WriteLine($"  {(got >= least ? "found" : "TOO FEW")}  {what}: {got}");
            differences += got < least ? 1 : 0;
        }

        Console.WriteLine($"  {ours.Count} events relayed, {theirs.Count} raw; lost {oursLost} and {theirsLost}");
        if (oursLost != 0 || theirsLost != 0)
            Differ("something was lost: nothing can be compared");
        var exact = mode == "equal";
        List<Seen> window = ours.Where(e => exact || !e.Rundown).ToList(), wide = theirs.Where(e => exact || !e.Rundown).ToList();
        if (!exact)
        {
            var begin = Later(window.Min(e => e.Time), wide.Min(e => e.Time)).AddMilliseconds(100);
            var end = Earlier(window.Max(e => e.Time), wide.Max(e => e.Time)).AddMilliseconds(-100);
            window = window.Where(e => e.Time >= begin && e.Time <= end).ToList();
            wide = wide.Where(e => e.Time >= begin.AddMilliseconds(-90) && e.Time <= end.AddMilliseconds(90)).ToList();
            Console.WriteLine($"  both saw {(end - begin).TotalSeconds:F2} s");
        }

        var byThread = wide.GroupBy(e => e.Thread).ToDictionary(g => g.Key, g => g.ToList());
        long same = 0;
        foreach (var thread in window.GroupBy(e => e.Thread))
        {
            var list = thread.ToList();
            var other = byThread.GetValueOrDefault(thread.Key) ?? [];
            var at = Find(list, other);
            if (at >= 0 && (!exact || at == 0 && other.Count == list.Count))
            {
                same += list.Count;
                if (exact)
                    for (var i = 0; i < list.Count; i++)
                        if (Math.Abs((list[i].Time - other[i].Time).TotalMilliseconds) > 1.1)
                        {
                            Differ($"thread {thread.Key}, event {i}: {list[i].Time:HH:mm:ss.ffffff}, raw {other[i].Time:HH:mm:ss.ffffff}");
                            break;
                        }
                continue;
            }
            Differ($"thread {thread.Key}: its {list.Count} events are not among the {other.Count} of the raw trace");
            var first = other.FindIndex(e => e.What == list[0].What);
            for (var i = 0; i < 3 && i < list.Count; i++)
                Console.WriteLine($"      relayed  {list[i].What}\n      raw      {(first >= 0 && first + i < other.Count ? other[first + i].What : "-")}");
        }
        Least("events that are the same", 500, same);
        Least("of them with a stack", 100, window.Count(e => e.Frames > 0));
        Least("frames", 500, window.Sum(e => (long)e.Frames));
        Least("frames with a name", window.Sum(e => (long)e.Frames) * 9 / 10, window.Sum(e => (long)e.Named));
        Least("threads", 3, window.Select(e => e.Thread).Distinct().Count());
        Least("kinds of events", 10, window.Select(e => e.What[..e.What.IndexOf(' ')]).Distinct().Count());
        Least("events with an activity", 10, window.Count(e => e.Activity));

        // Each session has a separate rundown; methods that were compiled between the two ends differ. TraceLog keeps few of these events.
        var oursNames = ours.Where(e => e.Rundown).Select(e => e.What).ToHashSet();
        var theirsNames = theirs.Where(e => e.Rundown).Select(e => e.What).ToHashSet();
        Least("rundown events that are the same", Math.Max(100, theirsNames.Count * 9 / 10), oursNames.Intersect(theirsNames).Count());
        if (differences > 0)
        {
            foreach (var what in oursNames.Except(theirsNames).Take(5))
                Console.WriteLine("      only relayed  " + what);
            foreach (var what in theirsNames.Except(oursNames).Take(5))
                Console.WriteLine("      only raw      " + what);
        }
        Console.WriteLine(differences == 0 ? "  nothing differs" : $"  {differences} differences");
        return differences == 0 ? 0 : 1;
    }

    static DateTime Later(DateTime a, DateTime b) => a > b ? a : b;

    static DateTime Earlier(DateTime a, DateTime b) => a < b ? a : b;

    // The index of `list` in `all` as a sequence without a gap, or -1.
    static int Find(List<Seen> list, List<Seen> all)
    {
        for (var at = 0; at + list.Count <= all.Count; at++)
        {
            var i = 0;
            while (i < list.Count && list[i].What == all[at + i].What)
                i++;
            if (i == list.Count)
                return at;
        }
        return -1;
    }

    static List<Seen> Read(string path, int pid, out long lost)
    {
        var etlx = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName() + ".etlx");
        try
        {
            TraceLog.CreateFromEventPipeDataFile(path, etlx, new TraceLogOptions { ContinueOnError = false });
            using var log = new TraceLog(etlx);
            var list = new List<Seen>();
            foreach (var data in log.Events)
            {
                // Spoor's events about the recording; and ProcessInfo, which every session gets when any session stops.
                if (data.ProcessID != pid || data.ProviderName is "Spoor" or "Universal.System" or "Microsoft-DotNETCore-EventPipe")
                    continue;
                var text = new StringBuilder();
                int frames = 0, named = 0;
                text.Append($"{data.ProviderName}/{(int)data.ID}/{data.EventName} v{data.Version} l{(int)data.Level} k{(long)data.Keywords:x} ");
                text.Append(Convert.ToHexString(SHA256.HashData(data.EventData()))[..16]);
                text.Append($" {data.EventDataLength} {data.ActivityID} {data.RelatedActivityID}");
                for (var stack = data.CallStack(); stack is not null; stack = stack.Caller)
                {
                    frames++;
                    named += string.IsNullOrEmpty(stack.CodeAddress.FullMethodName) ? 0 : 1;
                    text.Append($" {stack.CodeAddress.Address:x}={stack.CodeAddress.FullMethodName}");
                }
                var rundown = data.ProviderName.EndsWith("Rundown");
                // The sampler's thread writes samples, so their place among the thread's events differs between the sessions.
                var stream = rundown ? "rundown" : data.ThreadID + (data.ProviderName.EndsWith("SampleProfiler") ? " sampled" : "");
                list.Add(new Seen(text.ToString(), data.TimeStamp, stream, rundown, frames, named,
                    data.ActivityID != Guid.Empty || data.RelatedActivityID != Guid.Empty));
            }
            lost = log.EventsLost;
            return list;
        }
        finally
        {
            File.Delete(etlx);
        }
    }
}
