// The box in which messages are written.

import { $, wellFormed } from "../dom.js";
import { Images } from "./images.js";

const form = $("#composer"), box = $("#composer textarea"), wanted = $("#wanted");
const GROWS = CSS.supports("field-sizing", "content");

export class Composer {
  /** `on` has `ready()`, `send(text, images)`, `editLast()` and `notice(text)`. */
  constructor(on) {
    this.images = new Images(on.notice, () => box.focus());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = wellFormed(box.value);
      if ((!text.trim() && !this.images.any) || !on.ready()) return;
      box.value = "";
      this.#grow();
      on.send(text, this.images.take());
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "ArrowUp" && !box.value) on.editLast();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) form.requestSubmit();
      else return;
      event.preventDefault();
    });
    box.addEventListener("input", () => this.#grow());
  }

  focus() {
    box.focus();
  }

  /** Ask for a message, or for the result of a call. */
  want(call) {
    wanted.hidden = !call;
    $("#attach").hidden = Boolean(call);
    box.placeholder = call ? `Result of ${call.name}(${call.arguments})` : "Message";
    if (!call) return;
    wanted.querySelector("b").textContent = `The model called ${call.name}. Type what it returns.`;
    wanted.querySelector("code").textContent = indented(call.arguments);
  }

  #grow() {
    if (GROWS) return;
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight}px`;
  }
}

function indented(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 1).replace(/\n\s*/g, " ");
  } catch {
    return json;
  }
}
