// A workload with every kind of managed code. The benchmarks `bytes` and `names` record it.
//
//   dotnet Mix.dll SECONDS [steady]
//
// steady: a warmed-up program that computes on both threads all the time. Without tasks that compile new code, throw exceptions, wait, or cause
// collections that suspend all threads.
//
// Two busy threads repeat a list of tasks: generics over many instantiations, LINQ, async, regular expressions (interpreted, compiled),
// JSON in both directions, expression trees, dynamic methods, exceptions, collections, delegates and interfaces. Each thread compiles a new
// expression tree, dynamic method and regular expression every second, so that some methods are always between two tiers.
using System.Collections.Concurrent;
using System.Collections.Immutable;
using System.Diagnostics;
using System.Globalization;
using System.Linq.Expressions;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;

namespace Mix;

public static class Program
{
    static long _sink;
    static volatile bool _stopped;

    public static int Main(string[] args)
    {
        if (args.Length is < 1 or > 2 || !int.TryParse(args[0], out int seconds) || seconds < 1 || (args.Length == 2 && args[1] != "steady"))
        {
            Console.Error.WriteLine("Mix SECONDS [steady]");
            return 2;
        }
        bool steady = args.Length == 2;
        var threads = new Thread[2];
        for (int i = 0; i < threads.Length; i++)
        {
            int seed = i + 1;
            threads[i] = new Thread(() => Run(seed, steady)) { Name = "mix " + seed };
            threads[i].Start();
        }
        Console.WriteLine("ready");
        Thread.Sleep(TimeSpan.FromSeconds(seconds));
        _stopped = true;
        foreach (Thread thread in threads)
            thread.Join();
        Console.WriteLine(_sink);
        return 0;
    }

    static void Run(int seed, bool steady)
    {
        var works = new List<IWork>
        {
            new Generics(), new Queries(steady), new Patterns(steady), new Documents(), new Containers(),
            new Numbers(), new Texts(), new Iterators(), new Shapes(),
        };
        if (!steady)
            works.AddRange([new Tasks(), new Memory(), new Reflected(), new Trees(), new Emitted(), new Failures()]);
        var random = new Random(seed);
        while (!_stopped)
        {
            IWork work = works[random.Next(works.Count)];
            var slice = Stopwatch.StartNew();
            do
                Interlocked.Add(ref _sink, work.Do(random));
            while (slice.ElapsedMilliseconds < 5 && !_stopped);
        }
    }
}

// True once a second: then a task compiles new code, as long-running programs do from time to time.
sealed class Pace
{
    readonly Stopwatch _since = Stopwatch.StartNew();

    public bool IsDue()
    {
        if (_since.ElapsedMilliseconds < 1000)
            return false;
        _since.Restart();
        return true;
    }
}

interface IWork
{
    long Do(Random random);
}

// Instantiations over value types (separate code) and reference types (shared code with dictionaries).
sealed class Generics : IWork
{
    struct Pair<TFirst, TSecond>(TFirst first, TSecond second) : IComparable<Pair<TFirst, TSecond>>
        where TFirst : IComparable<TFirst>
    {
        public readonly TFirst First = first;
        public readonly TSecond Second = second;
        public readonly int CompareTo(Pair<TFirst, TSecond> other) => First.CompareTo(other.First);
    }

    static class Cache<T>
    {
        public static readonly string Name = typeof(T).Name;
        public static int Uses;
    }

    sealed class Heap<T>(IComparer<T> comparer)
    {
        readonly List<T> _items = [];

        public void Push(T item)
        {
            _items.Add(item);
            int i = _items.Count - 1;
            while (i > 0 && comparer.Compare(_items[i], _items[(i - 1) / 2]) < 0)
            {
                (_items[i], _items[(i - 1) / 2]) = (_items[(i - 1) / 2], _items[i]);
                i = (i - 1) / 2;
            }
        }

        public int Count => _items.Count;
    }

    static int Sort<TFirst, TSecond>(Random random, Func<int, TFirst> first, Func<int, TSecond> second) where TFirst : IComparable<TFirst>
    {
        var pairs = new Pair<TFirst, TSecond>[200];
        var heap = new Heap<Pair<TFirst, TSecond>>(Comparer<Pair<TFirst, TSecond>>.Default);
        for (int i = 0; i < pairs.Length; i++)
        {
            int value = random.Next(10000);
            pairs[i] = new Pair<TFirst, TSecond>(first(value), second(i));
            heap.Push(pairs[i]);
        }
        Array.Sort(pairs);
        Cache<Pair<TFirst, TSecond>>.Uses++;
        return heap.Count + Cache<Pair<TFirst, TSecond>>.Name.Length;
    }

    public long Do(Random random) =>
        Sort(random, i => i, i => i.ToString(CultureInfo.InvariantCulture)) + Sort(random, i => (double)i, i => (short)i) +
        Sort(random, i => i.ToString(CultureInfo.InvariantCulture), i => i) + Sort(random, i => (decimal)i, i => new object()) +
        Sort(random, i => DateTime.UnixEpoch.AddSeconds(i), i => (long)i) + Sort(random, i => new Guid(i, 1, 2, new byte[8]), i => (i, i));
}

sealed class Queries(bool steady) : IWork
{
    sealed record Order(int Customer, string Article, decimal Price);

    public long Do(Random random)
    {
        var orders = Enumerable.Range(0, 300).Select(i => new Order(random.Next(20), "article " + i % 17, i * 1.5m)).ToList();
        var best = from order in orders
                   where order.Price > 20
                   group order by order.Customer into customer
                   let sum = customer.Sum(order => order.Price)
                   orderby sum descending, customer.Key
                   select new { customer.Key, sum, Articles = customer.Select(order => order.Article).Distinct().Order().ToArray() };
        var joined = orders.Join(Enumerable.Range(0, 20), order => order.Customer, key => key, (order, key) => (order.Article, key))
            .GroupBy(pair => pair.Article).ToDictionary(group => group.Key, group => group.Count());
        return best.Take(5).Sum(customer => customer.Articles.Length) + joined.Count + (steady ? orders.Count(order => order.Customer > 3) : orders.AsQueryable().Count(order => order.Customer > 3));
    }
}

sealed class Tasks : IWork
{
    static async Task<int> Leaf(int i)
    {
        if (i % 3 == 0)
            await Task.Yield();
        return i;
    }

    static async ValueTask<int> Branch(int depth)
    {
        int sum = 0;
        for (int i = 0; i < 4; i++)
            sum += depth == 0 ? await Leaf(i) : await Branch(depth - 1);
        return sum;
    }

    static async IAsyncEnumerable<int> Stream(int count)
    {
        for (int i = 0; i < count; i++)
        {
            if (i % 8 == 0)
                await Task.Yield();
            yield return i;
        }
    }

    static async Task<long> All()
    {
        long sum = await Branch(3);
        await foreach (int i in Stream(50))
            sum += i;
        int[] parts = await Task.WhenAll(Enumerable.Range(0, 8).Select(i => Task.Run(() => Leaf(i))));
        return sum + parts.Sum();
    }

    public long Do(Random random) => All().GetAwaiter().GetResult();
}

sealed partial class Patterns(bool steady) : IWork
{
    [GeneratedRegex(@"(?<key>[a-z]+)=(?<value>\d+)(;|$)")]
    private static partial Regex Generated();

    static readonly Regex Interpreted = new(@"\b(\w+)\s+\1\b");
    static readonly Regex Compiled = new(@"^([a-z0-9._%+-]+)@([a-z0-9.-]+)\.([a-z]{2,})$", RegexOptions.Compiled | RegexOptions.IgnoreCase);
    readonly Pace _pace = new();
    static readonly Regex Linear = new(@"(a|b)*c(d|e)+", RegexOptions.NonBacktracking);

    public long Do(Random random)
    {
        long sum = 0;
        var text = new StringBuilder();
        for (int i = 0; i < 40; i++)
            text.Append(i % 5 == 0 ? "same same " : "key=" + random.Next(1000) + ";");
        string all = text.ToString();
        foreach (Match match in Generated().Matches(all))
            sum += match.Groups["value"].Length;
        sum += Interpreted.Count(all);
        sum += Interpreted.Replace(all, match => match.Groups[1].Value.ToUpperInvariant()).Length;
        for (int i = 0; i < 20; i++)
            sum += Compiled.IsMatch("user" + i + (i % 2 == 0 ? "@example.org" : " at example")) ? 1 : 0;
        sum += Linear.IsMatch("ababababacdede") ? 1 : 0;
        if (!steady && _pace.IsDue()) /* a new pattern: a new dynamic method */
            sum += new Regex("x" + random.Next(1000) + "(y|z)+", RegexOptions.Compiled).IsMatch(all) ? 1 : 0;
        return sum;
    }
}

sealed class Documents : IWork
{
    sealed record Line(int Id, string Name, double[] Values, Dictionary<string, string> Tags);

    public long Do(Random random)
    {
        var lines = Enumerable.Range(0, 20).Select(i => new Line(i, "line \"" + i, [i, i / 2.0], new() { ["a"] = "b", ["n"] = i.ToString(CultureInfo.InvariantCulture) }));
        string text = JsonSerializer.Serialize(lines);
        List<Line> back = JsonSerializer.Deserialize<List<Line>>(text)!;
        using JsonDocument document = JsonDocument.Parse(text);
        return back.Count + document.RootElement.EnumerateArray().Sum(line => line.GetProperty("Values").GetArrayLength());
    }
}

sealed class Trees : IWork
{
    Func<int, int> _current = Build(1);
    static int _made;
    readonly Pace _pace = new();

    static Func<int, int> Build(int seed)
    {
        ParameterExpression x = Expression.Parameter(typeof(int), "x");
        ParameterExpression sum = Expression.Variable(typeof(int), "sum");
        LabelTarget done = Expression.Label(typeof(int));
        Expression body = Expression.Block([sum],
            Expression.Loop(Expression.IfThenElse(Expression.GreaterThan(x, Expression.Constant(0)),
                Expression.Block(Expression.AddAssign(sum, Expression.Multiply(x, Expression.Constant(seed))), Expression.PostDecrementAssign(x)),
                Expression.Break(done, sum)), done));
        return Expression.Lambda<Func<int, int>>(body, "tree" + seed, [x]).Compile();
    }

    public long Do(Random random)
    {
        if (_pace.IsDue())
            _current = Build(Interlocked.Increment(ref _made));
        long sum = 0;
        for (int i = 0; i < 50; i++)
            sum += _current(200);
        return sum;
    }
}

sealed class Emitted : IWork
{
    delegate long Kernel(long[] values);

    Kernel _current = Make(1);
    readonly Pace _pace = new();

    /* The sum of all values times a factor, in IL. */
    static Kernel Make(int factor)
    {
        var method = new DynamicMethod("emitted" + factor, typeof(long), [typeof(long[])], typeof(Emitted).Module);
        ILGenerator il = method.GetILGenerator();
        LocalBuilder sum = il.DeclareLocal(typeof(long));
        LocalBuilder i = il.DeclareLocal(typeof(int));
        Label test = il.DefineLabel();
        Label next = il.DefineLabel();
        il.Emit(OpCodes.Br, test);
        il.MarkLabel(next);
        il.Emit(OpCodes.Ldloc, sum);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldloc, i);
        il.Emit(OpCodes.Ldelem_I8);
        il.Emit(OpCodes.Ldc_I8, (long)factor);
        il.Emit(OpCodes.Mul);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Stloc, sum);
        il.Emit(OpCodes.Ldloc, i);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Stloc, i);
        il.MarkLabel(test);
        il.Emit(OpCodes.Ldloc, i);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldlen);
        il.Emit(OpCodes.Conv_I4);
        il.Emit(OpCodes.Blt, next);
        il.Emit(OpCodes.Ldloc, sum);
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Kernel>();
    }

    public long Do(Random random)
    {
        var values = new long[300];
        values.AsSpan().Fill(3);
        if (_pace.IsDue())
            _current = Make(random.Next(1000));
        long sum = 0;
        for (int i = 0; i < 100; i++)
            sum += _current(values);
        return sum;
    }
}

sealed class Failures : IWork
{
    sealed class OddException(int number) : Exception("odd: " + number)
    {
        public int Number { get; } = number;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Deep(int depth, int number)
    {
        if (depth > 0)
        {
            try
            {
                return Deep(depth - 1, number) + 1;
            }
            finally
            {
                number++;
            }
        }
        return number % 2 == 0 ? number : throw new OddException(number);
    }

    public long Do(Random random)
    {
        long sum = 0;
        for (int i = 0; i < 10; i++)
        {
            try
            {
                sum += Deep(8, random.Next(100));
            }
            catch (OddException odd) when (odd.Number > 2)
            {
                sum += odd.StackTrace!.Length;
            }
            catch (OddException)
            {
                sum++;
            }
        }
        object nothing = random.Next(2) == 0 ? "text" : 1;
        try
        {
            sum += ((string)nothing).Length;
        }
        catch (InvalidCastException)
        {
            sum--;
        }
        return sum;
    }
}

sealed class Containers : IWork
{
    public long Do(Random random)
    {
        var words = new Dictionary<string, int>();
        var sorted = new SortedDictionary<int, string>();
        var queue = new PriorityQueue<string, int>();
        var shared = new ConcurrentDictionary<int, int>();
        ImmutableList<int> frozen = [];
        var set = new HashSet<(int, int)>();
        for (int i = 0; i < 300; i++)
        {
            int value = random.Next(100);
            string word = "word" + value;
            words[word] = words.GetValueOrDefault(word) + 1;
            sorted[value] = word;
            queue.Enqueue(word, value);
            shared.AddOrUpdate(value, 1, (_, old) => old + 1);
            set.Add((value, i % 7));
            if (i % 10 == 0)
                frozen = frozen.Add(value);
        }
        long sum = words.Count + sorted.First().Key + shared.Values.Sum() + set.Count + frozen.Sum();
        while (queue.TryDequeue(out string? word, out int _))
            sum += word.Length;
        return sum;
    }
}

sealed class Numbers : IWork
{
    static T Sum<T>(T[] values) where T : System.Numerics.INumber<T>
    {
        T sum = T.Zero;
        foreach (T value in values)
            sum += value * value;
        return sum;
    }

    public long Do(Random random)
    {
        var sieve = new bool[20000]; /* the loop is long enough for on-stack replacement */
        int count = 0;
        for (int i = 2; i < sieve.Length; i++)
        {
            if (sieve[i])
                continue;
            count++;
            for (int j = 2 * i; j < sieve.Length; j += i)
                sieve[j] = true;
        }
        return count + Sum(new[] { 1, 2, 3 }) + (long)Sum(new[] { 1.5, 2.5 }) + (long)Sum(new[] { 1m, 2m }) +
            (long)System.Numerics.BigInteger.Log10(System.Numerics.BigInteger.Pow(random.Next(2, 9), 300));
    }
}

sealed class Texts : IWork
{
    public long Do(Random random)
    {
        var builder = new StringBuilder();
        for (int i = 0; i < 100; i++)
            builder.AppendFormat(CultureInfo.InvariantCulture, "{0:X4} {1:F3} {2}|", i, i / 3.0, DateTime.UnixEpoch.AddDays(random.Next(9999)));
        string text = builder.ToString();
        byte[] bytes = Encoding.UTF8.GetBytes(text);
        string packed = Convert.ToBase64String(System.Security.Cryptography.SHA256.HashData(bytes));
        return text.Split('|').Where(part => part.Contains('F')).Select(part => part.Trim().ToLowerInvariant()).Sum(part => part.Length) + packed.Length;
    }
}

sealed class Iterators : IWork
{
    static IEnumerable<int> Walk(int depth)
    {
        if (depth == 0)
            yield break;
        foreach (int i in Walk(depth - 1))
            yield return i + 1;
        yield return depth;
        foreach (int i in Walk(depth - 1))
            yield return i - 1;
    }

    public long Do(Random random)
    {
        int local = random.Next(10);
        long Add(long sum, int i) => sum + i * local;
        return Walk(9).Aggregate(0L, Add);
    }
}

sealed class Reflected : IWork
{
    static readonly MethodInfo Method = typeof(Reflected).GetMethod(nameof(Called), BindingFlags.Static | BindingFlags.NonPublic)!;

    static int Called(int a, string b) => a + b.Length;

    public long Do(Random random)
    {
        long sum = 0;
        for (int i = 0; i < 50; i++)
            sum += (int)Method.Invoke(null, [i, "text"])!;
        dynamic any = random.Next(2) == 0 ? "text" : new List<int> { 1 };
        sum += any is string ? any.Length : any.Count;
        Type type = typeof(KeyValuePair<,>).MakeGenericType(typeof(int), random.Next(2) == 0 ? typeof(string) : typeof(double));
        return sum + Activator.CreateInstance(type)!.GetHashCode() % 3;
    }
}

// Virtual, interface, generic virtual and delegate calls: dispatch stubs of every kind.
sealed class Shapes : IWork
{
    interface IShape
    {
        double Area { get; }
        T Visit<T>(Func<IShape, T> visitor);
    }

    abstract class Shape : IShape
    {
        public abstract double Area { get; }
        public virtual T Visit<T>(Func<IShape, T> visitor) => visitor(this);
    }

    sealed class Circle(double radius) : Shape
    {
        public override double Area => Math.PI * radius * radius;
    }

    sealed class Square(double side) : Shape
    {
        public override double Area => side * side;
        public override T Visit<T>(Func<IShape, T> visitor) => visitor(this);
    }

    struct Dot : IShape
    {
        public readonly double Area => 0;
        public readonly T Visit<T>(Func<IShape, T> visitor) => visitor(this);
    }

    event Func<double, double>? Changed;

    public long Do(Random random)
    {
        IShape[] shapes = [new Circle(1), new Square(2), new Dot(), new Circle(random.NextDouble()), new Square(3)];
        double sum = 0;
        Changed = x => x + 1;
        Changed += x => x + 2;
        for (int i = 0; i < 2000; i++)
        {
            IShape shape = shapes[random.Next(shapes.Length)];
            sum += shape.Area + shape.Visit(visited => visited.Area) + shape.Visit(visited => visited.ToString()!.Length) + Changed(i);
        }
        return (long)sum;
    }
}

sealed class Memory : IWork
{
    sealed class Node
    {
        public Node? Left, Right;
    }

    static Node Grow(int depth) => depth == 0 ? new Node() : new Node { Left = Grow(depth - 1), Right = Grow(depth - 1) };

    static int Count(Node? node) => node == null ? 0 : 1 + Count(node.Left) + Count(node.Right);

    public long Do(Random random)
    {
        var big = new byte[100_000];
        Span<byte> half = big.AsSpan(0, 50_000);
        random.NextBytes(half);
        half.Sort();
        return Count(Grow(10)) + half[25_000] + half.IndexOf((byte)77);
    }
}
