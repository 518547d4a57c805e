// Phases of a live run: the present one above the mechanism, and the graph of the visits so far instead of that of the modes.

import { filled } from "./story.js";
import { graphPicture, lightBox } from "./run_graph.js";
import { $, setText } from "./dom.js";

const SIDE = 10; // px, padding

export class LivePhases {
  constructor() {
    Object.assign(this, { box: $("phase-graph"), kind: $("graph-kind"), phases: null, graph: null });
    this.kind.onclick = () => this.show(!document.body.classList.contains("phased"));
    new ResizeObserver(() => this.graph && this.draw()).observe(this.box);
  }

  model({ phases, story, alone }) {
    this.phases = !story && phases?.length ? phases : null;
    this.graph = null;
    this.box.replaceChildren();
    this.kind.hidden = !this.phases || !!alone; // a page without a server lays out no graph
    this.show(!this.kind.hidden);
    if (!this.phases) return;
    $("say").hidden = false;
    this.phase_begins({ phase: 0 });
  }

  // Show the phases, or the modes.
  show(phases) {
    document.body.classList.toggle("phased", phases);
    setText(this.kind, phases ? "Modes" : "Phases");
    setText($("graph-title"), phases ? "Phases" : "Modes");
    if (phases && this.graph) this.draw();
  }

  phase_begins({ phase }) {
    if (!this.phases) return;
    const { name, text, fill } = this.phases[phase];
    this.name = name;
    filled($("mode"), fill);
    $("mode").classList.add("phase");
    $("mode").title = name;
    setText($("mode"), name);
    setText($("say"), text);
    lightBox(this.box, name);
  }

  timing({ phase_graph: graph }) {
    if (!this.phases || !graph) return;
    this.graph = graph;
    this.draw();
  }

  draw() {
    const width = this.box.clientWidth - 2 * SIDE;
    if (width <= 0) return;
    this.box.replaceChildren(graphPicture(this.graph, Math.min(1, width / this.graph.width), "Graph of the phases so far"));
    lightBox(this.box, this.name);
  }
}
