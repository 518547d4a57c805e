// Modes embedded online: each gets a context, and rows in the tables, see fsm_dyn/exports/spare_modes.py.

const MODES = 8; // index in struct fsm_sizes
const GOLDEN = 137.5; // degrees between the hues of further modes

export class MachineModes {
  constructor(data, machine) {
    Object.assign(this, { data, machine, further: data.further, made: [] });
  }

  // Whether a mode with these contact states could be added.
  add(states) {
    const { further, machine, data } = this;
    if (!further || this.made.length >= further.room) return false;
    const guards = this.guards(states), number = data.modes.length, at = this.context(states, guards);
    this.made.push(at);
    const memory = machine.runtime.memory.buffer, view = new DataView(memory), place = further.at;
    view.setUint32(further.slots + 4 * (number - machine.about.n_modes), at, true);
    const wholes = (begin, index, value) => view.setBigInt64(begin + 8 * index, BigInt(value), true);
    new Int8Array(memory, place.mode_states + number * states.length, states.length).set(states);
    wholes(place.mode_flags, number, states.reduce((flags, code, k) => flags | further.flags[k][code], further.base));
    wholes(place.mode_group, number, number);
    const first = Number(view.getBigInt64(place.mode_guard_start + 8 * number, true));
    wholes(place.mode_guard_start, number + 1, first + guards.length);
    guards.forEach(({ numbers: [event, subject, direction, unit] }, i) => {
      wholes(place.guard_event, first + i, event);
      wholes(place.guard_contact, first + i, subject);
      view.setFloat64(place.guard_direction + 8 * (first + i), direction, true);
      view.setFloat64(place.guard_unit + 8 * (first + i), unit, true);
    });
    wholes(place.sizes, MODES, number + 1);
    data.kernels.full.push(further.full[number - machine.about.n_modes]);
    data.guard_counts.push(guards.length);
    data.model.guards.push(guards.map(({ text, event }) => ({ text, event })));
    data.modes.push({ label: this.label(states), states });
    return true;
  }

  // In the order of the contacts; faces of a convex polygon have one for each corner that is on none of them.
  guards(states) {
    const { guards } = this.further, own = guards.slice(0, -1).flatMap((byState, k) => byState[states[k]]);
    return [...own.filter(({ open }) => open.every((k) => states[k] === 0)), ...guards.at(-1)[0]];
  }

  // The context of a mode in newly taken memory, nothing chosen in it yet.
  context(states, guards) {
    const { template } = this.further, { runtime } = this.machine, { memory } = runtime;
    const structure = Uint8Array.from(atob(template.structure), (character) => character.charCodeAt(0));
    const begin = memory.grow(Math.ceil((template.bytes + structure.length) / 65536)) * 65536, at = begin + template.bytes;
    new Uint8Array(memory.buffer, at, structure.length).set(structure);
    const view = new DataView(memory.buffer), { places } = template;
    for (const offset of template.own) view.setUint32(at + offset, view.getUint32(at + offset, true) + begin, true);
    for (const offset of template.lengths) view.setBigInt64(at + offset, BigInt(guards.length), true);
    new Int8Array(memory.buffer, begin + places.states, states.length).set(states);
    const put = (name, values) => values.forEach((value, i) => view.setBigInt64(begin + places[name] + 8 * i, BigInt(value), true));
    put("guard_quantity", guards.map(({ measures }) => measures[0]));
    put("guard_subject", guards.map(({ measures }) => measures[1]));
    put("chart", template.chart);
    guards.forEach(({ measures }, i) => view.setFloat64(begin + places.guard_sign + 8 * i, measures[2], true));
    template.units.forEach((value, i) => view.setFloat64(begin + places.state_unit + 8 * i, value, true));
    template.limits.forEach((value, i) => view.setFloat64(begin + places.limits + 8 * i, value, true));
    return at;
  }

  // Let a chart be chosen again in every mode, so that a run does not depend on those before it.
  forget() {
    const { template } = this.further ?? {}, view = new DataView(this.machine.runtime.memory.buffer);
    for (const at of this.made) view.setBigInt64(at - template.bytes + template.places.chart + 8 * template.chosen, 0n, true);
  }

  // Number of the mode in the mode graph, to which it is added.
  label(states) {
    const { words, model } = this.data, { modes } = model.graph, texts = states.map((code, k) => this.further.states[k][code]);
    const name = states.flatMap((code, k) => (code ? [`${words.contacts[k].name}_${texts[k]}`] : [])).join("+") || "free";
    const colour = `hsl(${(GOLDEN * modes.length) % 360} 45% 62%)`;
    return modes.push({ name, states: Object.fromEntries(texts.map((text, k) => [words.contacts[k].name, text])), colour, initial: false }) - 1;
  }
}
