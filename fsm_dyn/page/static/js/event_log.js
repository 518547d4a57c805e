// Event log, latest on top; an entry opens to guards, impulses and selection.

import { $, called, el, elided, setText, short } from "./dom.js";

const KEPT = 200;
const AT_ONCE = 60; // transitions per request in playback
const EACH = 2; // queued entries added per screen update
const MOST = 240; // most entries in the list in playback
const NEAR = 240; // px from an end of the list at which more are requested
const SHORTEST = 16; // characters of a name; a line has two of them and a time
const LETTER = 8, BESIDE = 120; // px
const PAUSE = 350; // ms between requests in playback; while the list is scrolled: SCROLLED
const SCROLLED = 60;

// Names of several contacts as the first one, and how many more touch.
function briefly(name) {
  const parts = name.split(", ");
  return parts.length > 1 ? `${parts[0]} + ${parts.length - 1}` : name;
}

export class EventLog {
  constructor(playback, send) {
    Object.assign(this, { playback, send, list: $("entries") });
    this.list.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.list.addEventListener("keydown", (event) => this.walk(event));
  }

  // Up and down go from entry to entry.
  walk(event) {
    const sibling = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (!sibling) return;
    const li = event.target.closest("li"), summary = (li ? li[sibling] : this.list.firstElementChild)?.querySelector("summary");
    summary?.focus();
    event.preventDefault();
  }

  model(model) {
    this.about = model;
    this.list.replaceChildren();
    this.first = this.last = this.current = -1; // entries in the list: first <= number < last
    this.requested = null;
    this.waiting = [];
    this.mode_graph(model);
    this.transitions({ news: model.transitions, totals: model.totals });
  }

  mode_graph({ graph }) {
    this.colours = new Map(graph.modes.map((mode) => [mode.name, mode.colour]));
    this.full = new Map(graph.modes.map((mode) => [mode.name, mode.full]));
    this.called = new Map(graph.modes.map((mode) => [mode.name, called(mode)]));
  }

  transitions({ news, totals }) {
    this.waiting.push(...news);
    this.waiting.splice(0, this.waiting.length - KEPT);
    setText($("log-count"), totals.transitions ? `${totals.transitions}` : "");
    if (this.about.playback) this.enter(KEPT);
    if (!this.list.childElementCount) this.list.append(el("li", { class: "soft none", text: "No transitions." }));
  }

  // Add `count` queued entries: at high rates a few per screen update.
  enter(count) {
    const some = this.waiting.splice(0, count);
    if (!some.length) return;
    this.list.prepend(...some.map((item) => this.entry(item)).reverse());
    while (this.list.childElementCount > KEPT) this.list.lastElementChild.remove();
    this.list.querySelector(".none")?.remove();
  }

  // Playback: list the transitions around the present time, with the last one before it marked.
  frame(frame) {
    if (!this.about.playback) this.enter(EACH);
    if (!this.about.playback || !this.playback.when.length) return;
    const made = frame.transitions, all = this.playback.when.length;
    const there = this.first >= 0 && made >= this.first && made <= this.last;
    const tight = there && ((made - this.first < 8 && this.first > 0) || (this.last - made < 8 && this.last < all));
    if (!there || tight) this.ask(Math.max(0, made - AT_ONCE / 2));
    if (made !== this.current) this.mark(made);
  }

  ask(first, pause = PAUSE) {
    const now = performance.now();
    if (now - (this.asked ?? -PAUSE) < pause) return;
    this.asked = now;
    this.requested = first;
    this.send({ do: "transition_details", first });
  }

  // Scrolling near an end of the list requests more; distant entries are removed.
  scrolled() {
    if (!this.about?.playback || this.first < 0) return;
    const { scrollTop, scrollHeight, clientHeight } = this.list;
    if (scrollTop < NEAR && this.last < this.playback.when.length) this.ask(this.last, SCROLLED);
    else if (scrollHeight - clientHeight - scrollTop < NEAR && this.first > 0) this.ask(Math.max(0, this.first - AT_ONCE), SCROLLED);
  }

  transition_details({ first, items }) {
    if (first !== this.requested) return; // another page's request
    this.requested = null;
    const { list } = this, last = first + items.length;
    const made = (some) => some.map((item) => this.entry(item)).reverse();
    const later = first === this.last, earlier = !later && first < this.first && last >= this.first;
    if (later || earlier) {
      const fixed = later ? list.firstElementChild : list.lastElementChild, before = fixed.getBoundingClientRect().top;
      if (later) list.prepend(...made(items));
      else list.append(...made(items.slice(0, this.first - first)));
      while (list.childElementCount > MOST) (later ? list.lastElementChild : list.firstElementChild).remove();
      [this.first, this.last] = later ? [last - list.childElementCount, last] : [first, first + list.childElementCount];
      list.scrollTop += fixed.getBoundingClientRect().top - before;
    } else {
      [this.first, this.last] = [first, last];
      list.replaceChildren(...made(items));
    }
    this.mark(this.current, !later && !earlier);
  }

  mark(made, seen = true) {
    this.current = made;
    for (const old of this.list.querySelectorAll(".now")) old.classList.remove("now");
    const found = this.list.querySelector(`[data-number="${made - 1}"]`)?.closest("li");
    if (!found) return;
    found.classList.add("now");
    if (!seen) return;
    const box = this.list.getBoundingClientRect(), own = found.getBoundingClientRect();
    if (own.top < box.top || own.bottom > box.bottom) this.list.scrollTop += own.top - box.top - box.height / 3;
  }

  entry(item) {
    const details = el("details", { "data-number": item.number },
      el("summary", {},
        el("span", { class: "when", text: item.t.toFixed(item.t < 100 ? 4 : 3) }),
        el("span", { class: "what" }, this.chip(item.source), ...(item.handover ? [] : ["→", this.chip(item.target)])),
        el("span", { class: "cause", text: item.words ?? item.cause, title: item.cause })));
    if (this.about.playback) details.querySelector("summary").addEventListener("click", () => this.playback.go(this.playback.when[item.number]));
    // details are made when the entry is first opened
    details.addEventListener("toggle", () => this.fill(details, item), { once: true });
    return el("li", {}, details);
  }

  fill(details, item) {
    const rows = item.guards.map(([text, value, slope]) => ["guard", `${text}: ${short(value)}, slope ${short(slope)} /s`]);
    for (const [name, values] of Object.entries(item.impulse)) rows.push(["impulse", `${name}: ${values.map((v) => short(v)).join(" / ")}`]);
    if (Math.abs(item.lost) > 1e-12) rows.push(["energy lost", `${short(item.lost)} J`]);
    for (const line of item.why) rows.push(["selection", line]);
    details.append(el("dl", {}, ...rows.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })])));
  }

  chip(name) {
    const most = Math.max(SHORTEST, Math.floor((this.list.clientWidth - BESIDE) / 2 / LETTER));
    const chip = el("span", { class: "chip", text: elided(briefly(this.called.get(name) ?? name), most), title: this.full.get(name) ?? name });
    chip.style.setProperty("--mode", this.colours.get(name) ?? "#bbbbbb");
    return chip;
  }
}
