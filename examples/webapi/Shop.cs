using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Text.Json;

namespace Shop;

public sealed record Offer(string Article, int Quantity, decimal Price);

/// <summary>Uses the CPU: this route must have most of the CPU samples.</summary>
public static class Pricing
{
    static readonly Offer[] offers = Enumerable.Range(1, 64)
        .Select(i => new Offer($"article {i}", i % 7 + 1, i * 1.25m))
        .ToArray();

    public static Quote Quote(TimeSpan time)
    {
        var sum = Burn(time);
        var text = JsonSerializer.Serialize(offers);
        var best = JsonSerializer.Deserialize<Offer[]>(text)!
            .GroupBy(offer => offer.Quantity)
            .Select(group => group.MinBy(offer => offer.Price)!.Article)
            .Order()
            .First();
        return new Quote(best, sum % 1000);
    }

    /// <summary>Computes until the time is over. Not inlined, so that it is a frame in every profile.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Burn(TimeSpan time)
    {
        var started = Stopwatch.GetTimestamp();
        var sum = 0.0;
        for (var round = 1; Stopwatch.GetElapsedTime(started) < time; round++)
        {
            for (var i = 1; i <= 20_000; i++)
                sum += Math.Sqrt(i * (double)round) / i;
        }
        return sum;
    }
}

public sealed record Quote(string Article, double Price);

/// <summary>Sleeps for 100 ms without blocking a thread.</summary>
public static class Stock
{
    public static async Task<IResult> WaitAsync()
    {
        await AskWarehouseAsync(TimeSpan.FromMilliseconds(100));
        return Results.Text("in stock");
    }

    static async Task AskWarehouseAsync(TimeSpan time) => await Task.Delay(time);
}

/// <summary>One request at a time: each other one blocks a thread until it is its turn.</summary>
public static class Warehouse
{
    static readonly object shelf = new();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static string Reserve()
    {
        lock (shelf)
        {
            Thread.Sleep(20);
            return "reserved";
        }
    }
}

/// <summary>Allocates many small objects, some arrays, and sometimes an array on the large object heap.</summary>
public static class Basket
{
    public static int Fill(int count)
    {
        var lines = new List<string>();
        for (var i = 0; i < count; i++)
            lines.Add(string.Concat("line ", i.ToString(), new string('-', i % 32)));
        var large = new byte[count % 10 == 0 ? 100_000 : 1_000];
        return lines.Sum(line => line.Length) + large.Length;
    }
}

public sealed class PaymentRefusedException(int depth) : Exception($"refused at depth {depth}");

/// <summary>Throws an exception a few frames below the catch.</summary>
public static class Payment
{
    public static string Try(int depth)
    {
        try
        {
            Charge(depth);
            return "paid";
        }
        catch (PaymentRefusedException refused)
        {
            return refused.Message;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Charge(int depth) =>
        depth == 0 ? throw new PaymentRefusedException(depth) : Charge(depth - 1) + 1;
}
