#!/bin/sh
# graphite.sh BUILD-FOLDER: examples/graphite with a real carbon, which is stopped while events are fired, then killed and started again. Carbon has received as many lines as the
# example has sent; lines without room are counted; the program's threads do not wait. Skipped without carbon (Debian: graphite-carbon).
set -eu
build=$(realpath "$1")
# Use the interpreter that the carbon script names, because it has the modules.
python=$(sed -n '1s/^#! *//p' "$(command -v carbon-cache || echo /dev/null)")
[ -n "$python" ] && "$python" -c 'import whisper' 2>/dev/null || {
	echo "skipped: carbon is not installed (Debian: graphite-carbon)"
	exit 77
}
work=$(mktemp -d)
carbon=''
sender=''

end() {
	[ -z "$sender" ] || kill "$sender" 2>/dev/null || :
	[ -z "$carbon" ] || { kill -CONT "$carbon" && kill -9 "$carbon"; } 2>/dev/null || :
	wait
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM HUP

fail() {
	echo "FAILED: $*"
	tail -n 5 "$work/carbon.out" || :
	exit 1
}

# Free ports.
set -- $("$python" -c '
import socket
held = [socket.socket() for _ in range(3)]
for s in held: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])')
port=$1
mkdir "$work/conf" "$work/log" "$work/data"
cat >"$work/conf/carbon.conf" <<END
[cache]
STORAGE_DIR = $work/data/
LOCAL_DATA_DIR = $work/data/
CONF_DIR = $work/conf/
LOG_DIR = $work/log/
PID_DIR = $work/
DATABASE = whisper
MAX_CACHE_SIZE = inf
MAX_UPDATES_PER_SECOND = 500
MAX_CREATES_PER_MINUTE = inf
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = $port
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = $2
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = $3
ENABLE_TAGS = False
# Carbon writes its own metrics once an interval, and never twice within a second.
CARBON_METRIC_INTERVAL = 10
END
cat >"$work/conf/storage-schemas.conf" <<END
[all]
pattern = .*
retentions = 1s:1h
END

start_carbon() {
	carbon-cache --config="$work/conf/carbon.conf" --nodaemon --pidfile="$work/pid$1" --logdir="$work/log" --logfile=- start >>"$work/carbon.out" 2>&1 &
	carbon=$!
	for _ in $(seq 300); do
		"$python" -c "import socket; socket.create_connection(('127.0.0.1', $port)).close()" 2>/dev/null && return
		kill -0 $carbon 2>/dev/null || fail "carbon does not start"
		sleep 0.1
	done
	fail "carbon does not listen"
}

# send OUT EVENTS CLOSE-SECONDS
send() {
	timeout 200 "$build/examples/graphite" 127.0.0.1 "$port" "$2" "$3" >"$work/$1" 2>&1 &
	sender=$!
	for _ in $(seq 600); do
		grep -q '^fired' "$work/$1" && return
		sleep 0.1
	done
	fail "the program does not fire: $(cat "$work/$1")"
}

ended() {
	wait "$sender" || fail "examples/graphite: $(cat "$work/$1")"
	sender=''
}

said() {
	sed -n "s/^$2 \([0-9]*\)$/\1/p" "$work/$1"
}

# Prints the sum of the values of one file, or the last value.
ask() {
	"$python" - "$work/data/$1" "$2" <<'END'
import sys, time, whisper
(_, values) = whisper.fetch(sys.argv[1], 0, time.time() + 60)
values = [v for v in values if v is not None]
print("%g" % ((sum(values) if sys.argv[2] == "sum" else values[-1]) if values else -1))
END
}

last_is() {
	for _ in $(seq 300); do
		[ ! -e "$work/data/$1" ] || [ "$(ask "$1" last)" != "$2" ] || return 0
		sleep 0.1
	done
	fail "carbon has $(ask "$1" last) in $1, not $2"
}

# 1. A Graphite that keeps up: everything arrives.
start_carbon 1
send calm 500 20
ended calm
[ "$(said calm events)" = 500 ] && [ "$(said calm 'events lost')" = 0 ] && [ "$(said calm 'lines lost')" = 0 ] && [ "$(said calm connections)" = 1 ] || fail "$(cat "$work/calm")"
[ "$(said calm lines)" -gt 1000 ] || fail "no counters among: $(cat "$work/calm")"
last_is example/Shop/Order/Number.wsp 500
last_is example/Shop/Order/Price.wsp 250
last_is example/Shop/Orders/orders.wsp 500
for _ in $(seq 300); do
	[ ! -e "$work/data/example/Shop/Orders/price/p99.wsp" ] || break
	sleep 0.1
done
[ -e "$work/data/example/Shop/Orders/price/p99.wsp" ] || fail "no quantiles: $(find "$work/data/example")"

# 2. A Graphite that does not read: the program continues to fire, its memory is bounded, lines without room are counted, the rest arrives when Graphite reads again.
kill -STOP "$carbon"
send stopped 200000 60
kill -CONT "$carbon"
ended stopped
lost=$(said stopped 'events lost')
[ "$lost" -gt 0 ] || fail "200000 events found room in 1 MiB: $(cat "$work/stopped")"
[ $(($(said stopped events) + lost)) = 200000 ] || fail "events + lost is not fired: $(cat "$work/stopped")"
[ "$(said stopped 'lines lost')" = 0 ] || fail "lines were lost although there was time: $(cat "$work/stopped")"
[ "$(said stopped lines)" -ge $((2 * $(said stopped events))) ] || fail "an event has two numbers: $(cat "$work/stopped")"
wanted=$(($(said calm lines) + $(said stopped lines)))
got=0
for _ in $(seq 120); do
	for file in "$work"/data/carbon/agents/*/metricsReceived.wsp; do
		[ ! -e "$file" ] || got=$(ask "${file#"$work/data/"}" sum)
	done
	[ "$(printf '%.0f' "$got")" != "$wanted" ] || break
	sleep 1
done
[ "$(printf '%.0f' "$got")" = "$wanted" ] || fail "carbon received $got lines, the example sent $wanted"

# 3. A Graphite that starts later.
kill -9 "$carbon"
wait "$carbon" 2>/dev/null || :
send late 700 60
start_carbon 2
ended late
[ "$(said late events)" = 700 ] && [ "$(said late 'lines lost')" = 0 ] && [ "$(said late connections)" -ge 1 ] || fail "$(cat "$work/late")"
last_is example/Shop/Order/Number.wsp 700

# 4. A Graphite that never starts: the program ends after its time limit, and counts the lost lines.
kill -9 "$carbon"
wait "$carbon" 2>/dev/null || :
carbon=''
send never 300 1
ended never
[ "$(said never events)" = 300 ] && [ "$(said never lines)" = 0 ] && [ "$(said never 'lines lost')" -ge 600 ] || fail "$(cat "$work/never")"
echo "carbon received $wanted lines of $wanted; $lost of 200000 events had no room while it was stopped"
