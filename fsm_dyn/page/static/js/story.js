// Story of a finished run: what happened, its phase beside the mechanism, and the pace at which it plays.

import { $, duration, el, setText } from "./dom.js";
import { upTo } from "./base64_arrays.js";

const COLUMN = 1.6; // s of the wall clock for a visit
const NOTICEABLE = 1e-4; // of a run, least difference of a visit from that of the run before

// A fill of a phase on an element.
export function filled(element, [colour, texture]) {
  element.style.setProperty("--fill", colour);
  element.dataset.texture = texture;
}

export class Story {
  constructor(playback) {
    Object.assign(this, { playback, list: $("story-list"), story: null });
    this.list.addEventListener("keydown", (event) => {
      const sibling = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      if (!sibling) return;
      event.target.closest("li")?.[sibling]?.querySelector("button")?.focus();
      event.preventDefault();
    });
  }

  model(model) {
    const { story } = model;
    this.story = story ?? null;
    this.active = -1;
    $("say").hidden = $("slowed").hidden = !story;
    this.playback.pace = null;
    if (!story) return;
    this.rows = story.visits.map((visit) => this.row(visit));
    this.list.replaceChildren(...this.rows);
    setText($("story-note"), story.note);
    $("missing").hidden = !model.picture.missing.length;
    setText($("missing"), model.picture.missing.length ? `not drawn: ${model.picture.missing.join(", ")}` : "");
  }

  row(visit) {
    const swatch = el("i", { class: "swatch", "aria-hidden": "true" });
    filled(swatch, this.story.fills[visit.name]);
    const button = el("button", { class: "visit", title: visit.text || visit.name, onclick: () => this.go(visit) },
      swatch, el("span", { class: "when", text: `${visit.clock} s` }),
      el("span", { class: "what" }, el("strong", { text: visit.name }), el("small", { text: visit.cause })),
      el("span", { class: "long", text: visit.span }), ...this.shift(visit));
    return el("li", {}, button);
  }

  // How much later it began than in the run before.
  shift({ begin, before }) {
    const { story } = this, later = begin - before;
    if (before === null || before === undefined || Math.abs(later) < NOTICEABLE * (story.end - story.begins[0])) return [];
    return [el("span", { class: "shift", text: `${later > 0 ? "+" : "−"}${duration(Math.abs(later))}`, title: `In the run before: ${before.toPrecision(5)} s` })];
  }

  go(visit) {
    this.playback.go(visit.begin);
  }

  // Number of the visit at a time among all of the run.
  at(clock) {
    return Math.max(0, upTo(this.story.begins, clock) - 1);
  }

  ends(number) {
    return this.story.begins[number + 1] ?? this.story.end;
  }

  // Model seconds per second of the wall clock, and the time up to which that holds.
  pace(clock) {
    const number = this.at(clock);
    return { rate: Math.max(this.ends(number) - this.story.begins[number], 1e-9) / COLUMN, until: this.ends(number) };
  }

  previous() {
    const { begins } = this.story, { clock } = this.playback, number = this.at(clock), within = this.ends(number) - begins[number];
    const near = clock - begins[number] < 0.1 * within;
    this.playback.go(begins[Math.max(0, number - (near ? 1 : 0))]);
  }

  next() {
    const number = this.at(this.playback.clock);
    this.playback.go(number + 1 < this.story.begins.length ? this.story.begins[number + 1] : this.story.end);
  }

  frame() {
    const { story } = this;
    if (!story) return;
    const number = this.at(this.playback.clock);
    if (number === this.active) return;
    this.active = number;
    const shown = story.visits[number - story.first], name = story.named[story.names[number]];
    filled($("mode"), story.fills[name]);
    $("mode").classList.add("phase");
    setText($("mode"), name);
    setText($("say"), shown?.text || shown?.cause || "");
    const slower = COLUMN / Math.max(this.ends(number) - story.begins[number], 1e-12), about = (value) => (value >= 10 ? Number(value.toPrecision(2)) : value.toFixed(1));
    setText($("slowed"), slower > 1.5 ? `slowed ${about(slower)}×` : slower < 1 / 1.5 ? `sped up ${about(1 / slower)}×` : "");
    this.rows.forEach((row, k) => {
      const on = k === number - story.first;
      row.classList.toggle("on", on);
      row.firstChild.setAttribute("aria-current", on ? "step" : "false");
    });
    const row = this.rows[number - story.first];
    if (!row) return;
    const box = this.list.getBoundingClientRect(), own = row.getBoundingClientRect();
    if (own.top < box.top || own.bottom > box.bottom) this.list.scrollTop += own.top - box.top - box.height / 3;
  }
}
