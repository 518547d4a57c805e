"""Loading of a library that comes with a device: it is its maker's, never shipped, and found on this computer."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from ctypes.util import find_library
from glob import glob
from typing import Any, Final, Literal, NamedTuple

from fsm_dyn.errors import InputError
from fsm_dyn.schemata import opened


class Signature(NamedTuple):
    """Result and arguments of a function of C, as types of ctypes."""

    result: Any
    arguments: tuple[Any, ...]


class MakerLibrary(NamedTuple):
    """What a driver needs of a library.

    Attributes
    ----------
    product : str
        For messages.
    names : tuple of str
        By which the system's loader may find it.
    patterns : tuple of str
        Of paths, tried first; ``$NAME`` is a variable of the environment.
    functions : mapping
        Signature of each function.
    """

    product: str
    names: tuple[str, ...]
    patterns: tuple[str, ...]
    functions: Mapping[str, Signature]


_MACHINES: Final = {0x03: "x86", 0x28: "arm", 0x3E: "x86_64", 0xB7: "aarch64", 0xF3: "riscv"}
_HEADER: Final = 20  # bytes of an ELF header up to its machine


def candidates(wanted: MakerLibrary, path: str) -> list[str]:
    """Return the files or names to be loaded, in order; a path that is given is the only one."""
    if path:
        return [path]
    files = [found for pattern in wanted.patterns for found in sorted(glob(os.path.expandvars(pattern)), reverse=True)]
    return [*files, *(found for name in wanted.names if (found := find_library(name)))]


def load_library(wanted: MakerLibrary, path: str = "") -> tuple[ctypes.CDLL, str]:
    """Return the library with the signatures of its functions, and where it was found.

    Raises
    ------
    InputError
        It is missing, cannot be loaded here, or lacks a function.
    """
    found = candidates(wanted, path)
    if not found:
        raise InputError(
            f"the library of {wanted.product} is not installed",
            allowed=f"{', '.join(wanted.names)}, or a file that the option 'library' names",
            remedy="install the maker's software; it may not ship with this package",
        )
    try:
        library = ctypes.CDLL(found[0])
    except OSError as error:
        raise InputError(
            f"the library of {wanted.product} cannot be loaded",
            found=f"{found[0]}: {machine_of(found[0])}{error}",
            remedy="install the one for this processor, with the libraries that it needs itself",
        ) from error
    declare(library, wanted, found[0])
    return library, found[0]


def declare(library: Any, wanted: MakerLibrary, path: str) -> None:
    """Set the signatures of the functions; raise InputError where one is missing."""
    for name, signature in wanted.functions.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise InputError(
                f"the library of {wanted.product} is too old, or another one",
                found=f"{path} has no function {name}",
                remedy="install a newer version of the maker's software",
            ) from None
        function.restype, function.argtypes = signature.result, list(signature.arguments)


def machine_of(path: str) -> str:
    """Return, for a message, which processor an ELF file is made for; empty if that is no file of this kind."""
    try:
        with opened(path) as file:
            header = file.read(_HEADER)
    except InputError:
        return ""
    if len(header) < _HEADER or header[:4] != b"\x7fELF":
        return ""
    order: Literal["little", "big"] = "little" if header[5] == 1 else "big"
    number = int.from_bytes(header[18:20], order)
    return f"made for {_MACHINES.get(number, f'machine {number}')}; "
