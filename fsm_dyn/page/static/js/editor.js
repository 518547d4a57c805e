// Editor of the model file: keys complete, errors show as one types, saving starts the model again.

import { $, el, setText } from "./dom.js";

const WIDE = 900; // px, of a page with room for the file next to the mechanism
const PAUSE = 350; // ms without typing, after which the text is checked

function loaded(tag, attributes) {
  return new Promise((resolve, reject) => {
    document.head.append(Object.assign(document.createElement(tag), attributes, { onload: resolve, onerror: reject }));
  });
}

export class Editor {
  constructor() {
    this.box = $("editor");
    $("editor-open").onclick = () => this.toggle();
    $("editor-save").onclick = () => this.save();
  }

  model(model) {
    $("editor-open").hidden = !model.edits;
    if (!model.edits) this.toggle(false);
    else if (!this.begun && innerWidth >= WIDE) this.toggle(true); // on a narrow page the button opens it
    this.begun ||= !!model.edits;
  }

  async toggle(open = this.box.hidden) {
    this.box.hidden = !open;
    document.body.classList.toggle("editing", open);
    $("editor-open").setAttribute("aria-expanded", open);
    if (open && !this.text) await this.start();
    if (open) this.text?.refresh();
  }

  async start() {
    const { name, text, words } = await (await fetch("source")).json();
    this.words = words;
    setText($("editor-name"), name);
    await Promise.all(["codemirror.css", "codemirror.hint.css"].map((file) => loaded("link", { rel: "stylesheet", href: `vendor/${file}` })));
    await loaded("script", { src: "vendor/codemirror.js" });
    await Promise.all(["yaml", "hint"].map((part) => loaded("script", { src: `vendor/codemirror.${part}.js` })));
    this.text = globalThis.CodeMirror($("editor-text"), {
      value: text, mode: "yaml", lineNumbers: true, indentUnit: 2, tabSize: 2, lineWrapping: true,
      extraKeys: { "Ctrl-Space": (editor) => this.complete(editor), "Ctrl-S": () => this.save(), "Cmd-S": () => this.save(), Esc: () => this.toggle(false) },
    });
    this.text.on("change", () => this.changed());
    this.text.on("inputRead", (editor, { text: [typed] }) => /^[a-z_]$/.test(typed) && this.complete(editor));
  }

  // The section in which a line is: the key without indentation above it.
  section(line) {
    if (/^\S/.test(this.text.getLine(line))) return "";
    for (let k = line; k >= 0; k--) {
      const found = this.text.getLine(k).match(/^(\w+)\s*:/);
      if (found) return found[1];
    }
    return "";
  }

  complete(editor) {
    const cursor = editor.getCursor(), before = editor.getLine(cursor.line).slice(0, cursor.ch), typed = before.match(/[\w]*$/)[0];
    if (!/(^|[{,\s-])\w*$/.test(before) || /:\s+[^{[]*$/.test(before)) return; // a value, not a key
    const words = this.words[this.section(cursor.line)] ?? {};
    const list = Object.entries(words).filter(([name]) => name.startsWith(typed) && name !== typed).map(([name, meaning]) => ({
      text: `${name}: `, displayText: name,
      render: (element) => element.append(el("strong", { text: name }), ` ${meaning}`.slice(0, 70)),
    }));
    if (!list.length) return;
    const from = { line: cursor.line, ch: cursor.ch - typed.length };
    editor.showHint({ hint: () => ({ list, from, to: cursor }), completeSingle: false });
  }

  changed() {
    clearTimeout(this.waits);
    this.waits = setTimeout(() => this.check(), PAUSE);
  }

  async check() {
    const asked = (this.asked = (this.asked ?? 0) + 1);
    const found = await this.post("check");
    if (asked === this.asked) this.show(found);
    return found;
  }

  async post(where) {
    const answer = await fetch(where, { method: "POST", body: this.text.getValue() });
    return answer.json();
  }

  show(error) {
    if (this.marked !== undefined) this.text.removeLineClass(this.marked, "background", "wrong");
    this.marked = error?.line ? Math.min(error.line, this.text.lineCount()) - 1 : undefined; // text may end too early
    if (this.marked !== undefined) this.text.addLineClass(this.marked, "background", "wrong");
    const notes = error ? error.notes.map(([label, text]) => `${label}: ${text}`) : [];
    setText($("editor-error"), error ? [`${error.line ? `line ${error.line}: ` : ""}${error.message}`, ...notes].join("\n") : "");
    $("editor-error").hidden = !error;
    this.text.refresh(); // the message takes its room
    this.text.scrollIntoView(null);
  }

  async save() {
    const error = await this.post("save");
    this.show(error);
    setText($("editor-name"), error ? "saved, with an error" : "saved");
  }
}
