// The log of transitions, the latest on top; each opens to tell what it was decided by.

import { $, el, setText, short } from "./dom.js";

const KEPT = 200;

export class Log {
  constructor() {
    this.list = $("entries");
  }

  model(model) {
    this.about = model;
    this.list.replaceChildren();
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

  entry(item) {
    const details = el("details", { "data-number": item.number },
      el("summary", {},
        el("span", { class: "when", text: item.t.toFixed(item.t < 100 ? 4 : 3) }),
        el("span", { class: "what" }, this.chip(item.source), "→", this.chip(item.target)),
        el("span", { class: "cause", text: item.cause })));
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
