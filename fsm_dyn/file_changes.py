"""Changes of a file that is being edited.

One file is looked at by its modification time and size: this needs no package, works on every file system, and takes
the two steps of an editor that replaces files as one change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

INTERVAL: Final = 0.15  # s between two looks


class FileChanges:
    """The changes of a file, which is looked at every ``INTERVAL``; a change counts when the file is stable.

    Parameters
    ----------
    path : Path
        The file; it may be missing for a while.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reported = self._last = self._stamp()

    def changed(self) -> bool:
        """Look at the file: whether it differs from the version reported last and is as it was a look ago."""
        now = self._stamp()
        stable, self._last = now == self._last, now
        if now is None or now == self._reported or not stable:
            return False
        self._reported = now
        return True

    def _stamp(self) -> tuple[int, int] | None:
        """Return modification time (ns) and size of the file; None while it is missing."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
