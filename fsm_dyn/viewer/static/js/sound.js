// Contacts that close are heard: those with a pitch as a note, the others as a click, the faster the louder and brighter.

import { $ } from "./dom.js";

const LOUDEST = 4; // m/s, or rad/s: faster blows sound no louder
const QUIETEST = 0.003; // of the loudest: less is not heard
const PARTIALS = 8;
const AT_ONCE = 12; // sounds of one message
const CLICK = 0.02; // s

export class Sound {
  constructor() {
    this.box = $("sound");
    this.played = []; // contact, speed, and whether it is a note: for tests and for the curious
    this.box.onchange = () => this.switch(this.box.checked);
  }

  model(model) {
    this.pitches = model.pitches ?? {};
    $("sound-label").hidden = Boolean(model.film);
  }

  // A browser lets a page sound only after its user has done something: the box is that.
  switch(on) {
    if (on && !this.context) this.context = new AudioContext();
    if (this.context) on ? this.context.resume() : this.context.suspend();
  }

  story({ news }) {
    if (!this.box.checked) return;
    const blows = news.flatMap((item) => item.guards)
      .filter(([text]) => text.endsWith(" closes"))
      .map(([text, , slope]) => [text.slice(0, -" closes".length), -slope])
      .filter(([, speed]) => speed > QUIETEST * LOUDEST);
    for (const [name, speed] of blows.slice(-AT_ONCE)) this.strike(name, speed);
  }

  strike(name, speed) {
    const loud = Math.min(1, speed / LOUDEST), pitch = this.pitches[name];
    pitch ? this.note(pitch, loud) : this.click(loud);
    this.played.push({ name, speed, note: Boolean(pitch) });
    if (this.played.length > 100) this.played.shift();
  }

  // Partials that die away the sooner the higher they are, and are the stronger the harder the blow.
  note(pitch, loud) {
    const { context } = this, now = context.currentTime;
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

  click(loud) {
    const { context } = this, length = Math.round(CLICK * context.sampleRate);
    const buffer = context.createBuffer(1, length, context.sampleRate), wave = buffer.getChannelData(0);
    for (let i = 0; i < length; i++) wave[i] = (2 * Math.random() - 1) * Math.exp((-7 * i) / length);
    const source = context.createBufferSource(), gain = context.createGain();
    source.buffer = buffer;
    gain.gain.value = 0.25 * loud;
    source.connect(gain).connect(context.destination);
    source.start();
  }
}
