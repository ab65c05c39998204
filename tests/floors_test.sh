#!/bin/sh
# floors_test.sh: a test that cannot fail proves nothing. Breaks each rule of floors.sh once, in a copy, and wants it told.
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
# must_tell RULE: floors.sh fails and its words hold RULE.
must_tell() {
	if sh "$top/tests/floors.sh" "$copy" >said 2>&1 || ! grep -q "$1" said; then
		echo "not noticed: $1"
		cat said
		failed=1
	fi
	renew
}

renew
echo '#include "cli/words.h"' >>src/base/map.c && must_tell 'base may include only base'
echo '#include "session/x.h"' >>src/model/event.h && must_tell 'model may include only'
mkdir -p src/format && echo '#include "symbol/x.h"' >src/format/x.c && must_tell 'format may include only'
mkdir gc && echo '#include "base/map.h"' >gc/x.c && must_tell 'gc may include only gc'
echo '#include "gc/events.h"' >>src/model/event.h && must_tell 'model may include only'
echo '#include "gc/gc_events.def"' >>src/base/map.c && must_tell 'base may include only base'
echo '#include "map.h"' >>src/base/map.c && must_tell 'base may include only base'
mkdir src/attic && echo >src/attic/x.c && must_tell 'a room that ARCHITECTURE.md does not know'
echo '#include <linux/perf_event.h>' >>src/model/event.h && must_tell 'no Linux header'
echo '#include "base/map.h"' >>lib/loop.c && must_tell 'lib may include only lib'
echo '#include <sys/epoll.h>' >>lib/loop.c && must_tell 'lib keeps what is Linux'
printf 'int f(void)\n{\n\treturn memfd_create("x", 0);\n}\n' >>lib/loop.c && must_tell 'lib calls what is Linux'
echo '#include <stdio.h>' >>include/spoor/spoor.h && must_tell 'the public headers include only'
printf 'void f(void)\n{\n\tprintf("x");\n}\n' >>lib/loop.c && must_tell 'lib neither prints nor exits'
echo '#ifdef __x86_64__' >>src/base/map.c && must_tell 'only model/arch.c knows the processor'
echo >src/model/map.c && must_tell 'this file name occurs twice'
echo >src/base/utils.c && must_tell 'a name that says nothing'
echo >src/base/fooBar.c && must_tell 'file names are snake_case'
sed -i '0,/#include/s//#include <stdio.h>\n#include/' src/base/map.c && must_tell 'its own header comes first'
printf 'void f(void)\n{\n\texit(1);\n}\n' >>src/base/map.c && must_tell 'only cli prints and exits'
rm docs/man/spoor-help.1 && must_tell 'a verb without its page'
rm -r tests/cli/help && must_tell 'a verb without cases'
[ $failed = 0 ] && echo "each rule was noticed when broken"
exit $failed
