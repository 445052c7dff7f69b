# SPDX-License-Identifier: MIT
"""A small web service, for README's picture (scripts/picture): page_service.py SECONDS. Orders come in as JSON, a catalogue is searched, pages are
rendered and kept. Its client is a child process."""
import http.server
import json
import os
import signal
import sys
import threading
import time
import urllib.request


class Catalogue:
    def __init__(self):
        self.items = [f"item {number}: " + "a thing that is for sale " * 8 for number in range(2000)]

    def search(self, word):
        return [item.upper() for item in self.items if item.startswith(f"item {word}")]


class Sessions:
    def __init__(self):
        self.orders, self.pages = {}, {}

    def remember_order(self, key, body):
        self.orders[key] = json.loads(body)

    def render(self, found):
        return "".join(f"<li>{item}</li>\n" for item in found).encode()

    def page_of(self, key, found):
        if key not in self.pages:
            self.pages[key] = self.render(found)
        return self.pages[key]


class Handler(http.server.BaseHTTPRequestHandler):
    catalogue, sessions = Catalogue(), Sessions()

    def log_message(self, *_):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(self.sessions.page_of(self.path, self.catalogue.search(len(self.path) % 7 + 1)))

    def do_POST(self):
        self.sessions.remember_order(self.path, self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(b"taken")


def visit(port):
    for number in range(1 << 30):
        url = f"http://127.0.0.1:{port}/{'x' * (number % 5)}{number}"
        order = json.dumps([{"number": number, "note": "please ring twice " * 50, "items": list(range(300))} for _ in range(4)]).encode()
        for data in (None, order):
            with urllib.request.urlopen(url, data) as answer:
                answer.read()
        time.sleep(0.01)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    client = os.fork()
    if not client:
        visit(server.server_port)
    threading.Timer(float(sys.argv[1]), server.shutdown).start()
    server.serve_forever()
    os.kill(client, signal.SIGTERM)
    os.waitpid(client, 0)


if __name__ == "__main__":
    main()
