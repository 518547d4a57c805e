"""The mode graph for other programs: round trips, and the library that reads it."""

import json

import networkx as nx
import pytest
from transitions import Machine

import fsm_dyn
from fsm_dyn.plot import drawing
from fsm_dyn.plot.drawing import plain


@pytest.fixture(scope="module")
def graphs():
    """A compiled graph and an exploration of it, both as networkx."""
    graph = fsm_dyn.compile("latch")
    return {"compiled": graph.nx, "explored": fsm_dyn.explore(graph, depth=1, samples=3).nx}


def content(graph):
    """Nodes and edges with their attributes, comparable."""
    return dict(graph.nodes(data=True)), sorted((a, b, sorted(data.items())) for a, b, data in graph.edges(data=True))


@pytest.mark.parametrize("which", ["compiled", "explored"])
@pytest.mark.parametrize(
    ("there", "back"),
    [(drawing.to_graphml, drawing.from_graphml), (drawing.to_json, drawing.from_json)],
    ids=["graphml", "json"],
)
def test_round_trip(graphs, which, there, back):
    graph = graphs[which]
    again = back(there(graph))
    assert content(again) == content(plain(graph))
    assert again.graph["name"] == "latch"
    assert set(again) == set(graph)
    assert again.number_of_edges() == graph.number_of_edges() > 5
    assert there(again) == there(graph)


def test_contact_states_are_json_text(graphs):
    node = plain(graphs["compiled"]).nodes
    assert {name: json.loads(data["states"]) for name, data in node.items()} == dict(
        graphs["compiled"].nodes(data="states")
    )


def test_the_library_makes_the_machine(graphs):
    graph = graphs["compiled"]
    machine = Machine(**json.loads(drawing.to_transitions(graph)))
    assert set(machine.states) == set(graph)
    assert machine.state == next(name for name, data in graph.nodes(data=True) if data["initial"])
    taken = 0
    for source, _, data in graph.edges(data=True):
        machine.set_state(source)
        assert machine.events[data["cause"]].trigger(machine)
        first = next(b for a, b, other in graph.edges(data=True) if a == source and other["cause"] == data["cause"])
        assert machine.state == first
        taken += 1
    assert taken == graph.number_of_edges()


@pytest.mark.parametrize("kind", ["graphml", "json"])
def test_files_by_their_suffix(graphs, tmp_path, kind):
    path = drawing.draw(graphs["compiled"], tmp_path / f"latch.{kind}")
    read = nx.read_graphml(path) if kind == "graphml" else drawing.from_json(path.read_text(encoding="utf-8"))
    assert set(read) == set(graphs["compiled"])
