#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Small objects of Python and nothing else: what hooks of CPython's own allocator cost at most. object_churn.py PORT: for each line that a client
sends, some thousand objects are made and dropped (got_switch.c)."""
import socket
import sys


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


live = [None] * 1000


def work(start):
    """Of each round: an object, two numbers, a string, a bytes object; five others go."""
    for i in range(start, start + 400):
        live[i % 1000] = (Point(i + 0.5, i * 1000003), "%d" % i, b"%d" % i)


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
done = 0
while True:
    client = listener.accept()[0]
    while client.recv(64):
        work(done)
        done += 400
        client.send(b"1\n")
