# SPDX-License-Identifier: MIT
"""Sessions with a service in Java under load, those of bench/java that need nothing but a JDK."""
import pathlib
import subprocess
import threading
import urllib.request

from harness import PATIENCE, Session, Victim, case, check_receipt, log
from reports import analyze, truncated_share

SERVICES = pathlib.Path(__file__).resolve().parents[3] / "bench" / "java"
COMPILERS = ("Compiler::compile_method(", "C2Compiler::compile_method(")


def start(context, name):
    """The service, and where it answers."""
    classes = context.path("service")
    subprocess.run([context.program("javac"), "-g", "-d", classes, SERVICES / "Service.java", SERVICES / f"{name}.java"], check=True, timeout=PATIENCE)
    victim = Victim(context, [context.program("java"), "-Xmx300m", "-cp", classes, name, "0", context.work])
    port = next(line for line in victim.lines.seen if line.startswith("PORT ")).split()[1]
    return victim, f"http://127.0.0.1:{port}/"


def request_for_ever(url, ended, answers):
    while not ended.is_set():
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            answers.append(answer.status == 200 and answer.read().startswith(b'{"value":"'))


def under_load(url, ended, answers):
    threads = [threading.Thread(target=request_for_ever, args=(url, ended, answers)) for _ in range(2)]
    for thread in threads:
        thread.start()
    return threads


def check_compilers(context, session):
    """What a compiler holds is one stack; --native shows all of it."""
    inner = {}
    for options in ((), ("--native",)):
        stacks = analyze(context, session.dump, "--top", "0", *options)["stacks"]
        inner[options] = {stack["frames"][0]["function"] for stack in stacks if any((frame["function"] or "").startswith(COMPILERS) for frame in stack["frames"])}
    assert inner[()] and all(function.startswith(COMPILERS) for function in inner[()]), inner[()]
    assert any(not function.startswith(COMPILERS) for function in inner[("--native",)]), inner


@case()
def java_service_under_load(context):
    """The JDK's HTTP server, javac, lambdas, classes that come and go: answers stay right, stacks are whole, and the line that keeps is named."""
    victim, url = start(context, "CompileService")
    ended, answers = threading.Event(), []
    threads = under_load(url, ended, answers)
    try:
        session = Session(context, victim.pid, "--max-overhead", "0", rate="16k")
        session.sampled(3000)
        before = len(answers)
        while len(answers) < before + 40:
            threads[0].join(0.05)
        check_receipt(session.stop(), victim.pid)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert all(answers), answers
    report = analyze(context, session.dump, "--top", "0")
    log(f"{len(answers)} answers, {report['java']}, {truncated_share(report)} cut")
    assert truncated_share(report) < 0.03, report["counters"]
    assert report["java"]["samples"] > 100, report["java"]
    assert any(frame["function"] == "CompileService.round" and frame["file"] == "CompileService.java" for frame in report["frames"])
    check_compilers(context, session)
    victim.process.kill()
