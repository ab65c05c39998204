#!/bin/sh
# The static spoor is one file under 4.1 MB that runs in an empty root, without libraries, shell and /tmp. The preset `static` builds it; SPOOR_STATIC names another.
. "$(dirname "$(realpath "$0")")/../prelude"

is_root || skip "chroot needs root"
top=$(realpath "$here/../..")
static=${SPOOR_STATIC:-$top/build-static/spoor}
[ -x "$static" ] || skip "no static spoor here: cmake --preset static && cmake --build --preset static"
[ -z "$(find "$top/src" -newer "$static" -name '*.[ch]' | head -n 1)" ] || skip "'$static' is older than its source: cmake --build --preset static"

cp "$static" spoor
size=$(stat -c %s spoor)
# Of these, libc and the libraries for compression and demangling take 1.9 MB.
[ "$size" -lt 4100000 ] || fail "it has $size bytes, 4,100,000 or more"
! readelf -lW spoor | grep -q INTERP || fail "it needs a dynamic linker"
! readelf -dW spoor | grep -q NEEDED || fail "it needs libraries"

# In an empty root: verbs that need nothing else work, and a verb that needs /proc prints a message.
mkdir root && cp spoor root/spoor
code_of chroot root /spoor --version
expect_code 0 "its version in an empty root"
has out '^spoor [0-9]'
code_of chroot root /spoor help trace
expect_code 0 "help in an empty root"
code_of chroot root /spoor ps
[ "$code" -lt 126 ] || fail "ps without /proc: $code"
[ -s err ] || [ -s out ] || fail "ps without /proc says nothing"

# With /proc, as in a container: doctor works.
mkdir root/proc
code_of unshare --mount sh -c 'mount --rbind /proc root/proc && exec chroot root /spoor doctor'
expect_code 0 "doctor in a root with /proc"
[ "$(grep -cE '  (yes|no|part)( |$)' out)" -ge 10 ] || fail "doctor says little"
code_of unshare --mount sh -c 'mount --rbind /proc root/proc && exec chroot root /spoor record -q --duration 300ms -o /x.nettrace -p 1'
case $code in
0) "$spoor" report root/x.nettrace >/dev/null || fail "its recording cannot be read" ;;
*) has err . ;; # no perf events: there is a message
esac
