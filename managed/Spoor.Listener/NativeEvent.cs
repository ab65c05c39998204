using System.Diagnostics.Tracing;
using System.Text;

namespace Spoor;

/// <summary>One event of native code. It is valid during the call of <see cref="NativeEventListener.OnEventWritten"/> that receives it, so the compiler does not let it escape.</summary>
public readonly unsafe ref struct NativeEvent
{
    readonly NativeEventView* view;
    readonly NativeEventKind kind;

    internal NativeEvent(NativeEventView* view, NativeEventKind kind)
    {
        this.view = view;
        this.kind = kind;
    }

    /// <summary>Name of the provider.</summary>
    public string ProviderName => kind.ProviderName;
    /// <summary>Name of the event.</summary>
    public string EventName => kind.EventName;
    /// <summary>Id of the event, unique in its provider.</summary>
    public int EventId => view->Info->Id;
    /// <summary>Version of the event's definition.</summary>
    public byte Version => view->Info->Version;
    /// <summary>Level of the event.</summary>
    public EventLevel Level => (EventLevel)view->Info->Level;
    /// <summary>Keywords of the event.</summary>
    public EventKeywords Keywords => (EventKeywords)view->Info->Keywords;
    /// <summary>0 info, 1 start, 2 stop.</summary>
    public EventOpcode Opcode => (EventOpcode)view->Info->Opcode;
    /// <summary>CLOCK_MONOTONIC in nanoseconds, which is also the clock of <see cref="System.Diagnostics.Stopwatch"/>.</summary>
    public ulong TimeNs => view->TimeNs;
    /// <summary>The kernel's id of the thread that fired the event.</summary>
    public ulong OSThreadId => view->ThreadId;
    /// <summary>Activity of the event, or an empty id.</summary>
    public Guid ActivityId => view->ActivityId == null ? Guid.Empty : *view->ActivityId;
    /// <summary>Activity that started this one, or an empty id.</summary>
    public Guid RelatedActivityId => view->RelatedActivityId == null ? Guid.Empty : *view->RelatedActivityId;
    /// <summary>Return addresses, the firing function first; empty unless the listener asked for stacks.</summary>
    public ReadOnlySpan<ulong> Stack => new(view->Stack, (int)view->StackCount);
    /// <summary>Number of events of this thread that were lost directly before this one.</summary>
    public ulong LostBefore => view->LostBefore;
    /// <summary>The payload, in the layout that the native event has.</summary>
    public ReadOnlySpan<byte> PayloadBytes => new(view->Payload, (int)view->PayloadSize);
    /// <summary>Names of the fields.</summary>
    public IReadOnlyList<string> PayloadNames => kind.FieldNames;

    /// <summary>
    /// The values of all fields: bool, the integers, float, double, char, Guid, DateTime (UTC), nuint for a pointer, string, byte[] for a blob, T[] for an array,
    /// and object?[] for a struct, with the values of its members. Allocates; the Get methods do not.
    /// </summary>
    public object?[] Payload
    {
        get
        {
            var values = new object?[kind.FieldNames.Length];
            NativeValue value;
            nuint position = 0;
            for (int i = 0; i < values.Length && Next(&position, &value); i++)
                values[i] = NativeValues.ToObject(&value);
            return values;
        }
    }

    bool Next(nuint* position, NativeValue* value)
    {
        int result = Native.spoor_event_next_field(view, position, value);
        Native.Check(result, "read the payload");
        return result == 1;
    }

    NativeValue Find(ReadOnlySpan<byte> name)
    {
        NativeValue value;
        if (name.IsEmpty || name[^1] != 0)
            throw new ArgumentException("a field's name is UTF-8 with a final zero: \"Number\\0\"u8");
        fixed (byte* text = name)
            if (!Native.IsFound(Native.spoor_event_field(view, text, &value)))
                throw new KeyNotFoundException($"the event {EventName} has no field {Encoding.UTF8.GetString(name[..^1])}");
        return value;
    }

    /// <summary>Has the event this field? Names are UTF-8 with a final zero ("Number\0"u8); "outer.inner" is a member of a struct.</summary>
    public bool Has(ReadOnlySpan<byte> name)
    {
        NativeValue value;
        fixed (byte* text = name)
            return Native.IsFound(Native.spoor_event_field(view, text, &value));
    }

    /// <summary>An unsigned integer, boolean, character, pointer or time (100 ns since 1601).</summary>
    public ulong GetUInt64(ReadOnlySpan<byte> name) => Find(name).U64;
    /// <summary>A signed integer.</summary>
    public long GetInt64(ReadOnlySpan<byte> name) => Find(name).I64;
    /// <summary>A float or double.</summary>
    public double GetDouble(ReadOnlySpan<byte> name) => Find(name).F64;
    /// <summary>The bytes of a text (UTF-8 or UTF-16), a blob, a Guid, a struct, or of the elements of an array.</summary>
    public ReadOnlySpan<byte> GetBytes(ReadOnlySpan<byte> name)
    {
        var value = Find(name);
        return new(value.Bytes, (int)value.ByteCount);
    }
    /// <summary>A text.</summary>
    public string GetString(ReadOnlySpan<byte> name)
    {
        var value = Find(name);
        return NativeValues.ToText(&value);
    }
}

/// <summary>The names of one kind of event, read once.</summary>
internal sealed unsafe class NativeEventKind
{
    internal readonly string ProviderName, EventName;
    internal readonly string[] FieldNames;

    internal NativeEventKind(NativeEventInfo* info)
    {
        ProviderName = Native.Text(info->Provider);
        EventName = Native.Text(info->Name);
        FieldNames = new string[info->FieldCount];
        for (int i = 0; i < FieldNames.Length; i++)
            FieldNames[i] = Native.Text(info->Fields[i].Name);
    }
}

internal static unsafe class NativeValues
{
    internal static string ToText(NativeValue* value)
    {
        var bytes = new ReadOnlySpan<byte>(value->Bytes, (int)value->ByteCount);
        return (NativeType)value->Type == NativeType.Text16 ? Encoding.Unicode.GetString(bytes) : Encoding.UTF8.GetString(bytes);
    }

    internal static object? ToObject(NativeValue* value)
    {
        if (value->IsArray != 0)
            return ToArray(value);
        return (NativeType)value->Type switch
        {
            NativeType.Boolean => value->U64 != 0,
            NativeType.I8 => (sbyte)value->I64,
            NativeType.U8 => (byte)value->U64,
            NativeType.I16 => (short)value->I64,
            NativeType.U16 => (ushort)value->U64,
            NativeType.I32 => (int)value->I64,
            NativeType.U32 => (uint)value->U64,
            NativeType.I64 => value->I64,
            NativeType.U64 => value->U64,
            NativeType.F32 => (float)value->F64,
            NativeType.F64 => value->F64,
            NativeType.Char16 => (char)value->U64,
            NativeType.Guid => new Guid(new ReadOnlySpan<byte>(value->Bytes, 16)),
            NativeType.Time => ToTime(value->U64),
            NativeType.Pointer => (nuint)value->U64,
            NativeType.Text or NativeType.Text16 => ToText(value),
            NativeType.Struct => ToStruct(value),
            _ => null, // of a later version of libspoor
        };
    }

    // A time that DateTime cannot hold is its first or last one.
    static DateTime ToTime(ulong steps)
    {
        ulong most = (ulong)DateTime.MaxValue.ToFileTimeUtc();
        return DateTime.FromFileTimeUtc((long)Math.Min(steps, most));
    }

    static object?[] ToStruct(NativeValue* value)
    {
        var members = new List<object?>();
        NativeValue part;
        nuint position = 0, offset = 0;
        while (Next(value, &position, &offset, &part))
            members.Add(ToObject(&part));
        return members.ToArray();
    }

    static Array ToArray(NativeValue* value) => (NativeType)value->Type switch
    {
        NativeType.U8 => new ReadOnlySpan<byte>(value->Bytes, (int)value->ByteCount).ToArray(),
        NativeType.Boolean => Elements<bool>(value),
        NativeType.I8 => Elements<sbyte>(value),
        NativeType.I16 => Elements<short>(value),
        NativeType.U16 => Elements<ushort>(value),
        NativeType.I32 => Elements<int>(value),
        NativeType.U32 => Elements<uint>(value),
        NativeType.I64 => Elements<long>(value),
        NativeType.U64 => Elements<ulong>(value),
        NativeType.F32 => Elements<float>(value),
        NativeType.F64 => Elements<double>(value),
        NativeType.Char16 => Elements<char>(value),
        NativeType.Guid => Elements<Guid>(value),
        NativeType.Time => Elements<DateTime>(value),
        NativeType.Pointer => Elements<nuint>(value),
        NativeType.Text or NativeType.Text16 => Elements<string>(value),
        _ => Elements<object?>(value),
    };

    static T[] Elements<T>(NativeValue* value)
    {
        var elements = new T[(int)value->Count];
        NativeValue part;
        nuint position = 0, offset = 0;
        for (int i = 0; i < elements.Length && Next(value, &position, &offset, &part); i++)
            elements[i] = (T)ToObject(&part)!;
        return elements;
    }

    static bool Next(NativeValue* value, nuint* position, nuint* offset, NativeValue* part)
    {
        int result = Native.spoor_value_next(value, position, offset, part);
        Native.Check(result, "read an array or a struct");
        return result == 1;
    }
}
