"""Recordings: a folder with a JSON file per model and part, and the contents that their digests stand for.

An item is a value, or a digest with an excerpt.  Contents are kept once under ``contents/``; by them a comparison finds
the first line, field or row that differs.
"""

import base64
import hashlib
import json
import zlib
from pathlib import Path

import numpy as np

EXCERPT = 160  # characters
CONTENTS = "contents"


class Items:
    """The items of one model and part, by name.

    Parameters
    ----------
    folder : Path
        Of the recording.
    masks : sequence of (compiled pattern, replacement)
        Applied to every text: paths, dates and other text that varies between equal programs.
    """

    def __init__(self, folder, masks=()):
        self.contents = folder / CONTENTS
        self.masks = masks
        self.found = {}

    def value(self, name, value):
        """Add a number, a word or None."""
        self.found[name] = {"value": repr(value) if isinstance(value, float) else value}  # nan equals nan

    def text(self, name, text):
        """Add a text, masked."""
        text = self.masked(text)
        self._add(name, "text", text.encode("utf-8", "surrogatepass"), excerpt=text[:EXCERPT])

    def data(self, name, data):
        """Add what JSON holds, masked."""
        text = self.masked(json.dumps(data, ensure_ascii=False, default=plain))
        self._add(name, "data", text.encode("utf-8", "surrogatepass"), excerpt=text[:EXCERPT])

    def numbers(self, name, array, columns=()):
        """Add an array of doubles, shape (n,) or (n, m), with the names of its columns."""
        array = np.ascontiguousarray(array, dtype="<f8")
        ends = [array[row].ravel()[:4].tolist() for row in ((0, -1) if len(array) else ())]
        self._add(name, "numbers", array.tobytes(), shape=list(array.shape), columns=list(columns), excerpt=repr(ends))

    def content(self, name, data):
        """Add bytes: as text where they are UTF-8, else as a digest and a length."""
        try:
            self.text(name, data.decode("utf-8"))
        except UnicodeDecodeError:
            self._add(name, "bytes", data, size=len(data), excerpt=base64.b64encode(data[:60]).decode())

    def masked(self, text):
        for pattern, replacement in self.masks:
            text = pattern.sub(replacement, text)
        return text

    def _add(self, name, kind, content, **more):
        digest = hashlib.sha256(content).hexdigest()[:20]
        path = self.contents / digest
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(zlib.compress(content, 1))
        self.found[name] = {"kind": kind, "digest": digest, **more}


def plain(value):
    """A value that JSON does not know, as one that it does."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "items"):
        return dict(value.items())
    return str(value)


def write(folder, model, part, items):
    """Write the file of a model and a part."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{model}.{part}.json"
    path.write_text(json.dumps(items.found, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def read(folder):
    """Return the items of a recording by (model, part).

    Raises
    ------
    SystemExit
        The folder holds none.
    """
    files = sorted(Path(folder).glob("*.*.json"))
    if not files:
        raise SystemExit(f"error: {folder} holds no recording; `python -m tests.oracle record {folder}` makes one")
    return {tuple(path.name.split(".")[:2]): json.loads(path.read_text(encoding="utf-8")) for path in files}


def content_of(folder, item):
    """Return the content that the digest of an item stands for, as text, data, array or bytes."""
    content = zlib.decompress((Path(folder) / CONTENTS / item["digest"]).read_bytes())
    if item["kind"] == "numbers":
        return np.frombuffer(content, "<f8").reshape(item["shape"])
    if item["kind"] == "bytes":
        return content
    text = content.decode("utf-8", "surrogatepass")
    return json.loads(text) if item["kind"] == "data" else text
