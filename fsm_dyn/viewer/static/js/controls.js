// The buttons above the mechanism.

import { $, el, setText } from "./dom.js";

export class Controls {
  constructor(send, dragging) {
    Object.assign(this, { send, dragging, phase: "" });
    dragging.onport = (port) => ($("port").value = port);
    $("run").onclick = () => this.run();
    $("step").onclick = () => this.step();
    $("next").onclick = () => send({ do: "next" });
    $("reset").onclick = () => send({ do: "reset" });
    $("speed").oninput = () => this.speed(10 ** +$("speed").value);
    $("port").onchange = () => dragging.use($("port").value);
    $("twist").onchange = () => dragging.use($("port").value, $("twist").checked);
    $("schedule").onchange = () => send({ do: "schedule", on: $("schedule").checked });
  }

  model(model) {
    setText($("name"), model.name);
    setText($("summary"), model.summary);
    $("summary").title = model.summary;
    $("port").replaceChildren(...model.ports.map(({ name }) => el("option", { value: name, text: name.replace(/_grip$/, "") })));
    $("port").value = model.port;
    $("port-label").hidden = model.ports.length < 2;
    $("twist-label").hidden = !model.ports.some((port) => port.twist);
    $("twist").checked = false;
    $("schedule-label").hidden = model.schedule === null;
    $("schedule").checked = model.schedule === true;
    this.show(model.speed);
  }

  event(event) {
    if (event.event === "done" && event.command.do === "speed") this.show(event.command.value);
  }

  connection(state) {
    for (const control of document.querySelectorAll("header button, header input, header select")) {
      if (control.id !== "help") control.disabled = state !== "open";
    }
  }

  frame() {
    const phase = document.body.dataset.phase;
    if (phase === this.phase) return;
    this.phase = phase;
    const running = phase === "running";
    setText($("run-text"), running ? "Pause" : "Run");
    $("run").setAttribute("aria-pressed", running);
  }

  run() {
    this.send({ do: this.phase === "running" ? "pause" : "run" });
  }

  step() {
    if (this.phase === "running") this.send({ do: "pause" });
    else this.send({ do: "step", ticks: 1 });
  }

  faster(factor) {
    this.speed(Math.min(1, Math.max(1e-3, factor ? 10 ** +$("speed").value * factor : 1)));
  }

  speed(value) {
    this.show(value);
    this.send({ do: "speed", value: Math.min(1, Math.max(1e-3, value)) });
  }

  show(value) {
    $("speed").value = Math.log10(value);
    setText($("speed-text"), value > 0.995 ? "1×" : `1/${Number((1 / value).toPrecision(2))}`);
    $("speed").setAttribute("aria-valuetext", $("speed-text").textContent);
  }

  port(step) {
    const select = $("port"), n = select.options.length;
    if (n < 2) return;
    select.selectedIndex = (select.selectedIndex + step + n) % n;
    this.dragging.use(select.value);
  }

  toggle(id) {
    if (!$(id).closest("label").hidden) $(id).click();
  }
}
