# SPDX-License-Identifier: MIT
"""Jobs with pandas and numpy that keep a part of what they compute. jobs.py JOB [PORT]: a round for each line that a client sends, for
bench/switched; without a port one after the other."""
import socket
import sys

import numpy as np
from counted import keep

DIMENSION = 2 * 8  # its length, and the distance between numbers: a block of its own


def summarise_frames():
    import pandas as pd
    frame = pd.DataFrame({"key": np.arange(20000) % 50, "value": np.random.default_rng(7).random(20000)})
    while True:
        means = frame.assign(square=frame.value ** 2).groupby("key").agg({"value": "mean", "square": "sum"})
        kept = np.repeat(means.to_numpy(), 32, axis=0)  # leaks
        keep([kept], kept.nbytes)  # numpy has a store of blocks for two dimensions, so none is new
        yield


def multiply_tiles():
    tiles = np.random.default_rng(7).random((64, 64))
    while True:
        product = tiles @ tiles.T
        product /= product.max()
        kept = []
        for row in np.sort(product, axis=1)[::32]:
            kept.append(row[:16].repeat(4))  # leaks
        keep(kept, kept[0].nbytes + DIMENSION)
        yield


def serve(rounds, port):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        client = listener.accept()[0]
        while client.recv(64):
            next(rounds)
            client.send(b"1\n")


job = {"pandas": summarise_frames, "numpy": multiply_tiles}[sys.argv[1]]()
if len(sys.argv) > 2:
    serve(job, int(sys.argv[2]))
else:
    for _ in job:
        pass
