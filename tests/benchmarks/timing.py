"""How two calls are compared on a machine that does other things besides."""

import time

import numpy as np

ROUNDS = 9
CALLS = 20  # of the fast one in a round, so that both are timed over spans of milliseconds


def ratio(ours, theirs):
    """Median over rounds of the processor time of a call of ``theirs`` over that of a call of ``ours``."""
    ratios = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(CALLS):
            ours()
        middle = time.process_time()
        theirs()
        ratios.append(CALLS * (time.process_time() - middle) / (middle - begin))
    return float(np.median(ratios))
