// The form in which a function's result is typed, below its call.

import { element, textForm } from "../dom.js";

/** A form for the result of a call; `send(text)` is called with one that is not blank. */
export function resultForm({ name }, send) {
  const { form, box } = textForm("result", `Result of ${name}`, send, element("button", "main", "Send result"));
  box.placeholder = `What ${name} returns`;
  return form;
}
