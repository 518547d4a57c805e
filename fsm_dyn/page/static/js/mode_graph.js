// Mode graph: active mode highlighted; edges dashed until they are taken, flashing when they are; visit counts and dwell times;
// modes that guards lead to and that are not derived with dashed borders; infeasible modes in grey. Of many modes those that
// were visited are separate boxes, all others a box for each group, which opens.

import { $, called, duration, el, elided, setText } from "./dom.js";
import { layered } from "./layered_layout.js";

const PARTS = /\+|; /; // between the parts of a mode's name
const MOST = 12; // most modes shown one by one; of larger graphs those visited most, by short names, and groups of the others
const OTHER = "other"; // group of modes without a name of the model
const SMALLEST = 0.7; // least legible zoom of a whole graph
const LETTER = 7.5; // px of a letter in a box
const READABLE = 0.85; // zoom of larger graphs, whose view follows the active mode
const LARGEST = 1.15;
const MARGIN = 8; // px, between the graph and the edges of its panel
const REBUILD = 1000; // ms between layouts
const FOLLOW = 250; // ms between moves to the active mode
const FLASH = 500; // ms
const REFRESH = 500; // ms between new counts
const PRUNED_AT_ONCE = 6;
const FLASHES = 6; // at once

export class ModeGraph {
  constructor() {
    this.box = $("map");
    this.toggle = $("pruned");
    this.toggle.addEventListener("change", () => this.rebuild());
    $("enlarge").onclick = () => this.enlarge();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    new ResizeObserver(() => this.cy && this.arrange()).observe(this.box);
    this.box.addEventListener("keydown", (event) => {
      if (["]", "ArrowRight", "ArrowDown"].includes(event.key)) this.walk(1);
      else if (["[", "ArrowLeft", "ArrowUp"].includes(event.key)) this.walk(-1);
      else if (event.key === "Escape") this.choose(null);
      else if (event.key === "Home") this.arrange();
      else if (event.key === "Enter" && this.chosen?.hasClass("group")) this.open(this.chosen.data("group"));
      else return;
      event.preventDefault();
    });
  }

  model(model) {
    this.data = model.graph;
    this.colours = model.graph.modes.map((mode) => mode.colour);
    this.totals = model.totals;
    this.active = -1;
    this.last = new Map(); // ms at which each mode was active last
    this.opened = new Set(); // groups whose modes are shown one by one
    this.chosen = this.pointed = null;
    const pruned = model.graph.pruned_count;
    $("pruned-label").hidden = pruned === 0;
    this.toggle.checked = pruned > 0 && pruned <= PRUNED_AT_ONCE;
    this.rebuild();
  }

  mode_graph(message) {
    this.data = message.graph;
    this.stale = true;
  }

  transitions({ news, totals }) {
    this.totals = totals;
    this.complete();
    const taken = new Map(news.slice(-FLASHES).map(({ source, target }) => [`${source}\n${target}`, [source, target]]));
    for (const [source, target] of taken.values()) this.flash(source, target);
  }

  dwell({ totals }) {
    this.timing({ totals });
  }

  timing({ totals }) {
    this.totals = totals;
    this.count();
  }

  enlarge() {
    document.body.classList.toggle("graph-large");
    $("enlarge").setAttribute("aria-pressed", document.body.classList.contains("graph-large"));
  }

  // What was visited and is not drawn: an edge at once; a mode, for which the others move, when the time comes.
  complete() {
    const room = this.single() < MOST;
    for (const [a, b] of this.totals.crossings) {
      if (!this.drawn.has(a) || !this.drawn.has(b)) this.stale ||= room && this.many;
      const way = this.way(a, b);
      if (!way || this.joined.has(`${way}`)) continue;
      this.joined.add(`${way}`);
      this.join(...way, {});
    }
  }

  join(source, target, causes) {
    if (this.cy.getElementById(`e:${source}\n${target}`).nonempty()) return;
    const edge = this.cy.add(edgeOf(source, target, causes));
    if (edge.isLoop()) this.reach(edge);
  }

  // The modes that are not derived; in the order of the payload.
  possible() {
    const derived = new Set(this.data.modes.map((mode) => mode.name));
    return (this.data.possible ?? []).filter((mode) => !derived.has(mode.name));
  }

  // Number of boxes of modes, without those of opened groups.
  single() {
    return this.data.modes.filter((mode) => this.drawn.has(mode.name) && !this.opened.has(groupOf(mode))).length;
  }

  // The modes that are separate boxes.
  shown() {
    const { modes } = this.data, all = [...modes, ...this.possible()];
    if (all.length <= MOST) return new Set(all.map((mode) => mode.name));
    const { visits } = this.totals;
    const visited = modes.filter((m) => visits[m.name] || m.initial).sort((m, n) => (visits[n.name] ?? 0) - (visits[m.name] ?? 0));
    const found = new Set(visited.slice(0, MOST).map((mode) => mode.name));
    if (modes[this.active]) found.add(modes[this.active].name);
    for (const mode of all) if (this.opened.has(groupOf(mode))) found.add(mode.name);
    return found;
  }

  // Ends of an edge as they are drawn, modes or groups; nothing within one group or for a mode that is unknown.
  way(source, target) {
    const place = (name) => (this.drawn.has(name) ? name : this.place.get(name));
    const [a, b] = [place(source), place(target)];
    return a === undefined || b === undefined || (a === b && !this.drawn.has(a)) ? null : [a, b];
  }

  elements() {
    const shown = this.shown(), found = [], possible = this.possible(), names = labels(this.data.modes, this.many);
    this.drawn = shown;
    this.joined = new Set();
    this.place = new Map(); // of modes that are not shown: their group
    for (const mode of this.data.modes) if (shown.has(mode.name)) found.push(nodeOf(mode, names.get(mode.name)));
    for (const mode of possible) if (shown.has(mode.name)) found.push(possibleNode(mode));
    const groups = new Map();
    for (const mode of [...this.data.modes, ...possible]) {
      const name = groupOf(mode);
      if (!shown.has(mode.name)) {
        groups.set(name, (groups.get(name) ?? 0) + 1);
        this.place.set(mode.name, groupId(name));
      } else if (this.opened.has(name) && !groups.has(name)) groups.set(name, 0);
    }
    for (const [name, count] of groups) found.push(groupNode(name, count));
    const have = new Map();
    const edge = (source, target, causes) => {
      const way = this.way(source, target);
      if (!way) return;
      const kept = have.get(`${way}`);
      if (kept) return void Object.assign(kept.data.causes, causes);
      const added = edgeOf(...way, { ...causes });
      have.set(`${way}`, added);
      found.push(added);
    };
    for (const { source, target, causes } of this.data.edges) edge(source, target, causes);
    for (const [source, target] of this.totals.crossings) edge(source, target, {});
    for (const way of have.keys()) this.joined.add(way);
    if (this.toggle.checked) {
      for (const { name, reason } of this.data.pruned) {
        found.push({ data: { id: `p:${name}`, name, label: name, reason }, classes: "pruned" });
      }
    }
    setText($("graph-note"), this.note());
    return found;
  }

  // Show the modes of a group one by one, or as one box again.
  open(group) {
    if (!this.opened.delete(group)) this.opened.add(group);
    this.rebuild();
  }

  note() {
    const { modes, pruned_count: pruned, complete } = this.data, possible = this.possible().length;
    const parts = [`${modes.length} mode${modes.length === 1 ? "" : "s"}${complete ? "" : " so far"}`];
    if (possible) parts.push(`${possible} possible`);
    const shown = modes.filter((mode) => this.drawn.has(mode.name)).length;
    if (shown < modes.length) parts.push(`${shown} shown`);
    if (pruned) parts.push(`${pruned} infeasible`);
    return parts.join(" · ");
  }

  // Show an active mode that is not drawn in the box of the least recently active one, without a new layout. The layout
  // is computed again when the run pauses.
  exchange() {
    this.built = performance.now();
    this.stale = false;
    const mode = this.data.modes[this.active];
    if (!mode || this.drawn.has(mode.name)) return;
    this.untidy = true;
    const boxes = this.cy.nodes("[mode]").not(".initial").not(".possible");
    if (boxes.empty()) return this.rebuild();
    const oldest = boxes.toArray()
      .reduce((one, other) => ((this.last.get(other.data("name")) ?? 0) < (this.last.get(one.data("name")) ?? 0) ? other : one));
    const position = { ...oldest.position() }, { wide, high } = oldest.data();
    this.drawn.delete(oldest.data("name"));
    this.drawn.add(mode.name);
    this.joined = new Set();
    oldest.remove();
    const name = elided(labels(this.data.modes, true).get(mode.name), Math.max(6, Math.floor(wide / LETTER)));
    const node = this.cy.add({ ...nodeOf(mode, name), position });
    node.data({ wide, high }); // size of the replaced box, so that none overlap
    for (const { source, target, causes } of this.data.edges) {
      if ((source === mode.name || target === mode.name) && this.drawn.has(source) && this.drawn.has(target)) this.join(source, target, causes);
    }
    this.complete();
    this.light();
    setText($("graph-note"), this.note());
  }

  rebuild() {
    this.many = this.data.modes.length + this.possible().length > MOST;
    const elements = this.elements();
    this.stale = this.untidy = false;
    this.built = performance.now();
    this.cy?.destroy();
    this.cy = cytoscape({
      container: this.box, elements, style: this.style(), minZoom: 0.15, maxZoom: 2.5,
      boxSelectionEnabled: false, autoungrabify: true, layout: { name: "null" },
    });
    this.cy.on("mouseover", "node, edge", (event) => this.detail((this.pointed = event.target)));
    this.cy.on("mouseout", "node, edge", () => {
      this.pointed = null;
      this.detail(this.chosen);
    });
    this.cy.on("tap", (event) => this.choose(event.target === this.cy ? null : event.target));
    this.cy.on("tap", "node.group", (event) => this.open(event.target.data("group")));
    this.cy.on("dragpan scrollzoom pinchzoom", () => (this.follows = false)); // the user's view is kept
    this.cy.on("dbltap", (event) => event.target === this.cy && this.arrange());
    this.count();
    this.measure();
    this.light();
    this.arrange();
    this.detail(null);
  }

  // Size boxes by their labels with room for growing counts.
  measure() {
    const pen = document.createElement("canvas").getContext("2d"), font = getComputedStyle(document.body).fontFamily;
    this.cy.nodes().forEach((node) => {
      const cut = node.hasClass("pruned");
      pen.font = `${cut ? "" : "bold "}${cut ? 10 : 12}px ${font}`;
      const counted = node.data("mode") && !node.hasClass("possible");
      const rows = cut ? [node.data("name")] : [...node.data("lines").split("\n"), ...(counted ? ["00× · 0.00 s"] : [])];
      const wide = Math.max(...rows.map((row) => pen.measureText(row).width));
      node.data({ wide: Math.ceil(wide), high: cut ? 12 : 14 * rows.length });
    });
  }

  // Layered layout in the direction with the larger zoom.
  arrange() {
    const { clientWidth, clientHeight } = this.box, hidden = !clientWidth || !clientHeight;
    const [width, height] = hidden ? [600, 400] : [clientWidth, clientHeight]; // arranged again when it is shown
    this.cy.resize();
    let best = null;
    const pruned = this.cy.nodes(".pruned"), nodes = this.cy.nodes().not(pruned);
    const loops = new Set(this.cy.edges().filter((edge) => edge.isLoop()).map((edge) => edge.data("source")));
    const boxes = nodes.map((n) => ({ id: n.id(), w: n.data("wide") + 14, h: n.data("high") + 14, first: n.hasClass("initial"), loop: loops.has(n.id()) }));
    const edges = this.cy.edges().map((e) => ({ source: e.data("source"), target: e.data("target") }));
    for (const down of [false, true]) {
      const found = layered(boxes, edges, down);
      nodes.positions((n) => found[n.id()]);
      this.loops(down);
      this.lay(pruned, this.cy.elements().not(pruned).boundingBox(), width / height);
      const box = this.cy.elements().boundingBox();
      const zoom = Math.min(width / (box.w + 16), height / (box.h + 16), 1.15);
      if (!best || zoom > best.zoom * 1.05) best = { zoom, down, positions: this.cy.nodes().map((n) => ({ ...n.position() })) };
    }
    this.loops(best.down);
    this.cy.nodes().positions((n, i) => best.positions[i]);
    if (hidden) return;
    this.cy.fit(undefined, MARGIN);
    this.follows = this.cy.zoom() < SMALLEST;
    if (!this.follows && this.cy.zoom() <= LARGEST) return;
    this.cy.zoom(this.follows ? READABLE : LARGEST);
    if (this.follows) this.cy.pan(this.panTo(this.lit?.nonempty() ? this.lit : this.cy.nodes().first()));
    else this.cy.center();
  }

  // Where elements are in the middle, or as near to it as leaves no room empty while a part of the graph is out of view.
  panTo(elements) {
    const zoom = this.cy.zoom(), whole = this.cy.elements().boundingBox(), wanted = elements.boundingBox();
    const along = (low, high, middle, size) => {
      const first = MARGIN - zoom * low, last = size - MARGIN - zoom * high;
      return last > first ? (first + last) / 2 : Math.min(first, Math.max(last, size / 2 - zoom * middle));
    };
    return {
      x: along(whole.x1, whole.x2, (wanted.x1 + wanted.x2) / 2, this.cy.width()),
      y: along(whole.y1, whole.y2, (wanted.y1 + wanted.y2) / 2, this.cy.height()),
    };
  }

  // Keep the active mode of a graph larger than its panel in view, and while it has no box, any box.
  follow() {
    const now = performance.now();
    if (!this.follows || !this.lit || now - (this.moved ?? 0) < FOLLOW) return;
    const seen = this.cy.extent(), wanted = this.lit.nonempty() ? this.lit : this.cy.nodes();
    const within = (node) => {
      const box = node.boundingBox();
      return box.x1 > seen.x1 && box.x2 < seen.x2 && box.y1 > seen.y1 && box.y2 < seen.y2;
    };
    if (wanted.empty() || wanted.some(within)) return;
    this.moved = now;
    this.cy.stop().animate({ pan: this.panTo(wanted.first()), duration: FOLLOW, easing: "ease-out" });
  }

  // Loops are above their boxes, or to the right if layers are stacked vertically.
  loops(down) {
    this.down = down;
    this.cy.edges().filter((edge) => edge.isLoop()).forEach((edge) => this.reach(edge));
  }

  // A loop must end outside its box.
  reach(loop) {
    const across = this.down ? loop.source().data("wide") : loop.source().data("high");
    loop.style({ "loop-direction": this.down ? "90deg" : "0deg", "control-point-step-size": across / 2 + 34 });
  }

  // Infeasible modes are in rows below the others.
  lay(nodes, box, shape) {
    const most = Math.max(box.w, shape * box.h);
    let x = box.x1, y = box.y2 + 22;
    nodes.forEach((node) => {
      const { w, h } = node.boundingBox();
      if (x > box.x1 && x + w > box.x1 + most) {
        x = box.x1;
        y += h + 6;
      }
      node.position({ x: x + w / 2, y: y + h / 2 });
      x += w + 8;
    });
  }

  style() {
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    const [ink, soft, line, panel, accent] = ["--ink", "--soft", "--edge", "--panel", "--accent"].map(colour);
    return [
      { selector: "node", style: {
        shape: "round-rectangle", label: "data(label)", "text-wrap": "wrap", "text-valign": "center", "text-max-width": 400,
        width: "data(wide)", height: "data(high)", padding: 7, "font-size": 12, "font-family": css.getPropertyValue("--font"),
        color: "#1b222b", "background-color": "data(colour)", "background-opacity": 0.42, "border-width": 1, "border-color": "data(colour)",
        "line-height": 1.15,
      } },
      { selector: "node[^colour]", style: { "background-color": line } },
      { selector: "node", style: { color: ink } },
      { selector: "node.active", style: { "background-opacity": 1, "border-width": 2.5, "border-color": ink, color: "#1b222b", "font-weight": "bold" } },
      { selector: "node.initial", style: { "border-style": "double", "border-width": 3.5 } },
      { selector: "node.possible, node.group", style: { "background-color": line, "background-opacity": 0.12, "border-style": "dashed", "border-color": soft } },
      { selector: "node.group", style: { shape: "cut-rectangle", "border-width": 1.5 } },
      { selector: "node.pruned", style: { "background-color": line, "background-opacity": 0.25, "border-style": "dashed", "border-color": soft, "border-width": 1, color: soft, "font-size": 10 } },
      { selector: "node.chosen", style: { "outline-width": 2, "outline-color": accent, "outline-offset": 2 } },
      { selector: "edge", style: {
        width: 1.2, "line-style": "dashed", "line-color": line, "target-arrow-color": line, "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier",
        label: "data(label)", "font-size": 10, color: soft, "text-background-color": panel, "text-background-opacity": 0.9, "text-background-padding": 2,
        "loop-sweep": "-40deg",
      } },
      { selector: "edge.faint", style: { opacity: 0.3, "arrow-scale": 0.5 } },
      { selector: "edge.seen", style: { "line-style": "solid", "line-color": soft, "target-arrow-color": soft, width: 1.8, opacity: 1 } },
      { selector: "edge.flash", style: { "line-color": accent, "target-arrow-color": accent, width: 4 } },
      { selector: "edge.chosen", style: { "line-color": accent, "target-arrow-color": accent } },
    ];
  }

  restyle() {
    this.cy?.style(this.style());
  }

  frame(frame) {
    if (frame.mode !== this.active) {
      this.active = frame.mode;
      this.light();
    }
    if ((this.stale || (this.untidy && frame.phase !== 0)) && performance.now() - this.built > REBUILD) {
      if (this.many && frame.phase === 0 && this.single() >= MOST) this.exchange();
      else this.rebuild();
    }
    this.follow();
  }

  light() {
    const name = this.data.modes[this.active]?.name;
    this.cy.nodes(".active").removeClass("active");
    this.lit = this.cy.getElementById(`m:${name}`).addClass("active");
    this.box.dataset.active = name ?? "";
    this.last.set(name, performance.now());
    if (name !== undefined && this.lit.empty()) this.stale = true;
    if (!this.pointed && !this.chosen) this.detail(null);
  }

  flash(source, target) {
    const edge = this.cy.getElementById(`e:${this.way(source, target)?.join("\n")}`);
    if (edge.empty()) return;
    edge.addClass("flash seen");
    clearTimeout(edge.scratch("timer"));
    edge.scratch("timer", setTimeout(() => edge.inside() && edge.removeClass("flash"), FLASH));
  }

  count() {
    if (!this.cy) return;
    const { visits, seconds, crossings } = this.totals;
    this.cy.batch(() => {
      for (const node of this.cy.nodes("[mode]").not(".possible")) {
        const name = node.data("name"), times = visits[name] ?? 0, spent = seconds[name];
        const label = spent === undefined ? node.data("lines") : `${node.data("lines")}\n${times ? `${times}× · ` : ""}${duration(spent)}`;
        if (node.data("label") !== label) node.data("label", label);
      }
      const counts = new Map();
      for (const [source, target, count] of crossings) {
        const way = this.way(source, target)?.join("\n");
        if (way) counts.set(way, (counts.get(way) ?? 0) + count);
      }
      for (const [way, count] of counts) {
        const edge = this.cy.getElementById(`e:${way}`);
        if (edge.nonempty() && edge.data("label") !== `${count}`) edge.data("label", `${count}`).addClass("seen");
      }
    });
  }

  choose(element) {
    this.cy.elements(".chosen").removeClass("chosen");
    this.chosen = element;
    element?.addClass("chosen");
    this.detail(element);
  }

  walk(step) {
    const nodes = this.cy.nodes(), at = this.chosen ? nodes.toArray().findIndex((n) => n.same(this.chosen)) : -1;
    if (nodes.length) this.choose(nodes[(at + step + nodes.length) % nodes.length]);
  }

  // Details of the element under the pointer or chosen by keys.
  detail(element) {
    const line = $("detail"), active = this.data.modes[this.active], data = element?.data?.() ?? (active && { mode: active, name: active.name });
    line.replaceChildren();
    if (!data) {
      line.append(el("span", { class: "soft", text: "Point at a mode or an edge for details." }));
    } else if (data.reason !== undefined) {
      line.append(el("b", { text: data.name }), ` infeasible: ${data.reason}`);
    } else if (data.group !== undefined) {
      line.append(el("b", { text: data.group }), data.count ? ` ${data.count} mode${data.count === 1 ? "" : "s"} that no run has visited yet; press Enter or click to show them.` : " press Enter or click to gather its modes again.");
    } else if (data.mode) {
      const contacts = Object.entries(data.mode.states), many = contacts.length > 6;
      const states = contacts.filter(([, state]) => !many || state !== "open").map(([name, state]) => `${name} ${state}`).join(", ");
      line.append(el("b", { text: data.lines?.replaceAll("\n", "") ?? (many ? data.name.split(PARTS)[0] : data.name) }), ` ${states || "all open"}`);
      if (data.mode.words && contacts.length) line.append(el("span", { class: "soft", text: ` · ${data.mode.words}` }));
    } else {
      const causes = Object.entries(data.causes).map(([cause, reset]) => (reset ? `${cause} (${reset})` : cause));
      line.append(el("b", { text: `${plain(data.from)} → ${plain(data.to)}` }), ` ${causes.join("; ") || "several contacts at once"}`);
    }
  }
}

function nodeOf(mode, text) {
  const { name, colour, initial } = mode;
  return { group: "nodes", data: { id: `m:${name}`, name, lines: text, label: text, colour, mode }, classes: initial ? "initial" : "" };
}

function possibleNode(mode) {
  const text = lines(called(mode));
  return { group: "nodes", data: { id: `m:${mode.name}`, name: mode.name, lines: text, label: text, mode }, classes: "possible" };
}

// A box for the modes of a group that are not shown; of an opened group, to close it.
function groupNode(name, count) {
  const text = `${lines(name)}\n${count ? `+ ${count} more` : "− close"}`;
  return { group: "nodes", data: { id: `m:${groupId(name)}`, group: name, count, lines: text, label: text }, classes: "group" };
}

function groupOf(mode) {
  return mode.group ?? OTHER;
}

const GROUP = "\u0000";
const groupId = (name) => GROUP + name;
const plain = (end) => (end.startsWith(GROUP) ? `${end.slice(1)} (group)` : end);

function edgeOf(source, target, causes) {
  const faint = source.startsWith(GROUP) && target.startsWith(GROUP);
  return { group: "edges", data: { id: `e:${source}\n${target}`, source: `m:${source}`, target: `m:${target}`, from: source, to: target, causes, label: "" }, classes: faint ? "faint" : "" };
}

// Labels of boxes: names in lines of their parts; of many modes the first part, numbered if not unique. Details are
// below the graph.
function labels(modes, many) {
  if (!many) return new Map(modes.map((mode) => [mode.name, lines(called(mode))]));
  const counts = new Map();
  return new Map(modes.map(({ name }) => {
    const [first, ...rest] = name.split(PARTS), short = first.length > 18 ? `${first.slice(0, 17)}…` : first;
    const number = (counts.get(short) ?? 0) + 1;
    counts.set(short, number);
    return [name, rest.length || number > 1 ? `${short} · ${number}` : short];
  }));
}

// A long name in lines of its parts.
function lines(name) {
  if (name.length <= 14) return name;
  const cut = (part) => (part.length > 20 && !part.includes(" ") ? `${part.slice(0, 10)}…${part.slice(-9)}` : part);
  const wrapped = (part) => part.replace(/(.{12,20}) (?=.)/g, "$1 \n");
  return name.replaceAll("+", "\n+").replace(/([;,]) /g, "$1 \n").split("\n").map(cut).map(wrapped).join("\n");
}
