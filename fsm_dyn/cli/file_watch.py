"""Do something whenever a file is saved."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from fsm_dyn.cli.console import print_status
from fsm_dyn.errors import FsmDynError
from fsm_dyn.file_changes import INTERVAL, FileChanges
from fsm_dyn.interrupts import asked_to_end


def watch(path: Path, action: Callable[[], None]) -> None:
    """Call ``action`` now and after every change of the file, until Ctrl-C.

    Any error of ``action`` is shown and does not end the watch: the file is being written on, and the next
    version may be right.
    """
    file, due = FileChanges(path), path.exists()
    with contextlib.suppress(KeyboardInterrupt), asked_to_end() as asked, asked.at_once():
        while not asked:
            if due:
                print_status(f"--- {time.strftime('%H:%M:%S')} {path}")
                _attempt(action)
            time.sleep(INTERVAL)
            due = file.changed()
    print_status("stopped watching")


def _attempt(action: Callable[[], None]) -> None:
    try:
        action()
    except FsmDynError as error:
        print_status(f"error: {error}")
    except Exception:
        print_status(traceback.format_exc())
