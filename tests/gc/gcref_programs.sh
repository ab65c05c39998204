#!/bin/sh
# Programs under the reference collector with many collections, by GCPath on .NET 10: an ASP.NET Core application with server-GC settings answers 10,000 requests under load without
# an error; dotnet build builds a project that runs. (web.sh runs them with default settings, under both libraries.)
. "$(dirname "$0")/prelude"
library=$build/gc/libspoorgc.so
wanted=10000

program webapi
load=$build/examples/load
if [ ! -x "$load" ]; then
	cc=$2
	load=$work/load
	"$cc" -std=gnu17 -O2 -D_GNU_SOURCE "$top/examples/load/load.c" -o "$load" -lpthread
fi

# serve NAME VARIABLE=VALUE...
serve() {
	name=$1
	shift
	rm -f "$work/port"
	start "$work/web" env "$@" DOTNET_GCPath="$library" dotnet "$program" "$work/port"
	server=$last
	await "$work/port"
	# The library is mapped: otherwise another collector runs.
	grep -q libspoorgc.so "/proc/$server/maps" || wrong "$name: the library is not in the process"
	answered=0 failed=0 rounds=0
	while [ $answered -lt $wanted ] && [ $rounds -lt 60 ]; do
		"$load" "$(cat "$work/port")" 4 /alloc=24 /throw=8 /wait=4 /cpu=1 >"$work/load.out" || wrong "$name: a path was never answered"
		answered=$((answered + $(awk '$1 ~ "^/" { n += $2 } END { print n + 0 }' "$work/load.out")))
		failed=$((failed + $(awk '$1 ~ "^/" { for (i = 2; i <= NF; i++) if ($i ~ /^failed/) n += $(i - 1) } END { print n + 0 }' "$work/load.out")))
		rounds=$((rounds + 1))
	done
	at_least "$name: requests answered" $answered $wanted
	same "$name: requests that failed" $failed 0
	kill -0 "$server" 2>/dev/null || wrong "$name: the server is gone: $(tail -n 3 "$work/web")"
	kill "$server"
	wait "$server" 2>/dev/null || :
	echo "$name: $answered requests answered, $failed failed"
}

serve "web, each 1 MB" DOTNET_gcServer=1 DOTNET_GCgen0size=0x100000

# A project, built and run.
mkdir "$work/small"
cat >"$work/small/small.csproj" <<'END'
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net10.0</TargetFramework>
    <UseAppHost>false</UseAppHost>
  </PropertyGroup>
</Project>
END
cat >"$work/small/Program.cs" <<'END'
System.Console.WriteLine(string.Join(",", System.Linq.Enumerable.Range(1, 5)));
END
options="-c Release -o $work/small/out -v quiet -nodeReuse:false -p:UseSharedCompilation=false"
# shellcheck disable=SC2086 # a list of words
if ! DOTNET_GCPath="$library" DOTNET_GCgen0size=0x400000 timeout 300 dotnet build "$work/small" $options >"$work/build.log" 2>&1; then
	wrong "dotnet build: $(tail -n 5 "$work/build.log")"
else
	same "what was built" "$(DOTNET_GCPath="$library" dotnet "$work/small/out/small.dll")" 1,2,3,4,5
	echo "dotnet build: good"
fi
# The variable was used: with a missing file the program does not start.
if DOTNET_GCPath="$work/none.so" dotnet "$work/small/out/small.dll" >"$work/out" 2>&1; then
	wrong "DOTNET_GCPath is not heeded here"
fi
end
