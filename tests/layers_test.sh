#!/bin/sh
# layers_test.sh: violates each rule of layers.sh once, in a copy of the tree, and expects that layers.sh reports it.
set -eu
top=$(realpath "$(dirname "$0")/..")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$copy"

renew() {
	rm -rf src gc docs tests
	rm -rf src lib include docs tests
	mkdir -p tests/unit docs
	cp -r "$top/src" "$top/lib" "$top/include" .
	cp -r "$top/docs/man" docs/
	cp -r "$top/tests/cli" tests/
}

failed=0
# must_report RULE: layers.sh fails, and its output contains RULE.
must_report() {
	if sh "$top/tests/layers.sh" "$copy" >output 2>&1 || ! grep -q "$1" output; then
		echo "not reported: $1"
		cat output
		failed=1
	fi
	renew
}

renew
echo '#include "cli/words.h"' >>src/base/map.c && must_report 'base may include only base'
echo '#include "recording/x.h"' >>src/trace/event.h && must_report 'trace may include only'
echo '#include "perf/x.h"' >>src/dotnet/ipc.c && must_report 'dotnet may include only'
echo '#include "heap/x.h"' >>src/stacks/thread_stacks.c && must_report 'stacks may include only'
mkdir gc && echo '#include "base/map.h"' >gc/x.c && must_report 'gc may include only gc'
echo '#include "gc/events.h"' >>src/trace/event.h && must_report 'trace may include only'
echo '#include "gc/gc_events.def"' >>src/base/map.c && must_report 'base may include only base'
echo '#include "base/text.h"' >>src/base/bytes.c && must_report 'an include cycle: base/.* -> base/'
echo '#include "lib/event/provider.h"' >>lib/event/stack_walk.h && echo '#include "lib/event/stack_walk.h"' >>lib/event/provider.h &&
	must_report 'an include cycle: lib/event/.* -> lib/event/'
echo '#include "lib/sink/sinks.h"' >>lib/pipe/pipe.c && must_report 'lib/pipe may include only platform event pipe'
echo '#include "lib/pipe/pipe.h"' >>lib/platform/loop.c && must_report 'lib/platform may include only platform'
mkdir lib/attic && echo >lib/attic/x.c && must_report 'a folder of lib that tests/layers.sh does not list'
echo '#include "map.h"' >>src/base/map.c && must_report 'base may include only base'
mkdir src/attic && echo >src/attic/x.c && must_report 'a module that tests/layers.sh does not list'
echo '#include <linux/perf_event.h>' >>src/trace/event.h && must_report 'no Linux header'
echo '#include "base/map.h"' >>lib/platform/loop.c && must_report 'lib may include only lib'
echo '#include <sys/epoll.h>' >>lib/platform/loop.c && must_report 'lib keeps what is Linux'
printf 'int f(void)\n{\n\treturn memfd_create("x", 0);\n}\n' >>lib/platform/loop.c && must_report 'lib calls what is Linux'
echo '#include <stdio.h>' >>include/spoor/spoor.h && must_report 'the public headers include only'
printf 'void f(void)\n{\n\tprintf("x");\n}\n' >>lib/platform/loop.c && must_report 'lib neither prints nor exits'
echo '#ifdef __x86_64__' >>src/base/map.c && must_report 'only code/arch.c depends on the processor'
echo >src/trace/map.c && must_report 'this file name occurs twice'
echo >src/base/utils.c && must_report 'a name that says nothing'
echo >src/base/fooBar.c && must_report 'file names are snake_case'
sed -i '0,/#include/s//#include <stdio.h>\n#include/' src/base/map.c && must_report 'its own header comes first'
printf 'void f(void)\n{\n\texit(1);\n}\n' >>src/base/map.c && must_report 'only cli prints and exits'
rm docs/man/spoor-help.1 && must_report 'a verb without its page'
rm -r tests/cli/help && must_report 'a verb without cases'
[ $failed = 0 ] && echo "each violation was reported"
exit $failed
