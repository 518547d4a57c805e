// Banner: connecting, connection lost, error of the model, fault, end of the run.

import { $, el, setText } from "./dom.js";

export class Banner {
  constructor(send, retry) {
    Object.assign(this, { send, retry, box: $("banner"), shown: {} });
    this.connection("connecting", 0);
    setInterval(() => this.tick(), 500);
  }

  connection(state, wait) {
    const dot = $("link");
    dot.dataset.state = state;
    setText(dot, { connecting: "connecting", lost: "connection lost", open: document.getElementById("playback-data") ? "report" : document.getElementById("machine-data") ? "in this page" : "connected" }[state]);
    if (state === "open") this.say("connection", null);
    else if (state === "connecting") this.say("connection", { kind: "calm", title: "Connecting…" });
    else {
      const when = wait ? `Retry in ${(wait / 1000).toFixed(1)} s.` : "Retrying…";
      this.say("connection", { kind: "lost", title: "Connection lost", text: `${when} The device is disengaged.`, action: ["Retry now", this.retry] });
    }
  }

  // Stage of a start, with the time since its begin.
  starting({ name, stage, seconds, finished }) {
    document.body.classList.toggle("awaited", !!finished); // panels of a live run would stay empty
    this.since = performance.now() - 1000 * seconds;
    this.say("starting", { kind: "calm busy", title: `Starting ${name}…`, text: sentence(stage), clock: true });
  }

  // The file is recompiled while the current run continues.
  recompiling({ name, stage }) {
    setText($("watching"), stage ? `Recompiling ${name}: ${stage}…` : "");
  }

  tick() {
    const clock = this.box.querySelector(".clock");
    if (clock) setText(clock, `${Math.round((performance.now() - this.since) / 1000)} s`);
  }

  model(model) {
    this.about = model;
    document.body.classList.remove("awaited");
    for (const key of ["error", "ended", "phase"]) this.say(key, null);
    if (!this.shown.starting && !model.playback) this.starting({ name: model.name, stage: "waiting for the first tick", seconds: 0 });
    setText($("notice"), "");
  }

  error({ where, message, notes }) {
    document.body.classList.remove("awaited");
    const device = this.about?.device;
    const again = device ? ["Restart", () => this.send({ do: "restart" })] : undefined;
    this.say("error", { kind: "error", title: device ? "The run failed to start" : "The model has an error", where, text: message, notes, action: again });
  }

  ended({ why, fault }) {
    if (fault) {
      document.body.dataset.phase = "fault"; // no tick reports it
      setText($("phase"), "fault");
    }
    const title = fault ? "Fault: device disengaged, run ended" : "The run has ended";
    const recording = this.about?.recording;
    const notes = fault && recording ? [["replay", `fsm-dyn view ${recording}`]] : [];
    if (fault && this.about?.device) notes.unshift(["remedy", "check and reconnect the device, then restart"]);
    this.say("ended", { kind: "error", title, text: why, notes, action: ["Restart", () => this.send({ do: "restart" })], closable: true });
  }

  event(event) {
    if (event.event === "fault") this.why = [event.reason, event.detail].filter(Boolean).join(": ");
    if (event.event === "model_failed") this.why = event.reason;
    if (["fault", "failed"].includes(event.event)) this.phase(this.now);
    if (event.event === "command_rejected") this.notice(`Refused: ${event.reason}`);
    if (event.event === "recording") this.notice(`The recording has ended: ${event.reason}`);
    if (event.event === "phase") this.phase(event.phase);
  }

  refused({ message }) {
    this.notice(`Refused: ${message}`);
  }

  notice(text) {
    setText($("notice"), text);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => setText($("notice"), ""), 6000);
  }

  frame(frame) {
    if (this.shown.starting) this.say("starting", null);
    if (document.body.classList.contains("playback-mode")) return;
    const phase = ["running", "paused", "fault", "failed", "stopped"][frame.phase];
    if (phase !== this.now) this.phase(phase);
  }

  phase(phase) {
    this.now = phase;
    const clear = ["Clear the fault (C)", () => this.send({ do: "clear" })];
    const reset = ["Reset (R)", () => this.send({ do: "reset" })];
    const notice = {
      fault: { kind: "error", title: "Fault: force output disabled", text: this.why ?? "", action: clear },
      failed: { kind: "error", title: "Simulation failed", text: this.why ?? "", action: reset },
      stopped: { kind: "calm", title: "Stopped", text: "A transition marked stop was taken.", action: reset },
    }[phase];
    this.say("phase", notice ? { ...notice, closable: true } : null);
  }

  hide() {
    // a hidden button keeps the focus until the next frame, and would swallow a key pressed before that
    if (this.box.contains(document.activeElement)) document.activeElement.blur();
    this.box.hidden = true;
  }

  say(key, what) {
    if (what) this.shown[key] = what;
    else delete this.shown[key];
    const first = ["connection", "error", "starting", "ended", "phase"].map((k) => this.shown[k]).find(Boolean);
    if (!first) return this.hide();
    this.box.hidden = false;
    this.box.className = first.kind;
    const parts = [el("h2", { text: first.title })];
    if (first.where) parts.push(el("p", { class: "where", text: first.where }));
    if (first.text) parts.push(el("p", { text: first.text }));
    if (first.clock) parts.push(el("p", { class: "clock soft" }));
    for (const [name, text] of first.notes ?? []) parts.push(el("p", { class: "note" }, el("b", { text: `${name}: ` }), text));
    if (first.action) {
      const [text, act] = first.action;
      parts.push(el("button", { text, onclick: act }));
    }
    if (first.closable) parts.push(el("button", { class: "close", text: "Close", onclick: () => this.hide() }));
    this.box.replaceChildren(...parts);
    this.tick();
  }
}

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}
