# the reference collector compared with the runtime's, on binary trees: --rounds N (5), --depths "A B..." (18 20)
rounds=5 depths='18 20'
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 ;;
	--depths) depths=$2 ;;
	*) die "gcref takes --rounds and --depths" ;;
	esac
	shift 2
done
need dotnet
build spoorgc
code=0
suite=$(tests/gc/fetch "$build" suite-10) || code=$?
[ $code = 0 ] || die "$suite"
rm -f "$out"/gcref-*.cost
for depth in $depths; do
	for _ in $(seq "$rounds"); do
		cost "gcref-$depth" env DOTNET_GCName=libspoorgc.so "$suite/Suite" trees "$depth"
		cost "gcref-$depth-peer" "$suite/Suite" trees "$depth"
	done
	# Both runs must build the same trees.
	cmp -s "$out/gcref-$depth.log" "$out/gcref-$depth-peer.log" || die "the trees of depth $depth differ"
	show "gcref-$depth"
	show "gcref-$depth-peer"
done
for depth in $depths; do
	ratio "gcref-trees-$depth-cpu-s" "$(column "gcref-$depth" 1)" "$(column "gcref-$depth-peer" 1)"
done
