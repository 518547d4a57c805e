"""Arguments of a wrong type: the package's own error with name, value, allowed types and remedy, from any function."""

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.arguments import check_arguments

FUNCTIONS = [name for name in fsm_dyn.__all__ if inspect.isfunction(getattr(fsm_dyn, name))]
UNCHECKED = ("Any", "Real", "Outputs")  # annotations of enumerations and of anything
METHODS = [  # of runs and graphs, but those that the package itself calls alone
    (owner, name)
    for owner in (fsm_dyn.Trajectory, fsm_dyn.ModeGraph)
    for name, value in vars(owner).items()
    if inspect.isfunction(value) and not name.startswith("_") and (owner, name) != (fsm_dyn.Trajectory, "check")
]
OPTIONS = [item.name for item in dataclasses.fields(fsm_dyn.RunOptions)]
WRONG = [object(), b"x", (value for value in ()), {3: 3}, {1}]


def _arguments():
    for name in FUNCTIONS:
        signature = inspect.signature(getattr(fsm_dyn, name))
        for item in signature.parameters.values():
            if item.kind != item.VAR_KEYWORD and item.annotation not in UNCHECKED:
                yield name, item.name


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.compile("bouncing_ball")


@pytest.mark.parametrize(("function", "argument"), list(_arguments()))
def test_every_argument_of_a_public_function_refuses_an_object(function, argument, ball):
    call = getattr(fsm_dyn, function)
    right = {"graph": ball, "model": "bouncing_ball", "mechanism": "bouncing_ball", "run": None, "n": 1, "seed": 1}
    given = {
        item.name: right.get(item.name, "text")
        for item in inspect.signature(call).parameters.values()
        if item.default is item.empty and item.kind != item.VAR_KEYWORD
    }
    if "run" in given and argument != "run":
        given["run"] = fsm_dyn.simulate(ball, until=0.01)
    if "vary" in given:
        given["vary"] = ["e"]
    with pytest.raises(fsm_dyn.InputError) as refused:
        call(**{**given, argument: object()})
    text = str(refused.value)
    for part in (f"'{argument}'", "<object object", "allowed:", "remedy:"):
        assert part in text


def _arguments_of_methods():
    for owner, name in METHODS:
        for item in list(inspect.signature(getattr(owner, name)).parameters.values())[1:]:
            if item.kind != item.VAR_KEYWORD and item.annotation not in UNCHECKED:
                yield owner, name, item.name


@pytest.mark.parametrize(
    ("owner", "method", "argument"),
    [pytest.param(*item, id=f"{item[0].__name__}.{item[1]} {item[2]}") for item in _arguments_of_methods()],
)
def test_every_argument_of_a_method_of_runs_and_graphs_refuses_an_object(owner, method, argument, ball, tmp_path):
    subject = ball if owner is fsm_dyn.ModeGraph else fsm_dyn.simulate(ball, until=0.01)
    right = {"path": tmp_path / "file", "until": 1.0, "name": "y", "time": 0.0}
    given = {
        item.name: right.get(item.name)
        for item in list(inspect.signature(getattr(owner, method)).parameters.values())[1:]
        if item.default is item.empty and item.kind != item.VAR_KEYWORD
    }
    with pytest.raises(
        fsm_dyn.InputError, match=f"{owner.__name__}.{method}: '{argument}' has a wrong type"
    ) as refused:
        getattr(subject, method)(**{**given, argument: object()})
    assert all(part in str(refused.value) for part in ("<object object", "allowed:", "remedy:"))


@pytest.mark.parametrize("times", [0.5, "0.5", ["0.5"], {0.5: 1.0}, {0.5}, [[object()]]])
def test_a_run_is_sampled_at_sequences_of_numbers(times, ball):
    with pytest.raises(fsm_dyn.InputError, match="'times' has a wrong type"):
        fsm_dyn.simulate(ball, until=1.0).sample(times)


def test_times_of_any_sequence_of_numbers_are_right(ball):
    run = fsm_dyn.simulate(ball, until=1.0)
    expected = run.sample(np.array([0.0, 1.0]))["y"]
    for times in ([0, 1.0], (np.float32(0.0), 1), range(2), np.arange(2)):
        assert np.array_equal(run.sample(times)["y"], expected)
    assert run.at(np.float64(1.0)).q == run.at(1).q == expected[1]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_of_a_run_refuses_a_wrong_type(option, wrong):
    with pytest.raises(fsm_dyn.InputError, match=f"'{option}' has a wrong type"):
        fsm_dyn.RunOptions(**{option: wrong})


@pytest.mark.parametrize("wrong", [None, 3, "bouncing_ball", Path("/"), b"x", {}])
def test_only_graphs_run(wrong):
    for call in (fsm_dyn.simulate, fsm_dyn.Simulator, fsm_dyn.static_equilibrium):
        with pytest.raises(fsm_dyn.InputError, match=r"'graph' has a wrong type(.|\n)*fsm_dyn\.compile"):
            call(wrong)


def test_numbers_of_other_libraries_are_numbers():
    right = {"until": np.float32(1.0), "max_steps": np.int64(5), "atol": np.full(2, 1e-9), "step": np.array(0.1)}
    options = fsm_dyn.RunOptions(**right, parameters={"e": np.float64(0.5)}, progress=print)
    assert options.until == 1.0
    assert fsm_dyn.RunOptions(max_steps=1e6).max_steps == 1_000_000


def test_elements_are_checked_too():
    annotated = {"names": Sequence[str] | None, "ranges": Mapping[str, tuple[float, str]]}
    check_arguments("f", {"names": ["a"], "ranges": {"x": (1, "2 m")}}, annotated)
    check_arguments("f", {"names": None, "ranges": {"x": [1.0, "2 m"]}}, annotated)
    for wrong in ({"names": "abc"}, {"names": ["a", 3]}, {"ranges": {"x": ("2 m", 1)}}, {"ranges": {3: (1, "2 m")}}):
        with pytest.raises(fsm_dyn.InputError):
            check_arguments("f", wrong, annotated)
