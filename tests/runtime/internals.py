"""The inner functions of the runtime, called from tests: declarations are read from its headers, so that they follow.

``internals().row_speed(terms, row, u)``: arrays of NumPy go in and come out as views, structures by name; what a
function writes through pointers to numbers and views comes back behind its result, as a tuple.
"""

import ctypes
import hashlib
import os
import re
from ctypes import POINTER, Structure, byref, c_bool, c_double, c_int, c_int8, c_int64, c_void_p
from functools import cache
from pathlib import Path

import numpy as np

from tests.runtime.building import BUILT, FOLDER, compile_library

EXPORTED = Path(__file__).with_name("exported.c")
_SCALARS = {"double": c_double, "int64_t": c_int64, "bool": c_bool, "int8_t": c_int8}
_DTYPES = {"double": np.float64, "int64_t": np.int64, "int8_t": np.int8}


def _source():
    text = "\n".join(path.read_text() for path in [*sorted(FOLDER.glob("*.h")), EXPORTED])
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


class View:
    """One of the views of ``types.h``: which entries, how many dimensions."""

    def __init__(self, name, entry, dimensions):
        self.entry, self.dimensions = entry, dimensions
        fields = [("at", c_void_p), *((letter, c_int64) for letter in "nml"[:dimensions])]
        self.type = type(name, (Structure,), {"_fields_": fields, "view": self})

    def of(self, array):
        array = np.ascontiguousarray(array) if array.size == 0 else array
        assert array.dtype == _DTYPES[self.entry], (array.dtype, self.entry)
        assert array.ndim == self.dimensions
        assert array.flags.c_contiguous
        return self.type(array.ctypes.data, *array.shape)

    def array(self, made):
        shape = tuple(getattr(made, letter) for letter in "nml"[: self.dimensions])
        count = int(np.prod(shape))
        if count == 0:
            return np.zeros(shape, _DTYPES[self.entry])
        block = (_SCALARS[self.entry] * count).from_address(made.at)
        return np.frombuffer(block, _DTYPES[self.entry]).reshape(shape)


class Record(Structure):
    """A structure whose arrays are read and set as arrays of NumPy."""

    def get(self, name):
        value = getattr(self, name)
        return value.view.array(value) if hasattr(value, "view") else value

    def put(self, name, value):
        field = dict(self._fields_)[name]
        self.__dict__.setdefault("kept", {})[name] = value
        setattr(self, name, field.view.of(value) if hasattr(field, "view") else value)


class Internals:
    """All functions of the library, by their names without ``fsm_``; ``struct(name)`` makes a structure."""

    def __init__(self):
        text = _source()
        self.views = {
            name: View(name, entry, letters.count(",") + 1)
            for entry, letters, name in re.findall(
                r"typedef struct \{\s*(\w+) \*at;\s*int64_t ([\w, ]+);\s*\} (\w+);", text
            )
            if entry in _DTYPES
        }
        self.kernels = type("fsm_kernels", (Structure,), {"_fields_": [("at", c_void_p), ("n", c_int64)]})
        self.structs = {}
        for name, body in re.findall(r"struct fsm_(\w+) \{(.*?)\n\};", text, re.S):
            self.structs[name] = type(name, (Record,), {"_fields_": list(self._fields(body))})
        self.declared = {
            name: (result.strip(), [part.strip() for part in arguments.split(",")] if arguments != "void" else [])
            for result, name, arguments in re.findall(
                r"(?:FSM_LOCAL|FSM_API) ([\w ]+?[ *]+)((?:fsm|test)_\w+)\(([^)]*)\)\s*[;{]", text
            )
        }
        self.library = ctypes.CDLL(str(_build(text)))

    def _fields(self, body):
        for line in filter(None, (part.strip() for part in body.split(";"))):
            if "*" in line and "(" not in line:
                kind, _, name = line.rpartition("*")
                yield name.strip(), c_void_p
                continue
            kind, names = re.match(r"((?:const |struct |enum )*\w+)\s+(.*)", line, re.S).groups()
            for name in (each.strip() for each in names.split(",")):
                found = re.match(r"(\w+)(?:\[(\d+)\])?", name)
                made = self._type(kind)
                yield found[1], made * int(found[2]) if found[2] else made

    def _type(self, kind):
        kind = kind.replace("const ", "").strip()
        if kind.startswith("enum "):
            return c_int
        if kind.startswith("struct "):
            return self.structs[kind.removeprefix("struct fsm_")]
        if kind in self.views:
            return self.views[kind].type
        return {**_SCALARS, "fsm_kernels": self.kernels, "fsm_kernel": c_void_p, "fsm_read": c_void_p,
                "fsm_write": c_void_p, "void": None}[kind]  # fmt: skip

    def struct(self, name, **values):
        made = self.structs[name]()
        for field, value in values.items():
            made.put(field, value)
        return made

    def __getattr__(self, name):
        full = name if name.startswith("test_") else f"fsm_{name}"
        if full not in self.declared:
            raise AttributeError(name)
        result, parameters = self.declared[full]
        function = getattr(self.library, full)
        function.restype = self._type(result)
        kinds = [self._parameter(each) for each in parameters]
        function.argtypes = [kind for kind, _ in kinds]

        def call(*given):
            given, passed, outs = list(given), [], []
            for kind, out in kinds:
                if out is not None and len(given) < sum(1 for _, each in kinds[len(passed) :] if each is None) + 1:
                    outs.append(out())
                    passed.append(byref(outs[-1]))
                else:
                    passed.append(_passed(kind, given.pop(0)))
            assert not given
            found = _back(function(*passed))
            return (found, *(_back(each) for each in outs)) if outs else found

        return call

    def _parameter(self, text):
        """Return the type that a parameter is passed as, and what it points to where it is written through."""
        kind, star, _ = text.rpartition("*")
        if not star:
            return self._type(text.rpartition(" ")[0]), None
        if "const" in kind or (kind.startswith("struct") and kind.strip() != "struct fsm_enumeration_result"):
            return c_void_p, None
        return POINTER(self._type(kind)), self._type(kind)


def _passed(kind, value):
    if isinstance(value, np.ndarray):
        return kind.view.of(value) if hasattr(kind, "view") else value.ctypes.data_as(kind)
    if isinstance(value, Structure) and kind is c_void_p:
        return ctypes.addressof(value)
    return value


def _back(value):
    if hasattr(value, "view"):
        return value.view.array(value)
    return getattr(value, "value", value) if not isinstance(value, Record) else value


def _build(text):
    """Compile the library, once for these sources and flags (``FSM_DYN_TEST_FLAGS``: further ones)."""
    flags = ["-O1", *os.environ.get("FSM_DYN_TEST_FLAGS", "").split()]
    sources = b"".join(path.read_bytes() for path in sorted(FOLDER.glob("*.c")))
    digest = hashlib.sha256(f"{text}{flags}".encode() + sources).hexdigest()[:16]
    made = BUILT / f"runtime_{digest}.so"
    if not made.exists():
        compile_library([EXPORTED], made, *flags)
    return made


@cache
def internals():
    return Internals()


class Arena:
    """Room for the arrays of an instant; ``self.struct`` is what the runtime takes."""

    def __init__(self, floats=100_000, integers=10_000):
        self.floats, self.integers = np.full(floats, 7.0), np.full(integers, 7, np.int64)
        self.top = np.zeros(len(internals().structs["arena_top"]._fields_), np.int64)
        self.struct = internals().struct("arena", floats=self.floats, integers=self.integers)
        self.struct.top = self.top.ctypes.data
        self.struct.top_count = len(self.top)
