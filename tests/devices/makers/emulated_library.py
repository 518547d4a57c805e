"""Emulated libraries of makers: their build, and the device behind them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import time
from pathlib import Path

from fsm_dyn.devices.emulators.emulated_device import EmulationProcess

HERE = Path(__file__).parent
STRICT = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-O2", "-fPIC", "-shared"]


def build(source: str, target: Path, *more: Path) -> Path:
    """Compile an emulated library; return its path."""
    compiler = shutil.which("cc")
    assert compiler, "the tests need a C compiler, as the Makefile says"
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [str(HERE / source), *map(str, more)]
    subprocess.run([compiler, *STRICT, f"-I{HERE}", *files, "-o", str(target), "-lpthread"], check=True)
    return target


def stubs(package: str, pattern: str, source: str, target: Path) -> Path:
    """Write a C file with what a binding's package touches and a source does not define: functions that fail."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed: it comes with the extra `test`"
    assert spec.origin is not None
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(spec.origin).parent.rglob("*.py"))]
    touched = {name for text in texts for name in re.findall(pattern, text)}
    there = set(re.findall(r"^[a-z].*?\**([dh][rhd]d?[A-Z]\w+)\(", (HERE / source).read_text(encoding="utf-8"), re.M))
    lines = [f"int {name}(void);\nint {name}(void) {{ return -1; }}" for name in sorted(touched - there)]
    assert len(touched) > 100
    assert there <= touched, f"not as the binding names them: {there - touched}"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


class Device(EmulationProcess):
    """The emulated device behind a library; ``file`` is their memory."""

    def __init__(self, file: Path, **options) -> None:
        super().__init__("tests.devices.makers.device_program", {"axes": 3, "file": str(file), **options})


def until(condition, patience: float = 20.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)
