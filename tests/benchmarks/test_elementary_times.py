"""Time of the elementary functions as a ratio to the platform's mathematics library, taken in turn in one run."""

import subprocess
from pathlib import Path

import pytest

from tests.runtime.building import COMPILER, FOLDER, LANGUAGE

pytestmark = pytest.mark.benchmark
OWN = FOLDER / "elementary.c"


def test_elementary_functions_against_the_library(tmp_path):
    program = tmp_path / "times"
    source = [str(path) for path in (Path(__file__).with_name("elementary_times.c"), OWN)]
    subprocess.run([COMPILER, *LANGUAGE, "-std=gnu99", "-O3", *source, "-o", str(program), "-lm"], check=True)
    lines = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()
    for name, own, theirs in map(str.split, lines):
        print(f"{name:8} {float(own):6.1f} ns, {float(own) / float(theirs):.2f} of the library's")
        assert float(own) < 6.0 * float(theirs), name
