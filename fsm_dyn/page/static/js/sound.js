// Sounds of contacts that close: a note if the contact has a pitch, else a click; louder and brighter with speed.
//
// Impact times are exact to a microsecond, but arrive milliseconds later with jitter. Every sound is scheduled LEAD after
// its impact, which keeps rhythms exact; later arrivals sound at once.

import { $, setText } from "./dom.js";

const LOUDEST = 4; // m/s, or rad/s: faster impacts are not louder
const PARTIALS = 8;
const AT_ONCE = 12; // most sounds per message
const CLICK = 0.02; // s
const LEAD = 0.03; // s
const OLDEST = 1; // s, age at which an impact is dropped
const KEPT = 400;

export class Sound {
  constructor(heard) {
    this.box = $("sound");
    this.heard = heard;
    // contact, speed (m/s), whether it is a note, time, and the delays to sending, arrival and schedule, s
    this.played = [];
    this.box.onchange = () => this.switch(this.box.checked);
  }

  model(model) {
    this.pitches = model.pitches ?? {};
    $("sound-label").hidden = Boolean(model.playback);
  }

  // Browsers allow sound only after a user action: the check box.
  switch(on) {
    if (on && !this.context) this.context = new AudioContext({ latencyHint: "interactive" });
    if (this.context) on ? this.context.resume() : this.context.suspend();
    this.show();
  }

  impacts({ impacts, instant, sent }) {
    for (const [name, t, speed] of impacts.slice(-AT_ONCE)) {
      if (this.pitches[name]) this.heard?.(name, speed);
      if (this.box.checked) this.strike(name, speed, t, instant, sent);
    }
    if (this.box.checked) this.show();
  }

  // Sound an impact of this speed (m/s) at model time t; `instant` relates it to the wall clock.
  strike(name, speed, t, instant, sent) {
    const loud = Math.min(1, speed / LOUDEST), pitch = this.pitches[name];
    const at = instant.at + (t - instant.t) / instant.speed;
    const age = Math.max(0, (performance.timeOrigin + performance.now()) / 1000 - at), wait = Math.max(0, LEAD - age);
    if (age > OLDEST) return;
    const when = this.context.currentTime + wait;
    pitch ? this.note(pitch, loud, when) : this.click(loud, when);
    this.played.push({ name, speed, note: Boolean(pitch), t, at, sent: sent - at, age, latency: age + wait, when, loud });
    if (this.played.length > KEPT) this.played.shift();
  }

  // Delay from impact to schedule, median and maximum, and the latencies of the output.
  latency() {
    const sorted = this.played.map(({ latency }) => latency).sort((a, b) => a - b);
    const { baseLatency = 0, outputLatency = 0 } = this.context ?? {};
    return {
      median: sorted[Math.floor(sorted.length / 2)] ?? null, longest: sorted.at(-1) ?? null,
      base: baseLatency, output: outputLatency, count: sorted.length,
    };
  }

  show() {
    const { median, longest, base, output, count } = this.latency(), ms = (seconds) => Math.round(1e3 * seconds);
    const scheduled = count ? `scheduled ${ms(median)} ms after the contact, max ${ms(longest)}` : "nothing yet";
    setText($("latency"), this.box.checked ? `sound: ${scheduled} · output + ${ms(base)} + ${ms(output)} ms` : "");
  }

  // Partials: decay faster with order, amplitude grows with impact speed.
  note(pitch, loud, now) {
    const { context } = this;
    for (let k = 1; k <= PARTIALS && k * pitch < 0.45 * context.sampleRate; k++) {
      const gain = context.createGain(), tone = context.createOscillator();
      const last = 2.5 / k ** 0.7;
      tone.frequency.value = k * pitch * Math.sqrt(1 + 4e-4 * k * k); // inharmonicity of a stiff string
      gain.gain.setValueAtTime(0, now);
      gain.gain.linearRampToValueAtTime((0.3 * loud * (0.25 + 0.75 * loud) ** (k - 1)) / k, now + 0.004);
      gain.gain.exponentialRampToValueAtTime(1e-5, now + last);
      tone.connect(gain).connect(context.destination);
      tone.start(now);
      tone.stop(now + last);
    }
  }

  click(loud, when) {
    const { context } = this, source = context.createBufferSource(), gain = context.createGain();
    source.buffer = this.noise ??= this.made();
    gain.gain.value = 0.25 * loud;
    source.connect(gain).connect(context.destination);
    source.start(when);
  }

  made() {
    const { context } = this, length = Math.round(CLICK * context.sampleRate);
    const buffer = context.createBuffer(1, length, context.sampleRate), wave = buffer.getChannelData(0);
    for (let i = 0; i < length; i++) wave[i] = (2 * Math.random() - 1) * Math.exp((-7 * i) / length);
    return buffer;
  }
}
