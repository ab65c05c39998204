# libspoor's counters: the cost of adding from one and two threads, compared with one shared atomic number
build counter_add
"$out/counter_add" >"$out/counter_add.txt"
echo "ns a call, CPU time of the calling thread, median of 9 runs of 20 million"
awk '{ printf "%-18s %8.2f alone %8.2f from two threads\n", $1, $2, $3 }' "$out/counter_add.txt"
of() {
	awk -v name="$1" -v column="$2" '$1 == name { print $column }' "$out/counter_add.txt"
}
ratio counter_add_ns_one_thread "$(of counter_add 2)" "$(of shared_atomic 2)"
ratio counter_add_ns_two_threads "$(of counter_add 3)" "$(of shared_atomic 3)"
