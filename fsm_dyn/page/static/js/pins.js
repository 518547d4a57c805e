// Forces in connections: a click on a pin shows its force as an arrow and its value; of a finished run peak and course,
// of a live one, on request, the largest since then.

import { $, el, setText, short, svg } from "./dom.js";
import { doubles, floats, upTo } from "./base64_arrays.js";

const NEAR = 18; // px, from a click to its pin
const SAME = 6; // px, of pins at one point: clicks choose them in turn
const LENGTH = 90; // px, of the largest force
const STILL = 5; // px, of a click
const WAIT = 400; // ms, for what is more urgent than loads
const [WIDE, HIGH] = [220, 46]; // px, of the course

export class Pins {
  constructor(mechanism, playback, send) {
    Object.assign(this, { mechanism, playback, send, pins: [], chosen: null, element: svg("g", { class: "pins" }) });
    this.card = $("pin");
    this.select = $("pin-name");
    this.select.addEventListener("change", () => this.choose(this.pins.find((pin) => pin.name === this.select.value) ?? null));
    $("pin-peak").addEventListener("click", () => this.chosen && this.times && playback.go(this.chosen.peak[1]));
    $("pin-ask").addEventListener("click", () => this.ask());
    const picture = mechanism.element;
    picture.addEventListener("pointerdown", (event) => (this.pressed = [event.clientX, event.clientY]));
    picture.addEventListener("click", (event) => this.clicked(event));
  }

  model(model) {
    const name = this.chosen?.name; // again after a run with other parameters
    Object.assign(this, { about: model, pins: [], chosen: null, wanted: name });
    this.element.replaceChildren();
    clearTimeout(this.asking);
    const offered = document.body.classList.contains("embedded") ? "" : model.offers_loads, again = this.asked && this.run === model.name;
    Object.assign(this, { asked: false, run: model.name });
    this.card.hidden = offered !== "on request";
    this.card.classList.toggle("asking", offered === "on request");
    if (offered === "at once" || (offered === "on request" && again)) this.asking = setTimeout(() => this.ask(), WAIT);
  }

  ask() {
    this.asked = this.send({ do: "loads" }) !== false;
  }

  loads({ loads }) {
    this.times = loads.times ? doubles(loads.times) : null; // none: of a live run, from frame to frame
    this.axes = loads.axes;
    this.pins = this.times
      ? loads.pins.filter((pin) => pin.peak[0] > loads.least || pin.impulses.length).map((pin) => ({ ...pin, place: floats(pin.place), force: floats(pin.force), size: floats(pin.size) }))
      : loads.pins.map((pin) => ({ ...pin, place: [], force: [], size: [], peak: [0, 0], impulses: [], determined: true }));
    this.card.classList.remove("asking");
    for (const pin of this.pins) {
      pin.target = svg("circle", { class: "pin-target", r: 9, "data-pin": pin.name });
      const title = svg("title");
      title.textContent = `${pin.words}: its force`;
      pin.target.append(title);
    }
    this.arrow = { group: svg("g", { class: "pin-force" }), shaft: svg("path", { class: "shaft" }), head: svg("path", { class: "head" }), text: svg("text", {}) };
    this.arrow.group.append(this.arrow.shaft, this.arrow.head, this.arrow.text);
    this.element.replaceChildren(...this.pins.map((pin) => pin.target), this.arrow.group);
    this.mechanism.overlay.append(this.element);
    this.select.replaceChildren(el("option", { value: "", text: "Force in …" }), ...this.pins.map(({ name, words }) => el("option", { value: name, text: words })));
    this.card.hidden = !this.pins.length;
    this.choose(this.pins.find((pin) => pin.name === this.wanted) ?? null);
  }

  // Of a live run: the forces at its latest row, in the order of the connections.
  take({ t, pins: numbers }) {
    const { axes } = this, width = 2 * axes + 2;
    if (numbers.length !== width * this.pins.length) return;
    this.pins.forEach((pin, k) => {
      const own = numbers.subarray(width * k, width * (k + 1));
      Object.assign(pin, { place: own.subarray(0, axes), force: own.subarray(axes, 2 * axes), size: own.subarray(2 * axes), determined: !own[2 * axes + 1] });
      if (pin.size[0] > pin.peak[0]) pin.peak = [pin.size[0], t];
    });
  }

  clicked(event) {
    const pressed = this.pressed;
    this.pressed = null;
    if (!this.pins.length || !pressed || Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > STILL) return;
    const box = this.mechanism.element.getBoundingClientRect(), at = [event.clientX - box.left, event.clientY - box.top];
    const away = (pin) => Math.hypot(pin.x - at[0], pin.y - at[1]), least = Math.min(...this.pins.map(away));
    if (!(least <= NEAR)) return;
    const here = this.pins.filter((pin) => away(pin) <= least + SAME), now = here.indexOf(this.chosen);
    this.choose(now === here.length - 1 ? null : here[now + 1]); // the last one again: none
  }

  choose(pin) {
    this.chosen = pin;
    this.select.value = pin?.name ?? "";
    for (const each of this.pins) each.target.classList.toggle("chosen", each === pin);
    this.card.classList.toggle("open", !!pin);
    if (pin) this.tell(pin);
    const { view } = this.mechanism, [wide, high] = view.card;
    view.card = pin ? [this.card.offsetLeft + this.card.offsetWidth, this.card.offsetHeight] : [0, 0];
    if (!view.free && (wide !== view.card[0] || high !== view.card[1])) view.resized = true;
    if (!this.last) return;
    this.mechanism.frame(this.last);
    this.frame(this.last);
  }

  tell(pin) {
    $("pin-peak").disabled = !this.times;
    if (this.times) {
      setText($("pin-peak"), pin.peak[0] > 0 ? `peak ${short(pin.peak[0])} N at ${pin.peak[1].toPrecision(4)} s` : "no force but in impacts");
      const [time, most] = pin.impulses.reduce((best, hit) => (hit[1] > best[1] ? hit : best), [0, 0]);
      setText($("pin-impulse"), [most > 0 ? `largest impulse ${short(most)} N·s at ${time.toPrecision(4)} s` : "", pin.determined ? "" : "shared among redundant supports"].filter(Boolean).join("; "));
      this.course(pin);
    } else {
      setText($("pin-peak"), pin.peak[0] > 0 ? `largest seen ${short(pin.peak[0])} N at ${pin.peak[1].toPrecision(4)} s` : "no force so far");
      setText($("pin-impulse"), pin.determined ? "" : "shared among redundant supports");
      $("pin-course").replaceChildren();
    }
  }

  // Size of the force over time; impulses as ticks above.
  course(pin) {
    const { from, to } = this.playback, x = (t) => (WIDE * (t - from)) / (to - from || 1), y = (size) => HIGH - 2 - (HIGH - 10) * (size / (pin.peak[0] || 1));
    const heights = new Map(); // the largest of each column
    pin.size.forEach((size, k) => {
      const column = Math.round(x(this.times[k]));
      heights.set(column, Math.max(heights.get(column) ?? 0, size));
    });
    const line = svg("path", { class: "course", d: `M${[...heights].map(([column, size]) => `${column} ${y(size).toFixed(1)}`).join("L")}` });
    const hits = svg("path", { class: "hits", d: pin.impulses.map(([time]) => `M${x(time).toFixed(1)} 0v6`).join("") });
    this.line = svg("path", { class: "now" });
    const picture = svg("svg", { width: WIDE, height: HIGH, viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `Force over time, 0 to ${short(pin.peak[0])} N, ${short(from)} to ${short(to)} s` });
    picture.append(line, hits, this.line);
    $("pin-course").replaceChildren(picture);
  }

  // A vector of a connection on the page.
  seen(vectors, k, space) {
    const own = vectors.subarray(this.axes * k, this.axes * (k + 1));
    return this.axes === 2 ? own : [0, 3].map((row) => own[0] * space[row] + own[1] * space[row + 1] + own[2] * space[row + 2]);
  }

  frame(frame) {
    this.last = frame;
    if (!this.times) this.take(frame);
    if (!this.pins[0]?.place.length) return;
    const { view } = this.mechanism, k = this.times ? Math.max(0, upTo(this.times, frame.samples[0]) - 1) : 0;
    for (const pin of this.pins) {
      [pin.x, pin.y] = view.screen(...this.seen(pin.place, k, frame.space));
      pin.target.setAttribute("transform", `translate(${pin.x} ${pin.y})`);
    }
    const { chosen: pin, arrow } = this;
    arrow.group.classList.toggle("on", !!pin);
    if (!pin) return;
    const [fx, fy] = this.seen(pin.force, k, frame.space), scale = LENGTH / (pin.peak[0] || 1);
    point(arrow, pin.x, pin.y, pin.x + scale * fx, pin.y - scale * fy);
    const value = `${short(pin.size[k])} N`;
    setText(arrow.text, value);
    arrow.text.setAttribute("x", pin.x + scale * fx + (fx < 0 ? -8 : 8));
    arrow.text.setAttribute("y", pin.y - scale * fy + (fy < 0 ? 16 : -6));
    arrow.text.setAttribute("text-anchor", fx < 0 ? "end" : "start");
    setText($("pin-value"), value);
    if (!this.times) return this.tell(pin);
    const { from, to } = this.playback, at = (WIDE * (frame.samples[0] - from)) / (to - from || 1);
    this.line.setAttribute("d", `M${at.toFixed(1)} 0V${HIGH}`);
  }
}

function point({ shaft, head }, x0, y0, x1, y1) {
  const length = Math.hypot(x1 - x0, y1 - y0), size = Math.min(10, 0.5 * length), [ux, uy] = [(x1 - x0) / (length || 1), (y1 - y0) / (length || 1)];
  shaft.setAttribute("d", length < 2 ? "" : `M${x0} ${y0}L${x1 - 0.7 * size * ux} ${y1 - 0.7 * size * uy}`);
  const [bx, by, w] = [x1 - ux * size, y1 - uy * size, 0.42 * size];
  head.setAttribute("d", length < 2 ? "" : `M${x1} ${y1}L${bx - uy * w} ${by + ux * w}L${bx + uy * w} ${by - ux * w}Z`);
}
