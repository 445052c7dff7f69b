# SPDX-License-Identifier: MIT
"""Two interpreters of CPython in one process: this one, and a copy of its library, opened with names of its own (argv[1]).

    PID n
    READY
with a thread that rests in the other one; waits for a line on stdin, makes a block of 10000 bytes here, one of 20000 in the other one, called from here, and one of 30000 there
on a thread that this one does not know; keeps them, and prints MADE; waits for a line, ends the other one, and prints OK.
"""
import ctypes
import os
import sys
import threading

other = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND | os.RTLD_NOW)
CODE = b"""
import _thread
kept = globals().get("kept", [])
def there(size):
    kept.append(bytes(size))
def rest():
    lock = _thread.allocate_lock()
    done.release()
    while lock.acquire():
        pass
def on_a_thread(size):
    there(size)
    done.release()
done = _thread.allocate_lock()
done.acquire()
_thread.start_new_thread(rest, ())
done.acquire()
"""
ALONE = b"""
_thread.start_new_thread(on_a_thread, (30000,))
done.acquire()
"""


def run(code):
    assert other.PyRun_SimpleString(code) == 0


def here():
    return bytes(10000)


def main():
    other.Py_InitializeEx(0)
    run(CODE + b"there(1)")
    threading.Thread(target=len, args=("",)).start()  # with it the C library catches a signal
    print("PID %d\nREADY" % os.getpid(), flush=True)
    sys.stdin.readline()
    kept = here()
    run(b"there(20000)")
    run(ALONE)
    print("MADE", flush=True)
    sys.stdin.readline()
    assert other.Py_FinalizeEx() == 0 and kept
    print("OK two rounds=1", flush=True)


main()
