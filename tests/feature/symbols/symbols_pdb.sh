#!/bin/sh
# symbols fetch --lines gets portable PDBs by GUID, from a server in Microsoft's layout; symbols import takes them; a PDB with another GUID is never used, nor one that was damaged in the cache. symbols fetch also takes symbol files from the debug store in the root of a running process.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
command -v python3 >/dev/null || skip "no python3 here"
export SPOOR_SYMBOL_CACHE="$scratch/cache" XDG_CONFIG_HOME="$scratch/config"
unset SPOOR_SYMBOLS DEBUGINFOD_URLS

cp "$(dirname "$app")"/Managed.* . || fail "cp"
app=$scratch/Managed.dll
mv Managed.pdb right.pdb
body=$(grep -nF 'x = x * 31 + i;' "$top/tests/feature/programs/managed/Program.cs" | head -n 1 | cut -d: -f1)
mkdir store && start server python3 "$here/symbol_server.py" store port log
until_true test -s port || fail "the server does not start"
url=http://127.0.0.1:$(cat port)

code_of "$spoor" record --lines -F 499 -o x.nettrace -- dotnet "$app" burn 900
expect_code 0 "record --lines"
lines() {
	"$spoor" report --lines --json x.nettrace >json 2>err || fail "report --lines"
	value json '[.processes[].functions[] | select((.name | test("Hot[.:]+Burn")) and .line == ($a | tonumber))] | length' "$body"
}
[ "$(lines)" = 0 ] || fail "lines without a PDB"

# The GUID of the #Pdb stream, as .NET prints it.
key=$(python3 - right.pdb <<'END'
import struct, sys, uuid
data = open(sys.argv[1], "rb").read()
at = 16 + struct.unpack_from("<I", data, 12)[0]
streams = struct.unpack_from("<H", data, at + 2)[0]
at += 4
for _ in range(streams):
    offset, size = struct.unpack_from("<II", data, at)
    end = data.index(b"\0", at + 8)
    if data[at + 8:end] == b"#Pdb":
        print(uuid.UUID(bytes_le=data[offset:offset + 16]).hex + "FFFFFFFF")
    at = at + 8 + (end - at - 8) // 4 * 4 + 4
END
)
[ ${#key} = 40 ] || fail "no GUID in the PDB: $key"
"$spoor" symbols fetch --lines --urls --server "$url/good" x.nettrace >urls 2>err || fail "fetch --urls"
grep -qxF "$url/good/managed.pdb/$key/managed.pdb" urls || fail "no address of the PDB: $(cat urls)"
grep -qxF "$url/good/Managed.pdb/$key/Managed.pdb" urls || fail "no address with the name as it is: $(cat urls)"
"$spoor" symbols fetch --urls --server "$url/good" x.nettrace >urls 2>err || fail "fetch --urls"
has_no urls '\.pdb'

# A server that lies: the PDB of another program.
mkdir -p "store/managed.pdb/$key" && cp "$top/tests/fuzz/corpus/portable_pdb/lines.pdb" "store/managed.pdb/$key/managed.pdb"
code_of "$spoor" symbols fetch --lines --server "$url/good" x.nettrace
has err 'Managed\.pdb.*(is not used|GUID)'
[ "$(lines)" = 0 ] || fail "lines from the PDB of another program"

cp right.pdb "store/managed.pdb/$key/managed.pdb"
code_of "$spoor" symbols fetch --lines --server "$url/good" x.nettrace
expect_code 0 "fetch --lines"
has err "Managed\\.pdb: .* from $url/good/managed.pdb/$key/managed.pdb"
[ "$(lines)" -gt 0 ] || fail "no lines with the PDB in the cache"

# A file of the cache that was changed is not used.
cached=$(find cache -name '*.debug' | head -n 1)
[ -n "$cached" ] || fail "nothing in the cache"
cp "$cached" kept && printf 'x' | dd of="$cached" bs=1 seek=3000 conv=notrunc 2>/dev/null
[ "$(lines)" = 0 ] || fail "lines from a damaged PDB"
"$spoor" symbols cache --clean >out 2>err || fail "cache --clean"
[ -z "$(find cache -name '*.debug')" ] || fail "the cache is not empty"

# Imported, and then written into the recording.
"$spoor" symbols import right.pdb 2>err || fail "import"
[ "$(lines)" -gt 0 ] || fail "no lines with the imported PDB"
code_of "$spoor" symbols apply --lines x.nettrace
expect_code 0 "apply --lines"
rm -rf cache
[ "$(lines)" -gt 0 ] || fail "no lines in the recording"

# A debug store that only the process's own root has.
is_root || exit 0
command -v strip >/dev/null && command -v objcopy >/dev/null && command -v cc >/dev/null || exit 0
cat >bare.c <<'END'
static volatile unsigned long sum;
__attribute__((noinline)) void burn_inside(void)
{
	for (unsigned long i = 0; i < 1000000; i++)
		sum = sum * 31 + i;
}
int main(void)
{
	for (;;)
		burn_inside();
}
END
cc -O1 -static -Wl,--build-id -o whole bare.c 2>err || exit 0
mkdir -p root && cp whole root/bare && objcopy --only-keep-debug whole bare.debug && strip root/bare
id=$(readelf -n root/bare | sed -n 's/.*Build ID: *//p' | head -n 1)
[ -n "$id" ] || exit 0
start boxed chroot root /bare
until_true grep -q bare /proc/$boxed/comm
"$spoor" record -q -F 499 --duration 1s -p $boxed -o b.nettrace || fail "record in another root"
"$spoor" report --json b.nettrace >json 2>err || fail "report"
json json '[.processes[].functions[] | select(.name == "burn_inside")] == []'
pair=$(echo "$id" | cut -c1-2)
mkdir -p "root/usr/lib/debug/.build-id/$pair" && cp bare.debug "root/usr/lib/debug/.build-id/$pair/$(echo "$id" | cut -c3-).debug"
code_of "$spoor" symbols fetch --server "$url/good" b.nettrace
expect_code 0 "fetch from the root of a process"
has err "bare: from the file system of process $boxed"
"$spoor" report --json b.nettrace >json 2>err || fail "report"
json json 'any(.processes[].functions[]; .name == "burn_inside" and .self_samples > 0)'
