#!/bin/sh
# A recording contains the command lines of its processes; with --no-arguments it contains none, and not the one of spoor.
. "$(dirname "$(realpath "$0")")/../prelude"

# Texts in the file are UTF-16 or UTF-8.
holds() {
	tr -d '\000' <"$1" | grep -aq "$2"
}

# shellcheck disable=SC2016 # for the inner shell
busy='while :; do :; done'
start spinning sh -c "$busy" sh hush-password
# (Without the sessions that a recording of the whole machine opens in the programs of other tests.)
for target_option in "-p $spinning" "-a --no-dotnet"; do
	# shellcheck disable=SC2086
	code_of "$spoor" record -q -F 999 --duration 1500ms -o with.nettrace $target_option
	[ "$code" != 3 ] || continue
	expect_code 0 "recording $target_option"
	holds with.nettrace hush-password || fail "$target_option: no command line in a recording with them"
	holds with.nettrace "duration 1500ms" || fail "$target_option: spoor's own command line is not in it"
	# shellcheck disable=SC2086
	code_of "$spoor" record -q -F 999 --no-arguments --duration 1500ms -o without.nettrace $target_option
	expect_code 0 "recording $target_option --no-arguments"
	! holds without.nettrace hush-password || fail "$target_option: a command line is in it"
	! holds without.nettrace "duration 1500ms" || fail "$target_option: spoor's own command line is in it"
	"$spoor" report --json without.nettrace >out || fail "report"
	json out 'any(.processes[]; .pid == ($a | tonumber))' $spinning
done

# The arguments of a recorded command.
code_of "$spoor" record -q -F 999 --no-arguments -o command.nettrace -- timeout 2 sh -c "$busy" sh hush-password
code_of "$spoor" record -q -F 999 -o with.nettrace -- timeout 2 sh -c "$busy" sh hush-password
holds with.nettrace hush-password || fail "the command's arguments are not in a recording with them"
! holds command.nettrace hush-password || fail "the command's arguments are in it"
"$spoor" report --json command.nettrace >out || fail "report of a command"
json out 'any(.processes[]; .name == "sh")'
exit 0
