// Tabs of the page of a finished run: which panels are beside and below the mechanism.

import { $ } from "./dom.js";

export const TABS = ["story", "charts", "guards", "parameters"];

export class Tabs {
  constructor(send, onchange) {
    Object.assign(this, { send, onchange, box: $("tabs"), buttons: new Map(), live: $("tab-live") });
    for (const name of TABS) {
      const button = $(`tab-${name}`);
      button.onclick = () => this.choose(name);
      this.buttons.set(name, button);
    }
    this.live.onclick = () => this.chosen && send({ do: "live" });
    this.box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const shown = TABS.filter((name) => !this.buttons.get(name).hidden), at = shown.indexOf(this.chosen);
      this.choose(shown[(at + step + shown.length) % shown.length]);
      this.buttons.get(this.chosen).focus();
      event.preventDefault();
      event.stopPropagation();
    });
  }

  model(model) {
    const storied = !!model.story;
    document.body.classList.toggle("storied", storied);
    this.box.hidden = !storied && !model.offers_visits;
    this.live.hidden = !(model.offers_visits || model.offers_live);
    this.live.setAttribute("aria-selected", !storied);
    for (const name of ["charts", "guards"]) this.buttons.get(name).hidden = !storied;
    this.buttons.get("parameters").hidden = !(model.playback && model.setup);
    if (!storied) {
      this.buttons.get("story").setAttribute("aria-selected", false);
      for (const name of TABS) document.body.classList.remove(`tab-${name}`);
      this.chosen = null;
      this.onchange(null);
    } else this.choose(this.chosen && !this.buttons.get(this.chosen).hidden ? this.chosen : "story");
  }

  choose(name) {
    if (!this.chosen && !document.body.classList.contains("storied")) {
      this.send({ do: "visits" }); // of the live run: a finished run of the model
      return;
    }
    if (this.box.hidden || this.buttons.get(name).hidden) return;
    this.chosen = name;
    for (const [each, button] of this.buttons) {
      document.body.classList.toggle(`tab-${each}`, each === name);
      button.setAttribute("aria-selected", each === name);
    }
    this.onchange(name);
  }
}
