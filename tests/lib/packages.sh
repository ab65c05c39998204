#!/bin/sh
# packages.sh COMPILER: the library is built, packed and used without the program's dependencies: libspoor0 has the shared library alone, libspoor-dev what
# builds need, and a program that is built with the unpacked packages, wherever they are, runs. Packages of several architectures fit beside each other, and
# dpkg-shlibdeps names libspoor0 for a program.
set -eu
cc=$(command -v "$1")
top=$(realpath "$(dirname "$0")/../..")
for tool in dpkg-deb dpkg-shlibdeps dpkg-architecture cpack pkg-config ninja; do
	command -v $tool >/dev/null || {
		echo "skipped: $tool is not installed"
		exit 77
	}
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
	echo "FAILED: $*"
	exit 1
}

CC=$cc cmake -S "$top" -B build -G Ninja -DSPOOR_LIBRARY_ONLY=ON -DCMAKE_INSTALL_PREFIX=/usr >log 2>&1 || fail "$(tail -n 20 log)"
if grep -qi 'lzma\|zstd\|iberty' build/CMakeCache.txt; then
	fail "the library alone looks for libraries of the program"
fi
cmake --build build -j2 >log 2>&1 || fail "$(tail -n 20 log)"
(cd build && cpack -G DEB >../log 2>&1) || fail "$(tail -n 20 log)"
set -- build/libspoor0_*.deb build/libspoor-dev_*.deb
[ $# = 2 ] && [ -e "$1" ] && [ -e "$2" ] || fail "packages: $(ls build)"

dpkg-deb --contents "$1" >files
grep -q 'libspoor\.so\.0 ->' files || fail "libspoor0 has no libspoor.so.0: $(cat files)"
if grep -q '\.h$\|\.pc$\|libspoor\.so ->\|\.a$' files; then
	fail "libspoor0 has files for builds: $(cat files)"
fi
dpkg-deb --contents "$2" >files
for name in include/spoor/spoor.h include/spoor/spoor.hpp pkgconfig/spoor.pc cmake/spoor/spoorConfig.cmake libspoor.a 'libspoor.so ->' man7/libspoor.7 man3/spoor_session_start_file.3 man3/spoor_counter_add.3 \
	doc/libspoor-dev/tutorial.md; do
	grep -q "$name" files || fail "libspoor-dev has no $name: $(cat files)"
done
dpkg-deb --field "$2" Depends | grep -q 'libspoor0 (= ' || fail "libspoor-dev does not depend on its libspoor0: $(dpkg-deb --field "$2" Depends)"
dpkg-deb --field "$1" Depends | grep -q libc6 || fail "libspoor0 names no libc: $(dpkg-deb --field "$1" Depends)"

# Packages of several architectures fit beside each other: libraries are in the folder of the architecture, and other files are the same.
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
for package in "$1" "$2"; do
	[ "$(dpkg-deb --field "$package" Multi-Arch)" = same ] || fail "$package: Multi-Arch is '$(dpkg-deb --field "$package" Multi-Arch)'"
	if dpkg-deb --contents "$package" | grep ' \./usr/lib/' | grep -v "/usr/lib/\($triplet/\|\$\)"; then
		fail "$package has files in /usr/lib that are not in $triplet"
	fi
done

mkdir elsewhere
dpkg-deb --extract "$1" elsewhere
dpkg-deb --extract "$2" elsewhere
folder=$(dirname "$(find "$work/elsewhere" -name libspoor.so.0)")
cat >program.c <<'END'
#include <spoor/spoor.h>
SPOOR_PROVIDER(shop, "Shop")
SPOOR_EVENT(shop, order, 1, SPOOR_INFO, 0x1, (u32, number))
int main(void)
{
	shop_order(1);
	return spoor_start(NULL) || spoor_provider_register(&shop);
}
END
# shellcheck disable=SC2046 # a list of words
"$cc" program.c $(PKG_CONFIG_PATH=$folder/pkgconfig pkg-config --cflags --libs spoor) -o program || fail "pkg-config: $(PKG_CONFIG_PATH=$folder/pkgconfig pkg-config --cflags --libs spoor)"
LD_LIBRARY_PATH=$folder ./program || fail "the program ends with $?"

# dpkg-shlibdeps finds the package that the program needs.
mkdir -p source/debian
printf 'Source: program\n\nPackage: program\nArchitecture: any\n' >source/debian/control
dpkg-deb --raw-extract "$1" source/libspoor0
(cd source && dpkg-shlibdeps -O -Slibspoor0 ../program) >needs 2>log || fail "dpkg-shlibdeps: $(cat log)"
grep -q '[:= ]libspoor0 (>= 0\.[0-9]*)' needs || fail "dpkg-shlibdeps names: $(cat needs)"

mkdir user
cp program.c user/
printf 'cmake_minimum_required(VERSION 3.20)\nproject(user C)\nfind_package(spoor REQUIRED)\nadd_executable(program program.c)\ntarget_link_libraries(program spoor::static)\n' >user/CMakeLists.txt
CC=$cc cmake -S user -B built -G Ninja -DCMAKE_PREFIX_PATH="$work/elsewhere/usr" >log 2>&1 && cmake --build built >>log 2>&1 || fail "find_package: $(tail -n 20 log)"
./built/program || fail "the program of find_package ends with $?"
