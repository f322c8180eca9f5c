// The box in which messages are written.

import { $, fit, isSend, wellFormed } from "../dom.js";
import { Images } from "./images.js";

const form = $("#composer"), box = $("#composer textarea");

export class Composer {
  /** `on` has `ready()`, `send(text, images)`, `editLast()`, `notice(text)`, and for images `takesImages()` and `room()`. */
  constructor(on) {
    this.images = new Images({ ...on, changed: () => box.focus() });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = wellFormed(box.value);
      if ((!text.trim() && !this.images.any) || !on.ready()) return;
      box.value = "";
      fit(box);
      on.send(text, this.images.take());
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

  /** Take messages, or none while the model waits for results; and images, or none. */
  enable(enabled, images) {
    box.disabled = $("#attach").disabled = !enabled;
    $("#attach").hidden = !images;
    box.placeholder = enabled ? "Message" : "The model waits for a result above";
  }
}
