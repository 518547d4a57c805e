// Device panel: position, velocity and force, force shutdown chain, commands of an emulated device.

import { $, el, setText } from "./dom.js";

const SOFTEST = 20, STIFFEST = 20000; // N/m, of the coupler's slider
const SHOWN = 2000; // ms, display of a saturated force
const NAMES = { garbage: "Garbage", half: "Half packets", stall: "Stall", freeze: "Freeze" };
const ABOUT = {
  garbage: "Noise instead of samples", half: "Truncated packets",
  stall: "No samples; forces are received", freeze: "No communication",
};

export class Device {
  constructor(send) {
    Object.assign(this, { send, box: $("device"), axes: [], hands: [], stiffness: new Map(), switches: new Map() });
  }

  model(model) {
    this.about = model.device;
    this.box.hidden = !this.about;
    document.body.classList.toggle("by-device", !!this.about);
    if (!this.about) return;
    const { name, axes, couplers, commands, reach, force, stops } = this.about;
    setText($("device-name"), `${name}${commands ? ", emulated" : ""}`);
    setText($("device-counts"), "");
    this.saturated = -Infinity;
    $("device-state").title = "";
    this.axes = axes.map((axis) => this.axis(axis, axes.length, force));
    $("device-axes").replaceChildren(...this.axes.map(({ row }) => row));
    this.hands = (commands?.includes("hand") ? axes : []).map((axis) => this.hand(axis, axes.length, reach));
    this.stiffness.clear();
    const springs = model.setup.parameters.filter((item) => couplers.includes(item.name)).map((item) => this.spring(item));
    $("device-set").replaceChildren(...this.hands.map(({ row }) => row), ...springs);
    this.buttons(commands ?? []);
    $("device-stops").replaceChildren(...stops.map((text) => el("li", { text })));
    this.setup(model.setup);
  }

  // Position, velocity and force of an axis; the force also as a bar from the middle.
  axis({ number, turns }, count, force) {
    const [place, speed, push] = [el("span", { class: "value" }), el("span", { class: "value" }), el("span", { class: "value" })];
    const fill = el("span", { class: "push" });
    const row = el("div", { class: "axis" },
      el("span", { class: "what soft", text: count > 1 ? `axis ${number + 1}` : "handle" }), place, speed, push,
      el("span", { class: "middle", role: "img", "aria-label": "Force" }, fill));
    return { row, number, show: (x, v, f) => {
      setText(place, x === null ? "–" : turns ? `${x.toFixed(3)} rad` : `${(1e3 * x).toFixed(2)} mm`);
      setText(speed, v === null ? "–" : turns ? `${v.toFixed(2)} rad/s` : `${Math.round(1e3 * v)} mm/s`);
      setText(push, f === null ? "–" : turns ? `${f.toFixed(3)} N m` : `${f.toFixed(2)} N`);
      const part = Math.max(-1, Math.min(1, (f ?? 0) / (turns ? 0.5 : force)));
      fill.style.transform = `scaleX(${part})`;
    } };
  }

  hand({ number, turns }, count, reach) {
    const slider = el("input", { type: "range", min: -reach, max: reach, step: reach / 200, value: 0, "aria-label": `Target position of the emulated operator${count > 1 ? `, axis ${number + 1}` : ""}` });
    const text = el("output");
    const show = (value) => setText(text, turns ? `${value.toFixed(3)} rad` : `${(1e3 * value).toFixed(1)} mm`);
    slider.oninput = () => {
      show(+slider.value);
      this.send({ do: "hand", axis: number, value: +slider.value });
    };
    show(0);
    const row = el("label", { class: "set" }, el("span", { text: count > 1 ? `Operator target, ${number + 1}` : "Operator target" }), slider, text);
    return { row, number, set: (value) => {
      if (document.activeElement === slider) return;
      slider.value = value;
      show(value);
    } };
  }

  spring({ name, unit }) {
    const [low, high] = /rad/.test(unit) ? [SOFTEST / 50, STIFFEST / 50] : [SOFTEST, STIFFEST];
    const slider = el("input", { type: "range", min: 0, max: 1, step: 1 / 300, "aria-label": `${name}, stiffness of the coupler` });
    const text = el("output");
    const show = (value) => setText(text, `${Number(value.toPrecision(3))} ${unit}`);
    slider.oninput = () => show(low * (high / low) ** +slider.value);
    slider.onchange = () => this.send({ do: "set", name, value: Number((low * (high / low) ** +slider.value).toPrecision(3)) });
    this.stiffness.set(name, (value) => {
      if (document.activeElement !== slider) slider.value = Math.log(value / low) / Math.log(high / low);
      show(value);
    });
    return el("label", { class: "set", title: "Applied on release of the slider" }, el("span", { text: `Coupler stiffness, ${name.replace(/_stiffness$/, "")}` }), slider, text);
  }

  buttons(commands) {
    this.switches.clear();
    const parts = [];
    if (commands.includes("unplug")) {
      this.plug = el("button", { class: "small", id: "plug", onclick: () => this.send({ do: "emulate", what: this.plugged ? "unplug" : "plug", on: true }) });
      parts.push(this.plug);
    }
    for (const what of ["garbage", "half", "stall", "freeze"].filter((one) => commands.includes(one))) {
      const button = el("button", { class: "small switch", id: `device-${what}`, text: NAMES[what], title: ABOUT[what], "aria-pressed": false });
      button.onclick = () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", on);
        this.send({ do: "emulate", what, on });
      };
      this.switches.set(what, button);
      parts.push(button);
    }
    if (this.about.press) parts.push(el("button", {
      class: "small", id: "device-play", text: "Play 8 notes", title: "The emulated operator repeats a note, 6.7 times a second",
      onclick: () => this.send({ do: "emulate", what: "play", on: true }),
    }));
    if (commands.includes("watchdog")) {
      const check = el("input", { type: "checkbox", id: "device-watchdog", checked: true });
      check.onchange = () => this.send({ do: "emulate", what: "watchdog", on: check.checked });
      this.dog = check;
      parts.push(el("label", { class: "check soft", title: "Device watchdog: zero force without force packets" }, check, "watchdog"));
    }
    $("device-buttons").hidden = !parts.length;
    $("device-buttons").replaceChildren(...parts);
    this.plugged = undefined;
    this.shown({ plugged: true });
  }

  setup({ parameters }) {
    for (const { name, now } of parameters) this.stiffness.get(name)?.(now);
  }

  // A saturated force is reported once per occasion and displayed for a while.
  event({ event, why, count }) {
    if (event !== "saturated" || !this.about) return;
    this.saturated = performance.now();
    $("device-state").title = `${why}; occasion ${count}. Remedy: a smaller scale or a softer coupler.`;
  }

  // State of the device, 10 Hz.
  device({ position, velocity, force, engagement, counts, emulated }) {
    if (!this.about) return;
    for (const { number: i, show } of this.axes) show(position?.[i] ?? null, velocity?.[i] ?? null, force?.[i] ?? null);
    if (emulated.plugged !== undefined) this.shown(emulated);
    const fault = ["fault", "failed"].includes(document.body.dataset.phase);
    const state = emulated.plugged === false ? "unplugged" : fault ? "disengaged (fault)" : emulated.let_go === "watchdog" ? "stopped by device watchdog" : !(engagement > 0) ? "disengaged" : engagement < 1 ? "engaging" : "engaged";
    const limit = state === "engaged" && performance.now() - this.saturated < SHOWN;
    setText($("device-state"), limit ? "engaged, force saturated" : state);
    $("device-state").dataset.state = limit ? "bad" : state === "engaged" ? "good" : /unplugged|fault|watchdog/.test(state) ? "bad" : "";
    const lost = Object.entries(counts).filter(([, number]) => number > 0).map(([name, number]) => `${name}: ${number}`);
    setText($("device-counts"), lost.join(" · "));
    $("device-counts").title = lost.join("\n");
  }

  shown({ plugged, hand, stalled, frozen, garbled, halved, watchdog }) {
    if (this.plug && plugged !== this.plugged) {
      this.plugged = plugged;
      setText(this.plug, plugged ? "Unplug" : "Plug in");
      this.plug.classList.toggle("primary", !plugged);
    }
    if (hand) this.hands.forEach((one) => one.set(hand.target[one.number]));
    const now = { stall: stalled, freeze: frozen, garbage: garbled, half: halved };
    for (const [what, on] of Object.entries(now)) if (on !== undefined) this.switches.get(what)?.setAttribute("aria-pressed", on);
    if (watchdog !== undefined && this.dog) this.dog.checked = watchdog > 0;
  }

  connection(state) {
    for (const control of this.box.querySelectorAll("button, input")) control.disabled = state !== "open";
  }
}
