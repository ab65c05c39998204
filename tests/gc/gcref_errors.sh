#!/bin/sh
# Errors at the start of the reference collector: docs/gc-collector.md, "Errors". Out of memory within a limit is tests/gc/suite.sh.
. "$(dirname "$0")/prelude"
. "$here/gcref_prelude"

# refused NAME PATTERN COMMAND...: the command does not start, and prints the reason.
refused() {
	name=$1
	pattern=$2
	shift 2
	if timeout 60 "$@" >"$work/out" 2>&1; then
		wrong "$name: it started"
		return
	fi
	grep -qE "$pattern" "$work/out" || wrong "$name: it does not say '$pattern' but: $(head -n 3 "$work/out" | tr '\n' ' ')"
}

for version in $SPOOR_GC_VERSIONS; do
	publish "$version"
	use=DOTNET_GCName=libspoorgc.so
	refused ".NET $version: a range larger than any" 'cannot reserve [0-9]+ MB of address space.*DOTNET_GCRegionRange' \
		env $use DOTNET_GCRegionRange=0x1000000000000 "$suite/Suite" list
	refused ".NET $version: no address space" 'cannot reserve 128 MB of address space.*ulimit -v' \
		sh -c "ulimit -v 350000; exec env $use '$suite/Suite' list"
	refused ".NET $version: a percentage beyond 100" 'GCHeapHardLimitPercent is 101.*Set it to 1 to 100' \
		env $use DOTNET_GCHeapHardLimitPercent=0x65 "$suite/Suite" list
	# .NET 8 has its own error numbers.
	refused ".NET $version: no such file" '0x8007007E|0x80004005|GC initialization failed|GC heap initialization failed' \
		env DOTNET_GCName=libspoornone.so "$suite/Suite" list
	# Less address space than the 256 GB that it reserves by default: it uses a smaller range.
	sh -c "ulimit -v 8000000; exec env $use '$suite/Suite' run Shape.Strings" >"$work/out" 2>&1 || wrong ".NET $version: 8 GB of address space: $(head -n 3 "$work/out")"
	# A limit that is too low for the program: the runtime stops, and prints the reason.
	refused ".NET $version: a limit of 1 MB" '[Oo]ut of memory|OutOfMemory|0x8007000E' env $use DOTNET_GCHeapHardLimit=0x100000 "$suite/Suite" run Shape.Strings
done
end
