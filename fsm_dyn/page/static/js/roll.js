// Roll of a run: a column for each visit, all equally wide, a lane for each contact that changes; time to scale below.

import { $, el, setText, short, svg } from "./dom.js";

const WIDE = 560; // px, from which lanes have their names beside them
const NAMES = 186, COLUMN = 92, NARROW = 78; // px: of names, least of a column
const HEAD = 40, LANE = 22, TALL = 38, FAN = 26, BAR = 10, GAP = 2; // px
const SIDE = 10; // px, padding
const DIGIT = 6.2; // px, of a count
const LETTER = 0.62; // of the size of a letter, its width

export class Roll {
  constructor(playback, story) {
    Object.assign(this, { playback, reader: story, box: $("roll-scroll"), names: $("roll-names"), story: null });
    new ResizeObserver(() => this.story && this.draw()).observe($("roll-body"));
    this.box.addEventListener("pointerdown", (event) => this.pointed(event));
    this.box.addEventListener("pointermove", (event) => event.buttons & 1 && event.pointerType === "mouse" && this.pointed(event));
  }

  model({ story }) {
    this.story = story ?? null;
    document.body.classList.toggle("without-contacts", !!story && !story.lanes.length && !story.always.length && story.visits.length === 1);
    if (story) this.draw();
  }

  draw() {
    const { story, box } = this, body = $("roll-body").clientWidth - 2 * SIDE;
    if (body <= 0) return; // the tab is not shown
    this.narrow = body < WIDE;
    const count = story.visits.length, lane = (this.lane = this.narrow ? TALL : LANE);
    const room = body - (this.narrow ? 0 : NAMES), width = (this.width = Math.max(room, count * (this.narrow ? NARROW : COLUMN)));
    this.column = width / count;
    this.foot = HEAD + story.lanes.length * lane;
    const height = this.foot + FAN + BAR + 2;
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Contacts over the visits of the run" });
    story.visits.forEach((visit, k) => picture.append(...this.head(visit, k)));
    story.lanes.forEach((own, k) => picture.append(this.laneOf(own, HEAD + (k + (this.narrow ? 0.68 : 0.5)) * lane)));
    picture.append(...this.time());
    this.line = svg("path", { class: "playhead" });
    picture.append(this.line);
    box.replaceChildren(picture);
    this.label();
    this.shown = null;
    if (this.last) this.frame(this.last);
  }

  fill(attributes, [colour, texture], more = {}) {
    const parts = [svg("rect", { ...attributes, fill: colour, ...more })];
    if (texture) parts.push(svg("rect", { ...attributes, fill: `url(#fill-${texture})`, ...more }));
    return parts;
  }

  head(visit, k) {
    const { story } = this, x = k * this.column + GAP / 2, width = this.column - GAP, fill = story.fills[visit.name], mark = fill[2] ? ` ${fill[2]}` : "";
    const name = svg("text", { class: "name", x: x + width / 2, y: 16, "font-size": Math.max(9, Math.min(12.5, (width - 6) / (LETTER * (visit.name.length + mark.length)))) });
    name.textContent = fitting(visit.name, width - 4, Math.max(9, Math.min(12.5, (width - 6) / (LETTER * visit.name.length)))) + mark;
    const long = svg("text", { class: "long", x: x + width / 2, y: 30 });
    long.textContent = visit.span;
    const title = svg("title");
    title.textContent = `${visit.name}: ${visit.clock} s, ${visit.cause}`;
    const group = svg("g", { class: "column", "data-name": visit.name });
    group.append(...this.fill({ x, y: 0, width, height: HEAD - 4, rx: 4 }, fill), svg("rect", { x, y: HEAD, width, height: this.foot - HEAD, fill: fill[0], opacity: 0.17 }), name, long, title);
    return [group];
  }

  x(column, share) {
    return column * this.column + GAP / 2 + (this.column - GAP) * share;
  }

  laneOf(lane, y) {
    const group = svg("g", { class: "lane", "data-name": lane.name }), high = 0.8 * LANE;
    group.append(svg("path", { class: "open", d: `M0 ${y}H${this.width}` }));
    for (const { column, slides, x, heights } of lane.segments) {
      let places = x.map((share) => this.x(column, share));
      const [first, last] = [places[0], places.at(-1)];
      if (last - first < 1.6) places = places.map((_, i) => (first + last) / 2 + (i < places.length / 2 ? -0.9 : 0.9));
      const side = (sign) => places.map((at, i) => `${at.toFixed(1)} ${(y + (sign * high * heights[i]) / 2).toFixed(1)}`);
      group.append(svg("path", { class: slides ? "slides" : "closed", d: `M${[...side(-1), ...side(1).reverse()].join("L")}Z` }));
    }
    const places = lane.marks.map(([column, share]) => this.x(column, share));
    for (const [k, [, , count]] of lane.marks.entries()) {
      const x = places[k], top = y - high / 2 - 2;
      group.append(svg("path", { class: "impact", d: `M${x - 4} ${top - 2}h8l-4 6z` }));
      if (count > 1 && x + 6 + DIGIT * `${count}×`.length < (places[k + 1] ?? this.width)) {
        const text = svg("text", { class: "count", x: x + 5.5, y: top + 4 });
        text.textContent = `${count}×`;
        group.append(text);
      }
    }
    return group;
  }

  // Position of a time on the bar, px.
  scale(time) {
    const { begins, shown_end: end } = this.story;
    return this.width * Math.min(1, Math.max(0, (time - begins[0]) / Math.max(end - begins[0], 1e-300)));
  }

  time() {
    const { story, foot } = this, y = foot + FAN, parts = [];
    story.begins.forEach((begin, k) => {
      const x = this.scale(begin), width = this.scale(story.begins[k + 1] ?? story.end) - x;
      if (width > 0.3 || story.begins.length < 200) parts.push(...this.fill({ x, y, width: Math.max(width, 0.8), height: BAR }, story.fills[story.named[story.names[k]]]));
    });
    story.visits.forEach((visit, k) => {
      const [a, b, c, d] = [k * this.column + GAP / 2, (k + 1) * this.column - GAP / 2, this.scale(visit.end), this.scale(visit.begin)];
      parts.push(svg("path", { d: `M${a} ${foot}H${b}L${c} ${y}H${d}Z`, fill: story.fills[visit.name][0], opacity: 0.28 }));
    });
    return parts;
  }

  // Names of the lanes, with the force at the playhead: beside the columns, or above the lanes of a narrow page.
  label() {
    const { story, narrow } = this;
    $("roll-body").classList.toggle("narrow", narrow);
    this.forces = story.lanes.map(() => el("output", { class: "force" }));
    const labels = story.lanes.map((lane, k) => {
      const name = el("span", { class: "lane-name" }, el("span", { class: "what", text: lane.name, title: lane.name }), this.forces[k]);
      name.style.setProperty("top", `${HEAD + k * this.lane}px`);
      name.style.setProperty("height", `${narrow ? 17 : this.lane}px`);
      return name;
    });
    const scaled = el("span", { class: "lane-name soft", text: `to scale, ${short(story.shown_end - story.begins[0], 2)} s` });
    scaled.style.setProperty("top", `${this.foot + FAN - 5}px`);
    this.names.replaceChildren(...labels, ...(narrow ? [] : [scaled]));
    setText($("roll-note"), narrow ? "each visit equally wide" : "each visit equally wide; the bar below is to scale");
    setText($("roll-always"), story.always.length ? `touches all the time: ${story.always.join(", ")}` : "");
  }

  pointed(event) {
    const box = this.box.firstChild.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, { story } = this;
    this.playback.play(false);
    if (y > this.foot + FAN - 4) {
      this.playback.seek(story.begins[0] + (x / this.width) * (story.shown_end - story.begins[0]));
      return;
    }
    const k = Math.min(story.visits.length - 1, Math.max(0, Math.floor(x / this.column))), visit = story.visits[k];
    const share = Math.min(1, Math.max(0, (x - this.x(k, 0)) / (this.column - GAP)));
    this.playback.seek(visit.begin + share * (visit.end - visit.begin));
  }

  frame(frame) {
    this.last = frame;
    if (!this.story || !this.line) return;
    const { story, playback } = this, clock = playback.clock, number = this.reader.at(clock), k = number - story.first;
    const there = k >= 0 && k < story.visits.length, bar = this.scale(clock), y = this.foot + FAN;
    if (there) {
      const visit = story.visits[k], x = this.x(k, Math.min(1, Math.max(0, (clock - visit.begin) / Math.max(visit.end - visit.begin, 1e-300))));
      this.line.setAttribute("d", `M${x} ${HEAD - 4}V${this.foot}L${bar} ${y}v${BAR + 2}`);
      if (this.width > this.box.clientWidth + 4 && this.shown !== clock) this.box.scrollLeft = x - 0.45 * this.box.clientWidth;
    } else this.line.setAttribute("d", `M${bar} ${y - 4}v${BAR + 6}`);
    this.shown = clock;
    const values = frame.samples.subarray(frame.samples.length - frame.width + 2);
    story.lanes.forEach(({ forces, unit }, i) => {
      const force = forces.reduce((sum, at) => sum + Math.abs(values[at]), 0);
      setText(this.forces[i], force > 0 ? `${short(force)} ${unit}` : "");
    });
  }
}

function fitting(text, width, size) {
  const most = Math.max(3, Math.floor(width / (LETTER * size)));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
