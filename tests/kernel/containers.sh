#!/bin/sh
# ps, trace, heap and stacks through the walls of containers: pid, mount and user namespaces made here, and runc's; from the host, from a sidecar that shares only the pid
# namespace, and from inside; as root, as the program's user, and as another who may not.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

is_root || skip "namespaces and other users need root"
unshare -pfm --mount-proc true 2>/dev/null || skip "no namespaces can be made here"
chmod 755 . && mkdir app && cp "$(dirname "$app")"/Managed.* app/ && chmod -R a+rX app
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
stranger='setpriv --reuid=65533 --regid=65533 --clear-groups'
cp "$spoor" spoor && chmod 755 spoor # where those can reach it
not_here=''

# The process with such a last argument, as we see it.
pid_of() {
	for each in /proc/[0-9]*; do
		{ tr '\0' ' ' <"$each/cmdline"; } 2>/dev/null | grep -q "^dotnet .*Managed.dll threads $1 " && echo "${each#/proc/}"
	done
}

# box NUMBER HOW...: the program in a pid and mount namespace with a /tmp of its own, and in what else HOW (of unshare) says; its process is $inside then.
box() {
	number=$1 && shift
	: >"ready.$number"
	start "box$number" unshare -pfm --mount-proc --kill-child "$@" sh -c "mount -t tmpfs -o mode=1777 none /mnt && mkdir -m 1777 /mnt/tmp && mkdir /mnt/app && cp '$scratch'/app/* '$scratch/spoor' /mnt/app &&
		mount --bind /mnt/tmp /tmp && cd / && HOME=/tmp exec $as dotnet /mnt/app/Managed.dll threads $number" >"ready.$number" 2>"err.$number"
	until_true grep -q posed "ready.$number" || fail "the program in a container does not start: $(cat "err.$number")"
	inside=$(pid_of "$number")
	[ -n "$inside" ] || fail "the program in a container is not found"
	inner=$(awk '$1 == "NSpid:" { print $NF }' "/proc/$inside/status")
	[ "$inner" != "$inside" ] || fail "the program is in no pid namespace of its own"
}

# all_verbs WORDS [BEFORE...]: each verb finds it, asks it, and tells what is inside in our numbers.
all_verbs() {
	what=$1 && shift
	code_of "$@" ./spoor ps --json -p "$inside"
	expect_code 0 "ps, $what"
	has out "\"pid\":$inside,\"inner_pid\":$inner,"
	has out '"runtime_version":"[0-9.]+"'
	has out '"reachable":true'
	code_of "$@" ./spoor stacks --json -p "$inside"
	expect_code 0 "stacks, $what"
	has out '"sampled":true'
	parked=$(grep -l 'Parked 0' /proc/"$inside"/task/*/comm | cut -d/ -f5)
	has out "\"tid\":$parked,\"inner_tid\":$(awk '$1 == "NSpid:" { print $NF }' "/proc/$inside/task/$parked/status"),\"name\":\"Parked 0\""
	has out '"name":"Posed.Park\(\)","module":"Managed"'
	for _ in 1 2 3 4 5; do # another tool's session in that moment keeps type names back: then once more
		code_of "$@" ./spoor heap -q --no-file --json --top 5 -p "$inside"
		[ $code != 0 ] || break
		sleep 1
	done
	expect_code 0 "heap, $what"
	has out '"whole":true'
	code_of "$@" ./spoor trace --duration 500ms -p "$inside" -o "$out/x.nettrace"
	expect_code 0 "trace, $what"
	code_of ./spoor report --json "$out/x.nettrace"
	has out "\"pid\":$inside,"
	rm -f "$out/x.nettrace"
}

# As root inside and outside.
out=$scratch
as=''
box 100001
all_verbs "root looks into namespaces"

# From a sidecar that shares the pid namespace and nothing else: the process is found by its inner number there.
code_of nsenter --pid="/proc/$inside/ns/pid" unshare --mount sh -c "mount -t proc none /proc && ./spoor stacks --json -p $inner"
expect_code 0 "stacks from a sidecar"
has out "\"pid\":$inner,"
has out '"name":"Posed.Park\(\)","module":"Managed"'
code_of nsenter --pid="/proc/$inside/ns/pid" unshare --mount sh -c "mount -t proc none /proc && ./spoor ps --json"
has out "\"pid\":$inner,\"inner_pid\":$inner,"
has out '"reachable":true'

# From inside, where it is the only .NET process and needs no name.
code_of nsenter --target "$inside" --pid --mount --root /mnt/app/spoor stacks --json
expect_code 0 "stacks from inside, without -p"
has out "\"pid\":$inner,"
kill -9 "$inside"

# Another user's: he himself may, root may, a third may not, and is told why.
as=$user
box 100002
mkdir -m 777 theirs
out=$scratch/theirs
all_verbs "its user looks into namespaces" $user
out=$scratch
code_of nsenter --pid="/proc/$inside/ns/pid" unshare --mount sh -c "mount -t proc none /proc && exec $user --bounding-set=-all ./spoor stacks --json -p $inner"
expect_code 0 "stacks from a sidecar that runs as the program's user, without any right"
has out '"name":"Posed.Park\(\)","module":"Managed"'
has out '"name":"libcoreclr'
all_verbs "root looks at another user's in namespaces"
code_of setpriv --bounding-set=-all,+sys_ptrace,+dac_override ./spoor stacks --json -p "$inside"
expect_code 0 "stacks by a root that has two rights"
has out '"sampled":true,"reason":"","native":true'
code_of $stranger ./spoor ps --json -p "$inside"
has out '"reachable":false'
code_of $stranger ./spoor stacks -p "$inside"
[ $code != 0 ] || fail "a stranger sees stacks"
has err ' tells no managed frames: '
kill -9 "$inside"

# A user namespace: root inside is nobody outside.
as=''
if unshare -U --map-root-user true 2>/dev/null; then
	box 100003 -U --map-root-user
	all_verbs "root looks into a user namespace"
	kill -9 "$inside"
else
	not_here="$not_here; no user namespaces"
fi

# Diagnostics switched off: told, and what /proc knows is shown.
as='env DOTNET_EnableDiagnostics=0'
box 100004
code_of ./spoor ps --json -p "$inside"
has out '"reachable":false,"reason":"[^"]+'
code_of ./spoor stacks -p "$inside"
expect_code 1 "stacks without diagnostics"
has out '^no managed frames from the runtime: '
has out '[0-9]+ Sleeper'
has out '^    Threading\.Thread\.Sleep\(int\) ' # precompiled: its file has the name
kill -9 "$inside"

# runc, as docker and Kubernetes use it: read-only root, a /tmp of its own or none.
if ! command -v runc >/dev/null; then
	not_here="$not_here; runc is not installed"
else
	# bundle FOLDER NUMBER TMPDIR: a configuration as runc wants it, of our own root, read-only.
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
		until_true grep -q posed "ready.$1"
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
		# Nowhere to put a socket: told, and the threads are shown all the same.
		bundle two 100006 /nowhere/
		begin_runc 100006 two || fail "the program does not start without a place for its socket"
		inside=$(pid_of 100006)
		code_of ./spoor ps --json -p "$inside"
		has out '"reachable":false,"reason":"[^"]+'
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
