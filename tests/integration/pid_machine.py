# SPDX-License-Identifier: MIT
"""A PID namespace of its own, which is the machine that memattach --system profiles: no other process is touched."""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import time

from harness import DEADLINE, Lines
from procfs import PATIENCE, Failure, Skip, read_text
from reports import analyze, stacks_with

ENOUGH = 20  # samples of a planted leak


class Machine:
    """A shell that is process 1 of its own PID namespace; all that it starts runs there, and is named by its numbers there."""

    def __init__(self, context, *more):
        """more: other namespaces of its own, as options of unshare."""
        self.context = context
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *more]
        if os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("a PID namespace needs root, and unshare")
        self.folder = context.unique("machine", "")
        os.mkdir(self.folder)
        self.dumps = os.path.join(self.folder, "dumps")
        os.mkdir(self.dumps)
        self.process = context.start([*inside, "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                     cwd=self.folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.lines, self.count, self.victims = Lines(self.process.stdout), 0, []

    def ask(self, command):
        """What a command prints, and its exit status."""
        self.count += 1
        start = len(self.lines.seen)
        self.process.stdin.write(f"{command}\necho ASKED{self.count} $?\n")
        self.process.stdin.flush()
        end = self.lines.wait(rf"^ASKED{self.count} \d+$")
        return self.lines.seen[start:-1], int(end.split()[1])

    def start(self, command, output):
        """The number of a process that is started; it can be interrupted, unlike what a shell puts into the background."""
        lines, _ = self.ask(f"setsid {command} </dev/null >{self.folder}/{output} 2>&1 & echo $!")
        return int(lines[-1])

    def victim(self, name, *arguments):
        """A program of tests/targets: at the end it says whether everything was right."""
        output = f"victim{len(self.victims)}"
        pid = self.start(" ".join([self.context.target(name), *arguments]), output)
        self.victims.append((pid, output))
        self.await_text(output, r"^READY$")
        return pid

    def text(self, output):
        return read_text(os.path.join(self.folder, output), "")

    def await_text(self, output, pattern, count=1):
        end = time.monotonic() + PATIENCE
        while len(re.findall(pattern, self.text(output), re.M)) < count:
            if time.monotonic() > end:
                raise Failure(f"{pattern} does not come in {self.text(output)[-2000:]}")
            time.sleep(0.05)

    def system(self, *arguments, output="system", deadline=DEADLINE):
        """A memattach --system; it writes to output. deadline: None: its own."""
        arguments = ["--system", "-o", self.dumps, "-v", *(["--deadline", deadline] if deadline else []), *map(str, arguments)]
        return self.start(" ".join([self.context.memattach, *arguments]), output)

    def end_of(self, pid):
        return self.ask(f"wait {pid}")[1]

    def detach_all(self):
        """What one command cleans up: nothing of memattach is in any process, and none runs."""
        said, status = self.ask(f"{self.context.memattach} --detach --all 2>&1")
        assert status == 0, said
        self.ask("while pidof memattach; do sleep 0.05; done")
        self.check_clean()

    def check_clean(self):
        holders, _ = self.ask("grep -l memattach /proc/[0-9]*/maps; ls -l /proc/[0-9]*/fd 2>/dev/null | grep memfd:memattach")
        assert not holders, holders

    def finish_victims(self):
        for pid, output in self.victims:
            _, status = self.ask(f"while kill -USR1 {pid} && sleep 0.1; do :; done; wait {pid}")
            assert status == 0 and re.search("^OK ", self.text(output), re.M), (output, status, self.text(output)[-500:])

    def dump_of(self, pid):
        found = glob.glob(os.path.join(self.dumps, f"memattach.*.{pid}.*.dump"))
        assert len(found) == 1, (pid, found)
        return found[0]

    def unseen(self):
        """The rows of who was not profiled: count, name, reason."""
        path, = glob.glob(os.path.join(self.dumps, "memattach.system.*"))
        rows = [line.split("\t") for line in read_text(path).splitlines()]
        assert rows[0] == ["memattach-system", "1"], rows
        return [(int(row[1]), row[3], row[4]) for row in rows if row[0] == "unseen"]

    def await_leak(self, pid, function):
        """Until the dump on the disk shows it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(AssertionError, Failure):
                found = stacks_with(analyze(self.context, self.dump_of(pid)), function)
                if found and sum(stack["samples"] for stack in found) >= ENOUGH:
                    return
            time.sleep(0.3)
        raise Failure(f"the leak of {pid} in {function} is not found")
