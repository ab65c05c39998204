// Collectible code: types live exactly as long as their objects.
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

namespace Suite;

/// <summary>A type in collectible copies of this assembly.</summary>
public sealed class Passenger
{
    static readonly List<object> statics = [new byte[100], "static"];
    [ThreadStatic] static object? perThread;
    public string Name = new('p', 10);
    public Passenger? Next;
    public List<Passenger> Friends = new();

    public override string ToString()
    {
        perThread ??= new object[] { Name };
        return $"{Name} {statics.Count} {((object[])perThread).Length} {Friends.Count}";
    }
}

public static class LoadingTests
{
    static readonly string self = typeof(LoadingTests).Assembly.Location;

    sealed class Context() : AssemblyLoadContext(null, isCollectible: true);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static object Board(List<WeakReference> contexts)
    {
        var context = new Context();
        contexts.Add(new WeakReference(context, trackResurrection: true));
        using var file = File.OpenRead(self);
        var type = context.LoadFromStream(file).GetType(typeof(Passenger).FullName!)!;
        var made = Activator.CreateInstance(type)!;
        type.GetField("Next")!.SetValue(made, Activator.CreateInstance(type));
        var friends = (System.Collections.IList)type.GetField("Friends")!.GetValue(made)!;
        friends.Add(made);
        context.Unload();
        return made;
    }

    public static void Collectible_assemblies_go()
    {
        var contexts = new List<WeakReference>();
        Check.Deep(() =>
        {
            for (var i = 0; i < 20; i++)
                Check.Same("pppppppppp 2 1 1", Board(contexts).ToString(), "passenger");
        });
        for (var i = 0; i < 30 && contexts.Count(context => context.IsAlive) > 2; i++)
            Check.CollectAll();
        Check.MostDead(contexts, "unloaded contexts");
    }

    public static void An_object_keeps_its_collectible_type()
    {
        var contexts = new List<WeakReference>();
        var kept = new List<object>();
        Check.Deep(() =>
        {
            for (var i = 0; i < 10; i++)
                kept.Add(Board(contexts));
        });
        for (var i = 0; i < 10; i++)
        {
            Check.CollectAll();
            Check.Litter();
        }
        Check.AllAlive(contexts, "contexts whose objects live");
        foreach (var passenger in kept)
        {
            Check.Same("pppppppppp 2 1 1", passenger.ToString(), "passenger");
            Check.Same("Suite.Passenger", passenger.GetType().FullName, "type");
        }
        Check.Deep(() =>
        {
            kept.Clear();
            kept.TrimExcess();
        });
        for (var i = 0; i < 30 && contexts.Count(context => context.IsAlive) > 1; i++)
            Check.CollectAll();
        Check.MostDead(contexts, "contexts after their objects");
    }

    public static void Emitted_types_live_with_their_objects()
    {
        var types = new List<WeakReference>();
        var kept = new List<object>();
        for (var i = 0; i < 25; i++)
        {
            var number = i;
            Check.Deep(() =>
            {
                var type = EmitSimple(number);
                types.Add(new WeakReference(type));
                var made = Activator.CreateInstance(type)!;
                type.GetField("Number")!.SetValue(made, number);
                type.GetField("Other")!.SetValue(made, Activator.CreateInstance(type));
                // Arrays of it and generics over it are collectible as well.
                var array = Array.CreateInstance(type, 5);
                array.SetValue(made, 3);
                var list = (System.Collections.IList)Activator.CreateInstance(typeof(List<>).MakeGenericType(type))!;
                list.Add(made);
                if (number % 2 == 0)
                    kept.Add(number % 4 == 0 ? list : array);
            });
            if (i % 5 == 0)
                GC.Collect();
        }
        for (var i = 0; i < 6; i++)
        {
            Check.CollectAll();
            Check.Litter();
        }
        Check.AllAlive(types.Where((_, i) => i % 2 == 0).ToList(), "types of living objects");
        for (var i = 0; i < kept.Count; i++)
        {
            var made = kept[i] is Array array ? array.GetValue(3)! : ((System.Collections.IList)kept[i])[0]!;
            Check.Same(i * 2, (int)made.GetType().GetField("Number")!.GetValue(made)!, "number");
            Check.That(made.GetType().GetField("Other")!.GetValue(made)!.GetType() == made.GetType(), "type of the other");
        }
        for (var i = 0; i < 30 && types.Where((_, j) => j % 2 == 1).Count(type => type.IsAlive) > 1; i++)
            Check.CollectAll();
        Check.MostDead(types.Where((_, i) => i % 2 == 1).ToList(), "types without objects");
        GC.KeepAlive(kept);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Type EmitSimple(int number)
    {
        var module = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName($"simple{number}"), AssemblyBuilderAccess.RunAndCollect).DefineDynamicModule("m");
        var type = module.DefineType($"Simple{number}", TypeAttributes.Public);
        type.DefineField("Other", typeof(object), FieldAttributes.Public);
        type.DefineField("Number", typeof(int), FieldAttributes.Public);
        type.DefineDefaultConstructor(MethodAttributes.Public);
        return type.CreateType();
    }

    public static void Dynamic_methods()
    {
        var kept = new List<Func<int, int>>();
        for (var i = 0; i < 400; i++)
        {
            var method = new DynamicMethod($"add{i}", typeof(int), [typeof(int)]);
            var code = method.GetILGenerator();
            code.Emit(OpCodes.Ldarg_0);
            code.Emit(OpCodes.Ldc_I4, i);
            code.Emit(OpCodes.Add);
            code.Emit(OpCodes.Ret);
            var function = method.CreateDelegate<Func<int, int>>();
            Check.Same(i + 1, function(1), "sum");
            if (i % 8 == 0)
                kept.Add(function);
            if (i % 100 == 0)
                GC.Collect();
        }
        Check.CollectAll();
        Check.Litter();
        for (var i = 0; i < kept.Count; i++)
            Check.Same(i * 8 + 5, kept[i](5), "sum afterwards");
    }

    public static void Expressions_and_regexes()
    {
        for (var i = 0; i < 40; i++)
        {
            var parameter = System.Linq.Expressions.Expression.Parameter(typeof(int));
            var compiled = System.Linq.Expressions.Expression.Lambda<Func<int, int>>(
                System.Linq.Expressions.Expression.Multiply(parameter, System.Linq.Expressions.Expression.Constant(i)), parameter).Compile();
            Check.Same(i * 3, compiled(3), "product");
            var regex = new System.Text.RegularExpressions.Regex($"a{{{i % 5 + 1}}}b", System.Text.RegularExpressions.RegexOptions.Compiled);
            Check.That(regex.IsMatch(new string('a', i % 5 + 1) + "b"), "match");
            if (i % 10 == 0)
                GC.Collect();
        }
    }

    public static void Reflection_and_generics()
    {
        var made = new List<object>();
        Type[] types = [typeof(int), typeof(string), typeof(Guid), typeof(object[]), typeof(decimal), typeof((int, string))];
        foreach (var key in types)
            foreach (var value in types)
            {
                var dictionary = Activator.CreateInstance(typeof(Dictionary<,>).MakeGenericType(key, value))!;
                made.Add(dictionary);
                made.Add(Activator.CreateInstance(typeof(List<>).MakeGenericType(dictionary.GetType()))!);
            }
        Check.CollectAll();
        Check.That(made.All(one => (int)one.GetType().GetProperty("Count")!.GetValue(one)! == 0), "counts");
        Check.Same(72, made.Select(one => one.GetType()).Distinct().Count(), "types");
        var method = typeof(LoadingTests).GetMethod(nameof(Default), BindingFlags.Static | BindingFlags.NonPublic)!;
        foreach (var type in types)
            Check.That(method.MakeGenericMethod(type).Invoke(null, null) is Array { Length: 10 }, "generic method");
    }

    static T[] Default<T>() => new T[10];
}
