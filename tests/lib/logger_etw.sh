#!/bin/sh
# logger_etw.sh SPOOR: libspoor without sessions, with a stand-in for ETW: all types and values as TraceLogging describes them, activities, sessions that come and go, threads. The same library and a program of two
# source files compile and link with mingw (gcc-mingw-w64-x86-64) without a warning. They are not run on Windows.
here=$(dirname "$(realpath "$0")")
. "$here/../feature/prelude"
top=$(realpath "$here/../..")
for tool in gcc python3 jq; do
	command -v $tool >/dev/null || skip "no $tool here"
done
stand_in=$top/tests/gen/etw

# runs NAME FLAGS: compiles the library and the writer, and runs it.
runs() {
	CC=gcc CFLAGS="-D_GNU_SOURCE -I$stand_in $2" "$top/scripts/libspoor-direct" "$1" linux-etw >err 2>&1 || fail "the library does not compile"
	gcc -std=gnu11 -O1 -Wall -Wextra -Werror $2 -I"$1/include" -I"$stand_in" -I"$top" -I"$top/tests" "$here/etw_writer.c" "$stand_in/etw.c" "$1/libspoor.a" -lpthread -o "$1/writer" \
		2>err || fail "the writer does not build"
	"$1/writer" >written 2>err || fail "the writer fails ($?)"
	python3 "$here/trace_logging.py" written >events 2>err || fail "an event is malformed"
}
runs plain ''

# EventSource makes the same GUIDs of names.
has written '^# guid System.Runtime 0f2c5949055a6d51aa4ba64e02026c89$'
has written '^# guid microsoft-dotnetRuntimeMonoProfiler 822d447f1d0f55514b8c1529eb2e31c2$'
[ "$(sed -n '1,/^# step all/p' written | grep -c '^transfer')" = 0 ] || fail "events are written that no session enabled"

jq -cS 'select(.step != "threads" and .step != "handler" and .step != "long" and .step != "activities") | del(.tid, .guid)' events >found
cat >expected <<'JSON'
{"event":"Plain","fields":{"Char":"€","F32":1.25,"F64":-2.5,"Guid":"00112233-4455-6677-8899-aabbccddeeff","I16":-1600,"I32":-320000,"I64":-64000000000,"I8":-8,"Pointer":"0x7f0012345678","Text":"grüß 🐟","Text16":"wä€","Time":133444736001234567,"U16":60000,"U32":4000000000,"U64":18000000000000000000,"U8":200,"Yes":true},"id":1,"keywords":"0x11","level":4,"opcode":0,"provider":"Types","step":"all","version":3}
{"event":"Arrays","fields":{"Blob":"0x0102ff","Doubles":[0.5,-2.0],"Last":65535,"Numbers":[7,0,4294967295],"Point":{"Label":"a","X":1,"Y":1.5},"Points":[{"Label":"a","X":1,"Y":1.5},{"Label":"€","X":-2,"Y":2.5}],"Texts":["one","","dräi"]},"id":2,"keywords":"0x0","level":5,"opcode":0,"provider":"Types","step":"all","version":0}
{"event":"Nested","fields":{"First":9,"Last":77,"Point":{"Label":"€","X":-2,"Y":2.5}},"id":3,"keywords":"0x0","level":4,"opcode":0,"provider":"Types","step":"all","version":0}
{"event":"Nothing","fields":{},"id":4,"keywords":"0x0","level":0,"opcode":0,"provider":"Types","step":"all","version":0}
{"event":"order","fields":{"id":7,"name":"tea"},"id":1,"keywords":"0x8000000000000001","level":3,"opcode":0,"provider":"Test-Shop","step":"all","version":0}
{"event":"refund","fields":{"amount":-5},"id":2,"keywords":"0x2","level":5,"opcode":0,"provider":"Test-Shop","step":"all","version":0}
{"event":"Made","fields":{"Number":4711,"Text":"made at run time"},"id":32768,"keywords":"0x4","level":2,"opcode":0,"provider":"Run-Time","step":"all","version":0}
{"event":"order","fields":{"id":3,"name":"warning"},"id":1,"keywords":"0x8000000000000001","level":3,"opcode":0,"provider":"Test-Shop","step":"warnings","version":0}
{"event":"order","fields":{"id":6,"name":"again"},"id":1,"keywords":"0x8000000000000001","level":3,"opcode":0,"provider":"Test-Shop","step":"again","version":0}
JSON
jq -cS . expected >wanted
jq -cS . found >ours
diff wanted ours >out || fail "other events than were fired"
jq -es 'map(select(.step == "activities" and .event == "refund") | has("activity")) == [true, false]' events >out || fail "the activities of events"
jq -es 'map(select(.event == "ActivityStart")) | length == 2 and (.[0] | has("related") | not) and .[1].related == .[0].activity and .[1].activity != .[0].activity' events >out ||
	fail "related activities"
jq -es 'map(select(.step == "long") | .fields.name | length) == [6000]' events >out || fail "a long text"
jq -es 'map(select(.step == "handler") | .fields.amount) == [8]' events >out || fail "the event of a signal handler"
jq -es 'map(select(.step == "threads") | .tid) | unique | length == 3' events >out || fail "the events of three threads"
[ "$(jq -r .guid events | sort -u | wc -l)" = 4 ] || fail "not a GUID for each provider"
has written '^# enable Test-Shop on level 5 keywords 0x8000000000000003 any 1$'
has written '^# enable Test-Shop on level 3 keywords 0x8000000000000001 any 1$'
has written '^# enable Test-Shop off '
echo "$(wc -l <events) events have the values that were fired"

runs checked '-fsanitize=address,undefined -fno-sanitize-recover=all'
! is_sanitized || exit 0
runs threads -fsanitize=thread

command -v x86_64-w64-mingw32-gcc >/dev/null || skip "mingw is not installed (gcc-mingw-w64-x86-64)"
"$top/scripts/libspoor-direct" windows >err 2>&1 || fail "the library does not compile with mingw"
cat >both.h <<'END'
#include <spoor/logger.h>
SPOOR_PROVIDER(both, "Both-Files")
SPOOR_EVENT(both, order, 1, SPOOR_INFO, 0x1, (u32, id), (text, name))
void other(void);
END
cat >main.c <<'END'
#include "both.h"
SPOOR_EVENT(both, mine, 2, SPOOR_INFO, 0x1)
int main(void)
{
	if (spoor_start(NULL) || spoor_provider_register(&both) || spoor_logger_start(SPOOR_LOGGER_ETW))
		return 1;
	both_order(7, "tea");
	both_mine();
	other();
	spoor_stop();
	return 0;
}
END
cat >other.c <<'END'
#include "both.h"
SPOOR_EVENT(both, theirs, 3, SPOOR_INFO, 0x1)
void other(void)
{
	both_order(8, "cake");
	both_theirs();
}
END
x86_64-w64-mingw32-gcc -std=c11 -O2 -Wall -Wextra -Werror -Iwindows/include main.c other.c windows/libspoor.a -ladvapi32 -lpthread -static -o main.exe 2>err || fail "a program does not link with mingw"
x86_64-w64-mingw32-objdump -p main.exe >imports
for name in EventRegister EventWriteTransfer EventEnabled EventUnregister EventSetInformation; do
	has imports "[ 	]$name\$"
done
# One event and one provider of each name, though both files define them.
x86_64-w64-mingw32-nm main.exe >symbols
[ "$(grep -cE ' both(_order_event)?$' symbols)" = 2 ] || fail "the files have a provider each: $(grep ' both' symbols)"
if command -v wine >/dev/null; then
	WINEPREFIX=$scratch/wine WINEDEBUG=-all timeout 300 wine main.exe >out 2>err || fail "the program fails with wine ($?)"
	echo "the program ran with wine"
fi
exit 0
