// Parameters of a live run on sliders, inputs on buttons, initial mode.

import { $, el } from "./dom.js";

const SPAN = 10; // a slider ranges from a tenth to ten times the file's value
const STEPS = 400;

export class ParameterPanel {
  constructor(send) {
    Object.assign(this, { send, box: $("setup"), rows: new Map() });
    $("setup-button").onclick = () => this.toggle();
    $("setup-close").onclick = () => this.toggle(false);
    this.box.addEventListener("keydown", (event) => event.key === "Escape" && this.toggle(false));
    window.addEventListener("blur", () => this.release());
  }

  toggle(open = this.box.hidden) {
    if (!this.about || this.about.playback) return; // of a finished run it is a tab
    this.box.hidden = !open;
    for (const id of ["guards", "log"]) $(id).inert = open; // covered by the panel
    $("setup-button").setAttribute("aria-expanded", open);
    if (open) this.box.querySelector("select, input, button")?.focus();
    else $("setup-button").focus();
  }

  model(model) {
    const again = this.about?.playback && model.playback && this.about.name === model.name && this.rows.size; // a slider may be held
    this.about = model;
    $("setup-button").hidden = !!model.playback;
    if (model.playback) this.box.hidden = !model.setup;
    if (again && model.setup) this.show(model.setup);
    else if (model.setup) this.build(model.setup);
  }

  setup(message) {
    this.show(message);
  }

  build({ parameters, drives, mode, waiting }) {
    this.release(); // the pressed button is replaced
    this.rows.clear();
    const modes = el("select", { id: "initial-mode", onchange: (event) => this.send({ do: "initial", mode: event.target.value }) },
      el("option", { value: "", text: "model default" }),
      ...this.about.graph.modes.map(({ name }) => el("option", { value: name, text: name })));
    modes.value = mode;
    const parts = [
      ...(this.about.alone || this.about.playback ? [] : [el("label", { class: "begins" }, "Initial mode", modes)]),
      el("p", { class: "note", id: "waiting", role: "status" }),
    ];
    if (drives.length) parts.push(el("h3", { text: "Inputs" }), ...drives.map((drive) => this.drive(drive)));
    const own = parameters.filter((item) => !item.hand), hand = parameters.filter((item) => item.hand);
    if (own.length) parts.push(el("h3", { text: "Parameters" }), ...own.map((item) => this.row(item)));
    if (hand.length) parts.push(el("h3", { text: "Virtual coupler" }), ...hand.map((item) => this.row(item)));
    $("setup-body").replaceChildren(...parts);
    this.show({ parameters, waiting });
  }

  // A parameter: a slider over two decades (linear, both signs, if not positive) and a number field.
  row(item) {
    const { name, value, unit, reset } = item, positive = value > 0, size = Math.abs(value) || (unit === "m" ? 0.0025 : 0.5);
    const slider = el("input", { type: "range", min: -1, max: 1, step: 1 / STEPS, "aria-label": `${name}, slider` });
    const number = el("input", { type: "number", step: "any", "aria-label": `${name}${unit ? `, ${unit}` : ""}` });
    const to = (s) => (positive ? value * SPAN ** s : value + 2 * size * s);
    const from = (v) => (positive ? Math.log(v / value) / Math.log(SPAN) : (v - value) / (2 * size));
    const say = (v) => {
      const rounded = Number(v.toPrecision(4));
      number.value = rounded;
      this.send({ do: "set", name, value: rounded });
    };
    slider.oninput = () => say(to(+slider.value));
    slider.ondblclick = () => say(value);
    number.onchange = () => Number.isFinite(number.valueAsNumber) && this.send({ do: "set", name, value: number.valueAsNumber });
    const mark = reset ? el("span", { class: "tag", text: "on reset", title: "Affects gaps, constraints or inertia; applied at the next reset" }) : "";
    const row = el("div", { class: "parameter" }, el("span", { class: "what", text: name, title: name }), mark, slider, number, el("span", { class: "soft", text: unit }));
    this.rows.set(name, { row, number, set: (v) => {
      if (document.activeElement !== number) number.value = Number(v.toPrecision(6));
      if (document.activeElement !== slider) slider.value = Math.min(1, Math.max(-1, v > 0 || !positive ? from(v) : -1));
    } });
    return row;
  }

  // An input: has the given amount while a button is pressed, by pointer or key; a boolean one is true while it is checked.
  drive({ name, unit, size, boolean }) {
    if (boolean) {
      const check = el("input", { type: "checkbox", onchange: () => this.send({ do: "input", name, value: +check.checked }) });
      return el("label", { class: "drive" }, el("span", { class: "what", text: name, title: name }), check);
    }
    const amount = el("input", { type: "number", step: "any", value: Number(size.toPrecision(4)), "aria-label": `${name}, amount` });
    const button = (sign, text) => {
      const one = el("button", { class: "small press", text, "aria-label": `${name} ${text}`, title: "Active while pressed" });
      const press = (event) => {
        if (event.type === "keydown" && (event.repeat || ![" ", "Enter"].includes(event.key))) return;
        event.preventDefault();
        event.stopPropagation();
        one.focus();
        this.release();
        this.held = [name, one];
        one.classList.add("pressed");
        this.send({ do: "input", name, value: sign * (amount.valueAsNumber || 0) });
      };
      const release = () => this.held?.[1] === one && this.release();
      one.addEventListener("pointerdown", (event) => {
        one.setPointerCapture(event.pointerId);
        press(event);
      });
      for (const kind of ["pointerup", "pointercancel", "lostpointercapture", "keyup", "blur"]) one.addEventListener(kind, release);
      one.addEventListener("keydown", press);
      return one;
    };
    return el("div", { class: "drive" }, el("span", { class: "what", text: name, title: name }), button(-1, "−"), amount, el("span", { class: "soft", text: unit }), button(1, "+"));
  }

  release() {
    if (!this.held) return;
    const [name, button] = this.held;
    this.held = null;
    button.classList.remove("pressed");
    this.send({ do: "input", name, value: 0 });
  }

  connection(state) {
    if (state !== "open") this.held = null;
  }

  show({ parameters, waiting }) {
    for (const { name, now } of parameters) this.rows.get(name)?.set(now);
    for (const [name, { row }] of this.rows) row.classList.toggle("waits", waiting.includes(name));
    const note = $("waiting");
    if (!note) return;
    if (waiting.length) note.replaceChildren(`${waiting.join(", ")}: applied at the next reset. `, el("button", { class: "small", text: "Reset now", onclick: () => this.send({ do: "reset" }) }));
    else note.replaceChildren();
  }
}
