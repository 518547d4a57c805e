// Strip charts of chosen quantities against model time, one strip per unit, the modes as bands behind them.

import { $, el, setText, short } from "./dom.js";
import { doubles, floats, upTo, wholes } from "./base64_arrays.js";

const KEPT = 1400; // samples
const LOWEST = 44; // px, least height of a strip; more strips scroll
const STRIPS = 4;
const PATIENCE = 150; // ms from a zoom to the request of its detail
const EVERY = 32; // ms between redraws, for every strip
const FIRST = { speeds: 3, contacts: 3 }; // default quantities by group

// A value at a grid line, distinct from those next to it however small all are.
function label(value) {
  const size = Math.abs(value), few = Number(value.toPrecision(3));
  if (size >= 1 || size === 0) return uPlot.fmtNum(value);
  return size < 1e-3 ? few.toExponential() : String(few);
}

export class Charts {
  constructor(playback, send) {
    Object.assign(this, { playback, send });
    this.box = $("strips");
    this.plots = [];
    $("choose").onclick = () => this.choose();
    $("ahead").onchange = () => send({ do: "look_ahead", on: $("ahead").checked });
    new ResizeObserver(() => this.resize()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.about && this.build());
  }

  model(model) {
    const same = this.about?.name === model.name && this.about.quantities.length === model.quantities.length;
    this.about = model;
    this.names = model.quantities.map((q, i) => model.story?.quantities[i] ?? q.name);
    if (!same) this.chosen = this.usual();
    this.clear();
    this.whole = null; // in playback: data of the whole run
    this.over = !!model.playback;
    $("ahead-label").hidden = model.look_ahead === undefined; // of a live run alone
    $("ahead").checked = model.look_ahead > 0;
    this.next = null; // time of the next transition, foreseen by the copy that runs ahead
    this.build();
    if (this.over) this.ask(...model.playback.span);
  }

  foreseen({ next }) {
    this.next = next;
  }

  // Request an interval of a recorded run in detail.
  ask(from, to) {
    this.span = [from, to];
    this.send({ do: "charts", from, to });
  }

  charts({ span, times, modes, values }) {
    if (!this.over || span.some((t, k) => t !== this.span[k])) return;
    const found = { times: Array.from(doubles(times)), modes: Array.from(wholes(modes)) }, n = found.times.length;
    const numbers = Array.from(floats(values), (value) => (Number.isFinite(value) ? value : null));
    found.values = this.names.map((_, i) => numbers.slice(n * i, n * (i + 1)));
    const all = this.span[0] <= this.playback.from && this.span[1] >= this.playback.to;
    if (all) this.whole = found;
    const { whole } = this, before = all || !whole ? 0 : upTo(whole.times, found.times[0]), after = all || !whole ? Infinity : upTo(whole.times, found.times[n - 1]);
    const joined = (list, own) => (all || !whole ? own : [...list.slice(0, before), ...own, ...list.slice(after)]);
    this.times = joined(whole?.times, found.times);
    this.modes = joined(whole?.modes, found.modes);
    this.values = found.values.map((own, i) => joined(whole?.values[i], own));
    for (const { plot, members } of this.plots) plot.setData([this.times, ...members.map((i) => this.values[i])], !plot.zoomed);
    this.mark();
  }

  usual() {
    if (this.about.story?.charts.length) return [...this.about.story.charts];
    const found = [];
    for (const [group, most] of Object.entries(FIRST)) {
      this.about.quantities.map((q, i) => [q, i]).filter(([q]) => q.group === group).slice(0, most).forEach(([, i]) => found.push(i));
    }
    return found.length ? found : [0];
  }

  clear() {
    this.times = [];
    this.modes = [];
    this.values = this.names.map(() => []);
  }

  take(frame) {
    const { samples, width, count } = frame;
    if (this.over) {
      this.now = samples; // the present row
      return;
    }
    for (let k = 0; k < count; k++) {
      const at = k * width, t = samples[at];
      if (this.times.length && t < this.times[this.times.length - 1]) this.clear();
      this.times.push(t);
      this.modes.push(samples[at + 1]);
      for (let i = 0; i < this.values.length; i++) this.values[i].push(samples[at + 2 + i]);
    }
    const over = this.times.length - KEPT;
    if (over > 200) for (const list of [this.times, this.modes, ...this.values]) list.splice(0, over);
  }

  // Colour behind a sample: of its visit, without visits of its mode.
  colour(sample) {
    const { story, graph } = this.about;
    if (!story) return graph.modes[this.modes[sample]]?.colour ?? "#bbb";
    return story.fills[story.named[story.names[Math.max(0, upTo(story.begins, this.times[sample]) - 1)]]][0];
  }

  // Strips: the chosen quantities by unit.
  strips() {
    const byUnit = new Map();
    for (const i of this.chosen) {
      const { unit } = this.about.quantities[i];
      byUnit.set(unit, [...(byUnit.get(unit) ?? []), i]);
    }
    return [...byUnit.entries()].slice(-STRIPS); // those chosen last
  }

  build() {
    for (const { plot } of this.plots) plot.destroy();
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    const lines = [1, 2, 3, 4, 5, 6].map((k) => colour(`--line-${k}`));
    const strips = this.strips();
    const height = Math.max(LOWEST, Math.floor(this.box.clientHeight / Math.max(1, strips.length)));
    this.plots = strips.map(([unit, members], s) => {
      const last = s === strips.length - 1;
      const values = (plot, splits, i) => {
        (plot.texts ??= [])[i] = splits.map((value) => (value === null ? "" : label(value)));
        return splits.map(() => null); // drawn as elements, see ticks
      };
      const axis = { stroke: colour("--soft"), values, grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
      const options = {
        width: this.box.clientWidth, height, pxAlign: 0, legend: { show: false },
        cursor: this.over ? { points: { show: false }, x: false, y: false, drag: { x: true, y: false } } : { show: false },
        select: { show: this.over },
        padding: [6, 12, last ? 0 : 2, 0], scales: { x: { time: false, range: (_, low, high) => [low, high + (this.about.look_ahead ?? 0)] }, y: { range: (_, low, high) => room(low, high) } },
        axes: [
          { ...axis, size: 20, show: last, gap: 2 },
          { ...axis, size: 66, gap: 3, space: 26 },
        ],
        series: [{}, ...members.map((i, k) => ({ stroke: lines[k % lines.length], width: 1.5, points: { show: false } }))],
        hooks: { drawClear: [(plot) => this.bands(plot)], drawAxes: [(plot) => ticks(plot)] },
      };
      const holder = el("div", { class: "strip" });
      const head = el("i", { class: "head", hidden: true });
      const names = el("p", { class: "series" }, ...members.map((i, k) => {
        const name = el("span", { text: this.names[i] });
        name.style.setProperty("--line", lines[k % lines.length]);
        return name;
      }));
      this.box.append(holder);
      const data = [this.times, ...members.map((i) => this.values[i])];
      const plot = new uPlot(options, data, holder);
      holder.append(names, head, el("span", { class: `unit${last ? " last" : ""}`, text: unit })); // as an element: rotated text on a canvas is slow
      if (this.over) this.lead(plot);
      return { plot, members, holder, head, names };
    });
    this.box.replaceChildren(...this.plots.map(({ holder }) => holder));
  }

  // Playback: a click seeks, a dragged interval zooms, a double click shows all.
  lead(plot) {
    plot.over.addEventListener("click", () => {
      if (plot.select.width < 3 && plot.cursor.left >= 0) this.playback.seek(plot.posToVal(plot.cursor.left, "x"));
    });
    plot.hooks.setScale = [(one, key) => {
      if (key !== "x" || this.aligning) return;
      const { min, max } = one.scales.x;
      if (!Number.isFinite(min) || !this.whole) return;
      const { times } = this.whole, zoomed = min > times[0] || max < times[times.length - 1];
      for (const { plot: each } of this.plots) each.zoomed = zoomed;
      clearTimeout(this.asking);
      if (zoomed && (min !== this.span[0] || max !== this.span[1])) this.asking = setTimeout(() => this.ask(min, max), PATIENCE);
      this.aligning = true;
      for (const { plot: other } of this.plots) if (other !== one) other.setScale("x", { min, max });
      this.aligning = false;
    }];
  }

  bands(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.globalAlpha = 0.3;
    const n = this.times.length, { min, max } = plot.scales.x, wide = bbox.width / (max - min || 1);
    const at = (t) => bbox.left + Math.min(bbox.width, Math.max(0, (t - min) * wide));
    for (let from = 0, drawn = -1; from < n; ) {
      let to = from + 1;
      while (to < n && this.colour(to) === this.colour(from)) to++;
      const left = at(this.times[from]), right = at(this.times[Math.min(to, n - 1)]);
      if (right < drawn + 1) { // bands narrower than a pixel are merged into the first
        from = to;
        continue;
      }
      drawn = Math.max(right, left + 1);
      ctx.fillStyle = this.colour(from);
      ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
      from = to;
    }
    ctx.restore();
  }

  // A thin line at the next transition, ahead of the present at the right end, with the time until then.
  markNext() {
    const now = this.times.at(-1), ahead = this.next !== null && this.next >= now ? this.next - now : null;
    this.plots.forEach(({ plot, head }, strip) => {
      head.hidden = ahead === null;
      if (head.hidden) return;
      head.classList.add("next");
      head.style.left = `${plot.valToPos(this.next, "x") + plot.bbox.left / devicePixelRatio}px`;
      setText(head, strip === 0 ? `${Math.round(1e3 * ahead)} ms` : "");
    });
  }

  // Mark the present time in every strip, with the values.
  mark() {
    if (!this.now) return;
    for (const { plot, head, names, members } of this.plots) {
      const x = plot.valToPos(this.now[0], "x") + plot.bbox.left / devicePixelRatio;
      const seen = this.now[0] >= (plot.scales.x.min ?? -Infinity) && this.now[0] <= (plot.scales.x.max ?? Infinity);
      head.hidden = !seen || !Number.isFinite(x);
      if (!head.hidden) head.style.left = `${x}px`;
      members.forEach((i, k) => setText(names.children[k], `${this.names[i]} ${short(this.now[2 + i])}`));
    }
  }

  frame() {
    if (this.over) {
      this.mark();
      return;
    }
    // all strips at once, of the same samples, about ten times a second: drawing takes longer than the rest of the page
    const now = performance.now();
    if (now - (this.drawn ?? 0) < EVERY * Math.max(this.plots.length, 2)) return;
    this.drawn = now;
    for (const { plot, members } of this.plots) plot.setData([this.times, ...members.map((i) => this.values[i])]);
    this.markNext();
  }

  resize() {
    const height = Math.max(LOWEST, Math.floor(this.box.clientHeight / Math.max(1, this.plots.length)));
    for (const { plot } of this.plots) plot.setSize({ width: this.box.clientWidth, height });
  }

  // Dialog of all quantities.
  choose() {
    if (!this.about) return;
    const dialog = $("quantities");
    const groups = [...new Set(this.about.quantities.map((q) => q.group))];
    const boxes = [];
    const lists = groups.map((group) => el("fieldset", {}, el("legend", { text: group }),
      ...this.about.quantities.map((q, i) => [q, i]).filter(([q]) => q.group === group).map(([q, i]) => {
        const box = el("input", { type: "checkbox", checked: this.chosen.includes(i) });
        boxes.push([box, i]);
        return el("label", { class: "check" }, box, q.name, el("span", { class: "soft", text: ` ${q.unit}` }));
      })));
    dialog.replaceChildren(el("h2", { text: "Quantities of the strip charts" }), el("p", { class: "soft", text: `One strip per unit, ${STRIPS} at most.` }),
      el("div", { class: "groups" }, ...lists), el("form", { method: "dialog" }, el("button", { text: "Close" })));
    dialog.onchange = () => {
      const checked = boxes.filter(([box]) => box.checked).map(([, i]) => i);
      this.chosen = [...this.chosen.filter((i) => checked.includes(i)), ...checked.filter((i) => !this.chosen.includes(i))];
      this.build();
      this.mark();
    };
    dialog.showModal();
  }
}

const HALF_TICK = 7; // px, half a label: those at the ends stay within their own strip

// Axis labels of a strip as elements: text on a canvas takes longer than its lines.
function ticks(plot) {
  const labels = (plot.labels ??= []), left = plot.bbox.left / devicePixelRatio, top = plot.bbox.top / devicePixelRatio;
  const high = plot.bbox.height / devicePixelRatio;
  let used = 0;
  plot.axes.forEach((axis, i) => {
    (axis.show && axis._splits ? axis._splits : []).forEach((value, k) => {
      const text = value === null ? "" : plot.texts[i][k];
      if (!text) return;
      const along = plot.valToPos(value, axis.scale);
      const x = i === 0 ? left + along : left - axis.gap;
      const y = top + (i === 0 ? high + axis.gap : Math.min(Math.max(along, HALF_TICK), high - HALF_TICK));
      const label = (labels[used] ??= plot.root.appendChild(el("i", { class: "tick" })));
      used++;
      setText(label, text);
      label.hidden = false;
      label.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px) translate(${i === 0 ? "-50%, 0" : "-100%, -50%"})`;
    });
  });
  for (const label of labels.slice(used)) label.hidden = true;
}

// Range of an axis with a margin, never empty.
function room(low, high) {
  if (low === null || high === null) return [-1, 1];
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (high - low < 1e-6 * size || size < 1e-9) return [low - Math.max(0.5 * size, 1), high + Math.max(0.5 * size, 1)];
  const more = 0.08 * (high - low);
  return [low - more, high + more];
}
