"""Machine code of programs: compiled by LLVM for this processor, kept on disk, called by address or from Python."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, overload

import llvmlite
import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from fsm_dyn.errors import InputError, RunError
from fsm_dyn.programs.angle_sums import share_angles
from fsm_dyn.programs.cache import ObjectCache, sources_of
from fsm_dyn.programs.gc_pause import gc_paused
from fsm_dyn.programs.llvm import CALLED, module_text
from fsm_dyn.programs.program import Array, Program
from fsm_dyn.runtime.library import address

ABI = "void(double t, const double *x, const double *c, double *out)"
OPTIMISATION = 3
# Without optimisation code takes two to three times as long to run, and a tenth of the time to make.
SELDOM_RUN = 0
# JITLink maps all sections of an object as one block, so that references of 32 bits among them always reach.
# RuntimeDyld maps each where there is room, and aborts the process where that is more than 2 GiB away; llvmlite has
# nothing else on Windows, where references are of 64 bits instead.
JIT_LINK = sys.platform != "win32"
CODE_MODEL = "small" if JIT_LINK else "large"

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_library_numbers = itertools.count()
KEPT_CODE = 32 * 2**20  # bytes of object code that stay loaded when nobody uses them
_linked: OrderedDict[bytes, tuple[llvm.ResourceTracker, int]] = OrderedDict()  # the one used last comes last
_linking = threading.Lock()


class Kernel:
    """A compiled program.

    Attributes
    ----------
    program : Program
        What it computes.
    address : int
        Of the machine code; valid while this object (or its :class:`Kernels`) lives.
    """

    def __init__(self, program: Program, address: int, library: object) -> None:
        self.program = program
        self.address = address
        self._library = library  # keeps the code in memory
        self._function = _PROTOTYPE(address)

    def __call__(self, t: float, x: npt.ArrayLike, c: npt.ArrayLike) -> Array:
        """Return all outputs of one state, one after the other.

        Parameters
        ----------
        t : float
            Time, s.
        x : array-like, shape (n_x,)
        c : array-like, shape (n_c,)

        Returns
        -------
        ndarray, shape (size of the program,)

        Raises
        ------
        InputError
            An argument has another shape.
        """
        layout = self.program.layout
        state = _vector("x", x, layout.n_x)
        context = _vector("c", c, layout.n_c)
        out = np.empty(self.program.size)
        self._function(t, state.ctypes.data, context.ctypes.data, out.ctypes.data)
        return out

    def outputs(self, t: float, x: npt.ArrayLike, c: npt.ArrayLike) -> dict[str, Array]:
        """Return the outputs of one state by name, each in its shape."""
        out, slices = self(t, x, c), self.program.slices
        return {name: out[slices[name]].reshape(shape) for name, shape in self.program.outputs.items()}


class Kernels(Sequence[Kernel]):
    """The kernels of one call of :func:`compile_programs`.

    Attributes
    ----------
    from_cache : bool
        Whether the machine code was found on disk.
    """

    def __init__(self, kernels: Sequence[Kernel], from_cache: bool) -> None:
        self._kernels = tuple(kernels)
        self.from_cache = from_cache

    @overload
    def __getitem__(self, index: int) -> Kernel: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Kernel, ...]: ...
    def __getitem__(self, index: int | slice) -> Kernel | tuple[Kernel, ...]:
        return self._kernels[index]

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    @property
    def addresses(self) -> npt.NDArray[np.int64]:
        """Addresses of the machine code; valid while this object lives."""
        return np.array([kernel.address for kernel in self._kernels], dtype=np.int64)


def compile_programs(
    programs: Sequence[Program],
    objects: ObjectCache | None = None,
    *,
    optimisation: int = OPTIMISATION,
    keep_zeros: bool = False,
) -> Kernels:
    """Return machine code of `programs`, from disk if the same ones were compiled before.

    Parameters
    ----------
    programs : sequence of Program
    objects : ObjectCache, optional
        Where machine code is kept; by default in :func:`~fsm_dyn.programs.cache.cache_directory`.
    optimisation : int
        The code generator's level, ``SELDOM_RUN`` for long programs that are called now and then.
    keep_zeros : bool
        Whether places of the result that are the constant zero are left as they are: the caller's memory is zero there.

    Returns
    -------
    Kernels
        One per program.  Keep it as long as any address is in use.

    Raises
    ------
    RunError
        The code generator does not work here.
    """
    objects = ObjectCache.default() if objects is None else objects
    distinct = {program.digest: program for program in programs}
    if not distinct:
        return Kernels((), from_cache=False)
    names = {digest: f"fsm_dyn_{digest}" for digest in distinct}
    key = _key(sorted(distinct), optimisation, keep_zeros)
    code = objects.load(key)
    library = None if code is None else link(code, list(names.values()))
    from_cache = library is not None
    if library is None:
        code = _made(distinct, names, optimisation, keep_zeros)
        library = link(code, list(names.values()))
        if library is None:
            raise RunError("the machine code made by LLVM cannot be loaded here")
        objects.store(key, code)
    kernels = [Kernel(program, library[names[program.digest]], library) for program in programs]
    return Kernels(kernels, from_cache)


def machine_code(programs: Sequence[Program], optimisation: int = OPTIMISATION) -> tuple[bytes, list[str]]:
    """Return the object code that :func:`compile_programs` links, and the name of each program in it.

    Another process on this machine may :func:`link` it.
    """
    objects = ObjectCache.default()
    distinct = {program.digest: program for program in programs}
    names = {digest: f"fsm_dyn_{digest}" for digest in distinct}
    key = _key(sorted(distinct), optimisation)
    code = objects.load(key)
    if code is None:
        code = _made(distinct, names, optimisation, keep_zeros=False)
        objects.store(key, code)
    return code, [names[program.digest] for program in programs]


def _made(distinct: Mapping[str, Program], names: Mapping[str, str], optimisation: int, keep_zeros: bool) -> bytes:
    """Compile programs to object code; both mappings are by digest."""
    with gc_paused():
        # at any level of optimisation, so that all give the same numbers
        quicker = [share_angles(program) for program in distinct.values()]
        text = module_text(quicker, list(names.values()), target().triple, keep_zeros)
    return object_code(text, optimisation)


class Target(NamedTuple):
    """The processor to compile for."""

    triple: str
    processor: str
    features: str


@cache
def target() -> Target:
    """Return the processor this runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@cache
def _machine(optimisation: int) -> llvm.TargetMachine:
    here = target()
    return llvm.Target.from_triple(here.triple).create_target_machine(
        cpu=here.processor, features=here.features, opt=optimisation, reloc="pic", codemodel=CODE_MODEL
    )


@cache
def _engine() -> llvm.LLJIT:
    target()
    return llvm.create_lljit_compiler(use_jit_link=JIT_LINK)


def _key(digests: Sequence[str], optimisation: int, keep_zeros: bool = False) -> str:
    """Return what machine code depends on, hashed: programs, versions, processor, calling convention."""
    parts = [
        sources_of("programs"),
        CODE_MODEL,
        optimisation,
        keep_zeros,
        ABI,
        llvmlite.__version__,
        llvm.llvm_version_info,
        *target(),
        *digests,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def object_code(text: str, optimisation: int = OPTIMISATION) -> bytes:
    """Compile a module.

    No passes run over the module before code generation: the graph has done what they would do.  On programs of
    700 and 2,400 operations the standard pipeline made the kernels no faster.
    """
    try:
        return bytes(_machine(optimisation).emit_object(llvm.parse_assembly(text)))
    except RuntimeError as error:
        raise RunError(f"LLVM refused a program: {error}") from error


def link(code: bytes, names: Sequence[str]) -> llvm.ResourceTracker | None:
    """Load object code into this process; return what gives the addresses and keeps them valid, or None.

    The same code is loaded once, as far as :data:`KEPT_CODE` goes: LLVM keeps some kilobytes of whatever it has loaded.
    """
    key = hashlib.sha256(code + "\n".join(names).encode()).digest()
    with _linking:
        if key in _linked:
            _linked.move_to_end(key)
            return _linked[key][0]
        found = _link(code, names)
        if found is not None:
            _linked[key] = found, len(code)
            while sum(size for _, size in _linked.values()) > KEPT_CODE:
                _linked.popitem(last=False)
        return found


def _link(code: bytes, names: Sequence[str]) -> llvm.ResourceTracker | None:
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in CALLED:
        builder.import_symbol(name, address(name))
    for name in names:
        builder.export_symbol(name)
    try:
        return builder.link(_engine(), f"fsm_dyn_{next(_library_numbers)}")
    except RuntimeError:
        return None


def _vector(name: str, values: npt.ArrayLike, length: int) -> Array:
    """Return a contiguous array of doubles of the right length."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (length,):
        raise InputError(f"'{name}' has the wrong shape", found=str(array.shape), allowed=f"({length},)")
    return array
