#!/bin/sh
# .NET programs of another user, in another pid and mount namespace, and in a single file have names.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

record_it() {
	record_until 60 'Hot\.Burn' -F 499 -p "$1"
	expect_code 0 "$2"
}

# pid_of COMMAND-LINE: prints the process, by its id in this namespace.
pid_of() {
	for each in /proc/[0-9]*; do
		[ "$({ tr '\0' ' ' <"$each/cmdline"; } 2>/dev/null)" = "$1 " ] && echo "${each#/proc/}"
	done
}

not_here=''
if ! is_root; then
	not_here="$not_here; another user and other namespaces need root"
else
	# A program of another user, recorded by root.
	chmod 755 . && mkdir theirs && cp "$(dirname "$app")"/Managed.* theirs/ && chmod -R a+rX theirs
	if setpriv --reuid=65534 --regid=65534 --clear-groups dotnet "$scratch/theirs/Managed.dll" burn 1 >out 2>&1; then
		start theirs setpriv --reuid=65534 --regid=65534 --clear-groups dotnet "$scratch/theirs/Managed.dll" burn 600000 >ready.theirs
		until_true grep -q ready ready.theirs || fail "the program of another user does not start"
		record_it $theirs "another user's program"
		kill -9 $theirs
	else
		not_here="$not_here; another user cannot run dotnet here"
	fi

	# In a pid and mount namespace with a separate /tmp.
	if unshare -pfm --mount-proc true 2>/dev/null; then
		cp -r "$(dirname "$app")" "$scratch/inside"
		start outer unshare -pfm --mount-proc --kill-child sh -c "mount -t tmpfs none /mnt && mkdir /mnt/app /mnt/tmp && cp '$scratch'/inside/Managed.* /mnt/app &&
			mount --bind /mnt/tmp /tmp && exec dotnet /mnt/app/Managed.dll burn 600001" >ready.inside 2>err.inside
		until_true grep -q ready ready.inside || fail "the program in a namespace does not start"
		inner=$(pid_of "dotnet /mnt/app/Managed.dll burn 600001")
		[ -n "$inner" ] || fail "the program in a namespace is not found"
		record_it "$inner" "a program in a namespace"
		code_of "$spoor" report --json x.nettrace
		json out 'any(.processes[]; .pid == ($a | tonumber) and (.runtime_version | test("^[0-9]")))' "$inner"
		code_of "$spoor" report -t "$inner" --json x.nettrace
		has out 'Hot.Burn'
		# Its dump is at the path in its own mount namespace; the message has the path from here.
		code_of "$spoor" dump -p "$inner" --type mini -o /tmp/inside.core
		expect_code 0 "a dump of a program in a namespace"
		has err "^/tmp/inside\.core  [0-9.]+ MB; from here /proc/$inner/root/tmp/inside\.core"
		[ -s "/proc/$inner/root/tmp/inside.core" ] && [ ! -e /tmp/inside.core ] || fail "its dump is not there"
		kill -9 "$inner"
	else
		not_here="$not_here; no namespaces can be made here"
	fi
fi

# A single file with its own runtime, without a libcoreclr.so.
single=$("$top/scripts/test-programs" managed-single) || single=''
if [ -x "$single" ]; then
	: >ready.single
	start packed "$single" burn 600002 >ready.single
	until_true grep -q ready ready.single || fail "the single file does not start"
	record_it $packed "a single file"
	at_least x.folded 5 'ArraySortHelper|CompareOrdinal'
	kill -9 $packed
	code_of "$spoor" record -q -F 499 -o x.nettrace -- "$single" burn 900
	expect_code 0 "a single file that starts"
	folded x.nettrace x.folded
	at_least x.folded 30 'Hot\.Burn'
	# Precompiled methods of the libraries in it, which the runtime does not report: the start runs many of them.
	at_least x.folded 3 ';System\.(Diagnostics|Reflection|Threading)\.'
else
	not_here="$not_here; the runtime pack for a single file could not be fetched"
fi
[ -z "$not_here" ] || skip "${not_here#; } (the rest holds)"
exit 0
