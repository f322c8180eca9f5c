// The form in which a function's result is typed, below its call.

import { element, isSend, wellFormed } from "../dom.js";

/** A form for the result of a call; `send(text)` is called with one that is not blank. */
export function resultForm({ name }, send) {
  const box = element("textarea"), submit = element("button", "main", "Send result");
  box.rows = 1;
  box.setAttribute("aria-label", `Result of ${name}`);
  box.placeholder = `What ${name} returns`;
  const form = element("form", "result", box, submit);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = wellFormed(box.value);
    if (text.trim()) send(text);
    else box.focus();
  });
  box.addEventListener("keydown", (event) => {
    if (!isSend(event)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
}
