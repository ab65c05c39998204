#!/bin/sh
# Code of Node, Java and Python (with frame pointers) has names from the perf maps that they write, also in a container of its own; symbols of Rust (v0) and D are demangled; stripped Go programs have the names in the table of the Go runtime.
. "$(dirname "$(realpath "$0")")/../prelude"

is_root || skip "namespaces need root"
boxes=yes
unshare -pfm --mount-proc true 2>/dev/null || boxes=''
tried=''
left=''

# in_box NAME command...: starts a command in a pid and mount namespace with its own /tmp; without namespaces, as it is. Sets $inside to its process.
in_box() {
	name=$1 && shift
	: >"ready.$name"
	if [ -n "$boxes" ]; then
		start "$name" unshare -pfm --mount-proc --kill-child sh -c 'mount -t tmpfs -o mode=1777 none /tmp && exec "$@"' sh "$@" >"ready.$name" 2>"err.$name"
	else
		start "$name" "$@" >"ready.$name" 2>"err.$name"
	fi
	until_true grep -q '^ready' "ready.$name" || fail "$name does not start: $(cat "err.$name")"
	# The program prints its id; in a pid namespace it is the child of unshare.
	eval "outer=\$$name"
	inside=$outer
	[ -z "$boxes" ] || inside=$(cat "/proc/$outer/task/$outer/children")
	inside=${inside%% *}
	started="$started $inside"
}

# named WHAT PATTERN: a recording of $inside has self time in a function that matches.
is_named() {
	"$spoor" record -q -F 499 --duration 2s -p "$inside" -o x.nettrace >out 2>err || return 1
	"$spoor" report --json x.nettrace >json 2>err || return 1
	[ "$(value json '[.processes[].functions[] | select((.name | test($a)) and .named and .total_samples > 0)] | length' "$1")" -ge 1 ]
}
named() {
	until_true is_named "$2" || fail "$1: no function like '$2': $(value json '[.processes[].functions[] | .name] | .[0:20] | join(", ")')"
	tried="$tried $1"
	kill -9 "$inside"
}

cd / && cd "$scratch" || exit 99
mkdir programs && chmod 755 . programs
# /tmp of a box is empty, so what it runs is elsewhere.
if [ -n "$boxes" ]; then
	programs=$(mktemp -d /var/tmp/spoor_names.XXXXXX)
	chmod 755 "$programs"
else
	programs=$scratch/programs
fi
clean_up_more() {
	case $programs in
	/var/tmp/spoor_names.*) rm -rf "$programs" ;;
	esac
}

if node --version >/dev/null 2>&1; then
	cat >"$programs/spin.js" <<'END'
function spinInNode(n) {
	let s = 1;
	for (let i = 0; i < n; i++)
		s = (s * 31 + i) | 0;
	return s;
}
console.log("ready");
for (;;)
	spinInNode(1e7);
END
	in_box node node --perf-basic-prof "$programs/spin.js"
	named node spinInNode
else
	left="$left node"
fi

if javac -version >/dev/null 2>&1 && jcmd -h >/dev/null 2>&1; then
	cat >"$programs/Spin.java" <<'END'
public class Spin {
	static int spinInJava(int n) {
		int s = 1;
		for (int i = 0; i < n; i++)
			s = s * 31 + i;
		return s;
	}
	public static void main(String[] a) throws Exception {
		int s = 0;
		for (int i = 0; i < 200; i++)
			s += spinInJava(1000000);
		new ProcessBuilder("jcmd", Long.toString(ProcessHandle.current().pid()), "Compiler.perfmap").start().waitFor();
		System.out.println("ready " + s);
		for (;;)
			s += spinInJava(10000000);
	}
}
END
	javac -d "$programs" "$programs/Spin.java" 2>err || fail "javac"
	in_box java java -XX:+PreserveFramePointer -cp "$programs" Spin
	named java 'Spin.*spinInJava'
else
	left="$left java"
fi

# Python 3.12 and later, built with frame pointers: without, no walk of a stack reaches its trampolines.
python=''
for each in python3 /root/.pyenv/versions/3.1[2-9]*/bin/python3 /usr/bin/python3.1[2-9]; do
	"$each" -c 'import sys, sysconfig
sys.exit(not (sys.version_info >= (3, 12) and "-fno-omit-frame-pointer" in (sysconfig.get_config_var("CFLAGS") or "")))' 2>/dev/null && python=$each && break
done
if [ -n "$python" ]; then
	cat >"$programs/spin.py" <<'END'
def spin_in_python(n):
    s = 1
    for i in range(n):
        s = (s * 31 + i) & 0xffff
    return s
print("ready", flush=True)
while True:
    spin_in_python(1000000)
END
	in_box python "$python" -X perf "$programs/spin.py"
	named python 'py::spin_in_python'
else
	left="$left python(3.12,frame-pointers)"
fi

if rustc --version >/dev/null 2>&1; then
	cat >spin.rs <<'END'
mod shop {
    pub struct Price(pub u64);
    impl Price {
        #[inline(never)]
        pub fn burn(&self, n: u64) -> u64 {
            let mut s = self.0;
            for i in 0..n {
                s = s.wrapping_mul(31) ^ i;
            }
            s
        }
    }
}
fn main() {
    let mut s = 0;
    for i in 0..600 {
        s ^= shop::Price(i).burn(std::hint::black_box(1_000_000));
    }
    println!("{s}");
}
END
	if rustc -C symbol-mangling-version=v0 -C opt-level=2 -g -o spin spin.rs 2>err; then
		nm spin | grep -q ' _RNv.*burn' || fail "the program has no v0 symbols"
		code_of "$spoor" record -q -F 999 -o x.nettrace -- ./spin
		expect_code 0 "record a Rust program"
		"$spoor" report --json x.nettrace >json 2>err || fail "report"
		json json 'any(.processes[].functions[]; (.name | test("shop::Price.*::burn")) and .self_samples > 0)'
		json json '[.processes[].functions[] | select(.name | startswith("_R"))] == []'
		"$spoor" report --lines --json x.nettrace >json 2>err || fail "report --lines"
		json json 'any(.processes[].functions[]; (.file // "" | endswith("spin.rs")) and .line >= 6 and .line <= 9 and .self_samples > 0)'
		tried="$tried rust"
	else
		left="$left rust"
	fi
else
	left="$left rust"
fi

# A stripped Go program: only the table of the Go runtime has its functions.
if go version >/dev/null 2>&1; then
	mkdir go && cat >go/spin.go <<'END'
package main

import "fmt"

type Counter struct{ n uint64 }

//go:noinline
func (c *Counter) Spin(k uint64) uint64 {
	for i := uint64(0); i < k; i++ {
		c.n = c.n*31 + i
	}
	return c.n
}

func main() {
	c := &Counter{}
	for i := 0; i < 40; i++ {
		c.Spin(20000000)
	}
	fmt.Println(c.n)
}
END
	if (cd go && GOCACHE=$scratch/go/cache GO111MODULE=off go build -ldflags='-s -w' -o spin spin.go) 2>err; then
		! nm go/spin 2>/dev/null | grep -q . || fail "the Go program has symbols"
		code_of "$spoor" record -q -F 499 -o x.nettrace -- go/spin
		expect_code 0 "record a Go program"
		"$spoor" report --json x.nettrace >json 2>err || fail "report"
		json json 'any(.processes[].functions[]; .name == "main.(*Counter).Spin" and .self_samples > 0)'
		tried="$tried go"
	else
		left="$left go"
	fi
else
	left="$left go"
fi

if gdc --version >/dev/null 2>&1; then
	cat >spin.d <<'END'
struct Pricing
{
    ulong total;
    pragma(inline, false) ulong burn(ulong n)
    {
        foreach (i; 0 .. n)
            total = total * 31 + i;
        return total;
    }
}
int main()
{
    Pricing p;
    foreach (i; 0 .. 40)
        p.burn(20_000_000);
    return p.total == 1;
}
END
	if gdc -O1 -g -o spin.gdc spin.d 2>err; then
		code_of "$spoor" record -q -F 499 -o x.nettrace -- ./spin.gdc
		expect_code 0 "record a D program"
		"$spoor" report --json x.nettrace >json 2>err || fail "report"
		json json 'any(.processes[].functions[]; (.name | test("^spin\\.Pricing\\.burn\\(ulong\\)")) and .self_samples > 0)'
		tried="$tried d"
	else
		left="$left d"
	fi
else
	left="$left d"
fi

[ -n "$tried" ] || skip "none of node, java, python 3.12, rustc, go and gdc is here"
[ -z "$left" ] || echo "not tried, as not installed:$left"
