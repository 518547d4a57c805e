// Constraints of a person: two clicks join a point of a body to another body or to the ground.

import { $, setText, svg } from "./dom.js";

const KINDS = ["pin", "weld", "angle", "distance", "contact"];

export class Hand {
  constructor(mechanism, send) {
    Object.assign(this, { mechanism, send, active: false, first: null, count: 0 });
    mechanism.element.addEventListener("pointerdown", (event) => this.down(event), { capture: true });
    $("hand").onclick = () => this.toggle(!this.active);
    $("hand-release").onclick = () => send({ do: "release", number: 0 });
    window.addEventListener("keydown", (event) => event.key === "Escape" && this.active && this.toggle(false));
  }

  model(model) {
    this.available = !model.playback && (model.imposable ?? 0) > 0 && model.picture.planar;
    $("hand-tools").hidden = !this.available;
    document.body.classList.toggle("imposable", this.available); // more tools than fit next to the title
    this.mark = svg("circle", { class: "grasp", r: 7, visibility: "hidden" });
    this.mechanism.overlay.append(this.mark);
    this.shown(0);
    this.toggle(false);
  }

  toggle(active) {
    this.active = active && this.available;
    this.first = null;
    this.mark?.setAttribute("visibility", "hidden");
    $("hand").setAttribute("aria-pressed", String(this.active));
    this.mechanism.element.classList.toggle("grasping", this.active);
    if (this.active) this.tell("Click a point of a body");
    else if (this.available) this.tell("");
  }

  tell(text) {
    setText($("hand-note"), text);
  }

  shown(count) {
    this.count = count;
    $("hand-release").disabled = count === 0;
    setText($("hand-release"), count ? `Release ${count}` : "Release");
  }

  // A click is kept in the coordinates of the shape, which moves with its body.
  grasp(event) {
    const box = this.mechanism.element.getBoundingClientRect();
    const [x, y] = this.mechanism.view.world(event.clientX - box.left, event.clientY - box.top);
    const under = document.elementsFromPoint(event.clientX, event.clientY).map((one) => this.mechanism.shapes.indexOf(one));
    const shape = under.find((k) => k >= 0) ?? -1; // below handles and forces, too
    if (shape < 0) return { shape, x, y };
    const [a, b, c, d, e, f] = this.frameNow.shapes.subarray(6 * shape, 6 * shape + 6);
    const [dx, dy, det] = [x - e, y - f, a * d - b * c];
    return { shape, x: (d * dx - c * dy) / det, y: (a * dy - b * dx) / det };
  }

  down(event) {
    if (!this.active || event.button !== 0 || !this.frameNow) return;
    event.stopImmediatePropagation();
    const at = this.grasp(event);
    if (!this.first) {
      if (at.shape < 0) return this.tell("That is the ground: click a point of a body first");
      this.first = at;
      return this.tell("Now click another body, or the ground");
    }
    const { shape: a, x: ax, y: ay } = this.first;
    this.send({ do: "constrain", kind: KINDS[$("hand-kind").selectedIndex], a, ax, ay, b: at.shape, bx: at.x, by: at.y });
    this.toggle(false);
  }

  event(event) {
    const command = event.command?.do;
    if (event.event === "constraint") this.shown(event.imposed);
    if (event.event === "command_done" && ["release", "reset"].includes(command)) this.shown(event.imposed ?? 0);
    if (event.event === "command_rejected" && ["constrain", "release"].includes(command)) this.tell(event.reason.split("\n")[0]);
  }

  refused({ message }) {
    if (this.available) this.tell(message);
  }

  frame(frame) {
    this.frameNow = frame;
    if (!this.first) return;
    const [a, b, c, d, e, f] = frame.shapes.subarray(6 * this.first.shape, 6 * this.first.shape + 6);
    const { x, y } = this.first;
    const [px, py] = this.mechanism.view.screen(a * x + c * y + e, b * x + d * y + f);
    this.mark.setAttribute("transform", `translate(${px} ${py})`);
    this.mark.setAttribute("visibility", "visible");
  }
}
