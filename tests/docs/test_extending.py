"""The page on extensions: its changes fit the sources, its examples run, and its tables name the files it changes."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.language import models

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
PACKAGE = Path(fsm_dyn.__file__).parent
SECTIONS = dict(part.split("\n", 1) for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:])
FENCE = re.compile(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"^\| `(fsm_dyn/[\w/.]+)` \|", re.MULTILINE)
#: An editable install finds the package before the path does; child processes are started with this too.
FROM_PATH = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable")]
"""
#: Tables with files that only the package itself changes, as the example registers what it adds.
REGISTERED = {"An integrator", "An export target"}


def fences(text, language):
    """Return the titles and texts of the blocks in a language."""
    return [(title, body) for kind, title, body in FENCE.findall(text) if kind == language]


def pieces(text):
    """Yield file, lines there and lines that take their place, of the changes in a section."""
    for _, block in fences(text, "diff"):
        for part in re.split(r"^--- ", block, flags=re.MULTILINE)[1:]:
            path, *hunks = re.split(r"^@@\n", part, flags=re.MULTILINE)
            for hunk in hunks:
                lines = [line or " " for line in hunk.removesuffix("\n").split("\n")]
                old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in signs) for signs in (" -", " +"))
                yield path.strip(), old, new


def changed(text, folder):
    """Carry out the changes of a section in a copy of the package."""
    for path, old, new in pieces(text):
        file = folder / path
        there = f"\n{file.read_text(encoding='utf-8')}" if file.exists() else "\n"
        assert not old or there.count(f"\n{old}") == 1, f"{path} has not once:\n{old}"
        file.write_text(there.replace(f"\n{old}", f"\n{new}", 1)[1:] if old else new, encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """Return a folder with the package and the changes of all sections: they do not depend on each other."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(PACKAGE, folder / "fsm_dyn", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(models.folder(), folder / "yaml_models")
    library = Path(find_spec("fsm_dyn.runtime._fsm_runtime").origin)
    shutil.copy(library, folder / "fsm_dyn" / "runtime")
    (folder / "sitecustomize.py").write_text(FROM_PATH, encoding="utf-8")
    for text in SECTIONS.values():
        changed(text, folder)
    return folder


def test_ten_changes_are_described():
    rows = re.findall(r"^\| \[([\w ]+)\]\(#([\w-]+)\) \|", PAGE, re.MULTILINE)
    assert len(rows) == 10
    assert [name.lower().replace(" ", "-") for name in SECTIONS] == [anchor for _, anchor in rows]
    assert all(fences(text, "python") for text in SECTIONS.values())


@pytest.mark.parametrize("name", SECTIONS)
def test_tables_name_the_files_that_change(name):
    named = TABLE.findall(SECTIONS[name])
    assert len(named) <= 3
    if name in REGISTERED:
        assert all((ROOT / path).is_file() for path in named)
    else:
        assert named == list(dict.fromkeys(path for path, old, _ in pieces(SECTIONS[name]) if old))


@pytest.mark.parametrize("name", SECTIONS)
def test_an_example_runs(name, extended, tmp_path):
    whole = []
    for title, text in fences(SECTIONS[name], "python"):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        else:
            whole.append(text)
    (tmp_path / "example.py").write_text(
        f"import fsm_dyn\nassert fsm_dyn.__file__.startswith({str(extended)!r})\n" + "".join(whole), encoding="utf-8"
    )
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(extended), str(tmp_path)]), "XDG_CACHE_HOME": str(extended),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_the_panel_shows_the_time(extended):
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    panel = extended / "fsm_dyn" / "page" / "static" / "js" / "clock.js"
    script = f"""
        const clock = {{ textContent: "" }};
        globalThis.document = {{ getElementById: (id) => (id === "clock" ? clock : null) }};
        import("{panel.as_uri()}").then(({{ Clock }}) => {{
          new Clock().frame({{ t: 1.5 }});
          console.log(clock.textContent);
        }});
    """
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("1.50 s", 0), done.stderr


def test_files_with_a_case_for_each_class_of_shapes_are_named():
    """An arc is a shape whose class has a case in each of them."""
    cases = {
        f"fsm_dyn/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*.py")
        if "ArcShape" in path.read_text(encoding="utf-8")
    }
    assert cases <= set(re.findall(r"`(fsm_dyn/[\w/.]+)`", SECTIONS["A shape"]))
