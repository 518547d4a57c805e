// The page: messages of the server go to the panels, commands of the panels to the server.

import { Animation } from "./animation.js";
import { Banner } from "./banner.js";
import { Charts } from "./charts.js";
import { Connection } from "./connection.js";
import { Controls } from "./controls.js";
import { Device } from "./device.js";
import { HandleDrag } from "./handle_drag.js";
import { Playback } from "./playback.js";
import { Editor } from "./editor.js";
import { Frame } from "./frames.js";
import { GuardBars } from "./guard_bars.js";
import { Hand } from "./hand.js";
import { Keys } from "./keys.js";
import { LivePhases } from "./live_phases.js";
import { MachineSource } from "./machine_source.js";
import { ReportSource } from "./report_source.js";
import { EventLog } from "./event_log.js";
import { ModeGraph } from "./mode_graph.js";
import { Mechanism } from "./mechanism.js";
import { Pins } from "./pins.js";
import { Playing } from "./playing.js";
import { ParameterPanel } from "./parameter_panel.js";
import { Roll } from "./roll.js";
import { RunGraph } from "./run_graph.js";
import { Sound } from "./sound.js";
import { Story } from "./story.js";
import { Tabs } from "./tabs.js";
import { Scene3D } from "./scene3d.js";
import { TickTiming } from "./tick_timing.js";

const KEPT = 1200; // script times

class App {
  constructor() {
    this.model = null;
    this.newest = null;
    this.scriptTimes = [];
    const send = (command) => this.connection.send(command);
    this.mechanism = new Mechanism();
    this.hand = new Hand(this.mechanism, send); // before the handles: its clicks are not theirs
    this.dragging = new HandleDrag(this.mechanism, send);
    this.map = new ModeGraph();
    this.guardBars = new GuardBars();
    this.playback = new Playback(send);
    this.story = new Story(this.playback);
    this.roll = new Roll(this.playback, this.story);
    this.runGraph = new RunGraph(this.playback, this.story);
    this.livePhases = new LivePhases();
    this.tabs = new Tabs(send, (tab) => (this.playback.pace = tab === "story" ? (clock) => this.story.pace(clock) : null));
    this.space = new Scene3D(this.mechanism);
    this.pins = new Pins(this.mechanism, this.playback, send);
    this.charts = new Charts(this.playback, send);
    this.log = new EventLog(this.playback, send);
    this.banner = new Banner(send, () => this.connection.retry());
    this.timing = new TickTiming();
    this.playing = new Playing(send, this.dragging);
    this.sound = new Sound((name, speed) => this.playing.strike(name, speed));
    this.setup = new ParameterPanel(send);
    this.device = new Device(send);
    this.animation = new Animation(this.playback);
    this.controls = new Controls(send, this.dragging, this.playback, this.story);
    this.keys = new Keys(this);
    this.editor = new Editor();
    this.panels = [
      this.mechanism, this.space, this.playback, this.pins, this.story, this.livePhases, this.tabs, this.roll, this.runGraph, this.dragging, this.hand, this.map, this.guardBars, this.charts, this.log, this.banner, this.timing,
      this.controls, this.setup, this.device, this.playing, this.sound, this.animation, this.editor,
    ];
    const holder = document.getElementById("playback-data") ?? document.getElementById("machine-data");
    const Source = { "playback-data": ReportSource, "machine-data": MachineSource }[holder?.id] ?? Connection;
    this.connection = new Source({
      message: (message) => this.message(message),
      frame: (numbers) => this.frame(numbers),
      state: (state, wait) => {
        if (state !== "open") this.newest = null;
        for (const panel of this.panels) panel.connection?.(state, wait);
      },
    }, holder);
    requestAnimationFrame(() => this.draw());
  }

  // Script time of messages between screen updates counts towards the next update.
  message(message) {
    const begin = performance.now();
    this.dispatch(message);
    this.spent = (this.spent ?? 0) + performance.now() - begin;
  }

  dispatch(message) {
    if (message.kind === "model") {
      this.model = message;
      this.newest = this.drawn = null;
      this.pending = [];
      document.title = `${message.name} · fsm_dyn`;
    } else if (message.number !== undefined && message.number !== this.model?.number) return;
    if (message.kind === "mode_graph") this.model.graph = message.graph;
    for (const panel of this.panels) panel[message.kind]?.(message);
  }

  // Samples of every display frame are stored; of the rest only the latest is drawn.
  frame(numbers) {
    const begin = performance.now();
    if (this.model && numbers[0] === this.model.number) {
      this.newest = new Frame(numbers, this.model);
      this.charts.take(this.newest);
    }
    this.spent = (this.spent ?? 0) + performance.now() - begin;
  }

  draw() {
    requestAnimationFrame(() => this.draw());
    this.playback.tick();
    const frame = this.newest;
    if (!frame) {
      if (this.drawn && this.mechanism.view.changed) { // the panel has another size
        for (const panel of [this.mechanism, this.space]) panel.frame(this.drawn);
      }
      return;
    }
    this.newest = null;
    const begin = performance.now();
    for (const panel of this.panels) panel.frame?.(frame);
    this.last = this.drawn = frame;
    queueMicrotask(() => { // after the charts, which draw last
      this.scriptTimes.push(performance.now() - begin + (this.spent ?? 0));
      this.spent = 0;
      if (this.scriptTimes.length > KEPT) this.scriptTimes.shift();
    });
  }
}

if (new URLSearchParams(location.search).get("from") === "models") {
  Object.assign(document.getElementById("models"), { href: "models.html", hidden: false });
}

// In a frame of another page: the mechanism and its contacts alone, playing at once unless motion is unwanted.
if (location.hash === "#embedded") document.body.classList.add("embedded");

// For tests and debugging.
window.fsmDyn = new App();
