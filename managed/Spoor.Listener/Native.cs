// The structs and functions of <spoor/spoor.h> and <spoor/counter.h> that the listeners use.
using System.Reflection;
using System.Runtime.InteropServices;

namespace Spoor;

#pragma warning disable CS0649 // libspoor writes these fields

internal unsafe struct NativeOptions
{
    public nuint Size;
    public uint Flags, Clock;
    public nuint RingBytes, MemoryBytes;
    public byte* RecoverPath;
}

internal unsafe struct NativeWant
{
    public nuint Size;
    public byte* Name;
    public ulong Keywords;
    public uint Level;
    public byte* Arguments;
    public uint* Ids;
    public nuint IdCount;
    public byte IdsAllowed;
}

internal unsafe struct NativeSessionOptions
{
    public nuint Size;
    public NativeWant* Wants;
    public nuint WantCount;
    public uint Policy;
    public byte Stacks;
    public uint BlockMs, FlushMs;
    public nuint BufferBytes;
    public void* Notice, NoticeContext;
}

internal unsafe struct NativeField
{
    public byte* Name;
    public uint Type, FieldCount;
    public NativeField* Fields;
}

internal unsafe struct NativeEventInfo
{
    public nuint Size;
    public byte* Provider, Name;
    public ulong Keywords;
    public NativeField* Fields;
    public uint FieldCount;
    public ushort Id;
    public byte Version, Level, Opcode;
}

internal unsafe struct NativeEventView
{
    public nuint Size;
    public NativeEventInfo* Info;
    public nint Session;
    public ulong TimeNs, ThreadId;
    public Guid* ActivityId, RelatedActivityId;
    public ulong* Stack;
    public nuint StackCount;
    public void* Payload;
    public nuint PayloadSize;
    public ulong LostBefore;
}

internal unsafe struct NativeValue
{
    public NativeField* Field;
    public uint Type;
    public byte IsArray;
    public ulong U64;
    public long I64;
    public double F64;
    public byte* Bytes;
    public nuint ByteCount, Count;
}

internal struct NativeCounts
{
    public nuint Size;
    public ulong Written, Lost;
}

internal unsafe struct NativeTag
{
    public byte* Name, Value;
}

internal unsafe struct NativeCounterData
{
    public nuint Size;
    public byte* Meter, MeterVersion, Name, Unit, Description;
    public NativeTag* Tags;
    public nuint TagCount;
    public int Kind, Observable;
    public ulong IntervalNs;
    public double Value, Delta;
    public ulong Count;
    public double Sum, Mean, Deviation, Least, Greatest;
    public nuint QuantileCount;
    public double* Quantiles, QuantileValues;
}

internal unsafe struct NativeCounterListenerOptions
{
    public nuint Size;
    public ulong IntervalNs;
    public byte* Meters;
    public delegate* unmanaged<void*, NativeCounterData*, void> Value;
    public delegate* unmanaged<void*, ulong, ulong, void> IntervalEnd;
    public void* Context;
}

#pragma warning restore CS0649

internal enum NativeType : uint
{
    Boolean = 1, I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, Char16, Guid, Time, Pointer, Text, Text16, Struct,
}

internal static unsafe partial class Native
{
    const string Library = "spoor";
    const int NotFound = 2; // ENOENT

    // The name of the installed library has a version; a program that links libspoor has loaded it already.
    static Native() => NativeLibrary.SetDllImportResolver(typeof(Native).Assembly, Resolve);

    static nint Resolve(string name, Assembly assembly, DllImportSearchPath? path)
    {
        if (name != Library)
            return 0;
        var chosen = Environment.GetEnvironmentVariable("SPOOR_LIBRARY");
        if (!string.IsNullOrEmpty(chosen))
            return NativeLibrary.Load(chosen);
        return NativeLibrary.TryLoad("libspoor.so.0", assembly, path, out var handle) ? handle : 0;
    }

    [DllImport(Library)] internal static extern int spoor_start(NativeOptions* options);
    [DllImport(Library)] internal static extern int spoor_session_start_listener(NativeSessionOptions* options, nint* session);
    [DllImport(Library)] internal static extern int spoor_listener_read(nint session, NativeEventView* view, uint timeoutMs);
    [DllImport(Library)] internal static extern int spoor_session_stop(nint session);
    [DllImport(Library)] internal static extern void spoor_session_free(nint session);
    [DllImport(Library)] internal static extern void spoor_session_count(nint session, NativeCounts* counts);

    // They take no lock and make no system call, so the collector may wait for them.
    [DllImport(Library), SuppressGCTransition] internal static extern int spoor_event_next_field(NativeEventView* view, nuint* position, NativeValue* value);
    [DllImport(Library), SuppressGCTransition] internal static extern int spoor_event_field(NativeEventView* view, byte* name, NativeValue* value);
    [DllImport(Library), SuppressGCTransition] internal static extern int spoor_value_next(NativeValue* value, nuint* position, nuint* offset, NativeValue* part);

    [DllImport(Library, SetLastError = true)] internal static extern nint spoor_counter_listener_open(NativeCounterListenerOptions* options);
    [DllImport(Library)] internal static extern void spoor_counter_listener_close(nint listener);

    internal static string Text(byte* text) => Marshal.PtrToStringUTF8((nint)text) ?? "";

    internal static void Start()
    {
        // The .NET runtime has the diagnostics socket of this process already.
        var options = new NativeOptions { Size = (nuint)sizeof(NativeOptions), Flags = 1 };
        Check(spoor_start(&options), "start libspoor");
    }

    internal static void Check(int result, string what)
    {
        if (result < 0)
            throw new InvalidOperationException($"cannot {what}: {Marshal.GetPInvokeErrorMessage(-result)}");
    }

    internal static bool IsFound(int result)
    {
        if (result == -NotFound)
            return false;
        Check(result, "read a field");
        return true;
    }
}
