"""Runs one model when asked, with whatever package is first on the path, and tells how long that took.

``measure.py MODEL``: prints a line of JSON when the model is ready, and another for every line ``[until, step]`` (s)
that it reads.  It uses the public interface alone, so that it runs with older and newer revisions alike.  All modes
have kernels of their own, as they had by default before there was ``auto``.
"""

import json
import sys
import time

TINY = 1e-9  # s


def main():
    begin = time.process_time()
    import fsm_dyn

    graph = fsm_dyn.compile(sys.argv[1])
    fsm_dyn.simulate(graph, TINY, method="rk4", step=TINY)
    start = time.process_time() - begin
    own = {"strategy": "compiled"} if hasattr(fsm_dyn, "Simulator") else {}
    print(json.dumps({"file": fsm_dyn.__file__, "start": start}), flush=True)
    for line in sys.stdin:
        until, step = json.loads(line)
        begin = time.process_time()
        run = fsm_dyn.simulate(graph, until, method="rk4", step=step, on_failure="return", **own)
        took = time.process_time() - begin
        events = len(run.transitions)
        print(json.dumps({"time": took, "steps": len(run.t) - 2 * events, "transitions": events}), flush=True)


if __name__ == "__main__":
    main()
