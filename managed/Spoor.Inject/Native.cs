// The functions of <spoor/spoor.h> and <spoor/logger.h> that the listener calls, of the copy of libspoor that `spoor inject` has put beside this assembly.
using System.Runtime.InteropServices;

namespace Spoor;

internal unsafe struct NativeOptions
{
    public nuint Size;
    public uint Flags, Clock;
    public nuint RingBytes, MemoryBytes;
    public byte* RecoverPath;
}

internal enum NativeType : uint
{
    Boolean = 1, I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, Char16, Guid, Time, Pointer, Text, Text16, Struct,
}

internal static unsafe partial class Native
{
    const string Library = "spoor-inject";
    const uint NoServer = 1;
    internal const int NotEnabled = 1; // SPOOR_NOT_ENABLED
    static nint s_library;
    static uint s_loggers; // bit: was started

    static Native() => NativeLibrary.SetDllImportResolver(typeof(Native).Assembly, (name, _, _) => name == Library ? s_library : 0);

    [DllImport(Library)] static extern int spoor_start(NativeOptions* options);
    [DllImport(Library)] static extern int spoor_logger_start(uint logger);
    [DllImport(Library)] static extern void spoor_logger_stop(uint logger);
    [DllImport(Library)] internal static extern nint spoor_source_new(byte* name);
    [DllImport(Library)] internal static extern byte spoor_source_begin(nint source, byte* name, uint level, ulong keywords, void* writer);
    [DllImport(Library)] internal static extern int spoor_source_end(void* writer);
    [DllImport(Library)] internal static extern void spoor_source_cancel(void* writer);

    // They copy a value and take no lock, so the collector may wait for them.
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_boolean(void* writer, byte* name, byte value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_i8(void* writer, byte* name, sbyte value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_u8(void* writer, byte* name, byte value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_i16(void* writer, byte* name, short value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_u16(void* writer, byte* name, ushort value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_i32(void* writer, byte* name, int value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_u32(void* writer, byte* name, uint value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_i64(void* writer, byte* name, long value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_u64(void* writer, byte* name, ulong value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_f32(void* writer, byte* name, float value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_f64(void* writer, byte* name, double value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_char16(void* writer, byte* name, ushort value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_guid(void* writer, byte* name, Guid* value);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_time_steps(void* writer, byte* name, ulong steps);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_pointer(void* writer, byte* name, nint value);
    [DllImport(Library)] internal static extern void spoor_write_text16(void* writer, byte* name, char* value);
    [DllImport(Library)] internal static extern void spoor_write_blob(void* writer, byte* name, void* bytes, nuint count);
    [DllImport(Library)] internal static extern void spoor_write_array(void* writer, byte* name, NativeType type, void* elements, nuint count);
    [DllImport(Library)] internal static extern void spoor_write_text_array(void* writer, byte* name, byte** texts, nuint count);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_struct_begin(void* writer, byte* name);
    [DllImport(Library), SuppressGCTransition] internal static extern void spoor_write_struct_end(void* writer);

    internal static void Load(string path)
    {
        if (s_library == 0)
            s_library = NativeLibrary.Load(path);
    }

    internal static void Start(uint logger)
    {
        // The .NET runtime has the diagnostics socket of this process already.
        var options = new NativeOptions { Size = (nuint)sizeof(NativeOptions), Flags = NoServer };
        Check(spoor_start(&options), "libspoor does not start");
        if ((s_loggers & 1u << (int)logger) != 0)
            return;
        // Another tracer than before: the one before gets no more events.
        StopLoggers();
        Check(spoor_logger_start(logger), "the tracer is not available in this process");
        s_loggers |= 1u << (int)logger;
    }

    internal static void StopLoggers()
    {
        for (uint i = 0; i < 32; i++)
            if ((s_loggers & 1u << (int)i) != 0)
                spoor_logger_stop(i);
        s_loggers = 0;
    }

    static void Check(int result, string what)
    {
        if (result < 0)
            throw new InvalidOperationException($"{what}: {Marshal.GetPInvokeErrorMessage(-result)}");
    }
}
