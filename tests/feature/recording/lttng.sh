#!/bin/sh
# record --lttng: the events of a second session of LTTng, read by babeltrace2, are those in the recording; no session, folder or process is left.
. "$(dirname "$(realpath "$0")")/../prelude"
for tool in lttng lttng-sessiond babeltrace2 python3; do
	command -v $tool >/dev/null || skip "$tool is not in PATH (Debian: lttng-tools, babeltrace2, python3)"
done
ldconfig -p 2>/dev/null | grep -q 'liblttng-ust\.so\.1' || skip "liblttng-ust.so.1 is not installed (Debian: liblttng-ust1)"
! grep -q '^SPOOR_SANITIZE:[A-Z]*=.' "$(dirname "$spoor")/CMakeCache.txt" || skip "liblttng-ust keeps memory that a sanitizer reports"
# Root's session daemon serves the whole machine: this one has a separate /run.
if [ -z "${SPOOR_TEST_OWN_RUN:-}" ]; then
	is_root || skip "a session daemon of its own needs a mount namespace, and that needs root"
	unshare --mount true 2>/dev/null || skip "no mount namespace can be made here"
	cd / && rm -rf "$scratch"
	SPOOR_TEST_OWN_RUN=yes exec unshare --mount sh "$here/recording/lttng.sh" "$spoor"
fi
mount -t tmpfs none /run || skip "nothing can be mounted on /run"
writer=$(dirname "$spoor")/tests/lib/logger_writer
mkdir home tmp
export HOME="$scratch/home" LTTNG_HOME="$scratch/home" TMPDIR="$scratch/tmp"
start DAEMON lttng-sessiond --no-kernel >daemon.log 2>&1
until_true lttng --no-sessiond list || fail "the session daemon does not answer"
mkfifo input
exec 9<>input
start WRITER sh -c 'exec "$0" lttng <input >rounds' "$writer"
until_true grep -q '^ready' rounds || fail "logger_writer did not start"
lttng_do() {
	lttng --no-sessiond "$@" >>lttng.log 2>&1 || fail "lttng $*: $(tail -n 3 lttng.log)"
}
nothing_left() {
	[ -z "$(ls tmp)" ] && ! lttng --no-sessiond list 2>/dev/null | grep -q 'spoor-'
}

# The same events in two sessions.
lttng_do create peer --output="$scratch/peer"
lttng_do enable-channel -s peer -u c
lttng_do enable-event -s peer -u -c c '*'
lttng_do add-context -s peer -u -c c -t vpid -t vtid
lttng_do start peer
start RECORDER "$spoor" record -p $WRITER -F 10 --lttng 'Types:*,Test_Shop:*' --lttng 'Run_Time:*' -o r.nettrace 2>record.err
written() {
	"$spoor" events r.nettrace --json --event refund 2>/dev/null | awk 'END { exit NR < 50 }'
}
until_true written || fail "no events in the recording: $(cat record.err)"
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
lttng_do destroy peer
has record.err '[0-9] events of LTTng in .*, nothing lost'
until_true nothing_left || fail "left: $(ls tmp) $(lttng --no-sessiond list)"
babeltrace2 --clock-gmt --clock-date peer >peer.text 2>err || fail "babeltrace2 cannot read the trace"
"$spoor" events r.nettrace --json >all 2>err || fail "events: $(cat err)"
count=$(LC_ALL=C.UTF-8 python3 "$here/ctf_compare.py" --part Types,Test_Shop,Run_Time peer.text all 2>&1) || fail "$count"
[ "$count" -ge 300 ] || fail "$count events were compared"
# Another viewer's order: by time, none earlier than the one before.
value all 'select(.provider == ("Types", "Test_Shop", "Run_Time")) | .time' | sort -c || fail "the events are not in order"
"$spoor" events r.nettrace --json --event ClockOffset >clock
json_lines clock 'map(select(.fields.Source == "lttng" and (.fields.OffsetNs | . > -1e9 and . < 1e9))) | length == 1'
"$spoor" events r.nettrace --json --event Session >session.json
json_lines session.json '.[0].fields.Options | fromjson | .lttng == ["Types:*,Test_Shop:*", "Run_Time:*"]'
echo "$count events are those that babeltrace2 has"

# A command, which registers with LTTng while it starts; other programs' events are not in the file.
mkfifo input2
exec 8<>input2
start RECORDER "$spoor" record --lttng '*' -o c.nettrace -- sh -c 'echo $$ >command.pid; exec "$0" lttng <input2 >rounds2' "$writer" 2>record.err
until_true grep -q '^round 20' rounds2 || fail "the events are not enabled: $(cat record.err)"
echo >&8
wait $RECORDER || fail "record: $(cat record.err)"
"$spoor" events c.nettrace --json --event refund >own
json_lines own 'length > 10 and all(.[]; .pid == ($a | tonumber))' "$(cat command.pid)"
until_true nothing_left || fail "left by the command: $(ls tmp)"

# A recorder that is killed.
start RECORDER "$spoor" record -p $WRITER --lttng '*' -o k.nettrace 2>record.err
written_k() {
	"$spoor" events k.nettrace --json --event refund 2>/dev/null | grep -q refund
}
until_true written_k || fail "no events in the recording: $(cat record.err)"
kill -9 $RECORDER
wait $RECORDER 2>/dev/null
until_true nothing_left || fail "left by a killed recorder: $(ls tmp) $(lttng --no-sessiond list)"

# A recorder that is killed while lttng create is at work: what is created after that goes too.
mkdir slow
cat >slow/lttng <<-SH
	#!/bin/sh
	[ "\$1" != create ] || { : >$scratch/creating; sleep 2; }
	PATH=\${PATH#*:} lttng "\$@"
	code=\$?
	[ "\$1" != create ] || : >$scratch/created
	exit \$code
SH
chmod +x slow/lttng
PATH="$scratch/slow:$PATH" start RECORDER "$spoor" record -p $WRITER --lttng '*' -o k.nettrace 2>record.err
until_true [ -e creating ] || fail "no session is created: $(cat record.err)"
kill -9 $RECORDER
wait $RECORDER 2>/dev/null
until_true [ -e created ] || fail "the session was not created"
until_true nothing_left || fail "left by a recorder killed during create: $(ls tmp) $(lttng --no-sessiond list)"

# A session daemon that is stuck: the recorder ends, the folder goes, and the message says what is left.
start RECORDER "$spoor" record -p $WRITER --lttng '*' -o s.nettrace 2>record.err
written_s() {
	"$spoor" events s.nettrace --json --event refund 2>/dev/null | grep -q refund
}
until_true written_s || fail "no events in the recording: $(cat record.err)"
kill -STOP $DAEMON
begin=$(date +%s)
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
[ $(($(date +%s) - begin)) -lt 30 ] || fail "it ended after $(($(date +%s) - begin)) s"
has record.err '^incomplete events of LTTng'
has record.err "^LTTng's session daemon does not answer, and a session may be left; once it answers: lttng destroy spoor-[0-9]+-[A-Za-z0-9]{6}\$"
"$spoor" events s.nettrace --json --event Notice >notices
json_lines notices 'any(.[]; .fields.Code == "lttng" and (.fields.Text | test("has not ended after 5 s")))'
until_true [ -z "$(ls tmp)" ] || fail "left by a stuck daemon: $(ls tmp)"
kill -CONT $DAEMON
sessions_of() {
	lttng --no-sessiond list 2>/dev/null | sed -nE 's/.*(spoor-[0-9]+-[A-Za-z0-9]{6}).*/\1/p'
}
until_true lttng --no-sessiond list || fail "the session daemon does not answer"
for name in $(sessions_of); do
	lttng --no-sessiond destroy "$name" >>lttng.log 2>&1 || :
done
until_true nothing_left || fail "left by a stuck daemon: $(ls tmp) $(lttng --no-sessiond list)"

# The session daemon is killed during a recording: the events before that are in the file, and the recorder says that others may be missing.
start RECORDER "$spoor" record -p $WRITER --lttng '*' -o d.nettrace 2>record.err
written_d() {
	"$spoor" events d.nettrace --json --event refund 2>/dev/null | grep -q refund
}
until_true written_d || fail "no events in the recording: $(cat record.err)"
consumers=$(pgrep -P $DAEMON)
kill -9 $DAEMON $consumers
wait $DAEMON 2>/dev/null
kill -INT $RECORDER && wait $RECORDER || fail "record: $(cat record.err)"
has record.err '^incomplete events of LTTng'
"$spoor" events d.nettrace --json --event Notice >notices
json_lines notices 'any(.[]; .fields.Code == "lttng" and (.fields.Text | test("incomplete")))'
until_true [ -z "$(ls tmp)" ] || fail "left by a killed daemon: $(ls tmp)"
start DAEMON lttng-sessiond --no-kernel >daemon.log 2>&1
until_true lttng --no-sessiond list || fail "the session daemon does not answer"

# Mistakes.
code_of "$spoor" record --lttng -x -p $WRITER -o m.nettrace
expect_code 1 "a name with a hyphen"
has err "^'-x' is no name of an event of LTTng"
mkdir empty
code_of env PATH="$scratch/empty" "$spoor" record --lttng x -p $WRITER -o m.nettrace
expect_code 1 "no program lttng"
has err "^cannot record events of LTTng: there is no program 'lttng'"
has err 'lttng-tools'
[ ! -e m.nettrace ] || fail "a recording that was not begun"
until_true nothing_left || fail "left by a mistake: $(ls tmp)"
echo >&9
exit 0
