"""Comparison of two recordings: where each item differs first, equal differences together."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from tests.oracle.recording import content_of, read

SHOWN = 6  # places of one difference
WINDOW = 100  # characters of a line around the first that differs
FIELDS = 3  # of one item of data
ABSENT = "(absent)"


@dataclass(frozen=True)
class Difference:
    """One difference: of which item, where in it, and the excerpts of both."""

    model: str
    part: str
    item: str
    where: str
    before: str
    after: str

    @property
    def place(self):
        return f"{self.model} {self.part} {self.item}" + (f", {self.where}" if self.where else "")


def differences(before, after):
    """Return the differences of two recordings, in order of model, part and item.

    Parameters
    ----------
    before, after : Path
        Folders of recordings.  A part or model that only one of them has is a difference.
    """
    both = read(before), read(after)
    found = []
    for key in sorted(both[0].keys() | both[1].keys()):
        sides = [recording.get(key) for recording in both]
        if None in sides:
            found.append(Difference(*key, "all items", "", *("recorded" if s else ABSENT for s in sides)))
            continue
        for item in sorted(sides[0].keys() | sides[1].keys()):
            pair = [side.get(item) for side in sides]
            if pair[0] != pair[1]:
                found += [Difference(*key, item, *rest) for rest in _located((before, after), pair)]
    return found


def _located(folders, pair):
    """Yield the location of each difference in an item, with both excerpts."""
    if None in pair or "value" in pair[0] or "value" in pair[1] or pair[0]["kind"] != pair[1]["kind"]:
        yield "", *(_short(item) for item in pair)
        return
    contents = [content_of(folder, item) for folder, item in zip(folders, pair, strict=True)]
    kind = pair[0]["kind"]
    if kind == "text":
        yield _first_line(*contents)
    elif kind == "data":
        yield from list(_fields(*contents))[:FIELDS] or [("as text", *(item["excerpt"] for item in pair))]
    elif kind == "numbers":
        yield _first_row(*contents, *(item["columns"] for item in pair))
    else:
        at = next((k for k, (a, b) in enumerate(zip(*contents, strict=False)) if a != b), min(map(len, contents)))
        yield f"byte {at}", *(f"{len(content)} bytes" for content in contents)


def _short(item):
    if item is None:
        return ABSENT
    return repr(item["value"]) if "value" in item else f"{item['kind']}: {item['excerpt']}"


def _first_line(before, after):
    lines = zip_longest(before.split("\n"), after.split("\n"))
    for number, (a, b) in enumerate(lines, start=1):
        if a != b:
            first = next((k for k, (c, d) in enumerate(zip(a or "", b or "", strict=False)) if c != d), 0)
            start = max(0, first - WINDOW // 2) if len(a or "") > WINDOW or len(b or "") > WINDOW else 0
            shown = [ABSENT if line is None else line[start : start + WINDOW] for line in (a, b)]
            return f"line {number}" + (f" from character {start + 1}" if start else ""), *shown
    return "", "", ""


def _fields(before, after, path=""):
    """Yield paths of fields that differ; of lists of another length, the lengths and what differs before."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if key not in before or key not in after:
                yield (
                    f"{path}.{key}",
                    *(repr(side[key])[:WINDOW] if key in side else ABSENT for side in (before, after)),
                )
            elif before[key] != after[key]:
                yield from _fields(before[key], after[key], f"{path}.{key}")
        if list(before) != list(after) and before.keys() == after.keys():
            yield f"{path} order of keys", str(list(before))[:WINDOW], str(list(after))[:WINDOW]
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{path} length", str(len(before)), str(len(after))
        for number, (a, b) in enumerate(zip(before, after, strict=False)):
            if a != b:
                yield from _fields(a, b, f"{path}[{number}]")
                return
    elif repr(before) != repr(after):
        yield path, repr(before)[:WINDOW], repr(after)[:WINDOW]


def _first_row(before, after, columns, others):
    if columns != others:
        return "columns", " ".join(columns)[:WINDOW], " ".join(others)[:WINDOW]
    if before.shape[1:] != after.shape[1:]:
        return "shape", str(before.shape), str(after.shape)
    rows = min(len(before), len(after))
    a, b = (array[:rows].reshape(rows, -1) for array in (before, after))
    unlike = a.view(np.uint64) != b.view(np.uint64)
    if not unlike.any():
        return "rows", str(len(before)), str(len(after))
    row, column = (int(index[0]) for index in np.nonzero(unlike))
    with np.errstate(all="ignore"):
        largest = float(np.nanmax(np.abs(a - b), initial=0.0))
    name = columns[column] if columns else f"column {column}"
    lengths = "" if len(before) == len(after) else f", {len(before)} and {len(after)} rows"
    size = f", largest difference {largest:.2g}" if math.isfinite(largest) else ""
    return f"row {row}, {name}{size}{lengths}", repr(float(a[row, column])), repr(float(b[row, column]))


def report(found):
    """Return the differences as text: those with the same excerpts, or of the same item of several models, together."""
    by_excerpts = defaultdict(list)
    for each in found:
        by_excerpts[each.before, each.after].append(each)
    groups, single = [group for group in by_excerpts.values() if len(group) > 1], defaultdict(list)
    for group in by_excerpts.values():
        if len(group) == 1:
            single[group[0].part, group[0].item].append(group[0])
    lines = []
    for group in sorted(groups, key=len, reverse=True):
        lines += [f"{len(group)} times", *_excerpts(group[0]), *_places(group), ""]
    for (part, item), group in single.items():
        models = len({each.model for each in group})
        lines.append(f"{part} {item}" + (f", {models} models" if models > 1 else ""))
        for each in group[:SHOWN]:
            lines += [f"  {each.model}" + (f", {each.where}" if each.where else ""), *_excerpts(each)]
        if len(group) > SHOWN:
            lines.append(f"  and {len(group) - SHOWN} more: {', '.join(each.model for each in group[SHOWN:])}")
        lines.append("")
    if not found:
        return "no differences"
    for part, count in sorted(Counter(each.part for each in found).items()):
        models = {each.model for each in found if each.part == part}
        lines.append(f"{part}: {count} differences in {len(models)} models")
    lines.append(f"{len(found)} differences")
    return "\n".join(lines)


def _excerpts(each):
    return [f"    - {each.before}", f"    + {each.after}"]


def _places(group):
    more = len(group) - SHOWN
    return [*(f"  {each.place}" for each in group[:SHOWN]), *([f"  and {more} more"] if more > 0 else [])]
