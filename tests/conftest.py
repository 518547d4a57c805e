"""What all tests share: pictures are drawn without a screen, and caches stay inside the test run."""

import os
from pathlib import Path

import pytest
import yaml

os.environ.setdefault("MPLBACKEND", "Agg")


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
