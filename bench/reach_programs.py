# SPDX-License-Identifier: MIT
"""The programs that bench/reach attaches to: how each is started, loaded, and found to work.

Each starter is a context that gives a target: pid; warm(), until it works; what_is_wrong(), after the detach; grown(), what it kept
between two moments by its own count.
"""
import contextlib
import filecmp
import http.client
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import servers
from servers import Missing

SRC = Path(__file__).resolve().parent / "rounds"
SEARCH = "/usr/sbin:/usr/bin:/sbin:/bin:" + os.environ.get("PATH", "") + ":/usr/lib/postgresql/15/bin"
WARM = 1.5  # seconds of work before the attach
ENOUGH = 3  # requests or rounds of each thread that must come after the detach


def program(name):
    path = shutil.which(name, path=SEARCH)
    if not path:
        raise Missing(f"{name} is not installed")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Target:
    """Is loaded by threads that make requests without end; each looks at the answers and raises when one is wrong."""

    def __init__(self, pid, *requests):
        self.pid, self.wrong, self.over = pid, [], False
        self.done = [0] * len(requests)
        self.threads = [threading.Thread(target=self.load, args=(i, request), daemon=True) for i, request in enumerate(requests)]
        for thread in self.threads:
            thread.start()

    def load(self, i, request):
        while not self.over:
            try:
                request()
                self.done[i] += 1
            except Exception as error:  # whatever goes wrong is what is looked for
                if not self.over:
                    self.wrong.append(f"{type(error).__name__}: {error}")
                return

    def progress(self):
        return list(self.done)

    def warm(self):
        self.goes_on(60)
        time.sleep(WARM)
        if self.wrong:
            raise Missing(f"it does not work: {self.wrong[0]}")

    def goes_on(self, patience):
        before, end = self.progress(), time.monotonic() + patience
        while time.monotonic() < end and not self.wrong:
            if all(now >= then + ENOUGH for then, now in zip(before, self.progress())):
                return True
            time.sleep(0.05)
        return False

    def what_is_wrong(self, patience):
        """Nothing (""), or what."""
        if not os.path.exists(f"/proc/{self.pid}/stat"):
            return "it is gone"
        going = self.goes_on(patience)
        if self.wrong:
            return f"wrong answer: {self.wrong[0]}"
        return "" if going else f"no answer for {patience} s"

    def grown(self, start, end):
        return None

    def close(self):
        self.over = True


class Rounds(Target):
    """A program of rounds/, which loads itself, counts what it keeps, and looks at it."""

    def __init__(self, process):
        super().__init__(process.pid)
        self.process, self.lines = process, []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if len(words) != 5 or words[0] != "ROUND" or words[4] != "OK":
                self.wrong.append(line.strip())
            else:
                self.lines.append((time.monotonic(), int(words[3])))
        if not self.over:
            self.wrong.append(f"it ended with {self.process.wait()}")

    def progress(self):
        return [len(self.lines)]

    def grown(self, start, end):
        """The least and the most that it can have kept since: it was read a moment after it was so."""
        inside = [kept for moment, kept in self.lines if start <= moment <= end]
        outside = [kept for moment, kept in self.lines if start - 0.04 <= moment <= end + 0.04]
        return (inside[-1] - inside[0], outside[-1] - outside[0]) if inside else None


class Pipe:
    """A client that is asked on its standard input, and answers a line."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def ask(self, text, expected=None):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if expected is not None and answer != expected:
            raise ValueError(f"{answer!r} instead of {expected!r}")
        return answer

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def loaded(pid, *requests):
    target = Target(pid, *requests)
    try:
        yield target
    finally:
        target.close()


# What counts itself

def fill(text, **places):
    return [word.format(**places) for word in shlex.split(text)]


@contextlib.contextmanager
def rounds(work, run="{exe}", build=None, environment=None):
    places = {"src": SRC, "exe": work / "rounds"}
    if build:
        command = fill(build, **places)
        got = subprocess.run([program(command[0]), *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=work)
        if got.returncode:
            raise Missing(f"cannot be built: {got.stdout.strip().splitlines()[-1]}")
    command = fill(run, **places)
    process = subprocess.Popen([program(command[0]), *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=work,
                               env={**os.environ, "PATH": SEARCH, **(environment or {})})
    target = Rounds(process)
    try:
        yield target
    finally:
        target.close()
        process.kill()
        process.wait()


# Servers

def http_get(port, path="/", expected=None):
    def request():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path)
        body = connection.getresponse().read()
        connection.close()
        if expected is not None and body != expected:
            raise ValueError(f"{body[:40]!r} instead of {expected[:40]!r}")
        return body
    return request


def key_value(port, store, fetch):
    """Stores ever new keys, and reads old ones; store and fetch give what is sent and what must come back."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.settimeout(30)
    numbers = itertools.count()

    def exchange(sent, expected):
        connection.sendall(sent)
        got = b""
        while len(got) < len(expected):
            got += connection.recv(65536) or b"(closed)" + bytes(len(expected))
        if got != expected:
            raise ValueError(f"{got[:40]!r} instead of {expected[:40]!r}")

    def request():
        number = next(numbers)
        value = str(number).encode() * 2000
        exchange(*store(number, value))
        exchange(*fetch(number, value))
        time.sleep(0.002)
    return request


@contextlib.contextmanager
def redis(work):
    port = free_port()

    def store(number, value):
        return b"SET k%d %s\r\n" % (number, value), b"+OK\r\n"

    def fetch(number, value):
        return b"GET k%d\r\n" % number, b"$%d\r\n%s\r\n" % (len(value), value)

    with servers.redis(work, port) as process, loaded(process.pid, key_value(port, store, fetch)) as target:
        yield target


@contextlib.contextmanager
def memcached(work):
    port = free_port()

    def store(number, value):
        return b"set k%d 0 0 %d\r\n%s\r\n" % (number, len(value), value), b"STORED\r\n"

    def fetch(number, value):
        return b"get k%d\r\n" % number, b"VALUE k%d 0 %d\r\n%s\r\nEND\r\n" % (number, len(value), value)

    with servers.running([program("memcached"), "-u", "root", "-p", str(port), "-U", "0", "-l", "127.0.0.1", "-m", "1024"], port,
                         cwd=work) as process, loaded(process.pid, key_value(port, store, fetch)) as target:
        yield target


@contextlib.contextmanager
def nginx(work):
    port = free_port()
    with servers.nginx(work, port) as process:
        with loaded(process.pid, *[http_get(port, "/index.html", b"x" * 1024)] * 4) as target:
            yield target


@contextlib.contextmanager
def haproxy(work):
    port, conf = free_port(), work / "haproxy.cfg"
    conf.write_text("defaults\n mode http\n timeout client 30s\n timeout server 30s\n timeout connect 30s\n"
                    f"frontend all\n bind 127.0.0.1:{port}\n http-request return status 200 content-type text/plain string right\n")
    with servers.running([program("haproxy"), "-f", str(conf), "-db"], port) as process:
        with loaded(process.pid, *[http_get(port, "/", b"right")] * 4) as target:
            yield target


@contextlib.contextmanager
def bind9(work):
    port, conf = free_port(), work / "named.conf"
    (work / "zone").write_text("$TTL 60\n@ SOA ns root 1 60 60 60 60\n@ NS ns\nns A 127.0.0.1\n* A 127.1.2.3\n")
    conf.write_text(f'options {{ directory "{work}"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no;'
                    f' pid-file none; session-keyfile "{work}/key"; }};\ncontrols {{ }};\nzone "test" {{ type master; file "zone"; }};\n')
    numbers = itertools.count()

    def request():
        number = next(numbers)
        name = b"n%d" % number
        query = struct.pack(">6H", number & 0xffff, 0, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\4test\0" + struct.pack(">2H", 1, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(30)
            s.sendto(query, ("127.0.0.1", port))
            answer = s.recv(2048)
        if answer[:2] != query[:2] or bytes([127, 1, 2, 3]) not in answer:
            raise ValueError(f"the answer is {answer[:40]!r}")

    with servers.running([program("named"), "-f", "-c", str(conf)], port) as process:
        with loaded(process.pid, *[request] * 4) as target:
            yield target


def child_pid(parent, pattern):
    """The child, or its child, with pattern in its command line, that worked most."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if re.search(pattern, command) and parent in ancestors(int(path.name)):
                found.append((int(fields[11]) + int(fields[12]), int(path.name)))
    if not found:
        raise Missing(f"no process {pattern}")
    return max(found)[1]


def ancestors(pid):
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


@contextlib.contextmanager
def postgres(work, which):
    program("pgbench")
    port = free_port()
    command = [program("psql"), "-X", "-A", "-t", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
    with servers.postgres(work, port) as process, contextlib.closing(Pipe(command)) as client:
        backend, numbers = int(client.ask("SELECT pg_backend_pid();")), itertools.count()

        def keep():
            number = next(numbers)
            client.ask(f"SELECT length(set_config('reach.v{number}', repeat('x', 10000), false)), {number};", f"10000|{number}")
            client.ask("SELECT sum(length(repeat('x', i))) FROM generate_series(1, 1000) i;", "500500")

        def connect():
            answer = subprocess.run([*command, "-c", "SELECT 6 * 7"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if answer.stdout.strip() != "42":
                raise ValueError(answer.stdout)

        pid, request = (backend, keep) if which == "backend" else (process.pid, connect)
        with loaded(pid, request) as target:
            yield target


@contextlib.contextmanager
def mariadb(work):
    port, data = free_port(), work / "data"
    subprocess.run([program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db",
                    "--auth-root-authentication-method=normal"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    command = [program("mariadb"), "--no-defaults", "-N", "-B", "--unbuffered", "-u", "root", "-S", f"{work}/socket"]
    with servers.running([program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={work}/socket", f"--port={port}",
                          "--bind-address=127.0.0.1", "--user=root"], port) as process, contextlib.closing(Pipe(command)) as client:
        numbers = itertools.count()

        def request():
            number = next(numbers)
            client.ask(f"SET @v{number} = REPEAT('x', 10000); SELECT LENGTH(@v{number}), {number};", f"10000\t{number}")
            client.ask("SELECT LENGTH(GROUP_CONCAT(help_keyword_id)) > 0 FROM mysql.help_keyword;", "1")

        with loaded(process.pid, request) as target:
            yield target


# Others

@contextlib.contextmanager
def sqlite(work):
    with contextlib.closing(Pipe([program("sqlite3"), ":memory:"])) as client:
        numbers = itertools.count(1)
        client.ask("CREATE TABLE t (n INTEGER, b BLOB); SELECT 1;", "1")

        def request():
            number = next(numbers)
            client.ask(f"INSERT INTO t VALUES ({number}, randomblob(10000)); SELECT count(*), sum(length(b)) FROM t WHERE n > {number - 100};",
                       f"{min(number, 100)}|{min(number, 100) * 10000}")
            time.sleep(0.002)

        with loaded(client.process.pid, request) as target:
            yield target


PAGE = """<title>0</title><body><script>
let kept = [], n = 0;
setInterval(() => {
  for (let i = 0; i < 20; i++) {
    const p = document.createElement("p"); p.textContent = "block " + n + " ".repeat(5000); p.hidden = true;
    document.body.append(p); kept.push(new Uint8Array(10000).fill(n % 251));
  }
  const i = ++n * 7 % kept.length;
  if (kept[i].every((byte) => byte === kept[i][0])) document.title = n;
}, 20);
</script>"""


@contextlib.contextmanager
def chromium(work, which):
    port, page = free_port(), work / "page.html"
    page.write_text(PAGE)
    get = http_get(port, "/json/list")
    shown = [0]

    def request():
        title = int(next(tab["title"] for tab in json.loads(get()) if tab["type"] == "page") or 0)
        if title <= shown[0] and not wait_for_more(get, shown[0]):
            raise ValueError(f"the page stands still at {title}")
        shown[0] = max(title, shown[0])

    with servers.running([program("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={work}/profile",
                          f"--remote-debugging-port={port}", f"file://{page}"], port) as process:
        time.sleep(2)
        pid = process.pid if which == "browser" else child_pid(process.pid, "--type=renderer")
        with loaded(pid, request) as target:
            yield target


def wait_for_more(get, shown):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if int(next(tab["title"] for tab in json.loads(get()) if tab["type"] == "page") or 0) > shown:
            return True
        time.sleep(0.05)
    return False


class Compile(Target):
    """Is right when its object is that of a compile that nobody attached to."""

    def __init__(self, process, command, expected, made):
        super().__init__(process.pid)
        self.process, self.command, self.expected, self.made = process, command, expected, made

    def warm(self):
        time.sleep(WARM)
        if self.process.poll() is not None:
            raise Missing("the compile was over before the attach")

    def what_is_wrong(self, patience):
        try:
            if self.process.wait(2 * patience):
                return f"it ended with {self.process.returncode}"
        except subprocess.TimeoutExpired:
            return "it does not end"
        subprocess.run([*self.command, "-o", str(self.expected)], check=True)
        return "" if filecmp.cmp(self.expected, self.made, shallow=False) else "its object is another one"


@contextlib.contextmanager
def clang(work, functions=6000):
    source, made = work / "long.c", work / "made.o"
    source.write_text("".join(
        f"int f{i}(int *a, int n) {{ int s = {i}; for (int k = 0; k < n; k++) {{ s += a[k] * (k ^ {i % 97}); if (s % 7 == {i % 7}) s ^= a[n - k - 1]; }} return s; }}\n"
        for i in range(functions)))
    command = [program("clang-14"), "-O2", "-c", str(source)]
    process = subprocess.Popen([*command, "-o", str(made)])
    try:
        yield Compile(process, command, work / "expected.o", made)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
