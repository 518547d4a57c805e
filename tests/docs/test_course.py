"""The course: each exercise has a right answer, a wrong one is found; every prediction has an answer."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import fsm_dyn
from fsm_dyn.language import models

COURSE = Path(__file__).parents[2] / "docs" / "course"
EXERCISES = sorted((COURSE / "exercises").glob("*.txt"))
STEPS = sorted(COURSE.glob("[1-6]_*.md"))


@pytest.mark.parametrize("file", EXERCISES, ids=lambda file: file.stem)
def test_answers_are_right_and_twice_the_answer_is_wrong(file):
    model, mode = file.stem.split(".")
    graph = fsm_dyn.compile(model)
    for equation in file.read_text(encoding="utf-8").splitlines():
        assert fsm_dyn.check_equation(graph, mode, equation).correct, equation
        left, right = equation.split("=")
        wrong = fsm_dyn.check_equation(graph, mode, f"{left} = 2*({right})")
        assert not wrong.correct
        assert {finding.kind for finding in wrong.findings} <= {"factor"}


def test_exercises_are_listed():
    text = (COURSE / "exercises.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \|", text, re.MULTILINE)
    assert sorted(".".join(pair) for pair in listed) == [file.stem for file in EXERCISES]
    assert len({model for model, _ in listed}) >= 9


@pytest.mark.parametrize("page", STEPS, ids=lambda page: page.stem)
def test_predictions_have_answers_and_exercises_are_checked(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("**Predict.**") >= 2 or page.stem.startswith("2_")
    assert text.count("**Predict.**") >= text.count("??? success") >= text.count("**Predict.**") - 1 >= 0
    assert "**Exercise.**" in text
    assert "check_equation" in text
    assert len(STEPS) == 6


@pytest.mark.parametrize("page", STEPS, ids=lambda page: page.stem)
def test_runs_of_the_course_are_embedded_pages_of_shipped_models(page, monkeypatch):
    monkeypatch.syspath_prepend(COURSE.parent / "hooks")
    playable = importlib.import_module("playable")
    text = page.read_text(encoding="utf-8")
    named = playable.MARK.findall(text)
    assert set(named) <= set(models.names())
    assert bool(named) is not page.stem.startswith("2_")
    shown = playable.on_page_markdown(text, SimpleNamespace(file=SimpleNamespace(src_uri=f"course/{page.name}")))
    assert re.findall(r'<iframe src="\.\./play/(\w+)\.html"', shown) == named
    assert "<!-- play" not in shown


@pytest.mark.parametrize(
    ("page", "model", "mode", "equation"),
    [
        ("1_", "rolling_disk", "rolling", "theta_dot = r*u2"),
        ("2_", "shopping_cart", "rolling", "q4_dot = u3"),
        ("4_", "shopping_cart", "rolling", "u3 = s4/L3*u1 + L2*c4/L3*u2"),
        ("5_", "spherical_wrist", "motion", "u3' = (T3 + (I2 - I1)*u1*u2)/I3"),
        ("6_", "rolling_disk", "flying", "F3 = lift - m*g"),
    ],
)
def test_the_mistake_that_an_exercise_suggests_is_found(page, model, mode, equation):
    (path,) = (item for item in STEPS if item.stem.startswith(page))
    right = re.findall(r'check_equation\(\w+, "\w+", (?:"([^"]+)"|mine)\)', path.read_text(encoding="utf-8"))
    graph = fsm_dyn.compile(model)
    assert all(fsm_dyn.check_equation(graph, mode, item).correct for item in right if item)
    assert not fsm_dyn.check_equation(graph, mode, equation).correct
