// Keyboard commands and their list.

import { $, el } from "./dom.js";
import { TABS } from "./tabs.js";

const TABLE = [
  ["Space", "run or pause"],
  ["S", "one tick"],
  ["N  B", "next transition, in the tab Story next visit; in playback also previous (B)"],
  ["1  2  3  4", "story, charts, guards, parameters of a finished run"],
  ["R", "reset to the start"],
  ["C", "clear a fault"],
  ["−  +  0", "slower, faster, real time"],
  ["G", "engage / disengage the handle"],
  ["← ↑ → ↓", "move the handle; in playback: earlier, later"],
  ["H  J  K", "press the model's key softly, medium, loudly, while held down"],
  ["Q  E", "rotate the handle, if its rotation is coupled"],
  ["P", "next port"],
  ["T", "couple the rotation, or not"],
  ["D", "apply the model's input schedule, or not"],
  ["O", "sound of contacts that close, on or off"],
  ["A", "record an animation, a GIF file, or save it"],
  ["F", "fit the mechanism into the view"],
  [",  .", "rotate the view of a mechanism in space; PgUp and PgDn raise and lower it"],
  ["[  ]", "choose a mode in the graph; in the graph the arrow keys too"],
  ["M", "enlarge the graph, or not"],
  ["V", "choose the quantities of the strip charts"],
  ["X", "parameters, inputs, initial mode"],
  ["L", "event log; ↑ and ↓ move between entries, Enter opens one"],
  ["?", "this list"],
];
const FIELDS = "input, select, textarea, summary";

export class Keys {
  constructor(app) {
    this.app = app;
    this.dialog = $("keys");
    this.dialog.append(
      el("h2", { text: "Keys" }),
      el("dl", {}, ...TABLE.flatMap(([key, what]) => [el("dt", {}, ...key.split(/\s{2}/).map((k) => el("kbd", { text: k }))), el("dd", { text: what })])),
      el("p", { class: "soft", text: "Drag a handle to engage it. Drag elsewhere to pan, wheel to zoom, double-click to fit." }),
      el("form", { method: "dialog" }, el("button", { text: "Close", autofocus: true })),
    );
    $("help").onclick = () => this.dialog.showModal();
    window.addEventListener("keydown", (event) => this.press(event, true));
    window.addEventListener("keyup", (event) => this.press(event, false));
  }

  press(event, down) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const field = event.target.closest?.(FIELDS);
    if (field && (key === " " || key === "Enter" || key.startsWith("Arrow"))) return;
    if (event.target.closest?.("button") && (key === " " || key === "Enter")) return;
    if (field && event.target.type === "number") return;
    if (event.target.closest?.("#entries, #map, #story-list") && key.startsWith("Arrow")) return;
    const { controls, dragging, mechanism, map, charts, playing } = this.app;
    if (event.target.closest?.("#editor")) return;
    if (this.app.model && playing.key(key, down, event.repeat)) {
      event.preventDefault();
      return;
    }
    if (this.app.model && dragging.key(key, down)) {
      event.preventDefault();
      return;
    }
    if (!down) return;
    const { playback, tabs } = this.app, recorded = playback.run;
    const actions = {
      ...(tabs.chosen && Object.fromEntries(TABS.map((name, k) => [k + 1, () => tabs.choose(name)]))),
      ...(recorded && {
        b: () => (tabs.chosen === "story" ? $("previous").click() : playback.next(-1)), ArrowLeft: () => playback.by(-1), ArrowRight: () => playback.by(1),
        ArrowUp: () => playback.step(-1), ArrowDown: () => playback.step(1), Home: () => playback.seek(playback.from), End: () => playback.seek(playback.to),
      }),
      " ": () => controls.run(),
      s: () => controls.step(),
      n: () => $(tabs.chosen === "story" ? "following" : "next").click(),
      r: () => $("reset").click(),
      c: () => recorded || controls.send({ do: "clear" }),
      "-": () => controls.faster(0.5),
      "+": () => controls.faster(2),
      "=": () => controls.faster(2),
      0: () => controls.faster(0),
      g: () => dragging.toggle(),
      Escape: () => {
        dragging.release();
        if (!this.app.setup.box.hidden) this.app.setup.toggle(false);
      },
      p: () => controls.port(1),
      t: () => controls.toggle("twist"),
      d: () => controls.toggle("schedule"),
      o: () => controls.toggle("sound"),
      a: () => $("gif").click(),
      f: () => mechanism.fit(),
      ",": () => dragging.look(-0.15, 0),
      ".": () => dragging.look(0.15, 0),
      PageUp: () => dragging.look(0, 0.1),
      PageDown: () => dragging.look(0, -0.1),
      "[": () => map.walk(-1),
      "]": () => map.walk(1),
      m: () => map.enlarge(),
      v: () => charts.choose(),
      x: () => this.app.setup.toggle(),
      l: () => ($("entries").querySelector("summary") ?? $("entries")).focus(),
      "?": () => this.dialog.showModal(),
    };
    const action = actions[key];
    if (!action || (!this.app.model && key !== "?")) return;
    event.preventDefault();
    action();
  }
}
