// Transitions of a machine in the page as entries of the event log, in the words of fsm_dyn/run/transitions.py.

import { ContactState, Event } from "./abi.js";

export class MachineLog {
  constructor({ words, modes, model, rows }) {
    Object.assign(this, { words, modes, rows, graph: model.graph });
    this.number = 0;
    this.visits = {};
    this.seconds = {};
    this.crossings = new Map();
  }

  name(mode) {
    return this.graph.modes[this.modes[mode].label].name;
  }

  totals() {
    const crossings = [...this.crossings].map(([pair, count]) => [...pair.split("\n"), count]);
    return { visits: this.visits, crossings, seconds: this.seconds, transitions: this.number };
  }

  dwell(mode, time) {
    const name = this.name(mode);
    this.seconds[name] = (this.seconds[name] ?? 0) + time;
  }

  entries({ made, records }) {
    const lost = made - records.length;
    const found = records.map((record) => this.entry(record));
    this.number += lost;
    return found;
  }

  entry({ time, source, target, reason, fired, impulse }) {
    const [from, to] = [source, target].map((mode) => this.name(mode)), handover = from === to && source !== target;
    if (!handover) {
      this.visits[to] = (this.visits[to] ?? 0) + 1;
      const pair = `${from}\n${to}`;
      this.crossings.set(pair, (this.crossings.get(pair) ?? 0) + 1);
    }
    const { contacts, named } = this.words, impulses = {};
    this.rows.forEach((name, row) => impulse[row] !== 0 && (impulses[name] ??= []).push(impulse[row]));
    const guards = fired.map(({ event, contact, value, slope }) => [event === Event.TRANSITION ? named[contact] : contacts[contact].announced[event], value, slope]);
    return { number: this.number++, t: time, source: from, target: to, handover, cause: this.cause(source, target, reason, fired, impulse), impulse: impulses, lost: 0, why: [], guards };
  }

  // What fired, then, after a semicolon, the other contacts that changed.
  cause(source, target, reason, fired, impulse) {
    const { contacts, written, reasons } = this.words, before = this.modes[source].states, after = this.modes[target].states;
    const parts = reasons[reason] ? [reasons[reason]] : [], named = new Set();
    for (const { event, contact } of fired) {
      if (event === Event.TRANSITION) parts.push(written[contact]);
      else if (!named.has(contact)) {
        const { beyond, moved } = contacts[contact];
        if (event === Event.CLOSES && beyond >= 0 && after[contact] === ContactState.FREE && impulse[beyond] === 0) continue;
        named.add(contact);
        parts.push(moved[event][before[contact]][after[contact]]);
      }
    }
    const along = contacts.flatMap(({ became }, k) => (before[k] !== after[k] && !named.has(k) ? [became[after[k]]] : []));
    if (fired.every(({ event }) => event === Event.TRANSITION)) {
      const free = (k) => before[k] === ContactState.FREE && after[k] === ContactState.FREE;
      along.push(...contacts.flatMap(({ bounced, normal }, k) => (normal >= 0 && free(k) && impulse[normal] !== 0 ? [bounced] : [])));
    }
    return parts.join(", ") + (along.length ? `; ${along.join(", ")}` : "");
  }
}
