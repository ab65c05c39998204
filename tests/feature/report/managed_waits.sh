#!/bin/sh
# report --off-cpu names the waits of .NET threads by what their code waits for, and puts the runtime's idle threads apart, as do report --waits and --locks and flame --off-cpu.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"
is_root || skip "not root: context switches have no stacks"

# Methods of a higher tier have others inlined, for example Monitor.Wait: the names of its callers only. A busy machine may record them only.
export DOTNET_TC_CallCounting=0
begin waits waits 600000
# The thread, the cause, and the method that waits.
cat >expected <<'END'
nap sleep Thread\.Sleep
enter lock Monitor\.Enter
pulsed event Monitor\.Wait
slim event SemaphoreSlim\.Wait
semaphore event WaitHandle\.WaitOne
happened event ManualResetEventSlim\.Wait
readers lock ReaderWriterLockSlim\.(EnterReadLock|TryEnterReadLock)
take event SemaphoreSlim\.Wait
channel task Task\.(Wait|InternalWait)
task task Task\.(Wait|InternalWait)
result task Task.*(get_Result|GetResultCore)
now task Task.*(InternalWait|HandleNonSuccess|GetResult)
receive network Socket\.Receive
pipe pipe PipeStream\.Read
join event Thread\.Join
END

# named: each thread's longest wait is the expected one. On a busy machine a thread may not have waited often enough for its names.
named() {
	while read -r thread cause method; do
		value report.json '[.processes[].waits[] | select(.thread == $a and .cause == $b)] | length > 0 and any(.waits_for // "" | test($c))' "$thread" "$cause" "$method" | grep -q true ||
			{ echo "$thread: $(value report.json '[.processes[].waits[] | select(.thread == $a)] | max_by(.blocked_ns) | [.cause, .waits_for, .where, .stack]' "$thread")" >unnamed && return 1; }
	done <expected
}
for seconds in 3 10 30; do
	code_of timeout 250 "$spoor" record --off-cpu --wakers --call-graph auto -p $waits --no-events --duration ${seconds}s -o waits.nettrace
	expect_code 0 "recording"
	"$spoor" report waits.nettrace --off-cpu --json >report.json 2>err || fail "no report"
	! named || break
done
named || fail "a wait is not named: $(cat unnamed)"

# Idle threads: of the runtime, and marked.
json report.json '[.processes[].waits[] | select(.thread | startswith(".NET ") and (startswith(".NET TP") | not)) | .idle] | length > 2 and all'
json report.json '[.processes[].waits[] | select(.idle) | .thread] | all(startswith(".NET "))'
# At most a hundredth has no cause; threads that waited since before the recording have a cause of their own.
json report.json '[.processes[].waits[] | {c: .cause, n: .blocked_ns}] | (map(select(.c == "unknown").n) | add // 0) * 100 <= (map(.n) | add)'
"$spoor" report waits.nettrace --off-cpu >out 2>err || fail "no report"
has out 'of which .* are of idle threads'
has out 'in Waiting\.Receive\(\)'
"$spoor" flame waits.nettrace --off-cpu -o - --format folded >out 2>err || fail "no flame graph"
has out '^[^;]*;\[idle\] [0-9]+$'
has out ';Waiting\.Enter\(\);.*;\[lock\] [0-9]+$'
has_no out 'TimerQueue\.TimerThread'
"$spoor" report waits.nettrace --locks --json >out 2>err || fail "no waits for locks"
json out '[.processes[].waits[]] | any(.method == "Waiting.Enter()" and .kind == "lock") and all(.kind == "lock")'
"$spoor" report waits.nettrace --waits --json >out 2>err || fail "no waits"
json out '[.processes[].waits[]] | any(.method == "Waiting.Take()" and .kind == "event") and any(.kind == "task") and all(.kind != "lock")'
# diagnose knows by them that threads wait for locks, although no events of locks were recorded; one of the two is held nearly all the time.
code_of "$spoor" diagnose waits.nettrace
has out 'lock-contention: threads wait for a lock'
has out 'Most wait in Waiting\.(Enter|EnterRead)\.'

# Without managed frames at the block, a thread of the program is not called idle because a thread of the runtime waits at the same place.
code_of timeout 250 "$spoor" record --off-cpu --call-graph fp -p $waits --no-events --duration 3s -o plain.nettrace
expect_code 0 "recording by frame pointers"
"$spoor" report plain.nettrace --off-cpu --json >report.json 2>err || fail "no report"
json report.json '[.processes[].waits[] | select(.cause == "futex")] | any(.idle) and any(.idle | not)'
"$spoor" report plain.nettrace --off-cpu >out 2>err || fail "no report"
has out '^ +[0-9.]+ m?s +.* futex(:|$)'
