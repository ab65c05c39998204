// Does what the file `settings` says, and writes the answer into `state`. README.md describes both files.
using System.Globalization;

namespace Spoor;

internal static class Injection
{
    static readonly object s_gate = new();
    static Listener? s_listener;
    static string? s_answered; // the last call

    internal static void Begin()
    {
        try
        {
            // The runtime answers no other tool before this returns.
            new Thread(Run) { IsBackground = true, Name = "Spoor inject" }.Start();
        }
        catch (Exception)
        {
            // `spoor inject` says that there is no answer.
        }
    }

    static void Run()
    {
        try
        {
            var folder = Path.GetDirectoryName(typeof(Injection).Assembly.Location)!;
            lock (s_gate)
            {
                var settings = File.ReadAllLines(Path.Combine(folder, "settings"));
                var call = settings[0];
                // Of two calls whose threads begin late, both may find the settings of the second one. It is answered once: after that its folder is removed.
                if (call == s_answered)
                    return;
                s_answered = call;
                string state;
                try
                {
                    state = Apply(folder, settings);
                }
                catch (Exception e)
                {
                    state = "error " + e.Message.ReplaceLineEndings(" ");
                }
                var fresh = Path.Combine(folder, "state.new");
                File.WriteAllText(fresh, $"{call}\n{state}\n");
                File.Move(fresh, Path.Combine(folder, "state"), overwrite: true);
            }
        }
        catch (Exception)
        {
        }
    }

    static string Apply(string folder, string[] settings)
    {
        var wanted = new Dictionary<string, Wanted>();
        uint logger = 0;
        string? last = null;

        foreach (var line in settings)
        {
            var words = line.Split(' ', 4);
            if (words[0] == "off")
                return End();
            if (words[0] == "logger")
                logger = uint.Parse(words[1], CultureInfo.InvariantCulture);
            else if (words[0] == "provider")
                wanted[last = words[3]] = new Wanted(ulong.Parse(words[1], NumberStyles.HexNumber, CultureInfo.InvariantCulture),
                    uint.Parse(words[2], CultureInfo.InvariantCulture), null);
            else if (words[0] == "arguments" && last is not null)
                wanted[last] = wanted[last] with { Arguments = ReadArguments(line["arguments ".Length..]) };
        }
        if (AppContext.TryGetSwitch("System.Diagnostics.Tracing.EventSource.IsSupported", out var isSupported) && !isSupported)
            throw new NotSupportedException("the program was built without EventSource (System.Diagnostics.Tracing.EventSource.IsSupported)");
        Native.Load(Path.Combine(folder, "libspoor.so.0"));
        Native.Start(logger);
        // The new one first: no event is missed, and one that both get is only fired by the newer one.
        var before = s_listener;
        s_listener = Listener.Create(wanted);
        before?.Dispose();
        return "on";
    }

    // "key=value;key=value"
    static Dictionary<string, string?> ReadArguments(string text)
    {
        var arguments = new Dictionary<string, string?>();

        foreach (var part in text.Split(';', StringSplitOptions.RemoveEmptyEntries))
        {
            var pair = part.Split('=', 2);
            arguments[pair[0].Trim()] = pair.Length > 1 ? pair[1].Trim().Trim('"') : null;
        }
        return arguments;
    }

    static string End()
    {
        s_listener?.Dispose();
        s_listener = null;
        var counts = Listener.FinalCounts();
        Native.StopLoggers();
        return string.Create(CultureInfo.InvariantCulture, $"off {counts.Fired} {counts.Unheard} {counts.Failed}");
    }
}

internal sealed record Wanted(ulong Keywords, uint Level, Dictionary<string, string?>? Arguments);
