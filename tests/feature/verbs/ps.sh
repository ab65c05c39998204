#!/bin/sh
# spoor ps shows kind, runtime and container of real programs, and why one is not reachable. The selection of processes is that of all verbs.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# line PID: its line of the last table.
line() {
	grep -E "^ *$1 " out
}

ps_of() {
	code_of "$spoor" ps "$@"
	expect_code 0 "ps $*"
}

# Started as `dotnet App.dll`, and as a separate executable.
begin framework idle 600000
program managed-own
host=$program
: >ready.own
DOTNET_ROOT=$(dirname "$(realpath "$(command -v dotnet)")") start own "$host" idle 600000 >ready.own
until_true grep -q ready ready.own || fail "the executable does not start"
ps_of -p "$framework,$own"
line $framework >one
has one ' framework-dependent +10\.[0-9.]+ '
has one ' Managed +.* dotnet Managed\.dll idle 600000$' # its name, and its command without folders
line $own >one
has one ' apphost +10\.[0-9.]+ +(x64|arm64) '
has one 'idle 600000$'
has_no out 'not reachable'
ps_of -p $framework --long
has out 'dotnet /.*/Managed\.dll idle 600000$'
# A small terminal gets fewer columns, and every row fits.
if command -v script >/dev/null; then
	script -qec "stty cols 80; $spoor ps -p $framework,$own" /dev/null </dev/null | tr -d '\r' | sed 's/\xe2\x80\xa6/~/g' >out
	has out ' Managed +.* dotnet .*600000'
	has_no out '^ *[0-9].{80}'
fi
ps_of -n Managed
line $framework >/dev/null && line $own >/dev/null || fail "-n Managed does not find both"
start sleeper sleep 60
until_true grep -q sleep /proc/$sleeper/comm || fail "no sleep"
ps_of -a -p $sleeper -n sleep
has out "^ *$sleeper .* - +- .* sleep 60$"
has_no out 'not reachable'

# Packed into one file (managed_places.sh makes it too).
single=$("$top/scripts/test-programs" managed-single) || single=''
if [ -x "$single" ]; then
	: >ready.single
	start packed "$single" idle 600002 >ready.single
	until_true grep -q ready ready.single || fail "the single file does not start"
	ps_of -p $packed
	has out ' single-file +10\.[0-9.]+ '
	has_no out 'not reachable'
	kill -9 $packed
	# Without its JIT memory's name only what it exports tells.
	: >ready.single
	DOTNET_EnableWriteXorExecute=0 start packed "$single" idle 600002 >ready.single
	until_true grep -q ready ready.single || fail "the single file does not start"
	ps_of -n Managed
	line $packed >one
	has one ' single-file +10\.[0-9.]+ '
	kill -9 $packed
else
	echo "no single-file program: its runtime pack could not be fetched"
fi

# JSON has the same.
ps_of -p $framework --json
json out '.processes[0] | .kind == "framework-dependent" and .reachable'
json out '.processes[0] | (.command_line | test("^dotnet /.*/Managed.dll idle 600000$")) and (.runtime_version | test("^10\\.")) and (.architecture | test("^(x64|arm64)$"))'

# The process tree of this script has both programs and no others.
ps_of --tree $$
[ "$(grep -c idle out)" = 2 ] || fail "the tree has $(grep -c idle out) programs, not 2"
ps_of --tree $own
[ "$(grep -c idle out)" = 1 ] || fail "the tree of one has not just it"

# Diagnostics switched off, and a program stopped by a signal: the reason and a remedy.
export DOTNET_EnableDiagnostics=0
begin off idle 600000
unset DOTNET_EnableDiagnostics
ps_of -p $off
has out 'not reachable: its diagnostics are switched off \(DOTNET_EnableDiagnostics=0\); spoor record -p'
has out ' framework-dependent +10\.'
kill -STOP $own
until_true grep -q '^State:.T' /proc/$own/status || fail "the program does not stop"
ps_of -p $own
has out "not reachable: it is stopped .*; kill -CONT $own"
kill -CONT $own

# A temporary folder that does not exist, and one with too long a name for a socket.
TMPDIR=/no/such/folder begin homeless idle 600000
ps_of -p $homeless
has out "not reachable: cannot open its temporary directory '/no/such/folder/'"
long=$scratch/$(printf 'd%.0s' $(seq 100))
mkdir "$long"
TMPDIR=$long begin longwinded idle 600000
ps_of -p $longwinded
has out 'not reachable: its TMPDIR is too long'
kill -9 $off $homeless $longwinded

# A socket that accepts connections and does not answer.
cat >mute.py <<'PY'
import os, socket, sys, time
start = open('/proc/self/stat').read().rsplit(')', 1)[1].split()[19]
s = socket.socket(socket.AF_UNIX)
s.bind('%s/dotnet-diagnostic-%d-%s-socket' % (os.environ.get('TMPDIR', '/tmp'), os.getpid(), start))
s.listen(8)
import mmap
fd = os.memfd_create('doublemapper')
os.ftruncate(fd, 4096)
m = mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)
print('ready', flush=True)
time.sleep(600)
PY
if command -v python3 >/dev/null; then
	: >ready.mute
	TMPDIR=$scratch start mute python3 mute.py >ready.mute
	until_true grep -q ready ready.mute || fail "the mute peer does not start"
	before=$(date +%s)
	ps_of -p $mute
	[ $(($(date +%s) - before)) -le 60 ] || fail "ps waits for a process that does not answer"
	has out 'single-file +\? .*not reachable: it takes connections, but does not answer'
fi

# A container that does not exist.
code_of "$spoor" ps --container "no-such-thing"
expect_code 1 "a container that is not there"
has err "no .NET process runs in a container 'no-such-thing'"

# In a container: another pid namespace, other mounts, another host name.
if is_root && unshare --pid --mount --uts --fork true 2>/dev/null; then
	: >ready.inside
	# Its environment has another host name.
	start outer unshare --pid --mount --uts --fork --kill-child --mount-proc sh -c "echo pod-of-ours-$$ >/proc/sys/kernel/hostname; mount -t tmpfs none /tmp; unset TMPDIR
		HOSTNAME=of-the-host dotnet '$app' idle 600000" >ready.inside
	until_true grep -q ready ready.inside || fail "the program in a container does not start"
	ps_of --pod "pod-of-ours-$$"
	has out '^ *[0-9]+ +[0-9]+ .* framework-dependent +10\.'
	has_no out 'not reachable'
	inner=$(awk 'NR == 2 { print $2 }' out)
	[ "$inner" -lt 20 ] || fail "inner pid $inner"
	ps_of --pod of-the-host
	has out '^ *[0-9]+ +[0-9]+ .* framework-dependent +10\.'
	ps_of --container "pod-of-ours-$$"
	[ "$(grep -c idle out)" = 1 ] || fail "by container: $(grep -c idle out) programs"

	# From inside the container it is the only process.
	pid=$(awk 'NR == 2 { print $1 }' out)
	nsenter --target "$pid" --pid --mount --root "$spoor" ps >out 2>err || fail "ps within"
	has out "^ *$inner +- .* framework-dependent"
	[ "$(wc -l <out)" = 2 ] || fail "ps within sees more than its own"

	# A read-only root without a folder for sockets has another reason than diagnostics that are switched off.
	: >ready.sealed
	start sealed unshare --mount sh -c "mount -t tmpfs none /mnt; mount -o remount,ro /mnt; mount --bind /mnt /tmp; unset TMPDIR; exec dotnet '$app' idle 600000" >ready.sealed
	ready_or_ended() { grep -q ready ready.sealed || ended_process $sealed; }
	until_true ready_or_ended
	if grep -q ready ready.sealed; then
		ps_of -p $sealed
		has out "not reachable: its temporary directory '/tmp/' is read-only, so it has no diagnostics socket"
		kill -9 $sealed
	else
		echo "no .NET program runs with a read-only /tmp here"
	fi
else
	echo "no namespaces of our own: containers are not tried"
fi

# As another user without the right to look into it.
if is_root && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
	chmod 755 "$scratch"
	cp "$spoor" "$scratch/spoor" && chmod 755 "$scratch/spoor"
	setpriv --reuid nobody --clear-groups "$scratch/spoor" ps -p $framework >out 2>err || fail "ps as nobody"
	has out "not reachable: another user owns it; sudo spoor ps -p $framework"
	has out ' \? +\? '
	# For a native program there is no message about missing rights.
	code=0
	setpriv --reuid nobody --clear-groups "$scratch/spoor" stacks -p $sleeper >out 2>err || code=$?
	[ $code = 1 ] || fail "stacks of a native program as nobody: $code, not 1"
	has out 'it is no .NET process, by the names of its threads'
	has_no err 'sudo'
	# A native program of another user, with the socket of an earlier .NET process of that id, is no .NET process.
	left=/tmp/dotnet-diagnostic-$sleeper-1-socket
	TMPDIR=/tmp begin earlier idle 600000
	kill -9 $earlier
	mv /tmp/dotnet-diagnostic-$earlier-* "$left"
	setpriv --reuid nobody --clear-groups "$scratch/spoor" ps >out 2>err || fail "ps as nobody, all"
	setpriv --reuid nobody --clear-groups "$scratch/spoor" doctor >doctor.out 2>err || fail "doctor as nobody"
	rm -f "$left"
	has out "^ *$framework "
	has_no out "^ *$sleeper "
	has doctor.out 'no .NET process runs now that this user may look into; [0-9]+ processes may not be looked into, [0-9]+ of them .NET by '
fi

for each in $framework $own; do
	kill -0 $each || fail "a program that was only looked at is gone"
done
exit 0
