"""The runtime compiles without a warning: whole and file by file, by every compiler, and for a small processor."""

import shutil
import subprocess

import pytest

from tests.runtime.building import COMPILER, FOLDER, LANGUAGE, WARNINGS, compile_library, separate_sources

pytestmark = pytest.mark.runtime

COMPILERS = [COMPILER, *(["clang"] if shutil.which("clang") else [])]
ARM = "arm-none-eabi-gcc"
CORTEX_M7 = ["-mthumb", "-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"]


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


def test_for_a_processor_without_an_operating_system(tmp_path):
    """A Cortex-M7, with newlib's headers; nothing of a host is needed beyond the mathematics and memory functions."""
    if not shutil.which(ARM):
        pytest.skip(f"there is no {ARM}; `bash .ci/get_arm` gets it")
    made = tmp_path / "runtime.o"
    flags = ["-Os", "-DFSM_NO_HOST", *CORTEX_M7, *LANGUAGE, *WARNINGS]
    subprocess.run([ARM, *flags, "-c", str(FOLDER / "fsm_runtime.c"), "-o", str(made)], check=True)
    listed = subprocess.run(
        [ARM.replace("gcc", "nm"), "--undefined-only", str(made)], check=True, capture_output=True, text=True
    )
    needed = {line.split()[-1] for line in listed.stdout.splitlines()}
    mathematics = {"acos", "asin", "atan", "atan2", "cos", "exp", "expm1", "fmod", "hypot", "log", "pow", "round",
                   "sin", "sqrt", "tan", "floor", "ceil", "fabs"}  # fmt: skip
    others = needed - mathematics - {"memcpy", "memset", "memmove", "memcmp", "__errno"}
    assert not {name for name in others if not name.startswith("__aeabi_")}
