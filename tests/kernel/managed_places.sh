#!/bin/sh
# .NET programs elsewhere: of another user, in another pid and mount namespace, packed into a single file.
. "$(dirname "$(realpath "$0")")/prelude"
. "$here/managed/prelude"

record_it() {
	code_of timeout 20 "$spoor" record -q -F 499 -p "$1" --duration 900ms -o x.nettrace
	expect_code 0 "$2"
	folded x.nettrace x.folded
	at_least x.folded 30 'Hot\.Burn'
}

# The process of a file name or argument, as we see it.
pid_of() {
	for each in /proc/[0-9]*; do
		[ "$({ tr '\0' ' ' <"$each/cmdline"; } 2>/dev/null)" = "$1 " ] && echo "${each#/proc/}"
	done
}

not_here=''
if ! is_root; then
	not_here="$not_here; another user and other namespaces need root"
else
	# Another user, recorded by root; the other way around is refused.
	chmod 755 . && mkdir theirs && cp "$(dirname "$app")"/Managed.* theirs/ && chmod -R a+rX theirs
	if setpriv --reuid=65534 --regid=65534 --clear-groups dotnet "$scratch/theirs/Managed.dll" burn 1 >out 2>&1; then
		start theirs setpriv --reuid=65534 --regid=65534 --clear-groups dotnet "$scratch/theirs/Managed.dll" burn 60000 >ready.theirs
		until_true grep -q ready ready.theirs || fail "the program of another user does not start"
		record_it $theirs "another user's program"
		kill -9 $theirs
	else
		not_here="$not_here; another user cannot run dotnet here"
	fi

	# In a pid and mount namespace with a /tmp of its own.
	if unshare -pfm --mount-proc true 2>/dev/null; then
		cp -r "$(dirname "$app")" "$scratch/inside"
		start outer unshare -pfm --mount-proc --kill-child sh -c "mount -t tmpfs none /mnt && mkdir /mnt/app /mnt/tmp && cp '$scratch'/inside/Managed.* /mnt/app &&
			mount --bind /mnt/tmp /tmp && exec dotnet /mnt/app/Managed.dll burn 60001" >ready.inside 2>err.inside
		until_true grep -q ready ready.inside || fail "the program in a namespace does not start"
		inner=$(pid_of "dotnet /mnt/app/Managed.dll burn 60001")
		[ -n "$inner" ] || fail "the program in a namespace is not found"
		record_it "$inner" "a program in a namespace"
		code_of "$spoor" report --json x.nettrace
		has out "\"pid\":$inner,"
		has out '"runtime_version":"[0-9]'
		code_of "$spoor" report -t "$inner" --json x.nettrace
		has out 'Hot.Burn'
		# Its dump stands where it sees the path, and that is said as seen from here.
		code_of "$spoor" dump -p "$inner" --type mini -o /tmp/inside.core
		expect_code 0 "a dump of a program in a namespace"
		has err "^/tmp/inside\.core  [0-9.]+ MB; from here /proc/$inner/root/tmp/inside\.core"
		[ -s "/proc/$inner/root/tmp/inside.core" ] && [ ! -e /tmp/inside.core ] || fail "its dump is not there"
		kill -9 "$inner"
	else
		not_here="$not_here; no namespaces can be made here"
	fi
fi

# One file, with its own runtime inside: no libcoreclr.so to know it by.
single=$("$top/scripts/test-programs" managed-single) || single=''
if [ -x "$single" ]; then
	: >ready.single
	start packed "$single" burn 60002 >ready.single
	until_true grep -q ready ready.single || fail "the single file does not start"
	record_it $packed "a single file"
	at_least x.folded 20 'ArraySortHelper|CompareOrdinal'
	kill -9 $packed
	code_of "$spoor" record -q -F 499 -o x.nettrace -- "$single" burn 900
	expect_code 0 "a single file that starts"
	folded x.nettrace x.folded
	at_least x.folded 30 'Hot\.Burn'
else
	not_here="$not_here; the runtime pack for a single file could not be fetched"
fi
[ -z "$not_here" ] || skip "${not_here#; } (the rest holds)"
exit 0
