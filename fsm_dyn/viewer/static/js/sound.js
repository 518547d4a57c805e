// Contacts that close are heard: those with a pitch as a note, the others as a click, the faster the louder and brighter.
//
// When a contact closed is known to the microsecond, but told milliseconds later, now sooner, now later. Every sound is put
// off until LEAD after its instant, so that a rhythm is heard as it was; what is told later than that sounds at once.

import { $, setText } from "./dom.js";

const LOUDEST = 4; // m/s, or rad/s: faster blows sound no louder
const PARTIALS = 8;
const AT_ONCE = 12; // sounds of one message
const CLICK = 0.02; // s
const LEAD = 0.03; // s
const OLDEST = 1; // s: what is told later is not heard any more
const KEPT = 400;

export class Sound {
  constructor(heard) {
    this.box = $("sound");
    this.heard = heard;
    // contact, speed (m/s), whether it is a note, its instant, and how long after it the server sent it, the page knew, it is scheduled, s
    this.played = [];
    this.box.onchange = () => this.switch(this.box.checked);
  }

  model(model) {
    this.pitches = model.pitches ?? {};
    $("sound-label").hidden = Boolean(model.playback);
  }

  // A browser lets a page sound only after its user has done something: the box is that.
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

  // Sound a blow of this speed (m/s) at model time t; where the machine's clock was then is in `instant`.
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

  // How long after its instant a sound is scheduled, the median and the longest lately, and what the output adds.
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

  // Partials that die away the sooner the higher they are, and are the stronger the harder the blow.
  note(pitch, loud, now) {
    const { context } = this;
    for (let k = 1; k <= PARTIALS && k * pitch < 0.45 * context.sampleRate; k++) {
      const gain = context.createGain(), tone = context.createOscillator();
      const last = 2.5 / k ** 0.7;
      tone.frequency.value = k * pitch * Math.sqrt(1 + 4e-4 * k * k); // strings are a little stiff
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
