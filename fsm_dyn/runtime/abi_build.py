"""Write ``abi.py`` and ``abi.js`` from the headers of the runtime: codes, positions, constants and texts shared with C.

``python -m fsm_dyn.runtime.abi_build``, or ``make abi``.  The reader knows the forms of declarations in the headers,
one constant or field a line, and refuses any other line: nothing is skipped silently.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import field
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Final

from fsm_dyn.core.records import dataclass

FOLDER: Final = Path(__file__).parent
TARGET: Final = FOLDER / "abi.py"
LAYOUT_TARGET: Final = FOLDER / "layouts.py"
PAGE_TARGET: Final = FOLDER.parent / "page" / "static" / "js" / "abi.js"

#: Headers with declarations for Python, each after the headers it includes.
HEADERS: Final = (
    "arena.h", "codes.h", "tables.h", "enclosure.h", "run.h", "contacts.h", "time_stepping.h", "online_mode.h",
    "saved_state.h", "tick.h", "pacing.h",
)  # fmt: skip

#: Enums and constants of which pages know.
PAGE: Final = ("status", "event", "contact_state", "live_phase", "MAX_FIRED", "GUARD_WIDTH")

#: Structures of arrays passed by Python, and their names there if different.
LAYOUTS: Final = {
    "tables": "", "input_tables": "", "method": "MethodArrays", "options": "", "state": "RunState", "work": "",
    "buffers": "", "online_mode": "Online", "ring": "", "checkpoints": "", "tick": "", "pace": "", "udp_link": "",
    "hand": "ScriptedHand",
}  # fmt: skip
_VIEWS: Final = {
    "fsm_vector": ("Floats", 1), "fsm_matrix": ("Floats", 2), "fsm_cube": ("Floats", 3), "fsm_indices": ("Integers", 1),
    "fsm_index_table": ("Integers", 2), "fsm_codes": ("Codes", 1), "fsm_code_table": ("Codes", 2),
    "fsm_kernels": ("Integers", 1),
}  # fmt: skip

_WIDTH: Final = 120
_POSITIONS: Final = ("Columns of ", "Positions in ")  # enums of places, not cases
_TYPE: Final = r"(?:const )?(?:struct |enum )?\w+"
_FORMS: Final = [
    ("blank", r"\s+"),
    ("doc", r"/\*(?P<doc>.*?)\*/"),
    ("define", r"#define (?P<define>(?:\\\n|[^\n])*)"),
    ("directive", r"#(?:ifndef|ifdef|endif|include|undef)\b[^\n]*"),
    ("enum", r"enum fsm_(?P<enum>\w+) \{\n(?P<members>.*?)\n\};"),
    (
        "listed",
        r"enum fsm_(?P<listed>\w+) \{ (?P<list>FSM_\w+)\((?P<entry>FSM_\w+)\)(?: (?P<more>FSM_\w+ = FSM_\w+))? \};",
    ),
    ("struct", r"struct fsm_(?P<struct>\w+) \{\n(?P<fields>.*?)\n\};"),
    ("type", r"typedef struct \{[^{}]*\} \w+;|typedef [^;{]*;"),
    ("function", r"static inline [^;{]*\n\{\n.*?\n\}\n"),
    ("prototype", r"FSM_(?:LOCAL|API) [^;{}]*;"),
]
_FORM: Final = re.compile("|".join(f"(?P<form_{name}>{form})" for name, form in _FORMS), re.S)
_NUMBER: Final = re.compile(r"-?\d+|-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+e[-+]?\d+|0x[0-9a-f]+ULL|INT64_MAX")
_MEMBER: Final = re.compile(r"\s+(?P<name>FSM_\w+)(?: = (?P<value>\w+|-\d+))?,?(?:\s+// (?P<comment>.*))?")
_FIELD: Final = re.compile(rf"\s+(?P<type>{_TYPE}) (?P<names>[\w*, \[\]]+);(?:\s+// (?P<comment>.*))?")
_NOTE: Final = re.compile(r"\s+// (.*)")


@dataclass(frozen=True)
class Constant:
    """A number by name, with its meaning and unit."""

    name: str
    value: int | float
    comment: str = ""


@dataclass(frozen=True)
class Member:
    """A field of a structure: type, whether it is an address, number of elements, and meaning."""

    name: str
    type: str
    address: bool
    count: int
    comment: str


@dataclass
class Declarations:
    """Declarations of the headers read so far."""

    defines: list[Constant] = field(default_factory=list)
    enums: dict[str, tuple[str, list[Constant]]] = field(default_factory=dict)
    structs: dict[str, tuple[str, list[Member]]] = field(default_factory=dict)
    lists: dict[str, list[tuple[str, int, tuple[str, ...]]]] = field(default_factory=dict)
    entries: dict[str, str] = field(default_factory=dict)  # macro of a list's entries: its prefix of names
    texts: dict[str, str] = field(default_factory=dict)  # name of an enum: of the list with its texts
    order: list[tuple[str, str]] = field(default_factory=list)  # kind and name of each declaration


class Unknown(ValueError):
    """A line of a header without a known form."""


def read(names: tuple[str, ...] = HEADERS, folder: Path = FOLDER) -> Declarations:
    """Return the declarations of headers.

    Raises Unknown: a line has no form known to the reader; the message names file and line.
    """
    found = Declarations()
    for name in names:
        _read_header(found, name, (folder / name).read_text(encoding="utf-8"))
    return found


def _read_header(found: Declarations, name: str, text: str) -> None:
    at, doc = 0, ""
    found.order.append(("header", name))
    while at < len(text):
        match = _FORM.match(text, at)
        if match is None:
            raise Unknown(f"{name}:{text.count(chr(10), 0, at) + 1}: {text[at:].splitlines()[0]}")
        kind = str(match.lastgroup and next(key for key, value in match.groupdict().items() if value is not None))[5:]
        try:
            _take(found, kind, match, doc)
        except Unknown as error:
            raise Unknown(f"{name}:{text.count(chr(10), 0, at) + 1}: {error}") from None
        if kind != "blank":
            doc = " ".join(match["doc"].split()) if kind == "doc" else ""
        at = match.end()


def _take(found: Declarations, kind: str, match: re.Match[str], doc: str) -> None:
    if kind == "define":
        _take_define(found, match["define"].replace("\\\n", " ").strip())
    elif kind == "enum":
        found.enums[match["enum"]] = (doc, list(_members(found, match["members"])))
        found.order.append(("enum", match["enum"]))
    elif kind == "listed":
        prefix = found.entries[match["entry"]]
        members = [Constant(prefix + name, value) for name, value, _ in found.lists[match["list"]]]
        if match["more"]:
            name, same = match["more"].split(" = ")
            members.append(Constant(name, next(item.value for item in members if item.name == same)))
        found.enums[match["listed"]] = (doc, members)
        found.texts[match["listed"]] = match["list"]
        found.order.append(("enum", match["listed"]))
    elif kind == "struct":
        found.structs[match["struct"]] = (doc, list(_fields(match["fields"])))
        found.order.append(("struct", match["struct"]))


def _take_define(found: Declarations, text: str) -> None:
    if re.fullmatch(r"FSM_\w+_H|FSM_\w+\([a-z]+\) \(.*\)", text):
        return  # an include guard, an expression
    listed = re.match(r"(FSM_\w+)\(X\)\s+(.*)", text)
    entry = re.fullmatch(r"(FSM_\w+)\([\w, ]+\) (FSM_\w*)##name = number,", text)
    number = re.fullmatch(rf"FSM_(\w+)\s+({_NUMBER.pattern})(?:\s+// (.*))?", text)
    if listed:
        found.lists[listed[1]] = list(_entries(listed[2]))
    elif entry:
        found.entries[entry[1]] = entry[2]
    elif number:
        found.defines.append(Constant(number[1], _value(number[2]), number[3] or ""))
        found.order.append(("define", number[1]))
    else:
        raise Unknown(f"#define {text}")


def _value(text: str) -> int | float:
    if text == "INT64_MAX":
        return 2**63 - 1
    if text.endswith("ULL"):
        return int(text.removesuffix("ULL"), 16)
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _entries(text: str) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield name, number and texts of the entries of a list; a text may be several literals."""
    literal = r'"(?:[^"\\]|\\.)*"'
    literals = rf"{literal}(?:\s+{literal})*"
    one = re.compile(rf"X\((\w+), (\d+)((?:,\s+{literals})+)\)\s*")
    at = 0
    while at < len(text):
        match = one.match(text, at)
        if match is None:
            raise Unknown(text[at : at + _WIDTH])
        parts = re.findall(rf",\s+({literals})", match[3])
        yield match[1], int(match[2]), tuple("".join(map(json.loads, re.findall(literal, part))) for part in parts)
        at = match.end()


def _members(found: Declarations, text: str) -> Iterator[Constant]:
    number, note = 0, ""
    for line in text.splitlines():
        above, member = _NOTE.fullmatch(line), _MEMBER.fullmatch(line)
        if above:
            note = f"{note} {above[1]}".strip()
        elif member:
            number = int(member["value"]) if member["value"] else number
            yield Constant(member["name"], number, f"{note} {member['comment'] or ''}".strip())
            number, note = number + 1, ""
        else:
            raise Unknown(line)


def _fields(text: str) -> Iterator[Member]:
    note = ""
    for line in text.splitlines():
        above, match = _NOTE.fullmatch(line), _FIELD.fullmatch(line)
        if above:
            note = f"{note} {above[1]}".strip()
        elif match:
            comment = f"{note} {match['comment'] or ''}".strip()
            for name in match["names"].split(", "):
                form = re.fullmatch(r"(\*?)(\w+)(?:\[(\d+)\])?", name)
                if form is None:
                    raise Unknown(line)
                yield Member(form[2], match["type"], bool(form[1]), int(form[3] or 1), comment)
            note = ""
        elif line.strip():
            raise Unknown(line)
        else:
            note = ""


# -- places ----------------------------------------------------------------------------------------------------------


def records(found: Declarations) -> set[str]:
    """Return the structures handed over as arrays: those of which some structure has address and count."""
    names = {"time_stepping_report"}  # of fixed length
    for _, fields in found.structs.values():
        for one, count in pairwise(fields):
            if one.address and count.name == f"{one.name}_count":
                names.add(one.type.removeprefix("struct fsm_"))
    return names


def places(found: Declarations, struct: str) -> list[Constant]:
    """Return the position of every field, counted in numbers of eight bytes; those of structures within count."""
    placed: list[Constant] = []
    at = 0
    for item in found.structs[struct][1]:
        inner = item.type.removeprefix("const ").removeprefix("struct fsm_")
        if inner in found.structs and not item.address:
            within = places(found, inner)
            placed += [Constant(one.name, one.value + at, one.comment) for one in within]
            at += len(within)
        elif item.address or item.type in ("double", "int64_t", "fsm_read", "fsm_write"):
            placed.append(Constant(item.name, at, item.comment))
            at += item.count
        else:
            raise Unknown(f"struct fsm_{struct} has a field of type {item.type}")
    return [*placed, Constant("count", at)] if struct in records(found) else placed


@dataclass(frozen=True)
class ArrayField:
    """An array of a structure: type and dimensions of its view."""

    name: str
    kind: str
    dimensions: int
    comment: str


def arrays(found: Declarations, struct: str) -> Iterator[ArrayField]:
    """Yield the arrays of a structure; records with a count are arrays of numbers, those of structures within count."""
    fields = found.structs[struct][1]
    for item, after in zip(fields, [*fields[1:], None], strict=True):
        inner = item.type.removeprefix("const ").removeprefix("struct fsm_")
        if item.type in _VIEWS:
            yield ArrayField(item.name, *_VIEWS[item.type], item.comment)
        elif item.address and after is not None and after.name == f"{item.name}_count":
            numbers = {one.type for one in found.structs[inner][1]}
            yield ArrayField(item.name, "Floats" if numbers == {"double"} else "Integers", 1, item.comment)
        elif inner in found.structs and not item.address:
            yield from arrays(found, inner)
        elif not item.name.endswith("_count"):
            raise Unknown(f"struct fsm_{struct} has a field of type {item.type}")


# -- text ------------------------------------------------------------------------------------------------------------


def text(found: Declarations) -> str:
    """Return the source of ``abi.py``."""
    blocks: list[str] = []
    wanted, defines = records(found), {item.name: item for item in found.defines}
    constants: list[str] = []
    for kind, name in [*found.order, ("end", "")]:
        if kind == "define":
            constants += _line("", name, defines[name])
            continue
        if constants:
            blocks.append("\n".join(constants))
            constants = []
        if kind == "header":
            blocks.append(f"# -- {name} {'-' * (_WIDTH - 8 - len(name))}")
        elif kind == "enum":
            blocks.append(_enum(found, name))
            if name in found.texts:
                blocks.append(_texts(found, name))
        elif kind == "struct" and name in wanted:
            blocks.append(_positions(found, name))
    return f"{_HEAD}\n\n\n" + "\n\n\n".join(blocks) + "\n"


_HEAD: Final = '''"""Codes, positions, constants and texts shared by the runtime in C and Python.

Written by ``fsm_dyn.runtime.abi_build`` from the headers in this folder (``make abi``): change those.  A class of plain
numbers has the positions of a structure's fields in its array, ``COUNT`` their number.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


def fields_of(positions: type) -> tuple[str, ...]:
    """Return the names of a structure's fields in C, in their order, from the class of their positions."""
    return tuple(name.lower() for name in vars(positions) if name.isupper() and name != "COUNT")'''


def _class(name: str) -> str:
    name = {"tolerances": "tolerance_table"}.get(name, name)  # the class fsm_dyn.Tolerances is another
    return "".join(part.capitalize() for part in name.split("_"))


def _line(indent: str, name: str, item: Constant, suffix: str = ": Final") -> list[str]:
    line = f"{indent}{name}{suffix} = {repr(item.value).replace('e+', 'e')}"
    if not item.comment:
        return [line]
    if len(line) + 4 + len(item.comment) <= _WIDTH:
        return [f"{line}  # {item.comment}"]
    return [*textwrap.wrap(item.comment, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "), line]


def _docstring(doc: str) -> str:
    sentence = doc if doc.endswith(".") else f"{doc}."
    lines = textwrap.wrap(sentence, _WIDTH - 4 - 6)
    if len(lines) == 1:
        return f'    """{sentence}"""'
    first, _, rest = sentence.partition(". ")
    if len(first) > _WIDTH - 8 or not rest:
        raise Unknown(f"the first sentence does not fit on a line: {doc}")
    body = textwrap.wrap(rest, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join([f'    """{first}.', "", *body, '    """'])


def _enum(found: Declarations, name: str) -> str:
    doc, members = found.enums[name]
    if not doc:
        raise Unknown(f"enum fsm_{name} has no comment")
    prefix = _prefix(members)
    suffix = ": Final" if doc.startswith(_POSITIONS) else ""
    lines = [line for item in members for line in _line("    ", item.name.removeprefix(prefix), item, suffix)]
    base = "" if doc.startswith(_POSITIONS) else "(IntEnum)"
    return "\n".join([f"class {_class(name)}{base}:", _docstring(doc), "", *lines])


def _prefix(members: list[Constant]) -> str:
    """Return the first words common to the names of all members."""
    words = zip(*(item.name.split("_") for item in members), strict=False)
    shared = takewhile(lambda column: len(set(column)) == 1, words) if len(members) > 1 else [("FSM",)]
    return "".join(f"{column[0]}_" for column in shared)


def _literal(text: str) -> list[str]:
    """Return a text as lines of an element of a tuple."""
    room = _WIDTH - 12
    pieces = textwrap.wrap(text, room, drop_whitespace=False, break_on_hyphens=False) or [""]
    quoted = [json.dumps(piece, ensure_ascii=False) for piece in pieces]
    return [f"        {piece}" for piece in quoted[:-1]] + [f"        {quoted[-1]},"]


def _positions(found: Declarations, name: str) -> str:
    doc = found.structs[name][0] or f"Positions in ``struct fsm_{name}``"
    lines = [line for item in places(found, name) for line in _line("    ", item.name.upper(), item)]
    return "\n".join([f"class {_class(name)}:", _docstring(doc), "", *lines])


def _texts(found: Declarations, name: str) -> str:
    entries = found.lists[found.texts[name]]
    prefix = next(iter(found.enums[name][1])).name.removesuffix(entries[0][0])
    drop = _prefix(found.enums[name][1])
    lines = []
    for entry, _, parts in entries:
        key = f"    {_class(name)}.{(prefix + entry).removeprefix(drop)}: "
        if len(parts) == 1:
            lines.append(f"{key}{json.dumps(parts[0], ensure_ascii=False)},")
        else:
            lines += [f"{key}(", *[line for part in parts for line in _literal(part)], "    ),"]
    kind = "str" if len(entries[0][2]) == 1 else f"tuple[{', '.join(['str'] * len(entries[0][2]))}]"
    return "\n".join([f"{name.upper()}_TEXTS: Final[dict[int, {kind}]] = {{", *lines, "}"])


_LAYOUT_HEAD: Final = '''"""Structures of arrays passed by Python to the runtime, as named tuples of the arrays.

Written by ``fsm_dyn.runtime.abi_build`` from the headers in this folder (``make abi``): change those.  Arrays are
C-contiguous; kernels are addresses.  ``DIMENSIONS`` has the number of dimensions of those that have more than one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fsm_dyn.core.arrays import Codes, Floats, Integers'''


def layout_text(found: Declarations) -> str:
    """Return the source of ``layouts.py``."""
    blocks, dimensions = [_LAYOUT_HEAD], []
    for struct, name in LAYOUTS.items():
        lines, before = [], ""
        for item in arrays(found, struct):
            lines += _annotated(item, shown="" if item.comment == before else item.comment)
            before = item.comment
        own = name or _class(struct)
        blocks.append("\n".join([f"class {own}(NamedTuple):", _docstring(found.structs[struct][0]), "", *lines]))
        more = {item.name: item.dimensions for item in arrays(found, struct) if item.dimensions > 1}
        if more:
            dimensions += [f"    {own}: {{", *[f'        "{key}": {n},' for key, n in more.items()], "    },"]
    blocks.append("\n".join(["DIMENSIONS: Final[dict[type, dict[str, int]]] = {", *dimensions, "}"]))
    return "\n\n\n".join(blocks) + "\n"


def _annotated(item: ArrayField, shown: str) -> list[str]:
    line = f"    {item.name}: {item.kind}"
    if not shown or len(line) + 4 + len(shown) <= _WIDTH:
        return [f"{line}  # {shown}" if shown else line]
    return [*textwrap.wrap(shown, _WIDTH, initial_indent="    # ", subsequent_indent="    # "), line]


def page_text(found: Declarations) -> str:
    """Return the source of ``abi.js``."""
    lines = [
        "// Codes and lengths that the runtime in C and pages share, written by fsm_dyn/runtime/abi_build.py.",
        "",
    ]
    defines = {item.name: item for item in found.defines}
    for name in PAGE:
        if name in defines:
            comment = f" // {defines[name].comment}" if defines[name].comment else ""
            lines.append(f"export const {name} = {defines[name].value};{comment}")
            continue
        members = found.enums[name][1]
        entries = ", ".join(f"{item.name.removeprefix(_prefix(members))}: {item.value}" for item in members)
        lines += [f"// {found.enums[name][0]}", f"export const {_class(name)} = Object.freeze({{ {entries} }});"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write ``abi.py``, ``layouts.py`` and ``abi.js``."""
    found = read()
    TARGET.write_text(text(found), encoding="utf-8")
    LAYOUT_TARGET.write_text(layout_text(found), encoding="utf-8")
    PAGE_TARGET.write_text(page_text(found), encoding="utf-8")


if __name__ == "__main__":
    main()
