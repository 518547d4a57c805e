"""A finished run on its own: a report as one HTML file, a widget for notebooks with sliders that run it again."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import FsmDynError, InputError, did_you_mean, optional_library
from fsm_dyn.core.files import write_file
from fsm_dyn.page.broadcast import plain
from fsm_dyn.page.playback import CHARTED, PlaybackFrames, RecordedRun, Reruns, from_trajectory, packed, plain_json
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

    ``name``: of the model; ``holder``: elements with the data, which precede the scripts; ``in_space``: whether
    three.js is needed; ``policy``: content security policy.
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


# -- Widget for notebooks: the page of a finished run, and sliders of parameters with which it runs again ----

EXTRA: Final = "notebook"
_WIDGET_SCRIPT: Final = """
function make(tag, more, ...inside) {
  const one = Object.assign(document.createElement(tag), more);
  one.append(...inside);
  return one;
}

function row(model, { name, value, low, high, unit }) {
  const number = make("input", { type: "number", step: "any", value, style: "width:8em" });
  const slider = make("input", { type: "range", min: low, max: high, step: (high - low) / 200, value });
  const send = (x) => {
    model.set("values", { ...model.get("values"), [name]: x });
    model.save_changes();
  };
  slider.addEventListener("input", () => { number.value = slider.value; });
  slider.addEventListener("change", () => send(slider.valueAsNumber));
  number.addEventListener("change", () => { slider.value = number.value; send(number.valueAsNumber); });
  const style = "display:flex;gap:.5em;align-items:center";
  return make("label", { style }, make("span", { textContent: name, style: "width:8em" }), slider, number, unit);
}

function render({ model, el }) {
  const told = make("output", { style: "color:#B42318" });
  const style = "width:100%;height:52rem;border:1px solid #8884;border-radius:6px";
  const frame = make("iframe", { style, title: "run" });
  const show = () => {
    frame.srcdoc = model.get("page");
    told.textContent = model.get("error");
  };
  model.on("change:page", show);
  model.on("change:error", show);
  el.append(...model.get("sliders").map((one) => row(model, one)), told, frame);
  show();
}

export default { render };
"""


class RunWidget:
    """The page of a run of a model in a notebook, with sliders: each change runs it again, the first run stays behind.

    Requires the extra ``notebook``.

    Parameters
    ----------
    graph : ModeGraph
    until : float, optional
        End of the runs, s; by default that of the model.
    parameters : mapping of str to float, optional
        Values unlike those of the model, SI.
    sliders : tuple of str, optional
        Names of the parameters with a slider; by default all that no other determines.

    Attributes
    ----------
    run : Trajectory
        The present run.
    widget : anywidget.AnyWidget

    Raises
    ------
    InputError
        The extra is not installed, or there is no such parameter.
    """

    def __init__(
        self,
        graph: ModeGraph,
        until: float | None = None,
        parameters: Mapping[str, float] | None = None,
        sliders: tuple[str, ...] = (),
    ) -> None:
        self._reruns = Reruns(graph, dict(parameters or {}), until)
        self._first = self._reruns.run({})
        self.run = self._first.trajectory
        known = {item["name"]: item for item in self._reruns.payload({})["parameters"]}
        self._names = tuple(known)
        self._check(sliders)
        items = [known[name] for name in sliders or known]
        self.widget = _widget_class()(
            sliders=[
                {
                    "name": item["name"], "value": item["now"], "unit": item["unit"],
                    "low": min(0.0, 2.0 * item["now"]), "high": max(0.0, 2.0 * item["now"]) or 1.0,
                }
                for item in items
            ],
            page=report_text(self._first),
        )  # fmt: skip
        self.widget.observe(self._changed, names="values")

    def set(self, **values: float) -> None:
        """Run again with these values of parameters, SI, as a slider does.

        Raises
        ------
        InputError
            There is no such parameter.
        """
        self._check(values)
        self.widget.values = {**self.widget.values, **values}

    def _check(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._names:
                raise InputError(
                    f"there is no free parameter '{name}'", found=name, allowed=", ".join(self._names),
                    remedy=did_you_mean(name, self._names),
                )  # fmt: skip

    def _changed(self, change: Mapping[str, Any]) -> None:
        try:
            found = self._reruns.run({name: float(value) for name, value in change["new"].items()})
        except FsmDynError as error:
            self.widget.error = str(error)
            return
        self.run = found.trajectory
        self.widget.error = ""
        self.widget.page = report_text(found, self._first)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)


def _widget_class() -> Any:
    anywidget, traitlets = optional_library("anywidget", EXTRA), optional_library("traitlets", EXTRA)
    shared = {
        "page": traitlets.Unicode(), "error": traitlets.Unicode(), "sliders": traitlets.List(),
        "values": traitlets.Dict(),
    }  # fmt: skip
    traits = {name: trait.tag(sync=True) for name, trait in shared.items()}
    return type("RunPage", (anywidget.AnyWidget,), {"_esm": _WIDGET_SCRIPT, **traits})
