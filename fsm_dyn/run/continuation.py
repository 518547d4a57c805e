"""Data to continue a run: settings, saved state, modes by which its rows are numbered."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import numpy as np

from fsm_dyn.core.arrays import FloatArray, IntArray
from fsm_dyn.core.errors import InputError
from fsm_dyn.run.executable import KnownCharts, SavedState
from fsm_dyn.run.run_options import stored_type

if TYPE_CHECKING:
    StoredOptions: TypeAlias = Any
else:
    StoredOptions = stored_type()


class _StoredPlace(msgspec.Struct):
    states: tuple[int, ...]
    t: float
    x: list[float]
    c: list[float]


_Count = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class StoredContinuation(msgspec.Struct):
    """A :class:`Continuation` in a saved run."""

    settings: StoredOptions
    compiler: str
    state: bytes
    digest: str
    rows: _Count
    transitions: _Count
    change_points: _Count
    modes: list[tuple[tuple[int, ...], _Count]]
    changes: list[tuple[_Count, _Count]]
    charts: list[_StoredPlace]
    in_vain: list[tuple[tuple[int, ...], float]]
    charted: _Count
    solver: dict[str, Any] | None = None


@dataclass(frozen=True)
class Continuation:
    """State and options of a continued run.

    Attributes
    ----------
    settings : msgspec.Struct
    compiler : str
        Version of the deriving program.
    digest : str
        Of the model, the parameters and the settings (:func:`run_digest`).
    state : SavedState
        ``rows`` and ``transitions`` of the run's record were there when it was saved.
    modes : tuple of (states, int)
        By mode index of the record: contact states, and which of the charts with these.
    changes : ndarray of int, shape (n, 2)
        Mode indices before and after each of these transitions.
    """

    settings: StoredOptions
    compiler: str
    digest: str
    state: SavedState
    modes: tuple[tuple[tuple[int, ...], int], ...]
    changes: IntArray

    def stored(self) -> StoredContinuation:
        """Return it as it stands in a file."""
        state = self.state
        return StoredContinuation(
            settings=self.settings,
            compiler=self.compiler,
            state=state.words.astype("<u8").tobytes(),
            digest=self.digest,
            rows=state.rows,
            transitions=state.transitions,
            change_points=state.passages,
            modes=list(self.modes),
            changes=[(int(a), int(b)) for a, b in self.changes],
            charts=[_StoredPlace(states, t, x.tolist(), c.tolist()) for states, t, x, c in state.charts.places],
            in_vain=list(state.charts.in_vain),
            charted=state.charted,
            solver=None if state.solver is None else dict(state.solver),
        )


def continuation_of(
    data: StoredContinuation,
    codes: Sequence[Sequence[int]],
    modes: Sequence[tuple[int, ...]],
    lengths: tuple[int, int],
    rows: int,
    transitions: int,
) -> Continuation:
    """Return the content of a file.

    Parameters
    ----------
    codes : sequence
        Possible states per contact.
    modes : sequence
        Contact states of the run by mode index.
    lengths : (int, int)
        Of state and context.
    rows, transitions : int
        How many the saved run has.

    Raises
    ------
    InputError
        It is inconsistent or corrupt.
    """
    places = tuple((place.states, place.t, np.array(place.x), np.array(place.c)) for place in data.charts)
    changes = np.array(data.changes, np.int64).reshape(-1, 2)
    good = len(data.state) % 8 == 0 and 0 < data.rows <= rows and 0 <= data.transitions <= transitions
    good &= len(changes) == data.transitions and bool(((changes >= 0) & (changes < len(data.modes))).all())
    named = [states for states, _ in (*data.modes, *data.in_vain)] + [place.states for place in data.charts]
    good &= all(len(states) == len(codes) for states in named)
    good &= all(code in known for states in named for code, known in zip(states, codes, strict=False))
    good &= all(chart >= 0 for _, chart in data.modes) and [states for states, _ in data.modes] == list(modes)
    good &= all((len(x), len(c)) == lengths for _, _, x, c in places) and data.change_points >= 0
    if not good:
        raise InputError("what the run is continued from is damaged", remedy="run it again")
    words = np.frombuffer(data.state, "<u8").astype(np.uint64)
    charts = KnownCharts(places, tuple(data.in_vain))
    state = SavedState(
        words, data.rows, data.transitions, data.change_points, charts, data.charted, data.solver,
    )  # fmt: skip
    return Continuation(data.settings, data.compiler, data.digest, state, tuple(data.modes), changes)


def check_continuation(continuation: Continuation, digest: str, compiler: str) -> None:
    """Check the options of a continued run against its own.

    Raises
    ------
    InputError
        It was run by another version, or its model, parameters or settings have been changed since.
    """
    if continuation.compiler != compiler:
        raise InputError(
            "the run cannot be continued: it was run by another version of fsm_dyn, whose equations may differ",
            found=f"version {continuation.compiler}",
            allowed=f"version {compiler}",
            remedy="run it again",
        )
    if continuation.digest != digest:
        raise InputError(
            "the run cannot be continued: its model, parameters or settings are not those with which it was run",
            remedy="run it again",
        )


def run_digest(model: str, parameters: FloatArray, settings: StoredOptions, compiler: str) -> str:
    """Return a digest of all dependencies of the steps of a run, in hexadecimal digits.

    Parameters
    ----------
    model : str
        Digest of the model.
    parameters : ndarray, shape (n_p,)
    """
    hashed = hashlib.sha256(f"fsm_dyn run|{compiler}|{model}|".encode())
    hashed.update(np.ascontiguousarray(parameters, "<f8").tobytes())
    hashed.update(msgspec.json.encode(settings, order="deterministic"))
    return hashed.hexdigest()
