"""Whatever is given to the loader, it answers with a mechanism or with an error of this package."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsm_dyn.core.errors import ExpressionError, InputError, ModelError
from fsm_dyn.language.describe_keys import mapping_classes
from fsm_dyn.language.expression_tree import FUNCTIONS, fold, free_names
from fsm_dyn.language.expressions import FloatAlgebra, parse
from fsm_dyn.language.keyed import keys_of
from fsm_dyn.language.loader import load
from fsm_dyn.language.mechanism_form import MechanismForm
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, Tree, compose

ROOT = Path(__file__).parents[2]
MODELS = [
    path.read_text(encoding="utf-8")
    for folder in ("yaml_models", "tests/unit/language/models")
    for path in sorted((ROOT / folder).glob("*.yaml"))
]

#: The same 150 examples in every run; with FSM_DYN_FUZZ=20000 in the environment, as many new ones.
EXAMPLES = os.environ.get("FSM_DYN_FUZZ")
quick = settings(
    max_examples=int(EXAMPLES or 150),
    deadline=None,
    derandomize=EXAMPLES is None,
    suppress_health_check=list(HealthCheck),
)


KEYS = sorted(
    {key for cls in (MechanismForm, *mapping_classes(MechanismForm)) for key in keys_of(cls)}
    | {"z", "static", "kinetic", "linear", "steps", "expression", "mode", "settle", "polygon", "circle", "text", "line"}
    | {"x", "q", "B", "P", "m", "ball", "N", "O", "t", "*", "_", "a.b", "", "e0", "only_listed"}
)
WORDS = sorted({"x", "q", "u", "m", "B", "P", "N", "O", "t", "lip", "armed"} | set(FUNCTIONS))
PIECES = [
    *WORDS,
    *("2", "0.5", "1e3", ".5", "0", "1e400", "3 kg", "4 m/s^2", "N", "deg", "m**2", "inf", "pi", "true"),
    *("+", "-", "*", "/", "**", "^", "<", ">=", "==", "=", "!", "(", ")", "[", "]", ",", ".", ".x", "and", "or", "not"),
    *("lambda", "if", "else", "__import__", "'", '"', ":", "{", "}", "\\", "\n", "\t", "µ", "°", "é", "\0", "…"),
]

expression_texts = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.lists(
    st.sampled_from(PIECES), max_size=14
).map("".join)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*KEYS, "1 m", "dot(vel(P), B.x)", "q*N.x", "ball closes", "zxz", "inf"])
    | expression_texts
)
keys = st.sampled_from(KEYS) | st.text(max_size=4)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


def load_or_refuse(source: Any = None, **more: Any) -> None:
    try:
        mechanism = load(source, **more)
    except InputError:
        return
    assert mechanism.digest


@given(st.dictionaries(keys, values, max_size=8))
@quick
def test_mappings(model: dict[str, Any]) -> None:
    load_or_refuse({"fsm_dyn": 1, **model})


@given(st.dictionaries(st.sampled_from([item.name for item in fields(Mechanism)]), values, max_size=8))
@quick
def test_sections(sections: dict[str, Any]) -> None:
    load_or_refuse(
        {"fsm_dyn": 1, "coordinates": {"x": "m"}, "bodies": {"b": {"center": "O", "mass": "1 kg"}}, **sections}
    )


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
@quick
def test_texts(text: str) -> None:
    load_or_refuse(text=text)


@given(st.sampled_from(MODELS), st.data())
@quick
def test_edited_lines(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        edit = data.draw(st.sampled_from(["drop", "double", "swap", "indent", "cut", "insert", "replace"]))
        line = lines[at]
        column = data.draw(st.integers(0, len(line)))
        piece = data.draw(
            st.sampled_from([*PIECES, "- ", ": ", "&a ", "*a", "!!", "#", "? ", "| ", "> ", "<<: ", "---"])
        )
        lines[at : at + 1] = {
            "drop": [],
            "double": [line, line],
            "swap": [data.draw(st.sampled_from(lines))],
            "indent": [" " * data.draw(st.integers(0, 6)) + line.strip()],
            "cut": [line[:column]],
            "insert": [line[:column] + piece + line[column:]],
            "replace": [line[:column] + piece + line[column + 1 :]],
        }[edit]
        lines = lines or [""]
    load_or_refuse(text="\n".join(lines))


@given(st.sampled_from(MODELS), st.data())
@quick
def test_replaced_values(text: str, data: st.DataObject) -> None:
    model = plain(compose(text, "model"))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(model)))
        match data.draw(st.sampled_from(["replace", "remove", "rename"])):
            case "replace":
                holder[key] = data.draw(values)
            case "remove":
                del holder[key]
            case "rename" if isinstance(holder, dict):
                holder[data.draw(keys)] = holder.pop(key)
        if not places(model):
            break
    load_or_refuse(model)


def plain(tree: Tree) -> Any:
    if isinstance(tree, LocatedMapping):
        return {str(word): plain(value) for word, value in tree.items()}
    return [plain(item) for item in tree] if isinstance(tree, LocatedList) else tree.value


def places(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        own = [(value, key) for key in value]
        return own + [place for item in value.values() for place in places(item)]
    if isinstance(value, list):
        return [(value, at) for at in range(len(value))] + [place for item in value for place in places(item)]
    return []


@given(expression_texts | st.text())
@quick
def test_expressions(text: str) -> None:
    try:
        node = parse(text)
    except ExpressionError:
        return
    try:
        value = fold(node, FloatAlgebra(dict.fromkeys(free_names(node), 0.5)))
    except ExpressionError:
        return
    assert isinstance(value, float)


@given(expression_texts)
@quick
def test_expressions_in_a_model(text: str) -> None:
    load_or_refuse(
        {
            "fsm_dyn": 1,
            "parameters": {"m": "3 kg", "lip": [1, 2]},
            "coordinates": {"x": "m", "q": "rad"},
            "frames": {"B": {"rotate": {"z": "q"}}},
            "points": {"P": {"from": "O", "at": "x*B.x"}},
            "bodies": {"ball": {"center": "P", "mass": "m"}},
            "memory": {"armed": True},
            "outputs": {"out": text},
        }
    )


@pytest.mark.parametrize("text", ["-" * 3000 + "x", "not " * 900 + "x", "x**" * 900 + "x", "x+" * 1500 + "x"])
def test_long_chains_are_refused(text: str) -> None:
    with pytest.raises(ModelError):
        parse(text)
