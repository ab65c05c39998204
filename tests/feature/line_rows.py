"""
line_rows.py LINES FILE [COUNT]: reads COUNT (10,000) addresses of a file's code with LINES (bench/lines.c), llvm-symbolizer and addr2line -i, and prints the rows that differ.

A row is an address with its lines and inlined functions. Each reader has faults of its own: addr2line of binutils 2.40 takes wrong folders from version 5, and names
functions by symbols that are near; llvm-symbolizer prints return types. So a row is right if one of the two has it. Without llvm-symbolizer, folders and the
names of functions are not compared. What the demanglers write differently is left out of names: signs, return types, and where a lambda is. The last line has the numbers.
"""
import functools
import os
import re
import shutil
import subprocess
import sys



def text_bounds(file):
    for line in subprocess.run(["readelf", "-SW", file], capture_output=True, text=True).stdout.splitlines():
        parts = line.replace("[", "").replace("]", "").split()
        if len(parts) > 5 and parts[1] == ".text":
            return int(parts[3], 16), int(parts[5], 16)
    sys.exit(f"'{file}' has no .text")


@functools.cache
def path_of(path, full):
    return os.path.normpath(path) if full else os.path.basename(path)


@functools.cache
def name_of(function):
    return "lambda" if "lambda" in function else re.sub(r"\bconst\b|[^\w:~]", "", function)


def rows_of(command, addresses, full):
    """{address: ((function, place), ...)}, innermost first; the last function is not compared: LINES does not have it."""
    done = subprocess.run(command, input="".join(f"{a:#x}\n" for a in addresses), capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"{command}: {done.stderr}")
    rows = {}
    for block in re.split(r"^(0x[0-9a-f]+)\n", done.stdout, flags=re.M)[1:]:
        if block.startswith("0x"):
            row = rows[int(block, 16)] = []
            continue
        lines = block.splitlines()
        for function, place in zip(lines[::2], lines[1::2]):
            path, number = re.sub(r" \(discriminator \d+\)$", "", place).rsplit(":", 1)
            known = number not in ("?", "0")
            row.append((name_of(function) if full else "", f"{path_of(path, bool(full))}:{number}" if known else "?"))
        row[-1] = ("", row[-1][1])
    return {address: tuple(row) for address, row in rows.items()}


def is_same(row, other):
    """One of two names may begin with a return type."""
    return other is not None and len(row) == len(other) and all(
        a[1] == b[1] and (a[0].endswith(b[0]) or b[0].endswith(a[0])) and bool(a[0]) == bool(b[0]) for a, b in zip(row, other))


def main():
    lines, file = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
    begin, size = text_bounds(file)
    addresses = sorted({begin + i * size // count for i in range(count)})
    llvm = shutil.which("llvm-symbolizer")
    ours = rows_of([lines, file], addresses, llvm)
    peers = []
    wrong = addresses
    if llvm:
        peers.append(rows_of([llvm, f"--obj={file}", "--output-style=GNU", "-a", "-f", "-i", "-C"], addresses, llvm))
        wrong = [a for a in wrong if not is_same(ours[a], peers[0].get(a))]
    if wrong:
        peers.append(rows_of(["addr2line", "-afiC", "-e", file], wrong, llvm))
        wrong = [a for a in wrong if not is_same(ours[a], peers[-1].get(a))]
    for address in wrong[:10]:
        print(f"{address:#x}\n  ours {ours[address]}")
        for rows in peers:
            print(f"  peer {rows.get(address)}")
    inlined = sum(len(row) > 1 for row in ours.values())
    print(f"{len(addresses)} rows, {inlined} with inlined functions, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


main()
