"""Reading of untrusted files and JSON, validated against a type.

What is read is described by a type: a ``msgspec.Struct``, a dataclass, a named tuple, or containers of them.  Decoding
checks every value and makes the objects in one pass; what has to agree with each other is checked by who knows it.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from fsm_dyn.errors import NOWHERE, InputError, Location

T = TypeVar("T")


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading; a pipe or folder of that name is refused, and nothing waits for a writer.

    Raises
    ------
    InputError
        There is no such file, or it cannot be read, then or while it is open.
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
    except (OSError, ValueError) as error:  # a path with a null character is no path
        raise InputError("the file cannot be read", where, found=getattr(error, "strerror", "") or str(error)) from None


def read_file(path: str | os.PathLike[str], largest: int, what: str) -> bytes:
    """Return the content of a file of at most ``largest`` bytes, that is to be ``what``.

    Raises
    ------
    InputError
        It cannot be read, or is larger.
    """
    with opened(path) as file:
        data = file.read(largest + 1)
        size = max(len(data), os.fstat(file.fileno()).st_size)
    if size > largest:
        raise too_large(what, os.fspath(path), data, size, largest)
    return data


def too_large(what: str, file: str, data: bytes, size: int, largest: int) -> InputError:
    """Return the error for a file of more bytes than ``what`` may have; it is at the first byte too many."""
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

    Raises
    ------
    InputError
        It is no JSON, or does not fit the type; the message says at which place.
    """
    with _refused(what, where, remedy):
        value: T = _decoder(cast("Hashable", kind)).decode(data)
    return value


def convert(data: object, kind: type[T], what: str) -> T:
    """Return plain data (mappings, lists, texts, numbers) as a value of a type.

    Raises
    ------
    InputError
        It does not fit the type; the message says at which place.
    """
    with _refused(what, NOWHERE, ""):
        return msgspec.convert(data, kind)


@contextmanager
def _refused(what: str, where: Location, remedy: str) -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"this is not {what}", where, found=str(error)[:200], remedy=remedy) from None


def encode(value: object) -> bytes:
    """Return a value of such a type, or plain data and arrays, as JSON; what is not finite becomes null."""
    return msgspec.json.encode(value, enc_hook=_listed)


def _listed(array: Any) -> Any:
    return array.tolist()
