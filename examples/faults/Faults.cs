using System.Diagnostics;
using System.IO.Compression;
using System.Linq.Expressions;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Faults;

static class Pricing
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Quote(int rounds)
    {
        var sum = 0.0;
        for (var round = 1; round <= rounds; round++)
            for (var i = 1; i <= 5_000; i++)
                sum += Math.Sqrt(i * (double)round) / i;
        return (int)sum;
    }
}

static class Archive
{
    static readonly byte[] pages = new byte[1_000_000];

    static Archive() => new Random(1).NextBytes(pages.AsSpan(0, 500_000));

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Pack()
    {
        using var packed = new MemoryStream(pages.Length);
        using (var stream = new BrotliStream(packed, (CompressionLevel)2, leaveOpen: true))
            stream.Write(pages);
        return (int)packed.Length;
    }
}

sealed class Node(Node? left, Node? right)
{
    public readonly Node? Left = left, Right = right;
}

static class Basket
{
    // What a collection has to walk each time.
    static readonly Node kept = Fill(17, 0);

    static Node Fill(int depth, int number) => depth == 0 ? new Node(null, null) : new Node(Fill(depth - 1, number), Fill(depth - 1, number));

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Fill(int depth)
    {
        var count = 0;
        for (var i = 0; i < 10; i++)
            count += Fill(depth, i).Left is null ? 0 : 1;
        GC.KeepAlive(kept);
        return count;
    }
}

static class Pictures
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Scale()
    {
        var sum = 0;
        for (var i = 0; i < 20; i++)
            sum += (new byte[1_000_000])[i];
        return sum;
    }
}

static class Cache
{
    static readonly List<byte[]> entries = Enumerable.Range(0, 20_000).Select(_ => new byte[100]).ToList();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Trim()
    {
        GC.Collect();
        return entries.Count;
    }
}

static class Payment
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Parse(string text)
    {
        try
        {
            return int.Parse(text);
        }
        catch (FormatException)
        {
            return 0;
        }
    }

    public static int ParseAll(int count)
    {
        var sum = 0;
        for (var i = 0; i < count; i++)
            sum += Parse("a number");
        return sum;
    }
}

static class Rules
{
    static int number;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Compile()
    {
        var price = Expression.Parameter(typeof(int), "price");
        Expression body = price;
        for (var i = 0; i < 40; i++)
            body = Expression.Add(Expression.Multiply(body, Expression.Constant(i)), Expression.Constant(++number));
        return Expression.Lambda<Func<int, int>>(body, price).Compile()(3);
    }
}

static class Stock
{
    static readonly object gate = new();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Reserve()
    {
        lock (gate)
            Thread.Sleep(50);
        return 1;
    }
}

static class Mail
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Send()
    {
        using var program = Process.Start("/bin/true");
        program.WaitForExit();
        return program.ExitCode;
    }
}

static class Orders
{
    static async Task<int> LoadAsync()
    {
        await Task.Delay(1_000);
        return 7;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Load() => LoadAsync().Result;
}

static class Accounts
{
    static readonly object first = new(), second = new();
    static int turn;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Move()
    {
        var forward = Interlocked.Increment(ref turn) % 2 == 0;
        lock (forward ? first : second)
        {
            Thread.Sleep(50);
            lock (forward ? second : first)
                return turn;
        }
    }
}

static class History
{
    static readonly List<byte[]> requests = [];

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Add()
    {
        lock (requests)
        {
            requests.Add(new byte[20_000]);
            return requests.Count;
        }
    }
}

static class Images
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static unsafe int Import()
    {
        var image = (byte*)NativeMemory.Alloc(100_000);
        new Span<byte>(image, 100_000).Fill(1);
        return image[17];
    }
}

static class Log
{
    static readonly List<FileStream> forgotten = [];

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Open()
    {
        lock (forgotten)
        {
            forgotten.Add(File.OpenRead("/dev/null"));
            return forgotten.Count;
        }
    }
}

sealed class Ticket
{
    readonly byte[] text = new byte[1_000];

    ~Ticket() => Thread.Sleep(text.Length / 100);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Print()
    {
        var sum = 0;
        for (var i = 0; i < 1_000; i++)
            sum += new Ticket().text.Length;
        return sum;
    }
}
