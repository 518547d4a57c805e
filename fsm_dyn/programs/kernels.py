"""Machine code of programs: compiled by LLVM for this processor, kept on disk, called by address."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import itertools
import json
import os
import stat
import sys
import tempfile
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple, overload

import llvmlite
import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.core.records import dataclass
from fsm_dyn.programs.graph import gc_paused
from fsm_dyn.programs.llvm import CALLED, module_text
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.sources import share_angles
from fsm_dyn.runtime.library import address

# -- Disk cache of machine code, in a directory of the user --------------------------------------------------
#
# A file is a header (magic, key, SHA-256 of the rest) and an object file. It is written under another name and moved
# into place, so readers see all of it or nothing, even with concurrent writers. Machine code is executed without
# further checks; therefore a file is used only if it belongs to this user, no other user may write to it or to its
# directory, and header and checksum fit. Everything else counts as absent, and the code is made again. An unusable
# directory costs compile time and nothing else.
#
# Keys contain a digest of the sources that made the content (:func:`sources_of`), so another version of them, a user's
# upgrade or a developer's change, never reads files of an earlier one.

MAGIC = b"fsm_dyn object code 1\n"
ENVIRONMENT = "FSM_DYN_CACHE"
SUFFIX = ".kernel"
TEMPORARY = ".part"
LARGEST_SIZE = 256 * 2**20
BOUND_SHARE = 64  # the cache of a process exceeds its largest size by at most one part in this many
_PLACES = {  # of caches: the environment variable, and the folder in the home directory
    "win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches"),
}  # fmt: skip
ABANDONED_AFTER = 3600.0  # seconds; an older temporary file belongs to a dead process


def cache_directory() -> Path | None:
    """Return the cache directory of this package: ``$FSM_DYN_CACHE`` or one in the platform's folder for caches.

    None if neither the variable nor the platform's folder nor a home directory is known. The directory need not exist.
    """
    own = os.environ.get(ENVIRONMENT)
    if own:
        return Path(own)
    variable, within_home = _PLACES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    base = os.environ.get(variable, "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / within_home) / "fsm_dyn"
    except RuntimeError:  # no HOME, and the user is not in the password database
        return None


def usable(directory: Path | None) -> bool:
    """Return whether a directory of the cache may be used; it is made if need be.

    It may if it belongs to this user, is no link, and other users cannot write to it. An existing unusable directory
    causes a warning, once.
    """
    if directory is None:
        return False
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        objection = _objection(directory.lstat(), directory=True)
    except OSError:
        return False
    if objection:
        _tell(directory, objection)
    return not objection


def content(path: Path) -> bytes | None:
    """Return the content of a file owned by this user and not writable by others; None if there is no such file."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            return None if _objection(os.fstat(file.fileno()), directory=False) else file.read()
    except OSError:
        return None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # opening a pipe would wait for a writer


def write(path: Path, data: bytes) -> None:
    """Write a file atomically; raises OSError."""
    handle, temporary = tempfile.mkstemp(suffix=TEMPORARY, dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def remove_abandoned(directory: Path) -> None:
    """Remove half-written files of dead processes."""
    for changed, _, path in _files(directory, (TEMPORARY,)):
        if changed < time.time() - ABANDONED_AFTER:
            _remove(path)


@lru_cache(maxsize=16)
def _tell(directory: Path, objection: str) -> None:
    """Warn of an unusable directory, once."""
    warnings.warn(
        f"the cache is not used: '{directory}' {objection}, and code in it would be run; remove it, or name another "
        f"folder by {ENVIRONMENT}",
        stacklevel=2,
    )


def _objection(status: os.stat_result, *, directory: bool) -> str:
    """Return the reason not to trust a file or directory: its type, owner or permissions; empty if trusted."""
    if not (stat.S_ISDIR if directory else stat.S_ISREG)(status.st_mode):
        return f"is no {'folder' if directory else 'file'} itself"
    if sys.platform == "win32":  # profiles are private there, and modes say nothing
        return ""
    if status.st_uid != os.getuid():
        return "belongs to another user"
    return "may be written by others" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


@lru_cache(maxsize=8)
def sources_of(*parts: str) -> str:
    """Return a digest of the Python sources of parts of this package, in hexadecimal digits; 4 ms for 1.5 MB.

    ``*parts``: names of packages or modules in ``fsm_dyn``.
    """
    package, found = Path(__file__).parents[1], hashlib.sha256()
    for part in parts:
        folder = package / part
        files = folder.rglob("*.py") if folder.is_dir() else (folder.with_suffix(".py"),)
        for path in sorted(files):
            content_ = path.read_bytes()
            found.update(f"{path.relative_to(package).as_posix()} {len(content_)}\n".encode() + content_)
    return found.hexdigest()


def clear() -> int:
    """Remove all machine code kept on disk; return the number of files removed."""
    return ObjectCache.default().clear()


_added_since_bound: dict[Path, int] = {}  # bytes by directory, in this process


@dataclass(frozen=True)
class ObjectCache:
    """Object code by key in one directory."""

    directory: Path | None  # none: nothing is kept
    largest_size: int = LARGEST_SIZE  # bytes; beyond it the least recently used files are removed

    @classmethod
    def default(cls) -> ObjectCache:
        """Return the cache in :func:`cache_directory`."""
        directory = cache_directory()
        return cls(None if directory is None else directory / "kernels")

    def load(self, key: str) -> bytes | None:
        """Return the object code kept under `key` (hexadecimal), or None if there is none to be trusted."""
        if self.directory is None or not usable(self.directory):
            return None
        path = self.directory / (key + SUFFIX)
        found = content(path)
        if found is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # last use, for the removal of the oldest
        head = _header(key, found[_header_length(key) :])
        return found[len(head) :] if found.startswith(head) else None

    def store(self, key: str, payload: bytes) -> bool:
        """Keep object code under `key`; return whether this was possible."""
        if self.directory is None or not usable(self.directory):
            return False
        try:
            write(self.directory / (key + SUFFIX), _header(key, payload) + payload)
        except OSError:
            return False
        self._bound(len(payload))
        return True

    def clear(self) -> int:
        """Remove all files of this cache; return their number."""
        return sum(_remove(path) for _, _, path in _files(self.directory, (SUFFIX, TEMPORARY)))

    def _bound(self, added: int) -> None:
        """Remove the least recently used files until the size is within bounds, and files of dead processes.

        A look at all files takes longer than writing one: it is due at a process's first file, and then whenever
        a share of the largest size has been added.
        """
        assert self.directory is not None
        added += _added_since_bound.get(self.directory, self.largest_size)
        _added_since_bound[self.directory] = added
        if added * BOUND_SHARE < self.largest_size:
            return
        _added_since_bound[self.directory] = 0
        remove_abandoned(self.directory)
        files = sorted(_files(self.directory, (SUFFIX,)))
        excess = sum(size for _, size, _ in files) - self.largest_size
        for _, size, path in files[:-1]:  # the newest stays, however large it is
            if excess <= 0:
                break
            excess -= size * _remove(path)


def _files(directory: Path | None, suffixes: tuple[str, ...]) -> list[tuple[float, int, str]]:
    """Return time of last use, size and path of the files of a directory with one of `suffixes`."""
    found = []
    with contextlib.suppress(OSError), os.scandir(directory or "") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.endswith(suffixes) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime, status.st_size, entry.path))
    return found


def _header(key: str, payload: bytes) -> bytes:
    return MAGIC + f"{key}\n{hashlib.sha256(payload).hexdigest()}\n".encode()


def _header_length(key: str) -> int:
    return len(MAGIC) + len(key) + 66  # two line ends and the 64 digits of the checksum


def _remove(path: str) -> int:
    """Remove a file; return 1 if it is gone by our hand."""
    try:
        os.unlink(path)
    except OSError:
        return 0
    return 1


# -- Machine code of programs --------------------------------------------------------------------------------
#
# Machine code of programs: compiled by LLVM for this processor, kept on disk, called by address or from Python.

ABI = "void(double t, const double *x, const double *c, double *out)"
OPTIMISATION = 3
# Without optimisation code takes two to three times as long to run, and a tenth of the time to make.
SELDOM_RUN = 0
# JITLink maps all sections of an object as one block, within reach of 32-bit references. RuntimeDyld maps each section
# separately, and aborts the process if one is more than 2 GiB away; llvmlite has nothing else on Windows, where
# references have 64 bits instead.
JIT_LINK = sys.platform != "win32"
CODE_MODEL = "small" if JIT_LINK else "large"

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_library_numbers = itertools.count()
KEPT_CODE = 32 * 2**20  # bytes of unused object code kept loaded
_linked: OrderedDict[bytes, tuple[llvm.ResourceTracker, int]] = OrderedDict()  # most recently used last
_linking = threading.Lock()


class Kernel:
    """A compiled program.

    ``program``: the program it computes. ``address``: of the machine code; valid while this object (or its
    :class:`Kernels`) lives.
    """

    def __init__(self, program: Program, address: int, library: object) -> None:
        self.program = program
        self.address = address
        self._library = library  # keeps the code in memory
        self._function = _PROTOTYPE(address)

    def __call__(self, t: float, x: npt.ArrayLike, c: npt.ArrayLike) -> Floats:
        """Return all outputs of one state, one after the other.

        ``t``: time, s; ``x``, shape (n_x,); ``c``, shape (n_c,). The result has the shape (size of the program,).
        Raises InputError: an argument has another shape.
        """
        layout = self.program.layout
        state = _vector("x", x, layout.n_x)
        context = _vector("c", c, layout.n_c)
        out = np.empty(self.program.size)
        self._function(t, state.ctypes.data, context.ctypes.data, out.ctypes.data)
        return out

    def rows(self, t: Floats, x: Floats, c: Floats) -> dict[str, Floats]:
        """Return the outputs at rows by name, each of shape (n, *shape); a row has the same bits among any others.

        ``t``, ``x``, ``c``, shapes (n,), (n, n_x) and (n, n_c): times (s), states and contexts.
        """
        times, states, context = (np.ascontiguousarray(part, dtype=np.float64) for part in (t, x, c))
        layout, out = self.program.layout, np.empty((len(times), self.program.size))
        for name, array, length in (("x", states, layout.n_x), ("c", context, layout.n_c)):
            if array.shape != (len(times), length):
                raise InputError(
                    f"'{name}' has the wrong shape", found=str(array.shape), allowed=f"({len(times)}, {length})"
                )
        addresses = (array.ctypes.data for array in (times, states, context, out))
        _rows_loop()(self.address, len(times), layout.n_x, layout.n_c, self.program.size, *addresses)
        return {
            name: out[:, self.program.slices[name]].reshape(len(times), *shape)
            for name, shape in self.program.outputs.items()
        }

    def outputs(self, t: float, x: npt.ArrayLike, c: npt.ArrayLike) -> dict[str, Floats]:
        """Return the outputs of one state by name, each in its shape."""
        out, slices = self(t, x, c), self.program.slices
        return {name: out[slices[name]].reshape(shape) for name, shape in self.program.outputs.items()}


class Kernels(Sequence[Kernel]):
    """The kernels of one call of :func:`compile_programs`.

    ``from_cache``: whether the machine code was found on disk.
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
    def addresses(self) -> Integers:
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

    ``objects``: cache of machine code; by default in :func:`~fsm_dyn.programs.kernels.cache_directory`.
    ``optimisation``: the code generator's level, ``SELDOM_RUN`` for long programs with few calls. ``keep_zeros``:
    whether constant zeros of the result are not written: the caller's memory is zero there. Result: one per program.
    Keep it as long as any address is in use. Raises RunError: the code generator does not work here.
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
    """Return the object code for :func:`compile_programs` to link, and the name of each program in it.

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
        # at any level of optimisation, for the same numbers from all
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
    """Return the hash of all dependencies of machine code: programs, versions, processor, calling convention."""
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

    No passes run over the module before code generation: the graph has already simplified.  On programs of 700 and
    2,400 operations the standard pipeline made the kernels no faster.
    """
    try:
        return bytes(_machine(optimisation).emit_object(llvm.parse_assembly(text)))
    except RuntimeError as error:
        raise RunError(f"LLVM refused a program: {error}") from error


def _kept_code(text: str) -> bytes:
    """Compile a module without addresses, or take its object code from disk."""
    objects, key = ObjectCache.default(), _key([hashlib.sha256(text.encode()).hexdigest()], OPTIMISATION)
    code = objects.load(key)
    if code is None:
        code = object_code(text)
        objects.store(key, code)
    return code


def link(code: bytes, names: Sequence[str]) -> llvm.ResourceTracker | None:
    """Load object code into this process; return the owner of its addresses, or None on failure.

    The same code is loaded once, up to :data:`KEPT_CODE`: LLVM never frees some kilobytes of each loaded object.
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


def _vector(name: str, values: npt.ArrayLike, length: int) -> Floats:
    """Return a contiguous array of doubles of the right length."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (length,):
        raise InputError(f"'{name}' has the wrong shape", found=str(array.shape), allowed=f"({length},)")
    return array


# -- Kernels at many rows ------------------------------------------------------------------------------------
#
# The loop is machine code too: a call from Python takes longer than most kernels.

_LOOP = """
target triple = "{triple}"
define void @fsm_dyn_rows(i64 %kernel, i64 %n, i64 %n_x, i64 %n_c, i64 %n_out, ptr %t, ptr %x, ptr %c, ptr %out) {{
begin:
  %function = inttoptr i64 %kernel to ptr
  br label %test
test:
  %i = phi i64 [ 0, %begin ], [ %next, %row ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %row, label %end
row:
  %of_x = mul i64 %i, %n_x
  %of_c = mul i64 %i, %n_c
  %of_out = mul i64 %i, %n_out
  %at_t = getelementptr double, ptr %t, i64 %i
  %at_x = getelementptr double, ptr %x, i64 %of_x
  %at_c = getelementptr double, ptr %c, i64 %of_c
  %at_out = getelementptr double, ptr %out, i64 %of_out
  %time = load double, ptr %at_t
  call void %function(double %time, ptr %at_x, ptr %at_c, ptr %at_out)
  %next = add i64 %i, 1
  br label %test
end:
  ret void
}}
"""
_ROWS = ctypes.CFUNCTYPE(None, *5 * (ctypes.c_int64,), *4 * (ctypes.c_void_p,))
_loops: list[object] = []  # the code, for the life of the process


@cache
def _rows_loop() -> Callable[..., None]:
    """Return the function that calls a kernel at rows."""
    library = link(_kept_code(_LOOP.format(triple=target().triple)), ["fsm_dyn_rows"])
    if library is None:
        raise RunError("the machine code made by LLVM cannot be loaded here")
    _loops.append(library)
    return _ROWS(int(library["fsm_dyn_rows"]))


# -- Kernels to pass a bound structure to a routine ----------------------------------------------------------
#
# A kernel knows only time, state, context and result. If one routine serves many kernels, a few instructions of
# machine code bind its data to it, and the caller treats it like any kernel.
#
# The instructions read routine and bound data from memory, so an unused kernel can be bound again: LLVM never frees
# loaded code completely. They contain no address: the code is the same in all processes, which find it on disk.

_BOUND = """
target triple = "{triple}"
@fsm_dyn_routine = dso_local global i64 0
@fsm_dyn_bound = dso_local global [{words} x i64] zeroinitializer
"""
_CLOSURE = """
define void @fsm_dyn_closure_{number}(double %t, ptr %x, ptr %c, ptr %out) {{
  %state = ptrtoint ptr %x to i64
  %context = ptrtoint ptr %c to i64
  %result = ptrtoint ptr %out to i64
  %address = load i64, ptr @fsm_dyn_routine
  %routine = inttoptr i64 %address to ptr
  %at = getelementptr i64, ptr @fsm_dyn_bound, i64 {first}
  %next = getelementptr i64, ptr @fsm_dyn_bound, i64 {second}
  %first = load i64, ptr %at
  %second = load i64, ptr %next
  %done = call i64 %routine(i64 %first, i64 %second, double %t, i64 %state, i64 %context, i64 %result)
  ret void
}}
"""
_AT_ONCE: Final = 32  # kernels are made in multiples of so many: few numbers of them are kept on disk


class _Pool:
    """Kernels of one routine, which are bound, used and bound again."""

    def __init__(self, routine: int) -> None:
        self._routine = routine
        self._kept: list[object] = []  # the code, for the life of the process
        self._free: list[tuple[int, memoryview]] = []
        self._lock = threading.Lock()

    def take(self, bound: Sequence[tuple[int, int]]) -> list[tuple[int, memoryview]]:
        """Return a kernel for each pair: its address, and the memory of its bound data."""
        with self._lock:
            if len(self._free) < len(bound):
                self._make(_AT_ONCE * -(-len(bound) // _AT_ONCE))
            taken = [self._free.pop() for _ in bound]
        for (_, place), pair in zip(taken, bound, strict=True):
            place[0], place[1] = pair
        return taken

    def give_back(self, taken: list[tuple[int, memoryview]]) -> None:
        """Take back unused kernels."""
        self._free.extend(taken)

    def _make(self, count: int) -> None:
        text = _BOUND.format(triple=target().triple, words=2 * count) + "".join(
            _CLOSURE.format(number=i, first=2 * i, second=2 * i + 1) for i in range(count)
        )
        names = [f"fsm_dyn_closure_{i}" for i in range(count)]
        # not by `link`, which loads the same code once: pools have separate memory
        library = _link(_kept_code(text), ["fsm_dyn_routine", "fsm_dyn_bound", *names])
        if library is None:
            raise RunError("the machine code made by LLVM cannot be loaded here")
        self._kept.append(library)
        ctypes.c_int64.from_address(library["fsm_dyn_routine"]).value = self._routine
        bound = (ctypes.c_int64 * (2 * count)).from_address(library["fsm_dyn_bound"])
        places = memoryview(bound).cast("B").cast("q")
        self._free += [(int(library[name]), places[2 * i : 2 * i + 2]) for i, name in enumerate(names)]


_pools: dict[int, _Pool] = {}


class BoundKernels:
    """Kernels of one routine, each with two integers bound to it.

    ``addresses``: of the machine code; valid while this object lives.
    """

    def __init__(self, routine: int, bound: Sequence[tuple[int, int]]) -> None:
        """Make a kernel for each pair of integers.

        ``routine``: address of ``int64 routine(int64, int64, double t, int64 x, int64 c, int64 out)``, pointers as
        integers; ``bound``: the first two arguments of each kernel. Raises RunError: the code generator does not work
        here.
        """
        pool = _pools.setdefault(routine, _Pool(routine))
        taken = pool.take(bound)
        weakref.finalize(self, pool.give_back, taken).atexit = False
        self.addresses = tuple(address for address, _ in taken)
