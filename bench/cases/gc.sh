# events of a standalone collector and the proxy, compared with the runtime's collector: --rounds N (7), --only fire|pass|session|allocate|trees|web
rounds=7 only=
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--only) only=$2 ;;
	*) die "gc takes --rounds and --only" ;;
	esac
	shift 2
done
need dotnet
build spoorgcproxy gc_fire gc_pass gcnull gcburst load
cmake --build "$build" --target spoorgc -- --quiet >/dev/null 2>&1 || :
code=0
app=$(tests/gc/fetch "$build" target-10) || code=$?
[ $code = 0 ] || die "$app"
watch=$(tests/gc/fetch "$build" watch) || die "$watch"
rm -f "$out"/gc-*
cp "$build/bench/libgcburst.so" "$app/"

wanted() {
	[ -z "$only" ] || [ "$only" = "$1" ]
}

if wanted fire; then
	echo "# the collector's part of an event, over a mock of the runtime's side; ns"
	"$out/gc_fire" "$app/libclrgc.so" 15 | tee "$out/gc-fire.txt"
fi

# The proxy's share of the web load is computed from the cost and number of its calls, because it is smaller than the variation of the CPU time.
if wanted pass || wanted web; then
	echo "# the cost that the proxy adds to a call, over a collector that does nothing; ns"
	SPOOR_GC_COLLECTOR=$out/libgcnull.so "$out/gc_pass" "$out/libgcnull.so" "$build/gc/libspoorgcproxy.so" 15 | tee "$out/gc-pass.txt"
fi

if wanted session; then
	echo "# an event with a session, in a real process; ns of the firing thread"
	rm -f "$out/gc-ready" "$out/gc-burst.txt"
	start env DOTNET_GCName=libgcburst.so SPOOR_GC_BURST="$out/gc-burst.txt" "$app/Target" wait "$out/gc-ready" >"$out/gc-burst.log"
	for _ in $(seq 100); do
		[ -e "$out/gc-ready" ] && break
		sleep 0.1
	done
	target=$last
	dotnet "$watch" record "$target" "$out/gc-burst.nettrace" 8 1:4
	rm -f "$out/gc-ready"
	wait "$target" || die "the burst failed: $(cat "$out/gc-burst.log")"
	cat "$out/gc-burst.txt"
	dotnet "$watch" facts "$out/gc-burst.nettrace" gc/gc_events.def | grep -E '^(lost|dynamic SpoorBenchFour)'
fi

# alternate NAME COMMAND...: in each round, runs the program under libclrgc.so, the proxy and, if it is built, the reference collector.
alternate() {
	local name=$1 round
	shift
	for round in $(seq "$rounds"); do
		cost "gc-$name-stock" env DOTNET_GCName=libclrgc.so "$@"
		cost "gc-$name-proxy" env DOTNET_GCName=libspoorgcproxy.so "$@"
		[ ! -e "$app/libspoorgc.so" ] || cost "gc-$name-reference" env DOTNET_GCName=libspoorgc.so "$@"
	done
	for kind in stock proxy reference; do
		[ ! -e "$out/gc-$name-$kind.cost" ] || show "gc-$name-$kind"
	done
}

if wanted allocate; then
	alternate allocate "$app/Target" allocate 6000
fi
if wanted trees; then
	alternate trees "$app/Target" trees 18
fi

# web KIND COLLECTOR [LOG]: runs the load and appends the CPU microseconds of the server for a request to $out/gc-web-KIND.cost.
web() {
	local port=$out/gc-web.port before answered
	serve_web gc-web DOTNET_GCPath="$2" SPOOR_GC_LOG="${3:-}"
	"$build/examples/load" "$(cat "$port")" 4 /cpu=2 /alloc=4 /wait=4 >/dev/null
	before=$(ticks "$target")
	"$build/examples/load" "$(cat "$port")" 8 /cpu=2 /alloc=4 /wait=4 >"$out/gc-web.load"
	after=$(ticks "$target")
	answered=$(awk '{ for (i = 2; i <= NF; i++) if ($i == "answered") n += $(i - 1) } END { print n }' "$out/gc-web.load")
	awk -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" -v n="$answered" 'BEGIN { print ticks / hz * 1e6 / n, 0, 0 }' >>"$out/gc-web-$1.cost"
	stop "$target"
}
if wanted web; then
	build_web
	for _ in $(seq "$rounds"); do
		web stock "$app/libclrgc.so"
		web proxy "$app/libspoorgcproxy.so"
	done
	# One run with the log gives the number of calls through the proxy for each request.
	mv "$out/gc-web-proxy.cost" "$out/gc-web-kept.cost"
	web proxy "$app/libspoorgcproxy.so" "$out/gc-web.log"
	mv "$out/gc-web-kept.cost" "$out/gc-web-proxy.cost"
	share=$(awk -v cpu_s="$(awk -v t="$after" -v hz="$(getconf CLK_TCK)" 'BEGIN { print t / hz }')" -v allocation="$(field added_allocation "$out/gc-pass.txt")" \
		-v handle="$(field added_handle "$out/gc-pass.txt")" '
		!/^#/ { allocations += $21 + $22; handles += $28; pauses++ }
		END {
			# A pause costs a dozen reads of the clock, 1.5 us.
			ns = allocations * allocation + handles * handle + pauses * 1500
			printf "# through the proxy in %.1f s of CPU: %d allocations that reached the collector, %d handles, %d pauses: %.2f ms\n", cpu_s, allocations, handles, pauses, ns / 1e6 >"/dev/stderr"
			print ns / 1e9 / cpu_s * 100
		}' "$out/gc-web.log")
	echo "# microseconds of CPU a request: stock $(sort -g "$out/gc-web-stock.cost" | cut -d' ' -f1 | tr '\n' ' '); proxy $(sort -g "$out/gc-web-proxy.cost" | cut -d' ' -f1 | tr '\n' ' ')"
fi

if wanted fire; then
	ratio gc-enabled-test-ns "$(field test_with_loop "$out/gc-fire.txt")" 0.3
	ratio gc-known-event-ns "$(field known_ours "$out/gc-fire.txt")" "$(field known_theirs "$out/gc-fire.txt")"
	ratio gc-dynamic-event-off-ns "$(field dynamic_off "$out/gc-fire.txt")" 30
fi
wanted session && ratio gc-dynamic-event-session-ns "$(field session_dynamic "$out/gc-burst.txt")" 2000
wanted allocate && ratio gc-proxy-allocate-cpu "$(column gc-allocate-proxy 1)" "$(column gc-allocate-stock 1)"
wanted trees && ratio gc-proxy-trees-cpu "$(column gc-trees-proxy 1)" "$(column gc-trees-stock 1)"
if [ -e "$out/gc-trees-reference.cost" ]; then
	ratio gc-reference-trees-cpu "$(column gc-trees-reference 1)" "$(column gc-trees-stock 1)"
fi
wanted web && ratio gc-proxy-web-share-percent "$share" 0.5
wanted web && ratio gc-proxy-web-cpu "$(column gc-web-proxy 1)" "$(column gc-web-stock 1)"
:
