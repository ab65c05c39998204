#!/usr/bin/env python3
"""symbol_server.py FOLDER PORT-FILE LOG: serves FOLDER over HTTP on 127.0.0.1, and misbehaves as the first part of a path says.

/good/PATH      the file FOLDER/PATH, with ranges
/plain/PATH     without ranges
/cut/PATH       half of what is asked for, then the connection ends
/slow/PATH      a byte every 100 ms
/endless/PATH   zeros without end
/headers/PATH   headers without end
/loop/PATH      a redirection to itself
/local/PATH     a redirection to the file FOLDER/PATH by a file: URL
/error/PATH     status 500
Each request is a line of LOG: its path and its range.
"""
import http.server
import os
import sys
import time

folder, port_file, log = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        how, _, path = self.path[1:].partition("/")
        with open(log, "a") as lines:
            print(self.path, self.headers.get("Range") or "-", file=lines)
        try:
            self.answer(how, os.path.join(folder, path))
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.close_connection = True

    def answer(self, how, path):
        if how == "error":
            return self.send_error(500)
        if not os.path.isfile(path):
            return self.send_error(404)
        if how in ("loop", "local"):
            self.send_response(302)
            self.send_header("Location", self.path if how == "loop" else "file://" + os.path.abspath(path))
            return self.end_headers()
        if how == "headers":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")
        with open(path, "rb") as file:
            data = file.read()
        wanted = self.headers.get("Range")
        begin = int(wanted.split("=")[1].split("-")[0]) if wanted and how != "plain" else 0
        if begin and begin >= len(data):
            return self.send_error(416)
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        if how != "endless":
            self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        if how == "endless":
            while True:
                self.wfile.write(bytes(65536))
        if how == "slow":
            for byte in data[begin:]:
                self.wfile.write(bytes([byte]))
                time.sleep(0.1)
        end = begin + (len(data) - begin + 1) // 2 if how == "cut" else len(data)
        self.wfile.write(data[begin:end])


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w") as file:
    print(server.server_port, file=file)
os.rename(port_file + ".new", port_file)
server.serve_forever()
