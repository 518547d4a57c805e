"""The mode graph for UPPAAL: the published DTD, names that its language allows, every mode and edge."""

import io
import re

import networkx as nx
import pytest
from lxml import etree
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.language import models
from fsm_dyn.plot import drawing
from fsm_dyn.plot.drawing import KEYWORDS, identifiers

#: Elements and attributes of flat systems 1.1, as UPPAAL reads them.
DTD = """
<!ELEMENT nta (imports?, declaration?, template+, instantiation?, system)>
<!ELEMENT imports (#PCDATA)>
<!ELEMENT declaration (#PCDATA)>
<!ELEMENT template (name, parameter?, declaration?, location*, init?, transition*)>
<!ELEMENT name (#PCDATA)>
<!ATTLIST name x CDATA #IMPLIED y CDATA #IMPLIED>
<!ELEMENT parameter (#PCDATA)>
<!ATTLIST parameter x CDATA #IMPLIED y CDATA #IMPLIED>
<!ELEMENT location (name?, label*, urgent?, committed?)>
<!ATTLIST location id ID #REQUIRED x CDATA #IMPLIED y CDATA #IMPLIED color CDATA #IMPLIED>
<!ELEMENT urgent EMPTY>
<!ELEMENT committed EMPTY>
<!ELEMENT init EMPTY>
<!ATTLIST init ref IDREF #IMPLIED>
<!ELEMENT transition (source, target, label*, nail*)>
<!ATTLIST transition x CDATA #IMPLIED y CDATA #IMPLIED color CDATA #IMPLIED>
<!ELEMENT source EMPTY>
<!ATTLIST source ref IDREF #REQUIRED>
<!ELEMENT target EMPTY>
<!ATTLIST target ref IDREF #REQUIRED>
<!ELEMENT label (#PCDATA)>
<!ATTLIST label kind CDATA #REQUIRED x CDATA #IMPLIED y CDATA #IMPLIED>
<!ELEMENT nail EMPTY>
<!ATTLIST nail x CDATA #REQUIRED y CDATA #REQUIRED>
<!ELEMENT instantiation (#PCDATA)>
<!ELEMENT system (#PCDATA)>
"""


def read(text):
    """Check a system against the DTD and for the rules of its names; return locations by id, start, and edges."""
    root = etree.fromstring(text.encode())
    dtd = etree.DTD(io.StringIO(DTD))
    assert dtd.validate(root), dtd.error_log
    (template,) = root.findall("template")
    declared = re.fullmatch(r"broadcast chan (.*);", root.findtext("declaration"))
    channels = declared[1].split(", ") if declared else []
    process = template.findtext("name")
    assert root.findtext("system") == f"system {process};"
    names = [location.findtext("name") for location in template.findall("location")]
    for name in (*names, *channels, process):
        assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name)
        assert name not in KEYWORDS
    assert len({*names, *channels, process}) == len(names) + len(channels) + 1
    whole = {
        location.get("id"): location.findtext("label[@kind='comments']") or location.findtext("name")
        for location in template.findall("location")
    }
    edges = []
    for item in template.findall("transition"):
        channel = item.findtext("label[@kind='synchronisation']")
        assert channel.endswith("!")
        assert channel[:-1] in channels
        cause = item.findtext("label[@kind='comments']").split("; guard: ")[0].split("; reset: ")[0]
        edges.append((whole[item.find("source").get("ref")], whole[item.find("target").get("ref")], cause, channel))
    return whole, whole[template.find("init").get("ref")], edges


@pytest.mark.parametrize("name", ["latch", "shopping_cart", "latch_door", "tray", "bouncing_ball", "geneva_drive"])
def test_every_mode_and_every_edge(name):
    graph = fsm_dyn.compile(name).nx_with_successors()
    locations, start, edges = read(drawing.to_uppaal(graph))
    assert list(locations.values()) == list(graph)
    assert graph.nodes[start]["initial"]
    expected = {(a, b, data.get("cause") or data["guard"]) for a, b, data in graph.edges(data=True)}
    assert {edge[:3] for edge in edges} == expected
    channels = {(cause, channel) for *_, cause, channel in edges}
    assert len(channels) == len(dict(channels)) == len({channel for _, channel in channels})


def test_an_exploration():
    graph = fsm_dyn.explore(fsm_dyn.compile("latch"), depth=1, samples=3).nx
    locations, _, edges = read(drawing.to_uppaal(graph))
    assert set(locations.values()) == set(graph)
    reached = nx.DiGraph(edge[:2] for edge in edges)
    assert set(reached) <= set(graph)
    assert (
        nx.transitive_closure(reached).number_of_edges() == nx.transitive_closure(nx.DiGraph(graph)).number_of_edges()
    )


def test_every_shipped_model_has_legal_names():
    for name in models.names():
        graph = fsm_dyn.compile(name)
        found = identifiers(graph.nx)
        assert len(set(found.values())) == len(graph.nx)
        assert all(re.fullmatch(r"[a-zA-Z_]\w*", text, re.A) and text not in KEYWORDS for text in found.values())


def test_the_rule_of_names():
    names = ["rest", "urgent", "2nd", "a+b", "a-b", "a_b", "a_b_2", "größe", "", "process_"]
    found = ["rest", "urgent_", "_2nd", "a_b", "a_b_2", "a_b_3", "a_b_2_2", "gr__e", "_", "process_"]
    assert list(identifiers(names).values()) == found
    assert list(identifiers(["1", "_1"]).values()) == ["_1", "_1_2"]
    assert identifiers(["Modes", "x"], {"Modes"}) == {"Modes": "Modes_2", "x": "x"}


def test_texts_are_escaped_and_a_graph_without_a_start_begins_in_its_first_mode():
    graph = nx.MultiDiGraph()
    graph.add_node('<a> & "b"')
    graph.add_node("c")
    graph.add_edge('<a> & "b"', "c", guard="x < 1 && y > 2", direction="falling", reset="x := \x010")
    text = drawing.to_uppaal(graph)
    locations, start, edges = read(text)
    assert list(locations.values()) == ['<a> & "b"', "c"]
    assert start == '<a> & "b"'
    assert edges == [('<a> & "b"', "c", "x < 1 && y > 2", "x___1____y___2!")]
    assert "guard: x &lt; 1 &amp;&amp; y &gt; 2, falling; reset: x := 0" in text


def test_the_command_writes_by_the_suffix_and_to_the_terminal(tmp_path):
    path = tmp_path / "modes.xml"
    assert CliRunner().invoke(app, ["graph", "latch", "--out", str(path)]).exit_code == 0
    locations, start, _ = read(path.read_text(encoding="utf-8"))
    assert start in locations.values()
    shown = CliRunner().invoke(app, ["graph", "latch", "--format", "uppaal"])
    assert shown.stdout.endswith(path.read_text(encoding="utf-8"))


def follows(text, steps):
    """Whether a timed automaton takes edges after dwell times (µs); it is left by the invariant at the latest."""
    _, start, edges = read(text.replace("\nclock dwell; // microseconds in the mode", ""))
    root = etree.fromstring(text.encode())
    bounds = {}
    for item, (source, target, cause, _) in zip(root.iter("transition"), edges, strict=True):
        assert item.findtext("label[@kind='assignment']") == "dwell = 0"
        guard = re.fullmatch(r"dwell >= (\d+) && dwell <= (\d+)", item.findtext("label[@kind='guard']"))
        bounds[source, target, cause] = (int(guard[1]), int(guard[2]))
    latest = {}
    for (source, *_), (_, most) in bounds.items():
        latest[source] = max(latest.get(source, 0), most)
    invariants = [int(found[9:]) for found in root.xpath("//label[@kind='invariant']/text()")]
    assert sorted(invariants) == sorted(latest.values())
    at = start
    for dwell, way in steps:
        if way not in bounds or way[0] != at or not bounds[way][0] <= dwell <= bounds[way][1]:
            return False
        at = way[1]
    return True


@pytest.mark.parametrize(("name", "until"), [("bouncing_ball", 2.0), ("latch", 2.0), ("stick_slip_belt", 3.0)])
def test_a_run_is_a_run_of_its_timed_automaton(name, until, tmp_path):
    run = fsm_dyn.simulate(fsm_dyn.compile(name), until=until)
    drawing.draw(fsm_dyn.compile(name).nx, tmp_path / "run.xml", "uppaal", trajectory=run)
    text = (tmp_path / "run.xml").read_text()
    changes = [item for item in run.transitions if not item.is_handover]
    times = [float(run.t[0]), *(item.time for item in changes)]
    steps = [
        ((b - a) * 1e6, (item.source, item.target, item.cause))
        for a, b, item in zip(times, times[1:], changes, strict=False)
    ]
    assert len(steps) > 2
    assert follows(text, steps)
    longest = max(range(len(steps)), key=lambda k: steps[k][0])
    late = [*steps[:longest], (steps[longest][0] + 2.0, steps[longest][1])]
    assert not follows(text, late)
