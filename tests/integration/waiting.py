# SPDX-License-Identifier: MIT
"""Processes whose end is waited for. subprocess looks at most every 50 ms whether a process with a timeout has ended, and the cases
start thousands that take that long."""
import os
import select
import subprocess


class Process(subprocess.Popen):
    def wait(self, timeout=None):
        if timeout is None or self.poll() is not None:
            return super().wait()
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:  # before Linux 5.3
            return super().wait(timeout)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(1000 * timeout):
                raise subprocess.TimeoutExpired(self.args, timeout)
        finally:
            os.close(descriptor)
        return super().wait()


def use_everywhere():
    """Also by subprocess.run() and its like."""
    subprocess.Popen = Process
