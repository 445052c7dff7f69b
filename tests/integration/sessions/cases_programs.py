# SPDX-License-Identifier: MIT
"""Real programs as Debian ships them: redis-server, nginx, python3."""
import os
import re
import socket
import subprocess
import time

from browser import CHROMIUM, Browser, Shown
from harm_nginx import NginxUnderLoad
from harness import AT_ANY_COST, Session, Victim, case, check_receipt, free_port, log, run_session, wait_for_port
from procfs import Failure, PATIENCE, read_text
from readme import check_readme
from reports import analyze, analyze_text, functions_of, stacks_with, sum_of, truncated_share
from snapshot import Snapshot, check_same

SESSION_SECONDS = 10


def check_stacks(report):
    """Most stacks reach main or a thread's start: at most 1 % of the samples are cut short."""
    share = truncated_share(report)
    log(f"samples {report['samples']}, truncated {share:.3%}")
    if share >= 0.01:
        raise Failure(f"{share:.2%} of the samples have a stack that is cut short")


def check_measured(report):
    """Nothing that these programs allocate or free is missed."""
    worth = {report["trust"][figure]["value"] for figure in ("live_bytes", "live_count", "allocated_bytes", "allocated_count")}
    assert worth == {"measured"}, report["trust"]


def wait_for_redis(port, server):
    """Until it answers, and has closed the connection: it listens before it has begun, and tries out a fork then (on arm64)."""
    wait_for_port(port, server)
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.sendall(b"PING\r\nQUIT\r\n")
        said = b""
        while more := client.recv(64):
            said += more
    assert said == b"+PONG\r\n+OK\r\n", said


@case()
def redis_under_load(context):
    """redis-server under redis-benchmark: no error on the clients' side, and the report names who holds the keys."""
    server_path = context.program("redis-server")
    benchmark_path = context.program("redis-benchmark")
    port = free_port()
    with open(context.path("redis.log"), "wb") as server_log:
        server = context.start([server_path, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                                "--dir", context.work], stdout=server_log, stderr=subprocess.STDOUT)
    wait_for_redis(port, server)
    before = Snapshot(server.pid)
    benchmark = context.start([benchmark_path, "-p", str(port), "-t", "set,get", "-n", "100000000", "-r", "300000", "-d", "200",
                               "-P", "16", "-c", "20", "-q"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(0.5)
    session = Session(context, server.pid, *AT_ANY_COST, rate="64k")
    time.sleep(SESSION_SECONDS)
    session.sampled(200)
    assert benchmark.poll() is None, f"the benchmark ended: {benchmark.stdout.read()[-500:]}"
    receipt = session.stop()
    time.sleep(0.5)
    assert benchmark.poll() is None, f"the benchmark ended: {benchmark.stdout.read()[-500:]}"
    benchmark.terminate()
    said = benchmark.communicate(timeout=PATIENCE)[0]
    assert b"rror" not in said, said[-500:]
    check_receipt(receipt, server.pid)
    check_same_but_connections(before, Snapshot(server.pid))
    check = subprocess.run([benchmark_path, "-p", str(port), "-t", "set,get", "-n", "20000", "-P", "16", "-q"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
    assert check.returncode == 0 and b"rror" not in check.stdout, check.stdout[-500:]
    assert server.poll() is None
    with open(context.path("redis.log"), "rb") as server_log:
        assert b"crashed" not in server_log.read(), "see redis.log"
    report = analyze(context, session.dump)
    check_stacks(report)
    check_measured(report)
    assert report["samples"]["taken"] > 100, report["samples"]
    top = sorted(report["stacks"], key=lambda s: -s["live_bytes"]["estimate"])[:5]
    names = {name for stack in top for name in functions_of(stack)}
    wanted = {"processCommand", "setCommand", "setGenericCommand", "call", "dbAdd", "tryObjectEncoding", "sdsnewlen",
              "processInputBuffer", "readQueryFromClient", "genericSetKey", "setKey"}
    assert names & wanted, sorted(names)


def check_same_but_connections(before, after):
    before.descriptors = {n: t for n, t in before.descriptors.items() if not t.startswith("socket:")}
    after.descriptors = {n: t for n, t in after.descriptors.items() if not t.startswith("socket:")}
    check_same(before, after, busy=True)


@case()
def redis_idle(context):
    """An idle redis-server is as before to the last mapping; ten sessions."""
    port = free_port()
    server = context.start([context.program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                            "--dir", context.work], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_redis(port, server)
    time.sleep(0.5)
    before = Snapshot(server.pid)
    for _ in range(10):
        check_receipt(Session(context, server.pid).stop(), server.pid)
    check_same_but_connections(before, Snapshot(server.pid))
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(b"PING\r\n")
        assert client.recv(16) == b"+PONG\r\n"


@case()
def nginx_under_load(context):
    """nginx's worker under requests: every answer is right."""
    server = NginxUnderLoad(context, connects_again=True)
    before = Snapshot(server.pid)
    session = Session(context, server.pid, *AT_ANY_COST, rate="4k")
    session.sampled(50)
    check_receipt(session.stop(), server.pid)
    check_same_but_connections(before, Snapshot(server.pid))
    assert server.rounds > 100, server.rounds
    server.finish()
    report = analyze(context, session.dump)
    assert report["samples"]["taken"] > 10, report["samples"]
    check_stacks(report)
    check_measured(report)


PYTHON = r"""
import json, os, signal, sys
done = []
signal.signal(signal.SIGUSR1, lambda *_: done.append(1))
print("PID", os.getpid(), flush=True)
print("READY", flush=True)
rounds, kept = 0, []
while not done:
    value = {"key%d" % i: [i, str(i) * 20, {"nested": i / 3}] for i in range(300)}
    text = json.dumps(value)
    if json.loads(text) != value:
        print("WRONG json", flush=True)
        sys.exit(1)
    kept.append(text)
    del kept[:-200]
    rounds += 1
signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # finalizing would make it deadly, and it is sent again
print("OK python rounds=%d" % rounds, flush=True)
"""


@case(sanitized=True)
def python3_default(context):
    """Debian's python3 is non-PIE: its &malloc is its own PLT stub, and heaptrack -p crashes it."""
    victim = Victim(context, [context.program("/usr/bin/python3"), "-c", PYTHON])
    for _ in range(3):
        session, _ = run_session(context, victim, samples=1, rate="64k")
    report = analyze(context, session.dump)
    assert report["samples"]["taken"] > 0, report["samples"]
    check_stacks(report)
    check_measured(report)
    victim.finish()


@case()
def python3_malloc(context):
    """The same with PYTHONMALLOC=malloc: every object is one allocation."""
    victim = Victim(context, [context.program("/usr/bin/python3"), "-c", PYTHON], environment={"PYTHONMALLOC": "malloc"})
    session, _ = run_session(context, victim, *AT_ANY_COST, samples=200, rate="64k")
    report = analyze(context, session.dump)
    assert report["samples"]["taken"] > 100, report["samples"]
    check_stacks(report)
    check_measured(report)
    victim.finish()


def anonymous_bytes(pid):
    return int(re.search(r"^RssAnon:\s*(\d+) kB$", read_text(f"/proc/{pid}/status"), re.M).group(1)) << 10


def wait_for_growth(server, grown_bytes):
    """Until its private memory is larger by this: how long that takes is the machine's affair."""
    wanted = anonymous_bytes(server.pid) + grown_bytes
    end = time.monotonic() + PATIENCE
    while anonymous_bytes(server.pid) < wanted:
        if time.monotonic() > end:
            raise Failure(f"process {server.pid} did not grow by {grown_bytes} bytes in {PATIENCE} s")
        time.sleep(0.05)


def check_html(context, dump, report):
    """What the HTML report shows of it in a browser, if there is one: the functions, the total, a search."""
    page = os.path.join(context.work, "demo.html")
    analyze_text(context, dump, "-o", page)
    if not CHROMIUM:
        log("without the HTML report: there is no chromium")
        return
    with Browser(os.path.join(context.work, "browser")) as browser:
        shown = Shown(browser, page, "dir=in&q=remember_rejected")
    assert shown.data["function"] == "remember_rejected" and int(shown.data["boxes"]) > 3, shown.data
    assert shown.numbers("total")[0] == report["total"]["live_bytes"]["estimate"], shown.data
    estimate, low, high = shown.numbers("hit")
    expected = sum_of(stacks_with(report, "remember_rejected"), "live_bytes")
    assert abs(estimate - expected) <= 10 and low < estimate < high, (shown.data, expected)


@case()
def demo_service(context):
    """The service of scripts/demo: the leak is the first stack; README shows what is printed then.

    12 MiB of growth are at most 4 MiB that are no leak: its cache (500 documents of 5000 bytes on average), the recorder's
    memory, what the allocator holds free. So at one sample per 64 KiB at least 128 live samples of the leak stand against 38 of the
    cache. With the Poisson means m > n the wrong one comes first with less than exp(-(sqrt(m) - sqrt(n))^2), here 1e-11. The
    governor is off: it would leave some ten samples, and one wrong verdict in a hundred.
    """
    server = context.start([context.target("demo_service")], stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == f"PID {server.pid}\n"
    wait_for_growth(server, 4 << 20)  # its threads are there, and the cache has its size
    before = Snapshot(server.pid)
    session = Session(context, server.pid, "--max-overhead", "off", rate="64k")
    wait_for_growth(server, 12 << 20)
    check_receipt(session.stop(), server.pid)
    check_same(before, Snapshot(server.pid), busy=True)
    report = analyze(context, session.dump)
    check_stacks(report)
    check_measured(report)
    top = sorted(report["stacks"], key=lambda s: -s["live_bytes"]["estimate"])[:1]
    names = [name for stack in top for name in functions_of(stack)]
    assert "remember_rejected" in names, names
    check_html(context, session.dump, report)
    check_readme(context, session)
    server.terminate()
    assert server.wait(PATIENCE) == 0
