"""What all tests share: pictures are drawn without a screen, and caches stay inside the test run."""

import os

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture
def picture_size():
    """Return a function that gives width and height of a PNG in pixels, read from its header."""

    def size(path):
        head = path.read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n", f"{path} is no PNG"
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")

    return size
