#!/bin/sh
# spoor counters for other programs: the page that Prometheus reads, and the values that Graphite's collector has stored.
. "$(dirname "$(realpath "$0")")/../prelude"
. "$here/programs/managed/prelude"

clean_up_more() {
	[ ! -e "$scratch/carbon/carbon.pid" ] || kill "$(cat "$scratch/carbon/carbon.pid")" 2>/dev/null
}

begin shop meters 600000
mine='--counters Shop.Orders,Shop-Counters'

# Prometheus.
if command -v curl >/dev/null; then
	start server "$spoor" counters -p $shop $mine --refresh-interval 0.2 --prometheus 127.0.0.1:0 2>server.err
	until_true grep -q '^metrics' server.err || fail "no server"
	url=$(sed -n 's/^metrics *//p' server.err)
	fetched() {
		curl -sf "$url" >page && grep -q '^shop_orders_total' page && grep -q '^shop_duration_seconds{' page
	}
	until_true fetched || fail "no page: $(cat server.err)"
	has page '^# TYPE shop_orders_total counter$'
	has page '^shop_orders_total\{process="Managed",pid="[0-9]+",meter="Shop\.Orders",meter_version="1\.2",kind="pen, \\"blue\\"",region="north"\} [0-9]+$'
	has page '^shop_duration_seconds\{.*,quantile="0\.99",region="north"\} 0\.0099'
	has page '^shop_duration_seconds_count\{.*\} [0-9]+$'
	has page '^shop_counters_order_size'
	[ "$(curl -s -o /dev/null -w '%{http_code}' "${url%/metrics}/")" = 404 ] || fail "another page than /metrics"
	[ "$(curl -s -X POST -o /dev/null -w '%{http_code}' "$url")" = 405 ] || fail "POST"
	if command -v promtool >/dev/null; then
		promtool check metrics <page >promtool.out 2>&1 || grep -q 'error' promtool.out && fail "promtool: $(cat promtool.out)"
	fi
	kill $server
else
	echo "the page for Prometheus was not tested: no curl here"
fi

# Graphite: the values that the collector has stored.
if command -v carbon-cache >/dev/null && command -v whisper-fetch >/dev/null; then
	mkdir -p carbon/whisper carbon/log
	port=$((20000 + $$ % 20000))
	cat >carbon/carbon.conf <<END
[cache]
STORAGE_DIR = $scratch/carbon/
LOCAL_DATA_DIR = $scratch/carbon/whisper/
CONF_DIR = $scratch/carbon/
LOG_DIR = $scratch/carbon/log/
PID_DIR = $scratch/carbon/
MAX_CREATES_PER_MINUTE = inf
MAX_UPDATES_PER_SECOND = 5000
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = $port
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = $((port + 1))
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = $((port + 2))
ENABLE_TAGS = False
END
	printf '[all]\npattern = .*\nretentions = 1s:10m\n' >carbon/storage-schemas.conf
	# The collector starts later: the first lines wait for it.
	start sender "$spoor" counters -p $shop $mine --graphite 127.0.0.1:$port 2>sender.err
	until_true grep -q 'Connection refused' sender.err || fail "no message about a missing collector"
	carbon-cache --config="$scratch/carbon/carbon.conf" --pidfile="$scratch/carbon/carbon.pid" --logdir="$scratch/carbon/log" start >carbon/out 2>&1 ||
		fail "carbon does not start: $(tail -n 3 carbon/out)"
	stored=carbon/whisper/spoor/$(hostname | tr . _)/Managed/Shop_Orders/shop
	has_temperature() {
		whisper-fetch "$stored/temperature/north.wsp" 2>/dev/null | grep -q '21\.5'
	}
	until_true has_temperature || fail "carbon has: $(find carbon/whisper -name '*.wsp' | head -n 20)"
	has sender.err 'takes nothing: Connection refused'
	has_all() {
		for name in temperature orders/book duration; do
			[ -e "$stored/$name" ] || [ -e "$stored/$name.wsp" ] || return 1
		done
		whisper-fetch "$stored/duration/north/p99.wsp" | grep -q '0\.00999'
	}
	until_true has_all || fail "carbon has other values: $(find carbon/whisper -name '*.wsp' | head -n 20)"
	kill $sender
	wait $sender 2>/dev/null
	kill "$(cat carbon/carbon.pid)"
else
	echo "Graphite was not tested: no carbon-cache here (package graphite-carbon)"
fi
exit 0
