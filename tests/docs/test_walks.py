"""The walks of docs/architecture.md are made: every function is called, and in this order."""

import re
import sys
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.analysis.study import study
from fsm_dyn.devices.scripted import Driver
from fsm_dyn.exports.export import export
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.stepper import LiveStepper

PACKAGE = Path(fsm_dyn.__file__).parent
TEXT = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
PARTS = re.split(r"^\*\*One ", TEXT.split("\n## Four walks\n")[1].split("\n## ")[0], flags=re.MULTILINE)[1:]
STEP = re.compile(r"^(\d+)\. `([\w/]+\.(?:py|c))`: `([\w.]+)` - \S.*$", re.MULTILINE)
WALKS = {part.split(":")[0].strip("`"): STEP.findall(part) for part in PARTS}


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("bouncing_ball")


@pytest.fixture
def simulated(graph):
    return lambda: fsm_dyn.simulate(graph, 0.5)


@pytest.fixture
def ticked():
    coupled = fsm_dyn.compile(add_couplers(fsm_dyn.load("bouncing_ball")))
    hand = Driver({"axes": 1, "motion": [], "period": 1e-3})
    controller = RunController(LiveStepper(coupled, 1), lambda event: None)

    def call():
        controller.tick(hand.read())
        hand.write(controller.stepper.tick_data.force)

    return call


@pytest.fixture
def studied(graph):
    values = [number / 100 for number in range(1, 100)]
    return lambda: study(graph, {"e": values}, until=0.5, jobs=1, outputs=["y"])


@pytest.fixture
def exported(graph, tmp_path):
    return lambda: export(graph, tmp_path / "c")


def calls(walk):
    """Return the functions of the package that a call enters, by file and name, in the order of their first calls."""
    entered = {}

    def note(frame, event, _):
        if event == "call":
            entered.setdefault(frame.f_code)

    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
    own = [code for code in entered if Path(code.co_filename).is_relative_to(PACKAGE)]
    return [(Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname) for code in own]


@pytest.mark.parametrize(
    ("name", "walk"), {"simulate": "simulated", "tick": "ticked", "study": "studied", "export": "exported"}.items()
)
def test_a_walk_is_made_in_this_order(name, walk, request):
    steps = WALKS[name]
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    entered = calls(request.getfixturevalue(walk))
    in_python = [(file, function) for _, file, function in steps if file.endswith(".py")]
    assert [step for step in in_python if step not in entered] == []
    assert sorted(in_python, key=entered.index) == in_python


def test_functions_in_c_exist_and_are_called_from_python():
    library = (PACKAGE / "runtime" / "library.py").read_text(encoding="utf-8")
    steps = [(file, function) for steps in WALKS.values() for _, file, function in steps if file.endswith(".c")]
    assert len(steps) == 3
    for file, function in steps:
        assert re.search(rf"^FSM_API .*\b{function}\(", (PACKAGE / file).read_text(encoding="utf-8"), re.MULTILINE)
        assert f'"{function}"' in library
