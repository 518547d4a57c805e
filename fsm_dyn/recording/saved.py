"""A run as a file: JSON with the model's text and the recorded rows.

Never pickle: a file from a stranger is checked, its model is read like any model file, and nothing in it is executed.
Between the rows inputs are cubics through their recorded values and rates, exact where they are constant or linear.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from fsm_dyn.errors import InputError
from fsm_dyn.recording.arrays import FloatArray, InputFunction
from fsm_dyn.recording.change_points import ChangePoint
from fsm_dyn.recording.dense import locate
from fsm_dyn.recording.record import Record, RunModel
from fsm_dyn.recording.transitions import Transition
from fsm_dyn.simulation.outcomes import OUTCOMES

FORMAT = "fsm_dyn run 1"
LARGEST_FILE = 2**30
_ARRAYS = ("t", "x", "x_dot", "x_mid", "mode", "held")


@dataclass(frozen=True)
class SavedRun:
    """A run as it was read: the model's text, its parameters (n_p,), contact states by mode index, and the rows."""

    text: str
    parameters: FloatArray
    modes: tuple[tuple[int, ...], ...]
    record: Record

    def check(self, model: RunModel) -> None:
        """Check that the rows fit the model.

        Raises
        ------
        InputError
            They do not.
        """
        layout, record = model.layout, self.record
        n, n_held = len(record.t), layout.n_c - len(layout.p)
        good = self.parameters.shape == (len(layout.p),) and n > 0 and bool((np.diff(record.t) >= 0.0).all())
        good &= record.x.shape == record.x_dot.shape == record.x_mid.shape == (n, layout.n_x)
        good &= record.held.shape == (n, n_held) and record.mode.shape == (n,)
        good &= bool(((record.mode >= 0) & (record.mode < len(self.modes))).all())
        if not good:
            raise InputError("the saved run does not fit its model", remedy="run the model again")


def write_run(model: RunModel, record: Record, path: Path) -> Path:
    """Write a run and return the path.

    Raises
    ------
    InputError
        The run has no model text to go with it.
    """
    if not model.text:
        raise InputError("this run has no model text to be saved with")
    data = {
        "format": FORMAT,
        "text": model.text,
        "outcome": record.outcome.code,
        "tried": list(record.tried),
        "parameters": _listed(model.parameters),
        "n_inputs": len(model.layout.w),
        "modes": [list(chart.states) for chart in model.charts],
        "transitions": [_transition_to_data(item) for item in record.transitions],
        "change_points": [asdict(item) for item in record.change_points],
    }
    data |= {name: _listed(getattr(record, name)) for name in _ARRAYS}
    # the middle of a step that does not exist was never filled
    data["x_mid"] = _listed(np.where(record.starts[:, None], record.x, record.x_mid))
    path.write_text(json.dumps(data, allow_nan=False), encoding="utf-8")
    return path


def read_run(path: str) -> SavedRun:
    """Read a run.

    Raises
    ------
    InputError
        The file is not a saved run of this version, or does not hold together.
    """
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST_FILE:
            raise InputError(f"'{place}' is too large for a run", allowed=f"{LARGEST_FILE} bytes")
        data = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read '{place}'", found=str(error)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{place}' is not a saved run", found=str(error)[:200]) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"'{place}' is not a saved run", allowed=FORMAT, remedy="write one with `fsm-dyn run --out`")
    try:
        numbers = {name: np.array(data[name], dtype=np.float64) for name in _ARRAYS if name != "mode"}
        transitions = tuple(_transition_from_data(item) for item in data["transitions"])
        inputs = _between_rows(numbers["t"], numbers["held"], int(data["n_inputs"]))
        mode = np.array(data["mode"], dtype=np.int64)
        outcome = OUTCOMES[int(data["outcome"])]
        tried = tuple(str(words) for words in data.get("tried", ()))
        passed = tuple(ChangePoint(**{**item, "rows": tuple(item["rows"])}) for item in data.get("change_points", ()))
        record = Record(
            **numbers, mode=mode, tell=lambda: transitions, inputs=inputs, outcome=outcome, tried=tried,
            change_points=passed,
        )  # fmt: skip
        modes = tuple(tuple(int(code) for code in states) for states in data["modes"])
        return SavedRun(str(data["text"]), np.array(data["parameters"], dtype=np.float64), modes, record)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"the saved run '{place}' does not hold together", found=repr(error)[:200]) from error


def is_run(path: str) -> bool:
    """Tell whether a file begins as a saved run does; False where it cannot be read."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            return FORMAT in file.read(4 * len(FORMAT))
    except (OSError, ValueError):
        return False


def _between_rows(t: FloatArray, held: FloatArray, n_w: int) -> InputFunction:
    """Return the inputs with their rates at any time of the run, shape (n, 3 n_w), from those at its rows."""

    def inputs(times: FloatArray) -> FloatArray:
        first = locate(t, times)[0]
        last = np.minimum(first + 1, len(t) - 1)
        h = (t[last] - t[first])[:, None]
        s = np.divide(times[:, None] - t[first, None], h, out=np.zeros((len(times), 1)), where=h > 0.0)
        a, b = held[first], held[last]
        value, rate = slice(0, n_w), slice(n_w, 2 * n_w)
        rise = b[:, value] - a[:, value]
        bow = (h * a[:, rate] - rise) * (1.0 - s) + (rise - h * b[:, rate]) * s
        straight: FloatArray = a[:, : 3 * n_w] + s * (b - a)[:, : 3 * n_w]
        straight[:, value] += s * (1.0 - s) * bow
        return straight

    return inputs


def _transition_to_data(item: Transition) -> dict[str, Any]:
    data = {field.name: getattr(item, field.name) for field in fields(item)}
    data["impulse"] = {name: _listed(values) for name, values in item.impulse.items()}
    data |= {name: _listed(getattr(item, name)) for name in ("u_before", "u_after")}
    data |= {name: _listed(np.array(getattr(item, name))) for name in ("guard", "slope")}
    data["fired"] = [[text, *_listed(np.array(numbers))] for text, *numbers in item.fired]
    return data


def _transition_from_data(item: Any) -> Transition:
    def number(value: Any) -> float:
        return float("nan") if value is None else float(value)

    return Transition(
        time=float(item["time"]),
        source=str(item["source"]),
        target=str(item["target"]),
        cause=str(item["cause"]),
        impulse={str(k): np.array(v, dtype=np.float64) for k, v in item["impulse"].items()},
        energy_before=float(item["energy_before"]),
        energy_after=float(item["energy_after"]),
        u_before=np.array(item["u_before"], dtype=np.float64),
        u_after=np.array(item["u_after"], dtype=np.float64),
        candidates=int(item["candidates"]),
        guard=number(item["guard"]),
        slope=number(item["slope"]),
        why=tuple(str(line) for line in item["why"]),
        fired=tuple((str(text), number(value), number(slope)) for text, value, slope in item["fired"]),
        source_label=str(item.get("source_label", "")),
        target_label=str(item.get("target_label", "")),
    )


def _listed(array: np.ndarray[Any, Any]) -> Any:
    """Return an array as nested lists; what is not finite becomes null."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        exact = array.astype(object)
        exact[~np.isfinite(array)] = None
        return exact.tolist()
    return array.tolist()
