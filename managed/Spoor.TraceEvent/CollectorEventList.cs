using System.Buffers.Binary;
using System.Text;
using System.Text.RegularExpressions;

namespace Spoor;

/// <summary>The dynamic events of a collector, read from its list: a file like Spoor's gc/gc_events.def, with an entry GC_DYNAMIC for each event.</summary>
public sealed class CollectorEventList
{
    readonly Dictionary<string, CollectorEventDescription> events = new(StringComparer.Ordinal);

    /// <summary>The list of Spoor's own collectors, of the version of this package.</summary>
    public static CollectorEventList Default { get; } = ReadDefault();

    /// <summary>Reads a list. Throws FormatException with the entry that is wrong.</summary>
    public static CollectorEventList Parse(string text)
    {
        var list = new CollectorEventList();
        text = Regex.Replace(text, @"/\*.*?\*/", "", RegexOptions.Singleline);
        foreach (Match start in Regex.Matches(text, @"^GC_DYNAMIC\((\w+)", RegexOptions.Multiline))
        {
            // Up to the next entry; the text in quotes may contain anything.
            var entry = Regex.Match(text[start.Index..], @"\AGC_DYNAMIC\((\w+),\s*(\d+),\s*\d+,\s*\w+,\s*""(?:[^""\\]|\\.)*""((?:\s*,\s*\(\s*\w+\s*,\s*\w+\s*\))*)\s*\)");
            if (!entry.Success)
                throw new FormatException($"GC_DYNAMIC({start.Groups[1].Value}, ...) is not a complete entry");
            var fields = new List<CollectorField>();
            foreach (Match field in Regex.Matches(entry.Groups[3].Value, @"\(\s*(\w+)\s*,\s*(\w+)\s*\)"))
                fields.Add(new CollectorField(field.Groups[2].Value, field.Groups[1].Value));
            var name = entry.Groups[1].Value;
            list.events[name] = new CollectorEventDescription(name, int.Parse(entry.Groups[2].Value), fields);
        }
        return list;
    }

    /// <summary>The event of this name, with or without its version ("SpoorGCPause_V2"); null: the list has none.</summary>
    public CollectorEventDescription? Find(string name) =>
        events.GetValueOrDefault(name) ?? events.GetValueOrDefault(Regex.Replace(name, "_V[0-9]+$", ""));

    static CollectorEventList ReadDefault()
    {
        using var stream = typeof(CollectorEventList).Assembly.GetManifestResourceStream("gc_events.def")!;
        using var reader = new StreamReader(stream);
        return Parse(reader.ReadToEnd());
    }
}

/// <summary>One event of a list.</summary>
public sealed class CollectorEventDescription
{
    internal CollectorEventDescription(string name, int version, IReadOnlyList<CollectorField> fields)
    {
        Name = name;
        Version = version;
        Fields = fields;
    }

    /// <summary>Its name, without a version.</summary>
    public string Name { get; }
    /// <summary>Its version in the list. A later version appends fields.</summary>
    public int Version { get; }
    /// <summary>Its fields, in the order of the payload.</summary>
    public IReadOnlyList<CollectorField> Fields { get; }

    /// <summary>
    /// The values of the fields that the payload has: all of them, the first ones if an earlier version wrote it, and no further ones if a later version did. Null: the payload is
    /// damaged.
    /// </summary>
    public object[]? Decode(ReadOnlySpan<byte> payload)
    {
        var values = new List<object>();
        if (payload.Length < 2)
            return null;
        int version = BinaryPrimitives.ReadUInt16LittleEndian(payload);
        payload = payload[2..];
        foreach (var field in Fields)
        {
            if (payload.IsEmpty && version < Version)
                break;
            if (field.Read(ref payload) is not { } value)
                return null;
            values.Add(value);
        }
        return payload.IsEmpty || version > Version ? values.ToArray() : null;
    }
}

/// <summary>A field: a number, a text, or an array of numbers.</summary>
public sealed class CollectorField
{
    readonly string element;
    readonly int size;

    internal CollectorField(string name, string type)
    {
        Name = name;
        Type = type;
        IsArray = type.EndsWith('s') && type != "text16s";
        element = IsArray ? type[..^1] : type;
        size = element switch
        {
            "u8" or "i8" => 1,
            "u16" or "i16" => 2,
            "u32" or "i32" or "f32" => 4,
            "u64" or "i64" or "f64" or "ptr" or "size" => 8,
            "text16" when !IsArray => 0,
            _ => throw new FormatException($"the field {name} has the type {type}, which is not known"),
        };
    }

    /// <summary>Its name, which ends with its unit.</summary>
    public string Name { get; }
    /// <summary>Its type in the list: u8 to u64, i8 to i64, f32, f64, ptr, size, text16; with an s: an array.</summary>
    public string Type { get; }
    /// <summary>Is it an array of numbers?</summary>
    public bool IsArray { get; }

    // Null: it is not whole.
    internal object? Read(ref ReadOnlySpan<byte> payload)
    {
        if (element == "text16")
            return ReadText(ref payload);
        if (!IsArray)
            return ReadNumber(ref payload);
        if (payload.Length < 2)
            return null;
        int count = BinaryPrimitives.ReadUInt16LittleEndian(payload);
        payload = payload[2..];
        if (payload.Length < count * size)
            return null;
        var values = new object[count];
        for (int i = 0; i < count; i++)
            values[i] = ReadNumber(ref payload)!;
        return values;
    }

    static string? ReadText(ref ReadOnlySpan<byte> payload)
    {
        for (int end = 0; end + 1 < payload.Length; end += 2)
        {
            if ((payload[end] | payload[end + 1]) != 0)
                continue;
            var text = Encoding.Unicode.GetString(payload[..end]);
            payload = payload[(end + 2)..];
            return text;
        }
        return null;
    }

    object? ReadNumber(ref ReadOnlySpan<byte> payload)
    {
        if (payload.Length < size)
            return null;
        var bytes = payload[..size];
        payload = payload[size..];
        return element switch
        {
            "u8" => bytes[0],
            "i8" => (sbyte)bytes[0],
            "u16" => BinaryPrimitives.ReadUInt16LittleEndian(bytes),
            "i16" => BinaryPrimitives.ReadInt16LittleEndian(bytes),
            "u32" => BinaryPrimitives.ReadUInt32LittleEndian(bytes),
            "i32" => BinaryPrimitives.ReadInt32LittleEndian(bytes),
            "i64" => BinaryPrimitives.ReadInt64LittleEndian(bytes),
            "f32" => BinaryPrimitives.ReadSingleLittleEndian(bytes),
            "f64" => BinaryPrimitives.ReadDoubleLittleEndian(bytes),
            _ => BinaryPrimitives.ReadUInt64LittleEndian(bytes),
        };
    }
}
