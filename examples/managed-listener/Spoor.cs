// libspoor's pull listener for .NET: the layouts of <spoor/spoor.h> and a class that reads events. There is no callback: a managed thread calls Read, so no thread that
// fires events enters managed code, not even during a collection.
using System.Runtime.InteropServices;
using System.Text;

#pragma warning disable CS0649 // libspoor writes these fields
unsafe struct SpoorOptions
{
    public nuint Size;
    public uint Flags, Clock;
    public nuint RingBytes, MemoryBytes;
    public byte* RecoverPath;
}

unsafe struct SpoorWant
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

unsafe struct SpoorSessionOptions
{
    public nuint Size;
    public SpoorWant* Wants;
    public nuint WantCount;
    public uint Policy;
    public byte Stacks;
    public uint BlockMs, FlushMs;
    public nuint BufferBytes;
    public void* Notice, NoticeContext;
}

unsafe struct SpoorEventInfo
{
    public nuint Size;
    public byte* Provider, Name;
    public ulong Keywords;
    public void* Fields;
    public uint FieldCount;
    public ushort Id;
    public byte Version, Level, Opcode;
}

unsafe struct SpoorEventView
{
    public nuint Size;
    public SpoorEventInfo* Info;
    public nint Session;
    public ulong TimeNs, ThreadId;
    public byte* ActivityId, RelatedActivityId;
    public ulong* Stack;
    public nuint StackCount;
    public void* Payload;
    public nuint PayloadSize;
    public ulong LostBefore;
}

unsafe struct SpoorValue
{
    public void* Field;
    public uint Type;
    public byte IsArray;
    public ulong U64;
    public long I64;
    public double F64;
    public byte* Bytes;
    public nuint ByteCount, Count;
}

struct SpoorSessionCounts
{
    public nuint Size;
    public ulong Written, Lost;
}

#pragma warning restore CS0649

static unsafe class Native
{
    [DllImport("spoor")] internal static extern int spoor_start(SpoorOptions* options);
    [DllImport("spoor")] internal static extern int spoor_session_start_listener(SpoorSessionOptions* options, nint* session);
    [DllImport("spoor")] internal static extern int spoor_listener_read(nint session, SpoorEventView* view, uint timeoutMs);
    [DllImport("spoor")] internal static extern int spoor_session_stop(nint session);
    [DllImport("spoor")] internal static extern void spoor_session_free(nint session);
    [DllImport("spoor")] internal static extern void spoor_session_count(nint session, SpoorSessionCounts* counts);
    [DllImport("spoor")] internal static extern int spoor_event_field(SpoorEventView* view, byte* name, SpoorValue* value);
}

/// <summary>A session that one thread reads. Any thread may stop it; the remaining events can be read after that.</summary>
sealed unsafe class SpoorListener : IDisposable
{
    const uint NoServer = 1; // the runtime has its own diagnostics server

    nint session;
    SpoorEventView view;

    public SpoorListener(string provider, nuint bufferBytes)
    {
        var start = new SpoorOptions { Size = (nuint)sizeof(SpoorOptions), Flags = NoServer };
        Check(Native.spoor_start(&start), "start libspoor");
        fixed (byte* name = Encoding.UTF8.GetBytes(provider + "\0"))
        fixed (nint* to = &session)
        {
            var want = new SpoorWant { Size = (nuint)sizeof(SpoorWant), Name = name, Keywords = ulong.MaxValue, Level = 5 };
            var options = new SpoorSessionOptions { Size = (nuint)sizeof(SpoorSessionOptions), Wants = &want, WantCount = 1, BufferBytes = bufferBytes };
            Check(Native.spoor_session_start_listener(&options, to), "start a session");
        }
    }

    /// <summary>False: no event arrived in that time. Null: the session has ended and every event has been read.</summary>
    public bool? Read(uint timeoutMs)
    {
        int result;
        view.Size = (nuint)sizeof(SpoorEventView);
        // A collection can run during this wait: a thread inside a P/Invoke does not delay it.
        fixed (SpoorEventView* to = &view)
            result = Native.spoor_listener_read(session, to, timeoutMs);
        return result >= 0 ? result == 1 : null;
    }

    public string Name => Text(view.Info->Name);
    public ulong ThreadId => view.ThreadId;
    public ulong TimeNs => view.TimeNs;
    public ulong LostBefore => view.LostBefore;

    public SpoorValue Field(ReadOnlySpan<byte> name)
    {
        SpoorValue value;
        fixed (SpoorEventView* from = &view)
        fixed (byte* text = name)
            Check(Native.spoor_event_field(from, text, &value), "read a field");
        return value;
    }

    public static string Text(SpoorValue value) => Encoding.UTF8.GetString(value.Bytes, (int)value.ByteCount);

    public void Stop() => Check(Native.spoor_session_stop(session), "stop the session");

    public (ulong Written, ulong Lost) Counts
    {
        get
        {
            var counts = new SpoorSessionCounts { Size = (nuint)sizeof(SpoorSessionCounts) };
            Native.spoor_session_count(session, &counts);
            return (counts.Written, counts.Lost);
        }
    }

    public void Dispose()
    {
        if (session != 0)
            Native.spoor_session_free(session);
        session = 0;
    }

    static string Text(byte* text) => Marshal.PtrToStringUTF8((nint)text) ?? "";

    static void Check(int result, string what)
    {
        if (result < 0)
            throw new InvalidOperationException($"cannot {what}: error {-result}");
    }
}
