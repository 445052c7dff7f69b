# SPDX-License-Identifier: MIT
"""redis-server under redis-benchmark as a victim: a client of its own checks every answer."""
import contextlib
import socket
import subprocess
import threading
import time

from harness import free_port, wait_for_port
from procfs import Failure, PATIENCE, describe, progress_of


class Client(threading.Thread):
    """Counts, sets and gets over one connection; an answer that is not the expected one is a line WRONG."""

    def __init__(self, port, say):
        super().__init__(daemon=True)
        self.say, self.rounds, self.stop = say, 0, threading.Event()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.stream = self.socket.makefile("rb")

    def command(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
        self.socket.sendall(b"".join(parts))
        line = self.stream.readline().rstrip(b"\r\n")
        if line[:1] == b"$" and line != b"$-1":
            return self.stream.read(int(line[1:]) + 2)[:-2]
        return line

    def run(self):
        try:
            while not self.stop.is_set():
                count, value = b"%d" % (self.rounds + 1), bytes([97 + self.rounds % 26]) * (1 + self.rounds * 37 % 5000)
                for words, right in (([b"INCR", b"counter"], b":" + count), ([b"SET", b"key", value], b"+OK"),
                                     ([b"GET", b"key"], value)):
                    got = self.command(*words)
                    if got != right:
                        self.say(f"WRONG answer to {words[0].decode()} {self.rounds}: {got[:60]!r}")
                self.rounds += 1
                time.sleep(0.001)
        except (OSError, ValueError) as error:
            if not self.stop.is_set():
                self.say(f"WRONG client after {self.rounds} rounds: {error}")


class Said:
    def __init__(self):
        self.seen = []


def await_rounds(server, more):
    """Of one that counts what it answers rightly."""
    before, end = server.rounds, time.monotonic() + PATIENCE
    while server.rounds < before + more:
        server.check_alive()
        if time.monotonic() > end:
            raise Failure(f"{server.name} answers nobody: {describe(server.pid)}")
        time.sleep(0.01)


class RedisIdle:
    """redis-server that nobody talks to. Looks like a Victim of the harness."""

    def __init__(self, context):
        self.name, self.lines = "redis-server", Said()
        server, self.benchmark_path = context.program("redis-server"), context.program("redis-benchmark")
        self.port = free_port()
        self.process = context.start([server, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly",
                                      "no", "--dir", context.work], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        wait_for_port(self.port, self.process)

    def finish(self):
        check = subprocess.run([self.benchmark_path, "-p", str(self.port), "-t", "set,get", "-n", "5000", "-P", "16", "-q"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
        if check.returncode or b"rror" in check.stdout:
            raise Failure(f"redis-server answers wrongly afterwards: {check.stdout[-300:]!r}")
        self.process.terminate()
        if self.process.wait(PATIENCE):
            raise Failure(f"redis-server ended with {self.process.returncode}")


class RedisUnderLoad(RedisIdle):
    """… and under load; a client checks its answers."""

    def __init__(self, context):
        super().__init__(context)
        self.client = Client(self.port, self.lines.seen.append)
        self.client.start()
        self.load = context.start([self.benchmark_path, "-p", str(self.port), "-t", "set,get", "-n", "100000000", "-r", "50000",
                                   "-d", "200", "-P", "8", "-c", "10", "-q"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        # The number of its connections is part of the state that is compared.
        end = time.monotonic() + PATIENCE
        while self.clients() < 11:
            if time.monotonic() > end or self.load.poll() is not None:
                raise Failure("redis-benchmark does not connect")
            time.sleep(0.05)
        time.sleep(0.3)

    def clients(self):
        with contextlib.closing(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)) as probe:
            probe.sendall(b"INFO clients\r\n")
            text = probe.recv(4096).decode()
        return next(int(line.split(":")[1]) for line in text.splitlines() if line.startswith("connected_clients")) - 1

    def check_alive(self):
        if self.process.poll() is not None:
            raise Failure(f"redis-server ended with {self.process.returncode}")
        if self.load.poll() is not None:
            raise Failure(f"redis-benchmark ended: {self.load.stdout.read()[-300:]!r}")
        if self.lines.seen:
            raise Failure(f"{self.lines.seen[:5]}")

    def rounds_go_on(self):
        self.check_alive()
        before, end = (self.client.rounds, progress_of(self.pid)), time.monotonic() + PATIENCE
        while self.client.rounds == before[0] or progress_of(self.pid) == before[1]:
            if time.monotonic() > end:
                raise Failure(f"redis-server makes no progress: {describe(self.pid)}")
            time.sleep(0.02)

    def finish(self):
        self.rounds_go_on()
        self.client.stop.set()
        self.client.join(PATIENCE)
        self.check_alive()
        self.load.terminate()
        self.load.communicate(timeout=PATIENCE)
        super().finish()
