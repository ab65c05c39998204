#!/bin/sh
# spoor symbols fetch: downloads symbol files from servers in Microsoft's and debuginfod's layouts, resumes, and gets no wrong name from servers that are slow or lie.
. "$(dirname "$(realpath "$0")")/../prelude"

command -v strip >/dev/null && command -v objcopy >/dev/null || skip "no strip and objcopy here"
command -v python3 >/dev/null || skip "no python3 here"
export SPOOR_SYMBOL_CACHE="$scratch/cache" XDG_CONFIG_HOME="$scratch/config"
unset SPOOR_SYMBOLS DEBUGINFOD_URLS
cp "$target" ./bare && objcopy --only-keep-debug bare bare.debug && strip bare || fail "strip"
id=$(readelf -n bare | sed -n 's/.*Build ID: *//p')
[ -n "$id" ] || skip "the compiler writes no build ids"
microsoft=_.debug/elf-buildid-sym-$id
mkdir -p "store/$microsoft" && cp bare.debug "store/$microsoft/_.debug"
start server python3 "$here/symbol_server.py" store port log
until_true test -s port || fail "the server does not start"
url=http://127.0.0.1:$(cat port)

"$spoor" record -q -F 499 -o x.nettrace -- ./bare spin 300 2>err || fail "record"
"$spoor" report x.nettrace >out 2>err || fail "report"
has out "native frames have no symbols: $spoor symbols fetch x\.nettrace\$"
unnamed() {
	"$spoor" symbols list --json x.nettrace >list.json 2>err || fail "symbols list"
	json list.json '.images[] | select(.image == "bare") | .symbols == "absent" and .frames_named == 0'
	[ -z "$(find cache -name '*.debug' 2>/dev/null)" ] || fail "the cache has $(find cache -name '*.debug')"
}
named() {
	"$spoor" report -q --json x.nettrace >json 2>err || fail "report"
	json json 'any(.processes[].functions[]; .name == "spin_here" and .module == "bare" and .self_samples > 0)'
}
: >log

# A list of addresses for a machine without a network; nothing is downloaded.
"$spoor" symbols fetch --urls --server "$url/good/" x.nettrace >urls 2>err || fail "fetch --urls"
grep -qxF "$url/good/$microsoft/_.debug" urls || fail "no address in Microsoft's layout: $(cat urls)"
grep -qxF "$url/good/bare/elf-buildid-$id/bare" urls || fail "no address of the image: $(cat urls)"
grep -qxF "$url/good/buildid/$id/debuginfo" urls || fail "no address in debuginfod's layout: $(cat urls)"
has err 'spoor symbols import'
"$spoor" symbols fetch --urls x.nettrace >urls 2>err || fail "fetch --urls"
has urls "^https://msdl\.microsoft\.com/download/symbols/_\.debug/elf-buildid-sym-$id/_\.debug$"
[ ! -s log ] || fail "--urls has downloaded: $(cat log)"
unnamed

# Servers that are slow or lie. Each ends with a message, in bounded time, and leaves no file.
refused() {
	code_of timeout 100 "$spoor" symbols fetch --server "$url/$1" --timeout 2s --max-size 1M x.nettrace
	expect_code 1 "fetch from /$1"
	has err "$2"
	unnamed
}
refused slow 'bare: .*(timed out|Timeout|too slow)'
rm -rf cache
refused endless 'bare: .* more than 1000000 bytes'
refused headers 'bare: .*headers'
refused loop 'bare: .*redirects'
refused local 'bare: .*([Pp]rotocol|file)'
refused error 'bare: .*500'
code_of "$spoor" symbols fetch --server http://127.0.0.1:9/ x.nettrace
expect_code 1 "fetch from no server"
has err 'bare: cannot download .*127\.0\.0\.1'
code_of "$spoor" symbols fetch --server ftp://127.0.0.1/ x.nettrace
[ "$code" != 0 ] || fail "a server by ftp was used"
mv "store/$microsoft/_.debug" right
cp /bin/true "store/$microsoft/_.debug"
refused good "bare: .*it has the build id [0-9a-f]*, not $id"
cp bare "store/$microsoft/_.debug"
refused good 'bare: .*it has no symbol table'
rm "store/$microsoft/_.debug"
[ -z "$(find cache -name '*.part' -size 0)" ] || fail "empty parts are left"
refused good 'bare: no server has its symbols'
cp right "store/$microsoft/_.debug"

# Nothing that is printed has the password of an address.
no_secret() {
	has_no err 'secret|user'
	has_no out 'secret|user'
}
code_of "$spoor" symbols fetch --server "http://user:secret@127.0.0.1:9/" x.nettrace
expect_code 1 "fetch from no server, with a password"
no_secret
code_of "$spoor" symbols fetch --server "ftp://user:secret@127.0.0.1/" x.nettrace
expect_code 2 "a server by ftp, with a password"
no_secret
code_of "$spoor" symbols fetch --urls --server "http://user:sec@ret@127.0.0.1:9/" x.nettrace
has out "^http://127\.0\.0\.1:9/$microsoft"
no_secret
code_of "$spoor" symbols fetch --server "http://user:secret@${url#http://}/good" x.nettrace
expect_code 0 "fetch with a password"
has err 'bare: [0-9.]+ kB from http://127'
no_secret
rm -rf cache

# A server that has failed twice is not asked for further images.
for i in 1 2 3 4; do cp bare "bare$i"; done
"$spoor" record -q -F 499 -o many.nettrace -- sh -c 'for i in 1 2 3 4; do ./bare$i spin 100; done' 2>err || fail "record of four programs"
"$spoor" symbols list --json many.nettrace >list.json 2>err || fail "symbols list"
json list.json '[.images[] | select(.image | startswith("bare"))] | length == 4'
: >log
code_of "$spoor" symbols fetch --server "$url/error" many.nettrace
expect_code 1 "fetch from a server that fails"
[ "$(wc -l <log)" = 2 ] || fail "a server that fails was asked $(wc -l <log) times"
has err '[0-9]+ more images were not asked for: no server answers'
: >log
code_of "$spoor" symbols fetch --server "$url/error" --server "$url/good" many.nettrace
expect_code 0 "fetch from a server that fails, and from one that answers"
[ "$(grep -c '^/error' log)" = 2 ] || fail "a server that fails was asked $(grep -c '^/error' log) times"
rm -rf cache

# An interrupted download is resumed where it ended, and used when it is whole.
rm -rf cache
code_of "$spoor" symbols fetch --server "$url/cut" x.nettrace
expect_code 1 "a download that is cut"
unnamed
part=$(find cache -name '*.part')
[ "$(stat -c %s "$part")" = $((($(stat -c %s right) + 1) / 2)) ] || fail "the part has $(stat -c %s "$part") bytes"
: >log
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	code_of "$spoor" symbols fetch --server "$url/cut" x.nettrace
	[ "$code" != 0 ] || break
done
expect_code 0 "a download that is resumed"
has log "/cut/$microsoft/_\.debug bytes=$((($(stat -c %s right) + 1) / 2))-"
[ -z "$(find cache -name '*.part')" ] || fail "a part is left"
named

# A server without ranges sends the file again. A part that is no part of the file is not used.
rm -rf cache
code_of "$spoor" symbols fetch --server "$url/plain" x.nettrace
expect_code 0 "a server without ranges"
named
rm -rf cache
code_of "$spoor" symbols fetch --server "$url/cut" x.nettrace
head -c "$(stat -c %s right)" /dev/zero >"$(find cache -name '*.part')"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	code_of "$spoor" symbols fetch --server "$url/cut" x.nettrace
	[ "$code" != 0 ] || break
done
expect_code 0 "a part with another content"
named

# Servers from SPOOR_SYMBOLS, and from the user's file, which no other user may write. Of two servers the second one has it.
rm -rf cache
SPOOR_SYMBOLS="$url/error $url/good" "$spoor" symbols fetch x.nettrace 2>err || fail "servers of SPOOR_SYMBOLS"
has err "bare: [0-9.]+ kB from $url/good/"
named
rm -rf cache
mkdir -p config/spoor && printf '# ours\n%s\n' "$url/good # near" >config/spoor/symbols.conf
"$spoor" symbols fetch -q x.nettrace 2>err || fail "servers of symbols.conf"
# A sample may be of a library that has no symbols on this machine.
! grep -v ': no server has its symbols\.$' err || fail "-q prints more than what is missing"
has_no err '^bare'
named
chmod 666 config/spoor/symbols.conf
rm -rf cache
code_of "$spoor" symbols fetch x.nettrace
expect_code 3 "a symbols.conf that all users may write"
chmod 600 config/spoor/symbols.conf

: >log
code_of env SPOOR_SYMBOLS= "$spoor" symbols fetch x.nettrace
expect_code 1 "no server by SPOOR_SYMBOLS"
has err 'no symbol server is set'
[ ! -s log ] || fail "a server was asked: $(cat log)"

# fetch --apply; what is here already is not downloaded again.
cp x.nettrace y.nettrace
"$spoor" symbols fetch --apply y.nettrace 2>err || fail "fetch --apply"
: >log
code_of "$spoor" symbols fetch x.nettrace
# A library of the system that was sampled may have no symbols.
[ "$code" = 0 ] || ! grep -v ': no server has its symbols\.$' err || fail "fetch again"
has_no log "$id"

# record --symbols does the same at its end, and its report has the names.
rm -rf cache
SPOOR_SYMBOLS=$url/good "$spoor" record --symbols --report -q -F 499 -o r.nettrace -- ./bare spin 300 >out 2>err || fail "record --symbols"
has out ' spin_here +bare'
SPOOR_SYMBOL_CACHE=$scratch/none "$spoor" symbols list --json r.nettrace >list.json 2>err || fail "symbols list"
json list.json '[.images[] | select(.image == "bare")] == []'
rm -rf cache
SPOOR_SYMBOLS=$url/error "$spoor" record --symbols -q -F 499 -o r.nettrace -- ./bare spin 300 2>err || fail "record --symbols without a server"
has err '500'

# Without libcurl there is a message. Another machine, here an empty root, shows the names of y.nettrace.
if is_root && static=$(dirname "$spoor")/../build-static/spoor && [ -x "$static" ]; then
	mkdir root && cp "$static" root/spoor && cp y.nettrace root
	code_of chroot root /spoor report --json /y.nettrace
	expect_code 0 "report in an empty root"
	json out 'any(.processes[].functions[]; .name == "spin_here")'
	cp x.nettrace root
	code_of env SPOOR_SYMBOL_CACHE=/cache chroot root /spoor symbols fetch --server "$url/good" /x.nettrace
	expect_code 3 "fetch without libcurl"
	has err 'linked statically, without libcurl'
	has err 'spoor symbols import'
fi
mv bare bare.away && rm -rf cache
SPOOR_SYMBOL_CACHE=$scratch/none "$spoor" report -q --json y.nettrace >json 2>err || fail "report elsewhere"
json json 'any(.processes[].functions[]; .name == "spin_here" and .module == "bare")'

# debuginfod of Debian, from the file with the symbols.
command -v debuginfod >/dev/null || { echo "debuginfod is not installed: not tested" && exit 0; }
mkdir served && cp "$target" served/whole
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
}
served() {
	curl -fsS -o /dev/null "http://127.0.0.1:$debug_port/buildid/$id/debuginfo"
}
# Another program may take the port before it does.
for _ in 1 2 3 4 5; do
	debug_port=$(free_port)
	start debuginfod debuginfod -F served -d "$scratch/debuginfod.sqlite" -p "$debug_port" >debuginfod.log 2>&1
	until_true eval 'served || ended_process $debuginfod'
	! served || break
done
served || fail "debuginfod does not have the file: $(tail -n 3 debuginfod.log)"
unnamed
DEBUGINFOD_URLS=http://127.0.0.1:$debug_port "$spoor" symbols fetch --server debuginfod x.nettrace 2>err || fail "fetch from debuginfod"
has err "bare: .* from http://127.0.0.1:$debug_port/buildid/$id/debuginfo"
named
