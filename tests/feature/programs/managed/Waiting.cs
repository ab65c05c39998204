/* A thread for each way to wait, which does nothing else until the program is killed. */
using System.Collections.Concurrent;
using System.IO.Pipes;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Threading.Channels;

static class Waiting
{
    static readonly object gate = new();
    static readonly object pulse = new();
    static readonly SemaphoreSlim slim = new(0);
    static readonly Semaphore semaphore = new(0, int.MaxValue);
    static readonly ManualResetEventSlim happened = new(false);
    static readonly ReaderWriterLockSlim readers = new();
    static readonly BlockingCollection<int> queue = [];
    static readonly Channel<int> channel = Channel.CreateUnbounded<int>();
    static readonly AnonymousPipeServerStream pipe = new(PipeDirection.Out);
    static readonly AnonymousPipeClientStream pipeEnd = new(PipeDirection.In, pipe.ClientSafePipeHandle);
    static readonly Socket socket = new(SocketType.Stream, ProtocolType.Tcp);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nap() => Thread.Sleep(10);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Enter()
    {
        lock (gate)
            Thread.SpinWait(1);
        Thread.Sleep(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Pulsed()
    {
        lock (pulse)
            Monitor.Wait(pulse);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void TakeSlim() => slim.Wait();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void TakeSemaphore() => semaphore.WaitOne();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Happened()
    {
        happened.Wait();
        happened.Reset();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void EnterRead()
    {
        readers.EnterReadLock();
        readers.ExitReadLock();
        Thread.Sleep(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Take() => queue.Take();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ReadChannel() => channel.Reader.ReadAsync().AsTask().Wait();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitTask() => Task.Delay(10).Wait();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Result() => Task.Delay(10).ContinueWith(_ => 1).Result;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AwaitNow() => Task.Delay(10).GetAwaiter().GetResult();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Receive() => socket.Receive(new byte[1]);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ReadPipe() => pipeEnd.ReadByte();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Join()
    {
        Thread thread = new(() => Thread.Sleep(10));
        thread.Start();
        thread.Join();
    }

    static void Begin(string name, Action wait)
    {
        void Loop()
        {
            for (; ; )
                wait();
        }
        new Thread(Loop) { Name = name, IsBackground = true }.Start();
    }

    public static void Run(int ms)
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        socket.Connect(listener.LocalEndpoint);
        using Socket peer = listener.AcceptSocket();
        Begin("nap", Nap);
        Begin("enter", Enter);
        Begin("pulsed", Pulsed);
        Begin("slim", TakeSlim);
        Begin("semaphore", TakeSemaphore);
        Begin("happened", Happened);
        Begin("readers", EnterRead);
        Begin("take", Take);
        Begin("channel", ReadChannel);
        Begin("task", WaitTask);
        Begin("result", () => Result());
        Begin("now", AwaitNow);
        Begin("receive", Receive);
        Begin("pipe", ReadPipe);
        Begin("join", Join);
        long begin = Environment.TickCount64;
        while (Environment.TickCount64 - begin < ms)
        {
            lock (gate)
            {
                readers.EnterWriteLock();
                Thread.Sleep(10);
                readers.ExitWriteLock();
            }
            lock (pulse)
                Monitor.PulseAll(pulse);
            slim.Release();
            semaphore.Release();
            happened.Set();
            queue.Add(1);
            channel.Writer.TryWrite(1);
            peer.Send(new byte[1]);
            pipe.WriteByte(1);
        }
    }
}
