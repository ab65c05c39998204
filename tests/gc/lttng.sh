#!/bin/sh
# LTTng gets known and dynamic events of each library; the library learns about LTTng's sessions only in the poll at each collection. .NET's own LTTng provider is linked to the old
# library (liblttng-ust.so.0), which Debian no longer has: Debian 11's is fetched into the build folder, or taken from the folder that SPOOR_LTTNG_UST0 names.
. "$(dirname "$0")/prelude"
for tool in lttng lttng-sessiond babeltrace2; do
	command -v $tool >/dev/null || skip "$tool is not in PATH (Debian: lttng-tools, babeltrace2)"
done
old=${SPOOR_LTTNG_UST0:-}
if [ -z "$old" ] && ! ldconfig -p 2>/dev/null | grep -q 'liblttng-ust\.so\.0'; then
	old=$build/gc-tests/lttng-ust0
	why=$("$(dirname "$0")/fetch_lttng" "$old") || skip "no liblttng-ust.so.0, which the runtime's LTTng provider is linked to: $why"
fi
[ -z "$old" ] || [ -e "$old/liblttng-ust.so.0" ] || skip "SPOOR_LTTNG_UST0=$old has no liblttng-ust.so.0"
target "${SPOOR_GC_VERSIONS%% *}"

# A separate session daemon: root's daemon serves the whole machine, so root runs it as the user 65534 (nobody).
as=''
if [ "$(id -u)" = 0 ]; then
	command -v setpriv >/dev/null || skip "setpriv is not in PATH: root's session daemon would be the machine's"
	as='setpriv --reuid=65534 --regid=65534 --clear-groups'
	cp -r "$target" "$work/app"
	target=$work/app
	if [ -n "$old" ]; then
		cp -r "$old" "$work/old"
		old=$work/old
	fi
	chmod 755 "$work"
	mkdir "$work/home"
	chown -R 65534:65534 "$work/home" "$work/app"
else
	mkdir "$work/home"
fi
export HOME="$work/home" LTTNG_HOME="$work/home" TMPDIR="$work/home"

start "$work/daemon.log" $as lttng-sessiond --no-kernel
daemon=$last
for _ in $(seq 50); do
	$as lttng --no-sessiond list >/dev/null 2>&1 && break
	sleep 0.1
done
for library in $libraries; do
	[ -e "$target/$library" ] || continue
	rm -rf "$work/home/trace"
	$as lttng --no-sessiond create gc --output="$work/home/trace" >"$work/lttng.log" 2>&1 || {
		cat "$work/lttng.log"
		exit 1
	}
	$as lttng --no-sessiond enable-event --userspace 'DotNETRuntime:GC*' >>"$work/lttng.log" 2>&1
	$as lttng --no-sessiond start >>"$work/lttng.log" 2>&1
	# Without EnableEventLog the runtime itself drops GCStart, whatever collector fires it.
	code=0
	$as env LD_LIBRARY_PATH="$old" DOTNET_LTTng=1 DOTNET_EnableEventLog=1 DOTNET_GCName="$library" "$target/Target" collect 10 >"$work/out" 2>&1 || code=$?
	same "$library under LTTng" $code 0
	$as lttng --no-sessiond stop >>"$work/lttng.log" 2>&1
	$as lttng --no-sessiond destroy >>"$work/lttng.log" 2>&1
	babeltrace2 "$work/home/trace" >"$work/events" 2>"$work/babeltrace.log" || :
	starts=$(grep -c 'DotNETRuntime:GCStart_V2' "$work/events" || :)
	ends=$(grep -c 'DotNETRuntime:GCEnd_V1' "$work/events" || :)
	# The payload is one packed sequence, which begins with the name in UTF-16: "Spoor".
	ours=$(grep 'DotNETRuntime:GCDynamicEvent' "$work/events" |
		grep -c '\[0\] = 83, \[1\] = 0, \[2\] = 112, \[3\] = 0, \[4\] = 111, \[5\] = 0, \[6\] = 111, \[7\] = 0, \[8\] = 114, \[9\] = 0,' || :)
	echo "$library: LTTng recorded $starts starts, $ends ends, $ours dynamic events of ours"
	at_least "$library: GCStart in LTTng" "$starts" 25
	at_least "$library: GCEnd in LTTng" "$ends" "$starts"
	# Before the first poll no dynamic event is enabled.
	at_least "$library: dynamic events of ours in LTTng" "$ours" $((starts - 2))
done
kill $daemon 2>/dev/null || :
end
