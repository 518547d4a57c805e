"""Forces along angles are torques wherever a run shows them: files, explanations, figures, the page."""

import re

import pytest

import fsm_dyn
from fsm_dyn.cli.run import loads_command, requirement_table
from fsm_dyn.core.errors import Location
from fsm_dyn.language.expression_tree import parse_unit
from fsm_dyn.language.scales import force_units
from fsm_dyn.page.playback import PlaybackFrames, from_trajectory
from fsm_dyn.plot import forces

LEVER = {  # a lever with dry friction at its pivot between a stop in its angle and a rigid block below its tip
    "fsm_dyn": 1,
    "name": "lever",
    "parameters": {"J": "0.1 kg*m^2", "stop": "0.5 rad", "l": "0.2 m"},
    "coordinates": {"q": "rad"},
    "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
    "points": {"P": {"from": "O", "at": "l*B.x"}},
    "bodies": {"lever": {"center": "O", "mass": "1 kg", "frame": "B", "inertia": {"zz": "J"}}},
    "speeds": {"w": "rate(q)"},
    "contacts": {
        "end": {"gap": "stop - q", "restitution": 0},
        "block": {"gap": "dot(pos(P, O), N.y) + 0.05 m", "restitution": 0},
        "pivot": {"dry_friction": {"speed": "w", "static": "0.3 N*m", "kinetic": "0.2 N*m"}},
    },
    "inputs": {"moment": "N*m"},
    "schedule": {"moment": "1 N*m"},
    "loads": [{"torque": "moment*N.z", "on": "lever"}],
    "initial": {"q": 0},
}  # fmt: skip
UNITS = {"end": "N*m", "block": "N", "pivot": "N*m"}


@pytest.fixture(scope="module")
def lever():
    graph = fsm_dyn.compile(LEVER)
    return graph, fsm_dyn.simulate(graph, 2.0)


def test_units_of_rows(lever, tmp_path):
    _, run = lever
    assert dict(zip(run.model.row_labels(), run.model.force_units, strict=True)) == UNITS
    heading = run.to_csv(tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert {f"lambda.{name} [{unit}]" for name, unit in UNITS.items()} <= set(heading)
    data = run.to_xarray()
    assert {name: data[f"lambda.{name}"].units for name in UNITS} == UNITS
    assert {name: run.to_pandas().attrs["units"][f"lambda.{name}"] for name in UNITS} == UNITS


def test_every_heading_has_a_unit_that_the_language_reads(tmp_path):
    """Of connections too, whose torques and drives are in N*m; so `fit` reads what a run writes."""
    servo = {"period": "50 ms", "delay": 1, "outputs": {"drive": {"unit": "N*m", "value": "-1 N*m*s*w"}}}
    graph = fsm_dyn.compile({**LEVER, "controllers": {"servo": servo}})
    run = fsm_dyn.simulate(graph, 0.1)
    headings = run.to_csv(tmp_path / "run.csv", pins=True).read_text(encoding="utf-8").splitlines()[0].split(",")
    units = dict(
        re.fullmatch(r"(.*) \[(.*)\]", heading).groups()
        for heading in headings
        if heading not in ("mode", "servo.samples")
    )
    assert {unit: parse_unit(unit, Location())[0] for unit in units.values()} == dict.fromkeys(units.values(), 1.0)
    assert {units[name] for name in ("pin.N_B.torque_z", "pin.N_B.drive", "drive.later1")} == {"N*m"}


def test_explanation_has_a_torque(lever):
    found = lever[1].explain(2.0)
    units = {item.name: (item.normal_unit, item.friction_unit) for item in found.contacts}
    assert units == {"end": ("N*m", ""), "block": ("N", ""), "pivot": ("", "N*m")}
    end = next(item for item in found.contacts if item.name == "end")
    assert end.normal == pytest.approx(1.0, abs=0.3 + 1e-6)  # the moment, less what the pivot holds
    assert f"{end.normal:.4g} N*m" in found._repr_html_()
    assert found.phase.startswith("short name: ")
    assert len(found.sentences) == len(found.preceding)


def test_figure_and_page_have_torques(lever):
    _, run = lever
    (axes, *_) = forces(run, ["pivot"]).axes
    assert axes.get_ylabel() == "friction, N·m"
    film = from_trajectory(run)
    units = {item.name: item.unit for item in film.encoder.quantities.all}
    assert {name: units[name] for name in UNITS} == {name: unit.replace("*", "·") for name, unit in UNITS.items()}
    lanes = {lane["name"]: lane for lane in PlaybackFrames(film).payload()["story"]["lanes"]}
    assert lanes["end"]["unit"] == "N·m"
    assert lanes["pivot"]["unit"] == "N·m"


def test_words_of_requirements_and_loads(capsys):
    """Tables give causes as sentences, connections and bodies by their words, and the phase."""
    loads_command("latch_door", until=2.0)
    told = capsys.readouterr().out
    assert "guide of door on ground" in told
    assert "ride over" in told
    assert "ramp strikes striker" in told
    run = fsm_dyn.simulate(fsm_dyn.compile("latch_door"), 2.0)
    table = requirement_table(run.judge().values(), run.reading.sentences)
    assert re.search("door (strikes|bounces on) frame", table)  # the margin is the same from one to the other
    assert not any(word in told + table for word in ("gap zero", "touch: striker", "end of its face"))


def test_units_of_a_model_without_units():
    plain = fsm_dyn.load({"fsm_dyn": 1, "name": "ball", "parameters": {"m": 1}, "coordinates": {"y": None},
                          "points": {"P": {"from": "O", "at": "y*N.y"}}, "bodies": {"b": {"center": "P", "mass": "m"}},
                          "contacts": {"floor": {"gap": "y"}}, "initial": {"y": 1}})  # fmt: skip
    assert force_units(plain, [("floor", "normal")]) == ("",)
