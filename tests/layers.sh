#!/bin/sh
# layers.sh [ROOT]: proves by grep which module includes which, that no file includes itself through others, that the modules that read recordings
# include no Linux header, and that the name of a file or struct occurs once. Prints one line for each violation; exit code 1 if there is one. layers_test.sh runs it
# on a ROOT where each rule is violated once.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

# The modules of src/, lowest first. A module includes only modules before it; the adapters do not include one another, and neither do the features.
modules='base machine image code trace nettrace formats perf dotnet target pipeline symbolize analysis render
	recording tracing report counters heap stacks symbols diagnose gen forward cli'
modules=$(echo $modules) # one space between two names
adapters='nettrace formats perf dotnet'
features='recording tracing report counters heap stacks symbols diagnose gen forward'
# Files outside src/ that one file of src/ may include.
exceptions='^src/trace/[^:]*:[0-9]+:#include "gc/gc_events\.def"$'

found=$(mktemp)
trap 'rm -f "$found"' EXIT

# Reads lines, and records each as a violation of the rule $1.
violation() {
	sed "s|^|$1: |" >>"$found"
}

# Is the word $1 in the list $2?
is_in() {
	case " $2 " in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

# allowed MODULE: prints the modules that it may include, and itself; nothing if it is not in the list.
allowed() {
	is_in "$1" "$modules" || return
	for other in $modules; do
		if [ "$other" = "$1" ]; then
			echo "$other"
			return
		fi
		if is_in "$1" "$adapters" && is_in "$other" "$adapters"; then
			continue
		fi
		if is_in "$1" "$features" && is_in "$other" "$features"; then
			continue
		fi
		echo "$other"
	done
}

quoted='^[[:space:]]*#[[:space:]]*include[[:space:]]*"'

for folder in src/*/; do
	folder=${folder%/}
	module=${folder#src/}
	list=$(echo $(allowed "$module"))
	[ -n "$list" ] || echo "$folder" | violation 'a module that tests/layers.sh does not list'
	pattern=$(echo "$list" | tr ' ' '|')
	grep -rnE "$quoted" "$folder" | grep -vE "\"($pattern)/[^\"]*\"" | grep -vE "$exceptions" | violation "$module may include only $list"
done
grep -rnE "$quoted" gc 2>/dev/null | grep -vE '"gc/[^"]*"' | violation 'gc may include only gc'

# No include cycle. foo.c and foo.h are one node of the graph; an edge is an include in quotes. tsort prints each cycle it meets as a line "input contains a
# loop:" and one line for each node, which become one line here.
for root in src lib gc; do
	[ -d $root ] || continue
	grep -rE "$quoted" $root --include='*.[ch]' | sed -E -e 's|^src/(.*)|\1|' \
		-e 's|^([^:]*)\.[ch]:[^"]*"([^"]*)\.[a-z]+".*|\1 \2|' | awk '$1 != $2' | LC_ALL=C tsort 2>&1 >/dev/null |
		awk '/contains a loop/ { if (line) print line; line = ""; next }
			{ sub(/^tsort: /, ""); line = line (line ? " -> " : "") $0 }
			END { if (line) print line }' | violation 'an include cycle'
done

# These modules read recordings on any system.
for module in base image code trace nettrace formats analysis render report; do
	[ -d src/$module ] || continue
	grep -rnE '#[[:space:]]*include[[:space:]]*<(linux/|asm/|sys/(epoll|syscall|eventfd|signalfd|timerfd|inotify|prctl|ptrace|sendfile|xattr|capability|personality|auxv|vfs|sysinfo)\.h|mntent\.h|link\.h|elf\.h)' src/$module |
		violation "$module is built wherever recordings are read: no Linux header"
done

# Only code/arch.c depends on the processor.
grep -rnE '__x86_64__|__aarch64__|__i386__|<immintrin\.h>|<x86intrin\.h>' src --include='*.[ch]' | grep -v '^src/code/arch\.[ch]:' |
	violation 'only code/arch.c depends on the processor'

# The folders of lib/, lowest first. A folder includes only folders before it.
lib_folders='platform event pipe sink recover counter code sampler logger server start'
# The sinks of <spoor/sink.h> use the public functions only.
lib_outside='forward'
before=
for folder in $lib_folders; do
	before="$before${before:+ }$folder"
	[ -d lib/$folder ] || continue
	grep -rnE "$quoted" lib/$folder | grep -vE "\"lib/($(echo "$before" | tr ' ' '|'))/" | violation "lib/$folder may include only $before"
done
for folder in lib/*/; do
	ls "$folder"*.c >/dev/null 2>&1 || continue
	folder=${folder#lib/}
	if is_in "${folder%/}" "$lib_outside"; then
		grep -rnE "$quoted" "lib/$folder" | grep -vE "\"lib/$folder" | violation "lib/$folder may include only itself"
		continue
	fi
	is_in "${folder%/}" "$lib_folders" || echo "lib/$folder" | violation 'a folder of lib that tests/layers.sh does not list'
done

# libspoor includes its public headers and libc only; code for Linux is in files called _linux.c; it neither prints nor exits.
if [ -d lib ]; then
	grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' lib | grep -vE '"lib/[^"]*"' | violation 'lib may include only lib'
	grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' include | grep -vE '<(spoor/[a-z_0-9]+|std(bool|def|int)|string)\.h>|\.hpp:[0-9]+:#include <[a-z_]+>$' |
		grep -v '^include/spoor/user_events\.h:' | # an interface of Linux, for Linux
		violation 'the public headers include only each other and C'
	grep -rnE '#[[:space:]]*include[[:space:]]*<(linux/|asm/|sys/(epoll|syscall|eventfd|signalfd|timerfd|inotify|prctl|ptrace|sendfile|xattr|capability|personality|auxv|vfs|sysinfo|mman)\.h|mntent\.h|link\.h|elf\.h)' lib |
		grep -v '^lib/[a-z0-9_/]*_linux\.c:' | violation 'lib keeps what is Linux in files called _linux.c'
	grep -rnE '(^|[^a-z_>.])(syscall|gettid|tgkill|memfd_create|mremap|membarrier|prctl|epoll_[a-z]+|eventfd|signalfd|timerfd_[a-z]+|inotify_[a-z]+|dl_iterate_phdr|getauxval|sched_getcpu|process_vm_[a-z]+|pidfd_[a-z]+)[[:space:]]*\(|"/proc/|SO_PEERCRED|MAP_POPULATE|FUTEX_|SIGEV_THREAD_ID' lib |
		grep -vE '^lib/[a-z0-9_/]*_linux\.c:|^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)|/\* .*(/proc|membarrier|mremap)' | violation 'lib calls what is Linux in files called _linux.c'
	grep -rnE '(^|[^a-z_>.])(printf|fprintf|puts|putchar|perror|exit|_exit|abort|err|errx|warn|warnx)[[:space:]]*\(' lib --include='*.c' |
		grep -vE '^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)' | violation 'lib neither prints nor exits'
fi

find src lib gc tests bench examples \( -name '*.c' -o -name '*.h' -o -name '*.def' \) 2>/dev/null |
	sed 's|.*/||' | sort | uniq -d | violation 'this file name occurs twice'
# So is the name of a struct, an enum or a union. A struct that is only declared does not count.
find src lib gc -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs -r awk '
	/^[ \t]*(\/?\*|\/\/)/ { next }
	{
		line = $0
		while (match(line, /(^|[^A-Za-z_0-9])(struct|enum|union)[ \t]+[A-Za-z_][A-Za-z_0-9]*[ \t]*\{/)) {
			text = substr(line, RSTART, RLENGTH)
			line = substr(line, RSTART + RLENGTH)
			sub(/[ \t]*\{$/, "", text)
			name = text
			sub(/.*[ \t]/, "", name)
			where[name] = where[name] " " FILENAME ":" FNR
			count[name]++
		}
	}
	END { for (name in count) if (count[name] > 1) print name ":" where[name] }' | sort |
	violation 'this name of a struct or enum occurs twice'
find src lib tests bench examples docs scripts 2>/dev/null | grep -E '/(utils?|common|misc|helpers?)(\.[a-z]+)?$' | violation 'a name that says nothing'
find src tests/unit tests/fuzz -name '*.[ch]' 2>/dev/null | grep -E '/[^/]*[^a-z0-9_./][^/]*$' | violation 'file names are snake_case'

# Identifiers have the terms of the field; for each of these words there is one: reported, worker thread, inherited event, runtime info, reachability,
# endpoint, release, watermark, observation, message. Comments and texts are read by people, so they are left out here.
words='told|untold|clerk|twins|roll_call|survey|door|give_out|cutoff|looks|words_say|words_fail'
find src lib gc -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs -r awk -v words="(^|[^A-Za-z0-9])($words)([^A-Za-z0-9]|\$)" '
	FNR == 1 { inside = 0 }
	{
		line = $0
		code = ""
		gsub(/"([^"\\]|\\.)*"/, "", line)
		while (line != "") {
			at = index(line, inside ? "*/" : "/*")
			if (!inside)
				code = code (at ? substr(line, 1, at - 1) : line)
			line = at ? substr(line, at + 2) : ""
			inside = at ? !inside : inside
		}
		if (code ~ words)
			print FILENAME ":" FNR ": " $0
	}' | violation 'an identifier for which there is a term'

# foo.c includes foo.h first, which proves that each header compiles alone.
awk 'FNR == 1 { found = 0 } !found && /^#[[:space:]]*include/ { found = 1; print FILENAME, $2 }' src/*/*.c | while read -r file first; do
	own=${file#src/}
	own=${own%.c}.h
	[ ! -e "src/$own" ] || [ "$first" = "\"$own\"" ] || echo "$file"
done | violation 'its own header comes first'

# Includes of one kind that follow each other are sorted.
for root in src lib gc; do
	[ -d $root ] || continue
	find $root -name '*.[ch]' | LC_ALL=C sort | LC_ALL=C xargs awk 'FNR == 1 { before = "" }
		!/^#[[:space:]]*include[[:space:]]*["<]/ { before = ""; next }
		{ if (before != "" && substr($2, 1, 1) == substr(before, 1, 1) && $2 < before) print FILENAME ":" FNR ": " $2 " after " before
			before = $2 }'
done | violation 'includes are sorted'

# Only cli prints and exits. Exceptions are forked children: one whose exec failed, and the guard.
grep -rnE '(^|[^a-z_>.])(printf|puts|putchar|perror|exit|_exit|abort|err|errx|warn|warnx)[[:space:]]*\(' src --include='*.c' |
	grep -vE '^src/cli/|^src/(perf/(child|closing)|dotnet/(guard|reverse))\.c:.*_exit|^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)|__attribute__' | violation 'only cli prints and exits'

# Each verb has a manual page and test cases.
for file in src/cli/cmd_*.c; do
	[ -e "$file" ] || continue
	verb=${file#src/cli/cmd_}
	verb=${verb%.c}
	[ -e "docs/man/spoor-$verb.1" ] || echo "docs/man/spoor-$verb.1" | violation 'a verb without its page'
	ls "tests/cli/$verb"/*.sh >/dev/null 2>&1 || echo "tests/cli/$verb" | violation 'a verb without cases'
done

if [ -s "$found" ]; then
	cat "$found"
	exit 1
fi
echo "no violation in $(find src -name '*.[ch]' | wc -l) files of src/"
