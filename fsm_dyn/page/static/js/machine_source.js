// Source of a page that simulates alone, in place of the server: a machine in the page, and the pointer as its device.

import { Event, LivePhase, Status } from "./abi.js";
import { Machine } from "./machine.js";
import { MachineFrames } from "./machine_frames.js";
import { MachineModes } from "./machine_modes.js";
import { MachineLog } from "./machine_log.js";

const BANDWIDTH = 2 * Math.PI * 12; // rad/s, of the pointer's smoothing
const RAMP = 0.2; // s, of the engagement
const LONGEST = 0.05; // s of the wall clock that one display frame may make up for
const BUDGET = 14; // ms of computing per display frame
const HURRY = 200; // ms between display frames on the run to the next transition
const REPORT = 250; // ms between reports of the dwell times
const CLICK = 0.012; // m/s, slowest impact that sounds

// Bytes from base 64 of their compressed form, see packed() in fsm_dyn/exports/html.py.
const unpacked = async (text) => {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
};

export class MachineSource {
  constructor({ message, frame, state }, holder) {
    Object.assign(this, { message, emit: frame, phase: LivePhase.PAUSED, speed: 1, tick: 0, left: 0, owed: 0, reported: 0 });
    this.start(holder.textContent, state);
  }

  async start(text, state) {
    const held = (id) => document.getElementById(id)?.textContent;
    const texts = [text, held("runtime-data") ?? globalThis.fsmRuntime, held("module-data")]; // several pages may share the runtime
    const [bytes, runtime, module] = await Promise.all(texts.map(unpacked));
    const data = (this.data = JSON.parse(new TextDecoder().decode(bytes)));
    this.machine = new Machine(data.machine, runtime, module);
    this.frames = new MachineFrames(data, this.machine);
    this.modes = new MachineModes(data, this.machine);
    this.log = new MachineLog(data);
    this.follows = data.model.schedule === true;
    this.port = data.model.port;
    this.reset();
    state("open", 0);
    this.message(data.model);
    this.show();
    this.phase = LivePhase.RUNNING;
    this.before = performance.now();
    requestAnimationFrame(() => this.draw());
  }

  retry() {}

  reset() {
    const { machine, frames } = this;
    machine.restart();
    this.modes.forget();
    this.tick = this.left = this.owed = 0;
    this.hurries = false;
    this.inputs = this.follows ? machine.scheduled(0) : new Float64Array(machine.about.n_w);
    const outputs = frames.report().subarray(...frames.outputs.outputs);
    this.hands = frames.handles.map((handle) => {
      const position = frames.positions(handle, outputs).map((value, i) => (handle.axes[i].engagement < 0 ? 0 : value));
      handle.axes.forEach(({ device }, i) => (this.inputs[device] = position[i]));
      return { handle, position, velocity: position.map(() => 0), target: position.slice(), grip: 0, held: false };
    });
  }

  draw() {
    requestAnimationFrame(() => this.draw());
    const now = performance.now(), passed = Math.min(LONGEST, (now - this.before) / 1000);
    this.before = now;
    if (this.phase !== LivePhase.RUNNING) return;
    this.owed += this.hurries ? Infinity : passed * this.speed;
    this.run(now + (this.hurries ? HURRY : BUDGET));
    this.show();
  }

  // Ticks that are owed, until a time of the wall clock (ms).
  run(until) {
    const { period } = this.data;
    while (this.phase === LivePhase.RUNNING && this.owed >= period && performance.now() < until) {
      this.owed -= period;
      this.advance(period);
    }
    this.owed = Math.min(this.owed, LONGEST); // what is too slow is slower than the clock
  }

  // One tick of length h, s.
  advance(h) {
    const { machine } = this, mode = machine.mode;
    this.lead(h);
    this.tick += 1;
    const status = machine.advance(this.tick * this.data.period);
    if (this.modes.update()) {
      this.message({ kind: "mode_graph", number: 1, graph: this.data.model.graph });
      this.message({ kind: "guards", number: 1, guards: this.data.model.guards });
    }
    this.log.dwell(mode, h);
    this.followPhase();
    this.report();
    if (status === Status.DONE) return;
    this.phase = [Status.STOPPED, Status.LEFT_RANGE].includes(status) ? LivePhase.STOPPED : LivePhase.FAILED;
    if (this.phase === LivePhase.FAILED) this.message({ kind: "event", number: 1, event: "model_failed", reason: this.failure(status) });
  }

  followPhase() {
    const { phase } = this.machine;
    if (phase !== this.shownPhase) this.message({ kind: "phase_begins", phase: phase + 1 });
    this.shownPhase = phase;
  }

  failure(status) {
    const { endings, words } = this.data, [name, sentence] = endings[status] ?? [`status ${status}`, ""];
    if (status !== Status.MODE_NOT_LISTED) return `${name}: ${sentence}`;
    const touching = this.machine.missing().flatMap((code, k) => (code ? [words.contacts[k].became[code]] : []));
    return `a mode that is not in this page: ${touching.join(", ") || "all open"}`;
  }

  // The inputs at the end of a tick: the schedule, what the panel sets, and the pointer, smoothed.
  lead(h) {
    const { machine, inputs } = this, { period, model } = this.data, end = (this.tick + 1) * period;
    const switches = new Set(model.setup.drives.filter(({ boolean }) => boolean).map(({ index }) => index)); // with a tick's begin
    if (this.follows) {
      const own = new Set(this.hands.flatMap(({ handle }) => handle.axes.flatMap(({ device, rate, engagement }) => [device, rate, engagement])));
      const led = (i) => own.has(i) || this.pressed?.index === i;
      machine.scheduled(this.tick * period).forEach((value, i) => switches.has(i) && !led(i) && (inputs[i] = value));
      machine.scheduled(end).forEach((value, i) => led(i) || switches.has(i) || (inputs[i] = value));
    }
    for (const hand of this.hands) this.follow(hand, h);
    machine.lead(inputs);
  }

  follow(hand, h) {
    const { handle, position, velocity, target } = hand, { inputs } = this;
    hand.grip = hand.held ? Math.min(1, hand.grip + h / RAMP) : Math.max(0, hand.grip - h / RAMP);
    handle.axes.forEach(({ device, rate, engagement }, i) => {
      velocity[i] = hand.grip > 0 ? (velocity[i] + h * BANDWIDTH ** 2 * (target[i] - position[i])) / (1 + 2 * h * BANDWIDTH + (h * BANDWIDTH) ** 2) : 0;
      position[i] += h * velocity[i];
      inputs[device] = position[i];
      if (rate >= 0) inputs[rate] = velocity[i];
      if (engagement >= 0) inputs[engagement] = handle.twist && i === handle.axes.length - 1 && !this.twist ? 0 : hand.grip;
    });
  }

  report() {
    const { records, made } = this.machine.log();
    if (!made) return;
    const news = this.log.entries({ records, made });
    this.message({ kind: "transitions", number: 1, news, totals: this.log.totals() });
    const impacts = records.flatMap(({ time, fired }) => fired.filter(({ event, slope }) => event === Event.CLOSES && -slope > CLICK).map(({ contact, slope }) => [this.data.words.contacts[contact].name, time, -slope]));
    const at = (performance.timeOrigin + performance.now()) / 1000;
    if (impacts.length) this.message({ kind: "impacts", number: 1, impacts, instant: { t: this.machine.time, at, speed: this.speed }, sent: at });
    if (this.hurries) {
      this.hurries = false;
      this.owed = 0;
      this.phase = LivePhase.PAUSED;
    }
  }

  show() {
    const { tick, phase, log } = this, hand = (handle) => this.hands.find((one) => one.handle === handle).grip;
    this.emit(this.frames.frame({ number: 1, tick, phase, fault: 0, transitions: log.number }, hand));
    if (performance.now() - this.reported < REPORT) return;
    this.reported = performance.now();
    this.message({ kind: "dwell", number: 1, totals: log.totals() });
  }

  send(command) {
    if (!this.machine) return false;
    const act = this[`do_${command.do}`];
    if (!act) return false;
    act.call(this, command);
    if (this.phase !== LivePhase.RUNNING) this.show();
    return true;
  }

  do_run() {
    if (this.phase === LivePhase.PAUSED) this.phase = LivePhase.RUNNING;
  }

  do_pause() {
    if (this.phase === LivePhase.RUNNING) this.phase = LivePhase.PAUSED;
  }

  do_reset() {
    if (this.phase !== LivePhase.PAUSED) this.phase = LivePhase.RUNNING;
    this.reset();
  }

  do_step({ ticks }) {
    if (this.phase !== LivePhase.PAUSED) return;
    this.phase = LivePhase.RUNNING;
    for (let i = 0; i < ticks && this.phase === LivePhase.RUNNING; i++) this.advance(this.data.period);
    if (this.phase === LivePhase.RUNNING) this.phase = LivePhase.PAUSED;
  }

  do_next() {
    if (this.phase === LivePhase.FAILED || this.phase === LivePhase.STOPPED) return;
    this.phase = LivePhase.RUNNING;
    this.hurries = true;
  }

  do_speed({ value }) {
    this.speed = value;
  }

  do_schedule({ on }) {
    this.follows = on;
    this.do_reset();
  }

  do_view_direction({ azimuth, elevation }) {
    this.frames.look(azimuth, elevation);
  }

  do_set({ name, value }) {
    const { parameters } = this.data.model.setup, item = parameters.find((one) => one.name === name);
    if (this.machine.set(item.index, value)) item.now = value;
    else {
      this.message({ kind: "refused", message: `${name} cannot be ${value}: restitutions are from 0 to 1, kinetic friction up to the static one` });
      this.message({ kind: "setup", parameters, waiting: [] });
    }
  }

  do_input({ name, value }) {
    const drive = this.data.model.setup.drives.find((item) => item.name === name);
    this.pressed = value === 0 ? null : drive;
    this.inputs[drive.index] = value;
  }

  do_port({ port, twist }) {
    Object.assign(this, { port, twist });
    for (const hand of this.hands) hand.held = false;
  }

  // The pointer at a point of the picture: an axis moves until its handle is closest to it.
  do_point({ port, x, y, turn, held }) {
    const hand = this.hands.find(({ handle }) => handle.name === port), { frames } = this, { handle } = hand;
    if (!held) {
      hand.held = false;
      return;
    }
    const at = frames.geometry(), outputs = frames.report().subarray(...frames.outputs.outputs), positions = frames.positions(handle, outputs);
    if (!hand.held && hand.grip === 0) {
      hand.position = positions.slice();
      hand.velocity.fill(0);
      hand.target = positions.slice();
    }
    hand.held = true;
    const [px, py] = frames.shown(frames.place(handle, at)), moved = nearest(frames.directions(handle, at).map((axis) => frames.shown(axis)), [x - px, y - py]);
    moved.forEach((value, i) => (hand.target[i] = positions[i] + value));
    if (handle.twist) hand.target[handle.axes.length - 1] = turn;
  }

  do_press({ port, down }) {
    const hand = this.hands.find(({ handle }) => handle.name === port), { press } = this.data.model.ports.find(({ name }) => name === port);
    hand.held = true;
    hand.target[0] = press[down ? 1 : 0];
  }
}

// Least squares along axes in the picture, little along those that are seen end-on.
function nearest(axes, [x, y]) {
  const n = axes.length, small = 1e-4 * Math.max(...axes.map(([a, b]) => a * a + b * b), 1e-300);
  const rows = axes.map((axis, i) => [...axes.map((other, j) => axis[0] * other[0] + axis[1] * other[1] + (i === j ? small : 0)), axis[0] * x + axis[1] * y]);
  for (let k = 0; k < n; k++) {
    for (let i = 0; i < n; i++) {
      if (i === k) continue;
      const share = rows[i][k] / rows[k][k];
      for (let j = k; j <= n; j++) rows[i][j] -= share * rows[k][j];
    }
  }
  return rows.map((row, k) => row[n] / row[k]);
}
