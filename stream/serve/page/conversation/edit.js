// The form in which a message is edited, in its place.

import { button, element, fit, isSend, wellFormed } from "../dom.js";

/** Show the form in a message's node; `send(text)` may remove the node. */
export function editForm(node, text, send) {
  if (node.classList.contains("edited")) return node.querySelector("textarea").focus();
  const bubble = node.querySelector(".user"), actions = node.querySelector(".actions"), hidden = bubble.hidden;
  const box = element("textarea");
  box.rows = 1;
  box.value = text;
  box.setAttribute("aria-label", "Edited message");
  const submit = element("button", "main", "Send");
  const before = document.activeElement;
  const close = () => {
    form.remove();
    node.classList.remove("edited");
    bubble.hidden = hidden;
    actions.hidden = false;
    before.focus();
  };
  const form = element("form", "edit", box, element("div", "actions", button("act", "Cancel", close), submit));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const edited = wellFormed(box.value);
    if (edited.trim()) send(edited);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (isSend(event)) submit.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  bubble.hidden = actions.hidden = true;
  node.classList.add("edited");
  node.append(form);
  fit(box);
  box.focus();
}
