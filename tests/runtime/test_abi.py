"""``abi.py`` agrees with the headers, by the generator and by the compiler; Python keeps none of their numbers."""

import ast
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.run.outcomes import OUTCOMES
from fsm_dyn.runtime import abi, abi_build, library
from fsm_dyn.runtime.abi_build import FOLDER, HEADERS, Unknown, read, records

PACKAGE = Path(fsm_dyn.__file__).parent
DECLARED = read()


def test_the_files_are_up_to_date():
    assert abi_build.TARGET.read_text(encoding="utf-8") == abi_build.text(DECLARED), "run `make abi`"
    assert abi_build.LAYOUT_TARGET.read_text(encoding="utf-8") == abi_build.layout_text(DECLARED), "run `make abi`"
    assert abi_build.PAGE_TARGET.read_text(encoding="utf-8") == abi_build.page_text(DECLARED), "run `make abi`"


@pytest.mark.parametrize(
    "line",
    [
        "int fsm_count;",
        "#define FSM_ODD (1 + 2)",
        "enum fsm_odd { FSM_A = 1 };",
        "enum fsm_odd {\n    FSM_A = 1 << 2,\n};",
        "enum fsm_odd {\n    FSM_A = 1, FSM_B = 2,\n};",
        "struct fsm_odd {\n    int64_t a:3;\n};",
        "#if 0\n#endif",
        "FSM_ODD(3)",
    ],
)
def test_a_line_of_no_known_form_is_refused(line, tmp_path):
    (tmp_path / "odd.h").write_text(f"/* A header. */\n\n{line}\n", encoding="utf-8")
    with pytest.raises(Unknown, match=r"^odd\.h:3: "):
        read(("odd.h",), tmp_path)


@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler says what the headers mean")
def test_the_compiler_reads_the_same_numbers(tmp_path):
    """Every constant and every position, asserted in C."""
    lines = [f'#include "{name}"' for name in HEADERS]
    numbers = [(item.name, item.value) for _, members in DECLARED.enums.values() for item in members]
    numbers += [(f"FSM_{item.name}", item.value) for item in DECLARED.defines]
    for name, value in numbers:
        shown = f"{value}ULL" if isinstance(value, int) and value > 2**31 else repr(value)
        lines.append(f'_Static_assert({name} == {shown}, "{name}");')
    for struct in sorted(records(DECLARED)):
        for place in abi_build.places(DECLARED, struct):
            within = f"8 * {place.value} == " + (
                f"sizeof(struct fsm_{struct})"
                if place.name == "count"
                else f"offsetof(struct fsm_{struct}, {place.name})"
            )
            if struct != "tick_places" or place.name in ("schedule", "ring", "checkpoints", "count"):
                lines.append(f'_Static_assert({within}, "{struct}.{place.name}");')
    assert len(lines) > 500
    source = tmp_path / "abi.c"
    source.write_text("\n".join([*lines, "int main(void) { return 0; }"]), encoding="utf-8")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    told = subprocess.run(
        [compiler, "-std=c11", "-fsyntax-only", f"-I{FOLDER}", str(source)], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr[:2000]


def test_texts_are_those_of_the_library():
    for number, outcome in OUTCOMES.items():
        texts = [library.function(f"fsm_status_{part}")(number) for part in ("text", "sentence", "remedy")]
        assert [text.decode() for text in texts] == [outcome.name, outcome.sentence, outcome.remedy]
    for part in ("text", "sentence", "remedy"):
        assert library.function(f"fsm_status_{part}")(max(OUTCOMES) + 1) is None
    for number, text in abi.RESTORED_TEXTS.items():
        assert library.restored_sentence(number) == text


# -- no number twice -----------------------------------------------------------------------------------

#: Names that mean something else in their module than in the headers.
OTHERS = {
    "automaton/labels": {"_FEW"}, "core/processes": {"AHEAD"}, "devices/gamepad": {"WRITE"},
    "devices/pantograph": {"PARAMETERS", "SPEED"}, "draw/run_diagrams": {"_TICKS"}, "language/build": {"DAMPING"},
    "language/components": {"DEEPEST"}, "page/ports": {"WIDTH"}, "plot/drawing": {"_FEW"},
}  # fmt: skip


def declared_values():
    """The values that a name has in the headers, by every end of the name: ``STATE_FREE`` also as ``FREE``."""
    values = {}
    numbers = [(item.name, item.value) for _, members in DECLARED.enums.values() for item in members]
    numbers += [(item.name, item.value) for item in DECLARED.defines]
    for struct in records(DECLARED):
        numbers += [(item.name.upper(), item.value) for item in abi_build.places(DECLARED, struct)]
    for name, value in numbers:
        parts = name.removeprefix("FSM_").split("_")
        for k in range(len(parts)):
            values.setdefault("_".join(parts[k:]), set()).add(value)
    return values


def assigned(source):
    """Names that a module assigns a number to, with the number."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            pairs = zip(node.targets[0].elts, getattr(node.value, "elts", []), strict=False)
        else:
            pairs = [(node.targets[0], node.value)] if isinstance(node, ast.Assign) else []
        for name, value in pairs:
            if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and type(value.value) in (int, float):
                yield name.id, value.value


def hand_kept(source, values):
    """Names of a module's constants that have the name and the value of one in the headers."""
    return {name for name, value in assigned(source) if value in values.get(name.lstrip("_"), ())}


def test_python_keeps_no_number_of_the_headers():
    values = declared_values()
    assert hand_kept("DONE: Final = 5\nFREE, HELD = 0, 1\n_STEP = 2\nHELD = 7\n", values) == {
        "DONE",
        "FREE",
        "HELD",
        "_STEP",
    }
    found = {
        path.relative_to(PACKAGE).with_suffix("").as_posix(): hand_kept(path.read_text(encoding="utf-8"), values)
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "abi.py"
    }
    assert {name: names for name, names in found.items() if names} == OTHERS


def test_pages_keep_no_number_of_the_headers():
    values = declared_values()
    for path in sorted((PACKAGE / "page" / "static" / "js").glob("machine*.js")):
        for name, value in re.findall(r"\b([A-Z][A-Z_]+) = (-?\d+)\b", path.read_text(encoding="utf-8")):
            assert int(value) not in values.get(name, ()), f"{path.name}: {name}"
