#!/bin/sh
# musl.sh: libspoor with musl instead of glibc, as a shared library and in a static program. Skipped without musl-gcc (Debian: musl-tools).
set -eu
top=$(realpath "$(dirname "$0")/../..")
command -v musl-gcc >/dev/null || {
	echo "skipped: musl-gcc is not installed (Debian: musl-tools)"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# musl-gcc uses the headers of musl only; links to the kernel's are added.
mkdir "$work/kernel"
for folder in linux asm-generic asm; do
	for place in /usr/include "/usr/include/$(gcc -print-multiarch 2>/dev/null || :)"; do
		[ ! -d "$place/$folder" ] || ln -sfn "$place/$folder" "$work/kernel/$folder"
	done
done
[ -e "$work/kernel/linux/futex.h" ] || {
	echo "skipped: the kernel's headers are not installed (Debian: linux-libc-dev)"
	exit 77
}
cd "$work"
for file in "$top"/lib/*/*.c; do
	case $file in
	*_direct.c | *_windows.c | *_macos.c | */etw_*.c) continue ;; # for other systems
	esac
	musl-gcc -std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DSPOOR_BUILDING -O1 -fPIC -fno-omit-frame-pointer -fno-optimize-sibling-calls -ftls-model=initial-exec \
		-fvisibility=hidden -Wall -Wextra -Werror -I"$top/include" -I"$top" -idirafter kernel -c "$file" -o "$(basename "$file" .c).o"
done
musl-gcc -shared -Wl,-z,nodelete -Wl,-z,defs -Wl,--version-script="$top/lib/libspoor.map" -Wl,-soname,libspoor.so.0 ./*.o -o libspoor.so.0
# adopter.c has a function with the name of one of the library: the object that programs get exports only spoor_ names.
ld -r -o whole.o ./*.o
objcopy --wildcard --keep-global-symbol='spoor_*' --keep-global-symbol='__start_*' --keep-global-symbol='__stop_*' whole.o
musl-gcc -std=c11 -D_GNU_SOURCE -I"$top/include" "$top/tests/lib/adopter.c" whole.o -static -o static
timeout 60 ./static
musl-gcc -std=c11 -D_GNU_SOURCE -I"$top/include" "$top/tests/lib/adopter.c" libspoor.so.0 -Wl,-rpath,"$work" -o shared
timeout 60 ./shared
