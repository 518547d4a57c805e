"""Report of a run: one HTML file with the page, its scripts and a selection of display frames."""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import write_file
from fsm_dyn.page.broadcast import plain
from fsm_dyn.page.playback import CHARTED, PlaybackFrames, RecordedRun, from_trajectory, packed, plain_json
from fsm_dyn.run.trajectory import Trajectory

STATIC: Final = Path(__file__).parent / "static"
MOST_FRAMES: Final = 1500
MOST_NUMBERS: Final = 1_500_000  # of all frames, four bytes each
MAX_DETAILS: Final = 2000  # transitions in the event log

_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
#: The same for a page that compiles WebAssembly.
COMPILING_POLICY: Final = _POLICY.replace("'unsafe-inline'", "'unsafe-inline' 'wasm-unsafe-eval'", 1)
_IMPORT: Final = re.compile(r'^import \{ ([^}]*) \} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (class|function|const) ([\w$]+)", re.MULTILINE)
_LINK: Final = re.compile(r'<link rel="stylesheet" href="([^"]+)"( id="[^"]+")?>')
_COMMENT: Final = re.compile(r"^[ \t]*(?://.*|/\*(?!\*?\s*\*?\s*@license)(?:(?!\*/)[\s\S])*\*/[ \t]*)\n", re.MULTILINE)
_BLANK: Final = re.compile(r"^[ \t]+|\n(?=\n)", re.MULTILINE)
_FROM_CORE: Final = re.compile(r"^(import|export) \{([^}]*)\} from '\./three\.core\.js';\n", re.MULTILINE)
_HANDED_OUT: Final = re.compile(r"^export \{([^}]*)\};\n?", re.MULTILINE)
_EXPORTED_AT_END: Final = re.compile(r"export\{([^}]*)\};\s*$")
_SCRIPT: Final = re.compile(r'<script src="([^"]+)"( defer| type="module")></script>\n')


def write_report(
    run: Trajectory | RecordedRun, path: Path, graph: ModeGraph | None = None, before: RecordedRun | None = None
) -> Path:
    """Write a run as a self-contained page and return the path.

    Parameters
    ----------
    run : Trajectory or RecordedRun
    path : Path
    graph : ModeGraph, optional
        Graph of the trajectory; without it the model is compiled from the trajectory's text.
    before : RecordedRun, optional
        Earlier run, shown behind it.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    recorded = run if isinstance(run, RecordedRun) else from_trajectory(run, "report", graph)
    text = report_text(recorded, before)
    try:
        write_file(path, text)
    except OSError as error:
        raise InputError(f"cannot write '{path}'", found=str(error)) from error
    return path


class InlinePage:
    """Page of a run as notebooks show it: in a frame, self-contained.

    Parameters
    ----------
    run : Run
    before : Run, optional
        Earlier run, shown behind it.
    """

    def __init__(self, run: Trajectory, before: Trajectory | None = None) -> None:
        earlier = None if before is None else from_trajectory(before, "before")
        self.text = report_text(from_trajectory(run, "run"), earlier)

    def _repr_html_(self) -> str:
        frame = 'style="width:100%;height:52rem;border:1px solid #8884;border-radius:6px"'
        return f'<iframe srcdoc="{html.escape(self.text)}" {frame}></iframe>'


def report_text(recorded: RecordedRun, before: RecordedRun | None = None) -> str:
    """Return the self-contained page of a recorded run, with another one behind it."""
    encoder, data = recorded.encoder, plain_json(plain(report_data(recorded, before)))
    holder = f'<script type="application/json" id="playback-data">{data}</script>\n'
    return page_text(encoder.graph.name, holder, in_space=not encoder.picture.planar)


def page_text(name: str, holder: str, *, in_space: bool, policy: str = _POLICY) -> str:
    """Return the page as one file: styles, scripts and icon are in it.

    Parameters
    ----------
    name : str
        Of the model.
    holder : str
        Elements with the data, which precede the scripts.
    in_space : bool
        Whether three.js is needed.
    policy : str
        Content security policy.
    """
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    icon = base64.b64encode((STATIC / "icon.svg").read_bytes()).decode()
    page = page.replace('href="icon.svg"', f'href="data:image/svg+xml;base64,{icon}"')
    page = page.replace(
        "<meta charset", f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<meta charset', 1
    )
    page = page.replace("<title>fsm_dyn</title>", f"<title>{html.escape(f'{name} · fsm_dyn')}</title>")
    page = _LINK.sub(lambda link: f"<style{link[2] or ''}>\n{_file(link[1])}</style>", page)
    names = [script[0] for script in _SCRIPT.findall(page)]
    page = _SCRIPT.sub("", page)
    scripts = [bundled(Path(name).stem) if name.startswith("js/") else _file(name) for name in names]
    scripts.insert(0, gif_encoder())
    if in_space:
        scripts.insert(0, drawing_in_space())
    inline = "".join(f"<script>\n{_closed(script)}</script>\n" for script in scripts)
    return page.replace("</body>", f"{holder}{inline}</body>")


def report_data(recorded: RecordedRun, before: RecordedRun | None = None) -> dict[str, Any]:
    """Return the data of a report: payload, display frames, strip charts, event log."""
    playback = PlaybackFrames(recorded, before=before)
    playback.payload()
    size = len(playback.frame(0))
    chosen = playback.chosen(max(2, min(MOST_FRAMES, MOST_NUMBERS // size)))
    frames = [playback.frame(int(number)) for number in chosen]
    numbers, charted = np.concatenate(frames), playback.chosen(CHARTED)
    return {
        "model": {**playback.payload(), "guards": recorded.encoder.guards()},
        "frames": {
            "places": np.concatenate([[0], np.cumsum([len(frame) for frame in frames])]).tolist(),
            "clocks": recorded.clock[chosen].tolist(),
            "times": recorded.t[chosen].tolist(),
            "data": packed(numbers, "<f4"),
        },
        "charts": playback.charts(charted, playback.sampled(charted)),
        "transition_details": playback.transition_details(0, MAX_DETAILS),
        "loads": playback.loads(),
    }


def bundled(name: str) -> str:
    """Return a module of the page and all its imports as one plain script.

    The modules only import by name from the same folder and export declarations, which a test ensures.
    """
    order: list[str] = []
    _visit(name, order)
    return "".join(_module(each) for each in order)


def gif_encoder() -> str:
    """Return gifenc as one plain script: a module that exports in one statement at its end, which a test ensures."""
    source = re.sub(r"^//# sourceMappingURL=.*\n?", "", _file("vendor/gifenc.esm.js"), flags=re.MULTILINE)

    def handed_out(found: re.Match[str]) -> str:
        pairs = (each.split(" as ") for each in found[1].split(","))
        return "return {" + ",".join(f"{name}:{own}" for own, name in pairs) + "};"

    return f'const gifEncoder = (() => {{\n"use strict";\n{_EXPORTED_AT_END.sub(handed_out, source)}}})();\n'


def drawing_in_space() -> str:
    """Return three.js as one plain script without comments, about 1 MB.

    One of its two modules imports from the other by name in one statement, and both export in one statement at the end,
    which a test ensures.
    """
    core, rest = (_BLANK.sub("", _COMMENT.sub("", _file(f"vendor/three.{name}.js"))) for name in ("core", "module"))
    passed_on: list[str] = []

    def from_core(found: re.Match[str]) -> str:
        if found[1] == "export":
            passed_on.append(found[2])
            return ""
        return f"const {{{found[2].replace(' as ', ': ')}}} = core;\n"

    rest = _FROM_CORE.sub(from_core, rest)
    handed = ", ".join(f"{name.strip()}: core.{name.strip()}" for name in ",".join(passed_on).split(","))
    core = _HANDED_OUT.sub(lambda found: f"return {{{found[1]}}};\n", core)
    rest = _HANDED_OUT.sub(lambda found: f"return {{{found[1]}, {handed}}};\n", rest)
    return f'const inSpace = ((core) => {{\n"use strict";\n{rest}}})((() => {{\n"use strict";\n{core}}})());\n'


def _visit(name: str, order: list[str]) -> None:
    for _, other in _IMPORT.findall(_file(f"js/{name}.js")):
        if other not in order:
            _visit(other, order)
    if name not in order:
        order.append(name)


def _module(name: str) -> str:
    source = _file(f"js/{name}.js")
    exported = ", ".join(match[1] for match in _EXPORT.findall(source))
    body = _IMPORT.sub(lambda found: f"const {{ {found[1]} }} = module_{found[2]};\n", source)
    body = _EXPORT.sub(r"\1 \2", body)
    return f'const module_{name} = (() => {{\n"use strict";\n{body}\nreturn {{ {exported} }};\n}})();\n'


def _file(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _closed(script: str) -> str:
    """Return a script in which no text ends its ``<script>`` element."""
    return re.sub(r"</(script)", r"<\\/\1", script, flags=re.IGNORECASE)
