#!/bin/sh
# ps, trace, heap and stacks find and query a program in a container, from the host, from a sidecar and from inside, for users with the rights.
# The containers are namespaces made here and by runc; the users are root, the program's user, and one without the right.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

is_root || skip "namespaces and other users need root"
unshare -pfm --mount-proc true 2>/dev/null || skip "no namespaces can be made here"
chmod 755 . && mkdir app && cp "$(dirname "$app")"/Managed.* app/ && chmod -R a+rX app
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
stranger='setpriv --reuid=65533 --regid=65533 --clear-groups'
cp "$spoor" spoor && chmod 755 spoor # where those can reach it
not_here=''
parks='any(.stacks[].frames[]; .name == "Posed.Park()" and .module == "Managed")'

# pid_of NUMBER: prints the process with this last argument, by its id in this namespace.
pid_of() {
	for each in /proc/[0-9]*; do
		{ tr '\0' ' ' <"$each/cmdline"; } 2>/dev/null | grep -q "^dotnet .*Managed.dll threads $1 " && echo "${each#/proc/}"
	done
}

# box NUMBER OPTION...: starts the program in a pid and mount namespace with its own /tmp and more OPTIONs of unshare. Sets $inside to its id here, $inner to its id there.
box() {
	number=$1 && shift
	: >"ready.$number"
	start "box$number" unshare -pfm --mount-proc --kill-child "$@" sh -c "mount -t tmpfs -o mode=1777 none /mnt && mkdir -m 1777 /mnt/tmp && mkdir /mnt/app && cp '$scratch'/app/* '$scratch/spoor' /mnt/app &&
		mount --bind /mnt/tmp /tmp && cd / && HOME=/tmp exec $as dotnet /mnt/app/Managed.dll threads $number" >"ready.$number" 2>"err.$number"
	until_true grep -q posed "ready.$number" || fail "the program in a container does not start: $(cat "err.$number")"
	inside=$(pid_of "$number")
	[ -n "$inside" ] || fail "the program in a container is not found"
	started="$started $inside"
	inner=$(awk '$1 == "NSpid:" { print $NF }' "/proc/$inside/status")
	[ "$inner" != "$inside" ] || fail "the program is not in a separate pid namespace"
}

# all_verbs WHAT [PREFIX...]: each verb finds the program, queries it, and prints the ids of this namespace.
all_verbs() {
	what=$1 && shift
	code_of "$@" ./spoor ps --json -p "$inside"
	expect_code 0 "ps, $what"
	json out '.processes[0] | .pid == ($a | tonumber) and .inner_pid == ($b | tonumber)' "$inside" "$inner"
	json out '.processes[0] | (.runtime_version | test("^[0-9.]+$")) and .reachable'
	code_of "$@" ./spoor stacks --json --timeout 60s -p "$inside"
	expect_code 0 "stacks, $what"
	json out '.sampled'
	parked=$(grep -l 'Parked 0' /proc/"$inside"/task/*/comm | cut -d/ -f5)
	json out 'any(.stacks[].threads[]; .tid == ($a | tonumber) and .inner_tid == ($b | tonumber) and .name == "Parked 0")' "$parked" \
		"$(awk '$1 == "NSpid:" { print $NF }' "/proc/$inside/task/$parked/status")"
	json out "$parks"
	for _ in 1 2 3 4 5; do # type names are missing while another tool has a session: try again
		code_of "$@" ./spoor heap -q --no-file --json --top 5 -p "$inside"
		[ $code != 0 ] || break
		sleep 1
	done
	expect_code 0 "heap, $what"
	json out '.whole'
	start tracer "$@" ./spoor trace -p "$inside" -o "$out/x.nettrace" >out 2>err
	until_true opened "$out/x.nettrace" 1 || fail "trace opens no session, $what"
	kill -INT $tracer
	wait $tracer || fail "trace, $what"
	code_of ./spoor report --json "$out/x.nettrace"
	json out 'any(.processes[], .sessions[]; .pid == ($a | tonumber))' "$inside"
	rm -f "$out/x.nettrace"
}

# Root inside and outside.
out=$scratch
as=''
box 100001
all_verbs "root looks into namespaces"

# From a sidecar that shares only the pid namespace: the process has its inner id there.
code_of nsenter --pid="/proc/$inside/ns/pid" unshare --mount sh -c "mount -t proc none /proc && ./spoor stacks --json --timeout 60s -p $inner"
expect_code 0 "stacks from a sidecar"
json out '.pid == ($a | tonumber)' "$inner"
json out "$parks"
code_of nsenter --pid="/proc/$inside/ns/pid" unshare --mount sh -c "mount -t proc none /proc && ./spoor ps --json"
json out 'any(.processes[]; .pid == ($a | tonumber) and .inner_pid == .pid and .reachable)' "$inner"

# From inside. It is the only .NET process there, so no -p is needed.
code_of nsenter --target "$inside" --pid --mount --root /mnt/app/spoor stacks --json --timeout 60s
expect_code 0 "stacks from inside, without -p"
json out '.pid == ($a | tonumber)' "$inner"
kill -9 "$inside"

# A program of another user: that user and root may, a third user may not and gets the reason.
as=$user
box 100002
mkdir -m 777 theirs
out=$scratch/theirs
all_verbs "its user looks into namespaces" $user
out=$scratch
code_of nsenter --pid="/proc/$inside/ns/pid" unshare --mount sh -c "mount -t proc none /proc && exec $user --bounding-set=-all ./spoor stacks --json --timeout 60s -p $inner"
expect_code 0 "stacks from a sidecar that runs as the program's user, without any right"
json out "$parks"
json out 'any(.stacks[].frames[]; .name | startswith("libcoreclr.so!sub_"))'
all_verbs "root looks at another user's in namespaces"
code_of setpriv --bounding-set=-all,+sys_ptrace,+dac_override ./spoor stacks --json --timeout 60s -p "$inside"
expect_code 0 "stacks by a root that has two rights"
json out '.sampled and .reason == "" and .native'
code_of $stranger ./spoor ps --json -p "$inside"
json out '.processes[0].reachable == false'
code_of $stranger ./spoor stacks -p "$inside"
[ $code != 0 ] || fail "a stranger sees stacks"
has err '^no managed frames from the runtime of '
kill -9 "$inside"

# A user namespace: root inside is the user 65534 outside.
as=''
if unshare -U --map-root-user true 2>/dev/null; then
	box 100003 -U --map-root-user
	all_verbs "root looks into a user namespace"
	kill -9 "$inside"
else
	not_here="$not_here; no user namespaces"
fi

# Diagnostics switched off: the reason is printed, with what /proc shows.
as='env DOTNET_EnableDiagnostics=0'
box 100004
code_of ./spoor ps --json -p "$inside"
json out '.processes[0] | .reachable == false and .reason != ""'
code_of ./spoor stacks -p "$inside"
expect_code 1 "stacks without diagnostics"
has out '^no managed frames from the runtime: '
has out '[0-9]+ Sleeper'
has out '^    Threading\.Thread\.Sleep\(int\) ' # precompiled: the name is in its file
kill -9 "$inside"

# runc, as used by Docker and Kubernetes: a read-only root, with or without a /tmp.
if ! command -v runc >/dev/null; then
	not_here="$not_here; runc is not installed"
else
	# bundle FOLDER NUMBER TMPDIR: writes a configuration for runc, with this system's root, read-only.
	bundle() {
		mkdir -p "$1/rootfs" && cat >"$1/config.json" <<-END
			{ "ociVersion": "1.0.2",
			"process": { "user": { "uid": 0, "gid": 0 }, "cwd": "/", "noNewPrivileges": true,
			"args": [ "dotnet", "$scratch/app/Managed.dll", "threads", "$2" ],
			"env": [ "PATH=$PATH", "HOME=/", "TMPDIR=$3", "DOTNET_ROOT=${DOTNET_ROOT:-}" ] },
			"root": { "path": "rootfs", "readonly": true },
			"mounts": [ { "destination": "/proc", "type": "proc", "source": "proc" },
			{ "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": [ "nosuid", "mode=755" ] },
			{ "destination": "/mnt", "type": "tmpfs", "source": "tmpfs" } ],
			"linux": { "namespaces": [ { "type": "pid" }, { "type": "mount" }, { "type": "ipc" }, { "type": "uts" } ] } }
		END
	}
	begin_runc() {
		: >"ready.$1"
		start "box$1" unshare -m sh -c "mount --rbind / '$2/rootfs' && exec runc --root '$scratch/runc' run --bundle '$2' spoor-test-$$-$1" \
			>"ready.$1" 2>"err.$1"
		eval "runc_pid=\$box$1"
		until_true posed_or_ended "$1" && grep -q posed "ready.$1"
	}
	posed_or_ended() {
		grep -q posed "ready.$1" || ended_process $runc_pid
	}
	end_runc() {
		kill -9 "$(pid_of "$1")" 2>/dev/null # the first process of its container
		eval "wait \$box$1"
		runc --root "$scratch/runc" delete -f "spoor-test-$$-$1" 2>/dev/null
	}
	bundle one 100005 /mnt/
	if begin_runc 100005 one; then
		inside=$(pid_of 100005)
		inner=1
		all_verbs "root looks into runc's container"
		end_runc 100005
		# No folder for a socket: the reason is printed, and the threads are shown without it.
		bundle two 100006 /nowhere/
		begin_runc 100006 two || fail "the program does not start without a place for its socket"
		inside=$(pid_of 100006)
		code_of ./spoor ps --json -p "$inside"
		json out '.processes[0] | .reachable == false and .reason != ""'
		code_of ./spoor stacks -p "$inside"
		expect_code 1 "stacks without a socket"
		has out '[0-9]+ Sleeper'
		end_runc 100006
	else
		not_here="$not_here; runc starts nothing here: $(head -c 300 err.100005)"
		end_runc 100005
	fi
fi
[ -z "$not_here" ] || skip "${not_here#; } (the rest holds)"
exit 0
