// A web API with one route for each fault that `spoor diagnose` finds, and a healthy one. Under load each route makes the process ill in exactly one way.
//
//   /healthy     waits without a thread and answers with a little JSON
//   /hotspot     computes in Faults.Pricing.Quote                          cpu-hotspot
//   /native      compresses in Faults.Archive.Pack                         native-cpu
//   /garbage     builds and drops trees in Faults.Basket.Fill              gc-pressure
//   /large       makes large arrays in Faults.Pictures.Scale               large-object-churn
//   /collect     collects in Faults.Cache.Trim                             induced-gc
//   /throw       parses words as numbers in Faults.Payment.Parse           exception-storm
//   /jit         compiles expressions in Faults.Rules.Compile              jit-load
//   /lock        holds one lock for long in Faults.Stock.Reserve           lock-contention
//   /spawn       starts /bin/true in Faults.Mail.Send                      process-churn
//   /block       blocks pool threads on tasks in Faults.Orders.Load        sync-over-async
//   /deadlock    takes two locks in both orders in Faults.Accounts.Move    deadlock
//   /keep        keeps every request in Faults.History.Add                 managed-memory-growth
//   /keep-native allocates native memory in Faults.Images.Import           native-memory-growth
//   /handles     opens files and forgets them in Faults.Log.Open           handle-leak
//   /finalize    makes objects with a slow finalizer, Faults.Ticket        finalizer-backlog
//   /write       writes lines one by one in Faults.Journal.Append          small-writes
//   /read        reads from a slow socket in Faults.Import.Read            sync-io-on-pool
//   /delay       awaits a delay in Faults.Shipping.QuoteAsync              async-delay
//   /slow        awaits many things in Faults.Summary.BuildAsync           slow-requests
//   /partner     calls a slow server in Faults.Rates.FetchAsync            slow-dependency
//   /lookup      looks up a name in Faults.Phonebook.FindAsync             dns
//   /secure      opens a TLS connection in Faults.Vault.OpenAsync          tls
//
// Usage: dotnet Faults.dll [PORT-FILE]. It listens on a free port of 127.0.0.1 and writes the number into PORT-FILE, or to stdout.
using Faults;

var builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.UseUrls("http://127.0.0.1:0");

var app = builder.Build();
app.MapGet("/healthy", async () =>
{
    await Task.Delay(20);
    return Results.Json(new Answer("in stock", 3));
});
Route("/hotspot", () => Pricing.Quote(4_000));
Route("/native", Archive.Pack);
Route("/garbage", () => Basket.Fill(14));
Route("/large", Pictures.Scale);
Route("/collect", Cache.Trim);
Route("/throw", () => Payment.ParseAll(50));
Route("/jit", Rules.Compile);
Route("/lock", Stock.Reserve);
Route("/spawn", Mail.Send);
Route("/block", Orders.Load);
Route("/deadlock", Accounts.Move);
Route("/keep", History.Add);
Route("/keep-native", Images.Import);
Route("/handles", Log.Open);
Route("/finalize", Ticket.Print);
Route("/write", Journal.Append);
Route("/read", Import.Read);
RouteAsync("/delay", Shipping.QuoteAsync);
RouteAsync("/slow", Summary.BuildAsync);
RouteAsync("/partner", Rates.FetchAsync);
RouteAsync("/lookup", Phonebook.FindAsync);
RouteAsync("/secure", Vault.OpenAsync);

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

void Route(string path, Func<int> work) => app.MapGet(path, () => Results.Text(work().ToString()));

void RouteAsync(string path, Func<Task<int>> work) => app.MapGet(path, async () => Results.Text((await work()).ToString()));

public sealed record Answer(string Text, int Count);
