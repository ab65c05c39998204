#!/usr/bin/env python3
"""user_event_lines.py FILE: of the lines of `spoor events --json` the events of programs, as tests/lib/event_header.py prints those that were written."""
import json
import sys


def main():
    for line in open(sys.argv[1], encoding="utf-8"):
        event = json.loads(line)
        provider = event.get("provider", "")
        if "id" not in event or provider in ("Spoor", "Microsoft-DotNETCore-EventPipe") or provider.startswith("Universal."):
            continue
        made = {key: event.get(key, 0) for key in ("event", "id", "version", "level", "opcode", "pid", "tid")}
        made["provider"] = provider.removesuffix(" (of a program)")
        made["keywords"] = event.get("keywords", "0x0")
        made["fields"] = event.get("fields", {})
        if "activity" in event:
            made["activity"] = event["activity"]
        if "related_activity" in event:
            made["related"] = event["related_activity"]
        print(json.dumps(made, ensure_ascii=False))


main()
