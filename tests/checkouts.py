"""Processes that import the package from another folder than the one that is installed."""

import os
from pathlib import Path

from tests.runtime.building import compile_library

ROOT = Path(__file__).parents[1]


def environment(root, **variables):
    """Environment variables with which Python imports the package under ``root``, an editable install or not."""
    editable = ROOT / "build" / "editable"  # how scikit-build-core knows the install, whose imports are left alone
    return {**os.environ, "PYTHONPATH": str(root), "SKBUILD_EDITABLE_SKIP": str(editable), **variables}


def build_runtime(root):
    """Compile the runtime of the package under ``root`` into that package, as CMake does where it is installed."""
    folder = Path(root) / "fsm_dyn" / "runtime"
    if (folder / "fsm_runtime.c").exists():  # revisions without it have no library
        flags = ["-O3", "-DNDEBUG", "-fvisibility=hidden"]
        compile_library([folder / "fsm_runtime.c"], folder / "_fsm_runtime.so", *flags)
