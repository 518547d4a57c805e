"""Everything that reads a file or a message from outside: what is hostile is refused by name, by every reader.

JSON that is nested beyond all measure, of another type than expected, or with integers that no float holds, is given to
every reader.
"""

import contextlib
import json
import os
import sqlite3

import msgspec
import pytest

import fsm_dyn
from fsm_dyn.analysis.judged_runs import JudgedRun
from fsm_dyn.analysis.searches import read_measured
from fsm_dyn.analysis.study import _decoded
from fsm_dyn.automaton import storage
from fsm_dyn.cli.live import driver_options
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import machine_of
from fsm_dyn.devices.inverse3 import parsed, vector
from fsm_dyn.language import units
from fsm_dyn.live.recording import read_recording
from fsm_dyn.page.broadcast import read_command
from fsm_dyn.run.run_files import is_run
from tests.campaigns import artefacts

DEEP = "[" * 100_000 + "]" * 100_000
HOSTILE = {
    "deep": DEEP,
    "deep in an unknown field": f'{{"a": {DEEP}}}',
    "number": "5",
    "list": "[[]]",
    "text": '"x"',
    "null": "null",
    "surrogate": '"\\ud800"',
    "nothing": "",
    "integer of 400 digits": "9" * 400,
    "integer of 5000 digits": "9" * 5000,
    "not a number": '{"do": NaN}',
}


def with_metadata(name, text):
    """A recording with a text in place of its settings or columns."""
    graph, head, rows, records = artefacts.live("latch")
    whole = artefacts.recording(graph, json.loads(head), rows[:3], records[:0])
    kept = json.dumps(json.loads(head)[name]).encode()
    assert whole.count(kept) == 1
    return artefacts.recording(graph, json.loads(head) | {name: Verbatim(text)}, rows[:3], records[:0])


class Verbatim(str):
    """JSON that a file is to contain."""


@pytest.fixture(autouse=True)
def _verbatim(monkeypatch):
    plain = artefacts.as_json
    monkeypatch.setattr(artefacts, "as_json", lambda data: str(data) if isinstance(data, Verbatim) else plain(data))


def with_event(text):
    """A recording with an event of this text."""
    graph, head, rows, records = artefacts.live("latch")
    return artefacts.recording(graph, json.loads(head) | {"events": [Verbatim(text)]}, rows[:3], records[:0])


READERS = {
    "an automaton": (".json", str.encode, fsm_dyn.open_graph),
    "a run": (".run.json", str.encode, fsm_dyn.open_run),
    "settings of a recording": (".mcap", lambda text: with_metadata("settings", text), read_recording),
    "columns of a recording": (".mcap", lambda text: with_metadata("columns", text), read_recording),
    "an event of a recording": (".mcap", with_event, read_recording),
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_hostile_json_in_a_file_is_refused(tmp_path, reader, what):
    suffix, content, read = READERS[reader]
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content(HOSTILE[what]))
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_nesting_in_an_automaton_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(f'{{"format": "{storage.FORMAT}", "text": "", "more": {DEEP}}}')
    with pytest.raises(InputError):
        fsm_dyn.open_graph(path)


@pytest.mark.parametrize(
    "event",
    [
        {"event": "mode_added", "states": [[0, 0, 0]], "command": 3},
        {"event": "command_done", "tick": 1, "command": 3},
        {"event": "command_done", "tick": 1, "command": {"do": "set"}},
        {"event": "kernel_adopted", "tick": 1, "states": [0, 0, 0], "evaluations": 0, "command": []},
    ],
)
def test_events_with_a_command_of_another_kind(tmp_path, event):
    """Read where the command has no meaning, refused where it has one."""
    path = tmp_path / "x.mcap"
    path.write_bytes(with_event(json.dumps(event)))
    if event["event"] == "command_done":
        with pytest.raises(InputError):
            read_recording(path)
    else:
        assert read_recording(path).events == [event]


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_messages(what):
    with pytest.raises(InputError):
        read_command(HOSTILE[what])
    if what == "deep in an unknown field" or not HOSTILE[what].startswith("{"):
        with pytest.raises(ValueError, match="no JSON"):
            parsed(HOSTILE[what].encode())
    with contextlib.suppress(InputError):  # a text where it is no JSON, or refused where a list does not end
        driver_options([f"a={HOSTILE[what]}"])


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), None, "1"])
def test_vectors_of_what_is_no_number(number):
    with pytest.raises(ValueError, match="number"):
        vector({"x": 0.0, "y": number, "z": 0.0})


def test_runs_are_known_as_runs(tmp_path):
    run = fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), 0.1).save(tmp_path / "x.run.json")
    assert is_run(str(run))
    graph = tmp_path / "graph.json"
    fsm_dyn.compile("bouncing_ball").save(graph)
    assert not is_run(str(graph))


def test_a_measured_motion_is_a_file_of_a_size(tmp_path, monkeypatch):
    graph = fsm_dyn.compile("bouncing_ball")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")  # without a writer
        with pytest.raises(InputError, match="pipe"):
            read_measured(tmp_path / "pipe", graph)
        assert machine_of(str(tmp_path / "pipe")) == ""
    for path in (tmp_path, "a\0b.csv", tmp_path / "nowhere.csv"):
        with pytest.raises(InputError):
            read_measured(path, graph)
    (tmp_path / "latin.csv").write_bytes(b"t,y\n0,\xff\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_measured(tmp_path / "latin.csv", graph)
    monkeypatch.setattr("fsm_dyn.analysis.searches.LARGEST_FILE", 10)
    (tmp_path / "large.csv").write_text("t,y\n0,0\n1,1\n")
    with pytest.raises(InputError, match="too large"):
        read_measured(tmp_path / "large.csv", graph)


def records(data):
    """Opcode, offset of the content and length of every record of an MCAP file."""
    at = len(b"\x89MCAP0\r\n")
    while at + 9 <= len(data) and data[at]:
        length = int.from_bytes(data[at + 1 : at + 9], "little")
        yield data[at], at + 9, length
        at += 9 + length


@pytest.mark.parametrize(("opcode", "name"), [(0x04, "channel"), (0x09, "attachment"), (0x0C, "metadata")])
def test_records_of_any_length_are_read_or_refused(tmp_path, opcode, name):
    """The package that parses them has a private exception where a record ends between two of its fields."""
    graph, head, rows, transitions = artefacts.live("latch")
    whole = artefacts.recording(graph, json.loads(head), rows[:3], transitions[:0])
    at, length = next((at, length) for kind, at, length in records(whole) if kind == opcode)
    path = tmp_path / "x.mcap"
    refused = 0
    for kept in (*range(min(length, 40)), length - 4, length - 1):
        cut = kept.to_bytes(8, "little") + whole[at : at + kept]
        path.write_bytes(whole[: at - 8] + cut + whole[at + length :])
        try:
            read_recording(path)
        except InputError as error:
            assert str(path) in str(error)  # noqa: PT017 - some may be read
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("error", [ArithmeticError, AssertionError, StopIteration, type("PintError", (Exception,), {})])
def test_units_are_refused_for_every_exception_of_the_library(monkeypatch, error):
    """Each release of pint has other exceptions for what it cannot read."""

    class Registry:
        def Quantity(self, *given):
            raise error

    monkeypatch.setattr(units, "_registry", Registry)
    with pytest.raises(units.UnknownUnitError):
        units.unit("furlongs_of_no_length")


# -- ledgers of studies --------------------------------------------------------------------------------------


def study(ball, path):
    return fsm_dyn.study(ball, {"e": [0.2, 0.5, 0.8]}, until=0.3, jobs=1, ledger=path)


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.compile("bouncing_ball")


def _with(data, **fields):
    """Return the bytes of a run with other values of some fields."""
    return msgspec.msgpack.encode(msgspec.msgpack.decode(data) | fields)


DAMAGED = {
    "nothing": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "a text": lambda data: "x",
    "a number": lambda data: 3,
    "nested": lambda data: b"\x91" * 100_000,
    "other fields": lambda data: _with(data, end="late"),
    "another output": lambda data: _with(data, outputs={"x": (0.0, 1.0, 0.5)}),
    "another curve": lambda data: _with(data, curves={"y": bytes(80)}),
    "part of a number": lambda data: _with(data, curves={"y": bytes(81)}),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_ledger_with_a_damaged_result_is_refused(ball, tmp_path, damage):
    path = tmp_path / "study.sqlite"
    whole = study(ball, path)
    with sqlite3.connect(path) as file:
        (data,) = file.execute("SELECT result FROM runs WHERE number = 1").fetchone()
        file.execute("UPDATE runs SET result = ? WHERE number = 1", (DAMAGED[damage](data),))
    with pytest.raises(InputError, match=r"damaged[\s\S]*the result of run 1"):
        study(ball, path)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE runs SET result = ? WHERE number = 1", (data,))
    assert study(ball, path).table() == whole.table()


@pytest.mark.parametrize("change", ["DELETE FROM runs WHERE number = 1", "UPDATE runs SET number = 7 WHERE number = 0"])
def test_a_ledger_without_one_of_its_results_is_refused(ball, tmp_path, change):
    """Rather than the results of other runs taken for those that are missing."""
    path = tmp_path / "study.sqlite"
    study(ball, path)
    with sqlite3.connect(path) as file:
        file.execute(change)
    with pytest.raises(InputError, match="damaged"):
        study(ball, path)


def test_a_ledger_of_more_results_than_runs_is_refused(ball, tmp_path):
    path = tmp_path / "study.sqlite"
    study(ball, path)
    with sqlite3.connect(path) as file:
        file.execute("INSERT INTO runs SELECT 3, result FROM runs WHERE number = 2")
    with pytest.raises(InputError, match="4 results of 3 runs"):
        study(ball, path)


def test_a_judged_run_of_other_requirements_is_refused():
    run = JudgedRun("done", 1.0, ("free",), 0, {"fast": "met"}, {"fast": 0.5})
    data = msgspec.msgpack.encode(run)
    assert _decoded(data, ("fast",), (), 0) == run
    for names in (("slow",), (), ("fast", "slow")):
        with pytest.raises(ValueError, match="other requirements"):
            _decoded(data, names, (), 0)
