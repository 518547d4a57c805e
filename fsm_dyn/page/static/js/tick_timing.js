// Timing report of the tick loop, and the recording.

import { $, setText, short } from "./dom.js";

const LATELY = 2000; // ms that an overrun is shown

export class TickTiming {
  model(model) {
    this.overruns = this.last = null;
    const playback = model.playback;
    setText($("timing"), playback ? `${playback.source} · ${playback.rows.toLocaleString("en")} rows · ${model.totals.transitions.toLocaleString("en")} transitions` : "");
    setText($("recording"), model.recording ? `● recording ${model.recording}` : "");
  }

  timing(report) {
    const { period, execution_time, wakeup_latency, overruns, lagging_ticks, ticks } = report;
    const speed = this.ofRealTime(report);
    const micro = (seconds) => (seconds === null ? "–" : Math.round(seconds * 1e6).toLocaleString("en"));
    const parts = ({ p50, "p99.9": high, worst }) => `${micro(p50)} / ${micro(high)} / ${micro(worst)} µs`;
    setText($("timing"),
      `period ${short(period * 1e3)} ms · execution p50/p99.9/max ${parts(execution_time)} · latency ${parts(wakeup_latency)} · ` +
      `${overruns} overrun${overruns === 1 ? "" : "s"}, ${lagging_ticks} behind in ${ticks} ticks` + (speed === null ? "" : ` · model at ${short(100 * speed)} % of real time`));
    $("timing").title = report.realtime_privileges.join("\n");
    if (this.overruns !== null && overruns > this.overruns) this.at = performance.now();
    this.overruns = overruns;
    const now = this.at !== undefined && performance.now() - this.at < LATELY;
    document.body.classList.toggle("overrun", now);
  }

  // advance of the model since the last report over the time in which it was to advance, both by the wall clock
  ofRealTime({ running_time: running, real_time_ratio: ratio }) {
    if (ratio === null || ratio === undefined) return null;
    const before = this.last ?? { running: 0, progress: 0 };
    this.last = { running, progress: ratio * running };
    return running > before.running ? (this.last.progress - before.progress) / (running - before.running) : null;
  }
}
