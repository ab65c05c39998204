using System.Text;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Parsers;

namespace Spoor;

/// <summary>
/// Calls back for each dynamic event of a standalone garbage collector, with its own name and fields. TraceEvent itself shows them as GC/DynamicTraceEvent, with a name and bytes.
///
/// Works on any source: EventPipeEventSource for files of dotnet-trace and spoor, and TraceLog.Events.GetSource(); beside TraceEvent's own analyses of the same source. Events that
/// libspoor's programs fire need no parser: their files describe them, and source.Dynamic.All receives them.
/// </summary>
public sealed class SpoorTraceEventParser
{
    // It listens to all events and does not register a template for event 39, because TraceEvent 4.0 then calls either this one or its own GC analysis, depending on their order.
    const int DynamicEventId = 39;
    // TraceEvent gives events that it knows by name ids from here on.
    const int RenamedEventIds = 65500;

    readonly CollectorEventList list;

    /// <summary>A parser of this source's events.</summary>
    /// <param name="source">The source.</param>
    /// <param name="list">The collector's list; Spoor's own by default.</param>
    public SpoorTraceEventParser(TraceEventDispatcher source, CollectorEventList? list = null)
    {
        this.list = list ?? CollectorEventList.Default;
        source.AllEvents += OnEvent;
    }

    /// <summary>All dynamic events of collectors. The event is valid during the call.</summary>
    public event Action<CollectorEvent>? CollectorEvent;

    void OnEvent(TraceEvent data)
    {
        if (CollectorEvent is not { } called || data.ProviderGuid != ClrTraceEventParser.ProviderGuid ||
            ((int)data.ID != DynamicEventId && (int)data.ID < RenamedEventIds))
            return;
        if (Spoor.CollectorEvent.Read(data, list) is { } read)
            called(read);
    }
}

/// <summary>A dynamic event of a collector.</summary>
public sealed class CollectorEvent
{
    readonly object[]? values;

    CollectorEvent(TraceEvent source, string name, byte[] data, CollectorEventDescription? description)
    {
        Source = source;
        Name = name;
        Data = data;
        Description = description;
        values = description?.Decode(data);
    }

    /// <summary>The event as TraceEvent has it: time, process, thread. Valid during the call; Clone() keeps it.</summary>
    public TraceEvent Source { get; }

    /// <summary>Its own name, with its version from version 2 on: "SpoorGCPause", "SpoorGCPause_V2".</summary>
    public string Name { get; }

    /// <summary>The bytes of its own payload: u16 version, then the fields.</summary>
    public byte[] Data { get; }

    /// <summary>Its description in the list; null: the list has no such event.</summary>
    public CollectorEventDescription? Description { get; }

    /// <summary>Is its payload whole, as the list describes it, or as an earlier or later version has it?</summary>
    public bool IsDecoded => values != null;

    /// <summary>
    /// Its fields and their values: numbers of the type that the list names, a string, or an object[] of numbers. An event of an earlier version has fewer fields than the list; one that
    /// is not decoded has none.
    /// </summary>
    public IEnumerable<KeyValuePair<string, object>> Fields => (values ?? []).Select((value, i) => KeyValuePair.Create(Description!.Fields[i].Name, value));

    /// <summary>The value of a field; null: this event does not have it.</summary>
    public object? this[string field] => Fields.FirstOrDefault(pair => pair.Key == field).Value;

    // The runtime's part of the payload: the name in UTF-16 with a zero, u32 size, the bytes. Null: it is damaged.
    internal static CollectorEvent? Read(TraceEvent source, CollectorEventList list)
    {
        var payload = source.EventData().AsSpan();
        for (int end = 0; end + 1 < payload.Length; end += 2)
        {
            if ((payload[end] | payload[end + 1]) != 0)
                continue;
            var name = Encoding.Unicode.GetString(payload[..end]);
            payload = payload[(end + 2)..];
            if (payload.Length < 4 || BitConverter.ToUInt32(payload) > payload.Length - 4)
                return null;
            return new(source, name, payload.Slice(4, (int)BitConverter.ToUInt32(payload)).ToArray(), list.Find(name));
        }
        return null;
    }
}
