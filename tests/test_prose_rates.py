"""Docstrings and comments have few noun clauses: at most so many *what*, *where* and *that* per 1,000 words."""

import pytest

from tests import prose_rates


@pytest.mark.parametrize("word", prose_rates.BOUNDS)
def test_noun_clauses_become_fewer(word):
    before, worse = prose_rates.budget(), []
    for part, found in prose_rates.counts().items():
        most = prose_rates.allowed(word, found["words"], before.get(part, {}).get(word, (0, 1)))
        if found[word] > most:
            worse.append(f"{part}: {found[word]} times {word} in {found['words']} words, allowed {most:.0f}")
    assert worse == [], "write nouns and verbs; rates: python -m tests.prose_rates"


def test_count_takes_docstrings_and_comments_alone():
    source = '"""What is this?"""\n# That\ndef f(that):\n    """Where; what ``that``."""\n    return "what"  # where\n'
    assert prose_rates.count(source) == {"words": 7, "what": 2, "where": 2, "that": 1}


def test_allowed_is_the_bound_or_the_budget():
    assert prose_rates.allowed("what", 3000) == pytest.approx(2.7)
    assert prose_rates.allowed("what", 3000, (30, 3000)) == pytest.approx(30.3)
    assert prose_rates.allowed("what", 6000, (30, 3000)) == pytest.approx(60.6)
    assert prose_rates.allowed("what", 300, (30, 3000)) == 30


def test_budget_is_never_raised():
    before = {"run": {"what": [30, 3000], "that": [60, 3000]}, "live": {"what": [30, 3000]}, "page": {"what": [9, 500]}}
    found = {
        "run": {"words": 3000, "what": 31, "that": 50},
        "live": {"words": 3000, "what": 2, "that": 99},
        "page": {"words": 400, "what": 8, "that": 0},
    }
    assert prose_rates.lowered(before, found) == {
        "run": {"what": [30, 3000], "that": [50, 3000]},
        "page": {"what": [9, 500]},
    }
