// The box in which messages are written.

import { $, fit, isSend, wellFormed } from "../dom.js";
import { Attachments } from "./attachments.js";

const form = $("#composer"), box = $("#composer textarea");

export class Composer {
  /** `on` has `ready()`, `send(text, attached)`, `editLast()`, `notice(text)`, and for files `takesImages()` and `room()`. */
  constructor(on) {
    this.attachments = new Attachments({ ...on, changed: () => box.focus() });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = wellFormed(box.value);
      if ((!text.trim() && !this.attachments.any) || !on.ready()) return;
      box.value = "";
      fit(box);
      on.send(text, this.attachments.take());
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "ArrowUp" && !box.value) on.editLast();
      else if (isSend(event)) form.requestSubmit();
      else return;
      event.preventDefault();
    });
  }

  focus() {
    box.focus();
  }

  /** Take messages, or none while the model waits for results. */
  enable(enabled) {
    box.disabled = $("#attach").disabled = !enabled;
    box.placeholder = enabled ? "Message" : "The model waits for a result above";
  }
}
