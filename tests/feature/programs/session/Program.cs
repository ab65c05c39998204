// The target of test_dotnet_session: hot and precompiled code from the start, one method only after the file args[0] exists, and dynamic methods all the
// time. The number of rounds is in the file args[1].

using System.Reflection.Emit;
using System.Text.Json;
long sum = 0; int round = 0;
var until = DateTime.UtcNow.AddMinutes(5);
while (DateTime.UtcNow < until) {
    sum += Work.BurnBeforeAsked(10000);
    sum += JsonSerializer.Serialize(new[] { round, 2, 3 }).Length;
    if (File.Exists(args[0])) sum += Late.MethodOfAfterwards(100);
    if (++round % 50 == 0) {
        var made = new DynamicMethod("made_at_run_time_" + round, typeof(int), Type.EmptyTypes);
        var il = made.GetILGenerator();
        il.Emit(OpCodes.Ldc_I4, round); il.Emit(OpCodes.Ret);
        sum += ((Func<int>)made.CreateDelegate(typeof(Func<int>)))();
    }
    File.WriteAllText(args[1], round.ToString());
    Thread.Sleep(2);
}
static class Work { public static long BurnBeforeAsked(int n) { long s = 0; for (int i = 0; i < n; i++) s += i ^ (s << 1); return s; } }
static class Late { public static long MethodOfAfterwards(int n) { long s = 0; for (int i = 0; i < n; i++) s += i * 3; return s; } }
