// Graph of a run: a box for each phase or mode that it visited; in a row, on a narrow page in a column.

import { $, setText, svg } from "./dom.js";

const ROW = 700; // px, from which the boxes are in a row
const SMALLEST = 0.55; // least scale of a row
const HEAD = 7; // px
const SIDE = 10; // px, padding

// The graph as a picture; `go` is called with the name of a box that is clicked.
export function graphPicture(graph, scale, label, go) {
  const picture = svg("svg", { viewBox: `0 0 ${graph.width} ${graph.height}`, width: graph.width * scale, height: graph.height * scale, role: "img", "aria-label": label });
  picture.append(...graph.edges.map(drawnEdge), ...graph.edges.filter(({ size }) => size[0]).map(drawnPill), ...graph.boxes.map((box) => drawnBox(box, go)));
  return picture;
}

// Light the box of a name, or that of the others, and return it.
export function lightBox(element, name) {
  const boxes = [...element.querySelectorAll(".run-box")], known = boxes.some((box) => box.dataset.name === name);
  for (const box of boxes) box.classList.toggle("on", known ? box.dataset.name === name : box.dataset.name.endsWith(" others"));
}

function drawnEdge({ course, title }) {
  const [[x0, y0], [x1, y1]] = course.slice(-2), long = Math.max(Math.abs(x1 - x0) + Math.abs(y1 - y0), 1e-9);
  const [ux, uy] = [(x1 - x0) / long, (y1 - y0) / long], neck = [x1 - HEAD * ux, y1 - HEAD * uy];
  const group = svg("g", { class: "run-edge" }), tip = svg("title");
  tip.textContent = title;
  group.append(tip, svg("path", { class: "course", d: `M${[...course.slice(0, -1), neck].map((p) => p.join(" ")).join("L")}` }),
    svg("path", { class: "tip", d: `M${x1} ${y1}L${neck[0] - 3 * uy} ${neck[1] + 3 * ux}L${neck[0] + 3 * uy} ${neck[1] - 3 * ux}Z` }));
  return group;
}

function drawnPill({ pill: [x, y], size: [width, height], words }) {
  const group = svg("g", { class: "pill" }), text = svg("text", { x, y: y + 3.6 });
  text.textContent = words;
  group.append(svg("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 8 }), text);
  return group;
}

function drawnBox({ name, left, top, width, height, text, fill: [colour, texture] }, go) {
  const place = { x: left, y: top, width, height, rx: 7 }, group = svg("g", { class: "run-box", "data-name": name });
  const title = svg("title"), label = svg("text", { class: "name", x: left + width / 2, y: top + 0.43 * height, "font-size": Math.min(12.5, (width - 8) / (0.62 * name.length)) });
  const dwell = svg("text", { class: "long", x: left + width / 2, y: top + 0.82 * height });
  [title.textContent, label.textContent, dwell.textContent] = [name, name, text];
  group.append(title, svg("rect", { ...place, fill: colour }), ...(texture ? [svg("rect", { ...place, fill: `url(#fill-${texture})` })] : []), svg("rect", { ...place, class: "rim" }), label, dwell);
  if (go) group.addEventListener("click", () => go(name));
  return group;
}

export class RunGraph {
  constructor(playback, story) {
    Object.assign(this, { playback, reader: story, box: $("run-graph-body"), story: null });
    new ResizeObserver(() => this.story && this.draw()).observe(this.box);
  }

  model({ story }) {
    this.story = story ?? null;
    if (!story) return;
    setText($("run-graph-note"), story.headline);
    this.draw();
  }

  draw() {
    const width = this.box.clientWidth - 2 * SIDE;
    if (width <= 0) return;
    const row = width >= ROW && width >= SMALLEST * this.story.graph.width, graph = row ? this.story.graph : this.story.narrow;
    const scale = Math.min(1, width / graph.width);
    this.box.replaceChildren(graphPicture(graph, scale, "Graph of this run", (name) => this.go(name)));
    this.active = null;
    this.frame();
  }

  // To the next visit of this name.
  go(name) {
    const { story, playback } = this, now = this.reader.at(playback.clock), all = story.names.map((k) => story.named[k]);
    const later = all.indexOf(name, now + 1), number = later >= 0 ? later : all.indexOf(name);
    if (number >= 0) playback.go(story.begins[number]);
  }

  frame() {
    if (!this.story) return;
    const name = this.story.named[this.story.names[this.reader.at(this.playback.clock)]];
    if (name === this.active) return;
    this.active = name;
    lightBox(this.box, name);
  }
}
