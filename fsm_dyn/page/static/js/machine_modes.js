// Modes that the machine embeds online: their names and the texts of their guards, see page_modes() in
// fsm_dyn/exports/c_model.py.

const GOLDEN = 137.5; // degrees between the hues of further modes

export class MachineModes {
  constructor(data, machine) {
    Object.assign(this, { data, machine, further: data.further, labels: new Map() });
  }

  // Name the modes that the machine has added; whether there are any.
  update() {
    const { data, machine } = this, before = data.modes.length;
    while (data.modes.length < machine.modes) this.add(machine.states(data.modes.length));
    return data.modes.length > before;
  }

  add(states) {
    const { data } = this, guards = this.guards(states);
    data.guard_counts.push(guards.length);
    data.model.guards.push(guards.map(({ text, event }) => ({ text, event })));
    data.modes.push({ label: this.label(states), states });
  }

  // In the order of the contacts; faces of a convex polygon have one for each corner that is on none of them.
  guards(states) {
    const { guards } = this.further, own = guards.slice(0, -1).flatMap((byState, k) => byState[states[k]]);
    return [...own.filter(({ open }) => open.every((k) => states[k] === 0)), ...guards.at(-1)[0]];
  }

  // Let there be the modes of the page alone, as in a machine that was restarted.
  forget() {
    const { data } = this, count = this.machine.about.n_modes;
    data.guard_counts.length = data.model.guards.length = data.modes.length = count;
  }

  // Number of the mode in the mode graph, to which it is added the first time.
  label(states) {
    const { words, model } = this.data, { modes } = model.graph, key = states.join();
    if (!this.labels.has(key)) {
      const texts = states.map((code, k) => this.further.states[k][code]);
      const name = states.flatMap((code, k) => (code ? [`${words.contacts[k].name}_${texts[k]}`] : [])).join("+") || "free";
      const colour = `hsl(${(GOLDEN * modes.length) % 360}, 45%, 62%)`, named = texts.map((text, k) => [words.contacts[k].name, text]);
      this.labels.set(key, modes.push({ name, states: Object.fromEntries(named), colour, initial: false }) - 1);
    }
    return this.labels.get(key);
  }
}
