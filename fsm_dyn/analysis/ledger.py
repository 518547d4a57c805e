"""Ledger of a study: results written as they come, so that a study that was ended continues where it was."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np

from fsm_dyn.automaton.storage import equations_version
from fsm_dyn.errors import InputError, RunError
from fsm_dyn.runtime.library import SOURCES

FORMAT: Final = 2  # of the file
_SETTINGS: Final = {"equations": "sources of the equations", "runtime": "sources of the runtime"}
_TABLES: Final = """
CREATE TABLE study (digest TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE runs (number INTEGER PRIMARY KEY, result BLOB NOT NULL);
"""

Result = TypeVar("Result")


def study_settings(model: str, points: Iterable[Mapping[str, Any]], options: Mapping[str, Any]) -> str:
    """Return all that the results of a study depend on, the sources of the runtime included, as text.

    Parameters
    ----------
    model : str
        Digest of the model, or of its variants.
    points : iterable of mapping
        What is varied in each of the runs, in order.
    options : mapping

    Raises
    ------
    InputError
        An option or what is varied is a Python function, which has no digest.
    """
    digest = hashlib.sha256()
    for point in points:
        digest.update(json.dumps(sorted(point.items()), default=_stored).encode())
    everything = {
        "format": FORMAT, "equations": equations_version(), "runtime": SOURCES, "model": model,
        "points": digest.hexdigest(),
        "options": {name: value for name, value in options.items() if value is not None},
    }  # fmt: skip
    return json.dumps(everything, sort_keys=True, default=_stored)


def _stored(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    raise InputError("a study with a ledger takes options that can be stored", found=repr(value)[:60])


def _differing(stored: str, settings: str) -> str:
    """Return in what two studies differ, as far as it can be read."""
    try:
        before, now = json.loads(stored), json.loads(settings)
        names = [_SETTINGS.get(name, name) for name in now if before.get(name) != now[name]]
    except (ValueError, TypeError, AttributeError):
        return ""
    return f"other {', '.join(names)}" if names else ""


class Ledger(Generic[Result]):
    """Results of a study in an SQLite file, in the order of its runs.

    Each call of :meth:`add` is one transaction: after a crash the file contains the whole of it or nothing.

    Parameters
    ----------
    path : Path
        The file; made if there is none.
    settings : str
        As :func:`study_settings` gives them.
    encode, decode : callable
        A result as bytes, and back without loss; ``decode`` raises ``ValueError`` for bytes that are no result of
        this study.

    Raises
    ------
    InputError
        The file is that of another study, or no ledger.
    RunError
        It cannot be written.
    """

    def __init__(
        self, path: Path, settings: str, encode: Callable[[Result], bytes], decode: Callable[[bytes], Result]
    ) -> None:
        self.path, self._encode, self._decode = path, encode, decode
        digest = hashlib.sha256(settings.encode()).hexdigest()
        with self._reported():
            self._file = sqlite3.connect(path, isolation_level=None)
            self._file.execute("PRAGMA synchronous = FULL")
            if not self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._file.executescript(f"BEGIN EXCLUSIVE; {_TABLES}")
                self._file.execute("INSERT INTO study VALUES (?, ?)", (digest, settings))
                self._file.execute("COMMIT")
            try:
                found = self._file.execute("SELECT digest, settings FROM study").fetchall()
                self.count = int(self._file.execute("SELECT count(*) FROM runs").fetchone()[0])
            except sqlite3.OperationalError as error:
                self.close()
                raise InputError(f"'{path}' is no ledger of a study", found=str(error)) from None
        if [row[0] for row in found] != [digest]:
            self.close()
            raise InputError(
                f"'{path}' is the ledger of another study",
                found=_differing(found[0][1] if found else "", settings),
                remedy="another file, or the same model, parameters, sample, options and version as before",
            )

    def results(self) -> Iterator[Result]:
        """Yield the results stored when the ledger was opened.

        Raises
        ------
        InputError
            A result is missing or damaged.
        """
        with self._reported():
            query = "SELECT number, result FROM runs ORDER BY number LIMIT ?"
            for k, (number, data) in enumerate(self._file.execute(query, (self.count,))):
                try:
                    if number != k or not isinstance(data, bytes):
                        raise ValueError(number)
                    result = self._decode(data)
                except (ValueError, RecursionError):
                    raise self.damaged(f"the result of run {k}") from None
                yield result

    def damaged(self, found: str) -> InputError:
        """Return the error for a ledger with this fault."""
        return InputError(f"the ledger '{self.path}' is damaged", found=found, remedy="use another file")

    def add(self, first: int, results: Sequence[Result]) -> None:
        """Store the results of runs from number ``first`` on."""
        rows = [(first + i, self._encode(result)) for i, result in enumerate(results)]
        with self._reported():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                self._file.executemany("INSERT INTO runs VALUES (?, ?)", rows)
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise RunError(f"another process writes to the ledger '{self.path}'") from None
        except sqlite3.Error as error:
            raise RunError(
                f"the ledger '{self.path}' cannot be used: {error}"
                "\n  remedy: make room, or choose another file; what was stored stays, and the same command continues"
            ) from None
