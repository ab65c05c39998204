#!/bin/sh
# Stacks are those of libdwfl, frame by frame: a program is stopped at random places, eu-stack walks its stack there, and so did the recorder when it left the CPU.
. "$(dirname "$(realpath "$0")")/../prelude"
is_root || skip "not root: context switches have no stacks"
command -v eu-stack >/dev/null || skip "there is no eu-stack (elfutils)"
[ "$(uname -m)" = x86_64 ] || skip "eu-stack is compared on x86-64 only"
stops=25

is_stopped() {
	grep -q '^State:.*[Tt] (' /proc/"$1"/status
}

# is_sampled: the recording has a sample, so the images of the program have been read.
is_sampled() {
	"$spoor" events x.nettrace --event cpu --json >samples.json 2>/dev/null && [ "$(value_lines samples.json 'any(.[]; .event == "cpu")')" = true ]
}

# compare NAME MOST command...: at most MOST of the stacks differ. eu-stack walks some stacks not at all, most of them on a busy machine: these are left out.
compare() {
	what=$1 most=$2
	shift 2
	start program "$@"
	: >theirs
	rm -f x.nettrace
	start recorder "$spoor" record -q --off-cpu --no-symbols --no-dotnet --call-graph dwarf -p $program -o x.nettrace
	until_true is_sampled || fail "no recording of $what"
	for _ in $(seq $stops); do
		# Somewhere in its work. An address on the stack is what eu-stack guesses where it has no table: in a PLT stub of a static program.
		before=$(cut -d' ' -f1 /proc/$program/schedstat)
		until_true ran_since $program "$before" || fail "$what does not run"
		kill -STOP $program
		until_true is_stopped $program || fail "$what does not stop"
		eu-stack -p $program 2>>eu.err | awk '/^#/ && $3 == "" && $2 ~ /^0x00007ff/ { exit } /^#/ { printf "%s%s", n++ ? " " : "", $2 } END { print "" }' >>theirs
		kill -CONT $program
	done
	kill -INT $recorder
	wait $recorder || fail "the recording of $what"
	kill -9 $program
	wait $program 2>/dev/null
	# 4 and 5: stopped by a signal, and by eu-stack
	"$spoor" events x.nettrace --event cswitch --json | tee x.json | value_lines /dev/stdin '.[] | select(.fields.State == 4 or .fields.State == 5)
		| [(.stack // [])[] | select(.module != "kernel").address | "0x" + ("0000000000000000" + ltrimstr("0x"))[-16:]] | join(" ")' | sort -u >ours
	wrong=0
	grep . theirs >walked
	while read -r stack; do
		# eu-stack may end earlier, where there is no table
		grep -q "^$stack\\( \\|\$\\)" ours || { wrong=$((wrong + 1)) && echo "$stack" >>differ; }
	done <walked
	echo "$what: $(wc -l <walked) of $stops stacks, $(awk '{ n += NF } END { print n + 0 }' walked) frames, $wrong differ"
	[ "$(wc -l <walked)" -ge $((stops / 5)) ] || fail "eu-stack walks too few stacks of $what: $(cat eu.err)"
	[ "$(awk '{ n += NF } END { print n + 0 }' walked)" -ge $(($(wc -l <walked) * 3)) ] || fail "eu-stack walks only the first frames of $what: $(cat eu.err)"
	[ $wrong -le "$most" ] || fail "$what: $wrong of $stops differ, such as $(tail -n 1 differ), among $(head -n 3 ours)"
}

# ran_since PID NS: it has used 3 ms of CPU time more.
ran_since() {
	[ "$(cut -d' ' -f1 /proc/"$1"/schedstat)" -gt $(($2 + 3000000)) ]
}

compare "C" 0 "$(dirname "$spoor")/tests/unframed" sort 600000
if command -v gcc >/dev/null && gcc -O2 -fomit-frame-pointer -static -o static "$here/unframed.c" 2>/dev/null; then
	compare "static C" 0 ./static sort 600000
fi
# While an exception is thrown, libgcc replaces the saved registers of its own frame.
if command -v g++ >/dev/null && g++ -O2 -fomit-frame-pointer -o exceptions "$here/exceptions.cc" 2>/dev/null; then
	compare "C++ with exceptions" 1 ./exceptions loop
fi
