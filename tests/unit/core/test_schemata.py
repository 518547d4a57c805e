"""Files and JSON that may come from anybody: refused by name, at once, with the place."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.automaton import storage
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import convert, decode, encode, opened, read_file
from fsm_dyn.language.loader import load
from fsm_dyn.live.recording import read_recording


class Pair(msgspec.Struct):
    numbers: tuple[float, ...]
    name: str = ""


READERS = {
    "model": load,
    "automaton": fsm_dyn.open_graph,
    "run": fsm_dyn.open_run,
    "recording": read_recording,
    "bytes": lambda path: read_file(path, 10, "a file"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["nothing", "folder", "pipe"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, reader: str, kind: str) -> None:
    path = tmp_path / "given.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)  # nobody ever writes to it
    with pytest.raises(InputError) as caught:
        READERS[reader](str(path))
    assert caught.value.where.file == str(path)
    assert ("no such file" if kind == "nothing" else "cannot be read") in str(caught.value)


def test_a_pipe_is_bad_input_on_the_command_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for command in ("check", "run", "explain"):
        result = CliRunner().invoke(app, [command, str(tmp_path / "pipe.yaml")], catch_exceptions=False)
        assert result.exit_code == 2


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(b"0123456789")
    assert read_file(path, 10, "a file") == b"0123456789"
    with opened(path) as file:
        assert file.read(2) == b"01"
    path.write_bytes(b"01\n34\n678")
    with pytest.raises(InputError, match=r"numbers:3:3: the file is too large for a file"):
        read_file(path, 8, "a file")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "[" * 100_000, '{"numbers": 1}', '{"numbers": [1, "2"]}', '{"numbers": [true]}', "\udc80",
     '{"numbers": [1e999]}', '{"numbers": [NaN]}', '{"numbers": [1], "name": "\\ud800"}', '{"name": "a"}'],
)  # fmt: skip
def test_json_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="this is not a pair"):
        decode(text, Pair, "a pair")


def test_arrays_are_written_and_what_is_no_number_is_null() -> None:
    text = encode({"numbers": np.array([1.0, 0.1]), "none": np.array([np.nan, np.inf])})
    assert json.loads(text) == {"numbers": [1.0, 0.1], "none": [None, None]}
    assert decode(text, Pair, "a pair") == Pair((1.0, 0.1))
    with pytest.raises(InputError):
        convert({"numbers": [10**400]}, Pair, "a pair")


def set_to(*path: int | str, value: object) -> object:
    def change(data: dict[str, object]) -> None:
        holder = data
        for key in path[:-1]:
            holder = holder[key]  # type: ignore[index, assignment]
        holder[path[-1]] = value  # type: ignore[index]

    return change


FAULTS = {
    "digest": set_to("digest", value="0"),
    "text": set_to("text", value="fsm_dyn: 1"),
    "row of nobody": set_to("rows", 0, 2, value=7),
    "contact of another name": set_to("contacts", 0, 0, value="x"),
    "contact of another kind": set_to("contacts", 0, 1, value="lock"),
    "contact without its row": set_to("contacts", 0, 2, value=-1),
    "corner": set_to("contacts", 0, 5, 0, value=2**40),
    "outline": set_to("contacts", 0, 6, value=2**40),
    "transition's number": set_to("whens", value=[["x", 0, "both", True]]),
    "quaternion": set_to("quaternions", value=[2**62]),
    "kinematic rows": set_to("n_kinematic", value=1),
    "names of loads": set_to("names", 0, value=["a", "b", "c"]),
    "names of points": set_to("names", 1, value=[]),
    "arguments of the report": set_to("report", "layout", "p", value=[]),
    "output of the geometry": set_to("geometry", "outputs", 0, 0, value="places"),
    "mode's name": set_to("modes", 0, "name", value="x"),
    "mode's states": set_to("modes", 0, "states", 0, value=9),
    "chart": set_to("modes", 0, "chart", value=[[0, 2**40]]),
    "independent speed": set_to("modes", 0, "independent", value=[-1]),
    "guard of nobody": set_to("modes", 0, "guards", 0, 1, value=5),
    "guard's direction": set_to("modes", 0, "guards", 0, 2, value=0.5),
    "what a guard measures": set_to("modes", 0, "guards", 0, 4, value=6),
    "guard's sign": set_to("modes", 0, "guards", 0, 5, value=0.0),
    "reset": set_to("resets", value=[None]),
}


@pytest.fixture(scope="module")
def whole() -> bytes:
    return storage.to_bytes(fsm_dyn.compile("bouncing_ball").automaton)


@pytest.mark.parametrize("fault", FAULTS)
def test_automata_that_do_not_hold_together_are_refused(whole: bytes, fault: str) -> None:
    data = json.loads(whole)
    assert storage.to_bytes(storage.from_data(data)) == whole == storage.to_bytes(storage.from_bytes(whole))
    FAULTS[fault](data)  # type: ignore[operator]
    with pytest.raises(InputError):
        storage.from_data(data)
