"""The two decorators under which compiled functions stand.

numba's own disk cache looks only at the file a function is written in, so a change in a file it calls would go
unnoticed.  The cache used here is stamped with a digest of every source file of this package and kept in the
user's cache directory, which also serves installations that may not be written to.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


@lru_cache(maxsize=1)
def sources_digest() -> str:
    """Return a digest of the sources of this package and of the version of numba."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def cache_directory() -> Path:
    """Return the directory of compiled code: ``$FSM_DYN_CACHE`` or the platform's user cache directory."""
    given = os.environ.get("FSM_DYN_CACHE")
    if given:
        return Path(given) / "stepper"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "fsm_dyn" / "stepper"


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Says where compiled code lies and by what it is stamped."""

    def __init__(self, name: str) -> None:
        self._name = name

    def ensure_cache_path(self) -> None:
        cache_directory().mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return sources_digest()

    def get_disambiguator(self) -> str:
        return sources_digest()[:12]

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func.__name__)


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation


def inner(function: F) -> F:
    """Compile a function that only other compiled functions call; it has no entry from Python."""
    return numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)  # type: ignore[no-any-return]


def entry(function: F) -> F:
    """Compile a function that Python calls, and keep the result on disk."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    dispatcher._cache = _Cache(function)
    return dispatcher  # type: ignore[no-any-return]
