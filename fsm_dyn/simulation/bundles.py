# mypy: disable-error-code="no-untyped-call, misc, override, untyped-decorator"
"""Named tuples of arrays, handed to compiled functions as one pointer.

numba passes a named tuple by value: seven machine words for every array in it, at every call.  With dozens of
arrays that costs more than a step of a small mechanism, and most of the time of compiling.  A *bundle* is a table
of addresses and shapes; in compiled code ``bundle.field`` is an array as before, so the same functions accept the
bundle or the tuple.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, register_model
from numba.np import numpy_support
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

T = TypeVar("T", bound=tuple[Any, ...])



class BundleType(types.Type):
    """The type, for numba, of the pointer to one kind of bundle."""

    def __init__(self, name: str, fields: dict[str, types.Array], lasting: bool) -> None:
        self.fields = fields
        self.lasting = lasting
        ends = np.cumsum([1 + kind.ndim for kind in fields.values()])  # an address, then the lengths
        self.words = int(ends[-1])
        self.begin = {field: int(end) - 1 - kind.ndim for (field, kind), end in zip(fields.items(), ends, strict=True)}
        shape = ", ".join(f"{field}: {kind.dtype}{kind.ndim}" for field, kind in fields.items())
        super().__init__(name=f"Bundle({name}: {shape})")


@register_model(BundleType)
class _BundleModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: BundleType) -> None:
        super().__init__(dmm, fe_type, ir.IntType(64).as_pointer())


@infer_getattr
class _BundleAttributes(AttributeTemplate):
    key = BundleType

    def generic_resolve(self, kind: BundleType, name: str) -> types.Array | None:
        return kind.fields.get(name)


@lower_getattr_generic(BundleType)
def _get_field(context: Any, builder: Any, kind: BundleType, value: Any, name: str) -> Any:
    array_type = kind.fields[name]
    first = kind.begin[name]

    def word(offset: int) -> Any:
        loaded = builder.load(builder.gep(value, [ir.Constant(ir.IntType(64), first + offset)]))
        if kind.lasting:  # the table of addresses does not change while compiled code runs
            loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    array = context.make_array(array_type)(context, builder)
    data = builder.inttoptr(word(0), array.data.type)
    shape = [word(1 + i) for i in range(array_type.ndim)]
    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    itemsize = ir.Constant(ir.IntType(64), size)
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()


def _in_rows(typingctx: Any, vector: Any, n: Any, m: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = context.make_array(vector)(context, builder, arguments[0])
        array = context.make_array(signature.return_type)(context, builder)
        strides = [builder.mul(given.itemsize, arguments[2]), given.itemsize]
        populate_array(
            array, data=given.data, shape=list(arguments[1:]), strides=strides, itemsize=given.itemsize, meminfo=None
        )
        return array._getvalue()

    return types.Array(vector.dtype, 2, "C")(vector, types.intp, types.intp), generate


#: ``in_rows(vector, n, m)``: a contiguous vector as ``n`` rows of ``m``; spares compiled code numpy's general reshape.
in_rows: Any = intrinsic(_in_rows)


# A pointer is an array of which only the beginning is known.  Its entries are found without asking whether an index
# counts from the end, which halves the time of arithmetic on matrices kept in one long vector.


def _pointer_at(typingctx: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(types.int64), generate


def _start_of(typingctx: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(array)(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


def _shifted(typingctx: Any, pointer: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), generate


#: ``pointer_at(address)``: the floats that begin at an address; whoever gives it keeps them alive.
pointer_at: Any = intrinsic(_pointer_at)

#: ``start_of(array)``: the entries of a contiguous array, as a pointer.
start_of: Any = intrinsic(_start_of)

#: ``shifted(pointer, n)``: the entries from the ``n``-th on.
shifted: Any = intrinsic(_shifted)


class Packed(NamedTuple):
    """A bundle on the Python side: the address of its table, the table, and the arrays, which must stay alive."""

    address: int
    table: NDArray[np.int64]
    arrays: tuple[Any, ...]


# words before the table, dtype and place of every array, the table with addresses from the block's beginning on
_Plan = tuple[int, list[tuple[np.dtype[Any], slice]], NDArray[np.int64]]


def _entry_type(annotation: Any) -> np.dtype[Any]:
    """Return T of ``NDArray[T]``, which numpy writes out as ``ndarray[shape, dtype[T]]`` or (from 2.5 on) does not."""
    last = get_args(annotation)[-1]
    return np.dtype((get_args(last) or (last,))[0])


class Bundle:
    """How a named tuple class becomes a bundle.

    Parameters
    ----------
    cls : type
        Named tuple class whose fields are all annotated ``NDArray[dtype]``.
    dimensions : mapping
        Number of dimensions of the fields that have more than one.
    lasting : bool
        Whether its table of addresses is made by Python, before compiled code runs; else see :meth:`maker`.
    """

    def __init__(self, cls: type[T], dimensions: dict[str, int] | None = None, lasting: bool = True) -> None:
        self.cls = cls
        self.name = cls.__name__
        self._plans: dict[tuple[int, ...], _Plan] = {}
        hints = get_type_hints(cls)
        self.fields: dict[str, tuple[np.dtype[Any], int]] = {}
        for field in cls._fields:  # type: ignore[attr-defined]
            dtype = _entry_type(hints[field])
            self.fields[field] = (dtype, (dimensions or {}).get(field, 1))
        self.type = BundleType(
            self.name,
            {
                field: types.Array(numpy_support.from_dtype(dtype), ndim, "C")
                for field, (dtype, ndim) in self.fields.items()
            },
            lasting,
        )

    def pack(self, arrays: T) -> Packed:
        """Return the bundle of a named tuple; raises TypeError where an array is not as announced."""
        table = np.zeros(self.words, dtype=np.int64)
        words: list[int] = []
        for (field, (dtype, ndim)), array in zip(self.fields.items(), arrays, strict=True):
            if array.dtype != dtype or array.ndim != ndim or not array.flags.c_contiguous:
                raise TypeError(f"{self.name}.{field} must be a C-contiguous {dtype} array of {ndim} dimensions")
            words += (array.ctypes.data, *array.shape)
        table[:] = words
        return Packed(table.ctypes.data, table, arrays)

    def allocate(self, *lengths: int) -> tuple[Any, Packed]:
        """Return a named tuple of zeroed one-dimensional arrays of these lengths, in one block, and its bundle.

        Much faster than :meth:`pack`, because a single address has to be looked up.
        """
        at, places, table = self._plan(lengths)
        block = np.zeros(at + len(table), dtype=np.int64)
        base: int = block.ctypes.data
        views = {dtype: block.view(dtype) for dtype, _ in places}
        block[at:] = table
        block[at::2] += base
        return self.cls(*[views[dtype][place] for dtype, place in places]), Packed(base + 8 * at, block, ())

    def _plan(self, lengths: tuple[int, ...]) -> _Plan:
        """Where a block of :meth:`allocate` holds its arrays: worked out once for every choice of lengths."""
        if lengths not in self._plans:
            places: list[tuple[np.dtype[Any], slice]] = []
            table: list[int] = []
            at = 0
            for n, (dtype, _) in zip(lengths, self.fields.values(), strict=True):
                first = at * 8 // dtype.itemsize
                places.append((dtype, slice(first, first + n)))
                table += (8 * at, n)
                at += 1 + (n * dtype.itemsize - 1) // 8
            self._plans[lengths] = (at, places, np.array(table, dtype=np.int64))
        return self._plans[lengths]

    def opener(self) -> Any:
        """Return the compiled function that takes the address of a bundle and gives the bundle."""
        kind = self.type

        @intrinsic
        def open_bundle(typingctx: Any, address: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                return builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())

            return kind(types.int64), generate

        return open_bundle

    def maker(self) -> Any:
        """Return the compiled function that makes a bundle of a named tuple, given :attr:`words` integers of room."""
        kind = self.type

        @intrinsic
        def make_bundle(typingctx: Any, table: Any, arrays: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                word = ir.IntType(64)
                start = context.make_array(table)(context, builder, arguments[0]).data
                for i, (array_type, first) in enumerate(zip(arrays.types, kind.begin.values(), strict=True)):
                    array = context.make_array(array_type)(context, builder, builder.extract_value(arguments[1], i))
                    entries = [builder.ptrtoint(array.data, word), *cgutils.unpack_tuple(builder, array.shape)]
                    for j, entry in enumerate(entries):
                        builder.store(entry, builder.gep(start, [ir.Constant(word, first + j)]))
                return start

            if list(arrays.types) != list(kind.fields.values()):
                raise TypeError(f"{kind.name} cannot be made of {arrays}")
            return kind(table, arrays), generate

        return make_bundle

    @property
    def words(self) -> int:
        """Length of its table of addresses."""
        return self.type.words
