#!/bin/sh
# install.sh BUILD-FOLDER COMPILER: programs can be built and run with the files that `make install DESTDIR=` installs: pkg-config, find_package, the
# static library.
set -eu
build=$(realpath "$1")
cc=$2
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*"
	exit 1
}

for component in libspoor0 libspoor; do
	DESTDIR=$work/root cmake --install "$build" --prefix /usr/local --component $component >"$work/log" || fail "$(cat "$work/log")"
done
root=$work/root/usr/local
library=$(dirname "$(find "$root" -name libspoor.so)")
for file in "$library/libspoor.so.0" "$library/libspoor.a" "$library/pkgconfig/spoor.pc" "$library/cmake/spoor/spoorConfig.cmake" \
	"$root/include/spoor/spoor.h" "$root/include/spoor/event_macros.h" "$root/include/spoor/event_lists.h" "$root/include/spoor/event_payload.h" "$root/include/spoor/spoor.hpp" "$root/share/man/man7/libspoor.7" "$root/share/man/man3/spoor_start.3"; do
	[ -e "$file" ] || fail "not installed: $file; what is: $(find "$root" -type f)"
done
[ ! -e "$root/include/lib" ] || fail "the inside was installed"
readelf -d "$library/libspoor.so" | grep -q 'SONAME.*libspoor\.so\.0' || fail "the soname is not libspoor.so.0"
readelf -d "$library/libspoor.so" | grep -q NODELETE || fail "the library may be unloaded"

if command -v pkg-config >/dev/null; then
	# The tree is in another place than its prefix, as in a package that is being built.
	ask() {
		PKG_CONFIG_PATH=$library/pkgconfig pkg-config --define-variable=prefix="$root" "$@" spoor
	}
	[ "$(ask --modversion)" = "$(sed -n 's/^project(spoor VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt")" ] || fail "the version of spoor.pc"
	# shellcheck disable=SC2046 # lists of words
	"$cc" "$here/adopter.c" $(ask --cflags --libs) -Wl,-rpath,"$library" -o "$work/shared"
	timeout 60 "$work/shared"
	# shellcheck disable=SC2046
	"$cc" "$here/adopter.c" $(ask --cflags) "$library/libspoor.a" $(ask --static --libs-only-other --libs-only-l | sed 's/-lspoor//') -o "$work/fixed"
	timeout 60 "$work/fixed"
	readelf -d "$work/fixed" | grep -q libspoor && fail "the static program asks for the shared library"
else
	echo "not tried: pkg-config is not installed"
fi

mkdir "$work/project"
cp "$here/adopter.c" "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(adopter LANGUAGES C)
find_package(spoor 0.1 REQUIRED)
add_executable(shared adopter.c)
target_link_libraries(shared PRIVATE spoor::spoor)
add_executable(fixed adopter.c)
target_link_libraries(fixed PRIVATE spoor::static)
END
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$root" >"$work/log" 2>&1 || fail "find_package: $(cat "$work/log")"
cmake --build "$work/project/build" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
timeout 60 "$work/project/build/shared"
timeout 60 "$work/project/build/fixed"
sed -i 's/spoor 0.1/spoor 9.0/' "$work/project/CMakeLists.txt"
! cmake -S "$work/project" -B "$work/project/newer" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$root" >/dev/null 2>&1 || fail "find_package(spoor 9.0) is content with this version"

# spoor_generate_events(): the events of a manifest are compiled into a target, again when the manifest changes, and not otherwise.
spoor=$build/spoor
if [ -x "$spoor" ]; then
	mkdir "$work/events"
	cp "$here/../data/manifest/shop.man" "$work/events"
	cat >"$work/events/main.c" <<'END'
#include "acmeshop.h"
int main(void)
{
	acmeshop_OrderTaken();
	return spoor_provider_register(&acmeshop);
}
END
	cat >"$work/events/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(events LANGUAGES C)
find_package(spoor 0.1 REQUIRED)
add_executable(main main.c)
spoor_generate_events(main shop.man)
target_link_libraries(main PRIVATE spoor::static)
END
	for generator in Ninja 'Unix Makefiles'; do
		case $generator in
		Ninja) command -v ninja >/dev/null || continue ;;
		*) command -v make >/dev/null || continue ;;
		esac
		rm -rf "$work/events/build"
		cmake -G "$generator" -S "$work/events" -B "$work/events/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$root" -DSPOOR_PROGRAM="$spoor" >"$work/log" 2>&1 ||
			fail "spoor_generate_events: $(cat "$work/log")"
		cmake --build "$work/events/build" >"$work/log" 2>&1 || fail "$generator: $(cat "$work/log")"
		timeout 60 "$work/events/build/main" || fail "the program with generated events ($generator)"
		cmake --build "$work/events/build" >"$work/log" 2>&1 || fail "$generator again: $(cat "$work/log")"
		! grep -q 'Building C\|Generating' "$work/log" || fail "$generator makes the events again: $(cat "$work/log")"
		sed -i 's/OrderPacked/OrderBoxed/' "$work/events/shop.man"
		cmake --build "$work/events/build" >"$work/log" 2>&1 || fail "$generator after a change: $(cat "$work/log")"
		grep -q OrderBoxed "$work/events/build/main_events/acmeshop.h" || fail "$generator does not see that the manifest changed"
		sed -i 's/OrderBoxed/OrderPacked/' "$work/events/shop.man"
	done
fi
