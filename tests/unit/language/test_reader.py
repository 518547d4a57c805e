"""YAML text to a tree: the core schema of YAML 1.2, places, aliases."""

import math

import pytest
import yaml

from fsm_dyn.core.errors import Location, ModelError
from fsm_dyn.language import yaml as reader
from fsm_dyn.language.yaml import (
    LocatedList,
    LocatedMapping,
    LocatedStr,
    Scalar,
    Tree,
    compose,
    describe,
    resolve,
    scalars,
)


def section(text: str) -> LocatedMapping:
    tree = compose(text, "model.yaml")
    assert isinstance(tree, LocatedMapping)
    return tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("1.5E-2", 0.015),
        (".5", 0.5),
        ("5.", 5.0),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        *((word, word) for word in ("on", "off", "yes", "no", "y", "n", "12:30", "1_000", "2001-01-01", "0b1", "inf")),
        *((word, word) for word in ("1e", "e3", ".", "+", "tRue", "=", "<<", "- 1", "0x", "1.2.3", "+.nan")),
    ],
)
def test_core_schema(text: str, value: object) -> None:
    found = resolve(text)
    assert found == value
    assert type(found) is type(value)


def test_not_a_number() -> None:
    found = resolve(".nan")
    assert isinstance(found, float)
    assert math.isnan(found)


def test_a_number_of_a_thousand_digits_stays_text() -> None:
    assert resolve("1" * 10_000) == "1" * 10_000


@pytest.fixture(params=["libyaml", "python"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose with libyaml and with PyYAML's own parser: an installation may lack the first."""
    if request.param == "python":
        monkeypatch.setattr(reader, "_Loader", yaml.SafeLoader)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")


@pytest.mark.usefixtures("loader")
class TestTree:
    def test_places_of_keys_and_values(self) -> None:
        tree = section("a: 1\nb:\n  c: {d: x, e: [1, 'two']}\n")
        keys = list(tree)
        assert [key.where for key in keys] == [Location("model.yaml", 1, 1), Location("model.yaml", 2, 1)]
        assert tree[LocatedStr("a")] == Scalar(1, "1", Location("model.yaml", 1, 4))
        inner = tree[LocatedStr("b")]
        assert isinstance(inner, LocatedMapping)
        assert inner.where == Location("model.yaml", 3, 3)
        flow = inner[LocatedStr("c")]
        assert isinstance(flow, LocatedMapping)
        assert flow.where == Location("model.yaml", 3, 6)
        assert [key.where.column for key in flow] == [7, 13]
        items = flow[LocatedStr("e")]
        assert isinstance(items, LocatedList)
        assert items[1] == Scalar("two", "two", Location("model.yaml", 3, 20))

    def test_quoted_scalars_are_texts(self) -> None:
        tree = section("a: '1'\nb: \"true\"\nc: |\n  2\n")
        assert [value.value for value in scalars(tree)][::-1] == ["1", "true", "2\n"]

    def test_keys_are_texts(self) -> None:
        assert list(section("1: a\ntrue: b\non: c\nnull: d\n")) == ["1", "true", "on", "null"]

    def test_aliases_are_values(self) -> None:
        tree = section("a: &v {b: 1}\nc: *v\nd: *v\n")
        assert tree[LocatedStr("a")] is tree[LocatedStr("c")] is tree[LocatedStr("d")]

    def test_an_anchor_may_be_given_again(self) -> None:
        assert [value.value for value in scalars(section("a: &v 1\nb: &v 2\nc: *v\n"))][::-1] == [1, 2, 2]

    def test_directive_and_comments(self) -> None:
        assert section("%YAML 1.1\n---\n# c\na: on  # d\n...\n")[LocatedStr("a")] == Scalar(
            "on", "on", Location("model.yaml", 4, 4)
        )

    @pytest.mark.parametrize(
        ("text", "line", "says"),
        [
            ("a: [1", None, "not valid YAML"),
            ("a: 1\na: 2", 2, "is defined twice"),
            ("a: !!str 1", 1, "tags are not allowed"),
            ("a: ! 1", None, None),
            ("a: 1\n---\nb: 1", 2, "a second document"),
            ("x: {a: f(b, c)}", 1, "cut in two by its comma"),
            ("a: *b", 1, "has no anchor"),
            ("a: &a\n  b: *a", 2, "inside its own value"),
            ("a:\n\tb: 1", 2, "spaces, not tabs"),
            ("k" * 201 + ": 1", 1, "too long"),
            ("a: \x07", None, "may not stand in a text file"),
        ],
    )
    def test_refused(self, text: str, line: int | None, says: str | None) -> None:
        with pytest.raises(ModelError) as caught:
            compose(text, "model.yaml")
        if says is not None:
            assert says in str(caught.value)
        if line is not None:
            assert caught.value.where.line == line

    def test_aliases_count_as_often_as_they_are_used(self) -> None:
        row = "[" + ", ".join("1" * 99) + "]"
        compose(f"a: &a {row}\nb: [{', '.join(['*a'] * 500)}]\n", "model.yaml")
        with pytest.raises(ModelError, match="too many values"):
            compose(f"a: &a {row}\nb: [{', '.join(['*a'] * 700)}]\n", "model.yaml")

    def test_depth(self) -> None:
        compose("[" * 17 + "]" * 17, "model.yaml")
        for deep in ("[" * 18 + "]" * 18, "- " * 18 + "a", "{a: " * 18 + "}" * 18, "[" * 100_000):
            with pytest.raises(ModelError, match="nested too deeply"):
                compose(deep, "model.yaml")


def test_descriptions() -> None:
    def found(text: str) -> str:
        tree: Tree = compose(text, "model.yaml")
        return describe(tree)

    assert found("~") == "nothing"
    assert found("[1, 2]") == "a list of 2"
    assert found("{a: 1}") == "a mapping with a"
    assert found("{a: 1, b: 2, c: 3, d: 4, e: 5}") == "a mapping with a, b, c, d, ..."
    assert found("x" * 100) == "x" * 57 + "..."
