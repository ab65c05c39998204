#!/bin/sh
# floors.sh [ROOT]: proves by grep that the house stands as ARCHITECTURE.md says: who may include whom, no Linux header where recordings are read, one
# name one file. Each broken rule is one line; the exit code is 1 when there is any. ROOT is for floors_test.sh, which breaks each rule once.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

rooms='format record dotnet symbol analyze export'
found=$(mktemp)
trap 'rm -f "$found"' EXIT

tell() {
	sed "s|^|$1: |" >>"$found"
}

# Which folders of src/ may a folder include?
allowed() {
	case $1 in
	base) echo base ;;
	machine) echo base machine ;;
	image) echo base machine image ;;
	model) echo base machine image model ;;
	session) echo base machine image model "$rooms" session ;;
	cli) echo base machine image model "$rooms" session cli ;;
	*)
		for room in $rooms; do
			[ "$room" = "$1" ] && echo base machine image model "$room"
		done
		;;
	esac
}

for folder in src/*/; do
	folder=${folder%/}
	room=${folder#src/}
	list=$(allowed "$room")
	[ -n "$list" ] || echo "$folder" | tell 'a room that ARCHITECTURE.md does not know'
	pattern=$(echo "$list" | tr ' ' '|')
	grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$folder" |
		grep -vE "\"($pattern)/[^\"]*\"" | grep -vE '^src/model/[^:]*:[0-9]+:#include "gc/gc_events\.def"$' |
		tell "$room may include only $list"
done
grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' gc 2>/dev/null | grep -vE '"gc/[^"]*"' | tell 'gc may include only gc'

for room in base image model format symbol analyze export; do
	[ -d src/$room ] || continue
	grep -rnE '#[[:space:]]*include[[:space:]]*<(linux/|asm/|sys/(epoll|syscall|eventfd|signalfd|timerfd|inotify|prctl|ptrace|sendfile|xattr|capability|personality|auxv|vfs|sysinfo)\.h|mntent\.h|link\.h|elf\.h)' src/$room |
		tell "$room is built wherever recordings are read: no Linux header"
done

# What makes code lean on x86-64 stays in model/arch.c.
grep -rnE '__x86_64__|__aarch64__|__i386__|<immintrin\.h>|<x86intrin\.h>' src --include='*.[ch]' | grep -v '^src/model/arch\.[ch]:' |
	tell 'only model/arch.c knows the processor'

# libspoor stands on its public headers and on libc alone; what is Linux's own stands in files that say so; and it neither prints nor exits.
if [ -d lib ]; then
	grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' lib | grep -vE '"lib/[^"]*"' | tell 'lib may include only lib'
	grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' include | grep -vE '<(spoor/[a-z_0-9]+|std(bool|def|int)|string)\.h>' |
		tell 'the public headers include only each other and C'
	grep -rnE '#[[:space:]]*include[[:space:]]*<(linux/|asm/|sys/(epoll|syscall|eventfd|signalfd|timerfd|inotify|prctl|ptrace|sendfile|xattr|capability|personality|auxv|vfs|sysinfo|mman)\.h|mntent\.h|link\.h|elf\.h)' lib |
		grep -v '^lib/[a-z0-9_]*_linux\.c:' | tell 'lib keeps what is Linux in files called _linux.c'
	grep -rnE '(^|[^a-z_>.])(syscall|gettid|tgkill|memfd_create|mremap|membarrier|prctl|epoll_[a-z]+|eventfd|signalfd|timerfd_[a-z]+|inotify_[a-z]+|dl_iterate_phdr|getauxval|sched_getcpu|process_vm_[a-z]+|pidfd_[a-z]+)[[:space:]]*\(|"/proc/|SO_PEERCRED|MAP_POPULATE|FUTEX_|SIGEV_THREAD_ID' lib |
		grep -vE '^lib/[a-z0-9_]*_linux\.c:|^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)|/\* .*(/proc|membarrier|mremap)' | tell 'lib calls what is Linux in files called _linux.c'
	grep -rnE '(^|[^a-z_>.])(printf|fprintf|puts|putchar|perror|exit|_exit|abort|err|errx|warn|warnx)[[:space:]]*\(' lib --include='*.c' |
		grep -vE '^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)' | tell 'lib neither prints nor exits'
fi

find src lib gc preload tests bench examples \( -name '*.c' -o -name '*.h' -o -name '*.def' \) 2>/dev/null |
	sed 's|.*/||' | sort | uniq -d | tell 'this file name occurs twice'
find src lib tests bench examples docs scripts 2>/dev/null | grep -E '/(utils?|common|misc|helpers?)(\.[a-z]+)?$' | tell 'a name that says nothing'
find src tests/unit tests/fuzz -name '*.[ch]' 2>/dev/null | grep -E '/[^/]*[^a-z0-9_./][^/]*$' | tell 'file names are snake_case'

# foo.c includes foo.h first, so that every header is proved to stand alone.
for file in src/*/*.c; do
	own=${file#src/}
	own=${own%.c}.h
	[ -e "src/$own" ] || continue
	first=$(grep -m1 -E '^#[[:space:]]*include' "$file")
	[ "$first" = "#include \"$own\"" ] || echo "$file" | tell 'its own header comes first'
done

# Nothing below the roof prints or exits, but for forked children: one that could not become the command, and the guard.
grep -rnE '(^|[^a-z_>.])(printf|puts|putchar|perror|exit|_exit|abort|err|errx|warn|warnx)[[:space:]]*\(' src --include='*.c' |
	grep -vE '^src/cli/|^src/(record/child|dotnet/(guard|reverse))\.c:.*_exit|^[^:]*:[0-9]+:[[:space:]]*(\*|/\*)|__attribute__' | tell 'only cli prints and exits'

# A verb has its page, a file its cases.
for file in src/cli/cmd_*.c; do
	[ -e "$file" ] || continue
	verb=${file#src/cli/cmd_}
	verb=${verb%.c}
	[ -e "docs/man/spoor-$verb.1" ] || echo "docs/man/spoor-$verb.1" | tell 'a verb without its page'
	ls "tests/cli/$verb"/*.sh >/dev/null 2>&1 || echo "tests/cli/$verb" | tell 'a verb without cases'
done

if [ -s "$found" ]; then
	cat "$found"
	exit 1
fi
echo "the floors hold: $(find src -name '*.[ch]' | wc -l) files"
