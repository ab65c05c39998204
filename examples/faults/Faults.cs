using System.Diagnostics;
using System.IO.Compression;
using System.Linq.Expressions;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

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

    [ThreadStatic]
    static MemoryStream? room;

    static Archive() => new Random(1).NextBytes(pages.AsSpan(0, 500_000));

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Pack()
    {
        // The same memory each time: this fault is the compression.
        var packed = room ??= new MemoryStream(pages.Length);
        packed.SetLength(0);
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
            for (var i = 0; i < 10; i++)
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

static class Journal
{
    static readonly byte[] line = "one more line\n"u8.ToArray();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Append()
    {
        var path = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName());
        using var file = new FileStream(path, FileMode.CreateNew, FileAccess.Write, FileShare.None, bufferSize: 0, FileOptions.DeleteOnClose);
        for (var i = 0; i < 5_000; i++)
            file.Write(line);
        return (int)file.Length;
    }
}

// Other machines: what they serve is served by threads of their own, because the pool's threads belong to the fault.
static class Remote
{
    public static int Listen(Action<TcpClient> serve)
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start(512);
        Run(() =>
        {
            while (true)
            {
                var client = listener.AcceptTcpClient();
                Run(() =>
                {
                    using (client)
                        serve(client);
                });
            }
        });
        return ((IPEndPoint)listener.LocalEndpoint).Port;
    }

    static void Run(Action work) => new Thread(() =>
    {
        try
        {
            work();
        }
        catch (Exception e) when (e is IOException or SocketException or System.Security.Authentication.AuthenticationException)
        {
            // The client has gone.
        }
    }, 256 * 1024) { IsBackground = true }.Start();
}

static class Import
{
    static readonly int port = Remote.Listen(client =>
    {
        Thread.Sleep(500);
        client.GetStream().WriteByte(7);
    });

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Read()
    {
        using var client = new TcpClient("127.0.0.1", port);
        return client.GetStream().ReadByte();
    }
}

static class Shipping
{
    public static async Task<int> QuoteAsync()
    {
        await Task.Delay(800);
        return 7;
    }
}

static class Summary
{
    static async Task<int> ReadSalesAsync()
    {
        await Task.Delay(300);
        return 1;
    }

    static async Task<int> ReadStockAsync()
    {
        await Task.Delay(300);
        return 1;
    }

    static async Task<int> ReadReturnsAsync()
    {
        await Task.Delay(300);
        return 1;
    }

    static async Task<int> ReadReviewsAsync()
    {
        await Task.Delay(300);
        return 1;
    }

    public static async Task<int> BuildAsync() =>
        await ReadSalesAsync() + await ReadStockAsync() + await ReadReturnsAsync() + await ReadReviewsAsync();
}

static class Rates
{
    static readonly HttpClient client = new();

    static readonly int port = Remote.Listen(partner =>
    {
        var stream = partner.GetStream();
        var reader = new StreamReader(stream);
        while (reader.ReadLine() is { } line)
        {
            if (line.Length > 0)
                continue;
            Thread.Sleep(700);
            stream.Write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7"u8);
        }
    });

    public static async Task<int> FetchAsync() => (await client.GetByteArrayAsync($"http://127.0.0.1:{port}/rates/7")).Length;
}

static class Phonebook
{
    public static async Task<int> FindAsync()
    {
        try
        {
            return (await Dns.GetHostAddressesAsync("partner.invalid")).Length;
        }
        catch (SocketException)
        {
            return 0;
        }
    }
}

static class Vault
{
    static readonly X509Certificate2 certificate = Certify();

    static readonly int port = Remote.Listen(client =>
    {
        using var secure = new SslStream(client.GetStream());
        secure.AuthenticateAsServer(certificate);
        secure.ReadByte();
    });

    static X509Certificate2 Certify()
    {
        using var key = RSA.Create(2048);
        return new CertificateRequest("CN=vault", key, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1)
            .CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1));
    }

    public static async Task<int> OpenAsync()
    {
        using var client = new TcpClient();
        await client.ConnectAsync(IPAddress.Loopback, port);
        await using var secure = new SslStream(client.GetStream(), false, (_, _, _, _) => true);
        await secure.AuthenticateAsClientAsync("vault");
        return 7;
    }
}
