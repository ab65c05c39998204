#!/bin/sh
# service.sh BUILD-FOLDER: examples/service, a C++ program, under load: live dotnet-trace and dotnet-counters, spoor trace, counters and diagnose. The events of a request
# have its activity, and an order the activity of its payment, whose parent is the request.
set -eu
build=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")
cxx=${CXX:-c++}
work=$(mktemp -d)
service='' load=''

end() {
	[ -z "$load" ] || kill "$load" 2>/dev/null || :
	[ -z "$service" ] || kill "$service" 2>/dev/null || :
	wait
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM HUP

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "FAILED: $*"
	exit 1
}

! grep -q '^SPOOR_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" || skip "a sanitizer must be loaded before libspoor, and this program is built without one"
command -v "$cxx" >/dev/null || skip "there is no C++ compiler"
command -v curl >/dev/null || skip "curl is not installed"
. "$top/tests/programs"
. "$top/tests/json"
"$cxx" -std=c++17 -O2 -fno-omit-frame-pointer -Wall -Wextra -Werror -I"$top/include" "$top/examples/service/service.cc" -o "$work/service" \
	-L"$build" -lspoor -pthread
export TMPDIR="$work" LD_LIBRARY_PATH="$build" DOTNET_CLI_TELEMETRY_OPTOUT=1
"$work/service" >"$work/out" 2>&1 &
service=$!
for _ in $(seq 600); do
	! grep -q listening "$work/out" || break
	sleep 0.1
done
port=$(sed -n 's/^listening on //p' "$work/out")
[ -n "$port" ] || fail "the service does not start: $(cat "$work/out")"
url=http://127.0.0.1:$port

# It answers, and survives requests that are none.
[ "$(curl -s "$url/")" = Hello. ] || fail "no greeting"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/order/1001")" = 404 ] || fail "an order that is too large"
head -c 9000 /dev/zero | curl -s --max-time 10 --data-binary @- "telnet://127.0.0.1:$port" >/dev/null 2>&1 || :
[ "$(curl -s "$url/order/3")" = 'Order 1.' ] || fail "no order"

while :; do
	curl -s "$url/order/[1-200]" >/dev/null || break
	curl -s -H 'traceparent: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01' "$url/slow" >/dev/null || break
	curl -s "$url/none" >/dev/null || break
done &
load=$!

"$build/spoor" trace -p "$service" --providers Service --duration 3 -o "$work/spoor.nettrace" 2>"$work/said" || fail "spoor trace: $(cat "$work/said")"
"$build/spoor" events "$work/spoor.nettrace" --provider Service --json >"$work/events.json"
json_lines "$work/events.json" 'map(select(.event == "RequestStart")) | length > 0 and all(.fields.method == "GET" and .activity != null)'
json_lines "$work/events.json" 'map(select(.event == "Order")) | length > 0 and all(.fields.items[0] == 1)'
# Each request that is complete has one begin and one end, with one activity that no other has; its order has another one.
json_lines "$work/events.json" '
	(map(select(.event == "RequestStop") | .activity)) as $stops
	| (map(select(.event == "RequestStart") | .activity)) as $starts
	| ($starts | length) == ($starts | unique | length) and ([$stops[1:-1][] | select(. as $a | $starts | index($a) | not)] | length) <= 4'
json_lines "$work/events.json" '
	(map(select(.event == "RequestStart") | .activity)) as $starts
	| map(select(.event == "Order") | .activity) | all(. as $a | $starts | index($a) | not)'

"$build/spoor" counters -p "$service" --count 2 --format csv >"$work/counters" 2>"$work/said" || fail "spoor counters: $(cat "$work/said")"
for name in requests active duration; do
	grep -q "Service.Requests.*$name" "$work/counters" || fail "spoor counters shows no $name: $(cat "$work/counters")"
done

if [ "$(id -u)" = 0 ]; then
	(cd "$work" && "$build/spoor" diagnose -p "$service" --duration 3 --json >diagnosis.json 2>said) || fail "spoor diagnose: $(cat "$work/said")"
	json "$work/diagnosis.json" '.processes | length == 1 and .[0].pid == ($a | tonumber)' "$service"
fi

# The stock tools of .NET.
program dotnet-trace
dotnet_trace=$program
program dotnet-counters
"$dotnet_trace" collect -p "$service" --providers Service:0x3:5 --duration 00:00:02 -o "$work/dotnet.nettrace" >"$work/said" 2>&1 ||
	fail "dotnet-trace: $(cat "$work/said")"
"$build/spoor" events "$work/dotnet.nettrace" --provider Service >"$work/events"
grep -q 'Service/RequestStop .*status=200' "$work/events" || fail "dotnet-trace has no requests: $(head -n 5 "$work/events")"
"$program" collect -p "$service" --counters Service.Requests --duration 00:00:03 --format csv -o "$work/dotnet.csv" >"$work/said" 2>&1 ||
	fail "dotnet-counters: $(cat "$work/said")"
grep -q 'Service.Requests,requests.*status=200' "$work/dotnet.csv" || fail "dotnet-counters has no requests: $(cat "$work/dotnet.csv")"
grep -q 'Service.Requests,duration' "$work/dotnet.csv" || fail "dotnet-counters has no durations: $(cat "$work/dotnet.csv")"

kill -0 "$service" || fail "the service has ended: $(cat "$work/out")"
kill "$service"
wait "$service" || fail "the service ends with code $?: $(cat "$work/out")"
service=''
