"""What a picture's file shows: that it is of its kind, and that something is drawn in it."""

import re
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import numpy as np
from matplotlib.image import imread

MARKS = {"path", "rect", "circle", "line", "polyline", "polygon", "use", "text"}


def marks(path):
    """Return how much is drawn: marks of an SVG, operators that paint in a PDF, per mille of a PNG's pixels."""
    path = Path(path)
    if path.suffix == ".svg":
        tags = [element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()]
        return sum(tag in MARKS for tag in tags)
    content = path.read_bytes()
    if path.suffix == ".pdf":
        assert content.startswith(b"%PDF-")
        assert content.rstrip().endswith(b"%%EOF")
        streams = re.findall(rb"/FlateDecode.*?stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
        pages = [zlib.decompressobj().decompress(stream) for stream in streams if stream[:1] == b"x"]
        return sum(len(re.findall(rb"(?m)(?:^|\s)(?:S|s|f|B|b|Do|Tj|TJ|f\*|B\*)\s*$", page)) for page in pages)
    pixels = imread(path)[..., :3]
    return round(1000.0 * float(np.mean(np.any(pixels != pixels[0, 0], axis=-1))))


def is_drawn(path, least=5):
    """Whether a picture has at least this many marks."""
    return marks(path) >= least
