// A program for `spoor forward`: fires the events of one EventSource, with a field of every type, until it is killed.
//
//   Forwarded READY [PER-SECOND]      makes the file READY once it fires; 20 rounds a second
using System.Diagnostics.Tracing;

int rate = args.Length > 1 ? int.Parse(args[1]) : 20;
var when = new DateTime(2001, 9, 9, 1, 46, 40, DateTimeKind.Utc);
var id = new Guid("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0");
int number = 0;
// "No date" and "for ever" are usual values.
var dates = new[] { default, when, new DateTime(1500, 1, 1), new DateTime(2300, 1, 1, 0, 0, 0, DateTimeKind.Utc), DateTime.MaxValue };

void Round()
{
    number++;
    Types.Log.Numbers(number, true, -8, 200, -16, 60000, 4000000000, -64, ulong.MaxValue, 0.5f, 0.25);
    Types.Log.Others("naïve \"quoted\"", 'x', id, when);
    EventSource.SetCurrentThreadActivityId(id);
    Types.Log.Warned(number);
    EventSource.SetCurrentThreadActivityId(Guid.Empty);
    Types.Log.Write("Described", new EventSourceOptions { Level = EventLevel.Error, Keywords = Types.Keywords.Four },
        new { Number = number, Text = "a", Inner = new { Depth = 2, Name = "d" } });
    // The runtime does not describe events with arrays to a session.
    Types.Log.Write("Arrays", new EventSourceOptions { Level = EventLevel.Error, Keywords = Types.Keywords.Four }, new { Values = new[] { 1, 2, 3 } });
    // Values that have no type, or that other ways to write a time cannot have.
    Types.Log.Dated(number, dates[number % dates.Length]);
    Types.Log.Bytes(number, number % 2 == 0 ? null : [1, 2, 3], number % 3 == 0 ? null : "text");
    // Longer than what LTTng takes.
    Types.Log.Write(new string('n', 401), new EventSourceOptions { Level = EventLevel.Error, Keywords = Types.Keywords.Eight }, new { Number = number });
}

Round();
File.WriteAllText(args[0], "");
if (rate <= 100)
    for (;;)
    {
        Round();
        Thread.Sleep(1000 / rate);
    }
// As many as asked for, in steps of a millisecond.
var begin = System.Diagnostics.Stopwatch.StartNew();
for (long done = 0; ;)
{
    for (long due = begin.ElapsedMilliseconds * rate / 1000; done < due; done++)
        Types.Log.Warned(number++);
    Thread.Sleep(1);
}

[EventSource(Name = "Forwarded-Types")]
sealed class Types : EventSource
{
    public static readonly Types Log = new();

    public static class Keywords
    {
        public const EventKeywords One = (EventKeywords)1, Two = (EventKeywords)2, Four = (EventKeywords)4, Eight = (EventKeywords)8, Sixteen = (EventKeywords)16;
    }

    [Event(1, Level = EventLevel.Informational, Keywords = Keywords.One)]
    public void Numbers(int number, bool flag, sbyte i8, byte u8, short i16, ushort u16, uint u32, long i64, ulong u64, float f32, double f64) =>
        WriteEvent(1, number, flag, i8, u8, i16, u16, u32, i64, u64, f32, f64);

    [Event(2, Level = EventLevel.Verbose, Keywords = Keywords.Two)]
    public void Others(string text, char letter, Guid id, DateTime when) => WriteEvent(2, text, letter, id, when);

    [Event(3, Level = EventLevel.Warning, Keywords = Keywords.One)]
    public void Warned(int number) => WriteEvent(3, number);

    [Event(4, Level = EventLevel.Informational, Keywords = Keywords.Sixteen)]
    public void Dated(int number, DateTime when) => WriteEvent(4, number, when);

    // In an array of objects null stays null; the other overloads write an empty array.
    [Event(5, Level = EventLevel.Informational, Keywords = Keywords.Sixteen)]
    public void Bytes(int number, byte[]? data, string? text) => WriteEvent(5, [number, data, text]);
}
