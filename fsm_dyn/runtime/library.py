"""The functions of the shared library, with the types of their arguments; its elementary functions."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from ctypes import POINTER, Structure, c_bool, c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.core.arrays import Codes, Floats, Integers
from fsm_dyn.core.errors import FsmDynError

# -- The functions of the shared library, with the types of their arguments ----------------------------------
#
# The library is found like a Python module, so an installation from a wheel, an editable one and a checkout with a
# library next to its sources all work. Calls release the interpreter's lock.

_MODULE: Final = "fsm_dyn.runtime._fsm_runtime"


class VectorStructure(Structure):
    """A contiguous array of one dimension, by address and length."""

    _fields_ = [("at", c_void_p), ("n", c_int64)]


class Matrix(Structure):
    """A contiguous array of two dimensions, by address and lengths."""

    _fields_ = [("at", c_void_p), ("n", c_int64), ("m", c_int64)]


class TimeStepping(Structure):
    """``struct fsm_time_stepping``: the arrays of a run by time stepping, with the last row written."""

    _fields_ = [
        ("times", VectorStructure), ("x", Matrix), ("c", Matrix), ("codes", Matrix), ("free_speeds", Matrix),
        ("middle", Matrix), ("impulses", Matrix), ("energies", Matrix), ("free_side", VectorStructure),
        ("report", c_void_p), ("segment", c_int64), ("row", c_int64),
    ]  # fmt: skip


def vector(array: NDArray[Any]) -> VectorStructure:
    """Return the view of an array of shape (n,); raise TypeError if it is not contiguous."""
    _check(array, 1)
    return VectorStructure(array.ctypes.data, len(array))


def matrix(array: NDArray[Any]) -> Matrix:
    """Return the view of an array of shape (n, m); raise TypeError if it is not contiguous."""
    _check(array, 2)
    return Matrix(array.ctypes.data, *array.shape)


def _check(array: NDArray[Any], dimensions: int) -> None:
    if array.ndim != dimensions or not array.flags.c_contiguous or array.dtype not in _ENTRIES:
        raise TypeError(f"a contiguous array of {dimensions} dimensions is wanted, not {array.dtype} {array.shape}")


_ENTRIES: Final = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.int8))


class RunStructure(Structure):
    """The addresses of all data of a run (``struct fsm_run``): packed once, and again after memory has moved."""

    _fields_ = [(name, c_void_p) for name in ("tables", "inputs", "method", "options", "state", "work", "buffers")]


class RunBatch(Structure):
    """``struct fsm_run_batch``: runs one after the other, with the starts of all and the ends of those made."""

    _fields_ = [
        ("run", POINTER(RunStructure)), ("state", VectorStructure), ("state_at_start", VectorStructure),
        ("work", VectorStructure), ("work_at_start", VectorStructure), ("x", Matrix), ("c", Matrix),
        ("modes", VectorStructure), ("ends", Matrix), ("next", c_int64), ("under_way", c_int64), ("rows", c_int64),
        ("transitions", c_int64), ("passages", c_int64),
    ]  # fmt: skip


class Recorded(Structure):
    """``struct fsm_recorded``: the rows of runs."""

    _fields_ = [
        ("t", c_void_p), ("x", c_void_p), ("x_dot", c_void_p), ("x_mid", c_void_p), ("stride", c_int64),
        ("n_q", c_int64), ("n", c_int64),
    ]  # fmt: skip


#: Result and arguments of every function, as ``fsm_dyn/runtime/*.h`` declares them.
FUNCTIONS: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "fsm_status_text": (c_char_p, (c_int64,)),
    "fsm_status_sentence": (c_char_p, (c_int64,)),
    "fsm_status_remedy": (c_char_p, (c_int64,)),
    "fsm_advance": (c_int, (POINTER(RunStructure),)),
    "fsm_advance_batch": (c_int, (POINTER(RunBatch), c_int64)),
    "fsm_implicit_step": (c_int, (POINTER(RunStructure), c_int64, c_double, c_double)),
    "fsm_moreau_jean_steps": (c_int64, 4 * (c_void_p,)),
    "fsm_moreau_jean_may_start": (c_bool, (c_void_p, c_void_p, c_double, *5 * (VectorStructure,))),
    "fsm_arena_sizes": (c_int64, (c_void_p, c_int64, POINTER(c_int64))),
    "fsm_end_is_near": (c_bool, (POINTER(RunStructure),)),
    "fsm_judge_rows": (None, (POINTER(Recorded), c_void_p, c_int64, c_bool, c_void_p)),
    "fsm_next_jump": (c_double, (POINTER(RunStructure),)),
    "fsm_save": (
        c_int64,
        (POINTER(RunStructure), VectorStructure, VectorStructure, c_uint64, c_void_p, c_int64),
    ),
    "fsm_restore": (c_int, (POINTER(RunStructure), VectorStructure, c_uint64, c_void_p, c_int64)),
    "fsm_save_steps": (c_int64, (c_void_p, POINTER(TimeStepping), c_int64, c_uint64, c_void_p, c_int64)),
    "fsm_restore_steps": (
        c_int,
        (c_void_p, POINTER(TimeStepping), POINTER(c_int64), c_int64, c_uint64, c_void_p, c_int64),
    ),
    "fsm_restored_sentence": (c_char_p, (c_int64,)),
    "fsm_online_evaluate": (c_int64, (c_void_p, c_int64, c_double, *3 * (c_void_p,))),
    "fsm_move": (c_int, (c_void_p, c_bool)),
    "fsm_live_tick": (c_int, (c_void_p, *6 * (c_int64,))),
    "fsm_release_device": (None, (c_void_p, c_int64)),
    "fsm_finish_tick": (c_int, (c_void_p, c_bool)),
}
#: Functions of systems that can sleep until a deadline: Linux only.
PACED: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "fsm_run_ticks": (c_int, (c_void_p, c_void_p)),
    "fsm_end_tick": (None, (c_void_p,)),
    "fsm_beat_on": (None, (c_void_p, c_void_p, c_int64)),
    "fsm_udp_read": (c_int64, (c_void_p, c_void_p)),
    "fsm_udp_write": (c_int64, (c_void_p, c_void_p)),
    "fsm_hand_read": (c_int64, (c_void_p, c_void_p)),
    "fsm_hand_write": (c_int64, (c_void_p, c_void_p)),
}


def _load() -> ctypes.CDLL:
    spec = importlib.util.find_spec(_MODULE)
    if spec is None or spec.origin is None:
        raise FsmDynError(
            "the runtime library of fsm_dyn is missing: it is compiled when the package is installed"
            "\n  remedy: install the package with a C compiler: pip install --editable ."
        )
    library = ctypes.CDLL(spec.origin)
    built = ""  # unknown for a library compiled by hand
    if hasattr(library, "fsm_sources"):
        library.fsm_sources.restype = ctypes.c_char_p
        built = library.fsm_sources().decode()
    if built not in ("", SOURCES) or any(not hasattr(library, name) for name in FUNCTIONS):
        raise FsmDynError(
            f"the runtime library was built of other sources than those here: {spec.origin}"
            "\n  remedy: install the package again: pip install --editable ., or make"
        )
    return library


def _sources() -> str:
    """Return the digest of the sources next to this file, as ``CMakeLists.txt`` works it out."""
    folder = Path(__file__).parent
    names = sorted(path.name for path in folder.iterdir() if path.suffix in (".c", ".h"))
    digests = "".join(f"{name} {hashlib.sha256((folder / name).read_bytes()).hexdigest()}\n" for name in names)
    return hashlib.sha256(digests.encode()).hexdigest()


SOURCES: Final = _sources()  # of the runtime in C, as a digest
_library: Final = _load()


def has_pacing() -> bool:
    """Whether the library can sleep until a deadline."""
    return hasattr(_library, "fsm_run_ticks")


def function(name: str) -> Any:
    """Return a function of the library; raise AttributeError if this system has none of this name."""
    found = getattr(_library, name)
    found.restype, found.argtypes = {**FUNCTIONS, **PACED}[name]
    return found


def address(name: str) -> int:
    """Return the address of a function."""
    return int(ctypes.cast(getattr(_library, name), c_void_p).value or 0)


advance = function("fsm_advance")
advance_batch = function("fsm_advance_batch")
implicit_step = function("fsm_implicit_step")
end_is_near = function("fsm_end_is_near")
next_jump = function("fsm_next_jump")
move = function("fsm_move")
live_tick = function("fsm_live_tick")
release_device = function("fsm_release_device")
finish_tick = function("fsm_finish_tick")

_arena_sizes = function("fsm_arena_sizes")
_judge_rows = function("fsm_judge_rows")
_save = function("fsm_save")
_restore = function("fsm_restore")
_save_steps = function("fsm_save_steps")
_restore_steps = function("fsm_restore_steps")
_restored_sentence = function("fsm_restored_sentence")
_moreau_jean_steps = function("fsm_moreau_jean_steps")
_moreau_jean_may_start = function("fsm_moreau_jean_may_start")


def arena_sizes(sizes: Integers, contacts: int) -> tuple[int, int]:
    """Return the sufficient numbers of floats and integers of an arena for ``contacts`` meeting contacts."""
    integers = c_int64()
    floats = _arena_sizes(sizes.ctypes.data, contacts, integers)
    return int(floats), integers.value


def judge_rows(t: Floats, states: tuple[Floats, ...], begin: Integers, n_q: int, fixed: bool) -> Codes:
    """Return a ``RowsVerdict`` for each run, (runs,): whether its states follow from its rates.

    ``t``, float64 array, shape (n,): times of the rows of all runs, s; ``states``, tuple of float64 array, shape (n,
    n_q + n_u): states, rates, and states in the middle of the step before a row; ``begin``, int64 array, shape (runs +
    1,): first row of each run, and the number of rows; ``n_q``: number of coordinates; ``fixed``: whether nothing
    controlled the error of the steps.
    """
    found = np.empty(len(begin) - 1, np.int8)
    x, x_dot, x_mid = states
    if not (x.strides == x_dot.strides == x_mid.strides and x.strides[1] == _WORD):
        x, x_dot, x_mid = map(np.ascontiguousarray, states)
    rows = Recorded(
        t.ctypes.data, x.ctypes.data, x_dot.ctypes.data, x_mid.ctypes.data, x.strides[0] // _WORD, n_q, x.shape[1]
    )
    _judge_rows(rows, begin.ctypes.data, len(found), fixed, found.ctypes.data)
    return found


_WORD: Final = 8  # bytes
_NO_MODES: Final = VectorStructure(None, 0)


def restored_sentence(result: int) -> str:
    """Return the result of restoring a state, as text."""
    text: bytes = _restored_sentence(result)
    return text.decode()


def save(run: RunStructure, online: Integers, digest: int) -> NDArray[np.uint64]:
    """Return the whole state of a run, as words; see ``runtime/saved_state.h``."""
    order = np.empty_like(online)
    modes, scratch = (vector(array) if len(online) else _NO_MODES for array in (online, order))
    return _saved(lambda words, length: int(_save(run, modes, scratch, digest, words, length)))


def restore(run: RunStructure, online: Integers, digest: int, words: NDArray[np.uint64]) -> int:
    """Give a run the state of :func:`save`; return a ``Restored``."""
    return int(_restore(run, vector(online), digest, words.ctypes.data, len(words)))


def save_steps(tables: int, run: TimeStepping, step: int, digest: int) -> NDArray[np.uint64]:
    """Return the whole state of a run by time stepping after step ``step``, as words."""
    return _saved(lambda words, length: int(_save_steps(tables, run, step, digest, words, length)))


def restore_steps(
    tables: int, run: TimeStepping, segments: int, digest: int, words: NDArray[np.uint64]
) -> tuple[int, int]:
    """Give a run by time stepping the state of :func:`save_steps`; return a ``Restored``, and the step."""
    step = c_int64()
    result = _restore_steps(tables, run, step, segments, digest, words.ctypes.data, len(words))
    return int(result), step.value


_USUAL_WORDS: Final = 768  # more than most states need
_Room: Final = c_uint64 * _USUAL_WORDS  # passed by its address; looking that of a NumPy array up takes a microsecond


def _saved(save_into: Callable[[Any, int], int]) -> NDArray[np.uint64]:
    room: Any = _Room()
    count = save_into(room, _USUAL_WORDS)
    if count <= _USUAL_WORDS:
        return np.frombuffer(room, np.uint64, count).copy()
    words = np.empty(count, np.uint64)
    save_into(words.ctypes.data, count)
    return words


def time_stepping(segment: int, report: Floats, **arrays: NDArray[Any]) -> TimeStepping:
    """Return a run by time stepping; ``arrays``: by their names in ``runtime/time_stepping.h``."""
    views = {name: vector(array) if array.ndim == 1 else matrix(array) for name, array in arrays.items()}
    return TimeStepping(report=vector(report).at, segment=segment, **views)


def moreau_jean_steps(
    tables: int, inputs: int, work: int, segment: int, report: Floats, **arrays: NDArray[Any]
) -> tuple[int, int, int]:
    """Step through all times; return status, last row written, its segment; ``arrays`` as of :func:`time_stepping`."""
    run = time_stepping(segment, report, **arrays)
    status = _moreau_jean_steps(tables, inputs, work, ctypes.addressof(run))
    return int(status), run.row, run.segment


def moreau_jean_may_start(tables: int, work: int, t: float, x: Floats, c: Floats, *codes: Codes) -> bool:
    """Whether no open contact is deeper than its tolerance at the start of a run; see ``moreau_jean.c``."""
    return bool(_moreau_jean_may_start(tables, work, t, vector(x), vector(c), *map(vector, codes)))


# -- The elementary functions of the runtime -----------------------------------------------------------------
#
# The elementary functions of the runtime, called from Python: the same bits as in kernels, on every platform.
#
# Each takes and returns floats; special values are those of C99: nothing is raised, ``log(0)`` is minus infinity.

OF_ONE: Final = ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sinh", "cosh", "tanh")
OF_TWO: Final = ("atan2", "pow")


def _function(name: str, arity: int) -> Callable[..., float]:
    types = (arity + 1) * (ctypes.c_double,)
    return ctypes.CFUNCTYPE(*types)(address(f"fsm_{name}"))


ELEMENTARY: Final[Mapping[str, Callable[..., float]]] = {
    **{name: _function(name, 1) for name in OF_ONE},
    **{name: _function(name, 2) for name in OF_TWO},
}
