#!/bin/sh
# record -a follows CPUs that come and go, with context switches and stack copies: it has their samples, says so, and keeps the thread's time. The list of CPUs is a file that this test
# writes, which hides the kernel's in a mount namespace of its own: a CPU that really went would be missing for all other programs.
. "$(dirname "$(realpath "$0")")/../prelude"
list=/sys/devices/system/cpu/online
is_root || skip "not root: the list of CPUs cannot be replaced"
unshare -m true 2>/dev/null || skip "no mount namespaces here"
[ "$(cat $list)" != 0 ] || skip "there is one CPU"
command -v taskset >/dev/null || skip "there is no taskset"
last=$(sed 's/.*[-,]//' $list)
taskset -c "$last" true 2>/dev/null || skip "CPU $last cannot be used here"

# online LIST: changes the list in one write of a fixed length. The recorder must not find the file while it is empty, and it is mounted, so it cannot be replaced.
online() {
	printf '%s\n%*s' "$1" $((16 - ${#1})) '' | tr ' ' '\n' 1<>online
}
: >online
online 0
start load taskset -c "$last" "$target" spin 100000000
start recorder unshare -m sh -c 'mount --bind online "$1" && shift && exec "$@"' sh $list "$spoor" record -q -a -F 199 --off-cpu --call-graph dwarf --no-dotnet --no-symbols -o x.nettrace

# changed COUNT: so many changes of CPUs are recorded.
changed() {
	"$spoor" events x.nettrace --event CpuState --json >cpus.json 2>err && [ "$(value_lines cpus.json length)" -ge "$1" ]
}
# busy_since TIME: the program on that CPU was sampled later than this.
busy_since() {
	"$spoor" events x.nettrace --event cpu --json >samples.json 2>err &&
		[ "$(value_lines samples.json 'any(.cpu == ($a | tonumber) and .pid == ($b | tonumber) and .time > $c)' "$last" "$load" "$1")" = true ]
}
utc_now() {
	date -u +%Y-%m-%dT%H:%M:%S.%NZ
}

until_true "$spoor" report x.nettrace || fail "no recording"
online "0,$last"
until_true changed 1 || fail "the CPU that came is not noticed"
until_true busy_since 2000 || fail "the CPU that came has no samples"
online 0
until_true changed 2 || fail "the CPU that went is not noticed"
online "0,$last"
until_true changed 3 || fail "the CPU that came back is not noticed"
until_true busy_since "$(utc_now)" || fail "the CPU that came back has no samples"
kill -INT "$recorder"
wait "$recorder" || fail "the recording failed"
json_lines cpus.json 'map([.fields.Cpu, .fields.Online]) == [[($a | tonumber), 1], [($a | tonumber), 0], [($a | tonumber), 1]]' "$last"
"$spoor" report x.nettrace >out 2>err || fail "no report"
has out "CPU $last came online"
# Of the program alone: the CPU that is said to be away runs on here, unseen, so that threads that moved there are not exact.
"$spoor" report x.nettrace --thread-time --json -p "$load" >times.json 2>err || fail "no thread time"
json times.json '[.processes[].threads[]] | length == 1 and all(.wall_ns == .on_cpu_ns + .runnable_ns + .blocked_ns)'
