"""The course: each exercise has a right answer, a wrong one is found; every prediction has an answer."""

import re
from pathlib import Path

import pytest

import fsm_dyn

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
