#!/bin/sh
# Frames of a process in another root (chroot) have names, for root and for a user without rights. So does a program that was unlinked while it runs.
. "$(dirname "$(realpath "$0")")/../prelude"

is_root || skip "chroot needs root"
command -v setpriv >/dev/null || skip "no setpriv here"
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || skip "a user may not sample here"
command -v "${CC:-cc}" >/dev/null || skip "no compiler here"
cat >busy.c <<'END'
__attribute__((noinline)) unsigned burn_in_root(unsigned n)
{
	unsigned s = 1;
	for (unsigned i = 0; i < n; i++)
		s = s * 31 + i;
	return s;
}
int main(void)
{
	volatile unsigned s = 0;
	for (;;)
		s += burn_in_root(1000000);
}
END
mkdir -p root/bin theirs
${CC:-cc} -O0 -static -fno-omit-frame-pointer -o root/bin/busy busy.c 2>err || skip "no static program can be linked here"
cp "$spoor" ./spoor && chmod -R a+rX . && chmod 777 theirs
user='setpriv --reuid=64999 --regid=64999 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs'
$user ./spoor --version >/dev/null 2>err || skip "another user cannot run a program in $scratch"

# named TEXT COMMAND PID: spoor, run by COMMAND, finds the function in samples of the process. A busy machine may leave it no time in the first recordings.
named() {
	for seconds in 1 3 10 30; do
		code_of $2 ./spoor record -q -o theirs/x.nettrace --duration ${seconds}s --no-dotnet -p "$3"
		expect_code 0 "record, $1"
		code_of ./spoor report --json theirs/x.nettrace
		rm -f theirs/x.nettrace
		[ "$(value out .samples)" -lt 3 ] || break
	done
	json out 'any(.processes[].functions[]; .name == "burn_in_root")'
}

start inside chroot root /bin/busy
until_true grep -q /bin/busy "/proc/$inside/maps"
named "root" '' "$inside"
kill -9 "$inside"
# shellcheck disable=SC2086
start inside $user unshare -r chroot root /bin/busy
if until_true grep -qs /bin/busy "/proc/$inside/maps"; then
	named "a user" "$user" "$inside"
	kill -9 "$inside"
fi

cp root/bin/busy theirs/busy
# shellcheck disable=SC2086
start inside $user theirs/busy
until_true grep -q theirs/busy "/proc/$inside/maps"
rm theirs/busy
named "an unlinked program" "$user" "$inside"
