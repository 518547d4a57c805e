"""A page that simulates alone: the page of ``fsm-dyn view``, the runtime and a model as WebAssembly, in a file."""

from __future__ import annotations

from typing import Any, Final

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.exports.page_data import packed, page_data
from fsm_dyn.exports.wasm_build import BINARY
from fsm_dyn.spec.values import Parameters
from fsm_dyn.viewer.default_ports import with_default_ports
from fsm_dyn.viewer.live_broadcast import plain
from fsm_dyn.viewer.live_view import coupled_for_page
from fsm_dyn.viewer.playback_frames import plain_json
from fsm_dyn.viewer.report import COMPILING_POLICY, page_text

#: Script that a page without a runtime reads it from, in the same folder; one for all pages of a folder.
RUNTIME_SCRIPT: Final = "fsm_runtime.js"
_SHARING_POLICY: Final = COMPILING_POLICY.replace("script-src", "script-src 'self'", 1)


def for_page(graph: ModeGraph, parameters: Parameters | None) -> tuple[ModeGraph, dict[str, Any]]:
    """Return the graph with ports that the pointer can drag, and its parameters unlike the file's."""
    if not with_default_ports(graph.automaton.mechanism).ports:
        return graph, dict(parameters or {})
    return coupled_for_page(graph, parameters)


def page(run: ExportedRun, graph: ModeGraph, own_ports: bool, shared: bool = False) -> bytes:
    """Return the page.

    Parameters
    ----------
    run : ExportedRun
        Of what :func:`for_page` returned.
    graph : ModeGraph
    own_ports : bool
        Whether the model has ports of the file, not default ones.
    shared : bool
        Whether the runtime is in :data:`RUNTIME_SCRIPT` in the folder of the page instead of in it.
    """
    data, module = page_data(run, graph, own_ports)
    runtime = f'<script src="{RUNTIME_SCRIPT}"></script>\n' if shared else _holder("runtime-data", BINARY.read_bytes())
    holder = runtime + _holder("module-data", module) + _holder("machine-data", plain_json(plain(data)).encode())
    policy = _SHARING_POLICY if shared else COMPILING_POLICY
    return page_text(graph.name, holder, in_space=not data["model"]["picture"]["planar"], policy=policy).encode()


def runtime_script() -> bytes:
    """Return the content of :data:`RUNTIME_SCRIPT`."""
    return f'globalThis.fsmRuntime = "{packed(BINARY.read_bytes())}";\n'.encode()


def _holder(name: str, content: bytes) -> str:
    return f'<script type="text/plain" id="{name}">{packed(content)}</script>\n'
