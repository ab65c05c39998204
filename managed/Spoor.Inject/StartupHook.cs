// The runtime calls it once for each `spoor inject`, on the thread that answers requests of diagnostics tools. An exception would end the process.
internal static class StartupHook
{
    public static void Initialize() => Spoor.Injection.Begin();
}
