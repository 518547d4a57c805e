"""Files: results written whole, changes of files under edit, untrusted files validated against a type."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import secrets
import stat
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from fsm_dyn.core.errors import NOWHERE, InputError, Location

# -- Files of results ----------------------------------------------------------------------------------------
#
# Files of results, written whole: a full disk or Ctrl-C leaves the previous file unchanged.

_LONGEST_STEM = 100  # characters


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a new file in the same folder and with the same suffix, which replaces ``path`` in the end.

    If the block is left by an exception, the new file is removed and ``path`` stays as it was.  A device or pipe, and a
    file in a folder in which none can be made, is written directly. Raises OSError: the file cannot be written;
    ``filename`` is ``path``.
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
        if error.errno is None:  # raised by a library for file formats
            raise OSError(f"'{os.fspath(path)}' cannot be written: {error}") from error
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file whole, text as UTF-8 with its own line ends; see :func:`whole_file`."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def _temporary(target: Path) -> Path:
    """Make an empty file in the folder of the target, with its mode; return the target itself if this fails."""
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


# -- Changes of a file under edit ----------------------------------------------------------------------------
#
# Changes are detected by modification time and size: this needs no package, works on every file system, and takes the
# the two steps of an editor replacing a file as one change.

INTERVAL: Final = 0.15  # s between two looks


class FileChanges:
    """The changes of a file, polled every ``INTERVAL``; a change counts when the file is stable.

    ``path``: the file; it may be missing for a while.
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


# -- Reading of untrusted files and JSON, validated against a type -------------------------------------------
#
# A type describes the content: a ``msgspec.Struct``, a dataclass, a named tuple, or containers of them. Decoding
# checks every value and makes the objects in one pass; the caller checks that values agree with each other.

T = TypeVar("T")


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading; pipes and folders are refused, so the call never waits for a writer.

    Raises InputError: the file is missing or unreadable, at once or while it is open.
    """
    where = Location(os.fspath(path))
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError("the file cannot be read", where, found="a folder, pipe or device", allowed="a file")
            yield file
    except FileNotFoundError:
        raise InputError("no such file", where, remedy="check the path") from None
    except (OSError, ValueError) as error:  # a path must not contain a null character
        raise InputError("the file cannot be read", where, found=getattr(error, "strerror", "") or str(error)) from None


def read_file(path: str | os.PathLike[str], largest: int, what: str) -> bytes:
    """Return the content of a file of at most ``largest`` bytes; ``what`` names the kind of content expected.

    Raises InputError: the file is unreadable or larger.
    """
    with opened(path) as file:
        data = file.read(largest + 1)
        size = max(len(data), os.fstat(file.fileno()).st_size)
    if size > largest:
        raise too_large(what, os.fspath(path), data, size, largest)
    return data


def too_large(what: str, file: str, data: bytes, size: int, largest: int) -> InputError:
    """Return the error for a file larger than its kind (``what``) allows, located at the first byte beyond."""
    column = largest - data.rfind(b"\n", 0, largest)
    return InputError(
        f"the file is too large for {what}",
        Location(file, data.count(b"\n", 0, largest) + 1, column),
        found=f"{size:,} bytes",
        allowed=f"{largest:,} bytes",
        remedy="is this the right file?",
    )


@functools.lru_cache(maxsize=16)
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


def decode(data: bytes | str, kind: type[T], what: str, *, where: Location = NOWHERE, remedy: str = "") -> T:
    """Return JSON as a value of a type.

    Raises InputError: it is not JSON, or does not fit the type; the message has the position.
    """
    with _refused(what, where, remedy):
        value: T = _decoder(cast("Hashable", kind)).decode(data)
    return value


def convert(data: object, kind: type[T], what: str) -> T:
    """Return plain data (mappings, lists, texts, numbers) as a value of a type.

    Raises InputError: it does not fit the type; the message says at which place.
    """
    with _refused(what, NOWHERE, ""):
        return msgspec.convert(data, kind)


def stored_type(
    kind: type[Any], forms: Mapping[Any, Any], without: Sequence[str] = (), *, strict: bool = True, **further: Any
) -> Any:
    """Return the structure of a dataclass in a file: its fields, all required, then further ones by name and type.

    ``forms``: types in a file for others, also within containers; ``without``: fields missing in a file; ``strict``:
    whether other fields are refused.
    """
    types = get_type_hints(kind)
    own = [(item.name, _form(types[item.name], forms)) for item in fields(kind) if item.name not in without]
    return msgspec.defstruct(kind.__name__, [*own, *further.items()], frozen=True, forbid_unknown_fields=strict)


def _form(hint: Any, forms: Mapping[Any, Any]) -> Any:
    """Return a type with its parts replaced by their forms in a file."""
    parts = get_args(hint)
    if hint in forms or not parts or get_origin(hint) is Literal:
        return forms.get(hint, hint)
    replaced = [_form(part, forms) for part in parts]
    if get_origin(hint) is UnionType:
        return functools.reduce(operator.or_, replaced)
    return get_origin(hint)[tuple(replaced)]


@contextmanager
def _refused(what: str, where: Location, remedy: str) -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"this is not {what}", where, found=str(error)[:200], remedy=remedy) from None


def encode(value: object) -> bytes:
    """Return a value of such a type, or plain data and arrays, as JSON; numbers that are not finite become null."""
    return msgspec.json.encode(value, enc_hook=_listed)


def _listed(array: Any) -> Any:
    return array.tolist()
