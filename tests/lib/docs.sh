#!/bin/sh
# docs.sh BUILD-FOLDER COMPILER PAGE: builds and runs the code blocks of a page of docs/libspoor, against an installed libspoor.
#
#   ```c NAME.c    a whole file; so is ```cpp NAME.cc
#   ```sh          commands, run in order; `cc` is COMPILER
#   ```text        the expected output of the previous commands
#   ```console     not run
set -eu
build=$(realpath "$1")
compiler=$(command -v "$2")
page=$(realpath "$3")
command -v pkg-config >/dev/null || {
	echo "skipped: pkg-config is not installed"
	exit 77
}
if grep -q '^```cpp' "$page" && ! command -v c++ >/dev/null; then
	echo "skipped: no C++ compiler"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for component in libspoor0 libspoor; do
	cmake --install "$build" --prefix "$work/root" --component $component >"$work/log" || {
		cat "$work/log"
		exit 1
	}
done
library=$(dirname "$(find "$work/root" -name libspoor.so)")
export PKG_CONFIG_PATH="$library/pkgconfig" LD_LIBRARY_PATH="$library" PATH="$work/bin:$PATH"
mkdir "$work/page" "$work/bin"
printf '#!/bin/sh\nexec %s -Wall -Wextra -Werror "$@"\n' "$compiler" >"$work/bin/cc"
chmod +x "$work/bin/cc"
cd "$work/page"

# Each block becomes a file; `steps` names them in order.
awk -v steps="$work/steps" -v blocks="$work/block" '
	/^```/ && !kind {
		kind = $1 == "```" ? "console" : substr($1, 4)
		name = $2
		count++
		file = kind ~ /^c(pp)?$/ && name != "" ? name : blocks "." count
		printf "" >file
		print kind, file >>steps
		next
	}
	/^```/ { close(file); kind = ""; next }
	kind { print >>file }
	END { if (kind) { print "a block does not end" >"/dev/stderr"; exit 1 } }
' "$page"
ran=0
touch "$work/steps"
while read -r kind file; do
	case $kind in
	c | cpp | console) ;;
	sh)
		timeout 60 sh -e "$file" >"$work/said" 2>&1 </dev/null || {
			echo "FAILED: $(cat "$file")"
			cat "$work/said"
			exit 1
		}
		ran=$((ran + 1))
		;;
	text)
		diff -u "$file" "$work/said" || {
			echo "FAILED: $page promises other words"
			exit 1
		}
		;;
	*)
		echo "FAILED: a block of $page is '$kind': c, cpp, sh, text or console"
		exit 1
		;;
	esac
done <"$work/steps"
[ $ran -gt 0 ] || {
	echo "FAILED: $page has nothing to run"
	exit 1
}
echo "$ran steps"
