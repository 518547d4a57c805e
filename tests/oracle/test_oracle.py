"""The oracle finds what it is for: a rounding, a message, a name, a file; and nothing between equal recordings."""

import json

import numpy as np
import pytest

from tests.oracle.comparing import differences, report
from tests.oracle.recorder import record_part
from tests.oracle.recording import Items, write

AUTOMATON = {"format": 3, "modes": [{"name": "open", "guards": [1, 2.5]}, {"name": "closed", "guards": []}]}
ROWS = np.column_stack([np.linspace(0.0, 1.0, 40), np.sin(np.linspace(0.0, 1.0, 40))])
TEXT = "".join(f"line {number}\n" for number in range(300))


def recorded(folder, text=TEXT, automaton=AUTOMATON, rows=ROWS, columns=("t", "y"), code=0, **more):
    for model in ("latch", "ratchet"):
        items = Items(folder)
        items.text("check stdout", text)
        items.data("saved automaton", automaton)
        items.numbers("dopri5 columns", rows, columns)
        items.value("exit code", code)
        items.value("not a number", float("nan"))
        items.content("kernel", bytes([255, *range(20)]))
        for name, value in more.items():
            items.value(name, value)
        write(folder, model, "all", items)
    return folder


@pytest.fixture
def base(tmp_path):
    return recorded(tmp_path / "base")


def test_equal_recordings_have_no_differences(base, tmp_path):
    assert differences(base, recorded(tmp_path / "again")) == []


def test_a_bit_of_one_row_is_found(base, tmp_path):
    rows = ROWS.copy()
    rows[17, 1] = np.nextafter(rows[17, 1], 1.0)
    first, second = differences(base, recorded(tmp_path / "other", rows=rows))
    assert first.where.startswith("row 17, y, largest difference ")
    assert (float(first.before), float(first.after)) == (ROWS[17, 1], rows[17, 1])
    assert (first.model, second.model) == ("latch", "ratchet")


def test_a_sign_of_zero_is_found(base, tmp_path):
    rows = ROWS.copy()
    rows[0, 0] = -0.0
    assert differences(base, recorded(tmp_path / "other", rows=rows))[0].after == "-0.0"


@pytest.mark.parametrize(
    ("change", "where", "before", "after"),
    [
        ({"text": TEXT.replace("line 250", "row 250")}, "line 251", "line 250", "row 250"),
        ({"text": TEXT + "more\n"}, "line 301", "", "more"),
        (
            {"automaton": {**AUTOMATON, "modes": [AUTOMATON["modes"][0], {"name": "shut", "guards": []}]}},
            ".modes[1].name", "'closed'", "'shut'",
        ),
        ({"automaton": {**AUTOMATON, "format": 4}}, ".format", "3", "4"),
        ({"automaton": {"modes": AUTOMATON["modes"], "format": 3}}, " order of keys", None, None),
        ({"rows": ROWS[:-1]}, "rows", "40", "39"),
        ({"columns": ("t", "z")}, "columns", "t y", "t z"),
        ({"code": 2}, "", "0", "2"),
        ({"extra": 1}, "", "(absent)", "1"),
    ],
    ids=["word", "end", "name", "format", "order", "fewer", "column", "value", "item"],
)  # fmt: skip
def test_the_first_difference_is_located(base, tmp_path, change, where, before, after):
    found = differences(base, recorded(tmp_path / "other", **change))
    assert [each.model for each in found] == ["latch", "ratchet"]
    assert found[0].where == where
    if before is not None:
        assert (found[0].before, found[0].after) == (before, after)


def test_equal_differences_are_reported_together(base, tmp_path):
    said = report(differences(base, recorded(tmp_path / "other", code=2)))
    assert said.splitlines()[:3] == ["2 times", "    - 0", "    + 2"]
    assert said.endswith("all: 2 differences in 2 models\n2 differences")


def test_a_part_that_is_missing_is_a_difference(base, tmp_path):
    other = recorded(tmp_path / "other")
    (other / "latch.all.json").unlink()
    assert [each.after for each in differences(base, other)] == ["(absent)"]


def test_parts_of_a_model_are_recorded_alike_again(tmp_path):
    root = tmp_path / "root"
    for side in ("first", "second"):
        for part in ("artefacts", "runs"):
            record_part(tmp_path / side, root, "bouncing_ball", part)
    assert differences(tmp_path / "first", tmp_path / "second") == []
    runs = json.loads((tmp_path / "first" / "bouncing_ball.runs.json").read_text())
    for variant in ("dopri5", "rk4", "radau", "bdf", "moreau_jean", "online", "resumed", "simulator 1"):
        assert runs[f"{variant} columns"]["shape"][0] > 4, variant
    assert runs["resumed columns"]["digest"] == runs["dopri5 columns"]["digest"]
    assert len({runs[f"{variant} columns"]["digest"] for variant in ("dopri5", "rk4", "moreau_jean")}) == 3
