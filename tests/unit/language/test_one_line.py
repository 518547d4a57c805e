"""A new key is one line of one file: reader, schema, digest, table, method of `Model` and components follow."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from fsm_dyn.language.loader import load

LANGUAGE = Path(__file__).parents[3] / "fsm_dyn" / "language"

#: File and the line after the new one; path of a mapping of the model that gets the key.
NEW = {
    "body": ("model.py", '    mass: Text = expression_key("its mass, required', ("bodies", "box")),
    "coordinate": ("model.py", '    meaning: str = key(TEXT, "a word for the quantity,', ("coordinates", "x")),
    "mode": ("model.py", '    states: Mapping[str, str] = others(REFERENCE, "contact",', ("modes", "flight")),
    "initial": ("model.py", '    settle: bool = key(FLAG, "whether the start', ("initial",)),
    "spring": ("body_forms.py", '    stiffness: Text = expression_key("force per length', ("loads", 0, "spring")),
    "load": ("body_forms.py", "    law: Text | None = expression_key(", ("loads", 0)),
    "damper": (
        "body_forms.py",
        '    damping: Text = expression_key("force per speed", example="3',
        ("loads", 1, "damper"),
    ),
    "torsion spring": (
        "body_forms.py",
        '    coordinate: Text = expression_key("angle, an',
        ("loads", 2, "torsion_spring"),
    ),
    "hinge": (
        "joint_forms.py",
        '    axis: tuple[AxisForm, ...] = key(ONE_OR_TWO_AXES, "of the hinge',
        ("joints", "hinge", "revolute"),
    ),
    "line": ("body_forms.py", '    along: Text = expression_key("vector along it"', ("shapes", "ground", "line")),
    "shape": ("body_forms.py", "    repeat: Repeat | None = part(", ("shapes", "ground")),
    "drawing": ("body_forms.py", "    line: tuple[tuple[Text, ...], ...] = key(_LINE,", ("view", "box")),
    "circle": ("body_forms.py", "    center: tuple[Text, ...] | None = key(PLACE", ("view", "box", "circle")),
    "tolerance": ("body_forms.py", '    value: Text | None = expression_key("the value, with', ("parameters", "m")),
    "input": ("contact_forms.py", '    unit: str = key(UNIT, "of its values, ', ("inputs", "push")),
}
LINE = '    new_key: str = key(TEXT, "a meaning", "", later=True)\n'
OF_JOINTS = '    new_key: Text | None = expression("a meaning", None, later=True)\n'
MODEL = {
    "fsm_dyn": 1,
    "name": "box",
    "parameters": {"m": {"value": "2 kg", "tolerance": ["-1 kg", "1 kg"]}},
    "coordinates": {"x": {"unit": "m"}},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"box": {"frame": "B", "center": "P", "mass": "m", "inertia": {"zz": "1 kg*m^2"}}},
    "contacts": {"floor": {"gap": "x", "compliant": {"stiffness": "3 N/m"}}},
    "inputs": {"push": {"unit": "N"}},
    "modes": {"flight": {"floor": "open"}},
    "joints": {"hinge": {"revolute": {"child": "B", "at": "P", "axis": "N.z"}}},
    "loads": [
        {"spring": {"coordinate": "x", "stiffness": "3 N/m"}},
        {"damper": {"coordinate": "x", "damping": "3 N*s/m"}},
        {"torsion_spring": {"coordinate": "hinge", "stiffness": "3 N*m"}},
    ],
    "shapes": {"ground": {"line": {"along": "N.x"}, "side": "N.y"}},
    "initial": {"x": "1 m"},
    "view": {"box": {"circle": {"radius": "0.1 m"}}},
}
SCRIPT = """
import copy, json, sys
from importlib.machinery import PathFinder
import fsm_dyn.language
assert not [name for name in sys.modules if name.startswith("fsm_dyn.language.")]
folder, model, paths = json.loads(sys.argv[1])
fsm_dyn.language.__path__ = [folder]
sys.meta_path.insert(0, PathFinder)  # before the finder of an editable installation
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.describe_keys import builder_methods, table
from fsm_dyn.language.loader import load
from fsm_dyn.language.mechanism_form import MechanismForm
from fsm_dyn.language.describe_keys import json_schema, mapping_classes
found = {"": load(model).digest, "methods": builder_methods().count('"new_key": new_key')}
found["tables"] = sum("| a meaning |" in table(cls) for cls in mapping_classes(MechanismForm))
found["schema"] = json.dumps(json_schema()).count('"description": "a meaning"')
for name, path in paths.items():
    for word in ("new_key", "new_kex"):
        given = copy.deepcopy(model)
        at = given
        for step in path:
            at = at[step]
        at[word] = "x" if name in ("hinge", "initial") else "a text"
        try:
            found[f"{name} {word}"] = load(given).digest
        except ModelError as error:
            found[f"{name} {word}"] = f"{error.message}; {error.remedy}"
print(json.dumps(found))
"""


def with_new_keys(folder):
    """Return a copy of the language in which several mappings have a key more, a line each."""
    copy = Path(shutil.copytree(LANGUAGE, folder / "language", ignore=shutil.ignore_patterns("__pycache__")))
    for file, anchor, _ in NEW.values():
        path = copy / file
        text = path.read_text(encoding="utf-8")
        assert text.count(anchor) == 1, f"{file} has no line {anchor}"
        path.write_text(
            text.replace(anchor, (OF_JOINTS if file == "joint_forms.py" else LINE) + anchor), encoding="utf-8"
        )
    return copy


def test_a_new_key_is_one_line(tmp_path):
    given = json.dumps([str(with_new_keys(tmp_path)), MODEL, {name: path for name, (_, _, path) in NEW.items()}])
    run = subprocess.run([sys.executable, "-c", SCRIPT, given], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found[""] == load(MODEL).digest
    assert (found["schema"], found["tables"]) == (len(NEW), len(NEW))
    assert found["methods"] == 8
    carried = {name for name in NEW if found[f"{name} new_key"] != found[""]}
    drawn = {"drawing", "circle", "tolerance", "input"}  # no part of a digest, or one that has values and no keys
    assert carried == NEW.keys() - drawn
    for name in NEW:
        assert len(found[f"{name} new_key"]) == 64
        assert "new_key" in found[f"{name} new_kex"]
