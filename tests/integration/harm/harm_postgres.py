# SPDX-License-Identifier: MIT
"""A backend of PostgreSQL that answers queries as a victim: each answer is checked, and that the server sees no backend die."""
import glob
import os
import subprocess
import threading
import time

from harm_redis import Said, await_rounds
from procfs import Failure, PATIENCE, Skip

ROWS = 5000
TABLE = f"create table words as select g, md5(g::text) as word from generate_series(1, {ROWS}) g;"
QUERY = "select count(*), md5(string_agg(word, ',' order by word)) from (select word, g from words order by word) as sorted;"
USER = 65534  # nobody: the server refuses to be root


class PostgresUnderLoad:
    """Looks like a Victim of the harness; the process is the server, and the PID that of the backend that works."""

    def __init__(self, context):
        self.name, self.lines, self.rounds, self.stop = "postgres", Said(), 0, threading.Event()
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found or os.geteuid() != 0:
            raise Skip("PostgreSQL is not installed, or this is not root, who can start it as another user")
        self.folder = context.unique("postgres", "")
        os.mkdir(self.folder)
        os.chmod(context.work, 0o755)  # for that user
        os.chown(self.folder, USER, USER)
        self.log = os.path.join(self.folder, "log")
        user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        options = dict(cwd=self.folder, stdin=subprocess.DEVNULL, env={**os.environ, "HOME": self.folder})
        data = os.path.join(self.folder, "data")
        made = subprocess.run([*user, f"{found[-1]}/initdb", "-D", data, "-A", "trust", "-N", "-U", "tester"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False, **options)
        if made.returncode:
            raise Failure(f"initdb ended with {made.returncode}: {made.stderr[-500:]}")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = context.start([*user, f"{found[-1]}/postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=", "-c",
                                          "shared_buffers=16MB"], stderr=log, stdout=log, **options)
        self.psql = self.connect(context, f"{found[-1]}/psql")
        self.ask(TABLE + " select 1;")
        self.pid = int(self.ask("select pg_backend_pid();"))
        self.right = self.ask(QUERY)
        self.client = threading.Thread(target=self.query, daemon=True)
        self.client.start()

    def connect(self, context, program):
        """As soon as the server listens."""
        end = time.monotonic() + PATIENCE
        while True:
            psql = context.start([program, "-X", "-q", "-A", "-t", "-h", self.folder, "-U", "tester", "postgres"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
            psql.stdin.write("select 'ready';\n")
            line = psql.stdout.readline()
            if line == "ready\n":
                return psql
            psql.kill()
            if time.monotonic() > end or self.process.poll() is not None:
                raise Failure(f"the server does not come up: {line}")
            time.sleep(0.2)

    def ask(self, query):
        self.psql.stdin.write(query + "\n")
        return self.psql.stdout.readline().rstrip("\n")

    def query(self):
        try:
            while not self.stop.is_set():
                got = self.ask(QUERY)
                if got != self.right:
                    self.lines.seen.append(f"WRONG answer {self.rounds}: {got}")
                    return
                self.rounds += 1
        except (OSError, ValueError) as error:
            self.lines.seen.append(f"WRONG client after {self.rounds} rounds: {error}")

    def check_alive(self):
        if self.process.poll() is not None:
            raise Failure(f"the server ended with {self.process.returncode}")
        if self.lines.seen:
            raise Failure(f"{self.lines.seen[:5]}")

    def rounds_go_on(self):
        await_rounds(self, 2)  # one of them was asked for afterwards

    def finish(self):
        self.rounds_go_on()
        self.stop.set()
        self.client.join(PATIENCE)
        self.check_alive()
        self.psql.stdin.close()
        self.psql.wait(PATIENCE)
        self.process.terminate()
        if self.process.wait(PATIENCE):
            raise Failure(f"the server ended with {self.process.returncode}")
        with open(self.log, encoding="utf-8") as log:
            text = log.read()
        if "PANIC" in text or "server process (PID" in text:
            raise Failure(f"the server says: {text[-500:]}")
