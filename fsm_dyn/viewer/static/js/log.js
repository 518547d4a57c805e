// The log of transitions, the latest on top; each opens to tell what it was decided by.

import { $, el, setText, short } from "./dom.js";

const KEPT = 200;
const AT_ONCE = 60; // transitions that are told at once of a run that is over
const PAUSE = 150; // ms between questions for others

export class Log {
  constructor(film, send) {
    Object.assign(this, { film, send, list: $("entries") });
  }

  model(model) {
    this.about = model;
    this.list.replaceChildren();
    this.first = this.current = -1;
    this.story({ news: model.story, totals: model.totals });
  }

  story({ news, totals }) {
    const entries = news.map((item) => this.entry(item)).reverse();
    this.list.prepend(...entries);
    while (this.list.childElementCount > KEPT) this.list.lastElementChild.remove();
    setText($("log-count"), totals.transitions ? `${totals.transitions}` : "");
    if (!this.list.childElementCount) this.list.append(el("li", { class: "soft none", text: "None yet." }));
    else this.list.querySelector(".none")?.remove();
  }

  // Of a run that is over: the transitions around the instant, the last one before it marked.
  frame(frame) {
    if (!this.about.film || !this.about.film.changes.length) return;
    const made = frame.transitions, now = performance.now();
    const within = this.first >= 0 && made >= this.first && made <= this.first + AT_ONCE;
    const margin = within && (made - this.first < 8 ? this.first > 0 : this.first + AT_ONCE - made < 8 && this.first + AT_ONCE < this.about.film.changes.length);
    if ((!within || margin) && now - (this.asked ?? -PAUSE) > PAUSE) {
      this.asked = now;
      this.send({ do: "words", first: Math.max(0, made - AT_ONCE / 2) });
    }
    if (made !== this.current) this.mark(made);
  }

  words({ first, items }) {
    this.first = first;
    this.list.replaceChildren(...items.map((item) => this.entry(item)).reverse());
    this.mark(this.current);
  }

  mark(made) {
    this.current = made;
    for (const old of this.list.querySelectorAll(".now")) old.classList.remove("now");
    const found = this.list.querySelector(`[data-number="${made - 1}"]`)?.closest("li");
    if (!found) return;
    found.classList.add("now");
    const box = this.list.getBoundingClientRect(), own = found.getBoundingClientRect();
    if (own.top < box.top || own.bottom > box.bottom) this.list.scrollTop += own.top - box.top - box.height / 3;
  }

  entry(item) {
    const details = el("details", { "data-number": item.number },
      el("summary", {},
        el("span", { class: "when", text: item.t.toFixed(item.t < 100 ? 4 : 3) }),
        el("span", { class: "what" }, this.chip(item.source), "→", this.chip(item.target)),
        el("span", { class: "cause", text: item.cause })));
    if (this.about.film) details.querySelector("summary").addEventListener("click", () => this.film.go(this.about.film.changes[item.number][0]));
    // what few will read is made when somebody wants to
    details.addEventListener("toggle", () => this.fill(details, item), { once: true });
    return el("li", {}, details);
  }

  fill(details, item) {
    const rows = item.guards.map(([text, value, slope]) => ["guard", `${text}: ${short(value)}, falling at ${short(-slope)} per s`]);
    for (const [name, values] of Object.entries(item.impulse)) rows.push(["impulse", `${name}: ${values.map((v) => short(v)).join(" / ")}`]);
    if (Math.abs(item.lost) > 1e-12) rows.push(["energy lost", `${short(item.lost)} J`]);
    for (const line of item.why) rows.push(["decided", line]);
    details.append(el("dl", {}, ...rows.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })])));
  }

  chip(name) {
    const chip = el("span", { class: "chip", text: name, title: name });
    chip.style.setProperty("--mode", this.about.graph.modes.find((mode) => mode.name === name)?.colour ?? "#bbbbbb");
    return chip;
  }
}
