using System.Runtime.InteropServices;
using System.Text;

namespace Spoor;

/// <summary>The kinds of instruments of native code.</summary>
public enum NativeCounterKind
{
    /// <summary>Only grows.</summary>
    Counter = 1,
    /// <summary>Grows and shrinks.</summary>
    UpDownCounter,
    /// <summary>The last value that was set.</summary>
    Gauge,
    /// <summary>Many values, shown as their distribution.</summary>
    Histogram,
}

/// <summary>The distribution of a histogram's values in one interval.</summary>
/// <param name="Count">Number of values; if it is 0, the other members are 0.</param>
/// <param name="Sum">Their sum.</param>
/// <param name="Mean">Their mean.</param>
/// <param name="Deviation">Their standard deviation.</param>
/// <param name="Least">The least value.</param>
/// <param name="Greatest">The greatest value.</param>
/// <param name="Quantiles">Pairs such as (0.95, value).</param>
public sealed record NativeDistribution(ulong Count, double Sum, double Mean, double Deviation, double Least, double Greatest,
    IReadOnlyList<(double Quantile, double Value)> Quantiles);

/// <summary>One series of an instrument in one interval.</summary>
/// <param name="Meter">Name of the meter.</param>
/// <param name="MeterVersion">Its version, or "".</param>
/// <param name="Name">Name of the instrument.</param>
/// <param name="Unit">Its unit, or "".</param>
/// <param name="Description">Its description, or "".</param>
/// <param name="Kind">Its kind.</param>
/// <param name="Tags">Tags of the series.</param>
/// <param name="Interval">The measured length of the interval.</param>
/// <param name="Value">Counters: the total since the start; gauge: the last value.</param>
/// <param name="Delta">Counters: the change in this interval.</param>
/// <param name="Distribution">Of a histogram; otherwise null.</param>
public sealed record NativeCounterValue(string Meter, string MeterVersion, string Name, string Unit, string Description, NativeCounterKind Kind,
    IReadOnlyList<KeyValuePair<string, string>> Tags, TimeSpan Interval, double Value, double Delta, NativeDistribution? Distribution);

/// <summary>
/// Receives the values of libspoor's counters in this process at an interval. The library's collecting thread calls the handler; threads that count are not affected.
/// </summary>
public sealed unsafe class NativeCounterListener : IDisposable
{
    readonly Action<NativeCounterValue> handler;
    readonly Action<Exception>? failed;
    readonly GCHandle self;
    nint listener;

    /// <summary>Starts to listen.</summary>
    /// <param name="handler">Called with each series after each interval.</param>
    /// <param name="interval">At least 10 ms; one second by default.</param>
    /// <param name="meters">Names separated by commas: "Meter", "Meter\Instrument", "Prefix*"; null: all.</param>
    /// <param name="failed">Called when the handler has thrown.</param>
    public NativeCounterListener(Action<NativeCounterValue> handler, TimeSpan? interval = null, string? meters = null, Action<Exception>? failed = null)
    {
        this.handler = handler;
        this.failed = failed;
        Native.Start();
        self = GCHandle.Alloc(this);
        fixed (byte* names = meters == null ? null : Encoding.UTF8.GetBytes(meters + "\0"))
        {
            var options = new NativeCounterListenerOptions
            {
                Size = (nuint)sizeof(NativeCounterListenerOptions),
                IntervalNs = (ulong)((interval ?? TimeSpan.FromSeconds(1)).TotalNanoseconds),
                Meters = names,
                Value = &OnValue,
                Context = (void*)GCHandle.ToIntPtr(self),
            };
            listener = Native.spoor_counter_listener_open(&options);
            int error = Marshal.GetLastPInvokeError();
            if (listener == 0)
            {
                self.Free();
                Native.Check(-error, "listen to counters");
            }
        }
    }

    [UnmanagedCallersOnly]
    static void OnValue(void* context, NativeCounterData* value)
    {
        var listener = (NativeCounterListener)GCHandle.FromIntPtr((nint)context).Target!;
        // An exception must not reach the native caller.
        try
        {
            listener.handler(Copy(value));
        }
        catch (Exception exception)
        {
            try
            {
                listener.failed?.Invoke(exception);
            }
            catch (Exception)
            {
                // The handler of failures has failed: there is no one left to tell.
            }
        }
    }

    static NativeCounterValue Copy(NativeCounterData* from)
    {
        var tags = new KeyValuePair<string, string>[(int)from->TagCount];
        for (int i = 0; i < tags.Length; i++)
            tags[i] = new(Native.Text(from->Tags[i].Name), Native.Text(from->Tags[i].Value));
        NativeDistribution? distribution = null;
        if (from->Kind == (int)NativeCounterKind.Histogram)
        {
            var quantiles = new (double, double)[(int)from->QuantileCount];
            for (int i = 0; i < quantiles.Length; i++)
                quantiles[i] = (from->Quantiles[i], from->QuantileValues[i]);
            distribution = new(from->Count, from->Sum, from->Mean, from->Deviation, from->Least, from->Greatest, quantiles);
        }
        return new(Native.Text(from->Meter), Native.Text(from->MeterVersion), Native.Text(from->Name), Native.Text(from->Unit),
            Native.Text(from->Description), (NativeCounterKind)from->Kind, tags, TimeSpan.FromTicks((long)(from->IntervalNs / 100)),
            from->Value, from->Delta, distribution);
    }

    /// <summary>After the return the handler is not running and is not called again. Not to be called by the handler.</summary>
    public void Dispose()
    {
        var open = Interlocked.Exchange(ref listener, 0);
        if (open == 0)
            return;
        Native.spoor_counter_listener_close(open);
        self.Free();
    }
}
