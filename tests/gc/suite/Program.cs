// Tests of the behaviour that .NET programs expect of a garbage collector. The runtime's own collector passes them as well.
//
//   suite run [PART]...    runs the tests whose name contains one of the parts, or all; a line for each, exit 1 if one fails
//   suite limits           runs the tests for a small hard limit: out of memory and recovery (DOTNET_GCHeapHardLimit)
//   suite list             prints the names of the tests
//   suite hold FILE        allocates known objects for a heap snapshot, then writes FILE; ends when FILE is removed
//   suite churn SECONDS    allocates in two threads, pins, finalizes: a load with many events
//   suite trees DEPTH      binary trees, the classic load of a collector; prints the sums
//   suite crash            ends by an unhandled exception: for createdump
using System.Diagnostics;
using System.Reflection;
using Suite;

var verb = args.Length > 0 ? args[0] : "run";
switch (verb)
{
    case "run":
        return Run(typeof(LimitTests), false, args.Skip(1).ToArray());
    case "limits":
        return Run(typeof(LimitTests), true, args.Skip(1).ToArray());
    case "list":
        foreach (var (name, _) in Find(typeof(LimitTests), false).Concat(Find(typeof(LimitTests), true)))
            Console.WriteLine(name);
        return 0;
    case "hold":
        return Loads.Hold(args[1]);
    case "churn":
        return Loads.Churn(TimeSpan.FromSeconds(double.Parse(args[1])));
    case "trees":
        return Loads.Trees(int.Parse(args[1]));
    case "crash":
        throw new InvalidOperationException("asked for");
    default:
        Console.Error.WriteLine($"no verb '{verb}'");
        return 2;
}

static IEnumerable<(string Name, MethodInfo Method)> Find(Type limits, bool wanted) =>
    from type in Assembly.GetExecutingAssembly().GetTypes()
    where type.Name.EndsWith("Tests") && type == limits == wanted
    orderby type.Name
    from method in type.GetMethods(BindingFlags.Static | BindingFlags.Public | BindingFlags.DeclaredOnly)
    where method.GetParameters().Length == 0 && method.ReturnType == typeof(void)
    select ($"{type.Name[..^5]}.{method.Name}", method);

static int Run(Type limits, bool wanted, string[] parts)
{
    int passed = 0, failed = 0;
    var all = Stopwatch.StartNew();
    foreach (var (name, method) in Find(limits, wanted))
    {
        if (parts.Length > 0 && !parts.Any(part => name.Contains(part, StringComparison.OrdinalIgnoreCase)))
            continue;
        var time = Stopwatch.StartNew();
        var collections = GC.CollectionCount(0);
        try
        {
            method.CreateDelegate<Action>()();
            passed++;
            Console.WriteLine($"ok    {name}  {time.ElapsedMilliseconds} ms, {GC.CollectionCount(0) - collections} collections");
        }
        catch (Exception exception)
        {
            failed++;
            Console.WriteLine($"FAIL  {name}: {exception}");
        }
    }
    Console.WriteLine($"{passed} passed, {failed} failed, {GC.CollectionCount(0)} collections, {all.ElapsedMilliseconds} ms, .NET {Environment.Version}");
    return failed == 0 && passed > 0 ? 0 : 1;
}
