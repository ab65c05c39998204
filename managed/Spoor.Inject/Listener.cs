// Fires each event of the chosen EventSources again with libspoor, on the thread that fired it.
using System.Collections.Concurrent;
using System.Diagnostics.Tracing;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Spoor;

internal sealed unsafe class Listener : EventListener
{
    // struct spoor_writer has less; lib/event/event_source.c checks it.
    const int WriterBytes = 4096;
    const int NamesMax = 65536;
    const int FieldsMax = 62; // without those that are added here
    const int TextsMax = 1024;

    static readonly ConcurrentDictionary<EventSource, nint> s_sources = new();
    static readonly ConcurrentDictionary<string, nint> s_names = new();
    static readonly ConcurrentDictionary<(EventSource Source, int Id, string? Event, string Field), Array?> s_empty = new();
    static Dictionary<string, Wanted>? s_next;
    static long s_fired, s_unheard, s_failed;
    [ThreadStatic] static bool t_isFiring;

    // Set before the constructor of EventListener calls OnEventSourceCreated().
    readonly Dictionary<string, Wanted> _wanted = s_next!;

    // Since the last end. After the end of a listener other threads may be in their last call.
    internal static (long Fired, long Unheard, long Failed) FinalCounts()
    {
        long sum = -1;

        for (int i = 0; i < 100; i++)
        {
            var before = sum;
            sum = Interlocked.Read(ref s_fired) + Interlocked.Read(ref s_unheard) + Interlocked.Read(ref s_failed);
            if (sum == before)
                break;
            Thread.Sleep(10);
        }
        return (Interlocked.Exchange(ref s_fired, 0), Interlocked.Exchange(ref s_unheard, 0), Interlocked.Exchange(ref s_failed, 0));
    }

    internal static Listener Create(Dictionary<string, Wanted> wanted)
    {
        s_next = wanted;
        return new Listener();
    }

    protected override void OnEventSourceCreated(EventSource source)
    {
        if (_wanted.TryGetValue(source.Name, out var wanted))
            EnableEvents(source, (EventLevel)wanted.Level, (EventKeywords)wanted.Keywords, wanted.Arguments);
    }

    protected override void OnEventWritten(EventWrittenEventArgs e)
    {
        // What is called here may itself fire events; and of two listeners, the newer one counts.
        if (t_isFiring || !ReferenceEquals(_wanted, s_next) || !IsWanted(e))
            return;
        t_isFiring = true;
        try
        {
            Fire(e);
        }
        catch (Exception)
        {
            Interlocked.Increment(ref s_failed);
        }
        finally
        {
            t_isFiring = false;
        }
    }

    // A self-describing event comes to every listener of its source, whatever it has enabled.
    bool IsWanted(EventWrittenEventArgs e) =>
        _wanted.TryGetValue(e.EventSource.Name, out var wanted) &&
        (wanted.Level == 0 || (uint)e.Level <= wanted.Level) &&
        (wanted.Keywords == 0 || e.Keywords == 0 || ((ulong)e.Keywords & wanted.Keywords) != 0);

    [SkipLocalsInit]
    static void Fire(EventWrittenEventArgs e)
    {
        byte* writer = stackalloc byte[WriterBytes];
        var source = s_sources.GetOrAdd(e.EventSource, static s => Native.spoor_source_new(Name(s.Name)));

        if (source == 0)
        {
            Interlocked.Increment(ref s_failed);
            return;
        }
        if (Native.spoor_source_begin(source, Name(e.EventName ?? "Event" + e.EventId), (uint)e.Level, (ulong)e.Keywords, writer) == 0)
        {
            Interlocked.Increment(ref s_unheard);
            return;
        }
        try
        {
            var values = e.Payload;
            var names = e.PayloadNames;
            int count = values is null || names is null ? 0 : Math.Min(values.Count, names.Count);
            for (int i = 0; i < count && i < FieldsMax; i++)
                Write(writer, Name(names![i]), values![i] ?? EmptyOf(e, names[i]), 0);
            // Always, with zeros: an event that has them at times would be two kinds of event.
            WriteActivity(writer, "origin_activity_id", e.ActivityId);
            WriteActivity(writer, "origin_related_activity_id", e.RelatedActivityId);
        }
        catch
        {
            Native.spoor_source_cancel(writer);
            throw;
        }
        switch (Native.spoor_source_end(writer))
        {
            case < 0: Interlocked.Increment(ref s_failed); break;
            case Native.NotEnabled: Interlocked.Increment(ref s_unheard); break;
            default: Interlocked.Increment(ref s_fired); break;
        }
    }

    static void WriteActivity(byte* writer, string name, Guid id) => Native.spoor_write_guid(writer, Name(name), &id);

    // In place of null: an array without elements, if the parameter of the event's method is an array. Null has no type, and an event whose field has another
    // type at times would be two kinds of event. Null: a text.
    static Array? EmptyOf(EventWrittenEventArgs e, string name) => s_empty.GetOrAdd((e.EventSource, e.EventId, e.EventName, name), static key =>
    {
        const BindingFlags Methods = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly;

        for (var type = key.Source.GetType(); type is not null && type != typeof(EventSource); type = type.BaseType)
            foreach (var method in type.GetMethods(Methods))
                if (method.GetCustomAttribute<EventAttribute>() is { } mark ? mark.EventId == key.Id : method.Name == key.Event)
                    foreach (var parameter in method.GetParameters())
                        if (parameter.Name == key.Field && parameter.ParameterType is { IsArray: true } array)
                            return Array.CreateInstance(array.GetElementType()!, 0);
        return null;
    });

    // In UTF-8 and for ever, as libspoor borrows it; few names come again and again.
    static byte* Name(string text)
    {
        if (s_names.TryGetValue(text, out var known))
            return (byte*)known;
        if (s_names.Count >= NamesMax)
            throw new InvalidOperationException("too many names");
        var made = Marshal.StringToCoTaskMemUTF8(text);
        var kept = s_names.GetOrAdd(text, made);
        if (kept != made)
            Marshal.FreeCoTaskMem(made);
        return (byte*)kept;
    }

    static void WriteText(byte* writer, byte* name, string? text)
    {
        fixed (char* units = text ?? "")
            Native.spoor_write_text16(writer, name, units);
    }

    static void WriteTime(byte* writer, byte* name, DateTime time)
    {
        // As EventSource gives it to a session: of the years before 1601, that year.
        Native.spoor_write_time_steps(writer, name, time.Year < 1601 ? 0 : (ulong)Math.Max(0, time.ToFileTimeUtc()));
    }

    // A pattern `int[]` would also match uint[].
    static NativeType? TypeOf(Type element) => Type.GetTypeCode(element) switch
    {
        TypeCode.SByte => NativeType.I8,
        TypeCode.Byte => NativeType.U8,
        TypeCode.Int16 => NativeType.I16,
        TypeCode.UInt16 => NativeType.U16,
        TypeCode.Int32 => NativeType.I32,
        TypeCode.UInt32 => NativeType.U32,
        TypeCode.Int64 => NativeType.I64,
        TypeCode.UInt64 => NativeType.U64,
        TypeCode.Single => NativeType.F32,
        TypeCode.Double => NativeType.F64,
        TypeCode.Char => NativeType.Char16,
        _ => element == typeof(Guid) ? NativeType.Guid : null,
    };

    static void WriteElements(byte* writer, byte* name, Array values, NativeType type)
    {
        fixed (byte* first = &MemoryMarshal.GetArrayDataReference(values))
        {
            if (type == NativeType.U8)
                Native.spoor_write_blob(writer, name, first, (nuint)values.Length);
            else
                Native.spoor_write_array(writer, name, type, first, (nuint)values.Length);
        }
    }

    static void WriteTexts(byte* writer, byte* name, string?[] texts)
    {
        int count = Math.Min(texts.Length, TextsMax);
        var copies = new nint[count];

        try
        {
            for (int i = 0; i < count; i++)
                copies[i] = Marshal.StringToCoTaskMemUTF8(texts[i] ?? "");
            fixed (nint* first = copies)
                Native.spoor_write_text_array(writer, name, (byte**)first, (nuint)count);
        }
        finally
        {
            foreach (var copy in copies)
                Marshal.FreeCoTaskMem(copy);
        }
    }

    static void Write(byte* writer, byte* name, object? value, int depth)
    {
        switch (value)
        {
            case null: WriteText(writer, name, null); break;
            case string v: WriteText(writer, name, v); break;
            case bool v: Native.spoor_write_boolean(writer, name, v ? (byte)1 : (byte)0); break;
            case int v: Native.spoor_write_i32(writer, name, v); break;
            case long v: Native.spoor_write_i64(writer, name, v); break;
            case uint v: Native.spoor_write_u32(writer, name, v); break;
            case ulong v: Native.spoor_write_u64(writer, name, v); break;
            case double v: Native.spoor_write_f64(writer, name, v); break;
            case float v: Native.spoor_write_f32(writer, name, v); break;
            case short v: Native.spoor_write_i16(writer, name, v); break;
            case ushort v: Native.spoor_write_u16(writer, name, v); break;
            case byte v: Native.spoor_write_u8(writer, name, v); break;
            case sbyte v: Native.spoor_write_i8(writer, name, v); break;
            case char v: Native.spoor_write_char16(writer, name, v); break;
            case Guid v: Native.spoor_write_guid(writer, name, &v); break;
            case DateTime v: WriteTime(writer, name, v); break;
            case DateTimeOffset v: WriteTime(writer, name, v.UtcDateTime); break;
            case nint v: Native.spoor_write_pointer(writer, name, v); break;
            case nuint v: Native.spoor_write_pointer(writer, name, (nint)v); break;
            case Enum v: Write(writer, name, Convert.ChangeType(v, Enum.GetUnderlyingType(v.GetType())), depth); break;
            case string?[] v: WriteTexts(writer, name, v); break;
            case bool[] v: WriteElements(writer, name, Array.ConvertAll(v, b => b ? 1 : 0), NativeType.Boolean); break;
            case Array v when v.Rank == 1 && TypeOf(v.GetType().GetElementType()!) is { } type: WriteElements(writer, name, v, type); break;
            case IDictionary<string, object?> v when depth < 8:
                Native.spoor_write_struct_begin(writer, name);
                foreach (var (member, part) in v)
                    Write(writer, Name(member), part, depth + 1);
                Native.spoor_write_struct_end(writer);
                break;
            default: WriteText(writer, name, value.ToString()); break;
        }
    }
}
