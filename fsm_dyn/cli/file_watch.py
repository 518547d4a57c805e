"""Do something whenever a file is saved."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from fsm_dyn.cli.console import print_status
from fsm_dyn.errors import FsmDynError
from fsm_dyn.interrupts import asked_to_end

_PAUSE = 0.15  # s between looks at the file

Stamp = tuple[int, int]


def watch(path: Path, action: Callable[[], None]) -> None:
    """Call ``action`` now and after every change of the file, until Ctrl-C.

    Any error of ``action`` is shown and does not end the watch: the file is being written on, and the next
    version may be right.
    """
    seen: Stamp | None = None
    last: Stamp | None = None
    with contextlib.suppress(KeyboardInterrupt), asked_to_end() as asked, asked.at_once():
        while not asked:
            now = _stamp(path)
            # A change is taken up once the file has held still, for it may be written in more than one go.
            if now is not None and now != seen and (now == last or seen is None):
                seen = now
                print_status(f"--- {time.strftime('%H:%M:%S')} {path}")
                _attempt(action)
            last = now
            time.sleep(_PAUSE)
    print_status("stopped watching")


def _attempt(action: Callable[[], None]) -> None:
    try:
        action()
    except FsmDynError as error:
        print_status(f"error: {error}")
    except Exception:
        print_status(traceback.format_exc())


def _stamp(path: Path) -> Stamp | None:
    """Return what changes when the file does; None while it is missing, as between the two steps of many editors."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
