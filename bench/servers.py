# SPDX-License-Identifier: MIT
"""The servers that scripts/bench and bench/switched measure: started on the loopback, in a folder of their own, and ended.

And how a column of figures is summed up.
"""
import contextlib
import math
import os
import shutil
import signal
import socket
import statistics
import subprocess
import threading
import time
from pathlib import Path

PATIENCE = 60  # seconds for one step of anything that is measured; then it counts as hung


class Missing(RuntimeError):
    """Something that is measured is not installed."""


@contextlib.contextmanager
def bounded(process, seconds=PATIENCE):
    """What waits for output of process inside ends when it hangs: it is killed."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def middle(values, form="{:.4f}"):
    """The median and its 95 %."""
    values = sorted(values)
    n = len(values)
    reach = math.ceil(0.98 * math.sqrt(n)) + 1
    low, high = values[max(0, n // 2 - reach)], values[min(n - 1, n // 2 + reach)]
    return f"{form.format(statistics.median(values))} ({form.format(low)}–{form.format(high)})"


def wait_for(port, process):
    for _ in range(100):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError("the server does not answer")


def stop(process, signal_number=signal.SIGTERM):
    process.send_signal(signal_number)
    with bounded(process, 20):
        process.wait()


@contextlib.contextmanager
def running(command, port, end=signal.SIGTERM, **more):
    """Gives the process once it answers; more: of Popen."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    try:
        wait_for(port, process)
        yield process
    finally:
        stop(process, end)


@contextlib.contextmanager
def redis(folder, port=16390, prefix=()):
    if not shutil.which("redis-server"):
        raise Missing("redis-server is not installed")
    with running([*prefix, "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                  "--dir", str(folder)], port) as process:
        yield process


@contextlib.contextmanager
def nginx(folder, port=16391, prefix=()):
    """One process that serves a file of 1 KiB, /index.html."""
    binary = shutil.which("nginx") or "/usr/sbin/nginx"
    if not os.path.exists(binary):
        raise Missing("nginx is not installed")
    (folder / "index.html").write_text("x" * 1024)
    conf = folder / "nginx.conf"
    conf.write_text(f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
                    f"events {{ worker_connections 256; }}\nhttp {{ access_log off; client_body_temp_path {folder}/b;"
                    f" keepalive_requests 1000000000; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;"
                    f" scgi_temp_path {folder}/s;\n server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n")
    os.chmod(folder, 0o755)
    with running([*prefix, binary, "-c", str(conf)], port) as process:
        yield process


@contextlib.contextmanager
def postgres(folder, port=16392, prefix=()):
    """With the tables of pgbench; user and database postgres. Gives the postmaster: backends are its children."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not binaries or not shutil.which("pgbench"):
        raise Missing("PostgreSQL is not installed")
    bin_dir = binaries[-1].parent
    data = folder / "pg"
    data.mkdir()
    user = []
    if os.getuid() == 0:
        user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        shutil.chown(data, "postgres", "postgres")
        os.chmod(folder, 0o755)
    subprocess.run([*user, str(bin_dir / "initdb"), "-D", str(data), "-A", "trust", "--no-sync", "-U", "postgres"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, cwd="/")
    with running([*prefix, *user, str(bin_dir / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(data), "-F"],
                 port, signal.SIGINT, cwd="/") as process:
        for _ in range(50):
            if subprocess.run(["pgbench", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-i", "-q", "-s", "2", "postgres"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                break
            time.sleep(0.2)
        yield process
