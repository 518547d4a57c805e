"""Models made by calls: the same data as from YAML, comments of files kept, errors at the call."""

import inspect
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import models
from fsm_dyn.language.loader import load
from fsm_dyn.language.yaml import (
    LocatedList,
    LocatedMapping,
    Scalar,
    compose,
    plain_data,
    with_entry,
    with_item,
    with_setting,
)

METHODS = {
    "parameters": "parameter", "coordinates": "coordinate", "frames": "frame", "points": "point", "bodies": "body",
    "joints": "joint", "speeds": "speed", "constraints": "constraint", "shapes": "shape", "contacts": "contact",
    "inputs": "input", "schedule": "schedule", "scenarios": "scenario", "loads": "load", "modes": "mode",
    "memory": "memory", "transitions": "transition", "numerics": "numerics", "ports": "port", "initial": "initial",
    "outputs": "output", "requirements": "requirement", "view": "view", "use": "use", "variants": "variant",
}  # fmt: skip
ALL = [*models.names(), str(Path(__file__).parent / "models" / "everything.yaml")]


def rebuilt(path: Path) -> fsm_dyn.Model:
    """Return the model of a file, its sections in reverse order, each entry written by a call."""
    data = plain_data(compose(path.read_text(encoding="utf-8"), str(path)))
    name = data.pop("name", path.stem)
    sections = {key: data.pop(key) for key in reversed(list(data)) if key in METHODS}
    data.pop("fsm_dyn")
    model = fsm_dyn.Model(name, **data)
    for section, entries in sections.items():
        call = getattr(model, METHODS[section])
        if isinstance(entries, list):
            for item in entries:
                call(**item) if isinstance(item, dict) else call(item)
        elif section in ("numerics", "initial"):
            call(**entries)
        else:
            for entry, value in entries.items():
                if (section, entry) == ("modes", "only_listed"):
                    model.only_listed(value)
                elif isinstance(value, dict):
                    call(entry, **value)
                else:
                    call(entry, value)
    return model


def test_latch_by_calls_is_the_latch_of_the_file():
    m = fsm_dyn.Model("latch", source="fsm_dyn; the catch is a plastic impact derived from the lock's row")
    m.settings(
        summary="A door pushes a spring-loaded bolt up its ramp, is caught, and springs back when the trigger draws "
        "the bolt."
    )
    values = {
        "m_door": "1.5 kg", "m_bolt": "0.05 kg", "k_door": "60 N/m", "c_door": "4 N*s/m", "k_bolt": "400 N/m",
        "c_bolt": "2 N*s/m", "preload": "10 mm", "alpha": "40 deg", "meet": "50 mm", "lip": "62 mm", "draw": "14 mm",
        "e": 0.1,
    }  # fmt: skip
    for name, value in values.items():
        m.parameter(name, value)
    m.coordinate("x", "m").coordinate("b", "m")
    m.point("D", from_="O", at="x*N.x").point("K", from_="O", at="meet*N.x + b*N.y")
    m.body("door", center="D", mass="m_door").body("bolt", center="K", mass="m_bolt")
    m.speed("vx", "rate(x)").speed("vb", "rate(b)")
    m.contact("ramp", gap="dot(pos(K, D), N.y) + dot(pos(K, D), N.x)*tan(alpha)", closes_if="x < lip - 0.1 mm")
    m.contact("seat", joint_stop={"coordinate": "b", "lower": "0 m"}, restitution="e")
    m.contact("catch", lock={"velocity": "vx"})
    m.input("push", "N").input("trigger", "N")
    m.schedule("push", steps=[["0 s", "25 N"], ["1 s", "0 N"]])
    m.schedule("trigger", steps=[["0 s", "0 N"], ["1.5 s", "20 N"], ["2.2 s", "0 N"]])
    m.load(force="push*N.x", at="D").load(force="trigger*N.y", at="K")
    m.load(spring={"coordinate": "x", "stiffness": "k_door", "damping": "c_door"})
    m.load(spring={"coordinate": "b", "stiffness": "k_bolt", "free": "-preload", "damping": "c_bolt"})
    m.mode("free", ramp="open", catch="released").mode("riding", ramp="closed", catch="released")
    m.mode("latched", ramp="open", catch="engaged").only_listed()
    m.transition(
        from_="riding", to="latched", when="x - lip", crossing="rising", because="the bolt snaps behind the lip"
    )
    m.transition(
        from_="latched", to="free", when="b - draw", crossing="rising", because="the trigger has drawn the bolt"
    )
    m.port("handle", coordinate="x")
    m.initial(mode="free")
    door = [[-0.05, -0.02], [0, -0.02], [0, 0], [-0.0008, 0], [-0.0008, -0.013], [-0.05, -0.013]]
    m.view("door", polygon=door).view("bolt", polygon=[[0, 0], [0.012, -0.01007], [0.012, 0.04], [0, 0.04]])
    assert fsm_dyn.load(m).digest == fsm_dyn.load("latch").digest
    assert load(text=m.to_yaml()).digest == m.mechanism().digest


@pytest.mark.parametrize("name", ALL)
def test_a_file_is_kept_and_calls_give_the_same_data(name):
    path = models.resolve(name)
    digest = load(path).digest
    model = fsm_dyn.Model.from_yaml(name)
    assert model.to_yaml() == path.read_text(encoding="utf-8")
    assert model.mechanism().digest == digest
    again = rebuilt(path)
    if path.stem == "seven_body_mechanism":  # its numbers end in zeros, unlike Python's
        digest = load(plain_data(compose(model.to_yaml(), ""))).digest
    assert again.mechanism().digest == digest
    assert load(text=again.to_yaml()).digest == digest


@pytest.mark.parametrize("name", ALL)
def test_additions_leave_every_line_of_a_file(name):
    model = fsm_dyn.Model.from_yaml(name)
    before = model.to_yaml()
    coordinate = next(iter(model.mechanism().coordinates))
    model.parameter("added_length", "3 mm").output("added", "added_length").load(
        spring={"coordinate": coordinate, "stiffness": 0}, name="added_load"
    )
    after = model.to_yaml()
    tree = compose(after, "")
    assert tree["parameters"]["added_length"].value == "3 mm"
    assert tree["outputs"]["added"].value == "added_length"
    assert tree["loads"][-1]["name"].value == "added_load"
    position = 0
    for character in before:  # nothing was taken away: the text before is a subsequence of the text after
        position = after.index(character, position) + 1
    comments = [line.split("  #")[1] for line in before.splitlines() if "  #" in line]
    assert [line.split("  #")[1] for line in after.splitlines() if "  #" in line] == comments


def test_a_value_of_a_file_is_replaced_in_its_place():
    model = fsm_dyn.Model.from_yaml("latch").parameter("k_door", "70 N/m").initial(x="1 mm")
    expected = models.resolve("latch").read_text(encoding="utf-8").replace("k_door: 60 N/m  ", "k_door: 70 N/m  ")
    assert model.to_yaml() == expected.replace("{mode: free}", "{mode: free, x: 1 mm}")
    assert model.mechanism().digest == load(text=model.to_yaml()).digest


def here() -> int:
    return inspect.currentframe().f_back.f_lineno


def test_an_error_names_the_call():
    model = fsm_dyn.Model("ball").coordinate("y", "m").point("P", from_="O", at="y*N.y")
    model.body(
        "ball",
        center="Q",
        mass="1 kg",
    )
    line = here() - 5
    with pytest.raises(ModelError, match=r"'Q'") as caught:
        model.mechanism()
    assert caught.value.where == (__file__, line, 5)


def test_an_error_in_a_file_keeps_its_line_after_lines_were_added():
    model = fsm_dyn.Model.from_yaml("latch").parameter("k", "1 N/m").contact("ramp", gap="nothing")
    line = here() - 1
    with pytest.raises(ModelError, match="nothing") as caught:
        model.mechanism()
    assert caught.value.where[:2] == (__file__, line)
    model = fsm_dyn.Model.from_yaml("latch").parameter("k", "1 N/m").parameter("alpha", "1 kg")
    with pytest.raises(ModelError) as caught:
        model.mechanism()
    assert Path(caught.value.where.file).name == "latch.yaml"
    text = models.resolve("latch").read_text(encoding="utf-8").splitlines()
    assert "tan(alpha)" in text[caught.value.where.line - 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.parameter("k", "1 N").parameter("k", "2 N"),
        lambda m: m.parameter("k", "1 N", unit="N"),
        lambda m: m.parameter("k", object()),
        lambda m: m.parameter("k", "\ud800"),
    ],
)
def test_a_call_that_cannot_be_written_is_refused_at_once(call):
    with pytest.raises(ModelError) as caught:
        call(fsm_dyn.Model("m"))
    assert caught.value.where.file == __file__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: {x: 1}\n", "a: {x: 1, k: 2}\n"),
        ("a: {}", "a: {k: 2}"),
        ("a: {x: 1,}\n", "a: {x: 1,k: 2}\n"),
        ("a: {x: 1 # one, two\n}\n", "a: {x: 1 # one, two\n, k: 2}\n"),
        ("a:\n  x: 1  # one\n  # the end\nb: 2\n", "a:\n  x: 1  # one\n  k: 2\n  # the end\nb: 2\n"),
        ("a:\n  x: |\n    text\n\nb: 2", "a:\n  x: |\n    text\n  k: 2\n\nb: 2"),
        ("a:\n  x:\n    - 1\n    - {y: 2}", "a:\n  x:\n    - 1\n    - {y: 2}\n  k: 2\n"),
        ("b: 1", "b: 1\na:\n  k: 2\n"),
        ("{b: 1}", "{b: 1, a: {k: 2}}"),
        ("a:\n  k: [1, # one\n  2]  # two\n", "a:\n  k: 2  # two\n"),
        ("a: {é: 😀, x: 1}  # €\n", "a: {é: 😀, x: 1, k: 2}  # €\n"),
    ],
)
def test_an_entry_is_written_where_its_section_ends(text, expected):
    written = with_entry(text, "a", "k", Scalar(2, "2"))
    assert written == expected
    assert compose(written, "")["a"]["k"].value == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1]", "a: [1, 2]"),
        ("a: []", "a: [2]"),
        ("a:\n- 1\n# end\n", "a:\n- 1\n- 2\n# end\n"),
        ("b: 1\n", "b: 1\na:\n  - 2\n"),
        ("{b: 1}", "{b: 1, a: [2]}"),
    ],
)
def test_an_item_is_written_at_the_end_of_its_list(text, expected):
    assert with_item(text, "a", Scalar(2, "2")) == expected


@pytest.mark.parametrize(
    "value",
    ["1.5", "true", "null", "on", "", " x", "a: b", "a #b", "#", "a, b", "-", "- x", "-g*N.y", "é 😀", 'a"\\b\n\t\x85',
     "{x}", "*", "&a", "dot(a, b)", "x < 1", "=", "0x1f", "1_000", "~", "a:", "?", "..", "..."],
)  # fmt: skip
def test_any_text_survives_being_written(value):
    tree = LocatedList([Scalar(value, value), LocatedMapping({value or "k": Scalar(value, value)}, ())], ())
    read = compose(with_setting("b: 1\n", "a", tree), "")["a"]
    assert [read[0].value, plain_data(read[1])] == [value, {value or "k": value}]
