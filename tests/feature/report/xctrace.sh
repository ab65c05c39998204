#!/bin/sh
# macOS: macos/collect calls xctrace and dotnet-rundown as it should (with stand-ins); dotnet-rundown compiles and links for both kinds of macOS with zig, and lists the methods of a real runtime here;
# samples of xctrace get the names of these methods. The samples are made by hand; nothing was run on macOS. The parts need cc, .NET and zig (scripts/setup all).
. "$(dirname "$(realpath "$0")")/../prelude"
top=$(realpath "$here/../..")
collect=$top/macos/collect
command -v cc >/dev/null || skip "no C compiler here"

# A folder with the script, the tool, and a stand-in for xctrace, which writes its arguments down, and exports what is in ./export.xml.
mkdir tools
cp "$collect" tools/
cat >tools/xctrace <<'END'
#!/bin/sh
echo "xctrace $*" >>"$XCTRACE_LOG"
[ ! -e "$XCTRACE_FAILS" ] || exit 1
for word in "$@"; do
	[ "${last:-}" != --output ] || output=$word
	[ "${last:-}" != --attach ] || sed "s/4711/$word/g" "$XCTRACE_SAMPLES" >"$XCTRACE_LOG.xml"
	last=$word
done
case $1 in
record) mkdir -p "$output" ;;
export) cp "$XCTRACE_LOG.xml" "$output" ;;
esac
END
chmod +x tools/xctrace
export XCTRACE="$scratch/tools/xctrace" XCTRACE_LOG="$scratch/log" XCTRACE_FAILS="$scratch/fails" XCTRACE_SAMPLES="$top/tests/data/xctrace/time-profile.xml"

# Its words, of a process and of a command; without the tool.
sleep 1000 &
pid=$!
started="$started $pid"
tools/collect -o of_pid -d 3 -p $pid 2>err || fail "collect -p"
has err "there is no .*/dotnet-rundown"
sed "s/$pid/PID/" log >words
cat >wanted <<'END'
xctrace record --template Time Profiler --attach PID --time-limit 3s --no-prompt --output of_pid/recording.trace
xctrace export --input of_pid/recording.trace --xpath /trace-toc/run[@number="1"]/data/table[@schema="time-profile"] --output of_pid/time-profile.xml
END
diff wanted words >out || fail "other words"
: >log
tools/collect -o of_command sh -c 'echo ran' >out 2>err || fail "collect COMMAND"
has out '^ran$'
has log "^xctrace record --template Time Profiler --attach [0-9]+ --time-limit 10s"
"$spoor" report of_command >out 2>err || fail "no report of the folder"
has out ' main '
# A FIFO in the folder is refused: nothing writes into it.
mkfifo of_command/methods-1.nettrace
code_of timeout 100 "$spoor" report of_command
expect_code 1 "a FIFO beside the samples: $(cat err)"
has err 'methods-1\.nettrace'
rm of_command/methods-1.nettrace
mkdir fifo
mkfifo fifo/time-profile.xml
code_of timeout 100 "$spoor" report fifo
expect_code 1 "a FIFO as the samples: $(cat err)"
has err 'time-profile\.xml'
for words in '' '-o x' '-o x -p' '-o x -d 1.5 true' "-o x -p $pid true" '-o x -z'; do
	# shellcheck disable=SC2086
	code_of tools/collect $words
	expect_code 2 "collect $words"
done
code_of tools/collect -o of_pid -p $pid
expect_code 1 "a folder that exists"
: >fails
code_of tools/collect -o failed -p $pid
expect_code 1 "xctrace fails"
has err 'cannot record process'
rm fails
code_of tools/collect -o gone sh -c 'exit 3'
has err 'has ended: its managed code has no names|there is no'

# The tool for the methods, of a process without a runtime.
cc -std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wshadow -Werror "$top/macos/dotnet_rundown.c" -o tools/dotnet-rundown 2>err || fail "dotnet_rundown.c does not compile"
mkdir sockets # /tmp may have one that an earlier process of that number has left
TMPDIR=$PWD/sockets code_of tools/dotnet-rundown $pid none.nettrace
expect_code 1 "no runtime"
has err 'no diagnostics socket'
[ ! -e none.nettrace ] || fail "a file is left"

# For macOS.
zig=${ZIG:-zig}
command -v "$zig" >/dev/null || zig=${SPOOR_TEST_PROGRAMS:-$top/build-programs}/zig/zig
if command -v "$zig" >/dev/null; then
	export ZIG_GLOBAL_CACHE_DIR="$scratch/cache" ZIG_LOCAL_CACHE_DIR="$scratch/cache"
	for target in aarch64-macos x86_64-macos; do
		"$zig" cc -target $target -std=c99 -Wall -Wextra -Wshadow -Werror "$top/macos/dotnet_rundown.c" -o rundown.$target 2>err || fail "zig does not build dotnet_rundown.c for $target"
		[ "$(od -An -tx4 -N4 rundown.$target | tr -d ' ')" = feedfacf ] || fail "it is no Mach-O file"
	done
	echo "dotnet-rundown links for two kinds of macOS"
else
	echo "left out: zig is not here"
fi

# The methods of a real runtime name the samples. Its first JIT-compiled method of the program is where the hand-made samples have an address without a name.
. "$here/programs/managed/prelude"
begin runner burn 600000
# named_method: the program's method has been compiled, and is in the rundown.
named_method() {
	tools/dotnet-rundown "$runner" one.nettrace 2>err || fail "no rundown"
	"$spoor" events -q one.nettrace --json >one.json 2>err || fail "the rundown cannot be read"
	jq -r 'select(.event == "Method/DCStopVerbose" and .fields.MethodNamespace == "Hot" and .fields.MethodName == "Burn") |
		"\(.fields.MethodStartAddress) \(.fields.MethodNamespace).\(.fields.MethodName)"' one.json | tail -n 1 >method
	[ -s method ]
}
until_true named_method || fail "no method of the program in the rundown: $(wc -l <one.json) events"
read -r address name <method
python3 - "$address" "$XCTRACE_SAMPLES" >samples.xml <<'END' || fail "no samples can be made"
import sys
text = open(sys.argv[2]).read()
for place in (16, 32):
    text = text.replace("0x7f00000010%x" % place, "0x%x" % (int(sys.argv[1], 0) + place))
print(text, end="")
END
XCTRACE_SAMPLES=$scratch/samples.xml tools/collect -o net -p "$runner" 2>err || fail "collect of a .NET process"
[ -s "net/methods-$runner.nettrace" ] || fail "no methods: $(cat err)"
"$spoor" flame net --format folded -o - >folded 2>err || fail "no flame graph of the folder"
grep -F "$name" folded >named || fail "no sample is named $name: $(cat folded)"
has named 'main;.*;mach_msg2_trap 2$'
all_slots_free "$runner" || fail "a session stays open in the process"
echo "samples are named $name by the rundown of a real runtime"
exit 0
