#!/usr/bin/env python3
"""trace_logging.py WRITTEN: the lines "transfer" that tests/gen/etw/etw.c has written, as lines of JSON. Decodes TraceLogging's metadata on its own, and fails at the first byte that is not as it must be."""
import json
import struct
import sys

sys.dont_write_bytecode = True
from payload_bytes import Bytes

NUMBERS = {3: "<b", 4: "<B", 5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q", 11: "<f", 12: "<d", 13: "<I", 17: "<Q", 21: "<Q"}


def guid(raw):
    a, b, c = struct.unpack("<IHH", raw[:8])
    return "%08x-%04x-%04x-%s-%s" % (a, b, c, raw[8:10].hex(), raw[10:].hex())


def fields_of(description, count=None):
    fields = []
    while description.rest() if count is None else len(fields) < count:
        name, kind, form = description.name(), description.u8(), 0
        if kind & 0x80:
            form = description.u8()
            assert form and not form & 0x80, form
        assert not kind & 0x20, kind
        parts = fields_of(description, form) if kind & 0x1f == 24 else None
        fields.append((name, kind & 0x1f, form, bool(kind & 0x40), parts))
    return fields


def value(payload, kind, form, parts):
    if kind == 24:
        return values(payload, parts)
    if kind == 1:
        raw = b""
        while True:
            unit = payload.take(2)
            if unit == b"\0\0":
                return raw.decode("utf-16-le")
            raw += unit
    if kind == 14:
        return "0x" + payload.take(payload.u16()).hex()
    if kind == 15:
        return guid(payload.take(16))
    if kind == 23:
        assert form == 35, form
        return payload.take(payload.u16()).decode()
    number = struct.unpack(NUMBERS[kind], payload.take(struct.calcsize(NUMBERS[kind])))[0]
    if kind == 13:
        assert number in (0, 1), number
        return bool(number)
    if kind == 6 and form == 2:
        return chr(number)
    assert form == 0, (kind, form)
    return "0x%x" % number if kind == 21 else number


def values(payload, fields):
    found = {}
    for name, kind, form, array, parts in fields:
        if array:
            found[name] = [value(payload, kind, form, parts) for _ in range(payload.u16())]
        else:
            found[name] = value(payload, kind, form, parts)
    return found


def event_of(words):
    provider, number, version, channel, level, opcode, task, keywords, activity, related, thread, traits, metadata = words[1:14]
    assert channel == "11" and task == "0", (channel, task)
    traits, metadata = Bytes(bytes.fromhex(traits)), Bytes(bytes.fromhex(metadata))
    assert traits.u16() == len(traits.data) and metadata.u16() == len(metadata.data) and metadata.u8() == 0
    event = {"guid": provider, "provider": traits.name(), "id": int(number), "version": int(version), "level": int(level), "opcode": int(opcode), "keywords": keywords, "tid": int(thread)}
    assert not traits.rest()
    if activity != "-":
        event["activity"] = activity
    if related != "-":
        event["related"] = related
    event["event"] = metadata.name()
    payload = Bytes(bytes.fromhex(words[14] if len(words) > 14 else ""))
    event["fields"] = values(payload, fields_of(metadata))
    assert not payload.rest(), "%d bytes after the last field" % payload.rest()
    return event


def main():
    step = ""
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# step "):
                step = line.split()[2]
            elif line.startswith("#"):
                pass
            elif line.startswith("transfer "):
                try:
                    print(json.dumps(dict(event_of(line.split()), step=step), ensure_ascii=False))
                except Exception as error:
                    sys.exit("%s: %r" % (line.strip()[:400], error))
            else:
                sys.exit("not an event: %s" % line.strip()[:400])


main()
