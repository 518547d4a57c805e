"""The JSON Schema accepts the same models as the loader, and knows the words of the language."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fsm_dyn.language.describe_keys import json_schema, mapping_classes, starter
from fsm_dyn.language.mechanism_form import MechanismForm
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, Tree, compose

ROOT = Path(__file__).parents[3]
MODELS = [*sorted((ROOT / "yaml_models").glob("*.yaml")), *sorted((Path(__file__).parent / "models").glob("*.yaml"))]
SCHEMA = json_schema()

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def accepts(schema: Any, value: Any) -> bool:
    """Judge by the few words of JSON Schema in use here; an unknown word fails the test."""
    known = {"type", "properties", "additionalProperties", "required", "items", "minItems", "maxItems", "uniqueItems"}
    known |= {
        "anyOf",
        "oneOf",
        "$ref",
        "enum",
        "const",
        "pattern",
        "maxLength",
        "default",
        "description",
        "patternProperties",
    }
    known |= {"minimum", "maximum", "examples", "oneOf"}
    assert set(schema) <= known | {"$schema", "title", "$defs"}, schema
    if "$ref" in schema:
        return accepts(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], value)
    if "anyOf" in schema and not any(accepts(option, value) for option in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(accepts(option, value) for option in schema["oneOf"]) != 1:
        return False
    if ("const" in schema and value != schema["const"]) or ("enum" in schema and value not in schema["enum"]):
        return False
    types = schema.get("type", [])
    if types and not any(isinstance(value, TYPES[t]) for t in ([types] if isinstance(types, str) else types)):
        return False
    if types == "integer" and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return False
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None and len(value) <= schema.get("maxLength", 1e9)
    if isinstance(value, list):
        in_bounds = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1e9)
        return in_bounds and all(accepts(schema.get("items", {}), item) for item in value)
    if isinstance(value, dict):
        return accepts_mapping(schema, value)
    return True


def accepts_mapping(schema: Any, value: dict[str, Any]) -> bool:
    if not set(schema.get("required", [])) <= set(value):
        return False
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    patterns = schema.get("patternProperties", {})
    for key, item in value.items():
        pattern = next((p for p in patterns if re.search(p, key)), None)
        if pattern is not None:
            if not accepts(patterns[pattern], item):
                return False
        elif key in properties:
            if not accepts(properties[key], item):
                return False
        elif others is False or (others is not True and not accepts(others, item)):
            return False
    return True


def plain(tree: Tree) -> Any:
    if isinstance(tree, LocatedMapping):
        return {str(word): plain(value) for word, value in tree.items()}
    return [plain(item) for item in tree] if isinstance(tree, LocatedList) else tree.value


@pytest.mark.parametrize("path", MODELS, ids=[path.stem for path in MODELS])
def test_models_are_valid(path: Path) -> None:
    assert accepts(SCHEMA, plain(compose(path.read_text(), path.name)))


def test_starter_is_valid() -> None:
    assert accepts(SCHEMA, plain(compose(starter("new"), "new")))


@pytest.mark.parametrize(
    "change",
    [
        {"fsm_dyn": 2},
        {"cordinates": {}},
        {"bodies": {"b": {"center": "P"}}},
        {"bodies": {"b": {"center": "P", "mass": [1]}}},
        {"contacts": {"c": {"gap": "y", "restitution_law": "hooke"}}},
        {"loads": {}},
        {"transitions": [{"to": "a"}]},
        {"name": "two words"},
        {"speeds": {"1st": "rate(x)"}},
        {"frames": {"B": {"rotate": {"z": None}}}},
    ],
)
def test_mistakes_are_not(change: dict[str, Any]) -> None:
    assert not accepts(SCHEMA, {"fsm_dyn": 1, "bodies": {"b": {"center": "O", "mass": 1}}, **change})


def test_is_json_and_has_every_section() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {"fsm_dyn", "parameters", "contacts", "transitions", "view"} <= set(SCHEMA["properties"])
    assert SCHEMA["required"] == ["fsm_dyn", "bodies"]
    assert {"use", "variants"} <= set(SCHEMA["properties"])
    assert "from" in SCHEMA["$defs"]["TransitionForm"]["properties"]


def test_every_key_is_described_and_has_an_example_that_fits() -> None:
    for cls in (MechanismForm, *mapping_classes(MechanismForm)):
        schema = cls.schema()
        for name, key in (schema.get("anyOf") or [schema])[-1]["properties"].items():
            assert key["description"], (cls, name)
            assert all(accepts({k: v for k, v in key.items() if k != "examples"}, item) for item in key["examples"])
