# SPDX-License-Identifier: MIT
"""See rounds.c. With "numpy": arrays, and four threads that compute with others."""
import sys
import threading
import time


def churn():
    while True:
        product = (np.ones((200, 200)) @ np.ones((200, 200))).sum()
        if product != 200**3:
            print("ROUND 0 LIVE 0 WRONG", flush=True)
        time.sleep(0.005)


def block(value):
    return np.full(10000, value, dtype=np.uint8) if np else bytes([value]) * 10000


np = None
if sys.argv[1:] == ["numpy"]:
    import numpy as np
    for _ in range(4):
        threading.Thread(target=churn, daemon=True).start()
kept, number = [], 0
while True:
    number += 1
    kept += [block((len(kept) + n) % 251) for n in range(8)]
    for n in range(200):
        bytes(500 + n * 37 % 2000)
    i = number * 7 % len(kept)
    print("ROUND", number, "LIVE", len(kept) * 10000, "OK" if bytes(kept[i]) == bytes([i % 251]) * 10000 else "WRONG", flush=True)
    time.sleep(0.02)
