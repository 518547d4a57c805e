// Elements. Text of a model is never parsed as markup.

export const $ = (id) => document.getElementById(id);

export function el(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") made.className = value;
    else if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function svg(tag, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A long name with its middle left out: what two long names differ by is mostly at their ends.
export function elided(text, most = 60) {
  if (text.length <= most) return text;
  const head = Math.ceil((most - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}

// Show as much of a long name as an element has room for; the whole, or what it is short for, is its tooltip.
export function setName(node, name, full = name) {
  node.title = full;
  setText(node, elided(name));
  for (let most = node.textContent.length; most > 5 && node.scrollWidth > node.clientWidth; ) {
    most = Math.min(most - 1, Math.floor((most * node.clientWidth) / node.scrollWidth));
    setText(node, elided(name, Math.max(5, most)));
  }
}

// A mode as it is called: by its name in the model, or by the names of what touches in it.
export function called(mode) {
  return mode.words && /[;·+]/.test(mode.name) ? mode.words : mode.name;
}

const ROUNDING = 1e-12; // SI units

// A number with few digits; what is rounding is zero.
export function short(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < ROUNDING) return "0";
  if (size < 1e-3 || size >= 1e5) return value.toExponential(Math.max(0, digits - 2)).replaceAll("-", "−");
  return value.toPrecision(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "").replace("-", "−");
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1e-3) return `${short(seconds * 1e6, 3)} µs`;
  if (seconds < 1) return `${short(seconds * 1e3, 3)} ms`;
  return seconds < 100 ? `${seconds.toFixed(seconds < 10 ? 2 : 1)} s` : `${Math.round(seconds)} s`;
}
