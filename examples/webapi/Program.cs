// The web API that the demo records: each route does one thing that a profile should show as what it is.
//
//   /cpu    burns 100 ms of CPU in Shop.Pricing.Burn
//   /wait   waits 100 ms off the CPU
//   /alloc  makes garbage of several sizes
//   /throw  throws and catches
//
// Usage: dotnet Shop.dll [PORT-FILE]. It listens on a free port of 127.0.0.1 and writes the number into PORT-FILE, or to stdout.
using Shop;

var builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.UseUrls("http://127.0.0.1:0");

var app = builder.Build();
app.MapGet("/cpu", () => Results.Json(Pricing.Quote(TimeSpan.FromMilliseconds(100))));
app.MapGet("/wait", Stock.WaitAsync);
app.MapGet("/alloc", () => Results.Text(Basket.Fill(2_000).ToString()));
app.MapGet("/throw", () => Results.Text(Payment.Try(8)));

await app.StartAsync();

var port = new Uri(app.Urls.First()).Port.ToString();
if (args.Length > 0)
{
    // Whole or not at all: whoever waits for the file may read it at once.
    await File.WriteAllTextAsync(args[0] + ".new", port);
    File.Move(args[0] + ".new", args[0], overwrite: true);
}
else
{
    Console.WriteLine(port);
}
await app.WaitForShutdownAsync();
