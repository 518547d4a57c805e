"""Runs give the same bytes whichever kernels OpenBLAS and NumPy choose for the processor.

The choice can be made by variables of the environment where the libraries were built for several processors, as their
wheels for x86 are; elsewhere the programs are the same and show nothing.
"""

import os
import signal
import subprocess
import sys

PROGRAM = """
import hashlib, math
import fsm_dyn

def digest(name, **settings):
    run = fsm_dyn.simulate(fsm_dyn.compile(name), 0.1, **settings)
    return hashlib.sha256(run.t.tobytes() + run.q.tobytes() + run.u.tobytes()).hexdigest()

for name in ("four_bar_row", "piano_action_simple", "carried_bar"):
    print(name, digest(name))
print("callable input", digest("virtual_wall", inputs={"push": lambda t: -math.sin(t)}))
"""
CHOICES = (
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},
    {"OPENBLAS_CORETYPE": "SkylakeX"},
)


def test_starts_and_runs_are_the_same_on_any_processor(tmp_path):
    programs = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM],
            env=os.environ | choice | {"FSM_DYN_CACHE": str(tmp_path / str(k))},  # starts are kept there
            stdout=subprocess.PIPE,
            text=True,
        )
        for k, choice in enumerate(CHOICES)
    ]
    texts = [program.communicate(timeout=240.0)[0] for program in programs]
    codes = [program.returncode for program in programs]
    assert set(codes) <= {0, -signal.SIGILL}  # a processor may lack the instructions of a choice
    found = [text for text, code in zip(texts, codes, strict=True) if code == 0]
    assert len(found) >= 2
    assert found[0].count("\n") == 4
    assert len(set(found)) == 1, found
