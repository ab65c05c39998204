#!/bin/sh
# record --lttng of .NET's own tracepoints: they are in the file as the runtime's events, each payload is decoded to its last byte, and those that EventPipe sends too are the same.
. "$(dirname "$(realpath "$0")")/../prelude"
for tool in lttng lttng-sessiond; do
	command -v $tool >/dev/null || skip "$tool is not in PATH (Debian: lttng-tools)"
done
! grep -q '^SPOOR_SANITIZE:[A-Z]*=.' "$(dirname "$spoor")/CMakeCache.txt" || skip "the program's library folder would hide a sanitizer's"
# Root's session daemon serves the whole machine: this one has a separate /run.
if [ -z "${SPOOR_TEST_OWN_RUN:-}" ]; then
	is_root || skip "a session daemon of its own needs a mount namespace, and that needs root"
	unshare --mount true 2>/dev/null || skip "no mount namespace can be made here"
	cd / && rm -rf "$scratch"
	SPOOR_TEST_OWN_RUN=yes exec unshare --mount sh "$here/recording/lttng_dotnet.sh" "$spoor"
fi
. "$here/programs/managed/prelude"
# .NET's provider is linked to the old library, as tests/gc/lttng.sh says.
old=${SPOOR_LTTNG_UST0:-$(dirname "$spoor")/gc-tests/lttng-ust0}
if ! ldconfig -p 2>/dev/null | grep -q 'liblttng-ust\.so\.0'; then
	why=$(sh "$here/../gc/fetch_lttng" "$old") || skip "no liblttng-ust.so.0, which the runtime's LTTng provider is linked to: $why"
fi
program managed
mount -t tmpfs none /run || skip "nothing can be mounted on /run"
mkdir home tmp
export LTTNG_HOME="$scratch/home"
start DAEMON env HOME="$scratch/home" lttng-sessiond --no-kernel >daemon.log 2>&1
until_true env HOME="$scratch/home" lttng --no-sessiond list || fail "the session daemon does not answer"
mkdir run
cd run || exit 99
start RECORDER env HOME="$scratch/home" TMPDIR="$scratch/tmp" LTTNG_UST_REGISTER_TIMEOUT=-1 LD_LIBRARY_PATH="$old" DOTNET_LTTng=1 DOTNET_EnableEventLog=1 \
	"$spoor" record -F 10 --lttng 'DotNETRuntime:*' --lttng 'DotNETRuntimePrivate:*' --providers Microsoft-Windows-DotNETRuntime:8000000000:5 -o ../r.nettrace -- \
	dotnet "$program" paced 3000 2>../record.err
cd ..
wait $RECORDER || fail "record: $(cat record.err)"
has record.err ' events of LTTng in .*lost'
"$spoor" events r.nettrace >lines 2>err || fail "events: $(cat err)"
has_no lines ' Microsoft-Windows-DotNETRuntime.*\?$'
"$spoor" events --json r.nettrace >events.json
json_lines events.json 'map(select(.event == "TypeLoad/Stop" and .level == 4 and .keywords == "0x8000000000" and .fields.TypeName == "System.Object")) | length > 0'
json_lines events.json 'map(select(.event == "Method/LoadVerbose" and .version == 2 and .fields.MethodName != "" and .pid > 0)) | length > 5'
json_lines events.json 'map(select(.event == "GC/Start" and .version == 2)) | length > 2 and (map(.fields.Count) | . == sort)'
# Packed: the payload is one array of bytes in CTF.
json_lines events.json 'map(select(.event == "Type/BulkType") | .fields | .Count == (.Values | length) and (.Values[0] | has("TypeNameID"))) | length > 10 and all'
# Types that both have: EventPipe's session began later than the process.
jq -c 'select(.event == "TypeLoad/Stop") | [.fields.TypeLoadStartID, .fields.TypeName]' events.json | sort >types
awk '{ n[$0]++ } END { for (each in n) if (n[each] == 2) both++; exit both < 20 }' types || fail "few types came by both ways: $(head -n 5 types)"
echo "$(value_lines events.json 'map(select(.provider | startswith("Microsoft-Windows-DotNETRuntime"))) | length') events of the runtime are whole"
exit 0
