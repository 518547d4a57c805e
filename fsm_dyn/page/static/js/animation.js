// Animation of the mechanism as it is shown, written as a GIF file.

import { $, el, setText } from "./dom.js";

const APART = 80; // ms between pictures, at least
const WIDTH = 640; // pixels, at most
const LONGEST = 30; // s
const COLOURS = 128;
const BAND = 30; // pixels above the mechanism, for mode and time

export class Animation {
  constructor(playback) {
    Object.assign(this, { playback, encoder: null, busy: false });
    this.canvas = document.createElement("canvas");
    this.button = $("gif");
    this.button.onclick = () => this.toggle();
  }

  model(model) {
    this.about = model;
    this.encoder = null;
    clearInterval(this.timer);
    this.show();
  }

  show() {
    setText(this.button, this.encoder ? "Save GIF" : "GIF");
    this.button.setAttribute("aria-pressed", !!this.encoder);
  }

  // Begin; or end, and hand the file to the browser.
  async toggle() {
    if (this.encoder) return this.save();
    this.gif ??= typeof gifEncoder === "object" ? gifEncoder : await import("../vendor/gifenc.esm.js");
    const css = [...document.styleSheets].find((sheet) => sheet.ownerNode.id)?.cssRules ?? [];
    this.style = [...css].map((rule) => rule.cssText).join("\n");
    const { width, height } = $("picture").getBoundingClientRect();
    const share = Math.min(1, WIDTH / width);
    Object.assign(this.canvas, { width: Math.round(width * share), height: Math.round(height * share) + BAND });
    this.pen = this.canvas.getContext("2d", { willReadFrequently: true });
    this.encoder = this.gif.GIFEncoder();
    this.waiting = null; // the picture before, which is written when its duration is known
    this.begun = performance.now();
    this.seen = -Infinity;
    this.timer = setInterval(() => this.over && !this.busy && this.save(), 2 * APART);
    this.show();
    if (this.playback.run && !this.playback.playing) this.playback.play(true);
  }

  frame(frame) {
    const now = performance.now();
    if (!this.encoder || this.busy || now - this.seen < APART) return;
    this.seen = now;
    this.busy = true;
    this.take(frame, now, this.encoder).finally(() => (this.busy = false));
  }

  get over() {
    const { run, playing, clock, to } = this.playback;
    return (run && !playing && clock >= to) || performance.now() - this.begun > 1000 * LONGEST;
  }

  async take(frame, now, encoder) {
    const { pen, canvas } = this, css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    const { width, height } = $("picture").getBoundingClientRect();
    const mode = this.about.graph.modes[frame.mode];
    pen.fillStyle = colour("--panel");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = mode?.colour ?? "#bbbbbb";
    pen.fillRect(0, 0, canvas.width, BAND - 6);
    pen.font = "13px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = "#1b222b";
    const time = $("time").textContent, taken = pen.measureText(time).width;
    pen.fillText($("mode").textContent, 8, BAND / 2 - 3, canvas.width - taken - 30);
    pen.fillText(time, canvas.width - taken - 8, BAND / 2 - 3);
    // the scene of WebGL is there only until the screen is updated: before anything is waited for
    if (!$("space").hidden) pen.drawImage($("space"), 0, BAND, canvas.width, canvas.height - BAND);
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.drawing(width, height))}`;
    await picture.decode();
    pen.drawImage(picture, 0, BAND, canvas.width, canvas.height - BAND);
    if (this.encoder !== encoder) return;
    this.write(now);
    this.waiting = { data: pen.getImageData(0, 0, canvas.width, canvas.height).data, now };
  }

  // The SVG of the page with its styles, and the values of their variables, as one document.
  drawing(width, height) {
    const copy = $("picture").cloneNode(true), css = getComputedStyle($("picture"));
    const names = new Set(this.style.match(/--[\w-]+/g));
    const values = [...names].filter((name) => name !== "--mode").map((name) => `${name}:${css.getPropertyValue(name)}`);
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, class: document.body.className })) copy.setAttribute(name, value);
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = `${this.style}\n:root{${values.join(";")}}\n* {transition: none !important}`;
    copy.prepend(style);
    return new XMLSerializer().serializeToString(copy);
  }

  // Write the picture that waits, which was shown until an instant (ms).
  write(until) {
    if (!this.waiting) return;
    const { data, now } = this.waiting, { quantize, applyPalette } = this.gif;
    const palette = quantize(data, COLOURS);
    this.encoder.writeFrame(applyPalette(data, palette), this.canvas.width, this.canvas.height, { palette, delay: until - now });
    this.waiting = null;
  }

  save() {
    const { encoder } = this;
    this.write((this.waiting?.now ?? 0) + 10 * APART); // the end stays a while
    this.encoder = null;
    clearInterval(this.timer);
    this.show();
    encoder.finish();
    const address = URL.createObjectURL(new Blob([encoder.bytes()], { type: "image/gif" }));
    el("a", { href: address, download: `${this.about.name.replace(/[^\w.-]+/g, "_")}.gif` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60e3);
  }
}
