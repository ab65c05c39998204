namespace Spoor.Tiny {
  public class Box<T> { T _v; public Box(T v) { _v = v; } public T Get() { return _v; } public class Inner<U> { public U Same(U u) => u; } }
  public static class Work {
    public static int Add(int a, string b) { try { return a + b.Length; } catch (System.Exception) { return -1; } finally { Seen++; } }
    public static int Seen;
    public static T Twice<T>(T a, ref int n, int[] x) { n += 2; return a; }
    public static int Use() { int n = 0; var b = new Box<int>(3); var l = new Box<long>.Inner<double>(); return b.Get() + Twice(4, ref n, null) + (int)l.Same(2.0) + Twice("x", ref n, null).Length; }
  }
}
