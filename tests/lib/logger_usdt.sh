#!/bin/sh
# logger_usdt.sh SPOOR: bpftrace and perf find libspoor's run-time probes, enable them by the semaphore, and read the values of every type of field, event by event.
here=$(dirname "$(realpath "$0")")
. "$here/../feature/prelude"
[ "$(id -u)" = 0 ] || skip "only root can make uprobes"
[ "$(uname -m)" = x86_64 ] || skip "the scripts read registers of x86-64"
writer=$(dirname "$spoor")/tests/lib/logger_writer
mkfifo input
exec 9<>input

# writer NAME=VALUE...: starts logger_writer and sets $pid.
writer() {
	rm -f events
	start WRITER sh -c 'exec env "$@" usdt <input >events' sh "$@" "$writer"
	pid=$WRITER
	until_true grep -q '^ready' events
}

if command -v bpftrace >/dev/null; then
	writer
	# The list needs no running uprobe: it is read from the process's memory map.
	bpftrace -p "$pid" -l 'usdt:*' >list 2>err || skip "bpftrace cannot list probes here: $(head -n 1 err)"
	for probe in types:Plain_V3 types:Arrays types:Nested types:Nothing test_shop:order test_shop:refund run_time:Made; do
		has list ":$probe\$"
	done
	# bpftrace names six arguments (arg0 to arg5); the others are in memory at the first register.
	cat >script.bt <<-'END'
		usdt::types:Plain_V3 {
			$a = reg("di");
			printf("plain %d %d %d %d %d %d %u %lld %llu %x %llx", arg0, arg1, arg2, arg3, arg4, arg5,
				*($a + 48), *(int64 *)($a + 56), *($a + 64), *($a + 72), *($a + 80));
			printf(" %u %x %llu %llx %s %s\n", *($a + 88), *(uint32 *)*($a + 96), *($a + 104), *($a + 112),
				str(*($a + 120)), str(*($a + 128)));
			@plain++;
		}
		usdt::types:Arrays {
			$a = reg("di");
			$texts = *(uint64 *)($a + 56);
			printf("arrays %d %d %d %u %d %llx %d %s %s", arg0, *(uint8 *)(arg1 + 2), arg2, *(uint32 *)(arg3 + 8), arg4,
				*(uint64 *)(arg5 + 8), *(uint32 *)($a + 48), str(*(uint64 *)$texts), str(*(uint64 *)($texts + 16)));
			printf(" %d %llx %s %d %u\n", *(int32 *)($a + 64), *($a + 72), str(*($a + 80)), *(uint32 *)($a + 88), *(uint16 *)($a + 104));
			@arrays++;
		}
		usdt::types:Nested { printf("nested %d %d %llx %s %d\n", arg0, arg1, arg2, str(arg3), arg4); @nested++; }
		usdt::types:Nothing { printf("nothing\n"); @nothing++; }
		usdt::test_shop:order { printf("order %d %s %d\n", arg0, str(arg1), tid == pid); @order++; }
		usdt::run_time:Made { printf("made %d %s\n", arg0, str(arg1)); @made++; }
		interval:ms:100 { if (@plain > 9 && @arrays > 9 && @nested > 9 && @nothing > 9 && @order > 9 && @made > 9) { exit(); } }
	END
	timeout 120 bpftrace -p "$pid" script.bt >out 2>err || fail "bpftrace failed"
	cat >expected <<-END
		arrays 3 255 3 4294967295 2 c000000000000000 3 one dräi 1 3ff8000000000000 a 2 65535
		made 4711 made at run time
		nested 9 -2 4004000000000000 € 77
		nothing
		order 7 tea 1
		plain 1 -8 200 -1600 60000 -320000 4000000000 -64000000000 18000000000000000000 3fa00000 c004000000000000 8364 112233 133444736001234567 7f0012345678 grüß 🐟 wä€
	END
	grep -v '^Attaching\|^$\|^@' out | sort -u >values
	diff expected values || fail "the values of bpftrace are not those that were fired"
	has events '^enable Test-Shop on level 3 keywords 0x8000000000000001 any 1$'
	# The tool is gone: the event is off again.
	until_true grep -q '^enable Test-Shop off .* any 0$' events
	echo "bpftrace: six kinds of event, all values right"
	echo >&9
	wait "$pid" || fail "logger_writer failed"
else
	echo "bpftrace is not in PATH: perf alone"
fi

command -v perf >/dev/null || {
	command -v bpftrace >/dev/null || skip "neither bpftrace nor perf is in PATH"
	exit 0
}
mkdir probes
writer SPOOR_USDT_FOLDER="$scratch/probes"
image=$(echo probes/spoor-usdt-*-1.so)
[ -e "$image" ] || fail "there is no file of probes"
# perf keeps its probes in tracefs, which this mounts for itself, and its cache in HOME.
cat >perf.sh <<-END
	mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
	[ -w /sys/kernel/tracing/uprobe_events ] || exit 77
	export HOME=$scratch
	perf buildid-cache --add $scratch/$image || exit 1
	event=\$(perf probe sdt_types:Plain_V3 2>&1 | sed -n 's/^ *\(sdt_types:[A-Za-z0-9_]*\) .*/\1/p' | head -n 1)
	echo "event \$event"
	for seconds in 1 3 10 30; do
		perf record -o perf.data -e "\$event" -p $pid -- sleep \$seconds >/dev/null 2>&1
		perf script -i perf.data >script
		[ ! -s script ] || break
	done
	cat script
	perf probe -q -d "\$event"
END
code=0
unshare -m sh perf.sh >out 2>err || code=$?
[ $code != 77 ] || skip "perf: tracefs cannot be mounted"
has out 'arg1=1 arg2=248 arg3=200 arg4=63936 arg5=60000 arg6=-320000 arg7=4000000000 arg8=-64000000000 arg9=18000000000000000000 arg10=1067450368 arg11=13836183955189006336 arg12=8364 '
echo >&9
wait "$pid" || fail "logger_writer failed"
[ ! -e "$image" ] || fail "the file of probes is still there after the end"
echo "perf: all numbers right; the file is removed at the end"
