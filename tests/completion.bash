# completion.bash COMPLETION: what Tab offers. Run by pages.sh with spoor in PATH.
# shellcheck disable=SC1090,SC2154
source "$1"
failed=0

# offers "WORDS SO FAR" "LAST": the completions of the last word, on one line.
offers() {
	read -ra COMP_WORDS <<<"$1"
	COMP_WORDS+=("$2")
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_spoor
	echo "${COMPREPLY[*]}"
}

expect() {
	local given
	given=$(offers "$1" "$2")
	[[ $given == "$3" ]] && return
	echo "completion of '$1 $2' offers '$given', not '$3'"
	failed=1
}

expect spoor hel help
expect spoor --v --version
expect 'spoor help' --comp --completion
expect 'spoor help' hel help
expect 'spoor trace --profile' gc-v gc-verbose
expect 'spoor heap' rep report
# A shell is no .NET process: trace does not offer it, record does.
expect 'spoor record -p' $$ $$
expect 'spoor trace -p' $$ ''
for verb in $(spoor help --completion | awk '$1 == "verb" { print $2 }'); do
	expect spoor "$verb" "$verb"
	for option in $(spoor help --completion | awk -v verb="$verb" '$1 == "option" && $2 == verb { print $3 }'); do
		[[ " $(offers "spoor $verb" "$option") " == *" $option "* ]] && continue
		echo "completion of 'spoor $verb' does not offer $option"
		failed=1
	done
done
exit $failed
