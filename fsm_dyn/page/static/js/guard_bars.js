// Guards of the active mode as bars: the mode ends when one is empty.

import { $, duration, el, setText, short } from "./dom.js";

const FORGET = 0.9995; // of the largest value seen, per frame
const SOON = 1.0; // s

export class GuardBars {
  constructor() {
    this.box = $("guard-bars");
  }

  model(model) {
    this.lists = model.guards;
    this.list = -1;
    this.known = new Map(); // bars of the modes visited
    this.largest = {};
  }

  guards({ guards }) {
    this.lists = guards;
    this.list = -1;
  }

  build(frame) {
    this.list = frame.list;
    if (this.lists[frame.list] && !this.known.has(frame.list)) this.known.set(frame.list, this.made(frame));
    this.rows = this.known.get(frame.list) ?? [];
    if (this.rows.length) this.box.replaceChildren(...this.rows.map((row) => row.element));
    else this.box.replaceChildren(el("p", { class: "soft", text: "No active guards." }));
  }

  made(frame) {
    const guards = this.lists[frame.list] ?? [];
    const twice = (name) => guards.filter((guard) => guard.words === name).length > 1;
    return guards.map(({ text, event, words }, i) => {
      const bar = el("span", { class: "fill" }), value = el("span", { class: "value" }), soon = el("span", { class: "soon" });
      const element = el("div", { class: "guard-bar", title: `${event}: ${text}` }, el("span", { class: "what", text: twice(words) ? `${words}: ${text}` : words }), el("span", { class: "trough" }, bar), value, soon);
      return { element, bar, value, soon, key: `${frame.list} ${i}` };
    });
  }

  frame(frame) {
    if (this.list !== frame.list) this.build(frame);
    if (this.rows.length !== frame.guardCount) return;
    let next = SOON, first = "";
    this.rows.forEach((row, i) => {
      const value = frame.guards[2 * i], slope = frame.guards[2 * i + 1];
      const most = (this.largest[row.key] = Math.max(Math.abs(value) || 0, (this.largest[row.key] ?? 0) * FORGET, 1e-12));
      const share = Math.max(0, Math.min(1, value / most));
      row.bar.style.transform = `scaleX(${share.toFixed(3)})`;
      const left = slope < 0 && value >= 0 ? -value / slope : Infinity;
      row.element.classList.toggle("near", share < 0.15 || left < 0.1);
      setText(row.value, short(value));
      setText(row.soon, left < SOON && frame.phase === 0 ? `in ${duration(left)}` : "");
      if (left < next) [next, first] = [left, this.lists[frame.list][i].event];
    });
    setText($("next-event"), first && frame.phase === 0 ? `next: ${first} in ${duration(next)}` : ""); // at present rates
  }
}
