"""What all tests share: pictures are drawn without a screen, and caches stay inside the test run."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
import yaml

os.environ.setdefault("MPLBACKEND", "Agg")
# Hundreds of processes of the tests import the package: without its bytecode each of them compiles the sources again,
# which takes three times as long as the import.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """Let Ctrl-C reach the tests and what they start: the background jobs of a shell ignore it, and so do theirs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


LONG_CASES = Path(__file__).parent / "long_cases.txt"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the cases of `long_cases.txt`; where all tests are collected, refuse a line that names none of them."""
    lines = LONG_CASES.read_text(encoding="utf-8").splitlines()
    wanted = {line.split(None, 1)[1] for line in lines if not line.startswith("#")}
    found = [item for item in items if item.nodeid in wanted]
    for item in found:
        item.add_marker(pytest.mark.long)
    missing = wanted - {item.nodeid for item in found}
    if missing and config.option.markexpr == "long" and config.args == ["tests"]:
        raise pytest.UsageError(f"{LONG_CASES} names tests that do not exist: {sorted(missing)}")


def pytest_collection_finish():
    """Leave the collected tests out of all garbage collections, which took a twelfth of the time of the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def picture_size():
    """Return a function that gives width and height of a PNG in pixels, read from its header."""

    def size(path):
        head = path.read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n", f"{path} is no PNG"
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")

    return size


@pytest.fixture(scope="session")
def reference():
    """Return a function that reads published numbers: the name of a file in ``tests/reference`` to its content."""

    def load(name):
        return yaml.safe_load((Path(__file__).parent / "reference" / f"{name}.yaml").read_text(encoding="utf-8"))

    return load


@pytest.fixture(scope="module")
def kane():
    """Return a function from a model and mode to its Kane's equations."""
    import fsm_dyn  # once the environment is set

    graphs = {}

    def of(model, mode):
        if model not in graphs:
            graphs[model] = fsm_dyn.compile(model)
        return graphs[model].modes[mode].kane_equations

    return of
