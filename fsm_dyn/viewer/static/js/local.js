// In place of a server: a report, whose frames stand in the page itself.

import { floats, upTo } from "./packed.js";

export class Local {
  constructor({ message, frame, state }, holder) {
    Object.assign(this, { message, frame });
    const { model, frames, charts, words } = JSON.parse(holder.textContent);
    this.numbers = floats(frames.data);
    Object.assign(this, { model, places: frames.places, clocks: frames.clocks, times: frames.times, charts, words });
    setTimeout(() => {
      state("open", 0);
      message(model);
      this.show(0);
    }, 0);
  }

  retry() {}

  send(command) {
    if (command.do === "seek") this.show(this.number(command.at, command.after));
    else if (command.do === "row") this.show(Math.min(command.number, this.clocks.length - 1));
    else if (command.do === "words") {
      const items = this.words.slice(command.first, command.first + 60);
      setTimeout(() => this.message({ kind: "words", number: this.model.number, first: command.first, items }), 0);
    } else if (command.do === "charts") { // all there are, whatever stretch is asked for
      setTimeout(() => this.message({ ...this.charts, span: [command.from, command.to] }), 0);
    } else return false;
    return true;
  }

  number(at, after) {
    const last = upTo(this.clocks, at) - 1;
    if (!after || this.clocks[last] === at) return Math.max(0, last);
    return Math.min(this.clocks.length - 1, last + 1);
  }

  show(number) {
    const frame = Float64Array.from(this.numbers.subarray(this.places[number], this.places[number + 1]));
    frame[1] = number;
    frame[2] = this.times[number]; // as exact as they were
    setTimeout(() => this.frame(frame), 0);
  }
}
