// A port that is a key: computer keys and buttons press it softly, medium or loudly, and release it.

import { $, el, setText } from "./dom.js";
import { HANDLE } from "./frames.js";

const TOUCHES = [ // key, name, peak velocity of the press, m/s
  ["h", "soft", 0.16], ["j", "medium", 0.3], ["k", "loud", 0.6],
];
const UP = 0.4; // m/s

export class Playing {
  constructor(send, dragging) {
    Object.assign(this, { send, dragging, box: $("playing"), pressing: "", down: false, speed: UP, held: false, waits: false, timer: null });
    this.buttons = new Map(TOUCHES.map(([key, name]) => [key, this.button(key, name)]));
    this.heard = el("output", { id: "playing-heard", "aria-label": "The last note" });
    this.box.append(el("span", { class: "soft", text: "Press the key" }), ...this.buttons.values(), this.heard);
    window.addEventListener("blur", () => this.up());
  }

  button(key, name) {
    const made = el("button", { class: "small", id: `press-${name}`, "aria-pressed": false, title: `Press ${name} (${key.toUpperCase()}); released with the button` }, name, " ", el("kbd", { text: key.toUpperCase() }));
    made.addEventListener("pointerdown", (event) => {
      made.setPointerCapture(event.pointerId);
      this.press(key);
    });
    for (const end of ["pointerup", "pointercancel"]) made.addEventListener(end, () => this.up());
    made.addEventListener("keydown", (event) => event.key === "Enter" && !event.repeat && this.press(key));
    made.addEventListener("keyup", (event) => event.key === "Enter" && this.up());
    return made;
  }

  model(model) {
    this.ports = model.playback ? [] : model.ports;
    this.byDevice = model.device;
    this.end();
    setText(this.heard, "");
    this.show();
  }

  // The port that is pressed, or undefined; of a device only an emulated one.
  get port() {
    if (this.byDevice && !this.byDevice.press) return undefined;
    return this.ports?.find((port) => port.name === this.dragging.port && port.press);
  }

  show() {
    this.box.hidden = !this.port;
    document.body.classList.toggle("playable", !this.box.hidden);
  }

  // H, J and K press while held down; returns whether the key was handled.
  key(key, down, repeated) {
    if (!this.port || !this.buttons.has(key)) return false;
    if (down && !repeated) this.press(key);
    else if (!down && this.pressing === key) this.up();
    return true;
  }

  // A press waits until the pointer is engaged.
  press(key) {
    if (!this.port) return;
    this.dragging.release();
    clearTimeout(this.timer);
    [this.pressing, this.released, this.held, this.waits] = [key, false, true, true];
    for (const [one, button] of this.buttons) button.setAttribute("aria-pressed", one === key);
    this.emit();
    this.beginEngaged();
  }

  // A press that is not fully engaged would be softer than its name; an emulated operator is engaged already.
  beginEngaged() {
    const number = this.port ? this.ports.indexOf(this.port) : -1;
    if (this.byDevice || this.shown?.handles[HANDLE * number + HANDLE - 1] >= 1) this.begin();
  }

  // Even a short tap presses the key completely.
  begin() {
    this.waits = false;
    this.speed = TOUCHES.find(([key]) => key === this.pressing)[2];
    this.down = true;
    this.emit();
    const distance = Math.abs(this.port.press[1] - this.port.press[0]);
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.released) this.lift();
    }, (1e3 * Math.PI * distance) / 2 / this.speed);
  }

  up() {
    if (!this.pressing) return;
    this.released = true;
    if (!this.timer && !this.waits) this.lift();
  }

  lift() {
    [this.pressing, this.down, this.speed] = ["", false, UP];
    for (const button of this.buttons.values()) button.setAttribute("aria-pressed", false);
    this.emit();
  }

  // The pointer is coupled elsewhere.
  end() {
    clearTimeout(this.timer);
    [this.pressing, this.down, this.held, this.waits, this.timer] = ["", false, false, false, null];
    for (const button of this.buttons.values()) button.setAttribute("aria-pressed", false);
  }

  // An emulated operator keeps its target; pointer samples are repeated, as a missing pointer is disengaged.
  emit() {
    const now = `${this.down} ${this.speed}`;
    if (this.byDevice && now === this.sent) return;
    this.sent = now;
    this.send({ do: "press", port: this.port.name, down: this.down, speed: this.speed });
  }

  frame(frame) {
    this.shown = frame;
    if (this.box.hidden === Boolean(this.port)) this.show();
    if (!this.held) return;
    if (!this.port || this.dragging.held || this.dragging.port !== this.port.name) this.end();
    else if (this.waits) this.beginEngaged();
    if (this.held) this.emit();
  }

  strike(name, speed) {
    setText(this.heard, `${name} ${speed.toFixed(2)} m/s`);
  }

  connection(state) {
    if (state !== "open") this.end();
    for (const button of this.buttons.values()) button.disabled = state !== "open";
  }
}
