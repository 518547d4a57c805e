"""Rates of the words that noun clauses are made of: ``python -m tests.prose_rates [--lower-budget]``.

The docstrings and comments of the Python files of the package are read, by its parts.
"""

import ast
import collections
import functools
import io
import json
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = ROOT / "tests" / "prose_budget.json"

#: Most uses per 1,000 words.
BOUNDS = {"what": 0.9, "where": 2.0, "that": 7.5}


def prose_of(source):
    """Yield the docstrings and comments of a Python source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def count(source):
    """Return the number of words of the prose of a source under ``"words"``, and that of every word of ``BOUNDS``."""
    spans = re.compile(r"``[^`]*``|`[^`]*`")  # of code: names, not prose
    words = [word for text in prose_of(source) for word in re.findall(r"[a-z']+", spans.sub(" ", text.lower()))]
    return collections.Counter({"words": len(words), **{word: words.count(word) for word in BOUNDS}})


@functools.cache
def counts():
    """Return the numbers of :func:`count` for every part of the package; its single modules are part ``"fsm_dyn"``."""
    found = collections.defaultdict(collections.Counter)
    package = ROOT / "fsm_dyn"
    for path in sorted(package.rglob("*.py")):
        pieces = path.relative_to(package).parts
        found[pieces[0] if len(pieces) > 1 else "fsm_dyn"] += count(path.read_text(encoding="utf-8"))
    return dict(found)


def budget():
    """Return the uses that parts above a bound may still have: ``{part: {word: [uses, words of the part]}}``."""
    return json.loads(BUDGET.read_text(encoding="utf-8"))


def allowed(word, number, before=(0, 1)):
    """Return the most uses of a word in a part of ``number`` words.

    A part above its bound keeps to the rate of the budget, with a tenth per 1,000 words for single sentences, or to its
    number of uses: fewer other words are no worse prose.
    """
    uses, words = before
    return max(BOUNDS[word] * number / 1000, uses, uses * number / words + 1e-4 * number)


def lowered(before, found):
    """Return a budget with the present numbers where they are fewer and above the bound; none is raised."""
    lower = {}
    for part, words in before.items():
        for word, (uses, number) in words.items():
            present, size = found[part][word], found[part]["words"]
            if present > BOUNDS[word] * size / 1000:
                better = present <= uses and present * number <= uses * size
                lower.setdefault(part, {})[word] = [present, size] if better else [uses, number]
    return lower


def main():
    """Print the uses per 1,000 words of every part, or lower the budget to what there is."""
    if "--lower-budget" in sys.argv:
        entries = (
            f'  "{part}": {json.dumps(words, sort_keys=True)}'
            for part, words in sorted(lowered(budget(), counts()).items())
        )
        BUDGET.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")
        return
    everything = sum(counts().values(), collections.Counter())
    for part, found in [*sorted(counts().items()), ("all", everything)]:
        rates = "".join(f"{word:>7} {1000 * found[word] / found['words']:5.2f}" for word in BOUNDS)
        sys.stdout.write(f"{part:12}{found['words']:8} words{rates}\n")


if __name__ == "__main__":
    main()
