// Contact forces as arrows in their friction cones, friction torques as arcs within their limits.

import { svg } from "./dom.js";
import { FORCE, PUSH } from "./frames.js";

const LENGTH = 90; // px of the largest recent force
const RADIUS = 30; // px of an arc
const SHOE = (35 * Math.PI) / 180; // rad, begin of the arc of a shoe
const DECAY = 0.998; // of that largest force, per frame

export class Arrows {
  constructor(forces, unit) {
    this.unit = unit;
    this.kinds = forces.map((force) => force.kind);
    this.element = svg("g", { class: "forces" });
    this.largest = 0;
    this.parts = forces.map(({ kind, contact }) => {
      const group = svg("g", { class: kind, "data-contact": contact });
      const part = { group, cone: svg("path", { class: "cone" }), shaft: svg("path", { class: "shaft" }), head: svg("path", { class: "head" }), dot: svg("circle", { class: "touch", r: kind === "torque" ? 0 : 3.5 }) };
      const title = svg("title");
      title.textContent = contact;
      group.append(part.cone, part.shaft, part.head, part.dot, title);
      if (kind === "torque") this.element.append((part.shoe = svg("path", { class: "shoe" })));
      this.element.append(group);
      return part;
    });
  }

  draw(numbers, view, states) {
    let most = 0;
    for (let k = 0; k < this.parts.length; k++) {
      const at = FORCE * k;
      if (!numbers[at] || this.kinds[k] === "torque") continue;
      most = Math.max(most, Math.hypot(numbers[at + 3] + numbers[at + 5], numbers[at + 4] + numbers[at + 6]));
    }
    this.largest = Math.max(most, this.largest * DECAY, 1e-12);
    for (let k = 0; k < this.parts.length; k++) {
      const part = this.parts[k], [on, x, y, ...rest] = numbers.subarray(FORCE * k, FORCE * k + FORCE);
      part.group.classList.toggle("on", on > 0);
      if (!on) continue;
      const [px, py] = view.screen(x, y);
      part.dot.setAttribute("transform", `translate(${px} ${py})`);
      if (part.shoe) this.brake(part.shoe, px, py, view, states?.[part.group.dataset.contact] === "stick");
      if (this.kinds[k] === "torque") this.torque(part, px, py, rest[0], rest[4]);
      else this.force(part, px, py, rest);
    }
  }

  // Shoe of dry friction above a pivot, as in fsm_dyn/plot/mechanism.py.
  brake(shoe, px, py, view, sticks) {
    const r = 2 * this.unit * view.scale, [dx, dy] = [r * Math.cos(SHOE), r * Math.sin(SHOE)];
    shoe.setAttribute("d", `M${px + dx} ${py - dy}A${r} ${r} 0 0 0 ${px - dx} ${py - dy}`);
    shoe.classList.toggle("sticks", sticks);
  }

  force(part, px, py, [nx, ny, tx, ty, cx, cy]) {
    const s = LENGTH / this.largest;
    const [ex, ey] = [px + (nx + tx) * s, py - (ny + ty) * s];
    arrow(part, px, py, ex, ey);
    const normal = Math.hypot(nx, ny);
    if (Math.hypot(cx, cy) * s < 1.5 || normal * s < 4) {
      part.cone.setAttribute("d", normal * s < 4 && Math.hypot(cx, cy) > 0 ? limits(px, py, cx * s, cy * s) : "");
      return;
    }
    const side = (sign) => `${px + (nx + sign * cx) * s} ${py - (ny + sign * cy) * s}`;
    part.cone.setAttribute("d", `M${px} ${py}L${side(1)}L${side(-1)}Z`);
    part.group.classList.toggle("full", Math.hypot(tx, ty) > 0.98 * Math.hypot(cx, cy));
  }

  // An arc that is a half circle at the limit.
  torque(part, px, py, torque, limit) {
    const share = limit > 0 ? Math.max(-1, Math.min(1, torque / limit)) : Math.sign(torque) * 0.6;
    part.group.classList.toggle("full", limit > 0 && Math.abs(share) > 0.98);
    part.cone.setAttribute("d", limit > 0 ? `M${px - RADIUS} ${py}A${RADIUS} ${RADIUS} 0 0 1 ${px + RADIUS} ${py}` : "");
    const angle = -Math.PI / 2 - (share * Math.PI) / 2;
    const [ex, ey] = [px + RADIUS * Math.cos(angle), py + RADIUS * Math.sin(angle)];
    part.shaft.setAttribute("d", `M${px} ${py - RADIUS}A${RADIUS} ${RADIUS} 0 0 ${share > 0 ? 0 : 1} ${ex} ${ey}`);
    const along = angle + (share > 0 ? -Math.PI / 2 : Math.PI / 2);
    head(part.head, ex, ey, Math.cos(along), Math.sin(along), Math.min(9, Math.abs(share) * 40));
  }
}

const [SHORTEST, LONGER, LEAST] = [5, 8, 0.02]; // units of the scene, as fsm_dyn/run/contact_forces.py; of the largest force

// Forces of inputs: arrows that end where they act, as long as their share of the largest one so far.
export class Pushes {
  constructor(names, unit) {
    Object.assign(this, { unit, largest: names.map(() => 0), element: svg("g", { class: "pushes" }) });
    this.parts = names.map((name) => {
      const part = { group: svg("g", { "data-input": name }), shaft: svg("path", { class: "shaft" }), head: svg("path", { class: "head" }) }, title = svg("title");
      title.textContent = name;
      part.group.append(part.shaft, part.head, title);
      this.element.append(part.group);
      return part;
    });
  }

  draw(numbers, view) {
    this.parts.forEach((part, k) => {
      const [x, y, fx, fy] = numbers.subarray(PUSH * k, PUSH * k + PUSH), force = Math.hypot(fx, fy);
      if (force > this.largest[k]) this.largest[k] = force;
      const share = force / (this.largest[k] || 1);
      part.group.classList.toggle("on", share >= LEAST);
      if (!(share >= LEAST)) return;
      const length = (SHORTEST + LONGER * share) * this.unit * view.scale, [px, py] = view.screen(x, y);
      arrow(part, px - (fx / force) * length, py + (fy / force) * length, px, py);
    });
  }
}

function arrow(part, x0, y0, x1, y1) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length < 2) {
    part.shaft.setAttribute("d", "");
    part.head.setAttribute("d", "");
    return;
  }
  const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length], size = Math.min(10, 0.5 * length);
  part.shaft.setAttribute("d", `M${x0} ${y0}L${x1 - ux * size * 0.7} ${y1 - uy * size * 0.7}`);
  head(part.head, x1, y1, ux, uy, size);
}

function head(path, x, y, ux, uy, size) {
  const [bx, by, w] = [x - ux * size, y - uy * size, size * 0.42];
  path.setAttribute("d", size < 1 ? "" : `M${x} ${y}L${bx - uy * w} ${by + ux * w}L${bx + uy * w} ${by - ux * w}Z`);
}

// Where a force along a line alone may go: between two strokes.
function limits(x, y, cx, cy) {
  const length = Math.hypot(cx, cy) || 1, [nx, ny] = [(-cy / length) * 6, (-cx / length) * 6];
  const stroke = (s) => `M${x + s * cx - nx} ${y - s * cy - ny}L${x + s * cx + nx} ${y - s * cy + ny}`;
  return stroke(1) + stroke(-1);
}
