// Work of known amount, for the analyses of `spoor report` (managed_answers.sh).
//
//   Answered allocate N   N times 800 arrays of 1,024 bytes and one of 200,024; prints the bytes that the runtime counted, "allocated X"
//   Answered contend N    thread "Requester" waits N times for a lock that the main thread holds; prints the runtime's own count, "contended X"
//   Answered wait N       thread "Waiter" waits N times for an event, then N times for a pulse; "waited 2 N"
//   Answered starve MS    8 work items for each CPU block a worker for MS each, one half in Thread.Sleep, the other in a task's GetResult
//
// Prints "ready". A mode begins when the file ./go exists, and the program ends when ./end exists.
using System.Runtime.CompilerServices;

if (args.Length != 2 || !int.TryParse(args[1], out int amount))
    return 2;
Console.WriteLine("ready");
switch (args[0])
{
    case "allocate":
        Answered.Allocate(amount);
        break;
    case "contend":
        Answered.Contend(amount);
        break;
    case "wait":
        Answered.Wait(amount);
        break;
    case "starve":
        Answered.Starve(amount);
        break;
    default:
        return 2;
}
return 0;

static class Answered
{
    static object? kept;

    static void Await(string path)
    {
        while (!File.Exists(path))
            Thread.Sleep(10);
    }

    static void Tell(string words)
    {
        Console.WriteLine(words);
        Await("end");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Small()
    {
        for (int i = 0; i < 800; i++)
            kept = new int[250];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Large()
    {
        kept = new byte[200_000];
    }

    public static void Allocate(int rounds)
    {
        Await("go");
        long before = GC.GetTotalAllocatedBytes(true);
        for (int i = 0; i < rounds; i++)
        {
            Small();
            Large();
        }
        Tell($"allocated {GC.GetTotalAllocatedBytes(true) - before}");
    }

    static void AwaitBlocked(Thread thread)
    {
        while ((thread.ThreadState & ThreadState.WaitSleepJoin) == 0)
            Thread.Sleep(1);
        Thread.Sleep(5);
    }

    static readonly object gate = new();
    static int requests; // begun by "Requester"
    static int waits; // begun by "Waiter"

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Request(AutoResetEvent asks, AutoResetEvent done)
    {
        asks.WaitOne();
        requests++;
        lock (gate)
            kept = gate;
        done.Set();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Hold(AutoResetEvent asks, Thread requester)
    {
        lock (gate)
        {
            int before = Volatile.Read(ref requests);
            asks.Set();
            while (Volatile.Read(ref requests) == before)
                Thread.Sleep(1);
            AwaitBlocked(requester);
        }
    }

    public static void Contend(int count)
    {
        using AutoResetEvent asks = new(false), done = new(false);
        Await("go");
        long before = Monitor.LockContentionCount;
        Thread requester = new(() =>
        {
            for (int i = 0; i < count; i++)
                Request(asks, done);
        }) { Name = "Requester" };
        requester.Start();
        for (int i = 0; i < count; i++)
        {
            Hold(asks, requester);
            done.WaitOne();
        }
        requester.Join();
        Tell($"contended {Monitor.LockContentionCount - before}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitEvent(EventWaitHandle handle)
    {
        waits++;
        handle.WaitOne();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitPulse()
    {
        lock (gate)
        {
            waits++;
            Monitor.Wait(gate);
        }
    }

    public static void Wait(int count)
    {
        using AutoResetEvent handle = new(false);
        Await("go");
        Thread waiter = new(() =>
        {
            for (int i = 0; i < count; i++)
                WaitEvent(handle);
            for (int i = 0; i < count; i++)
                WaitPulse();
        }) { Name = "Waiter" };
        waiter.Start();
        for (int i = 0; i < 2 * count; i++)
        {
            while (Volatile.Read(ref waits) <= i)
                Thread.Sleep(1);
            AwaitBlocked(waiter);
            if (i < count)
                handle.Set();
            else
                lock (gate)
                    Monitor.Pulse(gate);
        }
        waiter.Join();
        Tell($"waited {2 * count}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Block(int ms) => Task.Delay(ms).GetAwaiter().GetResult();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nap(int ms) => Thread.Sleep(ms);

    public static void Starve(int ms)
    {
        Await("go");
        int count = 8 * Environment.ProcessorCount;
        using CountdownEvent left = new(count);
        for (int i = 0; i < count; i++)
        {
            bool naps = i % 2 == 0;
            ThreadPool.QueueUserWorkItem(_ =>
            {
                if (naps)
                    Nap(ms);
                else
                    Block(ms);
                left.Signal();
            });
        }
        left.Wait();
        Tell($"starved {ThreadPool.ThreadCount}");
    }
}
