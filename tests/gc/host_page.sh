#!/bin/sh
# Checks docs/gc-host.md: its program builds with the page's command, prints what the page says, and its file has the collection.
. "$(dirname "$0")/prelude"
cc=$2
page=$top/docs/gc-host.md

block() {
	awk -v start="\`\`\`$1" '$0 == start { on = 1; next } /^```$/ { on = 0 } on' "$page"
}

block 'c chain.c' >"$work/chain.c"
block sh | sed -n 's/^cc //p' | sed "s|-I\\. -Iinclude|-I$top -I$top/include|; s|-Lbuild/gc|-L$build/gc|; s|-Lbuild |-L$build |" >"$work/command"
[ -s "$work/chain.c" ] && [ -s "$work/command" ] || wrong "the page has no program, or no command"
cd "$work"
eval "$cc $(cat command)" || wrong "the program does not build: $(cat command)"
LD_LIBRARY_PATH=$build ./chain "$build/gc/libspoorgc.so" >out || wrong "exit code $?"
block text >expected
cmp -s out expected || wrong "it prints: $(cat out)"
"$build/spoor" report --gc chain.nettrace >report || wrong "spoor cannot read its file"
grep -q '1 collection in' report || wrong "spoor shows: $(head -n 3 report)"
! ./chain "$work/none.so" 2>/dev/null || wrong "no collector, and exit code 0"
end
