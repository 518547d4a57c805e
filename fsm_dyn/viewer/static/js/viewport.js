// Viewport: metres to pixels. Follows the mechanism until the user pans.

import { $, svg } from "./dom.js";

const MARGIN = 0.14; // of the panel, kept free around the mechanism
const [TOP, BOTTOM] = [48, 40]; // px, at least: the mode's name and the clock; the hint and the scale
const SECOND_LINE = 34; // px: of the name, in a panel narrower than NARROW, and the buttons that press a key
const NARROW = 420; // px
const STEPS = [1, 2, 5, 10];

export class Viewport {
  constructor(element, grid, scaleBar, scaleText) {
    Object.assign(this, { element, grid, scaleBar, scaleText });
    this.scale = 100;
    this.x = this.y = 0; // metres in the middle of the panel
    this.free = false;
    this.lines = svg("path", { class: "grid" });
    this.axes = svg("path", { class: "axis" });
    grid.append(this.lines, this.axes);
    new ResizeObserver(() => this.measure()).observe(element);
    this.measure();
  }

  measure() {
    const box = this.element.getBoundingClientRect();
    this.width = box.width || 600;
    this.height = box.height || 400;
    this.changed = this.resized = true;
  }

  screen(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  world(px, py) {
    return [this.x + (px - this.width / 2) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  get matrix() {
    const s = this.scale;
    return `matrix(${s} 0 0 ${-s} ${this.width / 2 - this.x * s} ${this.height / 2 + this.y * s})`;
  }

  // Fit a box (low x, low y, high x, high y).
  fit(box) {
    const w = Math.max(box[2] - box[0], 1e-6), h = Math.max(box[3] - box[1], 1e-6);
    const top = Math.max(MARGIN * this.height, TOP + (this.width < NARROW ? SECOND_LINE : 0));
    const bottom = Math.max(MARGIN * this.height, BOTTOM + ($("playing").hidden ? 0 : SECOND_LINE));
    this.scale = Math.min((this.width * (1 - 2 * MARGIN)) / w, Math.max(this.height - top - bottom, 1) / h);
    this.x = (box[0] + box[2]) / 2;
    this.y = (box[1] + box[3]) / 2 + (top - bottom) / 2 / this.scale;
    this.free = this.resized = false;
    this.changed = true;
  }

  // Shift the view so that a box stays inside its inset.
  follow(box) {
    if (this.free) return;
    const inset = 0.1;
    const room = [this.width * (1 - 2 * inset) / this.scale, this.height * (1 - 2 * inset) / this.scale];
    const excess = Math.max((box[2] - box[0]) / room[0], (box[3] - box[1]) / room[1]);
    if (excess > 1) this.zoom(1 / Math.min(excess, 1.05));
    const shift = [0, 0];
    for (const k of [0, 1]) {
      const half = Math.max(room[k] / 2, (box[k + 2] - box[k]) / 2);
      const middle = k ? this.y : this.x;
      if (box[k] < middle - half) shift[k] = box[k] - (middle - half);
      if (box[k + 2] > middle + half) shift[k] = box[k + 2] - (middle + half);
    }
    if (shift[0] || shift[1]) {
      this.x += shift[0];
      this.y += shift[1];
      this.changed = true;
    }
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.world(px, py);
    this.scale = Math.min(Math.max(this.scale * factor, 1e-2), 1e6);
    const [nx, ny] = this.world(px, py);
    this.x += x - nx;
    this.y += y - ny;
    this.changed = true;
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.free = true;
    this.changed = true;
  }

  // Draw grid and scale if the view has changed; returns whether it had.
  refresh() {
    if (!this.changed) return false;
    this.changed = false;
    const step = this.step(70 / this.scale);
    const [left, top] = this.world(0, 0), [right, bottom] = this.world(this.width, this.height);
    let d = "";
    for (let x = Math.ceil(left / step) * step; x <= right; x += step) d += `M${this.screen(x, 0)[0].toFixed(1)} 0V${this.height}`;
    for (let y = Math.ceil(bottom / step) * step; y <= top; y += step) d += `M0 ${this.screen(0, y)[1].toFixed(1)}H${this.width}`;
    this.lines.setAttribute("d", d);
    this.scaleBar.style.width = `${step * this.scale}px`;
    this.scaleText.textContent = step >= 1 ? `${step} m` : step >= 0.0099 ? `${Math.round(step * 100)} cm` : `${+(step * 1000).toPrecision(2)} mm`;
    return true;
  }

  step(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return power * STEPS.find((s) => s * power >= least * 0.999);
  }
}
