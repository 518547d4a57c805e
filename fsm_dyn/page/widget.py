"""A widget for notebooks: the page of a finished run, and sliders of parameters with which it runs again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import FsmDynError, InputError, did_you_mean
from fsm_dyn.core.optional_libraries import optional_library
from fsm_dyn.page.playback import Reruns
from fsm_dyn.page.report import report_text

EXTRA: Final = "notebook"
_SCRIPT: Final = """
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
    return type("RunPage", (anywidget.AnyWidget,), {"_esm": _SCRIPT, **traits})
