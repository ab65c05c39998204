// Prints the content of a recorded heap snapshot, by type: "node NAME COUNT BYTES" lines; then "edges COUNT", "dangling COUNT" (edges to an address without a node),
// "pairs COUNT" (of dependent handles), "handles COUNT", "stack COUNT" and "lost COUNT".
//
//   snapshot FILE
using Microsoft.Diagnostics.Tracing;

using var source = new EventPipeEventSource(args[0]);
var names = new Dictionary<ulong, string>();
var nodes = new List<(ulong Address, ulong Type, long Size)>();
var targets = new List<ulong>();
long pairs = 0, handles = 0, stack = 0;
source.Clr.TypeBulkType += data =>
{
    for (var i = 0; i < data.Count; i++)
        names[data.Values(i).TypeID] = data.Values(i).TypeName;
};
source.Clr.GCBulkNode += data =>
{
    for (var i = 0; i < data.Count; i++)
        nodes.Add((data.Values(i).Address, data.Values(i).TypeID, (long)data.Values(i).Size));
};
source.Clr.GCBulkEdge += data =>
{
    for (var i = 0; i < data.Count; i++)
        targets.Add(data.Values(i).Target);
};
source.Clr.GCBulkRootConditionalWeakTableElementEdge += data => pairs += data.Count;
source.Clr.GCBulkRootEdge += data =>
{
    for (var i = 0; i < data.Count; i++)
    {
        if (data.Values(i).GCRootKind == Microsoft.Diagnostics.Tracing.Parsers.Clr.GCRootKind.Handle)
            handles++;
        else if (data.Values(i).GCRootKind == Microsoft.Diagnostics.Tracing.Parsers.Clr.GCRootKind.Stack)
            stack++;
    }
};
source.Process();
foreach (var group in nodes.GroupBy(node => names.GetValueOrDefault(node.Type, "?")).OrderBy(group => group.Key, StringComparer.Ordinal))
    Console.WriteLine($"node {group.Key.Replace(' ', '_')} {group.Count()} {group.Sum(node => node.Size)}");
var known = nodes.Select(node => node.Address).ToHashSet();
Console.WriteLine($"nodes {nodes.Count}\nedges {targets.Count}\ndangling {targets.Count(target => !known.Contains(target))}");
Console.WriteLine($"pairs {pairs}\nhandles {handles}\nstack {stack}\nlost {source.EventsLost}");
return 0;
