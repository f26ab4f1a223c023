"""Plays a migration tool: sends the lines of a file to the database of PGHOST and PGPORT, each as one query."""

import os
import socket
import struct
import sys


def message(tag, body):
    return tag + struct.pack("!i", len(body) + 4) + body


def until_ready(stream):
    while True:
        tag, length = struct.unpack("!ci", stream.read(5))
        body = stream.read(length - 4)
        assert tag != b"E", body
        if tag == b"Z":
            return


with socket.create_connection((os.environ["PGHOST"], int(os.environ["PGPORT"]))) as server:
    stream = server.makefile("rb")
    server.sendall(message(b"", struct.pack("!i", 3 << 16) + b"user\0postgres\0\0"))
    until_ready(stream)
    with open(sys.argv[1], encoding="utf-8") as queries:
        for query in queries:
            server.sendall(message(b"Q", query.encode() + b"\0"))
            until_ready(stream)
    server.sendall(message(b"X", b""))
