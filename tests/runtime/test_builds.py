"""The runtime compiles without a warning: whole and file by file, by every compiler, and for a small processor."""

import importlib.util
import shutil
import subprocess

import pytest

from fsm_dyn.core.errors import FsmDynError
from fsm_dyn.runtime import library
from tests.runtime.building import COMPILER, FOLDER, LANGUAGE, WARNINGS, compile_library, separate_sources

pytestmark = pytest.mark.runtime

COMPILERS = [COMPILER, *(["clang"] if shutil.which("clang") else [])]
CORTEX_M7 = ["-mthumb", "-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"]
WASM = ["--target=wasm32-wasi", "--sysroot=/usr"]
EXACT = {"ceil", "fabs", "floor", "fmod", "rint", "round", "sqrt"}  # functions that every library rounds alike


def compiles(compiler, flags):
    """Whether there is such a compiler, with a C library."""
    command = [compiler, *flags, "-fsyntax-only", "-xc", "-"]
    return shutil.which(compiler) and subprocess.run(command, input=b"#include <math.h>").returncode == 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_as_one_unit(compiler, tmp_path):
    """As it is shipped: every function but those for Python is local, so none may be unused."""
    compile_library(
        [FOLDER / "fsm_runtime.c"], tmp_path / "one.so", "-O2", "-fvisibility=hidden", *WARNINGS, compiler=compiler
    )


@pytest.mark.parametrize("compiler", COMPILERS)
def test_file_by_file(compiler, tmp_path):
    """Every file includes what it needs, declares what others call, and defines nothing twice."""
    compile_library(
        separate_sources(), tmp_path / "many.so", "-O1", "-Wl,--no-undefined", "-Wmissing-prototypes", *WARNINGS,
        compiler=compiler,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("compiler", "names", "flags"),
    [
        pytest.param("arm-none-eabi-gcc", ["arm-none-eabi-nm"], CORTEX_M7, id="arm"),
        pytest.param("clang", ["llvm-nm", "llvm-nm-14"], WASM, id="wasm", marks=pytest.mark.long),
    ],
)
def test_for_a_processor_without_an_operating_system(compiler, names, flags, tmp_path, request):
    """Nothing of a host is needed but memory functions and exact mathematics; the rest is the runtime's own."""
    made, lister = tmp_path / "runtime.o", next(filter(None, map(shutil.which, names)), None)
    if lister is None or not compiles(compiler, flags):
        pytest.skip(f"no compiler; `.ci/get_compiler {request.node.callspec.id}` gets it")
    options = ["-Os", "-DFSM_NO_HOST", *flags, *LANGUAGE, *WARNINGS]
    subprocess.run([compiler, *options, "-c", str(FOLDER / "fsm_runtime.c"), "-o", str(made)], check=True)
    listed = subprocess.run([lister, "--undefined-only", str(made)], check=True, capture_output=True, text=True)
    needed = {line.split()[-1] for line in listed.stdout.splitlines()}
    others = needed - EXACT - {"memcpy", "memset", "memmove", "memcmp", "__errno", "__stack_pointer"}
    assert not {name for name in others if not name.startswith("__aeabi_")}


@pytest.mark.parametrize("source", ["int fsm_advance;", 'const char *fsm_sources(void) { return "others"; }'])
def test_a_library_of_other_sources_is_refused(source, tmp_path, monkeypatch):
    """One that lacks functions, compiled by hand perhaps, and one that says what it was built of."""
    (tmp_path / "other.c").write_text(source + "\n")
    compile_library([tmp_path / "other.c"], tmp_path / "other.so")
    spec = importlib.util.spec_from_file_location("other", tmp_path / "other.so")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(FsmDynError, match=r"other sources.*other\.so\n  remedy"):
        library._load()
