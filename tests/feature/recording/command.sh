#!/bin/sh
# spoor record -- COMMAND returns the command's exit code and output, records its children, ends at the time limit, and names the recording.
. "$(dirname "$(realpath "$0")")/../prelude"

for want in 0 7; do
	code_of "$spoor" record -q -o x.nettrace -- sh -c "echo to stdout; echo to stderr >&2; exit $want"
	expect_code $want "sh -c 'exit $want'"
	has out '^to stdout$'
	has err '^to stderr$'
	[ "$(cat out err | grep -cvE 'perf_event_paranoid|spoor doctor')" = 2 ] || fail "-q prints more than the command's output and missing rights"
	code_of "$spoor" report x.nettrace
	expect_code 0 "report of a command's recording"
done
# shellcheck disable=SC2016 # $$ is of the inner shell
code_of "$spoor" record -q -o x.nettrace -- sh -c 'kill -TERM $$'
expect_code 143 "a command that SIGTERM ended"
# shellcheck disable=SC2016
code_of "$spoor" record -q -o x.nettrace -- sh -c 'kill -KILL $$'
expect_code 137 "a command that SIGKILL ended"

rm -f x.nettrace
code_of "$spoor" record -q -o x.nettrace -- ./none
expect_code 127 "a command that is not there"
has err "^cannot run './none': No such file or directory\.\$"
[ ! -e x.nettrace ] || fail "a file is left where nothing was recorded"
: >plain
code_of "$spoor" record -q -o x.nettrace -- ./plain
expect_code 126 "a command that may not be run"
has err "^cannot run './plain': Permission denied\.\$"

# Fork and exec: all processes are recorded, each under its name.
cp "$target" p0
cp "$target" p1
code_of "$spoor" record -q -F 499 -o x.nettrace -- sh -c './p0 spin 300 & ./p1 spin 300; wait'
expect_code 0 "a command that forks and execs"
folded x.nettrace x.folded
has x.folded '^p0;.*;spin_0 '
has x.folded '^p1;.*;spin_1 '
has_no x.folded '^p1;.*;spin_0|^p0;.*;spin_1'

# exec without fork. The new program has spin_3() at the address where the old one had spin_0().
cp "${target}_reversed" p3
code_of "$spoor" record -q -F 499 -o x.nettrace -- "${target}_fixed" overlay ./p3 300
expect_code 0 "a command that execs"
folded x.nettrace x.folded
for life in 'target_fixed;.*;spin_0' 'p3;.*;spin_3'; do
	samples=$(frames x.folded "^$life[; ]")
	[ "$samples" -ge 50 ] || fail "of about 150 samples $life has $samples"
done
has_no x.folded '^target_fixed.*spin_3|^p3.*spin_0'

# Children with less CPU time than a sampling period. Where the CPUs may be sampled, their sum is right.
if is_root; then
	cat >burner <<-'END'
		"$@"
		times >times
		tail -n 1 times
	END
	code_of "$spoor" record -q -o x.nettrace -- sh burner "$target" churn 400 1 "$target"
	expect_code 0 "a command with short children"
	used_ms=$(tail -n 1 out | awk '{ split($1, u, /[ms]/); split($2, s, /[ms]/); print int(60000 * (u[1] + s[1]) + 1000 * (u[2] + s[2])) }')
	code_of "$spoor" report --json x.nettrace
	expect_code 0 "report of short children"
	sampled_ms=$(($(value out .cpu_ns) / 1000000))
	# 400 children of 3 ms are more than 100 samples, so the error is far below one half.
	[ "$used_ms" -gt 200 ] || fail "the children have computed for $used_ms ms only"
	[ $sampled_ms -gt $((used_ms / 2)) ] || fail "of $used_ms ms that the children have computed $sampled_ms ms are sampled"
	json out 'all(.processes[]; .name != "spoor")'
fi

# The time limit ends the recording. The command continues, and spoor returns its exit code.
code_of timeout 200 "$spoor" record --duration 2s -o x.nettrace -- sh -c "'$target' spin 4000; echo done; exit 5"
expect_code 5 "a command that outlives the time limit"
has out '^done$'
has err "'sh' \([0-9]+\) keeps running; Ctrl-C ends it"
code_of "$spoor" report --json x.nettrace
json out '.recording.end_reason == "the time was up"'
json out 'any(.processes[].functions[]; .name == "spin_here")'

# With the recording on standard output, messages go to standard error.
"$spoor" record -F 499 -o - -- "$target" spin 400 2>err | "$spoor" report --json - >out || fail "record -o - into report -"
json out 'any(.processes[].functions[]; .name == "spin_here")'
has err '^standard output +[0-9]'

# The name of the file without -o.
code_of "$spoor" record -- "$target" spin 50
expect_code 0 "a recording without -o"
set -- *_????????_??????.nettrace
[ "$1" = "$(echo target_[0-9]*_[0-9]*.nettrace)" ] || fail "the name is '$1'"
[ "$(stat -c %a "$1")" = 600 ] || fail "the recording is not private to its owner"
code_of "$spoor" report
expect_code 0 "report of the newest recording"
