#!/bin/sh
# Invalid settings: the sentence of docs/gc.md is printed, and the runtime's own error.
. "$(dirname "$0")/prelude"
target "${SPOOR_GC_VERSIONS%% *}"

# refused NAME SENTENCE HRESULT VARIABLE=VALUE...: the program does not start, and prints both.
refused() {
	name=$1
	sentence=$2
	hresult=$3
	shift 3
	code=0
	env DOTNET_GCName=libspoorgcproxy.so "$@" timeout 60 "$target/Target" collect 1 >"$work/out" 2>&1 || code=$?
	[ $code = 0 ] && wrong "$name: it started"
	grep -qF "$sentence" "$work/out" || wrong "$name: '$sentence' is not in: $(cat "$work/out")"
	grep -qi "$hresult" "$work/out" || wrong "$name: no $hresult in: $(cat "$work/out")"
}

refused "a collector that is not there" "libspoorgcproxy: cannot load the collector:" 0x8007007e SPOOR_GC_COLLECTOR=libnone.so
refused "one at a path that is not there" "/nowhere/libclrgc.so" 0x8007007e SPOOR_GC_COLLECTOR=/nowhere/libclrgc.so
refused "itself" "is this proxy itself" 0x8007007e SPOOR_GC_COLLECTOR=libspoorgcproxy.so
refused "a library that is none" "is no collector: it lacks GC_VersionInfo or GC_Initialize" 0x8007007e SPOOR_GC_COLLECTOR=libSystem.Native.so
refused "an exhausted range" "GC heap initialization failed" 0x8007000e DOTNET_GCHeapHardLimit=0x1000

# The library does not exist: the runtime's message.
DOTNET_GCName=libnone.so "$target/Target" collect 1 >"$work/out" 2>&1 && wrong "a library that is not there: it started"
grep -qi 0x8007007e "$work/out" || wrong "a library that is not there: $(cat "$work/out")"

# A log that cannot be written is reported, and nothing else changes.
SPOOR_GC_LOG=$work/no/such/folder DOTNET_GCName=libspoorgcproxy.so "$target/Target" collect 1 >"$work/out" 2>&1 || wrong "a bad log: $(cat "$work/out")"
grep -q "cannot write SPOOR_GC_LOG '$work/no/such/folder': No such file or directory" "$work/out" || wrong "a bad log: $(cat "$work/out")"
grep -q '^ok ' "$work/out" || wrong "a bad log: $(cat "$work/out")"

# %p in the name.
SPOOR_GC_LOG=$work/log-%p DOTNET_GCName=libspoorgcproxy.so "$target/Target" collect 1 >"$work/out" 2>&1 || wrong "%p: $(cat "$work/out")"
ls "$work"/log-[0-9]* >/dev/null 2>&1 || wrong "%p in SPOOR_GC_LOG: no log: $(ls "$work")"

# An unknown major version: a warning or a refusal. No runtime has it, so the test calls the library directly.
for library in "$build"/gc/libspoorgc*.so; do
	for setting in warn refuse; do
		SPOOR_GC_UNKNOWN=$setting SPOOR_GC_COLLECTOR=$target/libclrgc.so "$build/tests/gc/gc_version" "$library" 99 >"$work/out" 2>&1 ||
			wrong "${library##*/} $setting: $(cat "$work/out")"
		grep -q 'interface version 99 of this runtime is not known' "$work/out" || wrong "${library##*/} $setting: $(cat "$work/out")"
		[ $setting = warn ] && expected='answers 5\.' || expected='answers [0-4]\.'
		grep -q "$expected" "$work/out" || wrong "${library##*/} $setting: $(cat "$work/out")"
	done
done
end
