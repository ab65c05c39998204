#!/bin/sh
# spoor env, perfmap and dump of a real process. An impossible request is refused before it is sent, or fails with the runtime's message.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

SPOOR_TEST_WORD='a b=c' begin burner paced 600000
code_of "$spoor" env -p $burner 'SPOOR_TEST_WO*' DOTNET_NOLOGO
expect_code 0 "env"
[ "$(cat out)" = 'DOTNET_NOLOGO=1
SPOOR_TEST_WORD=a b=c' ] || fail "env is not right"
code_of "$spoor" env -p $burner SPOOR_TEST_WROD DOTNET_NOLOGO
expect_code 1 "a variable that is not set"
[ "$(cat out)" = DOTNET_NOLOGO=1 ] || fail "the variable that is set is not shown"
has err "^Managed \($burner\) has no variable 'SPOOR_TEST_WROD'; did you mean 'SPOOR_TEST_WORD'\?$"
code_of "$spoor" env -p $burner 'NOTHING_*' --json
expect_code 1 "no variable of a pattern"
has err "has no variable 'NOTHING_\*'\.$"
code_of "$spoor" env -p $burner --json
expect_code 0 "env --json"
json out '.processes[0] | .pid == ($a | tonumber) and .name == "Managed" and .environment.SPOOR_TEST_WORD == "a b=c"' $burner
code_of "$spoor" env -p $$
expect_code 1 "env of a shell"
has err "^cannot ask process $$: "

# perfmap on makes the map, perfmap off removes it. A link at its path is not followed.
map=/tmp/perf-$burner.map
code_of "$spoor" perfmap on -p $burner
expect_code 0 "perfmap on"
until_true grep -q 'Hot::Run' "$map" || fail "no map appears"
code_of "$spoor" perfmap off -p $burner
expect_code 0 "perfmap off"
has err 'off; 1 file removed'
[ ! -e "$map" ] || fail "the map is left behind"
code_of "$spoor" perfmap on --kind jitdump -p $burner -q
expect_code 0 "a jitdump"
until_true test -s /tmp/jit-$burner.dump || fail "no jitdump appears"
code_of "$spoor" perfmap off --keep -p $burner
expect_code 0 "perfmap off --keep"
[ -s /tmp/jit-$burner.dump ] || fail "--keep does not keep"
code_of "$spoor" perfmap off -q -p $burner
expect_code 0 "perfmap off"
[ ! -e /tmp/jit-$burner.dump ] || fail "the jitdump is left behind"
ln -s "$PWD/precious" "$map"
echo precious >precious
code_of "$spoor" perfmap off -q -p $burner
[ -L "$map" ] && [ -s precious ] || fail "a link was followed or taken"
rm "$map"

# Dumps.
code_of "$spoor" dump -p $burner -o "$PWD/mini.core" --type mini --crash-report
expect_code 0 "a dump"
has err "^$PWD/mini\.core  [0-9.]+ MB"
[ "$(head -c 4 mini.core | od -An -tx1 | tr -d ' ')" = 7f454c46 ] || fail "the dump is no ELF file"
json mini.core.crashreport.json '.payload | has("process_name") and (.threads | length > 0)'
kill -0 $burner || fail "the process has ended"
code_of "$spoor" dump -q -p $burner -o relative.core --type triage
expect_code 0 "a dump with a relative path"
[ -s relative.core ] || fail "a relative path is not resolved"
code_of "$spoor" dump -p $burner -o "$PWD/none/x.core"
expect_code 1 "a folder that does not exist"
has err "^process $burner has no folder '$PWD/none' for its dump: No such file or directory"
mkdir full
code_of "$spoor" dump -q -p $burner -o "$PWD/full"
expect_code 1 "a path that is a folder"
has err "^cannot write '$PWD/full': Is a directory"
# spoor does not open a special file at the path, and sends no request: a pipe would block the process.
echo precious >precious
for kind in "mkfifo waiting" "ln -s precious waiting" "ln -s nowhere waiting" "mknod waiting c 1 3"; do
	$kind 2>/dev/null || continue
	code_of timeout 100 "$spoor" dump -p $burner --type mini -o "$PWD/waiting"
	expect_code 1 "$kind"
	has err "^cannot write '$PWD/waiting': it is (a link|no regular file)"
	has_no err 'dumping'
	rm waiting
done
[ "$(cat precious)" = precious ] && [ ! -e nowhere ] || fail "a dump went through a link"
ln -s precious linked.core.crashreport.json
code_of timeout 100 "$spoor" dump -p $burner --type mini --crash-report -o "$PWD/linked.core"
expect_code 1 "a link where the crash report goes"
[ ! -e linked.core ] && [ "$(cat precious)" = precious ] || fail "the crash report went through a link"
# An existing file is kept as .old. A file of another user is not changed.
"$spoor" dump -q -p $burner --type triage -o "$PWD/precious" 2>err || fail "a dump over a file"
[ "$(cat precious.old)" = precious ] && [ "$(head -c 4 precious | od -An -tx1 | tr -d ' ')" = 7f454c46 ] || fail "the earlier file was not kept"
if is_root; then
	echo theirs >theirs && chown 65534 theirs
	code_of "$spoor" dump -p $burner --type mini -o "$PWD/theirs"
	expect_code 3 "another user's file"
	has err "it is another user's"
	[ "$(cat theirs)" = theirs ] || fail "another user's file was taken"
fi
mkdir 'a%p 100%'
"$spoor" dump -q -p $burner --type triage -o 'a%p 100%/x%h.core' 2>err || fail "a dump into a folder with percent signs"
[ -s 'a%p 100%/x%h.core' ] || fail "percent signs change the path"
# A failed dump leaves no file.
mkdir closed
if is_root && mount -t tmpfs -o size=2m none closed 2>/dev/null; then
	code_of "$spoor" dump -y -p $burner -o "$PWD/closed/x.core"
	left=$(ls -A closed)
	umount closed
	expect_code 1 "a disk that becomes full"
	has err "^process $burner could not write its dump: "
	[ -z "$left" ] || fail "a failed dump leaves $left"
fi
[ -z "$(find . -name '.spoor-*')" ] || fail "random names are left: $(find . -name '.spoor-*')"
if is_root && mkdir small && mount -t tmpfs -o size=1m none small 2>/dev/null; then
	code_of "$spoor" dump -p $burner -o "$PWD/small/x.core"
	umount small
	expect_code 1 "a disk that is too small"
	has err "are free in '$PWD/small', and a dump may take "
fi
code_of "$spoor" env -p $burner DOTNET_NOLOGO
expect_code 0 "the process afterwards"
kill $burner
