"""Changes of a model file that may not change its motion: another order of shapes and corners, and the mirror.

They work on the text of a model as a mapping.  What only names things (modes, views, outputs) is left out, as the names
of contacts follow the order of shapes, and so are requirements, which use these names.  The mirror x -> -x of a plane
model turns the x and z axes of every frame about, so that coordinates keep their meaning and values.
"""

from __future__ import annotations

import copy
import re
from pathlib import Path

import yaml

from fsm_dyn.automaton.compilation import load

MODELS = Path(__file__).parents[2] / "yaml_models"
LEFT_OUT = ("modes", "outputs", "requirements", "names", "phases", "view", "scenarios", "drives", "variants", "ports")


def mapping(name):
    """Return a shipped model as a mapping, its components written out."""
    model = _with_on(yaml.safe_load(load(MODELS / f"{name}.yaml").text))
    return _bare(model)


def _with_on(tree):
    """Give the key ``on`` back, which YAML 1.1 takes for true."""
    if isinstance(tree, dict):
        return {"on" if key is True else key: _with_on(value) for key, value in tree.items()}
    return [_with_on(value) for value in tree] if isinstance(tree, list) else tree


def _bare(model):
    model = {key: value for key, value in model.items() if key not in LEFT_OUT}
    if isinstance(model.get("initial"), dict):
        model["initial"] = {key: value for key, value in model["initial"].items() if key != "mode"}
    for use in model.get("use", {}).values():
        use["model"] = _bare(use["model"])
    return model


def swapped(model):
    """Return a model with the two shapes of every contact, and the shapes themselves, in the other order."""
    model = copy.deepcopy(model)
    for contact in model.get("contacts", {}).values():
        if contact.get("between", "all") != "all":
            contact["between"] = contact["between"][::-1]
    model["shapes"] = dict(reversed(model["shapes"].items()))
    return model


def renumbered(model):
    """Return a model with the corners of its polygons numbered from the next one on, its segments the other way."""
    model = copy.deepcopy(model)
    for shape in _shapes(model):
        if "polygon" in shape:
            corners = shape["polygon"]["points"]
            shape["polygon"]["points"] = corners[1:] + corners[:1]
        if "segment" in shape:
            key = "points" if "points" in shape["segment"] else "ends"
            shape["segment"][key] = shape["segment"][key][::-1]
    return model


def mirrored(model):
    """Return a plane model seen in the mirror, with the same coordinates."""
    model = copy.deepcopy(model)
    for shape in _shapes(model):
        for outline in (shape.get("polygon"), shape.get("segment")):
            if outline and "points" in outline:
                outline["points"] = [[f"-({x})", y] for x, y in outline["points"]]
        if "arc" in shape:
            shape["arc"]["angles"] = [f"180 deg - ({angle})" for angle in reversed(shape["arc"]["angles"])]
    for part in [model, *(use["model"] for use in model.get("use", {}).values())]:
        for frame in part.get("frames", {}).values():
            frame["rotate"] = {axis: f"-({angle})" for axis, angle in frame["rotate"].items()}
    return _turned(model)


def _turned(tree):
    if isinstance(tree, dict):
        return {key: _turned(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_turned(value) for value in tree]
    return re.sub(r"\b([A-Z]\w*\.[xz])\b", r"(-\1)", tree) if isinstance(tree, str) else tree


def _shapes(model):
    return [
        shape
        for part in (model, *(use["model"] for use in model.get("use", {}).values()))
        for shape in part.get("shapes", {}).values()
    ]
