// Source of a report in place of the server: its display frames are in the page. For another view direction outlines are
// projected again; arrows and lines are omitted, as only their projections are stored.

import { floats, upTo } from "./base64_arrays.js";
import { HEAD, PLACED } from "./frames.js";

export class ReportSource {
  constructor({ message, frame, state }, holder) {
    Object.assign(this, { message, frame });
    const { model, frames, charts, transition_details: details, loads } = JSON.parse(holder.textContent);
    this.numbers = floats(frames.data);
    Object.assign(this, { model, places: frames.places, clocks: frames.clocks, times: frames.times, charts, details, loads });
    setTimeout(() => {
      state("open", 0);
      message(model);
      this.show(0);
    }, 0);
  }

  retry() {}

  send(command) {
    if (command.do === "seek") this.show(this.number(command.at, command.after));
    else if (command.do === "seek_row") this.show(Math.min(command.number, this.clocks.length - 1));
    else if (command.do === "transition_details") {
      const items = this.details.slice(command.first, command.first + 60);
      setTimeout(() => this.message({ kind: "transition_details", number: this.model.number, first: command.first, items }), 0);
    } else if (command.do === "loads") {
      if (this.loads) setTimeout(() => this.message(this.loads), 0);
    } else if (command.do === "charts") { // all data for any interval
      setTimeout(() => this.message({ ...this.charts, span: [command.from, command.to] }), 0);
    } else if (command.do === "view_direction" && !this.model.picture.planar) {
      const { azimuth, elevation } = command, [sa, ca, se, ce] = [Math.sin(azimuth), Math.cos(azimuth), Math.sin(elevation), Math.cos(elevation)];
      this.view = [[-sa, ca, 0], [-ca * se, -sa * se, ce]];
      document.body.classList.add("turned");
      this.show(this.shown);
    } else return false;
    return true;
  }

  // Project the outlines of a display frame for the present view direction.
  turn(frame) {
    const { picture, pushes, ports, forces } = this.model, outlines = picture.shapes.length;
    const space = HEAD + 6 * outlines + 2 * picture.anchors + 4 * pushes.length + 5 * ports.length + 9 * forces.length + 2 * frame[9];
    const along = (axis, at) => axis[0] * frame[at] + axis[1] * frame[at + 3] + axis[2] * frame[at + 6];
    this.view.forEach((axis, k) => {
      frame.set(axis, space + 3 * k);
      for (let i = 0; i < outlines; i++) {
        const placed = space + 6 + PLACED * i, own = HEAD + 6 * i + k;
        frame[own] = along(axis, placed);
        frame[own + 2] = along(axis, placed + 1);
        frame[own + 4] = axis[0] * frame[placed + 9] + axis[1] * frame[placed + 10] + axis[2] * frame[placed + 11];
      }
    });
  }

  number(at, after) {
    const last = upTo(this.clocks, at) - 1;
    if (!after || this.clocks[last] === at) return Math.max(0, last);
    return Math.min(this.clocks.length - 1, last + 1);
  }

  show(number) {
    const frame = Float64Array.from(this.numbers.subarray(this.places[number], this.places[number + 1]));
    frame[1] = number;
    frame[2] = this.times[number]; // in double precision
    this.shown = number;
    if (this.view) this.turn(frame);
    setTimeout(() => this.frame(frame), 0);
  }
}
