#!/bin/sh
# layers_test.sh: violates each rule of layers.sh and comments.sh once, in a copy of the tree, and expects that it is reported. Violations that do not affect each other
# share a copy and a run, because many copies take minutes on a busy machine.
set -eu
top=$(realpath "$(dirname "$0")/..")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$copy"

renew() {
	rm -rf src lib gc include docs tests
	mkdir -p tests/unit docs
	cp -r "$top/src" "$top/lib" "$top/gc" "$top/include" .
	cp -r "$top/docs/man" docs/
	cp -r "$top/tests/cli" tests/
	: >rules
}

failed=0
# expect PATTERN: the next run is to print a line that matches.
expect() {
	echo "$1" >>rules
}

# Runs layers.sh, checks that it fails with the expected lines, and renews the copy.
check() {
	if sh "$top/tests/layers.sh" "$copy" >output 2>&1; then
		echo "layers.sh found no violation"
		failed=1
	fi
	while read -r rule; do
		if ! grep -q "$rule" output; then
			echo "not reported: $rule"
			failed=1
		fi
	done <rules
	[ $failed = 0 ] || cat output
	renew
}

renew
echo '#include "cli/message.h"' >>src/base/map.c && expect 'base may include only base: src/base/map.c:.*cli/message'
echo '#include "recording/x.h"' >>src/trace/event.h && expect 'trace may include only.*recording/x'
echo '#include "perf/x.h"' >>src/dotnet/ipc.c && expect 'dotnet may include only.*perf/x'
echo '#include "heap/x.h"' >>src/stacks/thread_stacks.c && expect 'stacks may include only.*heap/x'
echo '#include "base/map.h"' >gc/x.c && expect 'gc may include only gc: gc/x.c'
echo '#include "gc/events.h"' >>src/trace/event.h && expect 'trace may include only.*gc/events.h'
echo '#include "gc/gc_events.def"' >>src/base/map.c && expect 'base may include only base.*gc_events.def'
echo '#include "lib/event/provider.h"' >>lib/forward/forward.c && expect 'lib/forward/ may include only itself: lib/forward/forward.c'
echo '#include "map.h"' >>src/base/map.c && expect 'base may include only base.*"map.h"'
mkdir src/attic && echo >src/attic/x.c && expect 'a module that tests/layers.sh does not list: src/attic'
echo '#include <linux/perf_event.h>' >>src/trace/event.h && expect 'no Linux header'
echo '#include "base/map.h"' >>lib/platform/loop.c && expect 'lib may include only lib'
echo '#include "lib/sink/sinks.h"' >>lib/pipe/pipe.c && expect 'lib/pipe may include only platform event pipe: '
echo '#include "lib/pipe/pipe.h"' >>lib/platform/loop.c && expect 'lib/platform may include only platform: '
mkdir lib/attic && echo >lib/attic/y.c && expect 'a folder of lib that tests/layers.sh does not list: lib/attic'
echo '#include <sys/epoll.h>' >>lib/platform/loop.c && expect 'lib keeps what is Linux'
printf 'int f(void)\n{\n\treturn memfd_create("x", 0);\n}\n' >>lib/platform/loop.c && expect 'lib calls what is Linux'
echo '#include <stdio.h>' >>include/spoor/spoor.h && expect 'the public headers include only'
printf 'void f(void)\n{\n\tprintf("x");\n}\n' >>lib/platform/clock.c && expect 'lib neither prints nor exits'
echo '#ifdef __x86_64__' >>src/base/map.c && expect 'only code/arch.c depends on the processor'
echo >src/trace/map.c && expect 'this file name occurs twice: map.c'
printf 'static const struct map {\n\tint x;\n} maps[1];\n' >>src/base/text.c && expect 'this name of a struct or enum occurs twice: map: src/base/map.h:[0-9]* src/base/text.c'
printf 'struct a {\n\tenum map_walk { NONE } b;\n};\n' >>lib/platform/clock.c && expect 'this name of a struct or enum occurs twice: map_walk: lib/platform/clock.c'
echo 'static int lost_told; /* told */' >>src/base/text.c && expect 'an identifier for which there is a term: src/base/text.c:[0-9]*: static int lost_told'
printf '/* told,\n * a door */\nint clerk_of(void); /* a */ /* "b */\n' >>lib/platform/clock.c && expect 'an identifier for which there is a term: lib/platform/clock.c:[0-9]*: int clerk_of'
echo >src/base/utils.c && expect 'a name that says nothing'
echo >src/base/fooBar.c && expect 'file names are snake_case'
sed -i '0,/#include/s//#include <stdio.h>\n#include/' src/base/map.c && expect 'its own header comes first: src/base/map.c'
printf '#include <string.h>\n#include <stdio.h>\n' >>src/base/map.c && expect 'includes are sorted: src/base/map.c:[0-9]*: <stdio.h> after <string.h>'
printf '#include "lib/pipe/sink.h"\n#include "lib/pipe/pipe.h"\n' >>lib/pipe/pipe.c && expect 'includes are sorted: lib/pipe/pipe.c'
printf 'void f(void)\n{\n\texit(1);\n}\n' >>src/base/map.c && expect 'only cli prints and exits'
rm docs/man/spoor-help.1 && expect 'a verb without its page'
rm -r tests/cli/help && expect 'a verb without cases'
check

echo '#include "base/text.h"' >>src/base/bytes.c && expect 'an include cycle: base/.* -> base/'
echo '#include "lib/event/provider.h"' >>lib/event/stack_walk.h && echo '#include "lib/event/stack_walk.h"' >>lib/event/provider.h &&
	expect 'an include cycle: lib/event/.* -> lib/event/'
echo '#include "gc/collector/collector_mark.h"' >>gc/collector/collector_object.h && echo '#include "gc/collector/collector_object.h"' >>gc/collector/collector_mark.h &&
	expect 'an include cycle: gc/collector/.* -> gc/collector/'
check

# The rule of comments.sh.
for line in '/* See no_such_function(). */' '/* no_such_function(&map, 1) */'; do
	echo "$line" >>src/base/map.c
	! sh "$top/tests/comments.sh" "$copy" >output 2>&1 && grep -q '^src/base/map.c:[0-9]*: a comment names no_such_function()' output || {
		echo "not reported by comments.sh: $line"
		failed=1
	}
	renew
done

[ $failed = 0 ] && echo "each violation was reported"
exit $failed
