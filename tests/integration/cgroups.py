# SPDX-License-Identifier: MIT
"""Control groups that processes of a test are put into."""
import contextlib
import os

from procfs import Skip


@contextlib.contextmanager
def cgroup(name):
    """A cgroup of any hierarchy, for as long as something is in it: its path."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"):
        path = os.path.join(root, name)
        if os.path.exists(os.path.join(root, "cgroup.procs")) and os.access(root, os.W_OK):
            with contextlib.suppress(OSError):
                os.mkdir(path)
                break
    else:
        raise Skip("no cgroup can be made here")
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(path)


def put_into(path, pid):
    with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
        file.write(str(pid))
