# SPDX-License-Identifier: MIT
"""The way of docs/continuous.md: from sessions that repeat to a server of profiles, as the examples there do it."""
import base64
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

from harness import Victim, case
from procfs import Failure, PATIENCE, Skip
from reports import analyze

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "docs" / "examples"
sys.path.insert(0, str(ROOT / "tests" / "unit" / "analyzer" / "program"))
from pprof_profile import Profile  # noqa: E402

SAMPLES_MAX, BYTES_MAX = 16000, 4 << 20  # what Pyroscope takes


class Receiver:
    """Takes what is posted, as Pyroscope does: (path, labels, file of the profile); refuses the first request."""

    def __init__(self, context):
        self.context, self.arrived, self.event = context, [], threading.Event()
        self.refused = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200 if receiver.refused else 503)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
                if receiver.refused:
                    receiver.take(self.path, self.headers["Content-Type"], json.loads(body))
                receiver.refused += 1

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, content_type, body):
        assert content_type == "application/json"
        for series in body["series"]:
            labels = {label["name"]: label["value"] for label in series["labels"]}
            for sample in series["samples"]:
                file = self.context.unique("arrived", ".pb.gz")
                pathlib.Path(file).write_bytes(base64.b64decode(sample["rawProfile"], validate=True))
                self.arrived.append((path, labels, file))
        self.event.set()

    def wait(self, count):
        while len(self.arrived) < count:
            if not self.event.wait(PATIENCE):
                raise Failure(f"{len(self.arrived)} profiles have arrived, not {count}")
            self.event.clear()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def environment(context, receiver, **more):
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    programs = context.unique("programs", "")
    os.mkdir(programs)
    for program in (context.memattach, context.memanalyze):
        os.symlink(program, os.path.join(programs, os.path.basename(program)))
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYROSCOPE_URL": receiver.url, **more}, programs


def check_sent(arrived, service):
    path, labels, file = arrived
    assert path == "/push.v1.PusherService/Push", path
    assert labels == {"__name__": "memory", "service_name": service, "instance": os.uname().nodename}, labels
    profile = Profile(file)
    assert len(profile.message["sample"]) <= SAMPLES_MAX and len(profile.plain) <= BYTES_MAX, len(profile.plain)
    return profile


@case()
def sessions_reach_a_profile_server(context):
    """profile-service, with a systemctl that knows our process: each session's profile arrives whole, with the names and totals of
    its dump, also when the server refuses it at first; the status of memattach is that of the script."""
    victim = Victim(context, "known_heap")
    with contextlib.closing(Receiver(context)) as receiver:
        variables, programs = environment(context, receiver, EVERY="5s", DURATION="3s", STATE_DIRECTORY=context.work)
        systemctl = pathlib.Path(programs, "systemctl")
        systemctl.write_text(f'#!/bin/sh\n[ "$*" = "show --property=MainPID --value known.service" ] && echo {victim.pid}\n', encoding="ascii")
        systemctl.chmod(0o755)
        script = context.start([EXAMPLES / "profile-service", "known.service"], env=variables, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in script.stderr:
            if "attached to" in line:
                break
        victim.send("go")
        victim.truth()
        receiver.wait(1)
        victim.finish_by_stdin()
        said = script.communicate(timeout=PATIENCE)[1]
        assert script.returncode == 0 and "could not be sent" not in said, (script.returncode, said)
    names = set()
    for arrived in receiver.arrived:
        profile = check_sent(arrived, "known")
        names.update(name for stack, _ in profile.stacks() for name in stack)
    assert {"c", "run"} <= names, names
    dumps = sorted(name for name in os.listdir(context.work) if name.endswith(".dump"))
    total = analyze(context, context.path(dumps[0]))["total"]["live_bytes"]["estimate"]
    assert total > 20 << 20 and abs(Profile(receiver.arrived[0][2]).totals()["inuse_space"] - total) <= 1, total


@case()
def large_profile_fits_a_profile_server(context):
    """50,000 stacks are more than such a server takes: what is sent is below its limits, and has the same totals."""
    tool = os.path.realpath(os.path.join(context.targets, "..", "unit", "common", "large_dump"))
    if not os.path.exists(tool):
        raise Skip("large_dump was not built")
    dump, whole = context.path('memattach.odd "name"\\.7.20260101-000000.dump'), context.path("whole.pb.gz")
    subprocess.run([tool, dump, "60000", "60000", "50000"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([context.memanalyze, "-o", whole, dump], check=True)
    full = Profile(whole)
    assert len(full.message["sample"]) > SAMPLES_MAX, "nothing would have to be left out"
    with contextlib.closing(Receiver(context)) as receiver:
        receiver.refused = 1
        variables, _ = environment(context, receiver)
        subprocess.run([EXAMPLES / "send-to-pyroscope", dump], env=variables, check=True, timeout=PATIENCE)
    profile = check_sent(receiver.arrived[0], 'odd "name"\\')
    assert len(profile.message["sample"]) > SAMPLES_MAX // 2 and profile.totals() == full.totals(), profile.totals()


@case()
def examples_name_what_there_is(context):
    """Options in the examples and pages exist, units are valid, and the pages lead to each example."""
    options = set()
    for program in (context.memattach, context.memanalyze):
        text = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        options |= set(re.findall(r"--[a-z][a-z-]+", text))
    pages = [ROOT / "docs" / name for name in ("continuous.md", "containers.md") if (ROOT / "docs" / name).exists()]
    for path in [*pages, *EXAMPLES.iterdir()]:
        text = re.sub(r"\$\([^)]*\)", "", path.read_text(encoding="utf-8").replace("\\\n", " "))
        for line in text.splitlines():
            for call in re.findall(r"mem(?:attach|analyze) ([^|`;]*)", line):
                unknown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", call.split(" -- ")[0])) - options
                assert not unknown or re.search(r"kubectl|docker", line), (path.name, unknown, line)
    said = "".join(page.read_text(encoding="utf-8") for page in pages)
    for path in EXAMPLES.iterdir():
        assert f"examples/{path.name}" in said, f"no page tells of {path.name}"
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed: units are not checked")
    for path in [path for path in EXAMPLES.iterdir() if "@." in path.name]:
        copy = context.path(path.name.replace("@.", "@demo."))
        text = path.read_text(encoding="utf-8").replace("/usr/local/lib/memattach/profile-service", "/bin/true").replace("exec memattach", "exec true")
        pathlib.Path(copy).write_text(text, encoding="utf-8")
    for name in sorted(os.listdir(context.work)):
        if "@demo." in name:
            result = subprocess.run(["systemd-analyze", "verify", "--man=no", context.path(name)], stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False,
                                    env={**os.environ, "SYSTEMD_UNIT_PATH": context.work + ":"})
            assert result.returncode == 0 and "memattach" not in result.stdout, (name, result.stdout)
