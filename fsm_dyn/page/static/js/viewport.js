// Viewport: metres to pixels. Follows the mechanism until the user pans.

import { $, svg } from "./dom.js";

const [MARGIN, INSET] = [0.14, 0.1]; // of the panel, kept free around the mechanism when it is fitted, and followed
const [TOP, BOTTOM] = [48, 40]; // px, at least: the mode's name and the clock; the hint and the scale
const SECOND_LINE = 34; // px: of the name, in a panel narrower than NARROW, and the buttons that press a key
const NARROW = 420; // px
const WIDE = 640; // px, width of a panel from which the mechanism is next to a card, else above it
const STEPS = [1, 2, 5, 10];

// How far an interval reaches beyond another, with its sign; one that is longer is centred.
function outside(low, high, from, to) {
  if (high - low > to - from) return (low + high - from - to) / 2;
  return Math.min(low - from, 0) + Math.max(high - to, 0);
}

export class Viewport {
  constructor(element, grid, scaleBar, scaleText) {
    Object.assign(this, { element, grid, scaleBar, scaleText });
    this.scale = 100;
    this.x = this.y = 0; // metres in the middle of the panel
    this.free = false;
    this.card = [0, 0]; // px, width and height of a card in the lower left corner
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

  // Room for the mechanism, px: the left edge, the top edge, width and height; `share` of the panel is kept free around it.
  room(share) {
    const second = (condition) => (condition ? SECOND_LINE : 0);
    const top = Math.max(share * this.height, TOP + second(this.width < NARROW));
    const bottom = Math.max(share * this.height, BOTTOM + second(!$("playing").hidden));
    const [wide, high] = this.card, next = this.width >= WIDE, left = next ? Math.max(share * this.width, wide) : share * this.width;
    return [left, top, this.width * (1 - share) - left, Math.max(this.height - top - bottom - (next ? 0 : high), 1)];
  }

  // Fit a box (low x, low y, high x, high y).
  fit(box) {
    const [left, top, wide, high] = this.room(MARGIN);
    const w = Math.max(box[2] - box[0], 1e-6), h = Math.max(box[3] - box[1], 1e-6);
    this.scale = Math.min(wide / w, high / h);
    this.x = (box[0] + box[2]) / 2 - (left + (wide - this.width) / 2) / this.scale;
    this.y = (box[1] + box[3]) / 2 + (top + (high - this.height) / 2) / this.scale;
    this.free = this.resized = false;
    this.changed = true;
  }

  // Shift the view so that a box stays inside its room; zoom out, by 5 % in a 60th of a second, if it is larger.
  follow(box) {
    const now = performance.now(), frames = Math.min(Math.max((now - (this.followed ?? now)) * 0.06, 1), 60);
    this.followed = now;
    if (this.free) return;
    const [left, top, wide, high] = this.room(INSET);
    const excess = Math.max((box[2] - box[0]) * this.scale / wide, (box[3] - box[1]) * this.scale / high);
    if (excess > 1) this.zoom(1 / Math.min(excess, 1.05 ** frames));
    const [px, py] = this.screen(box[0], box[3]), [qx, qy] = this.screen(box[2], box[1]);
    const [dx, dy] = [outside(px, qx, left, left + wide), outside(py, qy, top, top + high)];
    if (dx || dy) {
      this.x += dx / this.scale;
      this.y -= dy / this.scale;
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
