#!/bin/sh
# comments.sh [ROOT]: a function that a comment of src, lib or gc names, as name() or with arguments, exists: the word occurs in the code. Prints one line for each
# comment that names another one; exit code 1 if there is one.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

# Functions of the kernel, of .NET, and of an example in a comment, which no code here has.
foreign='do_wait_intr bpf_get_attach_cookie bpf_snprintf GetGCMemoryInfo GenerateManifest thing_poll thing_advance'

files=$(find src lib gc include tests examples bench \( -name '*.c' -o -name '*.h' -o -name '*.hpp' -o -name '*.def' -o -name '*.py' \) 2>/dev/null | sort)
# shellcheck disable=SC2086 # names without blanks
awk -v foreign="$foreign" '
	function words(text, 	word) {
		while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
			word = substr(text, RSTART, RLENGTH)
			known[word] = 1
			text = substr(text, RSTART + RLENGTH)
		}
	}
	function calls(text, 	name) {
		while (match(text, /[A-Za-z_][A-Za-z_0-9]*\(/)) {
			name = substr(text, RSTART, RLENGTH - 1)
			text = substr(text, RSTART + RLENGTH)
			# A part in capitals is any name: cmd_NAME(), payload_X().
			if (name ~ /(^|_)(X|NAME|PREFIX|ACMESHOP)(_|$)/)
				continue
			# name() or name_of_function(argument, not name(2) of a manual page
			if (text ~ /^\)/ || (name ~ /[a-z]_[a-z]/ && text !~ /^[0-9]/))
				named[++count] = name SUBSEP FILENAME ":" FNR
		}
	}
	FNR == 1 { inside = 0; ours = FILENAME ~ /^(src|lib|gc)\// }
	{
		rest = $0
		code = comment = ""
		while (rest != "") {
			if (inside) {
				at = index(rest, "*/")
				comment = comment " " (at ? substr(rest, 1, at - 1) : rest)
				rest = at ? substr(rest, at + 2) : ""
				inside = !at
			} else if (match(rest, /"([^"\\]|\\.)*"|\/\*|\/\//)) {
				token = substr(rest, RSTART, RLENGTH)
				code = code " " substr(rest, 1, RSTART - 1)
				rest = substr(rest, RSTART + RLENGTH)
				if (token == "/*") {
					inside = 1
				} else if (token == "//") {
					comment = comment " " rest
					rest = ""
				} else {
					code = code " " token
				}
			} else {
				code = code " " rest
				rest = ""
			}
		}
		words(code)
		if (ours)
			calls(comment)
	}
	END {
		split(foreign, list, " ")
		for (i in list)
			known[list[i]] = 1
		for (i = 1; i <= count; i++) {
			split(named[i], part, SUBSEP)
			if (!(part[1] in known)) {
				print part[2] ": a comment names " part[1] "(), which no code has"
				bad++
			}
		}
		print count + 0 " functions in comments"
		exit bad > 0
	}' $files
