"""Files of results, written whole: on a full disk, or after Ctrl-C, what was there before is there as it was."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

_LONGEST_STEM = 100  # characters


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a new file in the same folder and with the same suffix, which replaces ``path`` in the end.

    If the block is left by an exception, the new file is removed and ``path`` stays as it was.  A device or pipe, and
    a file in a folder in which none can be made, is written directly.

    Raises
    ------
    OSError
        The file cannot be written; ``filename`` is ``path``.
    """
    target = temporary = Path(os.path.realpath(path))
    try:
        temporary = _temporary(target)
        try:
            yield temporary
            if temporary != target:
                os.replace(temporary, target)
        except BaseException:
            if temporary != target:
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.errno is None:  # of a library that has a file format
            raise OSError(f"'{os.fspath(path)}' cannot be written: {error}") from error
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file whole, text as UTF-8 with the line ends that it has; see :func:`whole_file`."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def _temporary(target: Path) -> Path:
    """Make an empty file in the folder of the target, with its mode; return the target where that is impossible."""
    there = target.exists()
    if there and not (target.is_file() and os.access(target, os.W_OK)):
        return target
    path = target.with_name(f".{target.stem[:_LONGEST_STEM]}-{secrets.token_hex(4)}{target.suffix}")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except PermissionError:
        return target
    if there:
        with contextlib.suppress(OSError):
            path.chmod(target.stat().st_mode & 0o777)
    return path
