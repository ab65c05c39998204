#!/bin/sh
# spoor doctor reports what .NET programs and this machine allow.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

# row NAME MEMBER: prints a member of one row.
row() {
	value out ".capabilities[] | select(.name == \$a) | .$2" "$1"
}

answer() {
	row "$1" answer
}

# A process without diagnostics is named, with the variable. Dumps and snapshots of it are not available.
DOTNET_EnableDiagnostics=0 dotnet "$app" idle 100000 >ready.off &
off=$!
started="$started $off"
until_true grep -q ready ready.off || fail "the program does not start"
code_of "$spoor" doctor --json
expect_code 0 "doctor"
[ "$(answer dotnet_diagnostics)" = part ] || fail "diagnostics that are switched off are not reported"
row dotnet_diagnostics reason >reason
has reason '^switched off in [0-9]+ process(es)?: [0-9]+ has DOTNET_EnableDiagnostics=0$'
# part: other .NET processes have a socket
case $(answer dotnet_heap) in
part | no) ;;
*) fail "a process without a socket: heap snapshots are '$(answer dotnet_heap)'" ;;
esac
kill -9 $off
wait $off 2>/dev/null

# What --io needs is tried. The answer is that of a recording.
code_of "$spoor" doctor --json
io=$(answer io_calls)
code_of "$spoor" record --io -q -o io.nettrace -- true
expect_code 0 "record --io"
"$spoor" report io.nettrace --io >io.report 2>&1
if [ "$io" = yes ]; then
	has io.report ' calls for input and output in '
else
	has_no io.report ' calls for input and output in '
	row io_calls reason >reason
	[ -s reason ] || fail "there is no reason why --io cannot be used"
fi

# A folder for sockets that does not exist, that has too long a path, and a good one.
TMPDIR=$scratch/none code_of "$spoor" doctor --json
[ "$(answer dotnet_socket_folder)" = no ] || fail "a TMPDIR that is not there"
long=$scratch/$(printf '%080d' 0)
mkdir "$long"
TMPDIR=$long code_of "$spoor" doctor --json
[ "$(answer dotnet_socket_folder)" = part ] || fail "a TMPDIR with too long a path"
TMPDIR=$scratch code_of "$spoor" doctor --json
[ "$(answer dotnet_socket_folder)" = yes ] || fail "a TMPDIR that will do"

# The LTTng library is the one that a runtime's provider is linked to.
provider=$(ls "$(dirname "$(realpath "$(command -v dotnet)")")"/shared/Microsoft.NETCore.App/*/libcoreclrtraceptprovider.so 2>/dev/null | tail -n 1)
if [ -n "$provider" ] && command -v readelf >/dev/null; then
	begin one idle 100000
	code_of "$spoor" doctor --json
	needed=$(readelf -d "$provider" | sed -n 's/.*(NEEDED).*\[\(liblttng-ust\.so\.[0-9]*\)\].*/\1/p')
	row dotnet_lttng reason >reason
	[ "$(answer dotnet_lttng)" = yes ] || has reason "linked to $needed,"
	kill -9 $one
else
	echo "the LTTng provider was not looked at: no readelf, or a runtime without it"
fi

# A control group that can be frozen, with spoor and its guard in it, is named.
freezer=''
for place in /sys/fs/cgroup/freezer /sys/fs/cgroup; do
	[ -e $place/cgroup.procs ] && mkdir "$place/spoor_test_$$" 2>/dev/null && freezer=$place/spoor_test_$$ && break
done
if [ -n "$freezer" ]; then
	begin outside idle 100000
	sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$freezer" "$spoor" doctor --json >out 2>err
	code=$?
	kill -9 $outside
	until_true rmdir "$freezer"
	expect_code 0 "doctor in a group that can be frozen"
	row dotnet_guard reason >reason
	has reason "^unless the control group '[^']*spoor_test_$$' is frozen: a .NET process outside of it \([1-9]"
else
	echo "no control group can be made here: freezing was not tried"
fi

# Another user does not have the rights for other users' processes.
if is_root && command -v setpriv >/dev/null; then
	code_of setpriv --reuid 65534 --regid 65534 --clear-groups "$spoor" doctor --json
	expect_code 0 "another user"
	[ "$(answer dotnet_others)" = part ] || fail "another user sees all processes"
	row dotnet_others reason >reason
	has reason '^of this user only: CAP_SYS_PTRACE .* and CAP_DAC_OVERRIDE .* are missing$'
else
	echo "another user was not tried: not root, or no setpriv"
fi
