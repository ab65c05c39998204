// The EventSource whose manifest is eventsource.man. `dotnet run eventsource.cs > eventsource.man` makes it again.
#:property PublishAot=false
using System;
using System.Diagnostics.Tracing;

Console.Write(EventSource.GenerateManifest(typeof(ShopSource), "Shop.dll"));

public enum Payment { Cash, Card = 5 }

[Flags]
public enum Extras { None = 0, Gift = 1, Express = 4 }

[EventSource(Name = "Acme-Shop.Orders")]
public sealed class ShopSource : EventSource
{
    public static class Keywords { public const EventKeywords Orders = (EventKeywords)1; public const EventKeywords Stock = (EventKeywords)2; }
    public static class Tasks { public const EventTask Order = (EventTask)1; }
    public static class Opcodes { public const EventOpcode Pack = (EventOpcode)20; }

    [Event(1, Level = EventLevel.Informational, Keywords = Keywords.Orders, Task = Tasks.Order, Opcode = EventOpcode.Start, Message = "Order {0} of {1}")]
    public void OrderStart(int number, string item, Payment payment, Extras extras) { WriteEvent(1, number, item, (int)payment, (int)extras); }

    [Event(2, Level = EventLevel.Informational, Keywords = Keywords.Orders, Task = Tasks.Order, Opcode = EventOpcode.Stop, Version = 2)]
    public void OrderStop(int number, bool paid, Guid receipt, DateTime when) { WriteEvent(2, number, paid, receipt, when); }

    [Event(3, Level = EventLevel.Verbose, Keywords = Keywords.Stock | Keywords.Orders, Task = Tasks.Order, Opcode = Opcodes.Pack)]
    public void Packed(byte box, sbyte side, short width, ushort height, uint depth, long weight, ulong id, float price, double rate, char grade, IntPtr handle) { WriteEvent(3); }

    [Event(4, Level = EventLevel.Warning)]
    public void Label(int number, byte[] image) { WriteEvent(4, number, image); }

    [Event(5, Level = EventLevel.Error)]
    public void Failed() { WriteEvent(5); }
}
