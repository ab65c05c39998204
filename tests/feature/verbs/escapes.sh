#!/bin/sh
# Terminal control sequences in the names of a program are escaped in the output of every verb, into a pipe and into a terminal.
. "$(dirname "$(realpath "$0")")/../prelude"

# The same text as in escapes.c.
data=$here/../data
poison=$(printf '\033c\302\233\342\200\256')
program="$scratch/program$poison"
cp "$(dirname "$spoor")/tests/escapes" "$program" || exit 1
mkfifo feed
exec 9<>feed
env "variable$poison=value$poison
line" "$program" "argument$poison" <feed &
victim=$!
started="$started $victim"
until_true sh -c "ls /tmp/dotnet-diagnostic-$victim-*-socket" || fail "the program has no diagnostics port"

checked=0

# harmless WHAT FILE: fails when FILE has a control sequence of the names. In a terminal, spoor's own control sequences are allowed.
harmless() {
	checked=$((checked + 1))
	if LC_ALL=C grep -a -n -m 3 -e "$(printf '\033')c" -e "$(printf '\302')[$(printf '\200')-$(printf '\237')]" -e "$(printf '\342\200\256')" "$2" >found; then
		od -c found | head -n 12
		fail "$1 writes a terminal's commands"
	fi
}

plain() {
	! LC_ALL=C grep -a -q -e "$(printf '\033')" -e "$(printf '\177')" -e "$(printf '\r')" "$2" || fail "$1 writes control characters into a pipe"
	harmless "$1" "$2"
}

# through EXPECTED ARGUMENTS...: runs the verb in a pipe and in a terminal. The output contains EXPECTED; "-" expects nothing.
through() {
	expected=$1 && shift
	code_of timeout 110 "$spoor" "$@"
	[ $code -lt 124 ] || fail "spoor $* ended with $code"
	plain "spoor $1 (standard output)" out
	plain "spoor $1 (standard error)" err
	[ "$expected" = - ] || cat out err | grep -qaF -e "$expected" || fail "spoor $* shows no '$expected'"
	for word in "$@"; do
		printf '%s\0' "$word"
	done >words
	timeout 110 script -qec "TERM=xterm COLUMNS=200 xargs -0 -a words '$spoor'" screen >/dev/null </dev/null
	# The first and the last line are script's own and contain the command.
	sed '1d;$d' screen >shown
	harmless "spoor $1 (in a terminal)" shown
}

shown='\x1bc\x9b\u202e'
through "program$shown" ps -p $victim
through 'program\u001bc\u009b\u202e' ps -p $victim --json
through "variable$shown=value$shown\\nline" env -p $victim
through - env -p $victim "nothing$poison"
through - env -p $victim --json
through "Meter$shown" counters -p $victim --counters 'Meter*' --count 1 --format lines
through "unit$shown" counters -p $victim --counters 'Meter*' --count 1 --format lines
through 'Meter\u001bc\u009b\u202e' counters -p $victim --counters 'Meter*' --count 1 --json
through "description$shown" counters -p $victim --counters 'Meter*' --list
through - counters -p $victim --counters 'Meter*' --list --json
through - counters -p $victim --counters "Nothing$poison" --duration 2s
through - counters -p $victim --counters 'Nothing' --duration 2s
through "Source$shown" trace -p $victim --providers "Source$poison" --duration 2s -o trace.nettrace
through "Source$shown/Event$shown" events trace.nettrace
through "field$shown=\"text$shown\\n\"" events trace.nettrace
through 'number=12345678900' events trace.nettrace
through '"number":12345678900' events trace.nettrace --json
through "Source$shown" events trace.nettrace --summary
through - events trace.nettrace --event "Nothing$poison"
through - events trace.nettrace --provider "Nothing$poison"
through - trace -p $victim --profile cpu-sampling --duration 2s -o cpu.nettrace
through - report cpu.nettrace
through - stacks -p $victim
through - stacks -p $victim --json
through - dump -p $victim -o "$scratch/core$poison"
through - perfmap -p $victim
through - record -p $victim -F 499 --duration 2s -o record.nettrace
through "comm$shown" report record.nettrace -v
through "Method$shown" report record.nettrace --tree
through - report record.nettrace --callers "Method$poison"
through - report record.nettrace --json
through - report "nothing$poison"
through "comm$shown" flame record.nettrace --format folded -o -
through - flame record.nettrace --format svg -o -
through - flame "nothing$poison"
through - heap report "nothing$poison"
# The names keep their lengths, so that the file stays valid.
sed 's/System/S\x1bctem/g; s/Order/O\x1bcer/g; s/Shop/S\x1bcp/g; s/shop/s\x1bcp/g; s/web-3/w\x1bc-3/g; s/\[static var/[s\x1bctic var/g' \
	"$data/gcdump/small.gcdump" >names.gcdump
through 'S\x1bcp.O\x1bcer[]' heap report names.gcdump
through - heap report names.gcdump --json
through 's\x1bctic var' heap roots names.gcdump "$(printf 'O\033cer')"
through - heap diff names.gcdump "$data/gcdump/small.gcdump"
through - heap diff "$data/gcdump/small.gcdump" names.gcdump
through - recover "nothing$poison"
through - "verb$poison"
through - ps "--option$poison"
through - doctor

# CSV in a pipe has the names unescaped; CSV in a terminal has them escaped.
code_of timeout 110 "$spoor" counters -p $victim --counters 'Meter*' --count 1 --csv
LC_ALL=C grep -qaF "Meter$poison" out || fail "CSV in a pipe has other names than the program"
timeout 110 script -qec "'$spoor' counters -p $victim --csv --count 1 --counters 'Meter*'" screen >/dev/null </dev/null
sed '1d;$d' screen >shown
grep -qaF "Meter$shown" shown || fail "no counters in a terminal"
harmless "counters --csv in a terminal" shown
[ $checked -gt 120 ] || fail "only $checked outputs were looked at"
