"""Bytes of an event, read from the front; a read past the end is an error. For event_header.py and trace_logging.py."""
import struct


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise ValueError("%d bytes at %d, of %d" % (size, self.at, len(self.data)))
        self.at += size
        return self.data[self.at - size:self.at]

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack("<H", self.take(2))[0]

    def name(self):
        end = self.data.index(b"\0", self.at)
        return self.take(end + 1 - self.at)[:-1].decode()

    def rest(self):
        return len(self.data) - self.at
