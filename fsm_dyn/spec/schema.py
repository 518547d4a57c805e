"""The JSON Schema of model files, for editors that check while one types."""

from __future__ import annotations

from typing import Any

from fsm_dyn.spec.forms.mechanism import FORMAT, MechanismForm
from fsm_dyn.spec.older_spellings import KEYS


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a model file.

    It knows the keys and the forms of values; expressions and references are checked by
    `load` only.
    """
    schema = MechanismForm.model_json_schema(by_alias=True)
    for key in KEYS:
        properties = (schema["$defs"][key.form] if key.form else schema)["properties"]
        properties[key.old] = {**properties[key.new], "deprecated": True, "description": f"now `{key.new}`"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"fsm_dyn model, format {FORMAT}",
        **{key: _simplified(value) for key, value in schema.items() if key != "title"},
    }


def _simplified(schema: Any) -> Any:
    """Return a schema without the markers of optional keys: "or null", "default null"."""
    if isinstance(schema, list):
        return [_simplified(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _simplified(value) for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    if "patternProperties" in kept:
        kept["additionalProperties"] = False  # the pattern is that of names; nothing else may be a key
    if kept.get("default", ...) is None:
        del kept["default"]
        options = [option for option in kept.pop("anyOf", []) if option != {"type": "null"}]
        kept |= options[0] if len(options) == 1 else {"anyOf": options} if options else {}
    return kept
