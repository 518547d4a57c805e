"""Pause of the garbage collector while many nodes are created."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Switch the collector off for a while: what is made meanwhile stays in use anyway.

    Yields
    ------
    None
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
