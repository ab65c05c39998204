#!/usr/bin/env python3
"""event_header.py WRITTEN: the events that user_events_stand_in.so has written, as lines of JSON. Decodes EventHeader on its own, and fails at the first byte that is not as it must be."""
import json
import re
import struct
import sys

sys.dont_write_bytecode = True
from payload_bytes import Bytes

VALUES = {2: 1, 3: 2, 4: 4, 5: 8, 6: 16}


def uuid(raw):
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def fields_of(description, count=None):
    fields = []
    while description.rest() if count is None else len(fields) < count:
        name, encoding, form = description.name(), description.u8(), 0
        assert ";" not in name, name
        if encoding & 0x80:
            form = description.u8()
            assert not form & 0x80
        assert not encoding & 0x20 and (encoding & 0x1f) in (1, 2, 3, 4, 5, 6, 8, 10), encoding
        parts = fields_of(description, form) if encoding & 0x1f == 1 else None
        assert parts is None or form
        fields.append((name, encoding & 0x1f, form, bool(encoding & 0x40), parts))
    assert len({field[0] for field in fields}) == len(fields), "two fields of one name"
    return fields


def value(payload, encoding, form, parts):
    if encoding == 1:
        return values(payload, parts)
    if encoding == 8:
        raw = b""
        while True:
            unit = payload.take(2)
            if unit == b"\0\0":
                return raw.decode("utf-16-le", "replace")
            raw += unit
    if encoding == 10:
        raw = payload.take(payload.u16())
        return "0x" + raw.hex() if form == 9 else raw.decode()
    raw = payload.take(VALUES[encoding])
    if form == 2:
        return int.from_bytes(raw, "little", signed=True)
    number = int.from_bytes(raw, "little")
    if form == 3:
        return "0x%x" % number
    if form == 7:
        assert number in (0, 1)
        return bool(number)
    if form == 8:
        return struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
    if form == 11:
        return chr(number)
    if form == 15:
        return uuid(raw)
    assert form in (0, 5, 16, 17), form
    return number


def values(payload, fields):
    found = {}
    for name, encoding, form, array, parts in fields:
        if array:
            found[name] = [value(payload, encoding, form, parts) for _ in range(payload.u16())]
        else:
            found[name] = value(payload, encoding, form, parts)
    return found


def event_of(line):
    name, pid, tid, data = line.split()
    match = re.fullmatch(r"([A-Za-z0-9_]+)_L([0-9a-f]+)K([0-9a-f]+)", name)
    event = {"provider": match.group(1), "level": int(match.group(2), 16), "keywords": "0x" + match.group(3), "pid": int(pid), "tid": int(tid)}
    body = Bytes(bytes.fromhex(data))
    flags, event["version"], event["id"], tag, event["opcode"], level = struct.unpack("<BBHHBB", body.take(8))
    assert flags == 7 and tag == 0 and level == event["level"] and level > 0, (flags, tag, level)
    more, description = True, None
    while more:
        size, kind = body.u16(), body.u16()
        more = bool(kind & 0x8000)
        raw = body.take(size)
        if kind & 0x7fff == 1:
            assert description is None
            description = Bytes(raw)
        else:
            assert kind & 0x7fff == 2 and size in (16, 32), (kind, size)
            event["activity"] = uuid(raw[:16])
            if size == 32:
                event["related"] = uuid(raw[16:])
    event["event"] = description.name()
    assert ";" not in event["event"], event["event"]
    event["fields"] = values(body, fields_of(description))
    assert not body.rest(), "%d bytes after the last field" % body.rest()
    return event


def main():
    with open(sys.argv[1], encoding="ascii") as lines:
        for line in lines:
            try:
                print(json.dumps(event_of(line), ensure_ascii=False))
            except Exception as error:
                sys.exit("%s: %r" % (line.strip(), error))


main()
