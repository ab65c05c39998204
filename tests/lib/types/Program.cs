// Prints the events of a file of libspoor with TraceEvent: a line for each, with names, types and values of its fields. The last line is the number of lost events.
using System.Collections;
using System.Globalization;
using System.Text;
using Microsoft.Diagnostics.Tracing;

using var source = new EventPipeEventSource(args[0]);
source.Dynamic.All += data =>
{
    if (data.ProviderName.StartsWith("Microsoft-"))
        return;
    var line = new StringBuilder();
    line.Append(CultureInfo.InvariantCulture,
        $"{data.ProviderName}/{data.EventName} id={(int)data.ID} version={data.Version} level={(int)data.Level} keywords=0x{(ulong)data.Keywords:x} opcode={(int)data.Opcode}");
    foreach (var name in data.PayloadNames)
        line.Append(' ').Append(name).Append('=').Append(Text(data.PayloadByName(name)));
    Console.WriteLine(line);
};
source.Process();
Console.WriteLine($"lost {source.EventsLost}");

static string Text(object? value) => value switch
{
    null => "null",
    string text => '"' + string.Concat(text.Select(unit => unit < 0x7f ? unit.ToString() : $"\\u{(int)unit:x4}")) + '"',
    char unit => $"'\\u{(int)unit:x4}'",
    bool flag => flag ? "true" : "false",
    float number => number.ToString("R", CultureInfo.InvariantCulture) + "f",
    double number => number.ToString("R", CultureInfo.InvariantCulture) + "d",
    DateTime time => time.ToUniversalTime().ToString("yyyy-MM-ddTHH:mm:ss.fffffffZ", CultureInfo.InvariantCulture),
    Guid guid => guid.ToString(),
    IDictionary<string, object> fields => "{" + string.Join(", ", fields.Select(field => field.Key + "=" + Text(field.Value))) + "}",
    IEnumerable items => "[" + string.Join(", ", items.Cast<object?>().Select(Text)) + "]",
    IFormattable number => number.ToString(null, CultureInfo.InvariantCulture) + ":" + value.GetType().Name,
    _ => value.ToString() ?? "",
};
