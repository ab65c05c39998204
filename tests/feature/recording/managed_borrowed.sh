#!/bin/sh
# With a spoor that has file capabilities, a user can record names and stacks of root's processes, but cannot make them act or read their data.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

is_root || skip "only root can give file capabilities"
command -v setpriv >/dev/null || skip "no setpriv here"
command -v setcap >/dev/null || skip "no setcap here (libcap2-bin)"
# Its leak check traces the program, which a program with file capabilities does not allow.
is_sanitized && skip "a sanitizer's build is not run with file capabilities"
chmod 755 .
cp "$spoor" capable && chgrp 65534 capable && chmod 750 capable
setcap cap_perfmon,cap_bpf,cap_syslog,cap_sys_ptrace,cap_dac_override,cap_dac_read_search,cap_ipc_lock,cap_checkpoint_restore=p capable 2>err ||
	skip "file capabilities cannot be set in $scratch: $(cat err)"
# Through a shell, because setpriv itself has the right to execute any program.
nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all sh -c 'exec timeout 250 "$@"' sh "$@"
}
nobody ./capable --version >out 2>err || skip "a program with file capabilities does not run here: $(head -n 1 err)"
mkdir own && chown 65534:65534 own
mkdir secret && chmod 700 secret
echo before >secret/file && chmod 600 secret/file

SPOOR_TEST_SECRET=xyzzy begin burner work 600000
kill -0 $burner || fail "no program"

# Events of the runtime. Spoor's own events of freed methods are names, and are not counted.
runtime_event='  (Microsoft-Windows-DotNETRuntime +([^ M]|M[^e])|System\.Runtime )'
refused() {
	expect_code 3 "$1"
	has err 'belongs to another user'
	has err 'sudo'
	has_no out xyzzy
}
for path in "$PWD/secret/file" "$PWD/secret/new.core" /etc/cron.d/spoor_test_new; do
	code_of nobody ./capable dump -p $burner --type mini -o "$path"
	expect_code 3 "dump to $path"
	has err 'sudo'
done
[ "$(cat secret/file)" = before ] || fail "a file of root's was overwritten"
[ ! -e secret/new.core ] && [ ! -e /etc/cron.d/spoor_test_new ] || fail "a file was made as root"
code_of nobody ./capable env -p $burner
refused "env"
has_no out .
code_of nobody ./capable env -n Managed --json
refused "env by name"
code_of nobody ./capable perfmap on -p $burner
refused "perfmap on"
[ ! -e "/tmp/perf-$burner.map" ] || fail "a perf map was made"
code_of nobody ./capable heap -p $burner -o own/x.gcdump
refused "heap"
[ ! -e own/x.gcdump ] || fail "a snapshot was made"
code_of nobody ./capable trace -p $burner --duration 1s -o own/x.nettrace
refused "trace"
[ ! -e own/x.nettrace ] || fail "a trace is left"
code_of nobody ./capable counters -p $burner --count 1
refused "counters"
# the newest: an earlier process of that number may have left one
socket=$(ls -t "${TMPDIR:-/tmp}/dotnet-diagnostic-$burner-"* | head -n 1)
code_of nobody ./capable trace --diagnostic-port "$socket,connect" --duration 1s -o own/x.nettrace
[ $code = 3 ] || fail "root's socket was reached by its path"
code_of nobody ./capable trace --diagnostic-port "$PWD/secret/port" --duration 1s -o own/x.nettrace
[ $code != 0 ] && [ ! -e secret/port ] || fail "a socket was made in root's folder"
code_of nobody ./capable recover -p $burner -o own/x.nettrace
expect_code 3 "recover"

# Names and stacks are shown; events, locks and files are left out.
code_of nobody ./capable stacks -p $burner --json --timeout 60s
expect_code 0 "stacks"
json out 'any(.stacks[].frames[]; .name | test("Worker.Run"))'
json out '.values_withheld and all(.stacks[].threads[]; .waits_at == "")'
has err 'locks and files that 1 process of other users waits at were left out'
[ "$(grep -c 'left out' err)" = 1 ] || fail "the message is printed more than once"
for seconds in 2 6 20; do
	code_of nobody ./capable record -F 499 -p $burner --duration ${seconds}s --providers Microsoft-Windows-DotNETRuntime:0xffffffffffff:4,System.Runtime:0xff:5 -o own/x.nettrace
	expect_code 0 "record"
	"$spoor" flame own/x.nettrace -f folded -o - >own/x.folded || fail "flame"
	[ "$(frames own/x.folded 'Worker\.Run')" -lt 20 ] || break
done
has err '^the events of 1 \.NET process of other users were left out'
[ "$(grep -c 'left out' err)" = 1 ] || fail "the message is printed more than once"
folded own/x.nettrace own/x.folded
at_least own/x.folded 20 'Worker\.Run'
"$spoor" events --summary own/x.nettrace >out 2>err || fail "events"
has_no out "$runtime_event"
"$spoor" report own/x.nettrace >out 2>err
has out 'events of 1 \.NET process of other users were left out'
"$spoor" record -q -p $burner --duration 4s --providers Microsoft-Windows-DotNETRuntime:0xffffffffffff:4 -o root.nettrace || fail "recording as root"
"$spoor" events --summary root.nettrace >out 2>err
has out "$runtime_event"

# A process of the caller's own has no limits.
chmod 755 . && mkdir theirs && cp "$(dirname "$app")"/Managed.* theirs/ && chmod -R a+rX theirs
if setpriv --reuid=65534 --regid=65534 --clear-groups dotnet "$scratch/theirs/Managed.dll" burn 1 >out 2>&1; then
	: >ready.theirs
	SPOOR_TEST_SECRET=mine start theirs setpriv --reuid=65534 --regid=65534 --clear-groups dotnet "$scratch/theirs/Managed.dll" work 600000 >ready.theirs
	until_true grep -q ready ready.theirs || fail "the program of another user does not start"
	code_of nobody ./capable env -p $theirs SPOOR_TEST_SECRET
	expect_code 0 "env of the caller's process"
	has out '^SPOOR_TEST_SECRET=mine$'
	code_of nobody ./capable dump -p $theirs --type mini -o "$PWD/own/mine.core"
	expect_code 0 "dump of the caller's process"
	[ -s own/mine.core ] || fail "no dump of the caller's process"
	code_of nobody ./capable trace -p $theirs --duration 3s -o own/mine.nettrace
	expect_code 0 "trace of the caller's process"
	code_of nobody ./capable record -F 499 -p $theirs,$burner --duration 4s --providers Microsoft-Windows-DotNETRuntime:0xffffffffffff:4 -o own/y.nettrace
	expect_code 0 "record of both"
	has err '^the events of 1 \.NET process of other users were left out'
	"$spoor" events --summary own/y.nettrace >out 2>err || fail "events of both"
	has out "$runtime_event"
	code_of nobody ./capable stacks -p $theirs --json --timeout 60s
	json out '.values_withheld == false'
	# The caller chooses TMPDIR of this process. The answers do not show what exists in a folder that is closed to the caller.
	mkdir secret/folder
	for place in folder none file; do
		: >"ready.$place"
		TMPDIR=$PWD/secret/$place start hidden setpriv --reuid=65534 --regid=65534 --clear-groups dotnet "$scratch/theirs/Managed.dll" work 600000 >"ready.$place"
		until_true grep -q ready "ready.$place" || fail "the program of another user does not start"
		code_of nobody ./capable ps -p "$hidden" --json
		value out '.processes[0].reason' >"answer.$place"
		grep -q . "answer.$place" || fail "ps gives no reason"
		code_of nobody ./capable env -p "$hidden"
		sed "s/$hidden/PID/g" err >>"answer.$place"
		has_no err 'belongs to another user'
		kill "$hidden"
	done
	for place in none file; do
		cmp -s answer.folder answer.$place || fail "the answers show what exists: $(diff answer.folder answer.$place)"
	done
else
	echo "another user cannot run dotnet here: a process of the caller was not tested"
fi

# Without any rights the same verbs fail with the same exit code.
cp "$spoor" plain && chmod 755 plain
for verb in "dump -o $PWD/own/z.core" env "perfmap on" heap "trace --duration 1s -o own/z.nettrace" "counters --count 1" stacks \
	"recover -o own/z.nettrace"; do
	# shellcheck disable=SC2086
	code_of nobody ./plain $verb -p $burner
	expect_code 3 "$verb without rights"
done

# The program is not traceable by its user, even if its parent had these capabilities.
setpriv --reuid=65534 --regid=65534 --clear-groups ./capable record -p $burner --duration 600s -q -o own/y.nettrace &
holder=$!
started="$started $holder"
until_true pgrep -P $holder -x spoor-guard >/dev/null || fail "no guard"
for one in $holder $(pgrep -P $holder -x spoor-guard); do
	[ "$(stat -c %u "/proc/$one/fd")" = 0 ] || fail "process $one can be traced by its user"
done
kill $holder
wait $holder
kill -0 $burner || fail "the program has ended"
exit 0
