// Runs known numbers of database commands when the file "go" appears, and ends when "end" does: with Entity Framework on SQLite (5 inserts, 7 queries, 2 that fail),
// spans of an ActivitySource as drivers make them (11 queries of 20 ms, 3 of them failed), and the events of SqlClient's EventSource (6 commands, 1 failed).
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Runtime.CompilerServices;
using Microsoft.Data.Sqlite;
using Microsoft.EntityFrameworkCore;
using Stored;

Console.WriteLine("ready");
Await("go");
Shelf.Fill();
Ledger.Query();
Stock.Query();
Console.WriteLine("stored");
Await("end");

static void Await(string path)
{
    while (!File.Exists(path))
        Thread.Sleep(10);
}

namespace Stored
{
    sealed class Book
    {
        public int Id { get; set; }
        public string Title { get; set; } = "";
    }

    sealed class Books(SqliteConnection connection) : DbContext
    {
        public DbSet<Book> All => Set<Book>();

        protected override void OnConfiguring(DbContextOptionsBuilder options) => options.UseSqlite(connection);
    }

    static class Shelf
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Fill()
        {
            using var connection = new SqliteConnection("Data Source=:memory:");
            connection.Open();
            using (var create = connection.CreateCommand())
            {
                create.CommandText = "CREATE TABLE \"All\" (Id INTEGER PRIMARY KEY, Title TEXT NOT NULL)";
                create.ExecuteNonQuery();
            }
            using var books = new Books(connection);
            for (var i = 0; i < 5; i++)
            {
                books.All.Add(new Book { Title = $"volume {i}" });
                books.SaveChanges();
            }
            for (var i = 0; i < 7; i++)
                _ = books.All.Count();
            for (var i = 0; i < 2; i++)
            {
                try
                {
                    books.Database.ExecuteSqlRaw("DELETE FROM nowhere");
                }
                catch (SqliteException)
                {
                    // It is meant to fail.
                }
            }
        }
    }

    static class Ledger
    {
        static readonly ActivitySource source = new("Stored.Ledger");

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Query()
        {
            for (var i = 0; i < 11; i++)
            {
                using var span = source.StartActivity("SELECT ledger", ActivityKind.Client);
                span?.SetTag("db.system.name", "postgresql");
                span?.SetTag("db.namespace", "books");
                span?.SetTag("server.address", "ledger.example");
                span?.SetTag("server.port", 5432);
                span?.SetTag("db.query.text", "SELECT sum FROM ledger");
                Thread.Sleep(20);
                if (i % 4 == 0)
                    span?.SetStatus(ActivityStatusCode.Error, "timeout");
            }
            using var other = source.StartActivity("no command of a database");
            other?.SetTag("topic", "db.system.name");
        }
    }

    [EventSource(Name = "Microsoft.Data.SqlClient.EventSource")]
    sealed class SqlClientEvents : EventSource
    {
        public static readonly SqlClientEvents Log = new();

        public static class Keywords
        {
            public const EventKeywords ExecutionTrace = (EventKeywords)1;
        }

        [Event(1, Keywords = Keywords.ExecutionTrace, Task = (EventTask)1, Opcode = EventOpcode.Start)]
        public void BeginExecute(int objectId, string dataSource, string databaseName, string commandText, string message) =>
            WriteEvent(1, objectId, dataSource, databaseName, commandText, message);

        [Event(2, Keywords = Keywords.ExecutionTrace, Task = (EventTask)1, Opcode = EventOpcode.Stop)]
        public void EndExecute(int objectId, int compositestate, int sqlExceptionNumber, string message) =>
            WriteEvent(2, objectId, compositestate, sqlExceptionNumber, message);
    }

    static class Stock
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Query()
        {
            for (var i = 0; i < 6; i++)
            {
                SqlClientEvents.Log.BeginExecute(i, "stock.example", "Stock", "SELECT 1", "");
                Thread.Sleep(10);
                // success is bit 0 of the state, as SqlClient composes it
                SqlClientEvents.Log.EndExecute(i, i == 3 ? 2 : 3, i == 3 ? 1205 : 0, "");
            }
        }
    }
}
