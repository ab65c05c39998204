#!/usr/bin/env python3
"""fire.py make EVENTS.json API MAIN.c EXPECTED.json: a C program that fires each event of what `spoor gen` made, and the values that a reader must find.

API: "libspoor" (the program writes the nettrace file that its argument names), "lttng", "user_events" or "etw" (with
the stand-in for Windows in tests/gen/etw).
fire.py compare KIND EXPECTED.json READ: holds what was read against them; KIND is "spoor" (lines of `spoor events --json`), "babeltrace" (babeltrace2's text),
"event-header" (lines of event_header.py) or "etw" (lines of tests/gen/etw).
"""
import json
import re
import struct
import sys
import time

SIZES = {"Int8": 1, "UInt8": 1, "Int16": 2, "UInt16": 2, "Int32": 4, "UInt32": 4, "Int64": 8, "UInt64": 8, "HexInt32": 4, "HexInt64": 8}
ARRAY_C = {"Float": "float", "Double": "double", "Boolean": "uint32_t", "Pointer": "uint64_t", "GUID": "struct spoor_guid", "FILETIME": "uint64_t"}
COUNT = 3
LENGTH = 5
TEXTS = ("UnicodeString", "AnsiString")
EPOCH = 116444736000000000


def integer_c(kind):
    size = SIZES[kind] * 8
    return ("int%d_t" if kind.startswith("Int") else "uint%d_t") % size


class Maker:
    """Values that differ from field to field: a reader that takes one for another is caught."""

    def __init__(self):
        self.seed = 0

    def next(self):
        self.seed += 1
        return self.seed

    def scalar(self, field, length):
        """(C expression, C expression as an array's element, value)"""
        kind = field["type"]
        n = self.next()
        if kind in SIZES:
            bits = SIZES[kind] * 8
            if kind.startswith("Int"):
                value = -(n % (1 << (bits - 1))) if n % 2 else n % (1 << (bits - 1))
                text = "INT64_C(%d)" % value if bits == 64 else str(value)
            else:
                value = ((1 << bits) - n) % (1 << bits) if bits > 8 and n % 3 == 0 else n % (1 << bits)
                text = "UINT%d_C(%d)" % (64 if bits == 64 else 32, value)
                if bits < 32:
                    text = str(value)
            return text, text, value
        if kind in ("Float", "Double"):
            value = n + 0.5
            text = "%r%s" % (value, "f" if kind == "Float" else "")
            return text, text, value
        if kind == "Boolean":
            value = n % 2 == 0
            return ("true" if value else "false"), str(int(value)), value
        if kind == "Pointer":
            value = 0x7f0000000000 + n
            return "(const void *)(uintptr_t)%#x" % value, "UINT64_C(%#x)" % value, value
        if kind == "GUID":
            raw = bytes((n + i) % 256 for i in range(16))
            text = "{ { %s } }" % ", ".join(map(str, raw))
            a, b, c = struct.unpack("<IHH", raw[:8])
            return "&(const struct spoor_guid)" + text, text, "%08x-%04x-%04x-%s-%s" % (a, b, c, raw[8:10].hex(), raw[10:].hex())
        if kind == "FILETIME":
            value = EPOCH + (1600000000 + n) * 10000000
            return "INT64_C(%d)" % ((1600000000 + n) * 1000000000), "UINT64_C(%d)" % value, ("time", value)
        if kind == "SYSTEMTIME":
            parts = [2020, 1 + n % 12, n % 7, 1 + n % 28, n % 24, n % 60, n % 60, n % 1000]
            text = ", ".join(map(str, parts))
            return "(const uint16_t[]){ %s }" % text, text, dict(zip("Year Month DayOfWeek Day Hour Minute Second Milliseconds".split(), parts))
        if kind == "SID":
            raw = [1, 2, 0, 0, 0, 0, 0, 5, n % 256, 0, 0, 0, 7, 0, 0, 0]
            return "(const uint8_t[]){ %s }" % ", ".join(map(str, raw)), "", raw
        if kind in TEXTS:
            value = "x%04d" % (n % 10000) if length else ("t\u00e9%d\u20ac" % n if kind == "UnicodeString" else "a%d" % n)
            text = '"%s"' % "".join(c if ord(c) < 128 else "".join("\\%03o" % b for b in c.encode()) for c in value)
            return text, text, value
        raise SystemExit("no values for " + kind)

    def field(self, field, uses, tag):
        """(C argument, value)"""
        kind = field["type"]
        count = field.get("count")
        items = count if isinstance(count, int) else COUNT if count else None
        length = field.get("length")
        size = length if isinstance(length, int) else LENGTH
        if kind == "struct":
            rows = [self.fields(field["fields"], tag, True) for _ in range(items or 1)]
            c = ", ".join("{ %s }" % ", ".join(row[0]) for row in rows)
            values = [row[1] for row in rows]
            return "(const struct %s_%s[]){ %s }" % (tag, field.get("nameInC", field["name"]), c), values if items else values[0]
        if kind == "Binary":
            raw = [(self.next() + i) % 256 for i in range(size * (items or 1))]
            return "(const uint8_t[]){ %s }" % ", ".join(map(str, raw)), raw
        if field["name"] in uses:
            value = uses[field["name"]]
            self.next()
            return str(value), value
        if items is None:
            c, element, value = self.scalar(field, length)
            if isinstance(length, int):
                value = value[:length] if kind in TEXTS else value
            return (element if kind == "GUID" and tag is None else c), value
        rows = [self.scalar(field, length) for _ in range(items)]
        name = "char *const" if kind in TEXTS else "uint16_t" if kind == "SYSTEMTIME" else integer_c(kind) if kind in SIZES else ARRAY_C[kind]
        values = [row[2] for row in rows]
        if isinstance(length, int) and kind in TEXTS:
            values = [value[:length] for value in values]
        return "(const %s[]){ %s }" % (name, ", ".join(row[1] for row in rows)), values

    def fields(self, fields, tag, inside=False):
        uses = {}
        for field in fields:
            if isinstance(field.get("count"), str):
                uses[field["count"]] = COUNT
            if isinstance(field.get("length"), str):
                uses[field["length"]] = LENGTH
        c, values = [], {}
        for field in fields:
            text, value = self.field(field, uses, tag)
            if inside and field["type"] == "GUID" and not field.get("count"):
                text = text[len("&(const struct spoor_guid)"):]
            c.append(text)
            values[field["name"]] = value
        return c, values


def identifier(text):
    text = re.sub(r"\W", "_", text, flags=re.ASCII)
    return "_" + text if not text or text[0].isdigit() else text


HEAD_SPOOR = """
int main(int argc, char **argv)
{
	static const struct spoor_want wants[] = { %(wants)s };
	struct spoor_session_options options = { .size = sizeof(options), .wants = wants, .want_count = sizeof(wants) / sizeof(wants[0]),
		.buffer_bytes = 64 << 20 };
	struct spoor_file_options file = { .size = sizeof(file), .path = argc > 1 ? argv[1] : "x.nettrace" };
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	struct spoor_session *session;
	char conflict[1024];

	if (spoor_start(&(const struct spoor_options){ .size = sizeof(struct spoor_options), .flags = SPOOR_START_NO_SERVER }))
		return 2;
%(register)s	if (spoor_session_start_file(&options, &file, &session))
		return 4;
%(calls)s	if (spoor_session_stop(session))
		return 5;
	spoor_session_count(session, &counts);
	printf("%%llu written, %%llu lost\\n", (unsigned long long)counts.written, (unsigned long long)counts.lost);
	spoor_session_free(session);
	return counts.lost ? 6 : 0;
}
"""


def make(document, api, main_path, expected_path):
    expected, out, calls = [], [], []
    wants, registers, ends = [], [], []
    for provider in document["providers"]:
        prefix = provider["prefix"]
        if api == "libspoor":
            out.append('#include "%s.h"\n' % prefix)
        else:
            out.append('#include "%s_%s.h"\n' % (prefix, api))
        if not provider["events"]:
            continue
        wants.append('{ .size = sizeof(struct spoor_want), .name = "%s", .keywords = ~UINT64_C(0), .level = 5 }' % provider["name"])
        tasks = {task["name"]: task["value"] for task in provider["tasks"]}
        if api == "etw":
            registers.append("\tif (%s_etw_register())\n\t\treturn 3;\n" % prefix)
            ends.append("\tif (%s_etw_%s_enabled())\n\t\treturn 8;\n\t%s_etw_unregister();\n" % (prefix, provider["events"][0]["symbol"], prefix))
        if api == "user_events":
            calls.append("\tif (%s_user_events_register())\n\t\treturn 3;\n" % prefix)
        if api == "libspoor":
            registers.append("\tif (spoor_provider_register(&%s)) {\n\t\tspoor_provider_conflict(conflict, sizeof(conflict));\n"
                             '\t\tprintf("%%s\\n", conflict);\n\t\treturn 3;\n\t}\n' % prefix)
        for event in provider["events"]:
            tag = "%s_%s" % (prefix, identifier(event.get("template", "")))
            c, values = Maker().fields(event["fields"], tag)
            expected.append({"provider": provider["name"], "short": provider["shortName"], "event": event, "values": values,
                             "guid": provider["guid"], "task": tasks.get(event.get("task"), 0)})
            if api == "libspoor":
                calls.append("\tif (!%s_%s_enabled())\n\t\treturn 7;\n" % (prefix, event["symbol"]))
                calls.append("\t%s_%s(%s);\n" % (prefix, event["symbol"], ", ".join(c)))
            else:
                calls.append("\tif (!%s_%s_%s_enabled())\n\t\tmissing++;\n" % (prefix, api, event["symbol"]))
                calls.append("\t%s_%s_%s(%s);\n" % (prefix, api, event["symbol"], ", ".join(c)))
        if api == "user_events":
            calls.append("\t%s_user_events_unregister();\n" % prefix)
    with open(main_path, "w", encoding="utf-8") as f:
        f.write("#include <stdio.h>\n" + "".join(out))
        if api == "libspoor":
            f.write(HEAD_SPOOR % {"wants": ", ".join(wants), "register": "".join(registers), "calls": "".join(calls)})
        elif api == "etw":
            f.write('#include "etw.h"\n\nint main(void)\n{\n\tint missing = 0;\n\n%s%s\tprintf("%%d not enabled\\n", missing);\n\tetw_session(1, 255, ~UINT64_C(0));\n%s'
                    '\tetw_session(0, 0, 0);\n%s\treturn 0;\n}\n' % ("".join(registers), "".join(calls), "".join(calls), "".join(ends)))
        else:
            f.write('int main(void)\n{\n\tint missing = 0;\n\n%s\tprintf("%%d not enabled\\n", missing);\n\treturn missing != 0;\n}\n' % "".join(calls))
    with open(expected_path, "w", encoding="utf-8") as f:
        json.dump(expected, f)


def canonical(value):
    """What the reader shows for a value."""
    if isinstance(value, tuple):
        ticks = value[1] - EPOCH
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ticks // 10000000))
    if isinstance(value, list):
        return [canonical(v) for v in value]
    if isinstance(value, dict):
        return {k: canonical(v) for k, v in value.items()}
    return value


def same(wanted, found):
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(same, wanted, found))
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(same(wanted[k], found[k]) for k in wanted)
    if isinstance(wanted, list) and isinstance(found, str) and found.startswith("0x"):
        return bytes(wanted).hex() == found[2:]
    if isinstance(wanted, int) and isinstance(found, str) and found.startswith("0x"):
        return wanted == int(found, 16)
    return wanted == found


def compare_spoor(expected, path):
    """Lines of `spoor events --json`."""
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if "id" in event:
                found.setdefault((event["provider"], event["id"], event["version"]), []).append(event)
    wrong = 0
    for want in expected:
        event = want["event"]
        got = found.get((want["provider"], event["id"], event["version"]), [])
        name = "%s/%s" % (want["provider"], event["symbol"])
        if len(got) != 1:
            print("%s was read %d times" % (name, len(got)))
            wrong += 1
            continue
        values = {k: canonical(tuple(v) if isinstance(v, list) and v[:1] == ["time"] else v) for k, v in want["values"].items()}
        shown = dict(got[0].get("fields", {}))
        if event["symbol"] == "GCDynamicEvent":
            values = {"Data": values["Data"]}  # shown as the event that is inside
        if not same(values, shown):
            print("%s: wanted %s, read %s" % (name, values, shown))
            wrong += 1
        for key, wanted in (("level", min(event["level"], 5)), ("keywords", event["keywords"]), ("opcode", event["opcode"])):
            if key in got[0] and got[0][key] != wanted:
                print("%s: %s is %s, not %s" % (name, key, got[0][key], wanted))
                wrong += 1
    print("%d events compared, %d differences" % (len(expected), wrong))
    return wrong


def encode(fields, values):
    """ETW's layout."""
    out = b""
    for field in fields:
        kind, value = field["type"], values[field["name"]]
        length = field.get("length")
        if kind == "struct":
            for row in value if field.get("count") else [value]:
                out += encode(field["fields"], row)
        elif kind in ("Binary", "SID"):
            out += bytes(value)
        else:
            for one in value if field.get("count") else [value]:
                out += encode_one(kind, one, length)
    return out


def encode_one(kind, value, length):
    if kind in SIZES:
        return (value % (1 << (8 * SIZES[kind]))).to_bytes(SIZES[kind], "little")
    if kind in ("Float", "Double"):
        return struct.pack("<f" if kind == "Float" else "<d", value)
    if kind == "Boolean":
        return struct.pack("<I", int(value))
    if kind == "Pointer":
        return struct.pack("<Q", value)
    if kind == "FILETIME":
        return struct.pack("<Q", value[1])
    if kind == "SYSTEMTIME":
        return struct.pack("<8H", *value.values())
    if kind == "GUID":
        a, b, c, d, e = value.split("-")
        return struct.pack("<IHH", int(a, 16), int(b, 16), int(c, 16)) + bytes.fromhex(d + e)
    if kind == "UnicodeString":
        raw = value.encode("utf-16-le")
        return raw.ljust(2 * length, b"\0") if isinstance(length, int) else raw + (b"" if length else b"\0\0")
    if kind == "AnsiString":
        raw = value.encode()
        return raw.ljust(length, b"\0") if isinstance(length, int) else raw + (b"" if length else b"\0")
    raise SystemExit("no bytes for " + kind)


TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([{}\[\],=])|([^\s{}\[\],="]+))')


class Text:
    """The fields of an event as babeltrace2 prints them."""

    def __init__(self, text):
        self.tokens = [m.group(1) or m.group(2) or m.group(3) for m in TOKEN.finditer(text)]
        self.at = 0

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def value(self):
        token = self.take()
        if token == "{":
            found = {}
            while self.tokens[self.at] != "}":
                name = self.take()
                self.take()
                found[name] = self.value()
                if self.tokens[self.at] == ",":
                    self.take()
            self.take()
            return found
        if token == "[":
            found = []
            while self.tokens[self.at] != "]":
                for _ in range(4):
                    self.take()  # [ number ] =
                found.append(self.value())
                if self.tokens[self.at] == ",":
                    self.take()
            self.take()
            return found
        if token.startswith('"'):
            return json.loads(token)
        return int(token, 0) if re.match(r"-?(0[xX])?[0-9A-Fa-f]+$", token) else float(token)


def in_tracepoint(field, value):
    kind = field["type"]
    if kind == "GUID":
        return list(encode_one(kind, value, None))
    if kind == "SYSTEMTIME":
        return list(value.values())
    if kind == "FILETIME":
        return value[1]
    if kind == "Boolean":
        return [int(v) for v in value] if isinstance(value, list) else int(value)
    return value


def compare_babeltrace(expected, path):
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            match = re.match(r"\[[^]]*\] \([^)]*\) \S+ (\w+:\w+): ({.*})$", line)
            if match:
                found.setdefault(match.group(1), []).append(match.group(2))
    wrong = 0
    for want in expected:
        event = want["event"]
        name = "%s:%s" % (want["short"], event["symbol"])
        got = found.get(name, [])
        if len(got) != 1:
            print("%s was read %d times" % (name, len(got)))
            wrong += 1
            continue
        shown = Text("{ all = [ [0] = " + got[0].replace("}, {", "}, [1] = {") + " ] }").value()["all"][-1]
        shown = {k: v for k, v in shown.items() if k != "cpu_id"}
        if event["packed"]:
            blob = bytes(v % 256 for v in shown.get("__data__", []))
            wanted = encode(event["fields"], want["values"])
            if blob != wanted or shown.get("length") != len(wanted) or list(shown)[2:] != ["__data__"]:
                print("%s: wanted %s, read %s" % (name, wanted.hex(), shown))
                wrong += 1
            continue
        values = {f.get("nameInC", f["name"]): in_tracepoint(f, want["values"][f["name"]]) for f in event["fields"]}
        shown = {k: v for k, v in shown.items() if not re.match(r"_.*_length$", k)}
        if values != shown or list(values) != list(shown):
            print("%s: wanted %s, read %s" % (name, values, shown))
            wrong += 1
    print("%d events compared, %d differences" % (len(expected), wrong))
    return wrong


def raw_times(value):
    if isinstance(value, list):
        return value[1] if value[:1] == ["time"] else [raw_times(v) for v in value]
    return {k: raw_times(v) for k, v in value.items()} if isinstance(value, dict) else value


def compare_event_header(expected, path):
    """Lines of event_header.py."""
    found, wrong = {}, 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            found.setdefault((event["provider"], event["id"], event["version"]), []).append(event)
    for want in expected:
        event = want["event"]
        got = found.get((want["short"], event["id"], event["version"]), [])
        name = "%s:%s" % (want["short"], event["symbol"])
        if len(got) != 1:
            print("%s was read %d times" % (name, len(got)))
            wrong += 1
            continue
        values = raw_times(want["values"])
        if not same(values, got[0]["fields"]) or list(values) != list(got[0]["fields"]):
            print("%s: wanted %s, read %s" % (name, values, got[0]["fields"]))
            wrong += 1
        wanted = (event["symbol"], max(event["level"], 1), int(event["keywords"], 16), event["opcode"])
        read = (got[0]["event"], got[0]["level"], int(got[0]["keywords"], 16), got[0]["opcode"])
        if wanted != read:
            print("%s: wanted %s, read %s" % (name, wanted, read))
            wrong += 1
    print("%d events compared, %d differences" % (len(expected), wrong))
    return wrong


def compare_etw(expected, path):
    found, wrong = {}, 0
    with open(path, encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if len(words) >= 8:
                found.setdefault((words[0], int(words[1]), int(words[2])), []).append(words[3:] + [""])
    for want in expected:
        event = want["event"]
        got = found.get((want["guid"], event["id"], event["version"]), [])
        name = "%s/%s" % (want["short"], event["symbol"])
        if len(got) != 1:
            print("%s was written %d times" % (name, len(got)))
            wrong += 1
            continue
        wanted = ["0", str(event["level"]), str(event["opcode"]), str(want["task"]), hex(int(event["keywords"], 16)), encode(event["fields"], want["values"]).hex()]
        if wanted != got[0][:6]:
            print("%s: wanted %s, written %s" % (name, wanted, got[0][:6]))
            wrong += 1
    print("%d events compared, %d differences" % (len(expected), wrong))
    return wrong


def main():
    if sys.argv[1] == "make":
        with open(sys.argv[2], encoding="utf-8") as f:
            make(json.load(f), *sys.argv[3:])
        return
    with open(sys.argv[3], encoding="utf-8") as f:
        expected = json.load(f)
    compare = {"spoor": compare_spoor, "babeltrace": compare_babeltrace, "event-header": compare_event_header, "etw": compare_etw}[sys.argv[2]]
    sys.exit(1 if compare(expected, sys.argv[4]) else 0)


main()
