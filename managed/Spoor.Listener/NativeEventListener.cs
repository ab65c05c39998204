using System.Diagnostics.Tracing;
using System.Text;

namespace Spoor;

/// <summary>What happens when native code fires faster than the listener reads.</summary>
public enum NativeListenerPolicy
{
    /// <summary>The newest events are lost and counted.</summary>
    DropNewest = 0,
    /// <summary>The firing thread waits up to 100 ms for room.</summary>
    Block = 2,
}

/// <summary>Settings of a <see cref="NativeEventListener"/>.</summary>
public sealed record NativeListenerOptions
{
    /// <summary>Memory for events that are not read yet, for each enabled provider; 64 MiB by default.</summary>
    public long BufferBytes { get; init; } = 64 << 20;
    /// <summary>Record the native call stack of each event, by frame pointers.</summary>
    public bool Stacks { get; init; }
    /// <summary>What happens when the memory is full.</summary>
    public NativeListenerPolicy Policy { get; init; }
}

/// <summary>
/// Receives the events that native code in this process fires with libspoor, as <see cref="EventListener"/> receives those of EventSource.
///
/// One managed thread for each enabled provider reads the events and calls <see cref="OnEventWritten"/>. The threads that fire never enter managed code, so they do not wait for a garbage
/// collection, and a collection does not wait for them.
/// </summary>
public abstract unsafe class NativeEventListener : IDisposable
{
    readonly NativeListenerOptions options;
    readonly Dictionary<string, Reader> readers = new(StringComparer.OrdinalIgnoreCase);
    bool isDisposed;

    /// <summary>Starts libspoor if the program has not done so.</summary>
    protected NativeEventListener(NativeListenerOptions? options = null)
    {
        this.options = options ?? new();
        Native.Start();
    }

    /// <summary>Called with each event, by the thread of its provider. The event is valid during the call.</summary>
    protected abstract void OnEventWritten(in NativeEvent data);

    /// <summary>Called, by the thread of the provider, when <see cref="OnEventWritten"/> has thrown; the next event follows. Does nothing by default.</summary>
    protected virtual void OnHandlerFailed(Exception exception) { }

    /// <summary>Called by the thread of a provider after its last event: how many events were received, and how many were lost. Exact.</summary>
    protected virtual void OnDisabled(string provider, ulong written, ulong lost) { }

    /// <summary>
    /// Enables a provider, which may be registered later; "*" with level Verbose and all keywords: all providers. Enabled again, the new level and keywords replace the old ones.
    /// </summary>
    /// <param name="provider">Its name, compared without regard to case.</param>
    /// <param name="level">The most detailed level to receive.</param>
    /// <param name="keywords">An event is received if it has one of these, or none at all.</param>
    /// <param name="arguments">For the provider's enable callback.</param>
    public void EnableEvents(string provider, EventLevel level = EventLevel.Verbose, EventKeywords keywords = EventKeywords.All,
        IReadOnlyDictionary<string, string>? arguments = null)
    {
        ArgumentException.ThrowIfNullOrEmpty(provider);
        lock (readers)
        {
            ObjectDisposedException.ThrowIf(isDisposed, this);
            var reader = new Reader(this, provider, level, keywords, arguments);
            readers.Remove(provider, out var old);
            old?.End();
            readers.Add(provider, reader);
            reader.Begin();
        }
    }

    /// <summary>Disables a provider. After the return OnEventWritten has been called with all events that were fired before, unless it calls this itself.</summary>
    public void DisableEvents(string provider)
    {
        Reader? reader;
        lock (readers)
            readers.Remove(provider, out reader);
        reader?.End();
    }

    /// <summary>Events of a provider since it was enabled: received, and lost because its memory was full. OnDisabled receives the last ones.</summary>
    public (ulong Written, ulong Lost) GetCounts(string provider)
    {
        lock (readers)
            return readers.TryGetValue(provider, out var reader) ? reader.Counts : default;
    }

    /// <summary>Disables all providers.</summary>
    public void Dispose()
    {
        Reader[] all;
        lock (readers)
        {
            isDisposed = true;
            all = [.. readers.Values];
            readers.Clear();
        }
        foreach (var reader in all)
            reader.End();
        Dispose(true);
        GC.SuppressFinalize(this);
    }

    /// <summary>Called by Dispose().</summary>
    protected virtual void Dispose(bool disposing) { }

    // A session of one provider, and the thread that reads it.
    sealed class Reader
    {
        // The longest wait for an event. It only bounds how long a read takes: the end of the session ends it.
        const uint WaitMs = 1000;

        readonly NativeEventListener listener;
        readonly string provider;
        readonly Thread thread;
        readonly object stopLock = new();
        nint session;
        bool isStopped;
        (ulong, ulong) counts;

        internal Reader(NativeEventListener listener, string provider, EventLevel level, EventKeywords keywords, IReadOnlyDictionary<string, string>? arguments)
        {
            this.listener = listener;
            this.provider = provider;
            thread = new Thread(Run) { IsBackground = true, Name = "native events" };
            var text = arguments == null ? null : string.Join(';', arguments.Select(pair => pair.Key + "=" + pair.Value)) + "\0";
            fixed (byte* name = Encoding.UTF8.GetBytes(provider + "\0"))
            fixed (byte* filter = text == null ? null : Encoding.UTF8.GetBytes(text))
            fixed (nint* to = &session)
            {
                var want = new NativeWant
                {
                    Size = (nuint)sizeof(NativeWant),
                    Name = name,
                    Keywords = (ulong)keywords,
                    Level = (uint)level,
                    Arguments = filter,
                };
                var options = new NativeSessionOptions
                {
                    Size = (nuint)sizeof(NativeSessionOptions),
                    Wants = &want,
                    WantCount = 1,
                    Policy = (uint)listener.options.Policy,
                    Stacks = listener.options.Stacks ? (byte)1 : (byte)0,
                    BufferBytes = (nuint)listener.options.BufferBytes,
                };
                Native.Check(Native.spoor_session_start_listener(&options, to), $"enable '{provider}'");
            }
        }

        internal void Begin() => thread.Start();

        internal (ulong Written, ulong Lost) Counts
        {
            get
            {
                lock (stopLock)
                    return session == 0 ? counts : Read();
            }
        }

        (ulong, ulong) Read()
        {
            var read = new NativeCounts { Size = (nuint)sizeof(NativeCounts) };
            Native.spoor_session_count(session, &read);
            return (read.Written, read.Lost);
        }

        internal void End()
        {
            lock (stopLock)
            {
                if (isStopped)
                    return;
                isStopped = true;
                Native.Check(Native.spoor_session_stop(session), "stop the session");
            }
            // In OnEventWritten this is that thread: it reads the rest after the return, and ends.
            if (Thread.CurrentThread != thread)
                thread.Join();
        }

        void Run()
        {
            // By address: descriptions of events are valid until the process ends.
            var kinds = new Dictionary<nint, NativeEventKind>();
            var view = new NativeEventView { Size = (nuint)sizeof(NativeEventView) };
            nint last = 0;
            NativeEventKind? kind = null;

            // A collection can run while the thread waits: a thread in native code does not delay it.
            for (int result; (result = Native.spoor_listener_read(session, &view, WaitMs)) >= 0;)
            {
                if (result == 0)
                    continue;
                if ((nint)view.Info != last || kind == null)
                {
                    last = (nint)view.Info;
                    if (!kinds.TryGetValue(last, out kind))
                        kinds.Add(last, kind = new NativeEventKind(view.Info));
                }
                try
                {
                    listener.OnEventWritten(new NativeEvent(&view, kind));
                }
                catch (Exception exception)
                {
                    listener.OnHandlerFailed(exception);
                }
            }
            lock (stopLock)
            {
                counts = Read();
                Native.spoor_session_free(session);
                session = 0;
            }
            try
            {
                listener.OnDisabled(provider, counts.Item1, counts.Item2);
            }
            catch (Exception exception)
            {
                listener.OnHandlerFailed(exception);
            }
        }
    }
}
