// Buttons above the mechanism.

import { $, el, setText } from "./dom.js";

export class Controls {
  constructor(send, dragging, playback, story) {
    Object.assign(this, { send, dragging, playback, phase: "" });
    $("previous").onclick = () => story.previous();
    $("following").onclick = () => story.next();
    dragging.onport = (port) => ($("port").value = port);
    $("run").onclick = () => this.run();
    $("step").onclick = () => this.step();
    $("next").onclick = () => (playback.run ? playback.next() : send({ do: "next" }));
    $("reset").onclick = () => (playback.run ? playback.seek(playback.from) : send({ do: "reset" }));
    $("speed").oninput = () => this.speed(10 ** +$("speed").value);
    $("port").onchange = () => dragging.use($("port").value);
    $("twist").onchange = () => dragging.use($("port").value, $("twist").checked);
    $("schedule").onchange = () => send({ do: "schedule", on: $("schedule").checked });
  }

  model(model) {
    setText($("name"), model.name);
    $("name").title = model.name;
    setText($("summary"), model.summary);
    $("summary").title = model.summary;
    $("port").replaceChildren(...model.ports.map(({ name }) => el("option", { value: name, text: name.replace(/_port$/, "") })));
    $("port").value = model.port;
    $("port-label").hidden = model.ports.length < 2 || !!model.device;
    $("twist-label").hidden = !!model.device || !model.ports.some((port) => port.twist);
    $("twist").checked = false;
    $("schedule-label").hidden = model.schedule === null;
    $("schedule").checked = model.schedule === true;
    setText($("reset"), model.playback ? "Start" : "Reset");
    $("speed").max = model.playback ? 1 : 0; // a playback may run faster than life
    this.fastest = model.playback ? 10 : 1;
    this.phase = "";
    this.show(model.speed);
  }

  event(event) {
    if (event.event === "command_done" && event.command.do === "speed") this.show(event.command.value);
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
    setText($("run-text"), running ? "Pause" : this.playback.run ? "Play" : "Run");
    $("run").setAttribute("aria-pressed", running);
  }

  run() {
    if (this.playback.run) {
      this.playback.play();
      this.frame();
    } else this.send({ do: this.phase === "running" ? "pause" : "run" });
  }

  step() {
    if (this.playback.run) this.playback.step(1);
    else if (this.phase === "running") this.send({ do: "pause" });
    else this.send({ do: "step", ticks: 1 });
  }

  faster(factor) {
    this.speed(Math.min(this.fastest, Math.max(1e-3, factor ? 10 ** +$("speed").value * factor : 1)));
  }

  speed(value) {
    const speed = Math.min(this.fastest, Math.max(1e-3, value));
    this.show(speed);
    if (this.playback.run) this.playback.rate = speed;
    else this.send({ do: "speed", value: speed });
  }

  show(value) {
    $("speed").value = Math.log10(value);
    setText($("speed-text"), value > 0.995 ? `${Number(value.toPrecision(2))}×` : `1/${Number((1 / value).toPrecision(2))}`);
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
