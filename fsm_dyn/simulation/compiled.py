# mypy: disable-error-code="no-untyped-call, misc, assignment, untyped-decorator"
"""The decorators under which compiled functions stand.

numba optimises and emits machine code for every function together with all it calls, again at every level of
calls.  Here functions that only compiled functions call are merely lowered, and everything is linked, optimised
and emitted once, with the function that Python calls.

numba's own disk cache looks only at the file a function is written in, so a change in a file it calls would go
unnoticed.  The cache used here is named and stamped after a digest of every source file of this package and kept in the
user's cache directory, which also serves installations that may not be written to; installations of the same sources
share it.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import pickle
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import AnnotateTypes, NopythonTypeInference

from fsm_dyn.programs import cache

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = numba.njit
_KEPT = 4  # builds of a function that are kept beside the newest, of other sources: other installations may use them
_OBJECTS = 20_000  # made between two looks for garbage during a build: a tenth less time, 15 MB more
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


@lru_cache(maxsize=4)
def sources_digest(file: str = __file__) -> str:
    """Return a digest of the sources of this package, of those beside a ``file`` outside it, and of numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    paths = sorted(Path(__file__).parent.glob("*.py"))
    for path in paths if Path(file) in paths else [*paths, *sorted(Path(file).parent.glob("*.py"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _directory() -> Path | None:
    """Return the directory of compiled code, or None where none is known."""
    root = cache.cache_directory()
    return None if root is None else root / "stepper"


class _Locator(caching._CacheLocator):
    """Says where compiled code lies and by what it is stamped."""

    def __init__(self, name: str, file: str) -> None:
        self._name = name
        self._file = file

    def ensure_cache_path(self) -> None:
        """Do nothing: whoever keeps code looks whether he may, see :class:`_Cache`."""

    def get_cache_path(self) -> str:
        return str(_directory() or "")

    def get_source_stamp(self) -> str:
        return sources_digest(self._file)

    def get_disambiguator(self) -> str:
        return sources_digest(self._file)[:12]

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func.__name__, py_file)


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _SealedFile(caching.IndexDataCacheFile):
    """Files of compiled code, read if they are this user's own; a seal, a digest of stamp and content, tells damage."""

    def _seal(self, data: bytes) -> bytes:
        return hashlib.sha256(str(self._source_stamp).encode() + data).digest()

    def _write(self, path: str, data: Any) -> None:
        content = self._dump(data)
        cache.write(Path(path), self._seal(content) + content)

    def _read(self, path: str) -> Any:
        content = cache.content(Path(path)) or b""
        if content[:32] != self._seal(content[32:]):
            raise OSError("missing, truncated, foreign, or of other sources")
        return pickle.loads(content[32:])  # noqa: S301  (nobody else can have written it)

    def _load_index(self) -> Any:
        try:
            return self._read(self._index_path)
        except OSError:
            return {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)
        self._clear_out()

    def _clear_out(self) -> None:
        """Remove all but the newest builds of the function from other sources."""
        cache.remove_abandoned(Path(self._cache_path))
        function, _, rest = self._index_name.rpartition("-")
        kind = rest.partition(".")[2]  # version of Python
        others = [path for path in Path(self._cache_path).glob(f"{function}-*.{kind}") if path.name != self._index_name]
        for index in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT:]:
            for path in index.parent.glob(f"{index.stem}.*"):
                path.unlink(missing_ok=True)


class _Cache(caching.FunctionCache):
    """A cache that never stands in the way: what cannot be read is compiled, what cannot be written is not kept.

    Code is unpickled and run as it is found: only a directory that is this user's alone is used.
    """

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _SealedFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not cache.usable(_directory()):
            return None
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a bad index can fail in any way
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if cache.usable(_directory()):
            with contextlib.suppress(OSError):
                super().save_overload(sig, data)


class _LateEnvironments:
    """Stands in for the code generator of a part: keeps its environment until the whole is emitted."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, Any]] = []

    def set_env(self, name: str, environment: Any) -> None:
        """Remember the environment of a function, whose global variable does not exist yet."""
        self.kept.append((name, environment))


class _PartLibrary(JITCodeLibrary):
    """The code of one function below an entry: lowered, not linked, not optimised, not emitted."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.environments = _LateEnvironments()

    @property
    def codegen(self) -> _LateEnvironments:
        return self.environments

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _WholeLibrary(JITCodeLibrary):
    """The code of an entry function with the parts of all functions below it."""

    def add_linking_library(self, library: Any) -> None:
        library._ensure_finalized()
        if library in self._linking_libraries:
            return
        # callers come first: the linker drops what nothing refers to yet
        self._linking_libraries.append(library)
        if isinstance(library, _PartLibrary):
            for part in library._linking_libraries:
                self.add_linking_library(part)

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        codegen: Any = self._codegen
        for library in self._linking_libraries:
            for name, environment in library.environments.kept if isinstance(library, _PartLibrary) else ():
                if codegen._engine.get_global_value_address(name):
                    codegen.set_env(name, environment)


@register_pass(mutates_CFG=False, analysis_only=False)
class _MakePart(LoweringPass):
    _name = "fsm_dyn_make_part"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _MakeWhole(LoweringPass):
    _name = "fsm_dyn_make_whole"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = _WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InferTypes(NopythonTypeInference):
    """Type inference that lets functions return views of arrays they were given, though references are not counted.

    Who returns an array of his own where none are counted would leave it without an owner; but here nobody can make
    one.
    """

    _name = "fsm_dyn_infer_types"

    def run_pass(self, state: Any) -> bool:
        plain = state.targetctx
        state.targetctx = plain.subtarget(enable_nrt=True)
        try:
            return bool(super().run_pass(state))
        finally:
            state.targetctx = plain


class _PartCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        return [_with_pass(self.state, _MakePart)]


@contextlib.contextmanager
def _fewer_collections() -> Iterator[None]:
    """Let Python look for cyclic garbage seldom: a build makes millions of objects, nearly all of them kept."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _OBJECTS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _WholeCompiler(CompilerBase):
    def compile_extra(self, func: Any) -> Any:
        with _fewer_collections():
            return super().compile_extra(func)

    def define_pipelines(self) -> list[Any]:
        return [_with_pass(self.state, _MakeWhole)]


def _with_pass(state: Any, extra: Any) -> Any:
    passes = DefaultPassBuilder.define_nopython_pipeline(state)
    passes.passes = [(_InferTypes if each is NopythonTypeInference else each, why) for each, why in passes.passes]
    passes.add_pass_after(extra, AnnotateTypes)
    passes.finalize()
    return passes


def lean(function: F) -> F:
    """Compile a function that only compiled functions call; what arrays it needs it is given, or has from an arena.

    It counts no references: counting them, atomically, takes longer than a step of a small mechanism.
    """
    dispatcher: Any = _njit(
        pipeline_class=_PartCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, **_OPTIONS
    )(function)
    template = dispatcher.get_call_template

    def once(arguments: Any, named: Any) -> Any:
        # a constant among the arguments is a number like any other: no version of its own is compiled for it
        return template(
            tuple(types.unliteral(each) for each in arguments),
            {name: types.unliteral(each) for name, each in named.items()},
        )

    dispatcher.get_call_template = once
    return dispatcher


def whole(function: F) -> F:
    """Compile a function that Python calls and that makes no array."""
    return _njit(pipeline_class=_WholeCompiler, no_cfunc_wrapper=True, _nrt=False, **_OPTIONS)(function)


def entry(function: F) -> F:
    """Compile a function like :func:`whole` and keep the result on disk."""
    dispatcher: Any = whole(function)
    dispatcher._cache = _Cache(function)
    return dispatcher


def routine(function: F) -> F:
    """Compile a function that machine code calls by its address, see :func:`address`, and keep the result on disk."""
    dispatcher: Any = _njit(pipeline_class=_WholeCompiler, _nrt=False, **_OPTIONS)(function)
    dispatcher._cache = _Cache(function)
    return dispatcher


def address(function: Callable[..., Any], *kinds: types.Type) -> int:
    """Return the address of a :func:`routine` for arguments of these types, in the calling convention of C."""
    dispatcher: Any = function
    dispatcher.compile(kinds)
    compiled = dispatcher.overloads[kinds]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name))
