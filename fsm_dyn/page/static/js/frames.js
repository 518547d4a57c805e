// Display frame: doubles in the order of fsm_dyn/page/frames.py.

import { LivePhase } from "./abi.js";

export const HEAD = 10;
export const HANDLE = 5;
export const FORCE = 9;
export const PUSH = 4;
export const PLACED = 12;

export class Frame {
  constructor(numbers, model) {
    this.numbers = numbers;
    [this.run, this.tick, this.t, this.mode, this.phase, this.fault, this.transitions, this.count, this.list, this.guardCount] =
      numbers;
    let at = HEAD;
    const take = (length) => {
      const part = numbers.subarray(at, at + length);
      at += length;
      return part;
    };
    this.shapes = take(6 * model.picture.shapes.length);
    this.anchors = take(2 * model.picture.anchors);
    this.pushes = take(PUSH * model.pushes.length);
    this.handles = take(HANDLE * model.ports.length);
    this.forces = take(FORCE * model.forces.length);
    this.guards = take(2 * this.guardCount);
    const { picture } = model;
    this.space = take(picture.planar ? 0 : 6 + PLACED * (picture.shapes.length + picture.solids.length));
    this.ghost = take(model.ghost ? 6 * model.ghost.shapes.length + 2 * model.ghost.anchors : 0);
    this.width = 2 + model.quantities.length;
    this.samples = take(this.count * this.width);
    this.pins = numbers.subarray(at); // of a live run, on request: see pins.js
  }
}

export const PHASES = Object.keys(LivePhase).map((name) => name.toLowerCase());
