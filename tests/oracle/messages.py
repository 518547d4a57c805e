"""The part ``messages``: answers to every file of ``tests/bad_input``, and to shipped models with a slip each."""

import re

import fsm_dyn
from tests.oracle.command_line import record_call

MOST = 60  # slips of a model
KEY = re.compile(r"(?<=[\s{,])([A-Za-z_][A-Za-z0-9_]*)(?=:\s)")
NUMBER = re.compile(r"(?<=[\s\[(=])\d+\.?\d*(?= [a-zA-Z])")
#: Pattern, and what becomes of one word that matches.
SLIPS = {"a misspelled key": (KEY, lambda word: word + "xq"), "a unit of none": (NUMBER, lambda word: word + " xyz")}


def record_files(items, files):
    """Add the answer of ``check`` to malformed files, by their names."""
    for path in sorted(files):
        record_call(items, path.stem, "check", path.name, folder=path.parent)


def record_slips(items, model, text, folder):
    """Add what loading a shipped model with one slip in its text says, evenly over the text."""
    for slip, (pattern, changed) in SLIPS.items():
        found = list(pattern.finditer(text))
        for match in found[:: max(1, len(found) // MOST)]:
            words = text[: match.start()] + changed(match[0]) + text[match.end() :]
            path = folder / f"{model}.yaml"
            path.write_text(words, encoding="utf-8")
            try:
                fsm_dyn.load(path)
            except fsm_dyn.FsmDynError as error:
                said = f"{type(error).__name__}: {error}"
            else:
                said = "loaded"
            items.text(f"{slip}, {match[0]} at character {match.start()}", said)
