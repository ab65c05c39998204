"""ctf_compare.py [--part PROVIDER,...] TEXT JSON: the events that babeltrace2 printed with --clock-gmt --clock-date, and those of `spoor events --json`, are the same.

Order, time to the nanosecond, name, thread, fields, values. LTTng's lengths of arrays are left out; a guid is 16 bytes. Prints the number of events.
With --part the events of these providers in JSON are some of them in a row: those of another session, which took its own times, so times are used only to find the first one.
"""
import datetime
import json
import re
import sys
import uuid

TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([{}\[\],:=()])|([^\s{}\[\],:=()"]+))')


class Parser:
    def __init__(self, text):
        self.tokens = [m.groups() for m in TOKEN.finditer(text)]
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else (None, None, None)

    def take(self):
        token = self.peek()
        self.at += 1
        return token

    def value(self):
        text, sign, word = self.take()
        if sign == '{':
            return self.object('}')
        if sign == '[':
            return self.array()
        if sign == '(':  # an enumeration: ( "label" : container = 5 )
            number = None
            while self.peek()[1] != ')':
                token = self.take()
                number = token[2] if token[2] not in (None, 'container') else number
            self.take()
            return int(number, 0)
        if text is not None:
            return text_of(text)
        return number_of(word)

    def object(self, end):
        fields = {}
        while self.peek()[1] != end:
            if self.peek()[1] == ',':
                self.take()
                continue
            name = self.take()[2]
            self.take()  # =
            fields[name] = self.value()
        self.take()
        return fields

    def array(self):
        items = []
        while self.peek()[1] != ']':
            if self.peek()[1] == ',':
                self.take()
                continue
            for _ in range(4):  # [ 0 ] =
                self.take()
            items.append(self.value())
        self.take()
        return items


def text_of(token):
    return re.sub(r'\\(.)', lambda m: {'n': '\n', 't': '\t'}.get(m.group(1), m.group(1)), token[1:-1])


def number_of(word):
    try:
        return int(word, 0)
    except ValueError:
        return float(word)


def without_lengths(fields):
    made = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            value = without_lengths(value)
        made[name] = value
    for name, value in fields.items():
        length = '_' + name + '_length'
        if isinstance(value, (list, str)) and length in made:
            del made[length]
    return made


def same(a, b):
    if isinstance(a, list) and isinstance(b, str):
        try:
            return bytes(a) == uuid.UUID(b).bytes_le
        except ValueError:
            return False
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    # babeltrace2 prints floats with six digits.
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= 1e-5 * max(abs(a), abs(b), 1)
    # A double in an array has its bits in CTF.
    return a == b


LINE = re.compile(r'\[(\S+ \S+?)(\d{3})\] \(\S+\) (?:\S+ )?(\S+): (.*)$')


def peer_events(path):
    for line in open(path, encoding='utf-8'):
        match = LINE.match(line.rstrip('\n'))
        if not match:
            sys.exit('cannot parse: ' + line)
        parser = Parser(match.group(4))
        objects = []
        while parser.peek()[1] == '{' or parser.peek()[1] == ',':
            if parser.take()[1] == '{':
                objects.append(parser.object('}'))
        context = {}
        for each in objects[:-1]:
            context.update(each)
        yield match.group(1) + match.group(2), match.group(3), context, without_lengths(objects[-1])


def ns_of(time):
    day, fraction = time.replace('T', ' ').rstrip('Z').split('.')
    return int(datetime.datetime.strptime(day + ' +0000', '%Y-%m-%d %H:%M:%S %z').timestamp()) * 10**9 + int(fraction)


def main():
    is_part = sys.argv[1] == '--part'
    text, own = sys.argv[1 + 2 * is_part:]
    peers = list(peer_events(text))
    with open(own, encoding='utf-8') as file:
        events = [json.loads(line) for line in file]
    if is_part:
        events = [event for event in events if event['provider'] in sys.argv[2].split(',')]
    if is_part and events:
        begin = ns_of(events[0]['time'])
        first = min(range(len(peers)), key=lambda i: abs(ns_of(peers[i][0]) - begin))
        peers = peers[first:first + len(events)]
    for count, ((time, name, context, fields), event) in enumerate(zip(peers, events)):
        wanted = [name, context.get('vpid'), context.get('vtid')]
        given = [event['provider'] + ':' + event['event'], event.get('pid'), event.get('tid')]
        if not is_part:
            wanted.append(time.replace(' ', 'T') + 'Z')
            given.append(event['time'])
        if wanted != given or not same(fields, event['fields']):
            sys.exit(f'event {count} differs:\nbabeltrace2 {wanted} {fields}\nspoor       {given} {event["fields"]}')
    if len(peers) != len(events):
        sys.exit(f'babeltrace2 has {len(peers)} events, and spoor {len(events)}')
    print(len(events))


main()
