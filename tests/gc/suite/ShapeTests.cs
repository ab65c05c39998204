// Objects of all shapes and sizes: they keep their content over collections, and new objects are zero.
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace Suite;

public static class ShapeTests
{
    class Empty;

    class Mixed
    {
        public byte A;
        public object? First;
        public double B;
        public string? Second;
        public short C;
        public int[]? Third;
        public decimal D;
    }

    class Derived : Mixed
    {
        public object? Fourth;
        public (object? Left, int Number, object? Right) Pair;
        public Guid Id;
    }

    sealed class Fields8
    {
        public object? A, B, C, D, E, F, G, H;
    }

    struct Gappy
    {
        public int Number;
        public object? First;
        public long Wide;
        public byte Small;
        public string? Second;
        public (int, int, int) Plain;
        public object? Third;
    }

    struct Nested
    {
        public Gappy Left;
        public long Between;
        public Gappy Right;
    }

    [InlineArray(7)]
    struct SevenObjects
    {
        object? first;
    }

    sealed class Node
    {
        public Node? Next;
        public int Number;
    }

    sealed class Tree
    {
        public Tree? Left, Right;
        public int Number;
    }

    public static void Fields_of_every_kind()
    {
        var kept = new List<Derived>();
        for (var i = 0; i < 5_000; i++)
        {
            var made = new Derived();
            Check.That(made is { A: 0, First: null, B: 0, Second: null, C: 0, Third: null, D: 0, Fourth: null } &&
                made.Pair == default && made.Id == default, "a new object is zero");
            made.A = (byte)i;
            made.First = new Empty();
            made.B = i * 0.5;
            made.Second = i.ToString();
            made.C = (short)i;
            made.Third = [i, i + 1];
            made.D = i;
            made.Fourth = new Fields8 { A = i, D = "d", E = i, F = i, G = null, H = made };
            made.Pair = (i.ToString(), i, made);
            made.Id = new Guid(i, 0, 0, new byte[8]);
            kept.Add(made);
        }
        GC.Collect();
        Check.Litter(2048);
        for (var i = 0; i < kept.Count; i++)
        {
            var made = kept[i];
            Check.That(made.A == (byte)i && made.First is Empty && made.B == i * 0.5 && made.Second == i.ToString() &&
                made.C == (short)i && made.Third is [var x, var y] && x == i && y == i + 1 && made.D == i, $"object {i}");
            Check.That(made.Fourth is Fields8 { A: int a, B: null, G: null } eight && a == i && ReferenceEquals(eight.H, made), $"reference of object {i}");
            Check.That(made.Pair is { Left: string text, Number: var n, Right: Derived right } && text == i.ToString() && n == i &&
                ReferenceEquals(right, made), $"tuple of object {i}");
            Check.Same(new Guid(i, 0, 0, new byte[8]), made.Id, "id");
        }
    }

    public static void Byte_arrays_of_every_size()
    {
        var kept = new List<byte[]>();
        for (var size = 0; size < 2_000; size++)
            kept.Add(Filled(size));
        for (var size = 2_000; size < 200_000; size += 1_777)
            kept.Add(Filled(size));
        GC.Collect();
        Check.Litter();
        foreach (var bytes in kept)
        {
            for (var i = 0; i < bytes.Length; i++)
            {
                if (bytes[i] != (byte)(i * 7 + bytes.Length))
                    throw new CheckFailed($"byte {i} of {bytes.Length}");
            }
        }

        static byte[] Filled(int size)
        {
            var bytes = new byte[size];
            for (var i = 0; i < size; i++)
            {
                if (bytes[i] != 0)
                    throw new CheckFailed($"byte {i} of {size} is not zero at first");
                bytes[i] = (byte)(i * 7 + size);
            }
            return bytes;
        }
    }

    public static void What_is_new_is_zero()
    {
        var random = new Random(1);
        for (var round = 0; round < 20; round++)
        {
            for (var i = 0; i < 2_000; i++)
            {
                var size = random.Next(1, 60) * random.Next(1, 60);
                var longs = new long[size];
                if (longs.AsSpan().IndexOfAnyExcept(0) >= 0)
                    throw new CheckFailed($"an array of {size} longs came with old bytes");
                longs.AsSpan().Fill(-1);
                var node = new Node();
                if (node.Next is not null || node.Number != 0)
                    throw new CheckFailed("an object came with old bytes");
                node.Number = -1;
                node.Next = node;
            }
            GC.Collect();
        }
    }

    public static void New_large_arrays_are_zero()
    {
        for (var round = 0; round < 40; round++)
        {
            var bytes = new byte[90_000 + round * 37_123];
            if (bytes.AsSpan().IndexOfAnyExcept((byte)0) >= 0)
                throw new CheckFailed($"a large array came with old bytes in round {round}");
            bytes.AsSpan().Fill(0xFF);
            if (round % 5 == 0)
                GC.Collect();
        }
    }

    public static void Reference_arrays()
    {
        var outer = new object[300][];
        for (var i = 0; i < outer.Length; i++)
        {
            outer[i] = new object[i * 5];
            for (var j = 0; j < outer[i].Length; j++)
                outer[i][j] = j % 3 == 0 ? outer : (object)(i * 1000 + j);
        }
        GC.Collect();
        Check.Litter();
        for (var i = 0; i < outer.Length; i++)
        {
            for (var j = 0; j < outer[i].Length; j++)
            {
                if (!(j % 3 == 0 ? ReferenceEquals(outer[i][j], outer) : outer[i][j] is int n && n == i * 1000 + j))
                    throw new CheckFailed($"element {j} of array {i}");
            }
        }
    }

    public static void Large_reference_array_of_small_objects()
    {
        var large = new Node[200_000];
        for (var i = 0; i < large.Length; i++)
            large[i] = new Node { Number = i, Next = i > 0 ? large[i - 1] : null };
        GC.Collect();
        Check.Litter();
        for (var i = 1; i < large.Length; i++)
        {
            if (large[i].Number != i || !ReferenceEquals(large[i].Next, large[i - 1]))
                throw new CheckFailed($"node {i}");
        }
    }

    public static void Struct_arrays_with_gaps()
    {
        var gappy = new Gappy[700];
        var nested = new Nested[300];
        for (var i = 0; i < gappy.Length; i++)
            Fill(ref gappy[i], i);
        for (var i = 0; i < nested.Length; i++)
        {
            Fill(ref nested[i].Left, i);
            Fill(ref nested[i].Right, -i);
            nested[i].Between = i;
        }
        GC.Collect();
        Check.Litter();
        for (var i = 0; i < gappy.Length; i++)
            Verify(in gappy[i], i);
        for (var i = 0; i < nested.Length; i++)
        {
            Verify(in nested[i].Left, i);
            Verify(in nested[i].Right, -i);
            Check.Same(i, nested[i].Between, "between");
        }

        static void Fill(ref Gappy at, int number)
        {
            at.Number = number;
            at.First = new Node { Number = number };
            at.Wide = long.MaxValue - number;
            at.Small = (byte)number;
            at.Second = $"text {number}";
            at.Plain = (number, ~number, number);
            at.Third = new[] { number };
        }

        static void Verify(in Gappy at, int number)
        {
            Check.That(at.Number == number && at.First is Node node && node.Number == number && at.Wide == long.MaxValue - number &&
                at.Small == (byte)number && at.Second == $"text {number}" && at.Plain == (number, ~number, number) &&
                at.Third is int[] { Length: 1 } only && only[0] == number, $"struct {number}");
        }
    }

    public static void Inline_arrays()
    {
        var kept = new SevenObjects[400];
        for (var i = 0; i < kept.Length; i++)
        {
            for (var j = 0; j < 7; j++)
                kept[i][j] = $"{i}/{j}";
        }
        GC.Collect();
        Check.Litter();
        for (var i = 0; i < kept.Length; i++)
        {
            for (var j = 0; j < 7; j++)
                Check.Same($"{i}/{j}", kept[i][j] as string, "inline element");
        }
    }

    public static void Arrays_of_many_dimensions()
    {
        var cube = new object[13, 7, 5];
        var plane = new Gappy[9, 11];
        var odd = Array.CreateInstance(typeof(string), new[] { 4, 4 }, new[] { -2, 3 });
        for (var i = 0; i < 13; i++)
            for (var j = 0; j < 7; j++)
                for (var k = 0; k < 5; k++)
                    cube[i, j, k] = (i, j, k);
        for (var i = 0; i < 9; i++)
            for (var j = 0; j < 11; j++)
                plane[i, j].Second = $"{i},{j}";
        for (var i = -2; i < 2; i++)
            for (var j = 3; j < 7; j++)
                odd.SetValue($"{i};{j}", i, j);
        GC.Collect();
        Check.Litter();
        for (var i = 0; i < 13; i++)
            for (var j = 0; j < 7; j++)
                for (var k = 0; k < 5; k++)
                    Check.Same((i, j, k), ((int, int, int))cube[i, j, k], "cube");
        for (var i = 0; i < 9; i++)
            for (var j = 0; j < 11; j++)
                Check.Same($"{i},{j}", plane[i, j].Second, "plane");
        for (var i = -2; i < 2; i++)
            for (var j = 3; j < 7; j++)
                Check.Same($"{i};{j}", (string?)odd.GetValue(i, j), "odd");
    }

    public static void Strings()
    {
        var kept = new List<string>();
        for (var i = 0; i < 3_000; i++)
            kept.Add(new string((char)('a' + i % 26), i));
        var builder = new StringBuilder();
        for (var i = 0; i < 50_000; i++)
            builder.Append(i).Append(',');
        var text = builder.ToString();
        var interned = string.Intern(new string('q', 77));
        GC.Collect();
        Check.Litter();
        for (var i = 0; i < kept.Count; i++)
            Check.That(kept[i].Length == i && kept[i].All(c => c == (char)('a' + i % 26)), $"string {i}");
        Check.Same(49_999, int.Parse(text.Split(',')[^2]), "last number");
        Check.That(ReferenceEquals(interned, string.Intern(new string('q', 77))), "interned string");
    }

    public static void Frozen_strings_and_types()
    {
        var literal = "a literal that the runtime may keep outside of the heap";
        var type = typeof(Dictionary<string, List<Gappy>>);
        var empty = Array.Empty<Gappy>();
        Check.CollectAll();
        Check.Litter();
        Check.Same(55, literal.Length, "literal");
        Check.That(ReferenceEquals(type, typeof(Dictionary<string, List<Gappy>>)), "type object");
        Check.That(ReferenceEquals(empty, Array.Empty<Gappy>()), "empty array");
        Check.That(GC.GetGeneration(literal) >= 0, "the generation of a literal");
        using var held = new Held(literal);
        Check.That(ReferenceEquals(held.Target, literal), "a handle on a literal");
        Check.That(new WeakReference(literal).IsAlive, "a weak reference on a literal");
        GC.Collect();
        Check.That(new WeakReference("another literal").IsAlive, "literals do not die");
    }

    sealed class Held(object target) : IDisposable
    {
        GCHandle handle = GCHandle.Alloc(target);
        public object? Target => handle.Target;
        public void Dispose() => handle.Free();
    }

    public static void Large_objects()
    {
        var random = new Random(3);
        var kept = new byte[24][];
        for (var round = 0; round < 400; round++)
        {
            var at = random.Next(kept.Length);
            if (kept[at] is { } old)
                Verify(old);
            var bytes = new byte[random.Next(80_000, 1_500_000)];
            bytes[0] = bytes[^1] = (byte)bytes.Length;
            bytes[bytes.Length / 2] = (byte)bytes.Length;
            kept[at] = bytes;
        }
        GC.Collect();
        foreach (var bytes in kept.Where(bytes => bytes is not null))
            Verify(bytes);

        static void Verify(byte[] bytes) =>
            Check.That(bytes[0] == (byte)bytes.Length && bytes[^1] == (byte)bytes.Length &&
                bytes[bytes.Length / 2] == (byte)bytes.Length, $"large object of {bytes.Length}");
    }

    public static void Huge_objects()
    {
        for (var round = 0; round < 6; round++)
        {
            var huge = new long[3_000_000 + round * 400_000];
            huge[0] = round + 1;
            huge[^1] = round + 2;
            huge[huge.Length / 3] = round + 3;
            GC.Collect();
            Check.That(huge[0] == round + 1 && huge[^1] == round + 2 && huge[huge.Length / 3] == round + 3, $"huge object {round}");
            Check.That(huge.AsSpan(1, huge.Length / 3 - 1).IndexOfAnyExcept(0L) < 0, "zeros between");
        }
    }

    public static void Uninitialized_and_pinned_arrays()
    {
        var plain = new List<byte[]>();
        var pinned = new List<(int[] Array, nint Address)>();
        for (var i = 0; i < 300; i++)
        {
            var bytes = GC.AllocateUninitializedArray<byte>(1_000 + i * 700);
            bytes.AsSpan().Fill((byte)i);
            plain.Add(bytes);
            var ints = GC.AllocateArray<int>(1 + i * 50, pinned: true);
            Check.That(ints.AsSpan().IndexOfAnyExcept(0) < 0, "a pinned array is zero at first");
            ints.AsSpan().Fill(i);
            pinned.Add((ints, Marshal.UnsafeAddrOfPinnedArrayElement(ints, 0)));
            var other = GC.AllocateUninitializedArray<int>(500, pinned: true);
            other.AsSpan().Fill(-1);
        }
        GC.Collect();
        Check.Litter();
        for (var i = 0; i < plain.Count; i++)
        {
            Check.That(plain[i].AsSpan().IndexOfAnyExcept((byte)i) < 0, $"array {i}");
            Check.That(pinned[i].Array.AsSpan().IndexOfAnyExcept(i) < 0, $"pinned array {i}");
            Check.Same(pinned[i].Address, Marshal.UnsafeAddrOfPinnedArrayElement(pinned[i].Array, 0), "address");
        }
    }

    public static void Boxes_delegates_and_closures()
    {
        var functions = new List<Func<object>>();
        for (var i = 0; i < 4_000; i++)
        {
            var number = i;
            object box = (byte)i;
            functions.Add(() => (number, box, (int?)number));
        }
        Func<object>? all = null;
        foreach (var function in functions.Take(200))
            all += function;
        GC.Collect();
        Check.Litter();
        for (var i = 0; i < functions.Count; i++)
        {
            var (number, box, maybe) = ((int, object, int?))functions[i]();
            Check.That(number == i && (byte)box == (byte)i && maybe == i, $"closure {i}");
        }
        Check.Same(200, all!.GetInvocationList().Length, "multicast");
        Check.Same(199, ((ValueTuple<int, object, int?>)all()).Item1, "the last of many");
    }

    public static void List_a_million_deep()
    {
        Node? head = null;
        for (var i = 0; i < 1_000_000; i++)
            head = new Node { Next = head, Number = i };
        GC.Collect();
        var expected = 999_999;
        for (var node = head; node is not null; node = node.Next)
        {
            if (node.Number != expected--)
                throw new CheckFailed($"node {node.Number}");
        }
        Check.Same(-1, expected, "length");
    }

    public static void Trees()
    {
        var kept = Build(14);
        for (var i = 0; i < 30; i++)
            Check.Same((1 << 11) - 1, Count(Build(10)), "short-lived tree");
        GC.Collect();
        Check.Same((1 << 15) - 1, Count(kept), "long-lived tree");

        static Tree Build(int depth) => depth == 0
            ? new Tree { Number = 1 }
            : new Tree { Left = Build(depth - 1), Right = Build(depth - 1), Number = 1 };

        static int Count(Tree tree) => tree.Number + (tree.Left is null ? 0 : Count(tree.Left) + Count(tree.Right!));
    }

    public static void Graph_that_changes()
    {
        // Every node knows its number; edges are rewritten at random, and unreachable nodes replaced.
        var random = new Random(7);
        var table = new Fields8[5_000];
        for (var i = 0; i < table.Length; i++)
            table[i] = new Fields8 { H = i };
        for (var step = 0; step < 300_000; step++)
        {
            int from = random.Next(table.Length), to = random.Next(table.Length);
            switch (step & 3)
            {
                case 0: table[from].A = table[to]; break;
                case 1: table[from].B = new Fields8 { A = table[to], H = ((int)table[to].H!) }; break;
                case 2: table[from].C = new object[] { table[from], table[to] }; break;
                default: table[from] = new Fields8 { A = table[from].A, B = table[from].B, H = from }; break;
            }
        }
        GC.Collect();
        for (var i = 0; i < table.Length; i++)
        {
            Check.Same(i, (int)table[i].H!, "number");
            if (table[i].B is Fields8 b)
                Check.Same((int)((Fields8)b.A!).H!, (int)b.H!, "number of a neighbour");
            if (table[i].C is object[] pair)
                Check.That((int)((Fields8)pair[0]).H! == i && pair[1] is Fields8 { H: int }, "pair");
        }
    }

    public static void Cycles_are_freed()
    {
        var references = new List<WeakReference>();
        Check.Deep(() =>
        {
            for (var i = 0; i < 100; i++)
            {
                Node a = new(), b = new() { Next = a };
                a.Next = b;
                references.Add(new WeakReference(a));
            }
        });
        Check.CollectAll();
        Check.MostDead(references, "cycles");
    }

    public static void Interior_pointers_keep_alive()
    {
        // The only way to each object is a reference or span into it.
        for (var round = 0; round < 200; round++)
        {
            ref var element = ref Element(round);
            ref var field = ref Field(round);
            var span = Make(round)[3..50];
            var tail = Make(round)[^1..];
            var end = Make(round)[64..];
            ref readonly var character = ref Text(round)[0];
            if (round % 10 == 0)
                GC.Collect();
            Check.Litter(32);
            Check.Same(round, element.Number, "element");
            Check.Same($"text {round}", element.Second, "string in the element");
            Check.Same(round + 1, field, "field");
            Check.That(span.IndexOfAnyExcept(round) < 0 && span.Length == 47, "span");
            Check.Same(round, tail[0], "last element");
            Check.Same(0, end.Length, "the span behind the end");
            Check.Same((char)('a' + round % 26), character, "character");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static ref Gappy Element(int round)
        {
            var array = new Gappy[20];
            array[11].Number = round;
            array[11].Second = $"text {round}";
            return ref array[11];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static ref int Field(int round)
        {
            var node = new Node { Number = round + 1 };
            return ref node.Number;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static Span<int> Make(int round)
        {
            var array = new int[64];
            array.AsSpan().Fill(round);
            return array;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static ReadOnlySpan<char> Text(int round) => new string((char)('a' + round % 26), 40);
    }

    public static void Interior_pointers_into_large_objects()
    {
        for (var round = 0; round < 20; round++)
        {
            var span = Make(round, 300_000).Slice(250_000, 1_000);
            var medium = Make(round, 30_000).Slice(29_000);
            GC.Collect();
            _ = Make(-1, 300_000);
            _ = Make(-1, 30_000);
            Check.That(span.IndexOfAnyExcept(round) < 0 && medium.IndexOfAnyExcept(round) < 0, "large span");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static Span<int> Make(int round, int length)
        {
            var array = new int[length];
            array.AsSpan().Fill(round);
            return array;
        }
    }

    static class Statics<T>
    {
        public static object Kept = new List<T> { default! };
        [ThreadStatic] public static object? PerThread;
    }

    static readonly Dictionary<int, string> ordinary = new();
    static Gappy value;
    [ThreadStatic] static Gappy threadValue;

    public static void Statics_and_thread_statics()
    {
        value = new Gappy { Number = 5, First = new Node { Number = 6 }, Second = new string('x', 9) };
        threadValue = new Gappy { Number = 7, Third = new Node { Number = 8 } };
        for (var i = 0; i < 1_000; i++)
            ordinary[i] = i.ToString();
        Statics<int>.PerThread = new Node { Number = 1 };
        Statics<string>.PerThread = new Node { Number = 2 };
        Statics<Gappy>.PerThread = new Node { Number = 3 };
        var failure = Loads.RunAll(8, i =>
        {
            Check.That(Statics<int>.PerThread is null, "another thread's static");
            Statics<int>.PerThread = new Node { Number = 100 + i };
            GC.Collect();
            Check.Litter(100);
            Check.Same(100 + i, ((Node)Statics<int>.PerThread).Number, "this thread's static");
        });
        Check.That(failure is null, $"{failure}");
        Check.CollectAll();
        Check.Litter();
        Check.That(Statics<int>.Kept is List<int> { Count: 1 } && Statics<string>.Kept is List<string> { Count: 1 }, "generic statics");
        Check.That(((Node)Statics<int>.PerThread).Number == 1 && ((Node)Statics<string>.PerThread).Number == 2 &&
            ((Node)Statics<Gappy>.PerThread).Number == 3, "generic thread statics");
        Check.That(value is { Number: 5, First: Node { Number: 6 }, Second: "xxxxxxxxx" }, "static struct");
        Check.That(threadValue is { Number: 7, Third: Node { Number: 8 } }, "thread static struct");
        Check.That(ordinary.All(pair => pair.Value == pair.Key.ToString()), "dictionary");
    }

    public static void Hash_codes_and_locks_live_in_the_header()
    {
        var objects = Enumerable.Range(0, 5_000).Select(_ => new Empty()).ToArray();
        var hashes = objects.Select(RuntimeHelpers.GetHashCode).ToArray();
        for (var i = 0; i < objects.Length; i += 3)
            Monitor.Enter(objects[i]);
        GC.Collect();
        Check.Litter();
        for (var i = 0; i < objects.Length; i++)
        {
            if (RuntimeHelpers.GetHashCode(objects[i]) != hashes[i])
                throw new CheckFailed($"hash code of object {i}");
            Check.Same(i % 3 == 0, Monitor.IsEntered(objects[i]), "lock");
            if (i % 3 == 0)
                Monitor.Exit(objects[i]);
        }
    }

    public static void Collections_grow()
    {
        var list = new List<string>();
        var dictionary = new Dictionary<string, int>();
        var set = new SortedSet<int>();
        var queue = new Queue<object>();
        for (var i = 0; i < 60_000; i++)
        {
            list.Add($"item {i}");
            dictionary[list[i]] = i;
            set.Add(i ^ 0x5555);
            queue.Enqueue(list[i]);
            if (queue.Count > 100)
                queue.Dequeue();
        }
        GC.Collect();
        for (var i = 0; i < list.Count; i++)
        {
            if (dictionary[$"item {i}"] != i)
                throw new CheckFailed($"item {i}");
        }
        Check.Same(60_000, set.Count, "set");
        Check.Same("item 59999", (string)queue.Last(), "queue");
    }
}
