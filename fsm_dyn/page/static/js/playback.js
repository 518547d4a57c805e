// Playback of a recorded run: its clock, and the strip of modes below the mechanism.

import { $, setText, short } from "./dom.js";
import { doubles, upTo, wholes } from "./base64_arrays.js";

const SMALL = 0.005; // of the run, step of an arrow key
const AFTER = 600; // ms, until an embedded page plays
const TICKS = 2000; // most marks of transitions

export class Playback {
  constructor(send) {
    Object.assign(this, { send, run: null, playing: false, rate: 1, waits: false, pace: null });
    this.box = $("playback");
    this.canvas = $("playback-bands");
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.pointed(event);
    });
    this.canvas.addEventListener("pointermove", (event) => event.buttons & 1 && this.pointed(event));
    new ResizeObserver(() => this.run && this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.run && this.draw());
  }

  model(model) {
    const again = this.run && model.playback && this.about.name === model.name, { clock, playing } = this; // run again with other parameters
    this.run = model.playback ?? null;
    this.about = model;
    this.box.hidden = !this.run;
    document.body.classList.toggle("playback-mode", !!this.run);
    this.playing = this.waits = false;
    this.queued = null;
    if (!this.run) return;
    [this.from, this.to] = this.run.span;
    this.when = doubles(this.run.when);
    const { story } = model;
    this.bands = story
      ? { begins: story.begins, colours: story.names.map((name) => story.fills[story.named[name]][0]) }
      : { begins: doubles(this.run.bands.begins), colours: Array.from(wholes(this.run.bands.modes), (mode) => model.graph.modes[mode]?.colour ?? "#bbb") };
    this.clock = again ? Math.min(this.to, Math.max(this.from, clock)) : this.from;
    if (again) this.play(playing);
    this.row = 0;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (document.body.classList.contains("embedded") && !still) setTimeout(() => this.play(true), AFTER);
    setText($("playback-span"), `${short(this.from)} s`);
    setText($("playback-end"), `${short(this.to, 4)} s`);
    this.draw();
  }

  draw() {
    const { canvas, when, bands } = this, ratio = devicePixelRatio || 1;
    const width = (canvas.width = Math.max(1, Math.round(canvas.clientWidth * ratio)));
    const height = (canvas.height = Math.max(1, Math.round(canvas.clientHeight * ratio)));
    const pen = canvas.getContext("2d"), x = (t) => ((t - this.from) / (this.to - this.from || 1)) * width;
    for (let i = 0, drawn = -1; i < bands.begins.length; i++) { // bands narrower than a point are merged into the first
      const begin = x(bands.begins[i]), end = i + 1 < bands.begins.length ? x(bands.begins[i + 1]) : width;
      if (end < drawn) continue;
      pen.fillStyle = bands.colours[i];
      pen.fillRect(begin, 0, Math.max(0.6, end - begin), height);
      drawn = begin + 0.6;
    }
    pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    pen.globalAlpha = when.length > 200 ? 0.25 : 0.6;
    const every = Math.ceil(when.length / TICKS);
    for (let i = 0; i < when.length; i += every) pen.fillRect(x(when[i]) - 0.5, 0.62 * height, 1, 0.38 * height);
  }

  pointed(event) {
    const box = this.canvas.getBoundingClientRect();
    this.seek(this.from + ((event.clientX - box.left) / box.width) * (this.to - this.from));
  }

  // Seek a time of the clock; after: the first row not before it. One request at a time: the latest is queued.
  seek(at, after = false) {
    if (!this.run) return;
    this.clock = Math.min(this.to, Math.max(this.from, at));
    this.ask({ do: "seek", at: this.clock, after });
  }

  ask(command) {
    if (this.waits) this.queued = command;
    else this.waits = this.send(command) !== false;
  }

  step(count) {
    this.play(false);
    this.ask({ do: "seek_row", number: Math.max(0, this.row + count) });
  }

  by(share) {
    this.seek(this.clock + share * SMALL * (this.to - this.from));
  }

  // To the next or previous transition.
  next(direction = 1) {
    this.play(false);
    const eps = 1e-9 * Math.max(1, Math.abs(this.to));
    const at = this.when[direction > 0 ? upTo(this.when, this.clock + eps) : upTo(this.when, this.clock - eps) - 1];
    if (at !== undefined) this.go(at);
  }

  // To just after a transition.
  go(t) {
    this.play(false);
    this.seek(t, true);
    this.stay = true; // keep the clock at its time, though its row may be later
  }

  play(on = !this.playing) {
    if (!this.run) return;
    if (on && this.clock >= this.to) this.seek(this.from);
    this.playing = on;
    this.before = performance.now();
    document.body.dataset.phase = on ? "running" : "paused";
    setText($("phase"), on ? "playing" : "recorded");
  }

  // Called on every screen update.
  tick() {
    if (!this.run) return;
    const now = performance.now();
    if (this.playing) {
      const passed = ((now - this.before) / 1000) * this.rate, pace = this.pace?.(this.clock);
      const next = pace ? Math.min(this.clock + passed * pace.rate, Math.max(pace.until, this.clock + 1e-12)) : this.clock + passed;
      this.seek(next);
      if (next >= this.to && document.body.classList.contains("embedded")) this.seek(this.from);
      else if (next >= this.to) this.play(false);
    }
    this.before = now;
  }

  frame(frame) {
    if (!this.run) return;
    this.waits = false;
    this.row = frame.tick;
    const clock = frame.samples[0];
    if (this.queued) {
      const next = this.queued;
      this.queued = null;
      this.ask(next);
    } else if (!this.playing && !this.stay) this.clock = clock;
    this.stay = false;
    $("playback-head").style.left = `${(100 * (this.clock - this.from)) / (this.to - this.from || 1)}%`;
    for (const [key, value] of [["min", this.from], ["max", this.to], ["now", this.clock]]) this.canvas.setAttribute(`aria-value${key}`, value.toFixed(3));
    this.canvas.setAttribute("aria-valuetext", `${frame.t.toFixed(3)} s`);
    if (!this.playing) setText($("phase"), "recorded");
    else setText($("phase"), "playing");
  }

  connection(state) {
    if (state !== "open") this.waits = false;
  }
}
