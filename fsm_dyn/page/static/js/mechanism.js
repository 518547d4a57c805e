// Mechanism: outlines with their placements, symbols, contact forces, port handles and couplers.

import { $, called, setName, setText, svg } from "./dom.js";
import { Arrows, Pushes } from "./arrows.js";
import { HANDLE, PHASES, PLACED } from "./frames.js";
import { Symbols } from "./symbols.js";
import { Viewport } from "./viewport.js";

export class Mechanism {
  constructor() {
    this.element = $("picture");
    this.world = $("world");
    this.overlay = $("overlay");
    this.view = new Viewport(this.element, $("grid"), $("scale-bar"), $("scale-text"));
    this.fitted = false;
  }

  model(model) {
    this.about = model;
    this.fitted = false;
    this.shown = {};
    this.world.replaceChildren();
    this.overlay.replaceChildren();
    this.grounds = model.picture.grounds.map((ground) => this.ground(ground));
    this.shapes = model.picture.shapes.map((shape) => this.shape(shape));
    this.symbols = new Symbols(model.picture);
    this.faces = model.picture.faces.map(({ points, contact }) => svg("path", { class: "lit", d: `M${points.map((p) => p.join(" ")).join("L")}`, "data-contact": contact }));
    this.ghost = model.ghost ? this.ghostOf(model.ghost) : null;
    const layer = (behind) => this.shapes.filter((_, i) => model.picture.shapes[i].behind === behind);
    this.world.append(...this.grounds, ...(this.ghost ? [this.ghost.group] : []), ...layer(true), ...this.symbols.behind, ...layer(false), ...this.symbols.ahead, ...this.faces);
    this.labels = model.picture.shapes.filter((shape) => shape.text).map((shape) => this.label(shape));
    this.arrows = new Arrows(model.forces, model.picture.unit);
    this.pushes = new Pushes(model.pushes, model.picture.unit);
    this.springs = model.ports.map(() => svg("path", { class: "spring" }));
    this.targets = model.ports.map(() => svg("circle", { class: "target", r: 4 }));
    this.handles = model.ports.map(({ name }) => {
      const group = svg("g", { class: "handle", "data-port": name });
      const title = svg("title");
      title.textContent = name.replace(/_port$/, "");
      group.append(svg("circle", { r: 17, class: "reach" }), svg("circle", { r: 6.5, class: "knob" }), title);
      return group;
    });
    this.overlay.append(this.pushes.element, this.arrows.element, ...this.springs, ...this.targets, ...this.labels, ...this.handles);
    for (const layer of [this.world, this.overlay]) layer.setAttribute("visibility", "hidden"); // no places before a frame
  }

  shape(shape) {
    const point = shape.points.length === 1;
    const d = point ? `M${shape.points[0].join(" ")}h0` : `M${shape.points.map((p) => p.join(" ")).join("L")}${shape.closed ? "Z" : ""}`;
    const path = svg("path", { class: point ? "dot" : shape.closed ? "body" : shape.endless ? "far" : "line", d, "data-body": shape.body });
    path.style.setProperty("--fill", shape.fill);
    path.style.setProperty("--edge-of", shape.edge);
    return path;
  }

  // Drawing of another run, behind this one.
  ghostOf(picture) {
    const group = svg("g", { class: "ghost" }), shapes = picture.shapes.map((shape) => this.shape(shape)), symbols = new Symbols(picture);
    group.append(...symbols.behind, ...shapes, ...symbols.ahead);
    return { group, shapes, symbols };
  }

  // Ground plane: a face with its inner side hatched; a piece of it, a stop, hatched.
  ground({ at, normal, half }) {
    const along = [normal[1], -normal[0]];
    const end = (s, depth = 0) =>
      `${at[0] + along[0] * s - normal[0] * depth} ${at[1] + along[1] * s - normal[1] * depth}`;
    const group = svg("g", { class: "ground" });
    if (half) {
      const count = 12, depth = half / 6, feet = Array.from({ length: count }, (_, i) => half * ((2 * i + 1) / count - 1));
      group.append(svg("path", { class: "hatch", d: feet.map((s) => `M${end(s)}L${end(s - 0.75 * depth, depth)}`).join("") }), svg("path", { class: "stop", d: `M${end(-half)}L${end(half)}` }));
      return group;
    }
    const depth = 50;
    group.append(
      svg("path", { class: "earth", d: `M${end(-(half || 50))}L${end(half || 50)}L${end(half || 50, depth)}L${end(-(half || 50), depth)}Z` }),
      svg("path", { class: "face", d: `M${end(-(half || 50))}L${end(half || 50)}` }),
    );
    return group;
  }

  label(shape) {
    const text = svg("text", { class: "label" });
    text.textContent = shape.text;
    text.of = this.about.picture.shapes.indexOf(shape);
    return text;
  }

  colour(mode) {
    return this.about.graph.modes[mode]?.colour ?? "#bbbbbb";
  }

  frame(frame) {
    const { view } = this;
    const box = this.box(frame);
    if (!this.fitted || (view.resized && !view.free)) {
      view.fit(this.first(box));
      this.fitted = true;
      for (const layer of [this.world, this.overlay]) layer.removeAttribute("visibility");
    }
    view.follow(box);
    if (view.refresh()) this.world.setAttribute("transform", view.matrix);
    for (let i = 0; i < this.shapes.length; i++) {
      const m = frame.shapes.subarray(6 * i, 6 * i + 6);
      this.shapes[i].setAttribute("transform", `matrix(${m.join(" ")})`);
    }
    if (this.ghost) {
      this.ghost.shapes.forEach((shape, i) => shape.setAttribute("transform", `matrix(${frame.ghost.subarray(6 * i, 6 * i + 6).join(" ")})`));
      this.ghost.symbols.draw(frame.ghost.subarray(6 * this.ghost.shapes.length));
    }
    this.light(frame);
    this.symbols.draw(frame.anchors, this.about.graph.modes[frame.mode]?.states);
    for (const text of this.labels) {
      const [x, y] = view.screen(frame.shapes[6 * text.of + 4], frame.shapes[6 * text.of + 5]);
      text.setAttribute("x", x + 8);
      text.setAttribute("y", y - 8);
    }
    this.pushes.draw(frame.pushes, view);
    this.arrows.draw(frame.forces, view, this.about.graph.modes[frame.mode]?.states);
    this.drawHandles(frame);
    this.drawState(frame);
  }

  // Faces that touch, each with the transform of an outline of its body.
  light(frame) {
    const states = this.about.graph.modes[frame.mode]?.states;
    this.about.picture.faces.forEach(({ contact, shape }, k) => {
      const touches = (states?.[contact] ?? "open") !== "open";
      this.faces[k].classList.toggle("on", touches);
      if (touches && shape >= 0) this.faces[k].setAttribute("transform", `matrix(${frame.shapes.subarray(6 * shape, 6 * shape + 6).join(" ")})`);
    });
  }

  drawHandles(frame) {
    for (let k = 0; k < this.handles.length; k++) {
      const [x, y, tx, ty, grip] = frame.handles.subarray(HANDLE * k, HANDLE * k + HANDLE);
      const [px, py] = this.view.screen(x, y);
      this.handles[k].setAttribute("transform", `translate(${px} ${py})`);
      this.handles[k].classList.toggle("held", grip > 0);
      this.springs[k].classList.toggle("on", grip > 0);
      this.targets[k].classList.toggle("on", grip > 0);
      if (grip > 0) {
        const [qx, qy] = this.view.screen(tx, ty);
        this.springs[k].setAttribute("d", coil(px, py, qx, qy));
        this.targets[k].setAttribute("transform", `translate(${qx} ${qy})`);
      }
    }
  }

  drawState(frame) {
    if (!this.about.story && !this.about.phases?.length && (this.shown.mode !== frame.mode || this.shown.width !== this.view.width)) {
      this.shown.mode = frame.mode;
      this.shown.width = this.view.width;
      const mode = this.about.graph.modes[frame.mode];
      $("mode").classList.remove("phase");
      $("mode").style.setProperty("--mode", this.colour(frame.mode));
      setName($("mode"), mode ? called(mode) : "…", mode?.full ?? mode?.name);
    }
    if (!this.about.playback && this.shown.phase !== frame.phase) {
      this.shown.phase = frame.phase;
      setText($("phase"), PHASES[frame.phase]);
      document.body.dataset.phase = PHASES[frame.phase];
    }
    setText($("time"), `${frame.t.toFixed(this.about.story ? 4 : 3)} s`);
  }

  // Bounding box of all finite outlines, m.
  box(frame) {
    let [lx, ly, hx, hy] = [Infinity, Infinity, -Infinity, -Infinity];
    const add = (x, y) => {
      if (x < lx) lx = x;
      if (x > hx) hx = x;
      if (y < ly) ly = y;
      if (y > hy) hy = y;
    };
    this.about.picture.shapes.forEach((shape, i) => {
      if (shape.endless) return;
      const [a, b, c, d, e, f] = frame.shapes.subarray(6 * i, 6 * i + 6);
      shape.corners ??= corners(shape.points);
      for (const [x, y] of shape.corners) add(a * x + c * y + e, b * x + d * y + f);
    });
    for (let i = 0; i < frame.anchors.length; i += 2) add(frame.anchors[i], frame.anchors[i + 1]);
    for (let i = 0; i < frame.handles.length; i += HANDLE) add(frame.handles[i], frame.handles[i + 1]);
    if (frame.space.length) this.addSolids(frame.space, add);
    if (lx > hx) [lx, ly, hx, hy] = [-0.5, -0.5, 0.5, 0.5]; // nothing finite is drawn
    return [lx, ly, hx, hy];
  }

  // Add spheres and disks, which only the scene in three dimensions draws, by the squares around them.
  addSolids(space, add) {
    const { shapes, solids } = this.about.picture, [right, up] = [space.subarray(0, 3), space.subarray(3, 6)];
    const along = (axis, at) => axis[0] * at[0] + axis[1] * at[1] + axis[2] * at[2];
    solids.forEach(({ radius }, k) => {
      if (!radius) return; // a plane has no end
      const origin = space.subarray(6 + PLACED * (shapes.length + k) + 9, 6 + PLACED * (shapes.length + k + 1));
      const [x, y] = [along(right, origin), along(up, origin)];
      add(x - radius, y - radius);
      add(x + radius, y + radius);
    });
  }

  // Initial box: the mechanism and nearby ground planes.
  first(box) {
    const [lx, ly, hx, hy] = box;
    const size = Math.max(hx - lx, hy - ly, 1e-3);
    const whole = [...box];
    for (const { at, normal, half } of this.about.picture.grounds) {
      const gap = normal[0] * ((lx + hx) / 2 - at[0]) + normal[1] * ((ly + hy) / 2 - at[1]);
      if (Math.abs(gap) > 60 * size) continue;
      const foot = half ? at : [(lx + hx) / 2 - gap * normal[0], (ly + hy) / 2 - gap * normal[1]];
      whole[0] = Math.min(whole[0], foot[0]);
      whole[1] = Math.min(whole[1], foot[1]);
      whole[2] = Math.max(whole[2], foot[0]);
      whole[3] = Math.max(whole[3], foot[1]);
    }
    return whole;
  }

  fit() {
    this.fitted = false;
  }
}

function corners(points) {
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const [lx, hx, ly, hy] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return points.length === 1 ? points : [[lx, ly], [lx, hy], [hx, ly], [hx, hy]];
}

// A helical spring between two points.
function coil(x0, y0, x1, y1) {
  const dx = x1 - x0, dy = y1 - y0, length = Math.hypot(dx, dy);
  if (length < 24) return `M${x0} ${y0}L${x1} ${y1}`;
  const turns = 7, width = Math.min(7, length / 10);
  const [nx, ny] = [-dy / length, dx / length];
  let d = `M${x0} ${y0}L${x0 + 0.15 * dx} ${y0 + 0.15 * dy}`;
  for (let i = 0; i < 2 * turns; i++) {
    const s = 0.15 + (0.7 * (i + 0.5)) / (2 * turns), side = i % 2 ? -width : width;
    d += `L${(x0 + s * dx + side * nx).toFixed(1)} ${(y0 + s * dy + side * ny).toFixed(1)}`;
  }
  return `${d}L${x0 + 0.85 * dx} ${y0 + 0.85 * dy}L${x1} ${y1}`;
}
