"""Verdicts on contact states of the shipped models of up to twelve contacts, against runs and their configurations."""

import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.language import models

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "feasibility.md"
SLOW = ("cart_on_ramp", "gripper", "piano_action_simple")  # seconds to a minute each


@pytest.fixture(scope="module")
def feasibility():
    return importlib.import_module("mechanisms.feasibility")


def rows():
    """The table of the page: numbers of contacts, of all, impossible, possible and undecided combinations by model."""
    marked = PAGE.read_text(encoding="utf-8").split("<!-- verdicts -->")[1].split("<!-- end of verdicts -->")[0]
    lines = [re.split(r"\s*\|\s*", line)[1:-1] for line in marked.splitlines() if line.startswith("| `")]
    return {line[0].strip("`"): [int(cell.split()[0].replace(",", "")) for cell in line[1:6]] for line in lines}


def test_the_page_lists_all_models_of_up_to_twelve_contacts():
    listed = {name: numbers[0] for name, numbers in rows().items()}
    contacts = {}
    for name in models.names():
        count = len(fsm_dyn.compile(name).automaton.contacts)
        if 1 <= count <= 12:
            contacts[name] = count
    assert listed == contacts


def test_at_most_a_hundredth_is_undecided():
    """Of all combinations, of those without the model that has most, and of each model."""
    table = rows()
    assert all(total == sum(parts) for _, total, *parts in table.values())
    for left_out in ("", max(table, key=lambda name: table[name][1])):
        kept = [numbers for name, numbers in table.items() if name != left_out]
        assert sum(undecided for *_, undecided in kept) <= 0.01 * sum(total for _, total, *_ in kept)
    assert all(undecided <= 0.01 * total for _, total, _, _, undecided in table.values())


def check(feasibility, name, depth, samples):
    graph = fsm_dyn.compile(name)
    found, _ = feasibility.assessed(graph)
    contacts, combinations, impossible, possible, undecided = rows()[name]
    assert (found.combinations, found.combinations - found.remaining) == (combinations, impossible)
    assert (found.possible, found.undecided) == (possible, undecided)
    assert found.boxes <= (30_000 if contacts <= 6 else 300_000)  # some 6,000 a second of a processor
    assert feasibility.false_configurations(graph, found) == []
    assert sum(number >= 0 for number in found.states.values()) > 0 or not found.contacts
    met = feasibility.explored(graph, depth, samples)
    assert feasibility.contradicted(found, met) == []
    return met


@pytest.mark.parametrize("name", [name for name in rows() if name not in SLOW])
def test_runs_meet_nothing_impossible_and_what_is_possible_has_its_configuration(feasibility, name):
    check(feasibility, name, 1, 2)


@pytest.mark.long
@pytest.mark.parametrize("name", rows())
@pytest.mark.timeout(3600)
def test_many_runs_meet_nothing_impossible(feasibility, name):
    check(feasibility, name, 3, 24)


@pytest.mark.long
def test_the_piano_action_takes_so_many_boxes(monkeypatch, tmp_path):
    """Work that is counted, for a time that `make bench` measures: half a minute."""
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
    found = fsm_dyn.compile("piano_action").assess_geometry()
    assert 100_000 < found.boxes <= 300_000
    assert (found.combinations, found.possible, found.undecided) == (3_359_232, 7_983, 8_482)


def test_the_comparison_finds_what_is_wrong(feasibility):
    """A verdict that runs contradict, and configurations that belong to other combinations."""
    graph = fsm_dyn.compile("toggle_switch")
    found, _ = feasibility.assessed(graph)
    met = feasibility.explored(graph, 1, 2)
    alone = next(item for item in found.verdicts if item.verdict == "possible" and len(item.contacts) == 1)
    wrong = replace(found, verdicts=(replace(alone, verdict="impossible", reason="as the test says"),))
    assert feasibility.contradicted(wrong, met)
    numbers = list(found.states.values())
    turned = replace(found, states=dict(zip(found.states, numbers[1:] + numbers[:1], strict=True)))
    assert feasibility.false_configurations(graph, turned) == ["01", "10"]


def test_combinations_of_the_piano_are_counted_by_its_named_modes(feasibility):
    """On the simple action, whose combinations can be listed one by one."""
    graph = fsm_dyn.compile("push_button")
    found, _ = feasibility.assessed(graph)
    met = feasibility.explored(graph, 1, 2)
    counted = feasibility.groups(graph, found, met)
    assert sum(group["possible"] for group in counted.values()) == found.possible
    assert sum(group["undecided"] for group in counted.values()) == found.undecided
    assert sum(group["met"] for group in counted.values()) == len({mode.states for mode in met.modes.values()})
    drawn = feasibility.figure(graph, found, met)
    labels = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert set(labels) == set(counted)
