#!/bin/sh
# json_test.sh: the checks of tests/json fail when the filter is not true, and when the file is missing, empty, truncated or has more values than one.
set -u
here=$(dirname "$(realpath "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "failed as it should: $*"
	exit 1
}

. "$here/json"

passes() {
	("$@") >out 2>&1 || { echo "FAILED: this check should pass: $*" && cat out && exit 1; }
}

fails() {
	! ("$@") >out 2>&1 || { echo "FAILED: this check should fail: $*" && exit 1; }
	grep -q '^failed as it should: ' out || { echo "FAILED: another failure: $*" && cat out && exit 1; }
}

echo '{"name": "a \"b\"", "count": 3, "rows": [{"id": 1}, {"id": 2}]}' >one
printf '{"id": 1}\n{"id": 2}\n' >lines
head -c 20 one >truncated
printf '{"id": 1}\n{"id": ' >cut
: >empty

passes json one '.count == 3'
passes json one '.name == $a and .count == ($b | tonumber)' 'a "b"' 3
passes json one 'any(.rows[]; .id == 2)'
fails json one '.count == 4'
fails json one '.count'
fails json one '.none'
fails json one '.count ==='
fails json one '.count | startswith("3")'
fails json one '.name == $a' 'a b'
fails json lines '.id > 0'
for file in truncated cut empty none; do
	fails json $file 'true'
	fails json $file 'all(.rows[]; .id > 0)'
	fails json_lines $file 'true'
	fails json_lines $file 'all(.[]; .id > 0)'
done

passes json_lines lines 'length == 2 and all(.[]; .id > 0)'
fails json_lines lines 'any(.[]; .id == 3)'
fails json_lines lines '.[].id > 0'

[ "$(value one .name)" = 'a "b"' ] || { echo "FAILED: a string has quotes" && exit 1; }
[ "$(value lines .id | tr '\n' ' ')" = '1 2 ' ] || { echo "FAILED: not every value of a file is filtered" && exit 1; }
[ "$(value_lines lines 'map(.id + ($a | tonumber)) | add' 10)" = 23 ] || { echo "FAILED: the values of a file are not in one array" && exit 1; }
