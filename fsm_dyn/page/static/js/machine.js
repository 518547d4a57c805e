// A machine in the page: the runtime and a model as WebAssembly, in one memory. Without the page it runs in Node too.

import { GUARD_WIDTH, MAX_FIRED } from "./abi.js";

const LOG_HEAD = 5; // 64-bit integers: rows, speeds, transitions, most of them, numbers of each
const RECORD_HEAD = 5; // time, source, target, reason, guards fired
const MOST = 256; // transitions between two readings
const BLOCK = 65536; // bytes by which memory grows

export class Machine {
  // about: addresses and lengths, see fsm_dyn/exports/html.py.
  constructor(about, runtime, model) {
    this.about = about;
    this.runtime = new WebAssembly.Instance(new WebAssembly.Module(runtime)).exports;
    const { memory, __indirect_function_table: table } = this.runtime;
    this.free = about.end;
    this.at = this.take(about.bytes);
    this.logAt = this.take(8 * (LOG_HEAD + MOST * (RECORD_HEAD + MAX_FIRED * GUARD_WIDTH + about.n_rows + 2 * about.n_u)));
    this.xAt = this.take(8 * about.n_arguments);
    this.cAt = this.take(8 * about.n_c);
    this.inputsAt = this.take(8 * about.n_w);
    this.outAt = this.take(8 * about.n_out);
    memory.grow(Math.ceil(this.free / BLOCK) - memory.buffer.byteLength / BLOCK);
    table.grow(about.table - table.length);
    this.table = table;
    new WebAssembly.Instance(new WebAssembly.Module(model), { runtime: this.runtime });
    if (!this.runtime.fsm_machine_create(about.model, this.at, BigInt(about.bytes))) throw new Error("too little memory for the machine");
    this.runtime.fsm_log_open(this.at, about.model, this.logAt, MOST);
    this.values = new Map(); // parameters that were set
  }

  take(bytes) {
    const place = this.free;
    this.free += 8 * Math.ceil(bytes / 8);
    return place;
  }

  numbers(at, count) {
    return new Float64Array(this.runtime.memory.buffer, at, count);
  }

  get time() {
    return this.runtime.fsm_machine_time(this.at);
  }

  get mode() {
    return Number(this.runtime.fsm_machine_mode(this.at));
  }

  // Number of the phase, -1 for none.
  get phase() {
    return Number(this.runtime.fsm_machine_phase(this.at));
  }

  get x() {
    return this.numbers(this.runtime.fsm_machine_state(this.at), this.about.n_x);
  }

  get c() {
    return this.numbers(this.runtime.fsm_machine_context(this.at), this.about.n_c);
  }

  restart() {
    this.runtime.fsm_machine_restart(this.at);
    for (const [index, value] of this.values) this.runtime.fsm_change_parameter(this.at, index, value);
    this.log();
  }

  // Run to a time, s; returns the status (fsm_status).
  advance(until) {
    return this.runtime.fsm_machine_advance(this.at, until);
  }

  // Let the inputs run to these values in the next call of advance.
  lead(inputs) {
    this.numbers(this.inputsAt, this.about.n_w).set(inputs);
    this.runtime.fsm_lead_inputs(this.at, this.inputsAt);
  }

  // The inputs of the model's schedule at a time, s.
  scheduled(t) {
    this.runtime.fsm_schedule_at(this.at, t, this.cAt);
    return this.numbers(this.cAt, this.about.n_c).slice(this.about.n_p, this.about.n_p + this.about.n_w);
  }

  // Set a parameter; returns whether it can have this value.
  set(parameter, value) {
    const possible = this.runtime.fsm_change_parameter(this.at, parameter, value) !== 0;
    if (possible) this.values.set(parameter, value);
    return possible;
  }

  // How many modes there are, with those embedded online.
  get modes() {
    return Number(this.runtime.fsm_machine_mode_count(this.at));
  }

  // Contact states of a mode.
  states(mode) {
    return this.contacts((k) => this.runtime.fsm_machine_mode_contact(this.at, BigInt(mode), k));
  }

  // Contact states of a mode that was reached and for which there is no room.
  missing() {
    return this.contacts((k) => this.runtime.fsm_machine_missing(this.at, k));
  }

  contacts(state) {
    return Array.from({ length: this.about.n_contacts }, (_, k) => state(BigInt(k)));
  }

  // Evaluate the present mode: x_dot, speeds, pivot, guards, slopes, multipliers; valid until the next call.
  evaluateMode(count) {
    this.runtime.fsm_evaluate_mode(this.at, this.outAt);
    return this.numbers(this.outAt, count);
  }

  // Evaluate a kernel at the present state, or with other arguments; the result is valid until the next call.
  evaluate(kernel, count, x) {
    let place = this.runtime.fsm_machine_state(this.at);
    if (x) {
      this.numbers(this.xAt, x.length).set(x);
      place = this.xAt;
    }
    this.table.get(kernel)(this.time, place, this.runtime.fsm_machine_context(this.at), this.outAt);
    return this.numbers(this.outAt, count);
  }

  // Transitions since the last call: the newest may be missing, if there were too many.
  log() {
    const head = new BigInt64Array(this.runtime.memory.buffer, this.logAt, LOG_HEAD), made = Number(head[2]), width = Number(head[4]);
    const { n_rows } = this.about, impulses = RECORD_HEAD + MAX_FIRED * GUARD_WIDTH;
    const records = Array.from({ length: Math.min(made, MOST) }, (_, i) => {
      const [...record] = this.numbers(this.logAt + 8 * (LOG_HEAD + i * width), width);
      const [time, source, target, reason, count] = record;
      const fired = Array.from({ length: Math.min(count, MAX_FIRED) }, (_, k) => {
        const [event, contact, , value, slope] = record.slice(RECORD_HEAD + GUARD_WIDTH * k);
        return { event, contact, value, slope };
      });
      return { time, source, target, reason, fired, impulse: record.slice(impulses, impulses + n_rows) };
    });
    head[2] = 0n;
    return { made, records };
  }
}
