// Dragging of a port handle by pointer or keys: samples go to the server at display rate while engaged.

import { $, setText } from "./dom.js";
import { HANDLE } from "./frames.js";

const NEAR = 60; // px, largest distance of a press from its handle
const OVER = 12; // px, of a handle at a connection: a press takes the handle
const KEY_SPEED = 260; // px per second
const TURN_SPEED = 1.2; // rad per second
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export class HandleDrag {
  constructor(mechanism, send) {
    Object.assign(this, { mechanism, send, held: false, by: "", keys: new Set(), turn: 0, twist: false });
    const svg = mechanism.element;
    svg.addEventListener("pointerdown", (event) => this.down(event));
    svg.addEventListener("pointermove", (event) => this.move(event));
    svg.addEventListener("pointerup", () => this.up());
    svg.addEventListener("pointercancel", () => this.up());
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("dblclick", () => mechanism.fit());
    window.addEventListener("blur", () => this.keys.clear());
  }

  model(model) {
    this.ports = model.playback || model.device ? [] : model.ports; // none in playback or with a device
    this.port = model.port;
    this.held = false;
    this.space = !model.picture.planar;
    [this.azimuth, this.elevation] = [0.36, 0.35]; // rad, as on the server
    this.hint();
  }

  connection(state) {
    if (state !== "open") this.release();
  }

  hint() {
    const axes = this.ports.length ? "Drag a handle" : "";
    const turn = this.space ? "; drag elsewhere to rotate the view, with Shift to pan" : "";
    setText($("hint"), axes && `${axes} ○, or engage it with G and move it with the arrow keys${turn}`);
  }

  get number() {
    return this.ports.findIndex((port) => port.name === this.port);
  }

  // Couple the pointer to a port, with or without its rotation.
  use(port, twist = this.twist) {
    this.port = port;
    this.twist = twist;
    this.send({ do: "port", port, twist });
  }

  place(k) {
    return this.mechanism.view.screen(this.frameNow.handles[HANDLE * k], this.frameNow.handles[HANDLE * k + 1]);
  }

  down(event) {
    if (event.button !== 0 || !this.frameNow) return;
    const box = this.mechanism.element.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const nearest = this.ports
      .map((port, k) => [Math.hypot(...this.place(k).map((v, i) => v - [px, py][i])), k])
      .sort((a, b) => a[0] - b[0])[0];
    if (event.target.closest?.(".pin-target") && !(nearest?.[0] <= OVER)) return; // a click shows a force, and moves nothing
    const onBody = event.target.closest?.("[data-body], .handle");
    this.mechanism.element.setPointerCapture(event.pointerId);
    if (!nearest || (nearest[0] > NEAR && !onBody)) {
      this.panning = [px, py];
      return;
    }
    const port = this.ports[nearest[1]].name;
    if (port !== this.port) this.use(port);
    this.onport?.(port);
    const [hx, hy] = this.place(nearest[1]);
    this.take("pointer", px, py, [hx - px, hy - py]);
  }

  take(by, px, py, offset = [0, 0]) {
    Object.assign(this, { held: true, by, at: [px, py], offset, turn: this.turn });
  }

  move(event) {
    const box = this.mechanism.element.getBoundingClientRect();
    const at = [event.clientX - box.left, event.clientY - box.top];
    if (this.panning) {
      const [dx, dy] = [at[0] - this.panning[0], at[1] - this.panning[1]];
      if (this.space && !event.shiftKey) this.look(-0.008 * dx, 0.008 * dy);
      else this.mechanism.view.pan(dx, dy);
      this.panning = at;
    } else if (this.held && this.by === "pointer") this.at = at;
  }

  // Rotate the view of a spatial mechanism.
  look(azimuth, elevation) {
    if (!this.space) return;
    this.azimuth += azimuth;
    this.elevation = Math.min(1.55, Math.max(-1.55, this.elevation + elevation));
    this.send({ do: "view_direction", azimuth: this.azimuth % (2 * Math.PI), elevation: this.elevation });
  }

  up() {
    this.panning = null;
    if (this.by === "pointer") this.release();
  }

  release() {
    if (!this.held) return;
    this.held = false;
    this.sample(false);
  }

  wheel(event) {
    event.preventDefault();
    if (this.held && this.twist) {
      this.turn -= event.deltaY * 2e-3;
      return;
    }
    const box = this.mechanism.element.getBoundingClientRect();
    this.mechanism.view.zoom(Math.exp(-event.deltaY * 1.2e-3), event.clientX - box.left, event.clientY - box.top);
  }

  // Keys: G engages or disengages the handle, arrows move it, Q and E rotate it.
  toggle() {
    if (!this.ports.length) return;
    if (this.held) this.release();
    else if (this.frameNow) this.take("keys", ...this.place(this.number));
  }

  key(key, down) {
    if (!this.ports?.length || !(key in DIRECTIONS) && !["q", "e"].includes(key)) return false;
    if (down) {
      if (!this.held && key in DIRECTIONS) this.toggle();
      this.keys.add(key);
    } else this.keys.delete(key);
    return true;
  }

  frame(frame) {
    this.frameNow = frame;
    const now = performance.now(), step = Math.min(0.1, (now - (this.before ?? now)) / 1000);
    this.before = now;
    if (!this.held) return;
    for (const key of this.keys) {
      const [dx, dy] = DIRECTIONS[key] ?? [0, 0];
      this.at = [this.at[0] + dx * KEY_SPEED * step, this.at[1] - dy * KEY_SPEED * step];
      if (key === "q") this.turn += TURN_SPEED * step;
      if (key === "e") this.turn -= TURN_SPEED * step;
    }
    this.sample(true);
  }

  sample(held) {
    const [px, py] = [this.at[0] + this.offset[0], this.at[1] + this.offset[1]];
    const [x, y] = this.mechanism.view.world(px, py);
    this.send({ do: "point", port: this.port, x, y, turn: this.turn, held });
  }
}
