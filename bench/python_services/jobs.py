# SPDX-License-Identifier: MIT
"""Jobs with pandas and numpy that keep a part of what they compute."""
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


def multiply_tiles():
    tiles = np.random.default_rng(7).random((64, 64))
    while True:
        product = tiles @ tiles.T
        product /= product.max()
        kept = []
        for row in np.sort(product, axis=1)[::32]:
            kept.append(row[:16].repeat(4))  # leaks
        keep(kept, kept[0].nbytes + DIMENSION)


{"pandas": summarise_frames, "numpy": multiply_tiles}[sys.argv[1]]()
