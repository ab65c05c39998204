#!/bin/sh
# An ASP.NET Core application under each library, with its default of server GC: 10,000 requests under load without an error, with GC events; and `dotnet build` of a small project.
. "$(dirname "$0")/prelude"
watcher
requests=${SPOOR_GC_REQUESTS:-10000}

program webapi
[ -x "$build/examples/load" ] || skip "the load generator is not built here"

for library in "$build"/gc/libspoorgc*.so; do
	name=${library##*/}
	rm -f "$work/port"
	start "$work/web" env DOTNET_GCPath="$library" dotnet "$program" "$work/port"
	web=$last
	await "$work/port"
	# Runs of a few seconds until enough requests were answered.
	answered=0
	for bout in $(seq 20); do
		"$build/examples/load" "$(cat "$work/port")" 4 /cpu=4 /alloc=8 /throw=2 /wait=8 >"$work/load" || wrong "$name: a path was never answered: $(cat "$work/load")"
		failed=$(awk '{ for (i = 2; i <= NF; i++) if ($i ~ /^failed/) n += $(i - 1) } END { print n + 0 }' "$work/load")
		[ "$failed" = 0 ] || wrong "$name, bout $bout: $(cat "$work/load")"
		answered=$((answered + $(awk '{ for (i = 2; i <= NF; i++) if ($i ~ /^answered/) n += $(i - 1) } END { print n + 0 }' "$work/load")))
		if [ "$bout" = 1 ]; then
			dotnet "$watch" record $web "$work/web.nettrace" 2 1:4 &
			watching=$!
		fi
		[ $answered -lt "$requests" ] || break
	done
	wait $watching || wrong "$name: the session failed"
	at_least "$name: requests answered" $answered "$requests"
	kill -0 $web || wrong "$name: the server is gone: $(tail -n 3 "$work/web")"
	dotnet "$watch" facts "$work/web.nettrace" "$top/gc/gc_events.def" >"$work/facts"
	same "$name: lost" "$(fact lost)" 0
	same "$name: starts without end" "$(fact gcs_unpaired)" 0
	same "$name: dynamic events that the list does not explain" "$(fact undecoded)" 0
	echo "$name: $answered requests answered, $(fact gc_starts) collections in 2 s of them"
	kill $web
	wait $web || :

	mkdir -p "$work/small"
	printf '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net10.0</TargetFramework><UseAppHost>false</UseAppHost></PropertyGroup></Project>\n' >"$work/small/small.csproj"
	printf 'System.Console.WriteLine("built under " + System.Environment.GetEnvironmentVariable("DOTNET_GCPath"));\n' >"$work/small/p.cs"
	(cd "$work/small" && DOTNET_GCPath=$library timeout 200 dotnet build -v quiet -nodeReuse:false -p:UseSharedCompilation=false >"$work/build.log" 2>&1) ||
		wrong "$name: dotnet build: $(tail -n 5 "$work/build.log")"
	DOTNET_GCPath=$library dotnet "$work/small/bin/Debug/net10.0/small.dll" >"$work/out" 2>&1 || wrong "$name: what was built does not run"
	grep -q "built under $library" "$work/out" || wrong "$name: $(cat "$work/out")"
	rm -rf "$work/small"
done
end
