// Symbols of a mechanism between its anchors, m: bars, springs, dampers, pivots, grounds; as fsm_dyn/plot/mechanism.py.

import { svg } from "./dom.js";

const [RING, DOT, TEETH, ZIGZAG, DASHPOT, HATCH] = [1.1, 0.3, 6, 3, 2.4, 1.5]; // of the unit of the scene
const [LEAD, TURNS, WIDTH_BY_LENGTH] = [0.14, 2, 0.5];

const line = (points) => `M${points.map(([x, y]) => `${x} ${y}`).join("L")}`;
const ring = ([x, y], r) => `M${x - r} ${y}A${r} ${r} 0 1 0 ${x + r} ${y}A${r} ${r} 0 1 0 ${x - r} ${y}Z`;

// Coordinates along and to the left of a line, its length.
function course([x0, y0], [x1, y1]) {
  const length = Math.hypot(x1 - x0, y1 - y0), [ux, uy] = length > 0 ? [(x1 - x0) / length, (y1 - y0) / length] : [1, 0];
  return { length, at: (s, w) => [x0 + s * ux - w * uy, y0 + s * uy + w * ux] };
}

function zigzag([a, b], unit, side) {
  const { length, at } = course(a, b), width = Math.min(ZIGZAG * unit, WIDTH_BY_LENGTH * length) / 2, n = 2 * TEETH;
  const teeth = Array.from({ length: n }, (_, i) => [LEAD + ((1 - 2 * LEAD) * (i + 0.5)) / n, i % 2 ? width : -width]);
  return line([[0, 0], [LEAD, 0], ...teeth, [1 - LEAD, 0], [1, 0]].map(([s, w]) => at(s * length, w + side * unit)));
}

function dashpot([a, b], unit, side) {
  const { length, at } = course(a, b), width = Math.min(DASHPOT * unit, WIDTH_BY_LENGTH * length) / 2;
  const p = (s, w) => at(s * length, w * width + side * unit);
  const parts = [[p(0, 0), p(0.34, 0)], [p(0.66, 1), p(0.34, 1), p(0.34, -1), p(0.66, -1)], [p(0.54, 0.75), p(0.54, -0.75)], [p(0.54, 0), p(1, 0)]];
  return parts.map(line).join("");
}

function spiral([centre, inner, outer], unit) {
  const angle = ([x, y]) => Math.atan2(y - centre[1], x - centre[0]), first = angle(inner), whole = 2 * Math.PI;
  const turn = ((((angle(outer) - first + Math.PI) % whole) + whole) % whole) - Math.PI + whole * TURNS;
  return line(Array.from({ length: 72 }, (_, i) => {
    const share = i / 71, radius = unit * (1.3 + 2 * share);
    return [centre[0] + radius * Math.cos(first + share * turn), centre[1] + radius * Math.sin(first + share * turn)];
  }));
}

function cord([a, b], unit, taut) {
  if (taut) return line([a, b]);
  const { length, at } = course(a, b), waves = Math.max(Math.round(length / (8 * unit)), 2);
  return line(Array.from({ length: 65 }, (_, i) => at((i / 64) * length, 1.2 * unit * Math.sin((2 * Math.PI * waves * i) / 64) * Math.sin((Math.PI * i) / 64))));
}

function hatching(points, side, unit) {
  let d = "";
  for (let k = 0; k + 1 < points.length; k++) {
    const { length, at } = course(points[k], points[k + 1]), count = Math.max(Math.round(length / (HATCH * unit)), length > 0 ? 1 : 0);
    for (let i = 0; i < count; i++) {
      const s = ((i + 0.5) * length) / count;
      d += line([at(s, 0), at(s - 0.75 * HATCH * unit, side * HATCH * unit)]);
    }
  }
  return d;
}

function hull(points) {
  const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
  const half = (items) => {
    const chain = [];
    for (const p of items) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), p) <= 0) chain.pop();
      chain.push(p);
    }
    return chain.slice(0, -1);
  };
  const ordered = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return [...half(ordered), ...half(ordered.reverse())];
}

function support([x, y], unit) {
  const low = y - 2.6 * unit, half = 2 * unit;
  return { triangle: `${line([[x, y], [x - half, low], [x + half, low]])}Z`, base: [[x - 1.4 * half, low], [x + 1.4 * half, low]] };
}

const PARTS = { // classes of the paths of each kind, back to front
  ground: ["hatch", "face"], bar: ["edge", "fill"], link: ["body"], spring: ["coil"], damper: ["damper"], spiral: ["coil"],
  cord: ["cord"], pivot: ["ring", "pin"], support: ["triangle", "hatch", "face", "ring", "pin"],
};

function paths({ kind, side }, points, unit, { planar, taut }) {
  switch (kind) {
    case "ground": return [planar ? hatching(points, side, unit) : "", line(points)];
    case "bar": return [line(points), line(points)];
    case "link": return [`${line(hull(points))}Z`];
    case "spring": return [zigzag(points, unit, side)];
    case "damper": return [dashpot(points, unit, side)];
    case "spiral": return [spiral(points, unit)];
    case "cord": return [cord(points, unit, taut)];
  }
  const pivot = [ring(points[0], RING * unit), ring(points[0], DOT * unit)];
  if (kind === "pivot") return pivot;
  const { triangle, base } = support(points[0], unit);
  return [triangle, hatching(base, -1, 0.7 * unit), line(base), ...pivot];
}

export class Symbols {
  constructor({ symbols, unit, planar }) {
    Object.assign(this, { symbols, unit, planar });
    this.groups = symbols.map(({ kind, name, owner, fill, edge }) => {
      const group = svg("g", { class: `symbol ${kind}-symbol`, "data-name": name, "data-body": owner });
      group.style.setProperty("--fill", fill);
      group.style.setProperty("--edge-of", edge);
      group.append(...PARTS[kind].map((part) => svg("path", { class: part })));
      return group;
    });
  }

  // Elements behind the outlines, and before them.
  get behind() {
    return this.groups.filter((_, i) => ["ground", "bar", "link"].includes(this.symbols[i].kind));
  }

  get ahead() {
    return this.groups.filter((_, i) => !["ground", "bar", "link"].includes(this.symbols[i].kind));
  }

  draw(anchors, states) {
    this.symbols.forEach((symbol, i) => {
      const points = symbol.anchors.map((k) => [anchors[2 * k], anchors[2 * k + 1]]);
      const parts = paths(symbol, points, this.unit, { planar: this.planar, taut: states?.[symbol.name] !== "open" });
      parts.forEach((d, k) => this.groups[i].children[k].setAttribute("d", d));
    });
  }
}
