"""Disk cache of machine code, in a directory of the user.

A file is a header (magic, key, SHA-256 of the rest) and an object file.  It is written under another name and
moved into place, so that readers see all of it or nothing, even with concurrent writers.  Machine code is
run as it is found; therefore a file is used only if it belongs to this user, no other user may write to it or
to its directory, and header and checksum fit.  Everything else counts as absent, and the code is made again.
A directory that cannot be used costs the time of compiling and nothing else.

Keys contain a digest of the sources that made the content (:func:`sources_of`), so that another version of them, a
user's upgrade or a developer's change, never meets what an earlier one made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

MAGIC = b"fsm_dyn object code 1\n"
ENVIRONMENT = "FSM_DYN_CACHE"
SUFFIX = ".kernel"
TEMPORARY = ".part"
LARGEST_SIZE = 256 * 2**20
_PLACES = {  # of caches: the environment variable, and the folder in the home directory
    "win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches"),
}  # fmt: skip
ABANDONED_AFTER = 3600.0  # seconds; a temporary file this old was left by a process that died


def cache_directory() -> Path | None:
    """Return the directory for what this package keeps: ``$FSM_DYN_CACHE`` or the platform's place for caches.

    Returns
    -------
    Path or None
        None where neither the variable nor the platform's place nor a home directory is known.  The directory need not
        exist.
    """
    own = os.environ.get(ENVIRONMENT)
    if own:
        return Path(own)
    variable, within_home = _PLACES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    base = os.environ.get(variable, "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / within_home) / "fsm_dyn"
    except RuntimeError:  # no HOME, and nobody of this number in the list of users
        return None


def usable(directory: Path | None) -> bool:
    """Return whether a directory of the cache may be used, which is made if need be.

    It may if it is this user's, no link, and nobody else may write to it.  Of one that is there and may not be used, a
    warning tells, once.
    """
    if directory is None:
        return False
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        objection = _objection(directory.lstat(), directory=True)
    except OSError:
        return False
    if objection:
        _tell(directory, objection)
    return not objection


def content(path: Path) -> bytes | None:
    """Return what is in a file that is this user's and nobody else may write to; None where there is no such file."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            return None if _objection(os.fstat(file.fileno()), directory=False) else file.read()
    except OSError:
        return None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe has nobody at its other end


def write(path: Path, data: bytes) -> None:
    """Write a file that readers see all of or nothing; raises OSError."""
    handle, temporary = tempfile.mkstemp(suffix=TEMPORARY, dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def remove_abandoned(directory: Path) -> None:
    """Remove what processes that died left half written."""
    for changed, _, path in _files(directory, (TEMPORARY,)):
        if changed < time.time() - ABANDONED_AFTER:
            _remove(path)


@lru_cache(maxsize=16)
def _tell(directory: Path, objection: str) -> None:
    """Warn of a directory that may not be used, once."""
    warnings.warn(
        f"the cache is not used: '{directory}' {objection}, and code in it would be run; remove it, or name another "
        f"folder by {ENVIRONMENT}",
        stacklevel=2,
    )


def _objection(status: os.stat_result, *, directory: bool) -> str:
    """Return why something may not be trusted: its type, its owner, or who may write to it; empty where it may."""
    if not (stat.S_ISDIR if directory else stat.S_ISREG)(status.st_mode):
        return f"is no {'folder' if directory else 'file'} itself"
    if sys.platform == "win32":  # profiles are private there, and modes say nothing
        return ""
    if status.st_uid != os.getuid():
        return "belongs to another user"
    return "may be written by others" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


@lru_cache(maxsize=8)
def sources_of(*parts: str) -> str:
    """Return a digest of the Python sources of parts of this package, in hexadecimal digits; 4 ms for 1.5 MB.

    Parameters
    ----------
    *parts : str
        Names of packages or modules in ``fsm_dyn``.
    """
    package, found = Path(__file__).parents[1], hashlib.sha256()
    for part in parts:
        folder = package / part
        files = folder.rglob("*.py") if folder.is_dir() else (folder.with_suffix(".py"),)
        for path in sorted(files):
            content_ = path.read_bytes()
            found.update(f"{path.relative_to(package).as_posix()} {len(content_)}\n".encode() + content_)
    return found.hexdigest()


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
        if self.directory is None or not usable(self.directory):
            return None
        path = self.directory / (key + SUFFIX)
        found = content(path)
        if found is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # last use, for the removal of the oldest
        head = _header(key, found[_header_length(key) :])
        return found[len(head) :] if found.startswith(head) else None

    def store(self, key: str, payload: bytes) -> bool:
        """Keep object code under `key`; return whether that was possible."""
        if self.directory is None or not usable(self.directory):
            return False
        try:
            write(self.directory / (key + SUFFIX), _header(key, payload) + payload)
        except OSError:
            return False
        self._bound()
        return True

    def clear(self) -> int:
        """Remove all files of this cache; return their number."""
        return sum(_remove(path) for _, _, path in _files(self.directory, (SUFFIX, TEMPORARY)))

    def _bound(self) -> None:
        """Remove the files longest not used until the size is within bounds, and what dead processes left."""
        assert self.directory is not None
        remove_abandoned(self.directory)
        files = sorted(_files(self.directory, (SUFFIX,)))
        excess = sum(size for _, size, _ in files) - self.largest_size
        for _, size, path in files[:-1]:  # the newest stays, however large it is
            if excess <= 0:
                break
            excess -= size * _remove(path)


def _files(directory: Path | None, suffixes: tuple[str, ...]) -> list[tuple[float, int, str]]:
    """Return time of last use, size and path of the files of a directory with one of `suffixes`."""
    found = []
    with contextlib.suppress(OSError), os.scandir(directory or "") as entries:
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


def _remove(path: str) -> int:
    """Remove a file; return 1 if it is gone by our hand."""
    try:
        os.unlink(path)
    except OSError:
        return 0
    return 1
