#!/bin/sh
# A running recorder drops the rights that it does not need. A user of a spoor with file capabilities cannot read or write other users' files through it.
own_machine=yes
. "$(dirname "$(realpath "$0")")/../prelude"

is_root || skip "only root has rights to drop"
command -v setpriv >/dev/null || skip "no setpriv here"
skipped=''
spins='any(.processes[].functions[]; .name == "spin_here")'

effective() {
	sed -n 's/^CapEff:[[:space:]]*0*\([0-9a-f]\)/\1/p' "/proc/$1/status"
}
has_right() { # has_right PID NUMBER
	[ $((0x$(effective "$1") >> $2 & 1)) = 1 ]
}

# ---- what root keeps ----

# recording OPTION...: starts a recording and sets $recorder to its id.
recording() {
	rm -f live.nettrace
	start recorder "$spoor" record -q --duration 600s -o live.nettrace "$@" 2>err
	until_true [ -e live.nettrace ] && until_true grep -q '^NoNewPrivs:[[:space:]]*1' "/proc/$recorder/status" ||
		fail "no rights are dropped: $*"
}
# expect_rights NUMBER...: the recorder has these capabilities (numbers of capabilities(7)) and no others. Those that this root does not have are skipped.
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
		start spinning "$target" spin 600000
		recording -p "$spinning" # its CPUs are sampled
		expect_rights 1 2 14 19 38 40 $bpf
		recording -t "$spinning"
		expect_rights 1 2 19 40 $bpf
	}
	recording -p "$spinning" --no-symbols
	expect_rights 14 19 38
	recording --no-symbols -- sleep 600
	# The command keeps what its user has.
	child=$(pgrep -P "$recorder" | head -n 1)
	[ "$(effective "$child")" = "$(effective $$)" ] || fail "the command has $(effective "$child"), not $(effective $$)"
	grep -q '^NoNewPrivs:[[:space:]]*0' "/proc/$child/status" || fail "the command cannot become another user"
	expect_rights 5 14 19 38 # the CPUs are sampled for a command, too
else
	skipped="$skipped; this root has not the rights of a root"
fi

# A command that became another user gets the signal.
start recorder "$spoor" record -q --no-symbols -o other.nettrace -- setpriv --reuid=65534 --regid=65534 --clear-groups sleep 600
until_true grep -q '^NoNewPrivs:[[:space:]]*1' "/proc/$recorder/status" || fail "no rights are dropped with a command"
child=$(pgrep -P "$recorder" | head -n 1)
until_true grep -q '^Uid:[[:space:]]*65534' "/proc/$child/status" || fail "the command is not another user's"
kill -INT "$recorder"
until_true sh -c "! kill -0 $child" || fail "a command of another user does not get the signal"
wait "$recorder"

# Below sudo all files and folders belong to the caller, also those that are made at the end, in a folder of the caller.
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
# Through a shell, because setpriv itself has the right to execute any program.
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

"$target" spin 600000 &
root_pid=$!
started="$started $root_pid"
mkdir secret && chmod 700 secret
"$spoor" record -q -o secret/x.nettrace -- true || fail "recording"
echo before >secret/file

for form in =p =ep; do
	grant $form

	# It records what its user could not: a process of another user, with names.
	for seconds in 1 5 20; do
		code_of nobody ./capable record -q -F 999 --duration ${seconds}s -p $root_pid -o own/x.nettrace
		expect_code 0 "a capable spoor, $form"
		! nobody ./capable report own/x.nettrace 2>/dev/null | grep -q spin_here || break
	done
	[ "$(stat -c '%a %u' own/x.nettrace)" = '600 65534' ] || fail "the recording is not its user's: $(stat -c '%a %u' own/x.nettrace)"
	code_of nobody ./capable report --json own/x.nettrace
	json out "$spins"

	# It opens files that its user names with that user's rights.
	for verb in "report secret/x.nettrace" "flame secret/x.nettrace -o -" "flame own/x.nettrace -o secret/x.svg" \
		"flame own/x.nettrace -o secret/file" "record --duration 100ms -a -o secret/y.nettrace" "record --duration 100ms -a -o secret/file"; do
		# shellcheck disable=SC2086
		code_of nobody ./capable $verb
		[ "$code" != 0 ] || fail "$form: '$verb' was done with rights the user has not"
		has err 'Permission denied'
	done
	[ "$(cat secret/file)" = before ] && [ ! -e secret/x.svg ] && [ ! -e secret/y.nettrace ] || fail "$form: something was written"

	# It reads no debug files from folders that are closed to its user.
	if command -v objcopy >/dev/null; then
		objcopy --only-keep-debug "$target" secret/stripped.debug && objcopy -S "$target" stripped && (cd secret && objcopy --add-gnu-debuglink=stripped.debug ../stripped) &&
			chmod 755 stripped
		code_of nobody ./capable record -q -F 999 -o own/s.nettrace --symbol-path secret -- ./stripped spin 400
		expect_code 0 "a stripped program"
		nobody ./capable report --json own/s.nettrace >out
		json out "$spins | not"
		code_of "$spoor" record -q -F 999 -o s.nettrace --symbol-path secret -- ./stripped spin 400
		"$spoor" report --json s.nettrace >out
		json out "$spins"
	fi

	# The command gets no capabilities, and a program that the user may not execute is not executed.
	code_of nobody ./capable record -q -o own/x.nettrace -- grep -E '^Cap(Eff|Prm|Inh|Amb)' /proc/self/status
	expect_code 0 "a command"
	has out '^CapEff:'
	has_no out '[1-9a-f]$'
	cp "$target" private && chmod 700 private
	code_of nobody ./capable record -q -o own/x.nettrace -- ./private spin 10
	[ "$code" != 0 ] || fail "$form: a program was run that the user may not run"

	# It makes no folder that the environment names, and a report after the recording has no capabilities.
	code_of nobody env XDG_CACHE_HOME="$scratch/secret" HOME="$scratch/secret" ./capable record -q --duration 300ms -a --report -o own/x.nettrace
	# A sanitizer's leak check traces the program, which is not allowed with file capabilities, so it reports leaks that are none.
	is_sanitized && grep -q 'was not suspended' err || expect_code 0 "$form: the whole machine, and its report"
	[ ! -e secret/spoor ] && [ ! -e secret/.cache ] || fail "$form: a cache was made in another user's folder"

	# While it runs it has only the rights that it needs.
	start recorder setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all sh -c 'exec "$@"' sh ./capable record -q --duration 600s -a -o own/live.nettrace
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
