#!/bin/sh
# Rights: what a recorder keeps once it runs; a program with file capabilities, whose user must not read or write through it what he may not.
. "$(dirname "$(realpath "$0")")/prelude"

is_root || skip "only root has rights to drop"
command -v setpriv >/dev/null || skip "no setpriv here"
skipped=''

effective() {
	sed -n 's/^CapEff:[[:space:]]*0*\([0-9a-f]\)/\1/p' "/proc/$1/status"
}
has_right() { # has_right PID NUMBER
	[ $((0x$(effective "$1") >> $2 & 1)) = 1 ]
}

# ---- what root keeps ----

# recording OPTION...: one that runs, its id in $recorder.
recording() {
	rm -f live.nettrace
	start recorder "$spoor" record -q --duration 60s -o live.nettrace "$@" 2>err
	until_true [ -e live.nettrace ] && until_true grep -q '^NoNewPrivs:[[:space:]]*1' "/proc/$recorder/status" ||
		fail "no rights are dropped: $*"
}
# Numbers of capabilities(7); those that this root does not have itself are not asked for.
expect_rights() {
	want=0
	for number in "$@"; do
		has_right $$ "$number" && want=$((want | 1 << number))
	done
	[ $((0x$(effective "$recorder"))) = $want ] || fail "the recorder has $(effective "$recorder"), not $(printf %x $want)"
	[ "$(sed -n 's/^CapPrm:[[:space:]]*//p' "/proc/$recorder/status")" = "$(sed -n 's/^CapEff:[[:space:]]*//p' "/proc/$recorder/status")" ] ||
		fail "more is permitted than effective"
	kill "$recorder"
	wait "$recorder"
	[ -s live.nettrace ] || fail "no recording"
}

if has_right $$ 19 && has_right $$ 38; then
	bpf=''
	[ "$(printf '%s\n5.19\n' "$(uname -r)" | sort -V | head -n 1)" = 5.19 ] || bpf=39
	# shellcheck disable=SC2086 # nothing or a number
	{
		recording -a
		expect_rights 1 2 14 19 38 40 $bpf
		recording -a --no-dotnet
		expect_rights 2 14 19 38 40 $bpf
		start spinning "$target" spin 60000
		recording -p "$spinning" # its CPUs are sampled
		expect_rights 1 2 14 19 38 40 $bpf
		recording -t "$spinning"
		expect_rights 1 2 19 40 $bpf
	}
	recording -p "$spinning" --no-symbols
	expect_rights 14 19 38
	recording --no-symbols -- sleep 60
	# The command keeps what its user has.
	child=$(pgrep -P "$recorder" | head -n 1)
	[ "$(effective "$child")" = "$(effective $$)" ] || fail "the command has $(effective "$child"), not $(effective $$)"
	grep -q '^NoNewPrivs:[[:space:]]*0' "/proc/$child/status" || fail "the command may not become another user any more"
	expect_rights 5 14 19 38 # the CPUs are sampled for a command, too
else
	skipped="$skipped; this root has not the rights of a root"
fi

# A command that became another user gets the signal all the same.
start recorder "$spoor" record -q --no-symbols -o other.nettrace -- setpriv --reuid=65534 --regid=65534 --clear-groups sleep 60
until_true grep -q '^NoNewPrivs:[[:space:]]*1' "/proc/$recorder/status" || fail "no rights are dropped with a command"
child=$(pgrep -P "$recorder" | head -n 1)
until_true grep -q '^Uid:[[:space:]]*65534' "/proc/$child/status" || fail "the command is not another user's"
kill -INT "$recorder"
until_true sh -c "! kill -0 $child" || fail "a command of another user does not get the signal"
wait "$recorder"

# Below sudo all that is left behind is the caller's, also what is made at the end, in a folder of his.
mkdir home && chown 65534:65534 home && chmod 700 home
for option in "-d home/folder" "-o home/x.svg -o home/x.nettrace --no-dotnet --no-symbols" "-o home/y.txt"; do
	# shellcheck disable=SC2086
	code_of env SUDO_UID=65534 SUDO_GID=65534 "$spoor" record -q --duration 200ms $option -- "$target" spin 300
	expect_code 0 "below sudo: $option"
done
[ "$(find home | wc -l)" = 10 ] || fail "below sudo there are $(find home | tr '\n' ' ')"
find home ! -uid 65534 -o ! -gid 65534 -o -perm /077 | grep . && fail "below sudo files are not the caller's, or open to others"

# ---- a program with file capabilities ----

command -v setcap >/dev/null || skip "no setcap here (libcap2-bin); the rest holds${skipped}"
chmod 755 .
cp "$spoor" capable && cp "$target" ./target && chmod 755 target
chgrp 65534 capable && chmod 750 capable
mkdir own && chown 65534:65534 own
# By way of a shell: setpriv itself still has what opens any program.
nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all sh -c 'exec "$@"' sh "$@"
}
grant() {
	setcap "cap_perfmon,cap_bpf,cap_syslog,cap_sys_ptrace,cap_dac_override,cap_dac_read_search,cap_ipc_lock,cap_checkpoint_restore$1" capable 2>err ||
		skip "file capabilities cannot be set in $scratch: $(cat err); the rest holds$skipped"
}
grant =p
if ! nobody ./capable --version >out 2>err; then
	skip "a program with file capabilities does not run here: $(head -n 1 err); the rest holds$skipped"
fi

"$target" spin 60000 &
root_pid=$!
started="$started $root_pid"
mkdir secret && chmod 700 secret
"$spoor" record -q -o secret/x.nettrace -- true || fail "recording"
echo before >secret/file

for form in =p =ep; do
	grant $form

	# It records what its user alone may not: another user's process, with names.
	code_of nobody ./capable record -q -F 999 --duration 400ms -p $root_pid -o own/x.nettrace
	expect_code 0 "a capable spoor, $form"
	[ "$(stat -c '%a %u' own/x.nettrace)" = '600 65534' ] || fail "the recording is not its user's: $(stat -c '%a %u' own/x.nettrace)"
	code_of nobody ./capable report --json own/x.nettrace
	has out '"name":"spin_here"'

	# What its user names it opens with that user's rights.
	for verb in "report secret/x.nettrace" "flame secret/x.nettrace -o -" "flame own/x.nettrace -o secret/x.svg" \
		"flame own/x.nettrace -o secret/file" "record --duration 100ms -a -o secret/y.nettrace" "record --duration 100ms -a -o secret/file"; do
		# shellcheck disable=SC2086
		code_of nobody ./capable $verb
		[ "$code" != 0 ] || fail "$form: '$verb' was done with rights the user has not"
		has err 'Permission denied'
	done
	[ "$(cat secret/file)" = before ] && [ ! -e secret/x.svg ] && [ ! -e secret/y.nettrace ] || fail "$form: something was written"

	# Debug files are not read for him either: a stripped program whose names lie where he may not look.
	if command -v objcopy >/dev/null; then
		objcopy --only-keep-debug "$target" secret/stripped.debug && objcopy -S "$target" stripped && (cd secret && objcopy --add-gnu-debuglink=stripped.debug ../stripped) &&
			chmod 755 stripped
		code_of nobody ./capable record -q -F 999 -o own/s.nettrace --symbol-path secret -- ./stripped spin 400
		expect_code 0 "a stripped program"
		nobody ./capable report --json own/s.nettrace >out
		has_no out '"name":"spin_here"'
		code_of "$spoor" record -q -F 999 -o s.nettrace --symbol-path secret -- ./stripped spin 400
		"$spoor" report --json s.nettrace >out
		has out '"name":"spin_here"'
	fi

	# The command gets none of it, and a program that he may not run is not run.
	code_of nobody ./capable record -q -o own/x.nettrace -- grep -E '^Cap(Eff|Prm|Inh|Amb)' /proc/self/status
	expect_code 0 "a command"
	has_no out '[1-9a-f]$'
	cp "$target" private && chmod 700 private
	code_of nobody ./capable record -q -o own/x.nettrace -- ./private spin 10
	[ "$code" != 0 ] || fail "$form: a program was run that the user may not run"

	# No folder is made where the environment says, no rights are left to a report that follows.
	code_of nobody env XDG_CACHE_HOME="$scratch/secret" HOME="$scratch/secret" ./capable record -q --duration 300ms -a --report -o own/x.nettrace
	# A sanitizer looks for leaks by tracing, which a program with rights of its own does not let it: it takes what a thread left behind has for one.
	is_sanitized && grep -q 'was not suspended' err || expect_code 0 "$form: the whole machine, and its report"
	[ ! -e secret/spoor ] && [ ! -e secret/.cache ] || fail "$form: a cache was made in another user's folder"

	# While it runs: what it needs, and nobody can trace it.
	start recorder setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all sh -c 'exec "$@"' sh ./capable record -q --duration 60s -a -o own/live.nettrace
	until_true grep -q '^NoNewPrivs:[[:space:]]*1' "/proc/$recorder/status" || fail "$form: no rights are dropped"
	[ $((0x$(effective "$recorder") & ~(1 << 1 | 1 << 2 | 1 << 14 | 1 << 19 | 1 << 38 | 1 << 39 | 1 << 40))) = 0 ] ||
		fail "$form: it has $(effective "$recorder")"
	has_right "$recorder" 34 && fail "$form: CAP_SYSLOG is kept"
	kill "$recorder"
	wait "$recorder"
	rm -f own/*
done

# Outside the group it does not start; setuid is refused.
! setpriv --reuid=65533 --regid=65533 --clear-groups sh -c 'exec ./capable --version' >out 2>err || fail "a stranger may run it"
cp "$spoor" setuid && chmod 4755 setuid
code_of nobody ./setuid --version
expect_code 3 "a setuid spoor"
has err 'not made to run setuid'
[ -z "$skipped" ] || skip "${skipped#; }; the rest holds"
exit 0
