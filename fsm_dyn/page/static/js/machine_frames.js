// Display frames of a machine in the page: doubles in the order of fsm_dyn/page/frames.py.

const ZERO = [0, 0, 0];
const EYE = [1, 0, 0, 0, 1, 0, 0, 0, 1]; // rotation matrices row by row

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const plus = (a, b) => a.map((value, i) => value + b[i]);
const times = (matrix, a) => [dot(matrix.slice(0, 3), a), dot(matrix.slice(3, 6), a), dot(matrix.slice(6, 9), a)];

export class MachineFrames {
  constructor(data, machine) {
    Object.assign(this, data, { machine });
    this.flat = data.drawing.flat;
  }

  // Positions of points and rotations of frames, at the present state or another.
  geometry(x) {
    const { points, frames } = this.outputs, out = this.machine.evaluate(this.kernels.geometry, Math.max(points[1], frames[1]), x).slice();
    return { points: out.subarray(...points), frames: out.subarray(...frames) };
  }

  point({ points }, k) {
    return k < 0 ? ZERO : Array.from(points.subarray(3 * k, 3 * k + 3));
  }

  turn({ frames }, k) {
    return k < 0 ? EYE : Array.from(frames.subarray(9 * k, 9 * k + 9));
  }

  shown(place) {
    return this.flat.map((axis) => dot(axis, place));
  }

  look(azimuth, elevation) {
    const [sa, ca, se, ce] = [Math.sin(azimuth), Math.cos(azimuth), Math.sin(elevation), Math.cos(elevation)];
    this.flat = [[-sa, ca, 0], [-ca * se, -sa * se, ce]];
  }

  // Outlines and anchors in the picture.
  placed(at) {
    const { shapes, anchors } = this.drawing, out = [];
    for (const [frame, origin] of shapes) {
      const turn = this.turn(at, frame), column = (j) => [turn[j], turn[3 + j], turn[6 + j]];
      out.push(...this.shown(column(0)), ...this.shown(column(1)), ...this.shown(this.point(at, origin)));
    }
    for (const anchor of anchors) out.push(...this.shown(this.place(anchor, at)));
    return out;
  }

  inSpace(at) {
    if (this.model.picture.planar) return [];
    const { shapes, solids } = this.drawing;
    return [...this.flat.flat(), ...[...shapes, ...solids].flatMap(([frame, origin]) => [...this.turn(at, frame), ...this.point(at, origin)])];
  }

  // Place of a handle or an anchor, m.
  place(handle, at) {
    return plus(this.point(at, handle.origin), times(this.turn(at, handle.frame), handle.offset));
  }

  // Directions of the axes of a handle except a rotation; of a coordinate the derivative of its place.
  directions(handle, at) {
    if (handle.coordinate >= 0) {
      const x = this.machine.x.slice(), now = x[handle.coordinate], h = 1e-6 * (1 + Math.abs(now));
      const [low, high] = [-h, h].map((step) => {
        x[handle.coordinate] = now + step;
        return this.place(handle, this.geometry(x));
      });
      return [high.map((value, i) => (value - low[i]) / (2 * h))];
    }
    return handle.directions.map(([inSpace, ...parts]) => parts.reduce((sum, part, k) => (part.some(Boolean) ? plus(sum, times(this.turn(at, k), part)) : sum), inSpace));
  }

  // Positions of the axes of a handle in the coordinates of their inputs.
  positions(handle, outputs) {
    const inputs = this.machine.c.subarray(this.machine.about.n_p);
    return handle.axes.map((axis) => (axis.engagement < 0 ? inputs[axis.device] : outputs[axis.position]));
  }

  report() {
    return this.machine.evaluate(this.kernels.report, Math.max(...Object.values(this.outputs).map(([, end]) => end))).slice();
  }

  handlesDrawn(at, outputs, gripped) {
    return this.handles.flatMap((handle) => {
      const place = this.place(handle, at), here = this.shown(place), grip = gripped(handle);
      if (!(grip > 0)) return [...here, ...here, 0];
      const inputs = this.machine.c.subarray(this.machine.about.n_p), positions = this.positions(handle, outputs);
      const there = this.directions(handle, at).reduce((sum, axis, i) => plus(sum, axis.map((v) => v * (inputs[handle.axes[i].device] - positions[i]))), place);
      return [...here, ...this.shown(there), grip];
    });
  }

  values(full, report, outputs) {
    const { state, inputs, rows, outputs: own, memory, pulls, pins } = this.sources, { x, c, about } = this.machine;
    const kinetic = report[this.outputs.kinetic_energy[0]], potential = report[this.outputs.potential_energy[0]];
    return [
      ...state.map((i) => x[i]), ...inputs.map((i) => c[about.n_p + i]), ...rows.map((i) => full.multipliers[i]), ...own.map((i) => outputs[i]),
      ...memory.map((i) => c[i]), kinetic, potential, kinetic + potential, ...pulls.map((i) => outputs[i]),
      ...(pins.length ? this.machine.evaluate(this.kernels.pins, pins.length, [...x, ...full.rates, ...full.multipliers]) : []),
    ];
  }

  // Rates of the speeds, guards, slopes and multipliers of the present mode.
  full() {
    const { machine, guard_counts: counts } = this, { n_x, n_u, n_rows } = machine.about, mode = machine.mode, n = counts[mode];
    const all = machine.evaluateMode(n_x + n_u + 1 + 2 * n + n_rows).slice(), out = all.subarray(n_x + n_u + 1);
    return { rates: all.subarray(n_x - n_u, n_x), guards: out.subarray(0, n), slopes: out.subarray(n, 2 * n), multipliers: out.subarray(2 * n) };
  }

  // A frame; `head`: number of the run, tick, phase, fault, transitions; gripped: engagement of a handle.
  frame({ number, tick, phase, fault, transitions }, gripped) {
    const { machine } = this, at = this.geometry(), report = this.report(), outputs = report.subarray(...this.outputs.outputs);
    const full = this.full(), label = this.modes[machine.mode].label, n = full.guards.length;
    const guards = Array.from(full.guards).flatMap((value, i) => [value, full.slopes[i]]);
    return Float64Array.from([
      number, tick, machine.time, label, phase, fault, transitions, 1, machine.mode, n,
      ...this.placed(at), ...this.handlesDrawn(at, outputs, gripped), ...guards, ...this.inSpace(at),
      machine.time, label, ...this.values(full, report, outputs),
    ]);
  }
}
