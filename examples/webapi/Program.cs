// The web API that the demo records. Each route does one kind of work, which a profile must show.
//
//   /cpu    burns 100 ms of CPU in Shop.Pricing.Burn
//   /wait   sleeps 100 ms without a thread
//   /reserve  waits for a lock that one request at a time holds for 20 ms, and blocks a thread meanwhile
//   /alloc  allocates objects of several sizes
//   /throw  throws and catches an exception
//
// Usage: dotnet Shop.dll [PORT-FILE]. It listens on a free port of 127.0.0.1 and writes the number into PORT-FILE, or to stdout.
using Shop;

var builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.UseUrls("http://127.0.0.1:0");

var app = builder.Build();
app.MapGet("/cpu", () => Results.Json(Pricing.Quote(TimeSpan.FromMilliseconds(100))));
app.MapGet("/wait", Stock.WaitAsync);
app.MapGet("/reserve", () => Results.Text(Warehouse.Reserve()));
app.MapGet("/alloc", () => Results.Text(Basket.Fill(2_000).ToString()));
app.MapGet("/throw", () => Results.Text(Payment.Try(8)));

await app.StartAsync();

var port = new Uri(app.Urls.First()).Port.ToString();
if (args.Length > 0)
{
    // Renamed into place: a reader that waits for the file never sees a part of it.
    await File.WriteAllTextAsync(args[0] + ".new", port);
    File.Move(args[0] + ".new", args[0], overwrite: true);
}
else
{
    Console.WriteLine(port);
}
await app.WaitForShutdownAsync();
