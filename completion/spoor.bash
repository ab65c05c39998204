# Completion of spoor for bash. All words come from `spoor help --completion`, so they match the installed spoor.
_spoor()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local spoor=${COMP_WORDS[0]} verb=${COMP_WORDS[1]} words argument

	COMPREPLY=()
	words=$("$spoor" help --completion 2>/dev/null) || return
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$(awk '$1 == "verb" { print $2 }' <<<"$words") --help --version" -- "$current")
		return
	fi
	if [[ $verb == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(awk '$1 == "verb" { print $2 }' <<<"$words") --completion --help" -- "$current")
		return
	fi
	argument=$(awk -v verb="$verb" -v word="$previous" \
		'$1 == "option" && $2 == verb && ($3 == word || $4 == word) { print $5 }' <<<"$words")
	case $argument in
	DIR)
		mapfile -t COMPREPLY < <(compgen -d -- "$current")
		return
		;;
	FILE)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	PID)
		# These verbs accept .NET processes only, the others any process.
		case $verb in
		trace | counters | stacks | heap | dump | env | perfmap)
			mapfile -t COMPREPLY < <(compgen -W "$("$spoor" ps 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$current")
			;;
		*) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$current") ;;
		esac
		return
		;;
	*'|'*)
		mapfile -t COMPREPLY < <(compgen -W "${argument//|/ }" -- "$current")
		return
		;;
	PROFILES)
		mapfile -t COMPREPLY < <(compgen -W "$("$spoor" "$verb" --list-profiles 2>/dev/null | awk '/^[a-z]/ { print $1 }')" -- "$current")
		return
		;;
	- | '') ;;
	*) return ;;
	esac
	if [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(awk -v verb="$verb" \
			'$1 == "option" && $2 == verb { print $3 }' <<<"$words") --help" -- "$current")
	elif [[ $verb == heap ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W 'report roots diff' -- "$current")
	elif [[ $verb == symbols ]] && ((COMP_CWORD == 2)); then
		mapfile -t COMPREPLY < <(compgen -W 'list fetch apply import cache' -- "$current")
	elif [[ $verb == symbols && ${COMP_WORDS[2]} == import ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	elif [[ $verb == heap ]]; then
		mapfile -t COMPREPLY < <(compgen -f -X '!*.gcdump' -- "$current"; compgen -d -- "$current")
	elif [[ $verb != record ]]; then
		mapfile -t COMPREPLY < <(compgen -f -X '!*.nettrace' -- "$current"; compgen -f -X '!*.nettrace.zst' -- "$current"; compgen -d -- "$current")
	fi
}
complete -o filenames -F _spoor spoor
