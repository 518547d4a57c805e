"""Machine code kept on disk between processes, in a directory of the user's own.

A file is a header (magic, key, SHA-256 of the rest) and an object file.  It is written under another name and
moved into place, so that readers see all of it or nothing, whoever else writes at the same time.  Machine code is
run as it is found; therefore a file is believed only if it belongs to this user, nobody else may write to it or
to its directory, and header and checksum fit.  Everything else counts as absent, and the code is made again.
A directory that cannot be used costs the time of compiling and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"fsm_dyn object code 1\n"
ENVIRONMENT = "FSM_DYN_CACHE"
SUFFIX = ".kernel"
TEMPORARY = ".part"
LARGEST_SIZE = 256 * 2**20
ABANDONED_AFTER = 3600.0  # seconds; a temporary file this old was left by a process that died


def cache_directory() -> Path | None:
    """Return the directory for what this package keeps: ``$FSM_DYN_CACHE`` or the platform's place for caches.

    Returns
    -------
    Path or None
        None where neither the variable nor a home directory exists.  The directory need not exist.
    """
    own = os.environ.get(ENVIRONMENT)
    if own:
        return Path(own)
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "fsm_dyn"


def clear() -> int:
    """Remove all machine code kept on disk; return the number of files removed."""
    return ObjectCache.default().clear()


@dataclass(frozen=True)
class ObjectCache:
    """Object code by key in one directory.

    Parameters
    ----------
    directory : Path or None
        None means that nothing is kept.
    largest_size : int
        Bytes; beyond this the files longest not used are removed.
    """

    directory: Path | None
    largest_size: int = LARGEST_SIZE

    @classmethod
    def default(cls) -> ObjectCache:
        """Return the cache in :func:`cache_directory`."""
        directory = cache_directory()
        return cls(None if directory is None else directory / "kernels")

    def load(self, key: str) -> bytes | None:
        """Return the object code kept under `key` (hexadecimal), or None if there is none to be trusted."""
        if self.directory is None or not _is_ours(self.directory, directory=True):
            return None
        path = self.directory / (key + SUFFIX)
        try:
            with path.open("rb") as file:
                if not _may_be_trusted(os.fstat(file.fileno()), directory=False):
                    return None
                content = file.read()
            os.utime(path)  # last use, for the removal of the oldest
        except OSError:
            return None
        head = _header(key, content[_header_length(key) :])
        return content[len(head) :] if content.startswith(head) else None

    def store(self, key: str, payload: bytes) -> bool:
        """Keep object code under `key`; return whether that was possible."""
        if self.directory is None:
            return False
        temporary = None
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_ours(self.directory, directory=True):
                return False
            handle, temporary = tempfile.mkstemp(suffix=TEMPORARY, dir=self.directory)  # mode 0600
            with os.fdopen(handle, "wb") as file:
                file.write(_header(key, payload) + payload)
            os.replace(temporary, self.directory / (key + SUFFIX))
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return False
        self._bound()
        return True

    def clear(self) -> int:
        """Remove all files of this cache; return their number."""
        return sum(_remove(path) for _, _, path in self._files((SUFFIX, TEMPORARY)))

    def _bound(self) -> None:
        """Remove the files longest not used until the size is within bounds, and what dead processes left."""
        for changed, _, path in self._files((TEMPORARY,)):
            if changed < time.time() - ABANDONED_AFTER:
                _remove(path)
        files = sorted(self._files((SUFFIX,)))
        excess = sum(size for _, size, _ in files) - self.largest_size
        for _, size, path in files[:-1]:  # the newest stays, however large it is
            if excess <= 0:
                break
            excess -= size * _remove(path)

    def _files(self, suffixes: tuple[str, ...]) -> list[tuple[float, int, str]]:
        """Return time of last use, size and path of the files with one of `suffixes`."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.directory or "") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.name.endswith(suffixes) and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        found.append((status.st_mtime, status.st_size, entry.path))
        return found


def _header(key: str, payload: bytes) -> bytes:
    return MAGIC + f"{key}\n{hashlib.sha256(payload).hexdigest()}\n".encode()


def _header_length(key: str) -> int:
    return len(MAGIC) + len(key) + 66  # two line ends and the 64 digits of the checksum


def _is_ours(path: Path, *, directory: bool) -> bool:
    try:
        return _may_be_trusted(path.stat(), directory=directory)
    except OSError:
        return False


def _may_be_trusted(status: os.stat_result, *, directory: bool) -> bool:
    """Whether something is of the right type, belongs to this user and is written by nobody else."""
    if not (stat.S_ISDIR if directory else stat.S_ISREG)(status.st_mode):
        return False
    if sys.platform == "win32":  # profiles are private there, and modes say nothing
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _remove(path: str) -> int:
    """Remove a file; return 1 if it is gone by our hand."""
    try:
        os.unlink(path)
    except OSError:
        return 0
    return 1
