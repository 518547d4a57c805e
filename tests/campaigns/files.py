"""Model files with damage: lines, values, expressions, numbers and characters changed at random.

The seed of a trial is made of that of its batch and its number, so that each can be made again by itself:
``python -m tests.campaigns.files SEED NUMBER`` prints the file.
"""

import contextlib
import io
import json
import random
import re
import sys
import warnings
from functools import cache

import fsm_dyn
from fsm_dyn.language.loader import load
from fsm_dyn.language.yaml import compose, plain_data
from tests.campaigns.judging import batch
from tests.campaigns.ledger import ROOT

FOLDERS = ("yaml_models", "tests/unit/language/models")
SMALL = ("bouncing_ball", "pendulum_with_stop", "stick_slip_belt", "latch", "sliding_rod", "four_bar", "rolling_disk")
READ, COMPILED = 200, 10  # trials of a batch

NUMBERS = (
    *("0", "-1", "1e308", "-1e308", "1e-308", "1e400", "nan", "inf", "0.0", "1e16", "1e150", "64", "65", "999", "1e3"),
    *("123456789012345678901234567890", "0.123456789012345678901234567890", "9" * 400, "1" + "0" * 30, "0x10", "1_000"),
    *("1e-300", "3.141592653589793238462643383279", "2**63", "-0.0", "1e15"),
)
UNITS = ("m", "kg", "deg", "rad/s", "N*m", "mm", "furlong", "m^2", "m**99", "kg*m^2", "1/s", "°", "µm", "%", "")
PIECES = (
    *NUMBERS, *UNITS,
    *("/0.0", "*0", "-l/0.0*", "**64", "**-64", "**0.5", "(", ")", "[0]", "[999]", ",", ".x", ".y", ".", "+", "*", "<"),
    *("sqrt(", "sin(", "atan2(", "min(", "dot(", "cross(", "vel(", "rate(", "if", "lambda", "__import__('os')", "and"),
    *("q", "x", "B.y", "N.x", "O", "t", "pi", "true", "\0", "\x1b[31m", "é", "𝕏", "\u202e", "\ufeff", "\ud800", "٣"),
    *("- ", ": ", "&a ", "*a", "!!python/object:os.system ", "#", "? ", "| ", "> ", "<<: ", "---", "\t", '"', "'", "{"),
    *("}", "]", "\\", "=", "==", "^", "null", "~", "yes"),
)  # fmt: skip
LEAVES = (None, True, False, 0, 1, -1, 1e308, 2**70, "", "q", "O", "1 m", "3 kg", [], {}, [[]], [None], {"": ""}, "*")


@cache
def bases(small=False):
    """Names and texts of the files that are damaged."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.yaml"))
    return [
        (path.stem, path.read_text(encoding="utf-8")) for path in paths if not small or path.stem in SMALL
    ]  # fmt: skip


@cache
def _plain(text):
    return json.dumps(plain_data(compose(text, "base")))


def places(value):
    """Every place in nested data: who holds it and under which key."""
    if isinstance(value, dict):
        yield from ((value, key) for key in value)
    elif isinstance(value, list):
        yield from ((value, at) for at in range(len(value)))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from places(item)


def edited(text, chance):
    """Lines dropped, doubled, swapped, indented, cut; pieces put in."""
    lines = text.split("\n")
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        line, column = lines[at], chance.randint(0, len(lines[at]))
        piece = chance.choice(PIECES)
        lines[at : at + 1] = chance.choice(
            (
                [], [line, line], [chance.choice(lines)], [" " * chance.randint(0, 6) + line.strip()], [line[:column]],
                [line[:column] + piece + line[column:]], [line[:column] + piece + line[column + 1 :]],
            )
        )  # fmt: skip
        lines = lines or [""]
    return "\n".join(lines)


def spoiled(text, chance):
    """Characters changed anywhere."""
    letters = list(text)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(letters))
        letters[at] = chance.choice((chr(chance.randrange(0x20, 0x7F)), chr(chance.randrange(1, 0x3000)), "", "\n"))
    return "".join(letters)


def renumbered(text, chance):
    """Numbers replaced by others, some of them monstrous."""
    found = [m for m in re.finditer(r"(?<![\w.])\d+(\.\d+)?(e-?\d+)?", text) if m.start() > 12]  # not the version
    for match in sorted(chance.sample(found, min(len(found), chance.randint(1, 3))), key=lambda m: -m.start()):
        number = chance.choice((*NUMBERS, f"{chance.uniform(-9, 9):.3g}", f"-{match[0]}", f"{match[0]}/0.0"))
        text = text[: match.start()] + number + text[match.end() :]
    return text


def restructured(text, chance):
    """Values replaced, removed, moved, renamed, or grown a hundredfold."""
    data = json.loads(_plain(text))
    for _ in range(chance.randint(1, 3)):
        where = list(places(data))
        if not where:
            break
        holder, key = chance.choice(where)
        other, another = chance.choice(where)
        match chance.randrange(7):
            case 0:
                del holder[key]
            case 1:
                holder[key] = chance.choice(LEAVES)
            case 2:
                holder[key] = json.loads(json.dumps(other[another]))
            case 3 if isinstance(holder, dict):
                holder[chance.choice((f"{key}x", key[:-1], "q", "O", "N", chance.choice(PIECES)))] = holder.pop(key)
            case 4 if isinstance(holder[key], dict) and holder[key]:
                name, value = chance.choice(list(holder[key].items()))
                holder[key] |= {f"{name}{i}": value for i in range(chance.choice((3, 30, 300)))}
            case 4 if isinstance(holder[key], list):
                holder[key] = holder[key] * chance.choice((0, 2, 100))
            case _:
                holder[key] = rewritten(holder[key], chance)
    return json.dumps(data, indent=1)


def rewritten(value, chance):
    """An expression with pieces put in, taken out, repeated, or nested."""
    text = str(value) if not isinstance(value, list | dict) else "x"
    column = chance.randint(0, len(text))
    match chance.randrange(6):
        case 0:
            return text[:column] + chance.choice(PIECES) + text[column:]
        case 1:
            return f"{text} {chance.choice('+-*/')} {chance.choice(NUMBERS)}"
        case 2:
            return "+".join([text] * chance.choice((2, 50, 3000)))
        case 3:
            depth = chance.choice((1, 50, 150, 1000))
            return chance.choice(("(", "sin(", "-(", "sqrt(")) * depth + text + ")" * depth
        case 4:
            return f"{chance.choice(NUMBERS)} {chance.choice(UNITS)}"
        case _:
            return re.sub(r"\b[A-Za-z]\w*\b", lambda m: chance.choice((m[0], m[0], "q", "x", "l", "O", "N")), text)


WAYS = (edited, spoiled, renumbered, restructured)


def file(seed, number, small=False):
    """The damaged file of a trial: the name of the model it was, how it was damaged, its text."""
    chance = random.Random(f"file {small} {seed} {number}")
    name, text = chance.choice(bases(small))
    way = chance.choice(WAYS if not small else (renumbered, renumbered, restructured, edited))
    return name, way.__name__, way(text, chance)


def read(seed, trials=READ):
    """Reading them: a mechanism, or an error that names the line."""
    return batch(seed, (_reading(seed, number) for number in range(trials)))


def _reading(seed, number):
    name, way, text = file(seed, number)
    return (lambda: load(f"{name}.yaml", text=text)), text, True, f"{number} {way} {name}"


@cache
def warm_up():
    """Have the stepper built, which may take longer than a trial."""
    compile_and_run("bouncing_ball.yaml", dict(bases())["bouncing_ball"])


def compiled(seed, trials=COMPILED):
    """Compiling and starting those that can be read."""
    warm_up()
    return batch(seed, (_compiling(seed, number) for number in range(trials)))


def _compiling(seed, number):
    name, way, text = file(seed, number, small=True)
    return (lambda: compile_and_run(f"{name}.yaml", text)), text, True, f"{number} {way} {name}"


def compile_and_run(name, text):
    """From a text to a short run."""
    mechanism = load(name, text=text)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        graph = fsm_dyn.compile(mechanism, cache=False)
        fsm_dyn.simulate(graph, 0.05, strategy="online", on_failure="return", max_steps=500)


if __name__ == "__main__":
    print(file(int(sys.argv[1]), int(sys.argv[2]), *map(bool, sys.argv[3:]))[2])  # noqa: T201
