// How well the loop keeps its time, and what it records.

import { $, setText, short } from "./dom.js";

const LATELY = 2000; // ms that an overrun is shown

export class Timing {
  model(model) {
    this.overruns = null;
    setText($("recording"), model.recording ? `● recording ${model.recording}` : "");
  }

  timing(report) {
    const { period, duration, lateness, overruns, ticks } = report;
    const micro = (seconds) => `${short(seconds * 1e6, 2)}`;
    setText($("timing"),
      `tick ${short(period * 1e3)} ms · takes ${micro(duration.p50)} µs, p99.9 ${micro(duration["p99.9"])} · late ${micro(lateness.p50)} µs, ` +
      `p99.9 ${micro(lateness["p99.9"])}, worst ${micro(lateness.worst)} · ${overruns} overrun${overruns === 1 ? "" : "s"} in ${ticks} ticks`);
    $("timing").title = report.privileges.join("\n");
    if (this.overruns !== null && overruns > this.overruns) this.at = performance.now();
    this.overruns = overruns;
    const now = this.at !== undefined && performance.now() - this.at < LATELY;
    document.body.classList.toggle("overrun", now);
  }
}
