# SPDX-License-Identifier: MIT
"""nginx's worker under requests as a victim: each answer is checked."""
import http.client
import os
import subprocess
import threading
import time

from harm_redis import Said, await_rounds
from harness import free_port, wait_for_port
from procfs import Failure, PATIENCE, read_text

CLIENTS = 3
AGAIN = 20  # requests by one connection, of clients that connect again
CONFIGURATION = """
daemon off;
master_process on;
worker_processes 1;
{user}
pid {work}/nginx.pid;
error_log {work}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/fastcgi;
  uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "answer\\n"; }} }}
}}
"""


class NginxUnderLoad:
    """Looks like a Victim of the harness; the process is the master, and the PID that of its only worker."""

    def __init__(self, context, connects_again=False):
        self.name, self.lines, self.rounds, self.stop = "nginx", Said(), 0, threading.Event()
        self.port, self.connects_again = free_port(), connects_again
        user = "user root;" if os.geteuid() == 0 else ""
        with open(context.path("nginx.conf"), "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(work=context.work, port=self.port, user=user))
        self.process = context.start([context.program("nginx"), "-p", context.work, "-c", context.path("nginx.conf")],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)
        while not (workers := self.workers()):  # the port is open before there is one
            time.sleep(0.05)
        self.pid = int(workers[0])
        self.clients = [threading.Thread(target=self.request, daemon=True) for _ in range(CLIENTS)]
        for client in self.clients:
            client.start()
        self.rounds_go_on()

    def workers(self):
        return read_text(f"/proc/{self.process.pid}/task/{self.process.pid}/children").split()

    def request(self):
        try:
            while not self.stop.is_set():
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
                left = AGAIN if self.connects_again else -1
                while left and not self.stop.is_set():
                    connection.request("GET", "/")
                    response = connection.getresponse()
                    got = response.status, response.read()
                    if got != (200, b"answer\n"):
                        self.lines.seen.append(f"WRONG answer after {self.rounds} rounds: {got}")
                        return
                    self.rounds += 1
                    left -= 1
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            self.lines.seen.append(f"WRONG client after {self.rounds} rounds: {error!r}")

    def check_alive(self):
        if self.process.poll() is not None:
            raise Failure(f"nginx ended with {self.process.returncode}")
        if self.workers() != [str(self.pid)]:
            raise Failure(f"the worker was {self.pid}: {self.workers()}")
        if self.lines.seen:
            raise Failure(f"{self.lines.seen[:5]}")

    def rounds_go_on(self):
        await_rounds(self, 4 * CLIENTS)

    def finish(self):
        self.rounds_go_on()
        self.stop.set()
        for client in self.clients:
            client.join(PATIENCE)
        self.check_alive()
        self.process.terminate()
        if self.process.wait(PATIENCE):
            raise Failure(f"nginx ended with {self.process.returncode}")
